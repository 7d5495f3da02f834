"""Removal: what is removed together: memories, the words they cite, and everything that repeats them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from remegraph.engine.extractive import ExtractiveThinker
from remegraph.engine.forget_phrases import clauses, revealing_sentences
from remegraph.engine.routes import at_home
from remegraph.engine.summary_tasks import DigestTask, Meter
from remegraph.ledger.memories import words_digest
from remegraph.ledger.permissions import is_shared
from remegraph.models import (
    FORGOTTEN,
    Block,
    BlockSummary,
    Memory,
    Message,
    Partition,
    Passage,
    Scope,
    Status,
    StoredMessage,
    Topic,
    WithheldReason,
    Withholding,
)
from remegraph.models.quotes import find_quote
from remegraph.models.remnants import MARK, leaves, overlap, unsaid, veiled, without
from remegraph.models.standing import TOMBSTONES
from remegraph.settings import Settings
from remegraph.text.telltales import Telltales

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = [
    "UNSAID",
    "Removal",
    "Removals",
    "Words",
    "index_entry",
    "left_of",
    "phrases_of",
    "telltales_of",
    "unquoted",
    "whole",
]

_FEW = 2_000
"""Messages that are all read: a value may be written in ways that no index of words leads to."""

_ANSWER = 24
"""Messages of an answer that are looked at for what it repeats."""

_HELD: tuple[Status, ...] = ("proposed", "archived", "quarantined", "superseded")
"""The statuses of memories that full text does not find, and that are shown on request."""

UNSAID: tuple[WithheldReason, ...] = ("asked", "edited", "rewound", "removed")
"""Reasons for which words are withheld that may come back: what is forgotten goes from these messages, too."""

_Place = tuple[Partition, str]


@dataclass
class Words:
    """Words of messages that go, by message."""

    messages: dict[_Place, StoredMessage] = field(default_factory=dict)
    phrases: dict[_Place, dict[str, None]] = field(default_factory=dict)
    entire: bool = False
    """Whether the messages go with all that is in them: calls and attachments, too."""

    def add(self, message: StoredMessage, phrases: Iterable[str]) -> None:
        """Add words of a message to those that go."""
        found = dict.fromkeys(filter(None, phrases))
        if found:
            place = (message.partition, message.message_id)
            self.messages[place] = message
            self.phrases.setdefault(place, {}).update(found)

    def whole(self, place: _Place) -> bool:
        """Return whether nothing is left of a message without them."""
        if self.entire:
            return True
        message = self.messages[place]
        if message.tool_calls or message.attachments:
            return False
        left = without(message.text, list(self.phrases[place]), mark="")
        return not any(character.isalnum() for character in left)

    def of(self, place: _Place) -> list[str | None]:
        """Return what goes of a message; None: all of it."""
        if place not in self.messages:
            return []
        return [None] if self.whole(place) else list(self.phrases[place])

    def hides(self, memory: Memory) -> list[bool]:
        """Return, for each piece of evidence of a memory, whether its words go."""
        hidden: list[bool] = []
        for item in memory.evidence:
            held = [place for place in self.messages if place[1] == item.message_id]
            hidden.append(any(overlap(item.quote, self.of(place), self.messages[place].text) for place in held))
        return hidden

    def withheld(self, reason: WithheldReason) -> tuple[Withholding, ...]:
        """Return what is withheld of the messages."""
        return tuple(
            Withholding(
                partition=place[0],
                message_id=place[1],
                phrases=tuple(each for each in self.of(place) if each is not None),
                reason=reason,
            )
            for place in self.messages
        )


@dataclass(frozen=True)
class _Asked:
    """What shall be forgotten, and how it is recognised elsewhere."""

    root: Memory
    mine: tuple[Partition, ...]
    telltales: tuple[Telltales, ...]
    leave: frozenset[str]
    at_home: bool
    """Whether what all agents of the user own may go, too."""

    @property
    def sought(self) -> list[str]:
        """Tokens of our index; everything that says it holds at least one of them."""
        return sorted({token for each in self.telltales for token in each.sought})

    def may_take(self, memory: Memory) -> bool:
        """Return whether another memory may go along: one agent is not enough to remove what several agreed on."""
        agreed = is_shared(memory.partition) and memory.partition != self.root.partition
        return memory.memory_id not in self.leave and (self.at_home or not agreed)

    def repeated_by(self, memory: Memory, *, abstracted: bool) -> bool:
        """Return whether another memory says the same; what was abstracted from several, only by a value of it."""
        telltales = [each for each in self.telltales if each.values or (each.everywhere and not abstracted)]
        texts = (memory.content, memory.when_to_use, memory.summary)
        return any(revealing_sentences(text, telltales) for text in texts)


@dataclass(frozen=True)
class Removal:
    """Everything that one removal takes."""

    root: Memory | None
    along: tuple[Memory, ...]
    kept: tuple[Memory, ...]
    """Next versions of memories that stay, without the quotes that go."""
    words: Words
    summaries: tuple[BlockSummary, ...]
    telltales: tuple[Telltales, ...] = ()
    reason: WithheldReason = "forgotten"

    def stated_in(self, text: str) -> bool:
        """Return whether a text that was kept beside the statement says it."""
        return bool(revealing_sentences(text, self.telltales, beside=True))

    @property
    def withheld(self) -> tuple[Withholding, ...]:
        """Withheld parts of the messages."""
        return self.words.withheld(self.reason)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The same, as a preview shows it."""
        return tuple(
            Passage(
                partition=message.partition,
                message_id=message.message_id,
                thread=message.thread,
                time=message.time,
                speaker=message.speaker,
                words=tuple(self.words.phrases[place]),
                whole=self.words.whole(place),
            )
            for place, message in self.words.messages.items()
        )


