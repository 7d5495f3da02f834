"""Whether what was said calls for memory: the past, a decision, what is one's own, a known name, the fifth turn (G2).

Words decide, in English and Chinese (data/triggers.toml); no model does. What stands in quotes or is a title is not said.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache

from remegraph.language.entities import entities
from remegraph.models import Trigger, TriggerKind
from remegraph.rules.tables import table

__all__ = ["EVERY", "triggers"]

EVERY = 5
"""Turns after which memory is asked whatever is said."""

_BY_WORDS: Sequence[TriggerKind] = ("past", "decision", "own")

_QUOTED = re.compile(
    r"\"[^\"\n]*\"|“[^”\n]*”|「[^」\n]*」|『[^』\n]*』|《[^》\n]*》|`[^`\n]*`|(?<!\w)'[^'\n]*'(?!\w)|(?<!\w)‘[^’\n]*’(?!\w)"
)


def triggers(text: str, *, turn: int, known: Collection[str] = (), shown: str = "") -> tuple[Trigger, ...]:
    """Return why memory should be asked for what was said; nothing where it need not.

    Args:
        text: What a person said.
        turn: How many messages of the person there were, this one included.
        known: Names that memory knows something about.
        shown: What the agent has before it: a name that stands there needs no looking up.
    """
    return tuple(_found(text, turn, known, shown.casefold()))


def _found(text: str, turn: int, known: Collection[str], shown: str) -> Iterator[Trigger]:
    said = _QUOTED.sub(" ", text).replace("’", "'").strip()
    for kind in _BY_WORDS:
        if found := _pattern(kind).search(said):
            yield Trigger(kind=kind, words=found[0].strip(" ,，。、"))
    here = text.casefold()
    unresolved = {name for name in map(str.casefold, known) if name.strip() and name in here and name not in shown}
    if unresolved and (
        named := [each.text for each in entities(text, unresolved) if each.text.casefold() in unresolved]
    ):
        yield Trigger(kind="entity", words=", ".join(dict.fromkeys(named)))
    if turn and turn % EVERY == 0:
        yield Trigger(kind="turn", words=str(turn))


@cache
def _pattern(kind: str) -> re.Pattern[str]:
    told = table("triggers")[kind]
    return re.compile("|".join(f"(?:{each})" for each in (*told["en"], *told["zh"])), re.IGNORECASE | re.MULTILINE)
