"""What is taken back: a memory and the words it stands on, messages that their host edited or abandoned; and the way back.

The raw rows stay in the ledger. What is withheld of them is shown at no depth and by no door, until it is restored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from remegraph.engine.disputes import Disputes
from remegraph.engine.extractive import ExtractiveThinker
from remegraph.engine.metering import Meter
from remegraph.engine.routing import at_home, own
from remegraph.engine.search import Searcher
from remegraph.engine.tasks import DigestTask
from remegraph.errors import ConflictError, NotFoundError
from remegraph.models import (
    FORGOTTEN,
    Block,
    BlockSummary,
    ChangeSet,
    Forgotten,
    Memory,
    MemoryChange,
    Message,
    Partition,
    Passage,
    Scope,
    Status,
    StoredMessage,
    WithheldReason,
    Withholding,
)
from remegraph.ports import Archive, Clock, NewId
from remegraph.rules.consensus import is_shared
from remegraph.rules.naming import operation_id
from remegraph.rules.quotes import find_quote
from remegraph.rules.telltales import Telltales, clauses, telling_sentences
from remegraph.rules.tombstones import TOMBSTONES
from remegraph.rules.veil import MARK, leaves, overlap, silenced, veiled, without
from remegraph.settings import Settings

__all__ = ["FORGET_TOOL", "Retraction"]

FORGET_TOOL = "forget_memory"
"""The tool by which an agent forgets: what is said in its turn repeats what shall be forgotten."""

_ATTEMPTS = 4
"""How often a change is planned again because another one came first."""

_FEW = 2_000
"""Messages that are all read: a value may be written in ways that no index of words leads to."""

_ANSWER = 24
"""Messages of an answer that are looked at for what it repeats."""

_HELD: tuple[Status, ...] = ("proposed", "archived", "quarantined", "superseded")
"""The statuses of memories that full text does not find, and that are shown to who asks for them."""

_WAITED: frozenset[Status] = frozenset({"proposed", "quarantined"})
"""The statuses of what somebody refused, which is not forgotten: approving it is another matter."""

_Place = tuple[Partition, str]

Discard = Callable[[Collection[Partition], Callable[[str], bool]], None]
"""Drops what these partitions have in mind, and says something."""


@dataclass
class _Words:
    """Words of messages that go, by message."""

    messages: dict[_Place, StoredMessage] = field(default_factory=dict)
    phrases: dict[_Place, dict[str, None]] = field(default_factory=dict)
    entire: bool = False
    """Whether the messages go with all that is in them: calls and attachments, too."""

    def add(self, message: StoredMessage, phrases: Iterable[str]) -> None:
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


@dataclass(frozen=True)
class _Asked:
    """What shall be forgotten, and how it is known again."""

    root: Memory
    mine: tuple[Partition, ...]
    tells: tuple[Telltales, ...]
    leave: frozenset[str]
    at_home: bool
    """Whether what all agents of the user own may go, too."""

    @property
    def sought(self) -> list[str]:
        """Tokens of our index of which whatever says it holds some."""
        return sorted({token for each in self.tells for token in each.sought})

    def may_take(self, memory: Memory) -> bool:
        """Return whether another memory may go along: what agents agreed on takes more than the word of one."""
        agreed = is_shared(memory.partition) and memory.partition != self.root.partition
        return memory.memory_id not in self.leave and (self.at_home or not agreed)

    def says(self, memory: Memory, *, abstracted: bool) -> bool:
        """Return whether another memory says the same; what was abstracted from several, only by a value of it."""
        tells = [each for each in self.tells if each.values or not abstracted]
        texts = (memory.content, memory.when_to_use, memory.summary)
        return any(telling_sentences(text, tells) for text in texts)


@dataclass(frozen=True)
class _Plan:
    """What goes together."""

    root: Memory | None
    along: tuple[Memory, ...]
    kept: tuple[Memory, ...]
    """Next versions of memories that stay, without the quotes that go."""
    words: _Words
    summaries: tuple[BlockSummary, ...]
    tells: tuple[Telltales, ...] = ()
    reason: WithheldReason = "forgotten"

    def says(self, text: str) -> bool:
        """Return whether a text that was kept beside the statement says it."""
        return bool(telling_sentences(text, self.tells, beside=True))

    @property
    def withheld(self) -> tuple[Withholding, ...]:
        return tuple(
            Withholding(
                partition=place[0],
                message_id=place[1],
                phrases=tuple(each for each in self.words.of(place) if each is not None),
                reason=self.reason,
            )
            for place in self.words.messages
        )

    @property
    def passages(self) -> tuple[Passage, ...]:
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


class Retraction:
    """Takes memories and messages back, and brings them again.

    Args:
        archive: The ledger.
        searcher: Finds what is like a memory.
        clock: Tells the time.
        new_id: Makes ids.
        settings: Where memories live.
    """

    def __init__(self, archive: Archive, searcher: Searcher, clock: Clock, new_id: NewId, settings: Settings) -> None:
        self._archive = archive
        self._disputes = Disputes(archive, searcher)
        self._clock = clock
        self._new_id = new_id
        self._settings = settings

    # ------------------------------------------------------------------------------------------ memories

    def forget(
        self,
        memory_id: str,
        scope: Scope,
        *,
        leave: Collection[str] = (),
        dry_run: bool = False,
        discard: Discard | None = None,
    ) -> Forgotten:
        """Forget a memory, what says the same elsewhere, and the words that they stand on.

        Args:
            memory_id: A memory of this user, or of their team.
            scope: Who asks.
            leave: Ids of other memories, and of messages, that stay as they are.
            dry_run: Whether it is only looked at.
            discard: Drops what is kept in mind and says the same.

        Raises:
            NotFoundError: There is no such memory, or it is not this user's.
            ConflictError: Other changes came first, again and again.
        """
        mine = own(self._archive.visible(scope), scope, self._settings.trust_boundary)
        for _ in range(_ATTEMPTS):
            root = self._head(mine, memory_id)
            if root.status == FORGOTTEN:
                return Forgotten(memory=root, done=True)
            plan = self._plan(root, mine, scope, frozenset(leave))
            told = Forgotten(
                memory=root,
                along=plan.along,
                passages=plan.passages,
                blocks=tuple(entry.block_id for entry in plan.summaries),
                done=not dry_run,
            )
            if dry_run:
                return told
            try:
                self._commit(plan, operation_id("forget", memory_id, root.version), scope)
            except ConflictError:
                continue
            if discard is not None:
                discard(mine, plan.says)
            return told.evolve(
                memory=self._head(mine, memory_id),
                along=tuple(silenced(memory.evolve(status=FORGOTTEN)) for memory in plan.along),
                passages=tuple(passage.evolve(words=()) for passage in plan.passages),
            )
        raise ConflictError([memory_id])

    def restore(self, memory_id: str, scope: Scope) -> Memory | None:
        """Bring a forgotten memory back, with all that went with it; None where it is not forgotten.

        Args:
            memory_id: The memory.
            scope: Who asks.

        Raises:
            ConflictError: It was learned anew meanwhile, or it changed just now.
        """
        mine = own(self._archive.visible(scope), scope, self._settings.trust_boundary)
        found = self._archive.forgotten(mine, memory_id) if mine else ()
        if not found:
            return None
        cause = found[0][1]
        before = next(old for head, old in self._archive.operation(mine, cause) if head.memory_id == memory_id)
        if before.status in _WAITED:
            return None
        self._show(mine, self._archive.withheld_by(mine, cause), [cause], actor=scope.agent or "operator", scope=scope)
        return self._head(mine, memory_id)

    # ------------------------------------------------------------------------------------------ messages

    def hide(self, partition: Partition, message_ids: Sequence[str], *, reason: WithheldReason, actor: str) -> None:
        """Withhold whole messages that their host holds no more, and what was learned from them alone.

        Hiding them again changes nothing.

        Args:
            partition: Where they live.
            message_ids: The messages; those that are not there are passed over.
            reason: Why.
            actor: Who hides them.

        Raises:
            ConflictError: Other changes came first, again and again.
        """
        for _ in range(_ATTEMPTS):
            held = self._archive.messages([partition], ids=list(message_ids))
            shown = [row for row in held if all(note.reason != reason for note in row.withheld)]
            plan = replace(self._hidden(partition, _whole(held), reason), words=_whole(shown))
            if not (plan.withheld or plan.along or plan.kept or plan.summaries):
                return  # also of what others made of the words while the first look was taken
            with suppress(ConflictError):
                self._commit(plan, operation_id("hide", self._new_id()), None, actor=actor)
        raise ConflictError(list(message_ids))

    def show(
        self, partition: Partition, message_ids: Sequence[str], *, reasons: Collection[WithheldReason], actor: str
    ) -> None:
        """Show messages again that were hidden for these reasons, and what had been learned from them.

        Args:
            partition: Where they live.
            message_ids: The messages; those that are not hidden are passed over.
            reasons: Why they were hidden.
            actor: Who shows them.

        Raises:
            ConflictError: Other changes came first.
        """
        held = self._archive.messages([partition], ids=list(message_ids))
        shown = tuple(
            Withholding(partition=partition, message_id=row.message_id, reason=note.reason, cause=note.cause)
            for row in held
            for note in row.withheld
            if note.whole and note.reason in reasons
        )
        if shown:
            self._show([partition], shown, list(dict.fromkeys(each.cause for each in shown)), actor=actor, scope=None)

    def screen(self, partition: Partition, messages: Sequence[Message]) -> tuple[Withholding, ...]:
        """Return what is withheld of new messages from the first moment: where an agent repeats what is forgotten.

        What a person says again is new. In the turn in which the agent forgot it by its tool, their words ask for that,
        and are withheld, too.

        Args:
            partition: Where they shall be recorded.
            messages: What was said, in its order.
        """
        causes = self._archive.causes(partition)
        if not causes:
            return ()
        forgotten = [each for each in self._archive.forgotten([partition]) if each[1] in causes]
        asked = _asked(messages)
        found: list[Withholding] = []
        for memory, cause in forgotten:
            tells = _tells(memory, [partition.user or "", partition.agent or ""], [memory])
            for at, message in enumerate(messages):
                beside = at in asked.get(memory.memory_id, ())
                if beside or message.role in {"assistant", "tool"}:
                    phrases = _phrases(message, tells, beside=beside)
                    found += [_withholding(partition, message, phrases, cause)] if phrases else []
        return tuple(found)

    # ------------------------------------------------------------------------------------------- planning

    def _head(self, mine: Sequence[Partition], memory_id: str) -> Memory:
        found = self._archive.memories(mine, ids=[memory_id]) if mine else ()
        if not found or found[0].status in TOMBSTONES:
            raise NotFoundError(f"There is no memory {memory_id!r} here.")
        return found[0]

    def _plan(self, root: Memory, mine: Sequence[Partition], scope: Scope, leave: frozenset[str]) -> _Plan:
        versions = self._archive.versions(mine, root.memory_id)
        cited = [item for version in versions for item in version.evidence]
        said = self._archive.messages(mine, ids=[item.message_id for item in cited]) if cited else ()
        names = [scope.user or "", scope.agent or "", *(message.speaker for message in said)]
        tells = _tells(root, names, versions)
        asked = _Asked(root, tuple(mine), tells, leave, at_home(scope, self._settings))
        words = _Words()
        for message in said:
            quoted = [item.quote for item in cited if item.message_id == message.message_id]
            spans = list(_found(quoted, message))
            rest = message.evolve(content=without(message.text, spans, mark="\n"))
            words.add(message, (*spans, *_phrases(rest, tells)))
        for message in self._saying(asked):
            words.add(message, _phrases(message, tells))
        for message in self._answers(list(words.messages.values())):
            words.add(message, _phrases(message, tells, beside=True))
        for place in [place for place in words.messages if place[1] in leave]:
            del words.messages[place], words.phrases[place]
        blocks = self._blocks(words)
        along, kept = self._sort(asked, words, blocks)
        summaries = self._again(words, blocks)
        return _Plan(root, along, kept, words, summaries, tells)

    def _hidden(self, partition: Partition, words: _Words, reason: WithheldReason) -> _Plan:
        """Return the plan for whole messages: what rests on them alone goes, whatever it says."""
        blocks = self._blocks(words)
        labels = [block.block_id for block in blocks]
        found = self._archive.memories([partition], block_ids=labels) if labels else ()
        gone: list[Memory] = []
        kept: list[Memory] = []
        for memory in found:
            if memory.status in {FORGOTTEN, *TOMBSTONES}:
                continue
            hidden = words.hides(memory)
            if hidden and all(hidden):
                gone.append(memory)
            elif any(gone and item.quote != MARK for item, gone in zip(memory.evidence, hidden, strict=True)):
                kept.append(_unquoted(memory, hidden))
        summaries = self._again(words, blocks)
        return _Plan(None, tuple(gone), tuple(kept), words, summaries, reason=reason)

    def _saying(self, asked: _Asked) -> Iterator[StoredMessage]:
        """Yield the messages that may say it: all where they are few, else by the index of their words."""
        few = self._archive.messages(asked.mine, limit=_FEW + 1)
        if len(few) <= _FEW:
            yield from few
            return
        for matches in self._archive.match(asked.mine, "message", asked.sought) if asked.sought else ():
            yield from self._archive.messages([matches.partition], seqs=[int(seq) for seq in matches.seqs])

    def _answers(self, said: Sequence[StoredMessage]) -> Iterator[StoredMessage]:
        """Yield what the agent and its tools said after these messages: a while later they still repeat it."""
        for message in said:
            after = self._archive.messages(
                [message.partition], thread=message.thread, first_seq=message.seq + 1, limit=_ANSWER
            )
            yield from (answer for answer in after if answer.role in {"assistant", "tool"})

    def _blocks(self, words: _Words) -> tuple[Block, ...]:
        by_place: dict[Partition, list[str]] = {}
        for partition, message_id in words.messages:
            by_place.setdefault(partition, []).append(message_id)
        return tuple(
            block
            for partition, message_ids in by_place.items()
            for block in self._archive.blocks([partition], message_ids=message_ids)
        )

    def _sort(
        self, asked: _Asked, words: _Words, blocks: Sequence[Block]
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
            if asked.may_take(memory) and (rests or asked.says(memory, abstracted=memory.memory_id in derived)):
                along.append(memory)
            elif any(hidden):
                kept.append(_unquoted(memory, hidden))
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

    def _again(self, words: _Words, blocks: Sequence[Block]) -> tuple[BlockSummary, ...]:
        """Return new index entries for these blocks: in which words an entry says what goes, nobody can tell."""
        made: list[BlockSummary] = []
        for block in blocks:
            entries = self._archive.summaries([block.partition], ids=[block.block_id])
            if not entries:
                continue
            rows = self._archive.messages(
                [block.partition], thread=block.thread, first_seq=block.first_seq, last_seq=block.last_seq
            )
            entry = _entry(block, entries[0], _left(rows, words))
            made += [entry] if entry != entries[0] else []
        return tuple(made)

    # ------------------------------------------------------------------------------------------- writing

    def _commit(self, plan: _Plan, operation: str, scope: Scope | None, *, actor: str = "") -> None:
        now = self._clock()
        gone = (*((plan.root,) if plan.root is not None else ()), *plan.along)
        why = "" if plan.root is None else f"with {plan.root.memory_id}"
        changes = [
            MemoryChange(
                memory=memory.evolve(version=memory.version + 1, status=FORGOTTEN, recorded_at=now),
                expected_version=memory.version,
                action="delete",
                reason=plan.reason if plan.root is None else "" if memory is plan.root else why,
            )
            for memory in gone
        ]
        changes += [
            MemoryChange(memory=memory.evolve(recorded_at=now), expected_version=memory.version - 1, action="withhold")
            for memory in plan.kept
        ]
        self._disputes.commit(
            ChangeSet(
                operation_id=operation,
                actor=actor or (scope.agent if scope and scope.agent else "operator"),
                recorded_at=now,
                at_home=True if scope is None else at_home(scope, self._settings),
                changes=tuple(changes),
                summaries=plan.summaries,
                withheld=plan.withheld,
            )
        )

    def _show(
        self,
        mine: Sequence[Partition],
        shown: Sequence[Withholding],
        causes: Sequence[str],
        *,
        actor: str,
        scope: Scope | None,
    ) -> None:
        """Show words again, and bring back what these operations took, as far as its words can be seen again."""
        now = self._clock()
        released = {(each.partition, each.message_id, each.cause) for each in shown}
        changes: dict[str, MemoryChange] = {}
        for cause in causes:
            for head, before in self._archive.operation(mine, cause):
                memory = self._revived(mine, head, before, released)
                if memory is not None:
                    changes[head.memory_id] = MemoryChange(
                        memory=memory.evolve(version=head.version + 1, recorded_at=now),
                        expected_version=head.version,
                        action="restore",
                    )
        self._archive.commit(
            ChangeSet(
                operation_id=operation_id("show", self._new_id()),
                actor=actor,
                recorded_at=now,
                at_home=True if scope is None else at_home(scope, self._settings),
                changes=tuple(changes.values()),
                shown=tuple(shown),
            )
        )

    def _revived(
        self, mine: Sequence[Partition], head: Memory, before: Memory, released: Collection[tuple[Partition, str, str]]
    ) -> Memory | None:
        """Return the next version of a memory once words are shown again; none where nothing of it changes."""
        rows = self._archive.messages(mine, ids=[item.message_id for item in before.evidence])
        still = {
            row.message_id
            for row in rows
            if any((row.partition, row.message_id, note.cause) not in released for note in row.withheld)
        }
        if head.status == FORGOTTEN:
            if before.evidence and all(item.message_id in still for item in before.evidence):
                return None
            return _requoted(before, before, still)
        again = _requoted(head, before, still)
        return None if again == head else again


def _whole(rows: Iterable[StoredMessage]) -> _Words:
    """Return these messages with all that is in them."""
    words = _Words(entire=True)
    for row in rows:
        words.messages[row.partition, row.message_id] = row
        words.phrases[row.partition, row.message_id] = {row.text: None}
    return words


def _tells(memory: Memory, names: Iterable[str], versions: Sequence[Memory]) -> tuple[Telltales, ...]:
    """Return what gives a memory away: what it says, and the words that say no more than that."""
    known = frozenset(filter(None, (*names, memory.topic.target_name)))
    mine = Telltales(memory.content, known)
    parts = (Telltales(part, known) for part in clauses(memory.content))
    quotes = dict.fromkeys(item.quote for version in versions for item in version.evidence if item.quote != MARK)
    others = (Telltales(quote, known) for quote in quotes if quote != memory.content)
    said = (*parts, *(each for each in others if each.values <= mine.values))
    return (mine, *(each for each in said if each.values or len(each.words) > 1))


def _phrases(message: Message, tells: Sequence[Telltales], *, beside: bool = False) -> list[str]:
    """Return the words of a message that say it: sentences, and arguments of calls; of what a tool returned, all."""
    found = telling_sentences(message.text, tells, beside=beside)
    if found and message.role == "tool":
        return [message.text]
    texts = leaves(message) if message.tool_calls or found else []
    beyond = [each for each in texts if telling_sentences(each, tells, beside=beside)]
    return [*found, *beyond]


def _found(quotes: Iterable[str], message: StoredMessage) -> Iterator[str]:
    for quote in quotes:
        place = find_quote(quote, message.text)
        if place is not None:
            yield message.text[place[0] : place[1]]


def _left(rows: Sequence[StoredMessage], words: _Words) -> tuple[StoredMessage, ...]:
    """Return what is left of a block."""
    left: list[StoredMessage] = []
    for row in rows:
        gone = words.of((row.partition, row.message_id))
        if None not in gone and not row.hidden:
            left.append(StoredMessage.model_validate(veiled(row.model_dump(), gone, mark="")) if gone else row)
    return tuple(left)


def _entry(block: Block, old: BlockSummary, rows: Sequence[StoredMessage]) -> BlockSummary:
    """Return the index entry of what is left of a block."""
    if not any(character.isalnum() for row in rows for character in row.text):
        return old.evolve(summary=MARK, entities=())
    scope = Scope(tenant=block.partition.tenant, user=block.partition.user or "someone", agent=block.partition.agent)
    task = DigestTask(
        scope=scope, block=block, messages=tuple(rows), shelves=(), language="zh" if old.language == "zh" else "en"
    )
    return ExtractiveThinker().digest(task, Meter()).summary


def _unquoted(memory: Memory, hidden: Sequence[bool]) -> Memory:
    quotes = (item.evolve(quote=MARK) if gone else item for item, gone in zip(memory.evidence, hidden, strict=True))
    return memory.evolve(version=memory.version + 1, evidence=tuple(quotes))


def _requoted(memory: Memory, before: Memory, still: Collection[str]) -> Memory:
    """Return a memory with the quotes that it had, of messages of which nothing is withheld any more."""
    had = {
        (item.message_id, item.block_id, place): item
        for place, item in enumerate(before.evidence)
        if item.message_id not in still
    }
    quotes = tuple(
        had.get((item.message_id, item.block_id, place), item)
        if item.quote == MARK
        else item.evolve(quote=MARK)
        if item.message_id in still and memory is before
        else item
        for place, item in enumerate(memory.evidence)
    )
    return memory.evolve(evidence=quotes)


def _asked(messages: Sequence[Message]) -> Mapping[str, frozenset[int]]:
    """Return, by memory, the places of the messages of turns in which an agent forgot it by its tool."""
    found: dict[str, frozenset[int]] = {}
    for at, message in enumerate(messages):
        for call in message.tool_calls:
            if call.name == FORGET_TOOL and isinstance(call.args, dict):
                start = next((before for before in range(at, -1, -1) if messages[before].role == "user"), 0)
                while start and messages[start - 1].role == "user":
                    start -= 1
                later = range(at + 1, len(messages))
                end = next((after for after in later if messages[after].role == "user"), len(messages))
                memory_id = str(call.args.get("memory_id", ""))
                found[memory_id] = found.get(memory_id, frozenset()) | frozenset(range(start, end))
    return found


def _withholding(partition: Partition, message: Message, phrases: Sequence[str], cause: str) -> Withholding:
    left = without(message.text, phrases, mark="")
    whole = not message.tool_calls and not any(character.isalnum() for character in left)
    return Withholding(
        partition=partition, message_id=message.message_id, phrases=() if whole else tuple(phrases), cause=cause
    )