class Removals:
    """Works out what goes together; it changes nothing."""

    def __init__(self, archive: Archive, settings: Settings) -> None:
        self._archive = archive
        self._settings = settings

    def of_memory(
        self,
        root: Memory,
        mine: Sequence[Partition],
        scope: Scope,
        leave: frozenset[str],
        beside: Sequence[StoredMessage] = (),
    ) -> Removal:
        """Return what goes with a memory.

        `leave` are ids of other memories, and of messages, that stay as they are; in messages `beside`, less
        reveals it.
        """
        versions = (*self._archive.versions(mine, root.memory_id), root)
        cited = [item for version in versions for item in version.evidence]
        ids = [item.message_id for item in cited]
        said = self._archive.messages(mine, ids=ids, shown=UNSAID) if cited else ()
        names = [scope.user or "", scope.agent or "", *(message.speaker for message in said)]
        telltales = telltales_of(root, names, versions)
        asked = _Asked(root, tuple(mine), telltales, leave, at_home(scope, self._settings))
        words, values = Words(), {version.slot_value for version in versions} - {""}
        for message in said:
            quoted = [item.quote for item in cited if item.message_id == message.message_id and item.quote != MARK]
            spans = list(_found(quoted, message))
            rest = message.evolve(content=without(message.text, spans, mark="\n"))
            words.add(message, (*spans, *phrases_of(rest, telltales), *_given(message, values)))
        homes = self.blocks(words)
        for message in self.candidates(asked.mine, asked.sought):
            near = any(_holds(block, message) for block in homes)
            if found := phrases_of(message, telltales, near=near):
                words.add(message, (*found, *_given(message, values)))
        for message in (*self._answers(list(words.messages.values())), *beside):
            words.add(message, phrases_of(message, telltales, beside=True))
        for place in [place for place in words.messages if place[1] in leave]:
            del words.messages[place], words.phrases[place]
        blocks = self.blocks(words)
        along, kept = self._sort(asked, words, blocks)
        summaries = self.again(words, blocks)
        return Removal(root, along, kept, words, summaries, telltales)

    def of_messages(self, partition: Partition, words: Words, reason: WithheldReason) -> Removal:
        """Return the plan for whole messages: what rests on them alone goes, whatever it says."""
        blocks = self.blocks(words)
        labels = [block.block_id for block in blocks]
        found = self._archive.memories([partition], block_ids=labels) if labels else ()
        gone: list[Memory] = []
        kept: list[Memory] = []
        for memory in found:
            if memory.status in {FORGOTTEN, *TOMBSTONES}:
                continue
            hidden = words.hides(memory)
            shown = [goes for item, goes in zip(memory.evidence, hidden, strict=True) if item.quote != MARK]
            if hidden and all(shown):
                gone.append(memory)
            elif any(shown):
                kept.append(_next_without(unsaid(memory, hidden) if words.entire else memory, hidden))
        twins = self.twins(kept)
        gone += [memory for memory in found if memory.memory_id in twins]
        kept = [memory for memory in kept if memory.memory_id not in twins]
        summaries = self.again(words, blocks)
        return Removal(None, tuple(gone), tuple(kept), words, summaries, reason=reason)

    def twins(self, changed: Sequence[Memory]) -> frozenset[str]:
        """Return the ids of changed memories whose words another one has: a shelf holds one live memory with them."""
        shelves = {
            memory.partition: [each.topic for each in changed if each.partition == memory.partition]
            for memory in changed
        }
        ids = {memory.memory_id for memory in changed}
        held = [
            memory for place, topics in shelves.items() for memory in self._archive.memories([place], topics=topics)
        ]
        taken = {_words(memory) for memory in held if memory.live and memory.memory_id not in ids}
        twins: set[str] = set()
        for memory in (memory for memory in changed if memory.live):
            if _words(memory) in taken:
                twins.add(memory.memory_id)
            taken.add(_words(memory))
        return frozenset(twins)

    def candidates(self, mine: Sequence[Partition], sought: Sequence[str]) -> Iterator[StoredMessage]:
        """Yield the messages that may say something: all where they are few, else by the index of their words.

        Where they are few, those that their host edited or abandoned are among them, with their words.
        """
        few = self._archive.messages(mine, limit=_FEW + 1, shown=UNSAID)
        if len(few) <= _FEW:
            yield from few
            return
        for matches in self._archive.match(mine, "message", sought) if sought else ():
            yield from self._archive.messages([matches.partition], seqs=[int(seq) for seq in matches.seqs])

    def _answers(self, said: Sequence[StoredMessage]) -> Iterator[StoredMessage]:
        """Yield what the agent and its tools said for a while after these messages: they may still repeat it."""
        for message in said:
            after = self._archive.messages(
                [message.partition], thread=message.thread, first_seq=message.seq + 1, limit=_ANSWER, shown=UNSAID
            )
            yield from (answer for answer in after if answer.role in {"assistant", "tool"})

    def blocks(self, words: Words) -> tuple[Block, ...]:
        """Return the blocks that hold these words."""
        by_place: dict[Partition, list[str]] = {}
        for partition, message_id in words.messages:
            by_place.setdefault(partition, []).append(message_id)
        return tuple(
            block
            for partition, message_ids in by_place.items()
            for block in self._archive.blocks([partition], message_ids=message_ids)
        )

    def _sort(
        self, asked: _Asked, words: Words, blocks: Sequence[Block]
    ) -> tuple[tuple[Memory, ...], tuple[Memory, ...]]:
        """Return the memories that go along, and the next versions of those that stay without some of their quotes."""
        found = {memory.memory_id: memory for memory in self._near(asked, blocks)}
        found.pop(asked.root.memory_id, None)
        links = self._archive.links(asked.mine, list(found), types=["derived_from"]) if found else ()
        derived = {link.source_id for link in links}
        along: list[Memory] = []
        kept: list[Memory] = []
        for memory in found.values():
            hidden = words.hides(memory)
            rests = bool(hidden) and all(hidden) and memory.memory_id not in derived
            if asked.may_take(memory) and (rests or asked.repeated_by(memory, abstracted=memory.memory_id in derived)):
                along.append(memory)
            elif any(hidden):
                kept.append(_next_without(memory, hidden))
        return tuple(along), tuple(kept)

    def _near(self, asked: _Asked, blocks: Sequence[Block]) -> Iterator[Memory]:
        mine, tokens = asked.mine, asked.sought
        ids = [name for matches in self._archive.match(mine, "memory", tokens) for name in matches.record_ids]
        yield from self._archive.memories(mine, ids=ids) if ids else ()
        yield from self._archive.memories(mine, statuses=_HELD)
        labels = [block.block_id for block in blocks]
        for memory in self._archive.memories(mine, block_ids=labels) if labels else ():
            if memory.status not in {FORGOTTEN, *TOMBSTONES}:
                yield memory

    def again(self, words: Words, blocks: Sequence[Block]) -> tuple[BlockSummary, ...]:
        """Return new index entries for these blocks: which words of an entry repeat it cannot be known."""
        made: list[BlockSummary] = []
        for block in blocks:
            entries = self._archive.summaries([block.partition], ids=[block.block_id])
            if not entries:
                continue
            rows = self._archive.messages(
                [block.partition], thread=block.thread, first_seq=block.first_seq, last_seq=block.last_seq
            )
            entry = index_entry(block, entries[0], left_of(rows, words))
            made += [entry] if entry != entries[0] else []
        return tuple(made)


