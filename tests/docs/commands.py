"""The commands on the pages of the documentation: each is one that can be given, and what is quick is carried out."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import uvicorn
import yaml
from typer.testing import CliRunner
from uvicorn.importer import import_from_string

from remegraph.cli.app import app, whole
from remegraph.settings import _IN_ENVIRONMENT
from tests.docs.blocks import ROOT

__all__ = ["exported", "given", "hold", "named", "run"]

_AT_ONCE = {"ingest", "recall", "verify", "import", "keygen", "stats"}
"""What is over at once and needs no more than the files at hand: it is carried out. The tests of `tests/cli` have all."""

_APP = whole()

_FOREIGN = {
    "umask",
    "cat",
    "cd",
    "curl",
    "git",
    "mv",
    "openssl",
    "pg_dump",
    "pg_restore",
    "printf",
    "rm",
    "tr",
    "useradd",
}
"""Not ours to hold."""


def given(block: str) -> Iterator[tuple[list[list[str]], str]]:
    """Yield the commands of each line that begins with `$ `, and what the lines after it show as its output."""
    for line, output in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        words = shlex.split(re.sub(r"\$\([^)]*\)", "value", line), comments=True)
        parts, at = [], 0
        for stop in [*(number for number, word in enumerate(words) if word in {"&&", "|"}), len(words)]:
            parts.append(words[at:stop])
            at = stop + 1
        yield parts, output


def hold(words: Sequence[str]) -> None:
    """Fail where a command is none that can be given.

    Args:
        words: The program and its arguments; variables of its environment before it.
    """
    variables = [word for word in words if re.match(r"[A-Z_]+=", word)]
    program, *arguments = [word for word in words if word not in variables]
    program = program.rpartition("/")[2]
    arguments = list(takewhile(lambda word: not word.startswith(">"), arguments))
    if program == "export":
        assert arguments == []
        program = "env"
    for variable in variables:
        _variable(variable.partition("=")[0])
    if program not in _FOREIGN:
        assert program in _PROGRAMS, f"nobody holds {program!r}"
        _PROGRAMS[program](arguments)


def exported(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each variable that the line sets for those that follow.

    Args:
        words: The program and its arguments.
    """
    if words[0] == "export":
        for word in words[1:]:
            name, _, value = word.partition("=")
            yield name, value


def run(words: Sequence[str]) -> str | None:
    """Carry out a command of ours that is over at once, and return what it prints.

    Args:
        words: The program and its arguments.
    """
    if words[0] != "remegraph" or _AT_ONCE.isdisjoint(words[1:3]) or any(word.isupper() for word in words):
        return None
    done = CliRunner().invoke(app, words[1:])
    assert done.exit_code == 0, done.output
    return done.stdout


def named(words: Sequence[str]) -> None:
    """Fail where a sentence names a command or an option of ours that does not exist; values may be left out.

    Args:
        words: The program and its arguments; `a|b` for either.
    """
    program, *rest = words
    if program != "remegraph":
        hold(words)
        return
    command, options = _APP, set[str]()
    for word in rest:
        options |= {each for parameter in command.params for each in (*parameter.opts, *parameter.secondary_opts)}
        if word.startswith("-"):
            assert word.partition("=")[0] in {*options, "--help"}, (
                f"there is no option {word!r} in {shlex.join(words)!r}"
            )
        elif commands := getattr(command, "commands", None):
            missing = set(word.split("|")) - set(commands)
            assert not missing, f"there is no command {missing} in {shlex.join(words)!r}"
            command = commands[word.split("|")[0]]


def _remegraph(arguments: Sequence[str]) -> None:
    """What the command line itself would refuse is refused."""
    _parse(_APP, arguments)


def _parse(command: Any, arguments: Sequence[str], parent: Any = None) -> None:
    context = command.make_context(command.name, [*arguments], parent=parent)
    if commands := getattr(command, "commands", None):
        rest = context._protected_args + context.args
        _parse(commands[rest[0]], rest[1:], context)


def _make(arguments: Sequence[str]) -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert [word for word in arguments if word not in targets] == []


def _python(arguments: Sequence[str]) -> None:
    """An eval has these options, tests these files, a script of the reader's is the reader's."""
    if arguments[0] == "-c":
        compile(arguments[1], "<command>", "exec")
    if arguments[0] != "-m":
        return
    _, module, *rest = arguments
    if module == "evals":
        if rest:
            named, *given = rest
            assert {word for word in given if word.startswith("--")} <= _options(named), shlex.join(arguments)
    elif module == "pytest":
        assert [word for word in rest if "/" in word and not (ROOT / word).exists()] == []
    else:
        assert (ROOT / module.replace(".", "/")).with_suffix(".py").exists() or module in {"http.server", "venv"}


