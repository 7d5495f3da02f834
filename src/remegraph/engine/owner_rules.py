"""Rules of the agent's owner: what a block taught is checked against them before anything of it is written.

It fails closed: a statement passes only if it was found to pass. A model that is down leaves the block pending; one
whose answer cannot be used leaves it failed, to be tried again. Reports name rules, and never what broke them.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from remegraph.engine.chat.prompt_data import statement_text
from remegraph.engine.nodes import Think
from remegraph.engine.perception import message_of
from remegraph.engine.removal import unquoted
from remegraph.engine.summary_tasks import ONLY, Objection, OwnerRules, Proposal, Screened, ScreenTask, Thinker
from remegraph.errors import InvalidAnswerError
from remegraph.models import BlockSummary, ChangeSet, Memory, StoredMessage, Withholding
from remegraph.models.remnants import MARK, leaves, overlap, without
from remegraph.models.tools import error_line
from remegraph.prompts import Language
from remegraph.text.scripts import plain

if TYPE_CHECKING:
    from remegraph.engine.summary_tasks import Meter

__all__ = ["FAILED", "Draft", "Passed", "broken", "screened", "unmissed", "unreasoned"]

FAILED = "Not all of a model's answers could be used. What was wrong with them may not be said, as the owner has rules."
"""Why a topic failed, without its words: they may be among those that are never remembered."""

_SAYING = frozenset({"create", "refine"})
"""The actions that give a memory words."""

_FOLLOWING = frozenset({"supersede", "correct", "dispute"})
"""The actions on a memory that follow from another memory."""


@dataclass(frozen=True)
class Draft:
    """The lessons of a block."""

    rows: Sequence[StoredMessage]
    """All its messages."""
    messages: tuple[StoredMessage, ...]
    """The messages that are read, with the content of their attachments."""
    summary: BlockSummary
    proposals: Mapping[str, Proposal]
    """By topic key."""
    thread: str
    language: Language


@dataclass(frozen=True)
class Passed:
    """The part of it that the rules let pass."""

    summary: BlockSummary
    proposals: dict[str, Proposal]
    withheld: tuple[Withholding, ...]
    """Words of the block that must not be shown."""
    rows: Mapping[str, StoredMessage]
    kept_out: tuple[str, ...] = ()
    """For each statement left out, the rule that it broke."""
    failure: str = ""
    """Why nothing passed, if no answer said what may."""

    def within(self, changes: ChangeSet) -> ChangeSet:
        """Return a block's change with these words withheld, and without a quote of them."""
        words: dict[str, Sequence[str | None]] = {each.message_id: each.phrases or [None] for each in self.withheld}
        kept = [
            each.evolve(memory=unquoted(each.memory, hidden))
            if any(hidden := self._hidden(each.memory, words))
            else each
            for each in changes.changes
        ]
        said = {
            self.rows[name].tool_call_id: MARK
            if None in some
            else without(self.rows[name].text, [each for each in some if each])
            for name, some in words.items()
        }
        tools = (
            each.evolve(error=error_line(said[each.call_id])) if each.error and each.call_id in said else each
            for each in changes.tools
        )
        return changes.evolve(changes=tuple(kept), tools=tuple(tools), withheld=(*changes.withheld, *self.withheld))

    def _hidden(self, memory: Memory, words: Mapping[str, Sequence[str | None]]) -> list[bool]:
        return [
            item.message_id in words and overlap(item.quote, words[item.message_id], self.rows[item.message_id].text)
            for item in memory.evidence
        ]


