"""Every block of code in the documentation is carried out, or held to what it stands for."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from langchain_core.messages import AIMessage, ToolCall

from conftest import Figure as Note
from evals._figures import Figure, Sense
from remegraph import MemoryKit, Message, Scope, Settings
from remegraph.models import Signature
from remegraph.packs.format import Document, Manifest
from remegraph.servers.watch import PROBES
from remegraph.testing import ModelCall, ScriptedChatModel
from tests.docs import commands
from tests.docs.blocks import DOCS, ENGLISH, PAGES, ROOT, Block, blocks, prose

_PROVED = {
    "README.md": pytest.mark.requirement("C1", "C7", "C8"),
    "docs/agents.md": pytest.mark.requirement("B10", "C4", "C5", "C6", "C7", "C8"),
    "docs/conflicts.md": pytest.mark.requirement("G7", "K4"),
    "docs/erasure.md": pytest.mark.slow,
    "docs/governance.md": pytest.mark.requirement("G6", "X4", "B14"),
    "docs/packs.md": pytest.mark.requirement("K9"),
    "docs/sharing.md": pytest.mark.requirement("B10", "B11", "B12", "K1", "K6", "K7", "K8"),
    "docs/store.md": pytest.mark.requirement("C5"),
    "docs/models.md": pytest.mark.slow,
    "docs/operations.md": pytest.mark.slow,
    "docs/tutorial.md": pytest.mark.slow,
}
"""What the pages prove, or that they take their time."""

_FILES = {
    "chat.json": [{"role": "user", "name": "ann", "content": "I live in Lisbon.", "time": "2026-03-02T09:05:00Z"}],
    "export.json": {"results": [{"id": "8f1c", "memory": "Prefers morning meetings", "user_id": "arjun"}]},
    "items.jsonl": {"namespace": ["memories", "ann"], "key": "k1", "value": {"content": {"content": "Ann likes tea."}}},
}
"""What a reader has at hand."""


def _named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _calling(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name=name, args=args, id="1")])


def _answer(call: ModelCall) -> AIMessage:
    """The provider's model: answers from what it is shown, saves what it is asked to, looks for what it does not see."""
    last = call.messages[-1].text
    for asked, known, answer in (("cook", "hate mushrooms", "No mushrooms."), ("colour", "scarlet", "It is scarlet.")):
        if asked in last:
            return AIMessage(answer if known in call.text else "I do not know.")
    if "Remember" in last:
        return _calling("save_memory", key="home", content="Ann lives in Lisbon.")
    if last.endswith("?"):
        return _calling("search_memory", query="Where does Ann live?")
    return AIMessage(last)


class Reader:
    """Somebody who does what a page says, in order, in a folder and a home that are empty but for a few files."""

    def __init__(self, captured: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.names: dict[str, Any] = {"model": ScriptedChatModel(script={"": _answer})}
        self.printed = ""
        self._captured = captured
        self._patch = patch

    def python(self, block: Block) -> None:
        """Run it; a scripted model is the provider's. What needs an integration, its own tests run."""
        if _named(block.page).startswith("integrations/"):
            tests = (block.page.parent / "tests").glob("test_*.py")
            assert any("exec(compile(" in test.read_text(encoding="utf-8") for test in tests)
            return
        code = re.sub(r'create_agent\("[^"]+"', "create_agent(model", "\n" * (block.line - 1) + block.text)
        exec(compile(code, str(block.page), "exec", dont_inherit=True), self.names)
        self.printed = self._captured.readouterr().out

    def output(self, block: Block) -> None:
        """What was printed is what is shown; `...` stands for what differs each time."""
        right = OutputChecker().check_output(block.text, self.printed, ELLIPSIS | NORMALIZE_WHITESPACE)
        assert right, f"{block}: what is printed is\n{self.printed}"
        self.printed = ""

    def console(self, block: Block) -> None:
        """Each command can be given, and prints what is shown where it is carried out."""
        for line, shown in commands.given(block.text):
            for words in line:
                commands.hold(words)
                for name, value in commands.exported(words):
                    self._patch.setenv(name, value)
                if (printed := commands.run(words)) is not None and shown:
                    assert OutputChecker().check_output(shown, printed, ELLIPSIS | NORMALIZE_WHITESPACE), printed

    def close(self) -> None:
        """Leave nothing open that a page leaves open."""
        for kit in self.names.values():
            if isinstance(kit, MemoryKit):
                kit.close()


def _json(_: Reader, block: Block) -> None:
    """What reads such a document reads this one; a digest of no file stands for all digests."""
    found = json.loads(block.text.replace("…64 hex digits…", "0" * 64).replace("…32 hex digits…", "0" * 32))
    readers: Mapping[str, Callable[[Any], object]] = {
        "mcpServers": lambda servers: commands.hold([servers["memory"]["command"], *servers["memory"]["args"]]),
        "format": lambda _: Manifest.model_validate(found),
        "algorithm": lambda _: Signature.model_validate(found | {"value": "A" * 86 + "=="}),
        "包标识": lambda _: Document.model_validate(found),
        "type": lambda _: Message(role="user", content=[found], time=datetime.now(UTC)),
    }
    (first, value), *_ = found.items()
    readers.get(first, lambda _: [Scope.model_validate(each) for each in found.values()])(value)


def _toml(_: Reader, block: Block) -> None:
    """It is a settings file."""
    Settings.model_validate(tomllib.loads(block.text))


def _yaml(_: Reader, block: Block) -> None:
    """What it has an orchestrator run or ask is there."""
    for document in yaml.safe_load_all(block.text):
        for probe in _probes(document):
            if "exec" in probe:
                commands.hold(probe["exec"]["command"])
            else:
                assert probe["httpGet"]["path"] in PROBES


def _probes(found: Any) -> Iterator[Mapping[str, Any]]:
    """Yield what any part of a manifest has for a probe."""
    parts = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    if isinstance(found, dict) and {"exec", "httpGet"} & found.keys():
        yield found
    for part in parts:
        yield from _probes(part)


def _text(_: Reader, block: Block) -> None:
    """What is no output was generated, between markers, or printed by an eval; verdicts follow from the figures."""
    assert block.place or "`python -m evals " in block.around, "who wrote this? Put it after what prints it"
    for value, sense, bar, verdict in re.findall(
        rf" {{2,}}(-?[\d,.]+)\b.* ({'|'.join(get_args(Sense))}) (-?[\d,.]+) +(PASS|FAIL)", block.text
    ):
        number, least = (float(each.replace(",", "")) for each in (value, bar))
        assert Figure("", number, least, sense).verdict == verdict, (value, sense, bar)


def _drawing(_: Reader, block: Block) -> None:
    """Without a language there are only drawings."""
    assert set("│─►") <= set(block.text), "name its language"


def _mermaid(_: Reader, block: Block) -> None:
    """Drawings of graphs are generated; `tests/engine/test_drawings.py` compares them with the graphs."""
    assert block.place


def _markdown(_: Reader, block: Block) -> None:
    """The form of decisions is what they have."""
    headings = re.findall(r"^## .+", block.text, re.MULTILINE)
    for page in sorted((DOCS / "decisions").glob("[0-9]*.md")):
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"# {page.name[:4]}: "), page.name
        assert re.findall(r"^## .+", text, re.MULTILINE)[: len(headings)] == headings, page.name
        assert re.search(r"\n\nDate: \d{4}-\d\d-\d\d\. Status: (in force|replaced by \[\d{4}\])", text), page.name