def whole(rows: Iterable[StoredMessage]) -> Words:
    """Return these messages with all that is in them."""
    words = Words(entire=True)
    for row in rows:
        words.messages[row.partition, row.message_id] = row
        words.phrases[row.partition, row.message_id] = {row.text: None}
    return words


def telltales_of(memory: Memory, names: Iterable[str], versions: Sequence[Memory]) -> tuple[Telltales, ...]:
    """Return what a memory is recognised by: what it says, and the words that say no more than that."""
    known = frozenset(filter(None, (*names, memory.topic.target_name)))
    mine = Telltales(memory.content, known)
    parts = (Telltales(part, known, part=True) for part in clauses(memory.content))
    quotes = dict.fromkeys(item.quote for version in versions for item in version.evidence if item.quote != MARK)
    others = (Telltales(quote, known) for quote in quotes if quote != memory.content)
    said = (*parts, *(each for each in others if each.values <= mine.values))
    return (mine, *(each for each in said if each.values or len(each.words) > 1))


def _words(memory: Memory) -> tuple[Partition, Topic, str]:
    return memory.partition, memory.topic, words_digest(memory)


def _holds(block: Block, message: StoredMessage) -> bool:
    return (block.partition, block.thread) == (message.partition, message.thread) and (
        block.first_seq <= message.seq <= block.last_seq
    )


