"""What two memories have against each other: the same again, more of the same, or the contrary (K4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Literal

from remegraph.language.scripts import language_of
from remegraph.language.sentences import asks, sentences
from remegraph.models import Claim, ConflictKind, Memory
from remegraph.rules.claims import conflicting, read_claims, same
from remegraph.rules.duplicates import content_digest
from remegraph.rules.frames import Frame, differ, updates
from remegraph.rules.telling import NARRATOR, unreported
from remegraph.rules.wording import holds

__all__ = ["Finding", "Said", "compare", "said", "says_what_became"]

_SENTENCES = 4
"""Of each text, so many are compared: a memory is a statement, not a page."""

_FEWEST_WORDS = 2
"""So many words two statements share at least where one says all that the other says."""

_SPEAKER = re.compile(r"^[^:：\n]{1,60}[:：]\s*")
_DAYS = re.compile(r"\s*\((?:\d{4}-\d\d-\d\d(?:, )?)+\)$")
_STEP = re.compile(r"^\s*(?:\d+[.)、]|[-*•])\s*(?P<step>.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one statement is to another that was there before, and in what they differ."""

    kind: ConflictKind
    reason: str


@dataclass(frozen=True)
class Said:
    """A statement, as far as it is compared: with many others, so what is read of it is kept."""

    text: str
    who: str
    """Whom "I" names."""
    claims: tuple[Claim, ...]
    steps: tuple[str, ...] = ()
    """Of a workflow."""
    language: Literal["en", "zh"] = field(default="en")

    @classmethod
    def of(cls, text: str, who: str, claims: Sequence[Claim] | None = None, steps: Sequence[str] = ()) -> Said:
        """Return a statement.

        Args:
            text: Its words.
            who: Who made it, or whom it is about.
            claims: What it states in slots; read from the words unless given.
            steps: Its steps, if it is a workflow; read from the words unless given.
        """
        language = language_of(text)
        known = read_claims(text, who, language, (who,)) if claims is None else claims
        listed = steps or [match["step"] for match in _STEP.finditer(text)]
        return cls(text, who, tuple(known), tuple(listed), language)

    @cached_property
    def frames(self) -> tuple[Frame, ...]:
        """Its sentences, taken apart; questions state nothing."""
        spans = [span.text.strip() for span in sentences(self.text)[:_SENTENCES]]
        return tuple(Frame.of(text, self.who, self.language) for text in spans if text and not asks(text))


def said(memory: Memory) -> Said:
    """Return what a memory says, without what its writer put around the words.

    Args:
        memory: The memory.
    """
    text, who = memory.content, memory.topic.target_name if memory.topic.type == "personal" else ""
    if memory.perspective == "first-person":
        text, who = unreported(text), NARRATOR
    elif memory.extractor == "extractive" and (speaker := _SPEAKER.match(text)):
        text, who = _DAYS.sub("", text[speaker.end() :]), speaker.group().rstrip(" :：")
    return Said.of(text, who or memory.partition.user or "", memory.claims, _steps(memory))


def _steps(memory: Memory) -> list[str]:
    """Return the steps of a workflow's payload (MEK, 2.4.1), each in its words."""
    steps = memory.payload.get("steps") if isinstance(memory.payload, dict) else None
    if not isinstance(steps, list):
        return []
    told = [[step.get("name"), step.get("description")] for step in steps if isinstance(step, dict)]
    return [" ".join(part for part in each if isinstance(part, str) and part) for each in told]


def compare(new: Said, old: Said) -> Finding | None:
    """Return what a statement is to one that was there before; nothing where they have nothing to do with each other.

    A contradiction is seen in slots, where both parse, or where two sentences are the same but for what is denied, a
    number, a date, a place, or what is preferred. Of workflows, the one that has all steps of the other in their order is
    its superset; of other statements, the one that says all that the other says.

    Args:
        new: The statement.
        old: What was known.
    """
    if len(new.steps) > 1 and len(old.steps) > 1:
        return _of_workflows(new, old)
    if reason := _contradiction(new, old):
        return Finding("contradiction", reason)
    if _says_more(new, old):
        return Finding("superset", "The newer says all that the older says.")
    if _says_more(old, new):
        return Finding("subset", "The older says all that the newer says.")
    if same(new.claims, old.claims) or content_digest(new.text) == content_digest(old.text):
        return Finding("redundancy", "They say the same.")
    return None


def says_what_became(new: Said, old: Said) -> bool:
    """Return whether one person, who said otherwise before, says that it is no more so: a change of mind, no dispute.

    Args:
        new: The statement.
        old: What was known.
    """
    return new.who.casefold() == old.who.casefold() and updates(new.text, new.language)


def _contradiction(new: Said, old: Said) -> str:
    if conflicting(new.claims, old.claims):
        return "They differ in a value that only one can have."
    if new.language != old.language:
        return ""
    for mine, yours in product(new.frames, old.frames):
        if what := differ(mine, yours):
            return f"They differ in {what}."
    return ""


def _of_workflows(new: Said, old: Said) -> Finding | None:
    more, less = _has_steps_of(new, old), _has_steps_of(old, new)
    if more == less:  # the same steps, or others
        return None
    if more:
        return Finding("superset", "The newer has all steps of the older, and more.")
    return Finding("subset", "The older has all steps of the newer, and more.")


def _has_steps_of(one: Said, other: Said) -> bool:
    """Return whether one workflow holds the steps of the other, in their order."""
    left = iter(one.steps)
    return all(any(_same_step(mine, step) for mine in left) for step in other.steps)


def _same_step(mine: str, step: str) -> bool:
    return content_digest(mine) == content_digest(step) or holds(mine, step)


def _says_more(one: Said, other: Said) -> bool:
    """Return whether one statement says all that the other says, of the same thing, and more."""
    if one.language != other.language or one.who != other.who or not holds(one.text, other.text):
        return False
    return len(other.frames) == 1 and any(each.extends(other.frames[0], _FEWEST_WORDS) for each in one.frames)
