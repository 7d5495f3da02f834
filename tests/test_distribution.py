"""What is built and installed is what was tested."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

_ROOT = Path(__file__).parents[1]
_KINDS = """
remegraph/py.typed
remegraph/prompts/*.en.md
remegraph/prompts/*.zh.md
remegraph/data/*_en.txt
remegraph/data/*_zh.txt
remegraph/data/*.toml
remegraph/ledger/migrations/versions/*.py
remegraph/servers/inspector/static/*.js
remegraph/servers/inspector/static/*.css
remegraph/servers/inspector/templates/*.html
remegraph/servers/inspector/words.toml
remegraph/demo/*.jsonl
remegraph-*.dist-info/licenses/LICENSE
""".split()

_CONSUMER = """
from typing import assert_type

from remegraph import Memory, MemoryKit, Recall, Scope, Settings, Trace
from remegraph.adapters import MemoryMiddleware
from remegraph.models import AddReceipt


def use(kit: MemoryKit, ann: Scope) -> None:
    assert_type(kit.add_messages(["I live in Lisbon."], scope=ann), AddReceipt)
    found = kit.recall("Lisbon", scope=ann)
    assert_type(found, Recall)
    assert_type(found.memories[0].record_id, str)
    assert_type(kit.memories(scope=ann), tuple[Memory, ...])
    kit.recall("Lisbon")  # error: call-arg
    kit.recall("Lisbon", scope="ann")  # error: arg-type
    kit.recall("Lisbon", ann)  # error: call-arg
    kit.recall("Lisbon", scope=ann, depth="everything")  # error: arg-type
    kit.remember("Lisbon")  # error: attr-defined
    Settings(colour="blue")  # error: call-arg
    MemoryMiddleware()  # error: call-arg


async def wait(kit: MemoryKit, ann: Scope) -> None:
    assert_type(await kit.atrace("id", scope=ann), Trace)
    kit.atrace("id", scope=ann).quotes  # error: attr-defined
"""


def _run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command that finds nothing but what is installed."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def _built(home: Path, target: Path) -> Path:
    """Build the wheel of a folder that holds a pyproject.toml."""
    done = _run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", target, cwd=home)
    assert done.returncode == 0, done.stderr
    (wheel,) = target.glob("*.whl")
    return wheel


def _contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


@pytest.mark.parametrize("home", [".", "integrations/langchain_classic", "integrations/openai_tools"])
def test_the_wheel_holds_every_file_of_the_package_and_no_other(tmp_path: Path, home: str) -> None:
    """Prompts, word lists and migrations are data: a wheel without them fails at the user's, not here."""
    packed = {name for name in _contents(_built(_ROOT / home, tmp_path)) if ".dist-info/" not in name}
    source = _ROOT / home / "src"
    files = (path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert any(name.endswith("/py.typed") for name in packed)
    assert packed == {path.relative_to(source).as_posix() for path in files}


# ------------------------------------------------------------------------------------------- what is published


@dataclass(frozen=True)
class Published:
    """What `make dist` makes, and an environment into which the wheel was installed."""

    sdist: Path
    wheel: Path
    scripts: Path

    @property
    def python(self) -> Path:
        return self.scripts / "python"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    """Build both, and install the wheel into an environment that borrows its dependencies from this one."""
    dist, home = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("home") / "venv"
    done = _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", dist, cwd=_ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")

    assert _run(sys.executable, "-m", "venv", "--without-pip", home, cwd=dist).returncode == 0
    made = Published(sdist, wheel, home / ("Scripts" if os.name == "nt" else "bin"))
    install = ("pip", "--python", made.python, "install", "--no-deps", "--no-index", "--quiet", wheel)
    done = _run(sys.executable, "-m", *install, cwd=dist)
    assert done.returncode == 0, done.stderr
    (packages,) = home.glob("**/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return made