_HELD: Mapping[str, Callable[[Reader, Block], None]] = {
    "python": Reader.python,
    "output": Reader.output,
    "console": Reader.console,
    "json": _json,
    "text": _text,
    "": _drawing,
    "mermaid": _mermaid,
    "markdown": _markdown,
    "toml": _toml,
    "yaml": _yaml,
}


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Reader]:
    """In a folder of its own, which is also where `~` leads."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, content in _FILES.items():
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    reader = Reader(capsys, monkeypatch)
    yield reader
    reader.close()


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=_PROVED.get(_named(page), ()), id=_named(page)) for page in PAGES if blocks(page)],
)
def test_every_block_of_a_page_is_carried_out_or_held(page: Path, reader: Reader) -> None:
    """A reader copies it; it must work at the first try, and show what it really prints."""
    found = blocks(page)
    if page.name == "README.zh-CN.md":
        assert [block.text for block in found] == [block.text for block in blocks(ENGLISH)]
        return
    for block in found:
        assert not reader.printed or block.kind == "output", f"{block}: what the block before prints is not shown"
        try:
            _HELD[block.kind](reader, block)
        except Exception as error:
            error.add_note(f"in {block}")
            raise
    assert not reader.printed, f"{found[-1]}: what it prints is not shown"


def test_no_block_is_left_out(figure: Note) -> None:
    """A block in a language that the walk above does not know would be one that nobody ever ran."""
    every = [block for page in PAGES for block in blocks(page)]
    held = Counter(block.kind or "drawing" for block in every if block.kind in _HELD)
    kinds = ", ".join(f"{count} {kind}" for kind, count in held.most_common())
    figure("blocks of code in the documentation", f"{held.total()} of {len(every)} carried out or held ({kinds})")
    assert [str(block) for block in every if block.kind not in _HELD] == []


def test_a_block_is_seen_however_it_is_written(tmp_path: Path) -> None:
    """One that the walk passes by would count neither among those that are held nor among all."""
    page = tmp_path / "page.md"
    page.write_text("A\n\n    indented\n\n~~~\ntildes\n~~~\n\n- b\n  ```sh\n  in a list\n  ```\n\n```sql\n1\n```\n")
    assert {block.kind for block in blocks(page)} == {"unfenced", "sql"}
    assert {block.line for block in blocks(page)} >= {3, 5, 10, 15}


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_every_command_that_a_sentence_names_exists(page: Path) -> None:
    """Who types what stands there must not be told that there is no such thing."""
    for line in re.findall(r"`((?:remegraph|make|python -m evals) [^`\\\n]+)`", prose(page)):
        commands.named(line.replace("\\|", "|").split())


@pytest.mark.parametrize("name", ["README.md", "docs/agents.md", "docs/index.md"])
def test_memory_is_put_into_an_agent_in_ten_lines_at_most(name: str) -> None:
    """More than that, and people write their own."""
    for block in blocks(ROOT / name):
        if block.kind == "python" and ("add_node" in block.text or "create_agent(" in block.text):
            assert len([line for line in block.text.splitlines() if line.strip()]) <= 10, block
