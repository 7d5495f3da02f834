"""How records look on a terminal: sober, readable without colour, in narrow windows, and never obeyed."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Literal, TypeVar

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

__all__ = [
    "FIRST",
    "SHORT_ID",
    "STYLES",
    "Views",
    "counted",
    "grid",
    "lines",
    "minute",
    "more",
    "nothing",
    "plain",
    "shortened",
    "state_of",
    "table",
]

Views = tuple[RenderableType, ...]
_Record = TypeVar("_Record")

SHORT_ID = 8
"""Characters of a memory id that are shown; `trace` takes them."""

FIRST = 20
"""Rows shown of lists that may be very long."""

_LONG = 200
"""Characters shown of a tool's output, a call or a reason."""

STYLES = {
    "active": "green",
    "disputed": "yellow",
    "quarantined": "yellow",
    "review": "yellow",
    "superseded": "dim",
    "expired": "dim",
    "deleted": "dim",
    "failed": "red",
    "pending": "cyan",
}


def plain(value: str) -> str:
    """Return text that a terminal shows as it is and never obeys.

    U+FFFD stands for control characters and lone surrogates, and for what reverses the order of letters: a text that
    waits for approval would be read otherwise than it is. Marks that honest Arabic and Hebrew have stay.
    """
    return "".join("\ufffd" if _is_unsafe(char) else char for char in value)


def _is_unsafe(char: str) -> bool:
    control = unicodedata.category(char) in {"Cc", "Cs"} and char not in "\n\t"
    return control or unicodedata.bidirectional(char) in {"LRO", "RLO"}


def shortened(value: str) -> str:
    """Return text on one line, cut where it is long."""
    line = " ".join(plain(value).split())
    return line if len(line) <= _LONG else line[: _LONG - 1] + "…"


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number with what it counts."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def minute(time: datetime) -> str:
    """Return a time to the minute."""
    return f"{time:%Y-%m-%d %H:%M}"


def state_of(state: str) -> Text:
    """Return a state in its colour."""
    return Text(state, style=STYLES.get(state, ""), no_wrap=True)


def lines(texts: Iterable[str], style: str = "yellow") -> Views:
    """Show texts, each on a line of its own."""
    return tuple(Text(plain(text), style=style) for text in texts)


def nothing(words: str) -> Views:
    """Show that there is nothing to show."""
    return (Text(words, style="dim"),)


def more(total: int) -> Views:
    """Say how many rows are not shown, where there are more than the first."""
    return (Text(f"… and {total - FIRST:,} more"),) if total > FIRST else ()


def grid(rows: Iterable[Sequence[RenderableType]]) -> Table:
    """Return rows in columns, without headers."""
    shown = Table.grid(padding=(0, 2, 0, 0))
    for row in rows:
        shown.add_row(*row)
    return shown


def table(
    found: Sequence[_Record],
    headers: Sequence[str],
    row: Callable[[_Record], Sequence[object]],
    *,
    empty: str = "",
    whole: bool = False,
) -> Views:
    """Show the first records in a table, or the `whole` list; `empty` where there are none.

    A header that begins with > is right-aligned; one with ! or > is never wrapped. Cells without style are plain text.
    """
    if not found:
        return nothing(empty) if empty else ()
    shown = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for header in headers:
        justify: Literal["left", "right"] = "right" if header.startswith(">") else "left"
        shown.add_column(header.lstrip("!>"), justify=justify, no_wrap=header[:1] in {"!", ">"}, overflow="fold")
    for each in found if whole else found[:FIRST]:
        shown.add_row(*(cell if isinstance(cell, Text) else Text(plain(str(cell))) for cell in row(each)))
    return (shown, *(() if whole else more(len(found))))