@pytest.mark.slow
def test_each_kind_of_file_that_is_no_code_is_in_the_wheel(published: Published) -> None:
    """Where one kind is missing, a part of it stands still: a language, the inspector, old ledgers, type checks."""
    names = [PurePosixPath(name) for name in _contents(published.wheel)]
    assert [kind for kind in _KINDS if not any(name.match(kind) for name in names)] == []


@pytest.mark.slow
def test_the_sdist_builds_the_wheel_that_the_checkout_builds(published: Published, tmp_path: Path) -> None:
    """Those who build for themselves get what was tested, byte by byte; `make dist` builds the wheel from the sdist."""
    assert _contents(published.wheel) == _contents(_built(_ROOT, tmp_path))


@pytest.mark.slow
def test_nothing_that_is_published_names_the_machine_that_built_it(published: Published, tmp_path: Path) -> None:
    """A path in the metadata works on one machine only, and tells strangers whose that is."""
    unpacked = tmp_path / "sdist"
    with tarfile.open(published.sdist) as packed:
        assert {(member.uname, member.gname) for member in packed.getmembers()} == {("", "")}
        packed.extractall(unpacked, filter="data")
    files = _contents(published.wheel)
    files |= {str(path.relative_to(unpacked)): path.read_bytes() for path in unpacked.rglob("*") if path.is_file()}
    homes = [os.fsencode(path) for path in (_ROOT, Path(sys.prefix).parent, published.wheel.parent)]
    assert [name for name, data in files.items() for home in homes if home in data] == []
    (metadata,) = [data.decode() for name, data in files.items() if name.endswith(".dist-info/METADATA")]
    assert re.findall(r"^Requires-Dist: .* @ .*$", metadata, re.MULTILINE) == []


@pytest.mark.slow
def test_an_index_would_show_the_description_as_it_is_meant(published: Published) -> None:
    """What it cannot render, it refuses, on the day of the release."""
    done = _run(sys.executable, "-m", "twine", "check", "--strict", published.wheel, published.sdist, cwd=_ROOT)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("PASSED") == 2


@pytest.mark.slow
def test_the_command_of_the_wheel_shows_the_demo_anywhere(published: Published, tmp_path: Path) -> None:
    """`pipx run` and `uvx` do this: an environment of its own, a folder that has nothing to do with it, one command."""
    where = _run(published.python, "-c", "import remegraph; print(remegraph.__file__)", cwd=tmp_path).stdout
    assert "site-packages" in where
    assert Path(where).is_relative_to(published.scripts.parent)

    shown = _run(published.scripts / "remegraph", "demo", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "I don't like coffee anymore." in " ".join(shown.stdout.split())  # lines are broken within it
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_without_the_libraries_of_the_command_line_it_says_how_to_get_them(
    published: Published, tmp_path: Path
) -> None:
    """Its extra is forgotten more often than not; a traceback would not help."""
    script = "import sys; sys.modules['typer'] = None; from remegraph.cli import main; main()"
    done = _run(published.python, "-c", script, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.strip() == "The command line needs typer. Install it: pip install 'remegraph[cli]'"


@pytest.mark.slow
def test_types_of_the_wheel_help_those_who_check_theirs(published: Published, tmp_path: Path) -> None:
    """A wrong call turns red in their editor, and a right one does not: under mypy's strictest, with no plugin."""
    program = tmp_path / "consumer.py"
    program.write_text(_CONSUMER, encoding="utf-8")
    options = ("--strict", "--config-file=", "--no-error-summary", "--hide-error-context", "--no-color-output")
    check = ("mypy", *options, "--cache-dir", tmp_path / "cache", "--python-executable", published.python, program)
    told = _run(sys.executable, "-m", *check, cwd=tmp_path)
    found = {
        (file, int(line)): code
        for file, line, code in re.findall(r"^(.*?):(\d+): error: .*\[([\w-]+)\]$", told.stdout, re.MULTILINE)
    }
    expected = {
        (program.name, number): wrong[1]
        for number, line in enumerate(_CONSUMER.splitlines(), 1)
        if (wrong := re.search(r"# error: (.*)$", line))
    }
    assert found == expected, told.stdout + told.stderr