def screened(rules: OwnerRules, draft: Draft, thinker: Thinker, meter: Meter) -> Generator[Think, Any, Passed]:
    """Return what passes, asking once for all statements, the index entry and the words of a block.

    Raises:
        ModelUnavailableError: The model did not answer.
        BudgetExceededError: The call would go over the budget.
    """
    proposals = {key: _silent(proposal) for key, proposal in draft.proposals.items()}
    said = [each.memory for proposal in proposals.values() for each in proposal.changes if each.action in _SAYING]
    texts = (*map(statement_text, said), "; ".join((draft.summary.summary, *draft.summary.entities)))
    rows = {row.message_id: row for row in draft.rows}
    try:
        found: Screened = yield Think(
            thinker, "screen", ScreenTask(rules, texts, draft.messages, draft.language), meter
        )
    except InvalidAnswerError:
        none = {
            key: replace(each, changes=(), links=(), operations=(), failure=FAILED) for key, each in proposals.items()
        }
        return Passed(_entry(draft, ()), none, _withheld(rules, rows, ()), rows, failure=FAILED)
    *numbers, entry = (rules.broken_by(text) or told for text, told in zip(texts, found.rules, strict=True))
    gone = {memory.memory_id: memory for memory, number in zip(said, numbers, strict=True) if number}
    left = [memory.content for memory in said if memory.memory_id not in gone]
    return Passed(
        summary=draft.summary if not entry or rules.name(entry) == ONLY else _entry(draft, left),
        proposals={key: _without(each, gone) for key, each in proposals.items()},
        withheld=_withheld(rules, rows, found.words),
        rows=rows,
        kept_out=tuple(rules.name(number) for number in numbers if number),
    )


def broken(rules: OwnerRules, texts: Sequence[str], language: Language, thinker: Thinker, meter: Meter) -> str:
    """Return the name of the first rule that a single statement breaks; empty if it breaks none.

    Raises:
        ModelError: The model did not answer, or not as asked, so it is unknown.
    """
    text = "; ".join(filter(None, texts))
    number = rules.broken_by(text) or thinker.screen(ScreenTask(rules, (text,), (), language), meter).rules[0]
    return rules.name(number) if number else ""


def unreasoned(objections: Sequence[Objection]) -> tuple[Objection, ...]:
    """Return objections without their reasons, which quote what they are about."""
    return tuple(replace(each, reason="") for each in objections)


def unmissed(objections: Sequence[Objection]) -> tuple[Objection, ...]:
    """Return objections other than that something is missing, as the owner may want that."""
    return tuple(each for each in objections if each.kind != "omission")


def _silent(proposal: Proposal) -> Proposal:
    """Return a proposal without its notes: they quote what was left out."""
    return replace(proposal, notes=(), failure=FAILED if proposal.failure else "")


def _without(proposal: Proposal, gone: Mapping[str, Memory]) -> Proposal:
    """Return a proposal without statements, and without what follows from them alone; a memory that they replace stays."""
    left = [each for each in proposal.changes if each.memory.memory_id not in gone]
    stay = {old for memory in gone.values() for old in memory.supersedes}
    stay |= {link.target_id for link in proposal.links if link.source_id in gone}
    stay -= {old for each in left for old in each.memory.supersedes if each.action == "create"}
    texts = {plain(memory.content) for memory in gone.values()}
    return replace(
        proposal,
        changes=tuple(each for each in left if each.action not in _FOLLOWING or each.memory.memory_id not in stay),
        links=tuple(each for each in proposal.links if not gone.keys() & {each.source_id, each.target_id}),
        operations=tuple(each for each in proposal.operations if plain(each.content) not in texts),
    )


def _entry(draft: Draft, left: Sequence[str]) -> BlockSummary:
    """Return an index entry that says no more than what passed."""
    return draft.summary.evolve(summary=" ".join(left) or draft.thread, entities=())


def _withheld(
    rules: OwnerRules, rows: Mapping[str, StoredMessage], told: Collection[tuple[str, str]]
) -> tuple[Withholding, ...]:
    """Return what is withheld of the messages of a block: what breaks a rule by its form, and what the model named."""
    found: dict[str, dict[str, None]] = {}
    for row in rows.values():
        texts = (row.text, *leaves(row.evolve(extra={})))
        for phrase in (each for text in texts for each in rules.phrases(text)):
            found.setdefault(row.message_id, {})[phrase] = None
    for name, phrase in told:
        row = rows[message_of(name)]
        torn = "\n" in phrase and not isinstance(row.content, str)  # it spans several parts
        found.setdefault(row.message_id, {})["" if torn else phrase] = None
    return tuple(_withholding(rows[name], phrases) for name, phrases in found.items() if not rows[name].hidden)


def _withholding(row: StoredMessage, phrases: Collection[str]) -> Withholding:
    """Return what is withheld of a message: all of it, where nothing is left without these words."""
    left = row.tool_calls or row.attachments or any(map(str.isalnum, without(row.text, [*phrases], mark="")))
    whole = "" in phrases or not left
    return Withholding(partition=row.partition, message_id=row.message_id, phrases=() if whole else tuple(phrases))
