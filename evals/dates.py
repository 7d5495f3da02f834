"""Whether a time that a message speaks of is taken for the right days: shares of right and wrong over labelled sentences.

    python -m evals dates
    python -m evals dates --data FILE --misses

A line of the data names an expression of a text, when the text was said, and the first and last day that are meant; no
days where it must be left alone: what recurs, a length of time, a time without a day, words that mean another day or
none. *Right* is what gets these days and no other, or is left alone; *wrong* gets other days; the rest was missed. A
wrong date is a lie, a missed one can be mended.

Of the lines of dates.jsonl, 159 (a) were labelled twice, blind, and 591 written by who wrote the rules: b and c before
they were changed for them, d to f later, to see whether they hold for what they were not made for. So the figures of all
lines flatter; docs/decisions/0001 says what they were before.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

from evals._figures import Figure, finish
from remegraph.text.times import resolve

__all__ = ["DATA", "Expression", "expressions", "figures", "main"]

DATA = Path(__file__).parent / "dates.jsonl"

_RIGHT, _WRONG = 0.9, 0.03


class Expression(NamedTuple):
    """Words for a time, and the days that they mean."""

    language: str
    said_at: datetime
    text: str
    words: str
    days: tuple[str, str] | None
    """First and last; None where they must be left alone."""

    @property
    def found(self) -> list[tuple[str, str]]:
        """First and last day of each time that is found in the words."""
        start = self.text.find(self.words)
        within = (
            each
            for each in resolve(self.text, self.said_at)
            if each.start < start + len(self.words) and start < each.end
        )
        return [(f"{each.begins:%Y-%m-%d}", f"{each.ends - timedelta(microseconds=1):%Y-%m-%d}") for each in within]

    @property
    def verdict(self) -> Literal["right", "wrong", "missed"]:
        """What becomes of it."""
        found = self.found
        if not found:
            return "missed" if self.days else "right"
        return "right" if all(each == self.days for each in found) else "wrong"


def expressions(path: Path = DATA) -> Iterator[Expression]:
    """Yield the labelled expressions of a file of JSON lines.

    Args:
        path: The file.
    """
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        days = (row["start"], row["end"]) if row["start"] else None
        yield Expression(row["lang"], datetime.fromisoformat(row["said_at"]), row["text"], row["expression"], days)


def figures(data: Sequence[Expression]) -> Iterator[Figure]:
    """Yield for each language which share is right, and which wrong.

    Args:
        data: The expressions.
    """
    for language in sorted({each.language for each in data}):
        verdicts = Counter(each.verdict for each in data if each.language == language)
        total = verdicts.total()
        note = f"{verdicts['right']} of {total}"
        yield Figure(f"{language}: right", verdicts["right"] / total, _RIGHT, "at least", note=note)
        yield Figure(f"{language}: wrong", verdicts["wrong"] / total, _WRONG, note=str(verdicts["wrong"]))


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m evals dates", description="Which days a time means.")
    parser.add_argument("--data", type=Path, default=DATA, help="A file of labelled expressions.")
    parser.add_argument("--misses", action="store_true", help="Show what is wrong or missed.")
    options = parser.parse_args(argv)
    data = list(expressions(options.data))
    for each in data if options.misses else ():
        if each.verdict != "right":
            print(
                f"{each.verdict}: {each.words!r} = {each.found}, not {each.days}: {each.said_at:%a %F %R} {each.text}"
            )
    finish([*figures(data)])


if __name__ == "__main__":
    main()
