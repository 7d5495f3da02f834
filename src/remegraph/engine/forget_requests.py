"""Requests in talk: what a person asks memory to forget or to put right, from the moment it is said until it is decided.

A plain phrase flags a request immediately (`engine.forget_phrases`): its words are withheld, with those that it refers back to. In
any other wording, the thinker that digests the block finds it. Then the writer of the person's topic decides, shown what
may be meant. What it forgets goes as `engine.retraction` does it, in the change set of the block. If it makes a
memory of the words, they were not a request and are shown again, unless a model named them. What it does nothing about stays
withheld: no one has learned it, and the person asked for it to be gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from remegraph.engine.forget_phrases import (
    Request,
    asked_in,
    asking_for,
    asking_parts,
    clauses,
    holds_words_of,
    is_carried_out,
    left_by,
    meant_by,
    own_words,
)
from remegraph.engine.removal import Words, index_entry, left_of
from remegraph.engine.retraction import Forgetting, Retraction
from remegraph.engine.retrieval.search import Searcher
from remegraph.engine.routes import own, person
from remegraph.models import (
    FORGOTTEN,
    Block,
    BlockSummary,
    ChangeSet,
    Memory,
    MemoryChange,
    Message,
    Partition,
    Scope,
    Shelf,
    StoredMessage,
    Withholding,
    Work,
)
from remegraph.models.base import operation_id
from remegraph.models.changes import AT_REQUEST
from remegraph.models.messages import WithheldReason
from remegraph.models.quotes import find_quote
from remegraph.models.remnants import MARK, overlap
from remegraph.settings import Settings

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["WAITS", "Wish", "Wishes", "asked_of"]

_JUST_BEFORE = timedelta(hours=12)
"""How long ago "that" may have been said."""

_MEANT = 12
"""Memories of other topics shown to a writer because a request may mean them."""

WAITS = "A request to forget waits for a decision; its words are withheld meanwhile."
"""The reason given by the work on a block where no model decides."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A request of a block."""

    message: StoredMessage
    cause: str = ""
    """Cause under which its words are withheld; nothing for a correction."""
    words: tuple[StoredMessage, ...] = ()
    """The messages that it withholds, or shall withhold."""
    held: Mapping[str, tuple[Memory, Memory]] | None = None
    """Memories that it hid: as they are, and as they were."""
    named: frozenset[str] = frozenset()
    """Ids of those of its messages that a model named as a request, or as what is meant."""
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What it withholds of messages that also say something else, by id; all of any other message."""

    def hides(self, row: StoredMessage, *, reason: WithheldReason = "asked") -> Withholding:
        """Return what is withheld of one of its messages, while it waits or as forgotten."""
        hide = _withholding(row.partition, row, reason=reason, cause=self.cause if reason == "asked" else "")
        return hide.evolve(phrases=self.parts.get(row.message_id, ()))


class Wishes:
    """Withholds what a request may mean, shows it to the writer that decides, and settles it."""

    def __init__(self, archive: Archive, searcher: Searcher, retraction: Retraction, settings: Settings) -> None:
        self._archive = archive
        self._searcher = searcher
        self._retraction = retraction
        self._settings = settings

    # ------------------------------------------------------------------------------------------- when it is said

    def screen(self, partition: Partition, messages: Sequence[Message]) -> tuple[Withholding, ...]:
        """Return what is withheld of new messages immediately, because they ask to forget it."""
        found: list[Withholding] = []
        known: Collection[str] | None = None
        for at, message in enumerate(messages):
            asked = asked_in(message)
            if not asked or is_carried_out(messages[at:]):
                continue
            if known is None:
                known = self._archive.recorded(partition, [each.message_id for each in messages])
            if message.message_id not in known:  # messages sent again were asked, and perhaps decided, before
                found += self._asked(partition, messages, at, asked)
        return (*found, *self._answers(partition, messages))

    def hold(self, partition: Partition, screened: Sequence[Withholding], actor: str) -> None:
        """Hide what was learned only from words that are withheld now."""
        by_cause: dict[str, list[Withholding]] = {}
        for each in screened:
            if each.reason == "asked":
                by_cause.setdefault(each.cause, []).append(each)
        for cause, withheld in by_cause.items():
            if len(withheld) > 1:  # otherwise there is only the request
                self._retraction.hold(partition, withheld, cause=cause, actor=actor)

    def _asked(
        self, partition: Partition, messages: Sequence[Message], at: int, asked: Sequence[Request]
    ) -> Iterator[Withholding]:
        """Yield what goes with a request: its words, what it refers back to, and what was answered in the same batch."""
        message, cause = messages[at], _cause(partition, messages[at])
        before = self._before(partition, messages, at)
        named = meant_by(message, asked, before)
        if not named and all(each.faint for each in asked):
            return
        just_said = before[_last(before, message) :] if any(each.back for each in asked) else []
        if just_said and named.keys() <= {each.message_id for each in just_said}:
            named = {each.message_id: left_by(message, each.text) for each in just_said}
        meant = [each for each in before if each.message_id in named]
        told = [each.text for each in before if each in meant or any(holds_words_of(one, each.text) for one in asked)]
        bare = not (message.attachments or message.tool_calls or message.extra)
        parts = asking_parts(message.text, told) if bare else ()
        yield _withholding(partition, message, cause=cause).evolve(phrases=parts)
        for each in (*_answered_at_once(messages, at), *reversed(meant)):
            yield _withholding(partition, each, cause=cause).evolve(phrases=named.get(each.message_id, ()))

    def _before(self, partition: Partition, messages: Sequence[Message], at: int) -> list[Message]:
        """Return what was said in the thread of a new message not long before it."""
        message, ids = messages[at], {each.message_id for each in messages}
        stored = self._archive.messages(
            [partition], thread=message.thread, time_start=message.time - _JUST_BEFORE, shown=["asked"]
        )
        said = [*(row for row in stored if row.message_id not in ids), *messages[:at]]
        return [each for each in said if each.thread == message.thread]

    def _answers(self, partition: Partition, messages: Sequence[Message]) -> Iterator[Withholding]:
        """Yield what an agent says right after a request that is recorded already: it may repeat what is meant."""
        first = {}
        for message in reversed(messages):
            first[message.thread] = message
        if all(message.role == "user" for message in first.values()) or not self._archive.causes(partition):
            return
        for row in self._archive.asked([partition]):
            start = first.get(row.thread)
            if start is None or start.role == "user" or not asked_in(row):
                continue
            rows = self._archive.messages([partition], thread=row.thread, first_seq=row.seq + 1)
            if any(each.role == "user" for each in rows):
                continue
            cause = _cause(row.partition, row)
            for message in messages:
                if message.thread == row.thread:
                    if message.role == "user":
                        break
                    yield _withholding(partition, message, cause=cause)

    # ------------------------------------------------------------------------------------------- when it is decided

    def of(self, scope: Scope, rows: Sequence[StoredMessage]) -> tuple[Wish, ...]:
        """Return the requests of a block that withhold words already.

        The rows come with the words that wait.
        """
        mine = self._mine(scope)
        waiting = {cause for row in rows for cause in row.asked}
        words = self._archive.asked(mine) if waiting else ()
        found: list[Wish] = []
        for row in rows:
            cause = _cause(row.partition, row)
            if cause in row.asked:
                found.append(self._wish(mine, row, words))
        return tuple(found)

    def _wish(self, mine: Sequence[Partition], row: StoredMessage, waiting: Iterable[StoredMessage]) -> Wish:
        cause = _cause(row.partition, row)
        return Wish(
            row,
            cause,
            tuple(each for each in waiting if cause in each.asked),
            self._retraction.held(mine, cause),
            parts={each.message_id: each.phrases for each in self._archive.withheld_by(mine, cause) if each.phrases},
        )

    def named(
        self,
        wishes: Sequence[Wish],
        rows: Sequence[StoredMessage],
        *,
        forget: Collection[str],
        correct: Collection[str],
    ) -> tuple[Wish, ...]:
        """Return the requests of a block, with those that a model named in addition.

        `forget` are ids of messages that ask for something to be forgotten, or say what is meant, `correct` of those
        that put something right.
        """
        known = {row.message_id for wish in wishes for row in (wish.message, *wish.words)}
        told = [row for row in rows if row.message_id not in known and own_words(row)]
        words = tuple(row for row in told if row.message_id in forget)
        asked = (Wish(words[-1], _cause(words[-1].partition, words[-1]), words),) if words else ()
        found = (*wishes, *asked, *(Wish(row) for row in told if row.message_id in {*correct} - {*forget}))
        return tuple(replace(each, named=frozenset(forget) & {row.message_id for row in each.words}) for each in found)

    def meant(self, scope: Scope, wishes: Sequence[Wish]) -> tuple[Memory, ...]:
        """Return the memories that requests may mean, of all topics of the person."""
        found: dict[str, Memory] = {}
        for wish in wishes:
            for head, before in (wish.held or {}).values():
                found[head.memory_id] = before.evolve(version=head.version)
        said = [message for wish in wishes for message in (*wish.words, wish.message)]
        near = self._searcher.meant_by(self._mine(scope), said, _MEANT)
        for memory in (each for each in near if not each.firm):
            found.setdefault(memory.memory_id, memory)
        return tuple(found.values())

    def settle(
        self,
        changes: ChangeSet,
        scope: Scope,
        block: Block,
        rows: Sequence[StoredMessage],
        wishes: Sequence[Wish],
        *,
        decided: bool,
    ) -> ChangeSet:
        """Return a block's change with what it deletes forgotten, and the requests of the block settled.

        The rows come with the words that wait; `decided` says whether a writer was asked about the requests.
        """
        deleted = {each.memory.memory_id: each for each in changes.changes if each.action == "delete"}
        if not deleted and not wishes:
            return changes
        held = {name: pair for wish in wishes for name, pair in (wish.held or {}).items()}
        roots = self._roots(deleted, held)
        gone = self._retraction.forgetting(
            roots, scope, [row for wish in wishes for row in wish.words], _asking(changes.changes, roots, rows)
        )
        others = _others(changes.changes, gone)
        if not decided:  # what other topics made of the words waits with them
            others = [each for each in others if not _cites([each], wishes)]
        left = [wish for wish in wishes if not decided or not _answered(wish, wishes, deleted, others)]
        here = {row.message_id for row in rows}  # unread words of an earlier block also stay withheld
        hidden = [(wish, row) for wish in left for row in wish.words if row.message_id in here or not wish.held]
        if decided:
            kept = [(row, hide) for wish, row in hidden if (hide := _hidden(wish, row, others))]
        else:
            kept = [(row, wish.hides(row)) for wish, row in hidden]
        released = [(wish, row) for wish in wishes for row in wish.words if decided and wish.cause in row.asked]
        made = {each.memory.memory_id for each in changes.changes} - {each.memory.memory_id for each in others}
        made -= deleted.keys()
        return changes.evolve(
            changes=(
                *(_with_held(others, held, gone) if decided else others),
                *_gone(gone, held, others, asked=bool(wishes) and decided),
            ),
            links=tuple(link for link in changes.links if not made & {link.source_id, link.target_id}),
            summaries=self._summaries(changes, block, rows, gone, kept),
            work=changes.work if decided or not wishes else tuple(map(_waiting, changes.work)),
            withheld=(*gone.withheld, *(hide for row, hide in kept if hide.cause not in row.asked)),
            shown=tuple(_withholding(row.partition, row, cause=wish.cause) for wish, row in released),
        )

    def waiting(self, scope: Scope) -> tuple[Wish, ...]:
        """Return the undecided requests to forget."""
        mine = self._mine(scope)
        rows = self._archive.asked(mine)
        return tuple(self._wish(mine, row, rows) for row in rows if _cause(row.partition, row) in row.asked)

    def _roots(self, deleted: Mapping[str, MemoryChange], held: Mapping[str, tuple[Memory, Memory]]) -> list[Memory]:
        """Return the memories that are deleted as they were, with the version that the writer saw."""
        homes = list(dict.fromkeys(each.memory.partition for each in deleted.values()))
        found = {each.memory_id: each for each in self._archive.memories(homes, ids=list(deleted))} if deleted else {}
        roots = {name: held[name][1] if name in held else found[name] for name in deleted if name in {*held, *found}}
        return [root.evolve(version=deleted[name].expected_version) for name, root in roots.items()]

    def _summaries(
        self,
        changes: ChangeSet,
        block: Block,
        rows: Sequence[StoredMessage],
        gone: Forgetting,
        kept: Sequence[tuple[StoredMessage, Withholding]],
    ) -> tuple[BlockSummary, ...]:
        """Return the index entries; that of the block is rebuilt where some of its words go."""
        mine = (block.partition, block.block_id)
        entries = {(each.partition, each.block_id): each for each in (*gone.summaries, *changes.summaries)}
        hidden = {each.message_id for each in gone.withheld} | {row.message_id for row, _ in kept}
        if hidden.isdisjoint(row.message_id for row in rows):
            return tuple(entries.values())
        old = entries.get(mine) or next(iter(self._archive.summaries([block.partition], ids=[block.block_id])), None)
        if old is not None:
            unheld = [
                row.evolve(withheld=tuple(note for note in row.withheld if note.reason != "asked")) for row in rows
            ]
            silent = Words()
            for row, hide in kept:
                silent.add(row, (*hide.phrases, MARK) if hide.phrases else (row.text,))
            entries[mine] = index_entry(block, old, left_of(gone.rest(unheld), silent))
        return tuple(entries.values())

    def _mine(self, scope: Scope) -> list[Partition]:
        return own(self._archive.visible(scope), scope, self._settings.trust_boundary)


def _waiting(work: Work) -> Work:
    """Return work on a block: that on all of it waits for the decision on a request in it."""
    return work.evolve(state="review", reason=WAITS) if not work.topic and work.state == "done" else work


def _cause(partition: Partition, message: Message) -> str:
    """Return what withholds the words of a request."""
    return operation_id("asked", partition.to_json(), message.message_id)


def _hidden(wish: Wish, row: StoredMessage, others: Sequence[MemoryChange]) -> Withholding | None:
    """Return what of a message stays withheld for a request for which nothing was forgotten.

    That is what a model named, if anything; of words from which something was learned, everything else.
    """
    if wish.named and row.message_id not in wish.named:
        return None
    told = [item.quote for each in others for item in each.memory.evidence if item.message_id == row.message_id]
    hide = wish.hides(row, reason="forgotten")
    if not told:
        return hide
    left = [
        part
        for words in hide.phrases or (row.text,)
        for part in clauses(words)
        if not any(find_quote(q, part) or find_quote(part, q) for q in told)
    ]
    return hide.evolve(phrases=tuple(left)) if left else None


def _answered_at_once(messages: Sequence[Message], at: int) -> Iterator[Message]:
    """Yield what was answered to a message among those that came with it."""
    for later in messages[at + 1 :]:
        if later.thread == messages[at].thread:
            if later.role == "user":
                return
            yield later


def _last(before: Sequence[Message], message: Message) -> int:
    """Return the place of what the speaker of a message said last before it."""
    own = [at for at, each in enumerate(before) if each.role == "user" and each.name == message.name]
    return own[-1] if own else 0


def _withholding(
    partition: Partition, message: Message, *, cause: str = "", reason: WithheldReason = "asked"
) -> Withholding:
    return Withholding(partition=partition, message_id=message.message_id, reason=reason, cause=cause)


def _asking(
    changes: Sequence[MemoryChange], roots: Sequence[Memory], rows: Sequence[StoredMessage]
) -> Iterator[tuple[StoredMessage, list[str]]]:
    """Yield the sentences that ask for what is deleted, by message: they name it. Of a longer one, only the clauses."""
    known = {root.memory_id: root.evidence for root in roots}
    asked = [
        item
        for each in changes
        if each.action == "delete"
        for item in each.memory.evidence
        if item not in known.get(each.memory.memory_id, ())
    ]
    told = [item for each in changes if each.action != "delete" for item in each.memory.evidence]
    for row in rows:
        quotes = [item.quote for item in asked if item.message_id == row.message_id]
        if quotes:
            others = [item.quote for item in told if item.message_id == row.message_id]
            yield row, asking_for(row.text, quotes, others)


def _others(changes: Sequence[MemoryChange], gone: Forgetting) -> list[MemoryChange]:
    """Return what a block changes besides what it forgets: each memory once, and nothing that repeats it."""
    taken = {each.memory.memory_id for each in gone.changes if each.action == "delete"}
    found: dict[str, MemoryChange] = {}
    for each in changes:
        said_again = each.expected_version == 0 and gone.repeated_by(each.memory)
        if each.action != "delete" and each.memory.memory_id not in taken and not said_again:
            found.setdefault(each.memory.memory_id, each.evolve(memory=gone.without(each.memory)))
    return list(found.values())


def _answered(
    wish: Wish, wishes: Sequence[Wish], deleted: Mapping[str, MemoryChange], others: Sequence[MemoryChange]
) -> bool:
    """Return whether something was forgotten for a request, or memories were made of its words, so that it was not one.

    If a model has named it, it is a request: there may be nothing to forget but these words.
    """
    carried = bool(deleted) and (len(wishes) == 1 or _cites(deleted.values(), [wish]))
    made = _cites((each for each in others if each.action != "withhold"), [wish])
    return carried or (made and wish.message.message_id not in wish.named)


def _cites(changes: Iterable[MemoryChange], wishes: Sequence[Wish]) -> bool:
    """Return whether one of these changes rests on words of these requests."""
    words = [(row, wish.parts.get(row.message_id) or [None]) for wish in wishes for row in wish.words]
    return any(
        item.message_id == row.message_id and overlap(item.quote, hidden, row.text)
        for each in changes
        for item in each.memory.evidence
        if item.quote != MARK
        for row, hidden in words
    )


def _with_held(
    others: Sequence[MemoryChange], held: Mapping[str, tuple[Memory, Memory]], gone: Forgetting
) -> Iterator[MemoryChange]:
    """Yield the other changes of a block, and restore memories that were hidden for a request but were not meant."""
    away = {each.memory.memory_id for each in gone.changes if each.action == "delete"}
    for each in others:
        if each.memory.memory_id not in held:
            yield each
        elif each.memory.live:  # otherwise it was replaced, and stays hidden
            yield each.evolve(action="restore")
    away |= {each.memory.memory_id for each in others}
    for head, before in held.values():
        if head.memory_id not in away and head.status == FORGOTTEN:
            memory = before.evolve(version=head.version + 1)
            yield MemoryChange(memory=memory, expected_version=head.version, action="restore")


def _gone(
    gone: Forgetting, held: Mapping[str, tuple[Memory, Memory]], others: Sequence[MemoryChange], *, asked: bool
) -> Iterator[MemoryChange]:
    """Yield what is forgotten and still visible; no conversation changes what is firm."""
    changed = {each.memory.memory_id for each in others}
    for each in gone.changes:
        name = each.memory.memory_id
        if each.action != "delete" and name not in changed and name not in held:
            yield each
        elif each.action == "delete" and not each.memory.firm:
            version = held[name][0].version if name in held else each.expected_version
            memory = each.memory.evolve(version=version + 1)
            yield each.evolve(memory=memory, expected_version=version, reason=AT_REQUEST if asked else each.reason)


def asked_of(wishes: Sequence[Wish], scope: Scope, allowed: Sequence[Shelf]) -> Shelf:
    """Return the topic whose writer decides the requests of a block: that of the first person to ask.

    There is at least one request.
    """
    who = person(wishes[0].message, scope)
    key = f"personal:{who}".casefold()
    return next((shelf for shelf in allowed if shelf.topic.key.casefold() == key), allowed[0])