def phrases_of(
    message: Message, telltales: Sequence[Telltales], *, beside: bool = False, near: bool = True
) -> list[str]:
    """Return the words of a message that say it: sentences, and arguments of calls; of what a tool returned, all."""
    found = revealing_sentences(message.text, telltales, beside=beside, near=near)
    if found and message.role == "tool":
        return [message.text]
    texts = leaves(message) if message.tool_calls or found else []
    beyond = [each for each in texts if revealing_sentences(each, telltales, beside=beside, near=near)]
    return [*found, *beyond]


def _given(message: Message, values: Collection[str]) -> list[str]:
    """Return those of these values that the calls of a message give."""
    return [each for each in leaves(message) if each in values] if message.tool_calls else []


def _found(quotes: Iterable[str], message: StoredMessage) -> Iterator[str]:
    for quote in quotes:
        place = find_quote(quote, message.text)
        if place is not None:
            yield message.text[place[0] : place[1]]


def left_of(rows: Sequence[StoredMessage], words: Words) -> tuple[StoredMessage, ...]:
    """Return what is left of a block."""
    left: list[StoredMessage] = []
    for row in rows:
        gone = words.of((row.partition, row.message_id))
        if None not in gone and not row.hidden:
            left.append(StoredMessage.model_validate(veiled(row.model_dump(), gone, mark="")) if gone else row)
    return tuple(left)


def index_entry(block: Block, old: BlockSummary, rows: Sequence[StoredMessage]) -> BlockSummary:
    """Return the index entry of what is left of a block."""
    if not any(character.isalnum() for row in rows for character in row.text):
        return old.evolve(summary=MARK, entities=())
    scope = Scope(tenant=block.partition.tenant, user=block.partition.user or "someone", agent=block.partition.agent)
    task = DigestTask(
        scope=scope, block=block, messages=tuple(rows), shelves=(), language="zh" if old.language == "zh" else "en"
    )
    return ExtractiveThinker().digest(task, Meter()).summary.evolve(extractor=old.extractor)


def unquoted(memory: Memory, hidden: Sequence[bool]) -> Memory:
    """Return a memory without some of its quotes.

    `hidden` says for each piece of its evidence whether its words go.
    """
    quotes = (item.evolve(quote=MARK) if goes else item for item, goes in zip(memory.evidence, hidden, strict=True))
    return memory.evolve(evidence=tuple(quotes))


def _next_without(memory: Memory, hidden: Sequence[bool]) -> Memory:
    return unquoted(memory, hidden).evolve(version=memory.version + 1)
