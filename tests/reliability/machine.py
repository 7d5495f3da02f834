"""A state machine that does to a kit whatever may be done to it, beside a model of dicts."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sqlalchemy import select

from remegraph import Message, Scope
from remegraph.errors import ConflictError, InputError, MessageChangedError, NotFoundError, SetupError
from remegraph.failpoints import listen
from remegraph.ledger.schema import links, memories, versions
from remegraph.models import (
    MOVES,
    Block,
    ChangeSet,
    Link,
    LinkType,
    Memory,
    MemoryChange,
    Partition,
    Status,
    StoredMessage,
    may_move,
)
from remegraph.models.remnants import silenced
from remegraph.testing import ModelCall, ScriptedChatModel
from tests.reliability.power import Home, PowerCutError
from tests.talk import NOON, create, digest, proposal

USERS = ("ann", "bob", "cat")
AGENTS = ("remy", "nova")
SCOPES = tuple(Scope(user=user, agent=agent) for user in USERS for agent in AGENTS)
SHARED = {agent: Partition(tenant="default", agent=agent) for agent in AGENTS}
TOMBSTONES = {"purged", "erased"}

_SAID = re.compile(r'^(\d+) (\w+) \(user\): "I like (\w+)\."', re.MULTILINE)


def _said(call: ModelCall) -> list[tuple[str, str, str]]:
    """Number, name and word of each message of the block; what was said right before it stands in front."""
    return _SAID.findall(call.text.rpartition("\nBlock:")[2])


def _digest(call: ModelCall) -> dict[str, Any]:
    return digest(*{f"personal:{name}" for _, name, _ in _said(call)})


def _propose(call: ModelCall) -> dict[str, Any]:
    said = _said(call)
    return proposal(*(create(f"{name} likes {word}.", int(n), f"I like {word}") for n, name, word in said))


def scripted() -> ScriptedChatModel:
    """A model that makes one memory of each message."""
    script = {"DigestAnswer": _digest, "ProposalAnswer": _propose, "VerdictAnswer": {"objections": []}}
    return ScriptedChatModel(script=script)


@dataclass
class Place:
    """What a partition should hold."""

    messages: dict[str, Message] = field(default_factory=dict)
    """By id, in the order of recording."""
    blocks: set[tuple[str, int, int]] = field(default_factory=set)
    """Thread, first seq, last seq."""
    memories: dict[str, list[Memory]] = field(default_factory=dict)
    """All versions, oldest first."""
    links: set[tuple[str, str, str]] = field(default_factory=set)

    def heads(self) -> Iterator[Memory]:
        """Yield the head versions."""
        return (history[-1] for history in self.memories.values())

    def tails(self) -> dict[str, list[tuple[int, Message]]]:
        """Return the messages that no block holds, by thread, with their seqs."""
        cut = {thread: max((last for of, _, last in self.blocks if of == thread), default=0) for thread in self.threads}
        found: dict[str, list[tuple[int, Message]]] = {}
        for seq, message in enumerate(self.messages.values(), start=1):
            if seq > cut[message.thread]:
                found.setdefault(message.thread, []).append((seq, message))
        return found

    @property
    def threads(self) -> set[str]:
        """The threads spoken in."""
        return {message.thread for message in self.messages.values()}


def _buried(memory: Memory) -> Memory:
    """What is left of a memory that is gone for good."""
    gone = f"({memory.status})"
    emptied: dict[str, Any] = dict.fromkeys(("evidence", "tags"), ())
    return memory.evolve(
        content=gone, summary=gone, when_to_use="", canonical_topic="", slot_value="", payload={}, **emptied
    )


class KitMachine(RuleBasedStateMachine):
    """A kit beside a model of dicts. Every rule changes both, every invariant compares them."""

    template: ClassVar[Path]
    chroma: ClassVar[bool] = False
    steps: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="remegraph-machine-")
        self.home = self.open_home(Path(self.folder.name) / "homes")
        self.places: dict[Partition, Place] = {scope.partition(): Place() for scope in SCOPES}
        self.places |= {partition: Place() for partition in SHARED.values()}
        self.words = 0
        self.operations = 0
        self.last: ChangeSet | None = None

    def open_home(self, folder: Path) -> Home:
        """Open the home that all is done to."""
        return Home(folder, self.template, chroma=self.chroma)

    def teardown(self) -> None:
        self.sync_and_verify()
        self.home.close()
        self.folder.cleanup()

    # -------------------------------------------------------------------------------------- messages

    def _messages(self, scope: Scope, thread: str, minutes: Sequence[int]) -> list[Message]:
        made: list[Message] = []
        for minute in minutes:
            self.words += 1
            made.append(
                Message(
                    message_id=f"message{self.words}",
                    thread=thread,
                    role="user",
                    name=scope.user,
                    content=f"I like quark{self.words}.",
                    time=NOON + timedelta(minutes=minute),
                )
            )
        return made

    def _learn(self, scope: Scope, messages: Sequence[Message]) -> None:
        self.places[scope.partition()].messages |= {message.message_id: message for message in messages}

    @rule(
        scope=st.sampled_from(SCOPES),
        thread=st.sampled_from(["main", "side"]),
        minutes=st.lists(st.integers(0, 100), min_size=1, max_size=3),  # in any order: some come late
    )
    def add(self, scope: Scope, thread: str, minutes: list[int]) -> None:
        messages = self._messages(scope, thread, minutes)
        receipt = self.home.kit.add_messages(messages, scope=scope)
        self._learn(scope, messages)
        assert (receipt.added, receipt.known) == (len(messages), 0)

    @rule(scope=st.sampled_from(SCOPES), pick=st.integers(0, 999))
    def add_again(self, scope: Scope, pick: int) -> None:
        new = self._messages(scope, "main", [pick % 100])
        old = list(self.places[scope.partition()].messages.values())
        again = [old[pick % len(old)]] * 2 if old else []
        receipt = self.home.kit.add_messages([*again, *new, *new], scope=scope)
        self._learn(scope, new)
        assert (receipt.added, receipt.known) == (1, len(again) + 1)

    @rule(scope=st.sampled_from(SCOPES), pick=st.integers(0, 999))
    def add_with_another_text(self, scope: Scope, pick: int) -> None:
        old = list(self.places[scope.partition()].messages.values())
        if old:
            changed = old[pick % len(old)].evolve(content="I like something else.")
            with pytest.raises(MessageChangedError):
                self.home.kit.add_messages([*self._messages(scope, "main", [0]), changed], scope=scope)

    @rule(scope=st.sampled_from(SCOPES))
    def lose_power_while_adding(self, scope: Scope) -> None:
        messages = self._messages(scope, "main", [0, 1])
        with self._power_cut(after=1):  # the clock is read at the door, and in the transaction
            self.home.kit.add_messages(messages, scope=scope)

    # ----------------------------------------------------------------------------------- summarising

    @rule(scope=st.sampled_from(SCOPES), close=st.booleans())
    def summarize(self, scope: Scope, close: bool) -> None:
        report = self.home.kit.summarize(scope=scope, close=close)
        self._expect_summary(scope, close=close)
        assert (report.work, report.pending) == ((), 0)

    @rule(scope=st.sampled_from(SCOPES), after=st.integers(0, 20))
    def lose_power_while_summarizing(self, scope: Scope, after: int) -> None:
        with self._power_cut(after=after):
            self.home.kit.summarize(scope=scope, close=True)
        self.summarize(scope, close=True)

    @rule(agent=st.sampled_from(AGENTS))
    def remember_self(self, agent: str) -> None:
        self.words += 1
        kit, place, partition = self.home.kit, self.places[SHARED[agent]], SHARED[agent]
        content = f"{agent} knows quark{self.words}."
        memory = kit.remember_self(content, scope=Scope(user="ann", agent=agent))
        (message,) = self.home.archive.messages([partition], first_seq=len(place.messages) + 1)
        assert message.text == content
        place.messages[message.message_id] = Message(**{name: getattr(message, name) for name in Message.model_fields})
        place.blocks.add((message.thread, message.seq, message.seq))
        place.memories[memory.memory_id] = [memory]

    def _expect_summary(self, scope: Scope, *, close: bool) -> None:
        """All messages of the tails became blocks, and each turn one memory, of all its messages."""
        if not close:
            return
        place, partition = self.places[scope.partition()], scope.partition()
        unread: dict[str, Message] = {}
        for thread, tail in place.tails().items():
            place.blocks.add((thread, tail[0][0], tail[-1][0]))
            unread |= {message.message_id: message for _, message in tail}
        for memory in self.home.archive.memories([partition]):
            if memory.memory_id not in place.memories:
                for evidence in memory.evidence:
                    word = unread.pop(evidence.message_id).text.split()[-1]
                    assert word in memory.content
                    assert word in f"{evidence.quote}."
                assert (memory.version, memory.status, memory.topic.key) == (1, "active", f"personal:{scope.user}")
                place.memories[memory.memory_id] = [memory]
        assert not unread

    # --------------------------------------------------------------------------------------- changes

    def _any(self, pick: int) -> Memory | None:
        found = [memory for place in self.places.values() for memory in place.heads()]
        return found[pick % len(found)] if found else None

    def _set(self, *changes: MemoryChange, links: Sequence[Link] = ()) -> ChangeSet:
        self.operations += 1
        return ChangeSet(
            operation_id=f"operation{self.operations}",
            actor="machine",
            recorded_at=NOON + timedelta(seconds=self.operations),
            at_home=True,
            changes=changes,
            links=tuple(links),
        )

    def _commit(self, changes: ChangeSet) -> None:
        receipt = self.home.archive.commit(changes)
        assert not receipt.replayed
        self.last = changes
        for change in changes.changes:
            place = self.places[change.memory.partition]
            version = change.memory.evolve(
                version=change.expected_version + 1, recorded_at=changes.recorded_at, summary=change.memory.content
            )
            if version.status in TOMBSTONES:  # no word of it stays, in no version
                place.memories[version.memory_id] = []
                version = _buried(version)
            place.memories.setdefault(version.memory_id, []).append(version)
        for link in changes.links:
            place = next(place for place in self.places.values() if link.source_id in place.memories)
            place.links.add((link.source_id, link.type, link.target_id))

    @staticmethod
    def _next(head: Memory, **changed: object) -> MemoryChange:
        return MemoryChange(memory=head.evolve(**changed), expected_version=head.version, action="change")

    def _new(self, like: Memory) -> MemoryChange:
        """A new memory with the evidence of another."""
        self.words += 1
        memory = like.evolve(
            memory_id=f"made{self.words}",
            version=1,
            status="active",
            content=f"It is quark{self.words} now.",
            summary="",
            slot_value="",
            supersedes=(like.memory_id,),
        )
        return MemoryChange(memory=memory, expected_version=0, action="create")

    @precondition(lambda self: self._any(0))
    @rule(pick=st.integers(0, 999))
    def update(self, pick: int) -> None:
        head = self._any(pick)
        assert head is not None
        self.words += 1
        change = self._set(self._next(head, content=f"{head.content} And quark{self.words}."))
        if head.status in TOMBSTONES:
            with pytest.raises(InputError):
                self._commit(change)
        else:
            self._commit(change)

    @precondition(lambda self: self._any(0))
    @rule(pick=st.integers(0, 999), off=st.sampled_from([-1, 1]))
    def update_under_another_version(self, pick: int, off: int) -> None:
        head = self._any(pick)
        assert head is not None
        stale = MemoryChange(memory=head, expected_version=head.version + off, action="change")
        with pytest.raises(ConflictError):
            self._commit(self._set(stale))

    @precondition(lambda self: self._any(0))
    @rule(pick=st.integers(0, 999), status=st.sampled_from(sorted(MOVES)))
    def move(self, pick: int, status: Status) -> None:
        head = self._any(pick)
        assert head is not None
        if head.status in TOMBSTONES or not may_move(head.status, status):
            with pytest.raises(InputError):
                self._commit(self._set(self._next(head, status=status)))
        else:
            self._commit(self._set(self._next(head, status=status)))

    @precondition(lambda self: self._any(0))
    @rule(pick=st.integers(0, 999))
    def delete(self, pick: int) -> None:
        self.move(pick, "deleted")

    @precondition(lambda self: self._any(0))
    @rule(pick=st.integers(0, 999))
    def supersede(self, pick: int) -> None:
        old = self._any(pick)
        assert old is not None
        new = self._new(old)
        link = Link(source_id=new.memory.memory_id, type="supersedes", target_id=old.memory_id)
        changes = self._set(new, self._next(old, status="superseded"), links=[link])
        if old.status not in TOMBSTONES and may_move(old.status, "superseded"):
            self._commit(changes)
        else:
            with pytest.raises(InputError):
                self._commit(changes)

    @precondition(lambda self: self._any(0))
    @rule(pick=st.integers(0, 999), other=st.integers(0, 999), kind=st.sampled_from(["contradicts", "related"]))
    def dispute(self, pick: int, other: int, kind: LinkType) -> None:
        one, two = self._any(pick), self._any(other)
        assert one is not None
        assert two is not None
        pair = {memory.memory_id: memory for memory in (one, two)}
        changes = self._set(
            *(self._next(memory, status="disputed") for memory in pair.values()),
            links=[Link(source_id=one.memory_id, type=kind, target_id=two.memory_id)],
        )
        strangers = None not in (one.partition.user, two.partition.user) and one.partition.user != two.partition.user
        if strangers or any(m.status in TOMBSTONES or not may_move(m.status, "disputed") for m in pair.values()):
            with pytest.raises(InputError):
                self._commit(changes)
        else:
            self._commit(changes)

    @precondition(lambda self: self._any(0))
    @rule(pick=st.integers(0, 999), scope=st.sampled_from(SCOPES))
    def take_over(self, pick: int, scope: Scope) -> None:
        head = self._any(pick)
        assert head is not None
        if head.partition != scope.partition():
            with pytest.raises(NotFoundError):
                self._commit(self._set(self._next(head, partition=scope.partition())))

    @precondition(lambda self: self.last)
    @rule()
    def commit_again(self) -> None:
        assert self.last is not None
        assert self.home.archive.commit(self.last).replayed

    @precondition(lambda self: self._any(0))
    @rule(pick=st.integers(0, 999), at=st.sampled_from(["begin", "half_written", "before_commit"]))
    def lose_power_in_a_commit(self, pick: int, at: str) -> None:
        old = self._any(pick)
        assert old is not None
        if old.status not in TOMBSTONES:
            with self._power_cut(at=f"commit.{at}"):
                self.home.archive.commit(self._set(self._new(old), self._next(old)))

    # ------------------------------------------------------------------------------------ life of a kit

    @rule(model=st.sampled_from([scripted, lambda: None]))
    def reopen(self, model: Callable[[], ScriptedChatModel | None]) -> None:
        self.home.reopen(model())

    @rule()
    def lose_power(self) -> None:
        self.home.cut_power()

    @contextmanager
    def _power_cut(self, after: int = 0, at: str = "") -> Iterator[None]:
        """Cut the power in the midst of what is done meanwhile; if that ends before, nothing is cut."""
        if at:
            self.home.fuse.arm_at(at, self.home.take_image)
        else:
            self.home.fuse.arm(after, self.home.take_image)
        listen(self.home.fuse.reached)
        try:
            yield
        except (PowerCutError, SetupError):  # a server tells it in its own words
            if self.home.fuse.armed:
                raise
        finally:
            listen(None)
        if self.home.fuse.armed:
            self.home.fuse.disarm()
        else:
            self.home.restart()

    # ------------------------------------------------------------------------------------------ reading

    @rule()
    def sync_and_verify(self) -> None:
        self.home.kit.context.parts().projection.sync()
        verification = self.home.kit.admin.verify()
        assert verification.healthy, verification.differences
        live = sum(memory.live for place in self.places.values() for memory in place.heads())
        assert verification.vectors == live + sum(len(place.blocks) for place in self.places.values())

    @precondition(lambda self: self.words)
    @rule(scope=st.sampled_from(SCOPES), pick=st.integers(0, 999))
    def recall(self, scope: Scope, pick: int) -> None:
        word = f"quark{pick % self.words + 1}"
        found = self.home.kit.recall(f"Who likes {word}?", scope=scope, k=100, depth="messages")
        holds = re.compile(rf"\b{word}\b").search
        seen = self._seen_by(scope)
        expected = {
            memory.memory_id
            for place in seen.values()
            for memory in place.heads()
            if holds(memory.content) and memory.live
        }
        hits = {hit.record_id for hit in found.memories if holds(hit.text)}
        assert hits | {memory.memory_id for memory in found.self_memories if holds(memory.content)} == expected
        said = {
            message.message_id for place in seen.values() for message in place.messages.values() if holds(message.text)
        }
        assert {hit.record_id for hit in found.messages if holds(hit.text)} == said
        every = (*found.memories, *found.blocks, *found.messages)
        assert {hit.partition for hit in every} <= seen.keys()
        assert {memory.partition for memory in found.self_memories} <= seen.keys()

    @precondition(lambda self: self._any(0))
    @rule(pick=st.integers(0, 999))
    def trace(self, pick: int) -> None:
        head = self._any(pick)
        assert head is not None
        for scope in SCOPES:
            if head.partition in self._seen_by(scope):
                trace = self.home.kit.trace(head.memory_id, scope=scope)
                shown = silenced(head) if head.status == "deleted" else head
                assert (trace.memory, bool(trace.missing)) == (shown, head.status in {"deleted", *TOMBSTONES})
                told = self.places[head.partition].memories[head.memory_id]
                assert list(trace.versions) == (list(map(silenced, told)) if head.status == "deleted" else told)
            else:
                with pytest.raises(NotFoundError):
                    self.home.kit.trace(head.memory_id, scope=scope)

    def _seen_by(self, scope: Scope) -> dict[Partition, Place]:
        return {partition: place for partition, place in self.places.items() if partition.sees(scope)}

    # -------------------------------------------------------------------------------------- invariants

    @invariant()
    def messages_and_blocks_are_equal(self) -> None:
        type(self).steps += 1
        held: dict[Partition, list[StoredMessage]] = {partition: [] for partition in self.places}
        for message in self.home.archive.messages(list(self.places)):
            held[message.partition].append(message)
        cut: dict[Partition, list[Block]] = {partition: [] for partition in self.places}
        for block in self.home.archive.blocks(list(self.places)):
            cut[block.partition].append(block)
        for partition, place in self.places.items():
            assert [(each.seq, each.message_id, each.thread, each.text, each.time) for each in held[partition]] == [
                (seq, each.message_id, each.thread, each.text, each.time)
                for seq, each in enumerate(place.messages.values(), start=1)
            ]
            blocks = cut[partition]
            assert {(block.thread, block.first_seq, block.last_seq) for block in blocks} == place.blocks
            labels = [f"20250304_{number:02d}" for number in range(1, len(blocks) + 1)]
            assert sorted(block.block_id for block in blocks) == labels

    @invariant()
    def memories_and_links_are_equal(self) -> None:
        rows = select(memories.c.memory_id, memories.c.status, memories.c.version.label("head"), versions.c.body)
        rows = rows.join(versions, versions.c.memory == memories.c.id).order_by(versions.c.version)
        held: dict[str, list[Memory]] = {}
        columns: dict[str, tuple[str, int]] = {}
        with self.home.archive.database.read() as connection:
            for row in connection.execute(rows):
                held.setdefault(row.memory_id, []).append(Memory.from_json(row.body))
                columns[row.memory_id] = (row.status, row.head)
            linked = {
                tuple(row) for row in connection.execute(select(links.c.source_id, links.c.type, links.c.target_id))
            }
        expected = {name: history for place in self.places.values() for name, history in place.memories.items()}
        assert held == expected
        assert columns == {name: (history[-1].status, history[-1].version) for name, history in expected.items()}
        assert linked == {link for place in self.places.values() for link in place.links}

    @invariant()
    def nobody_sees_what_is_not_theirs(self) -> None:
        user = USERS[type(self).steps % len(USERS)]  # in turns, to save time
        for scope in (each for each in SCOPES if each.user == user):
            seen = self._seen_by(scope).values()
            assert {memory.memory_id: memory for memory in self.home.kit.memories(scope=scope)} == {
                memory_id: silenced(history[-1]) if history[-1].status == "deleted" else history[-1]
                for place in seen
                for memory_id, history in place.memories.items()
            }
            said = self.home.kit.sources.retrieve_message(limit=10_000, scope=scope)
            assert {message.message_id for message in said} == {name for place in seen for name in place.messages}
