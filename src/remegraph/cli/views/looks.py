"""What all views share: styles, tables, and words that a terminal shows and never obeys."""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import Literal

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from remegraph.models import Memory

__all__ = [
    "FIRST",
    "SHORT_ID",
    "STYLES",
    "WORDS",
    "Views",
    "add_row",
    "counted",
    "day_of",
    "minute",
    "more",
    "nothing",
    "plain",
    "shortened",
    "state_of",
    "table_of",
    "text",
]

Views = tuple[RenderableType, ...]

SHORT_ID = 8
"""Characters of a memory id that are shown; `trace` takes them."""

FIRST = 20
"""Rows shown of lists that may be very long."""

_LONG = 200
"""Characters shown of a tool's output, a call or a reason."""

WORDS = "bold reverse"
"""Style of the exact words that bear a memory out; brackets mark them where there is no style."""

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

    U+FFFD stands for control characters and lone surrogates, and for what turns the order of letters round: a text that
    waits for approval would be read otherwise than it is. Marks that honest Arabic and Hebrew have stay.
    """
    return "".join("\ufffd" if _is_unsafe(char) else char for char in value)


def _is_unsafe(char: str) -> bool:
    control = unicodedata.category(char) in {"Cc", "Cs"} and char not in "\n\t"
    return control or unicodedata.bidirectional(char) in {"LRO", "RLO"}


def text(value: str) -> RenderableType:
    """Return text to be shown as it is."""
    return Text(plain(value))


def table_of(*headers: str) -> Table:
    """Return a table; a header that begins with > is right-aligned, one with ! or > is never wrapped."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for header in headers:
        fixed = header.startswith(("!", ">"))
        justify: Literal["left", "right"] = "right" if header.startswith(">") else "left"
        table.add_column(header.lstrip("!>"), justify=justify, no_wrap=fixed, overflow="fold")
    return table


def add_row(table: Table, *cells: object) -> None:
    """Add a row; what is not styled yet is shown as it is."""
    table.add_row(*(cell if isinstance(cell, Text) else Text(plain(str(cell))) for cell in cells))


def state_of(state: str) -> Text:
    """Return a state in its colour."""
    return Text(state, style=STYLES.get(state, ""), no_wrap=True)


def day_of(memory: Memory) -> Text:
    """Return the day on which a memory was said."""
    return Text(f"{memory.said_at:%Y-%m-%d}", style="dim", no_wrap=True)


def minute(time: datetime) -> str:
    """Return a time to the minute."""
    return f"{time:%Y-%m-%d %H:%M}"


def shortened(value: str) -> str:
    """Return text on one line, cut where it is long."""
    line = " ".join(plain(value).split())
    return line if len(line) <= _LONG else line[: _LONG - 1] + "…"


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number with what it counts."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def nothing(words: str) -> Views:
    """Show that there is nothing to show."""
    return (Text(words, style="dim"),)


def more(total: int) -> Views:
    """Say how many rows are not shown, where there are more than the first.

    Args:
        total: How many there are.
    """
    return (Text(f"… and {total - FIRST:,} more"),) if total > FIRST else ()
