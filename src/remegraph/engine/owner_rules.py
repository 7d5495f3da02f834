"""What the owner of an agent wants remembered, and what never: the rules, and what of them code can tell by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

from remegraph.settings import ExtractionPolicy, PrivateKind, RuleKind
from remegraph.text.desensitization import LONGEST, findings

__all__ = ["ONLY", "OwnerRules"]

ONLY = "remember"
"""What the rule is called that everything breaks which the owner did not ask for."""

_BY_FORM: dict[str, frozenset[PrivateKind]] = {
    "credentials": frozenset({"key", "password"}),
    "money": frozenset({"card", "iban"}),
}
"""Kinds of which code knows some by their form."""

_TOLD_BY_CODE = frozenset({"credentials"})
"""Kinds that may be forbidden where no model is asked."""

_AT_ONCE = LONGEST // 4


@dataclass(frozen=True, slots=True)
class OwnerRules:
    """The rules of one agent, numbered from 1: what is never remembered, each by itself, then what alone is."""

    never: tuple[str, ...] = ()
    only: tuple[str, ...] = ()

    @classmethod
    def of(cls, policy: ExtractionPolicy) -> OwnerRules:
        """Return the rules that settings name; kinds by their names, in whatever case they are written."""
        return cls(*(tuple(map(_kind_or_words, each)) for each in (policy.never_remember, policy.remember)))

    def __bool__(self) -> bool:
        return bool(self.never or self.only)

    @property
    def need_a_model(self) -> tuple[str, ...]:
        """The rules that code cannot keep by itself."""
        return (*(rule for rule in self.never if rule not in _TOLD_BY_CODE), *self.only)

    @property
    def numbers(self) -> range:
        """The numbers of the rules."""
        return range(1, len(self.never) + bool(self.only) + 1)

    def name(self, number: int) -> str:
        """Return what a rule is called in reports: its kind, or its words, which are the owner's."""
        return self.never[number - 1] if number <= len(self.never) else ONLY

    def broken_by(self, text: str) -> int:
        """Return the number of a rule that a text breaks by its form alone; 0: none."""
        return next((number for number, kinds in self._by_form() if next(_places(text, kinds), None)), 0)

    def phrases(self, text: str) -> Iterator[str]:
        """Yield the words of a text that break a rule by their form alone."""
        for _, kinds in self._by_form():
            yield from (text[start:end] for start, end in _places(text, kinds))

    def _by_form(self) -> Sequence[tuple[int, frozenset[PrivateKind]]]:
        return [(number, _BY_FORM[rule]) for number, rule in enumerate(self.never, start=1) if rule in _BY_FORM]


def _kind_or_words(rule: str) -> str:
    return kind if (kind := rule.casefold()) in get_args(RuleKind) else rule


def _places(text: str, kinds: frozenset[PrivateKind]) -> Iterator[tuple[int, int]]:
    for start in range(0, len(text), _AT_ONCE):
        part = text[start : start + _AT_ONCE]
        yield from ((start + each.start, start + each.end) for each in findings(part, kinds=kinds))
