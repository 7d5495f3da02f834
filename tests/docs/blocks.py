"""The blocks of code on the pages of the documentation, as the tests walk them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DOCS", "ENGLISH", "PAGES", "ROOT", "Block", "blocks", "prose"]

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ENGLISH = ROOT / "README.md"
PAGES = (
    ENGLISH,
    ROOT / "README.zh-CN.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(ROOT.glob("integrations/*/README.md")),
    *sorted(DOCS.rglob("*.md")),
)

_FENCED = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_ELSEWHERE = re.compile(r"^(?: +(?:```|~~~)|~~~|<pre)|(?<=\n\n) {4}(?=\S)", re.MULTILINE)
_HEADING = re.compile(r"^#+ .+$", re.MULTILINE)
_PLACE = re.compile(r"<!-- (begin|end): (.+?) -->")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code.

    Attributes:
        kind: The language that it names; `output` for what the block of Python right before it prints; `unfenced` for
            one that is indented or opened otherwise.
        line: That of its first line, counted from 1.
        place: What generates it: the name of the markers around it, or nothing.
        around: The prose of its section.
    """

    page: Path
    kind: str
    text: str
    line: int
    place: str
    around: str

    def __str__(self) -> str:
        """Return where it stands, for editors."""
        return f"{self.page.relative_to(ROOT)}:{self.line} ({self.kind or 'no language'})"


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in order; those that no fence at the beginning of a line opens come first.

    Args:
        page: Its file.
    """
    text = page.read_text(encoding="utf-8")
    written = prose(page)
    unfenced = [_line(written, each.start()) for each in _ELSEWHERE.finditer(written)]
    found = [Block(page, "unfenced", "", line, "", "") for line in unfenced]
    sections, end = _HEADING.split(written), 0
    for match in _FENCED.finditer(text):
        kind, between = match["kind"], text[end : match.start()]
        if kind == "text" and found and found[-1].kind == "python" and not between.strip():
            kind = "output"
        line = _line(text, match.start("text"))
        before = "\n".join(written.split("\n")[:line])
        *_, (begins, name) = [("end", ""), *_PLACE.findall(before)]
        around = sections[len(_HEADING.findall(before))]
        found.append(Block(page, kind, match["text"], line, name if begins == "begin" else "", around))
        end = match.end()
    return found


def prose(page: Path) -> str:
    """Return a page without its blocks.

    Args:
        page: Its file.
    """
    return _FENCED.sub(_blank, page.read_text(encoding="utf-8"))


def _blank(match: re.Match[str]) -> str:
    """Lines stay where they are."""
    return "\n" * match[0].count("\n")


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