@cache
def _options(name: str) -> frozenset[str]:
    """Return the options of an eval, read from its code: some take seconds to import."""
    tree = ast.parse((ROOT / "evals" / f"{name}.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    added = [call.args for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"]
    return frozenset(ast.literal_eval(first) for first, *_ in added)


def _uvicorn(arguments: Sequence[str]) -> None:
    """It has these options, and the application is there."""
    context = uvicorn.main.make_context("uvicorn", [*arguments])
    assert callable(import_from_string(context.params["app"]))


def _pip(arguments: Sequence[str]) -> None:
    """Extras are those of the package, folders have something to install."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert arguments[0] == "install"
    for word in arguments[1:]:
        what, _, of = word.partition("[")
        if what in {".", "remegraph"}:
            assert set(filter(None, of.removesuffix("]").split(","))) <= set(extras), word
        elif "/" in what:
            assert (ROOT / what / "pyproject.toml").exists(), word


def _passing(spec: str, arguments: Sequence[str]) -> None:
    """What runs a command out of a package, without installing it."""
    at = arguments.index(spec) + 1
    _pip(["install", arguments[at]])
    hold(arguments[at + 1 :])


def _deployed(arguments: Sequence[str]) -> None:
    """Files of ours are there; so are the units that are named."""
    assert [word for word in arguments if word.startswith("deploy/") and not any(ROOT.glob(word))] == []
    units = {path.stem for path in (ROOT / "deploy" / "systemd").glob("*.service")}
    if {"start", "restart", "enable"} & {*arguments}:
        named = {re.sub(r"@.+", "@", word) for word in arguments if word.startswith("remegraph")}
        assert named <= units


def _in_systemd(arguments: Sequence[str]) -> None:
    """The command is one of ours; the files of its environment are those of the units."""
    at = next(number for number, word in enumerate(arguments) if word.endswith("/bin/remegraph"))
    files = [Path(word.partition("=")[2]).name for word in arguments[:at] if word.startswith("EnvironmentFile=")]
    assert files
    assert [name for name in files if not (ROOT / "deploy" / "systemd" / name).exists()] == []
    hold(arguments[at:])


def _kubectl(arguments: Sequence[str]) -> None:
    """Deployments and jobs that are named are there; so is what is run in a pod."""
    _deployed(arguments)
    manifests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "deploy" / "kubernetes").glob("*.yaml"))
    for word in arguments:
        kind, _, name = word.partition("/")
        assert kind not in {"deployment", "job"} or f"metadata: {{name: {name}}}" in manifests, word
    if arguments[0] == "exec":
        hold(arguments[arguments.index("--") + 1 :])


def _sh(arguments: Sequence[str]) -> None:
    """Each of its commands is one that can be given."""
    for line in arguments[1].split("&&"):
        hold(shlex.split(line))


def _docker(arguments: Sequence[str]) -> None:
    if arguments[0] == "build":
        _deployed(arguments)
        return
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert arguments[0] == "compose"
    if arguments[1] == "exec":
        assert arguments[2] in services
        hold(arguments[3:])
    assert [word for word in arguments if "=" in word and word.partition("=")[0] not in services] == []


def _variable(name: str) -> None:
    """A variable that begins with ours is a setting."""
    known = {f"REMEGRAPH_{name.upper()}" for name in (*_IN_ENVIRONMENT, "settings", "user", "agent")}
    assert not name.startswith("REMEGRAPH_") or name in known, f"there is no setting {name}"


_PROGRAMS: Mapping[str, Callable[[Sequence[str]], None]] = {
    "claude": lambda words: hold(words[words.index("--") + 1 :]),
    "cp": _deployed,
    "docker": _docker,
    "env": lambda _: None,
    "install": _deployed,
    "kubectl": _kubectl,
    "langgraph": lambda words: pytest.fail("no server") if words != ["dev"] else None,
    "make": _make,
    "opentelemetry-instrument": hold,
    "pip": _pip,
    "pipx": partial(_passing, "--spec"),
    "psql": _deployed,
    "python": _python,
    "remegraph": _remegraph,
    "sh": _sh,
    "systemctl": _deployed,
    "systemd-run": _in_systemd,
    "uvicorn": _uvicorn,
    "uvx": partial(_passing, "--from"),
}
