"""Random agents who propose, agree, refuse and try it alone, and the simplest model of what all of them then know."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from remegraph import ConflictError, InputError, MemoryKit, Scope
from remegraph.errors import ConsensusError
from remegraph.models import ChangeSet, Cut, Evidence, Memory, MemoryChange, Message, Partition, ProposalState, Topic
from remegraph.testing import FrozenClock
from tests.governance.sharing_machine import LIVE, SCOPES, Fact, SharingMachine

SAID = ("Ann plays chess on Sundays.", "The printer needs blue paper.", "Trains leave from the east gate.")
LIBRARIES = sorted({scope.partition().evolve(agent=None) for scope in SCOPES}, key=Partition.to_json)
MOST = 120
"""Proposals, at most."""


@dataclass
class Book:
    """What the model knows of a proposal."""

    proposal_id: str
    library: Partition
    content: str
    witnesses: dict[str, str]
    """The memory of each agent that bears it out, the author's first."""
    approved: bool = False
    over: ProposalState | None = None

    @property
    def author(self) -> str:
        """Who proposed it."""
        return next(iter(self.witnesses))


def _core(content: str) -> str:
    """What a text says, whatever `step_change` puts behind it: whether that still bears out the other is a rule's to say."""
    return content.replace(" Indeed.", "")


class ConsensusMachine(SharingMachine):
    """Agents who share by grant and by agreement.

    Args:
        kit: A kit of its own, with a quorum of two.
        clock: Its clock.
        seed: Of all that happens.
    """

    def __init__(self, kit: MemoryKit, clock: FrozenClock, seed: int) -> None:
        super().__init__(kit, clock, seed)
        self.books: dict[str, Book] = {}
        self.agreed = 0
        self.refused = 0
        self.steps += [self.step_hear, self.step_hear, self.step_propose, self.step_corroborate, self.step_corroborate]

    # ------------------------------------------------------------------------------------------- the model

    def state(self, book: Book) -> ProposalState:
        """What has become of a proposal."""
        return book.over or ("open" if self.facts[book.witnesses[book.author]].live else "stale")

    def _is_borne_out(self, book: Book) -> bool:
        standing = [agent for agent, key in book.witnesses.items() if self.facts[key].live]
        return book.author in standing and (book.approved or len(standing) >= 2)

    def _twin(self, book: Book) -> bool:
        """Whether the same words are live in the library."""
        heads = self.archive.memories([book.library], statuses=LIVE)
        return any(head.content == book.content for head in heads)

    # ------------------------------------------------------------------------------------------- steps

    def step_change(self) -> None:
        """As ever; what would stand beside a twin stays as it is."""
        with suppress(ConflictError):
            super().step_change()

    def step_hear(self) -> None:
        """A person tells an agent what others may know, too."""
        if len(self.books) >= MOST:
            return
        scope, self.counted = self.chance.choice(SCOPES), self.counted + 1
        self.clock.move(timedelta(seconds=1))
        content, name, now = self.chance.choice(SAID), f"h{self.counted}", self.clock()
        self._evidence(scope)  # stands in the first message of each agent
        here = [fact for fact in self.facts.values() if fact.owner == scope and fact.live]
        if any(fact.memory.content == content for fact in here):
            return
        self.archive.add_messages(
            scope.partition(), [Message(message_id=name, role="user", content=content, time=now, thread=name)], now
        )
        (row,) = self.archive.messages([scope.partition()], ids=[name])
        cut = Cut(thread=name, after_seq=0, first_seq=row.seq, last_seq=row.seq)
        (block,) = self.archive.add_blocks(scope.partition(), [cut], "1")
        memory = Memory(
            memory_id=f"m{name}",
            partition=scope.partition(),
            topic=Topic(type="task", target_name="tea"),
            content=content,
            layer="long_term",
            evidence=(Evidence(message_id=name, quote=content, block_id=block.block_id),),
            block_ids=(block.block_id,),
            said_at=now,
            recorded_at=now,
        )
        self._commit(MemoryChange(memory=memory, expected_version=0, action="create"))
        self.facts[memory.memory_id] = Fact(scope, memory)

    def step_propose(self) -> None:
        """An agent proposes something it knows, or tries to."""
        fact = self._heard()
        if fact is None or len(self.books) >= MOST:
            return
        library, content = fact.memory.partition.evolve(agent=None), fact.memory.content
        agent, key = str(fact.owner.agent), fact.memory.memory_id
        mine = [
            book
            for book in self.books.values()
            if self.state(book) == "open" and book.witnesses.get(book.author) == key
        ]
        rivals = [book for book in self.books.values() if (book.library, book.content) == (library, content)]
        refused = not fact.live or any(
            self.state(book) == "open" or (book.over == "rejected" and book.author == agent) for book in rivals
        )
        refused |= any(head.content == content for head in self.archive.memories([library], statuses=LIVE))
        try:
            found = self.kit.sharing.propose(key, scope=fact.owner, reason="useful")
        except InputError:
            assert refused
            assert not mine
        else:
            assert mine or not refused
            if not mine:
                self.books[found.proposal_id] = Book(found.proposal_id, library, content, {agent: key})

    def step_corroborate(self) -> None:
        """An agent bears out what another one proposed, or tries to."""
        book = self._book()
        fact = self._heard(book)
        if book is None or fact is None:
            return
        key, agent = fact.memory.memory_id, str(fact.owner.agent)
        if book.witnesses.get(agent) == key and agent != book.author:
            return
        fits = (
            self.state(book) == "open"
            and fact.memory.partition.evolve(agent=None) == book.library
            and agent not in book.witnesses
            and fact.live
            and _core(fact.memory.content) == _core(book.content)
        )
        exact = fact.memory.content == book.content
        try:
            self.kit.sharing.corroborate(book.proposal_id, scope=fact.owner, memory_id=key)
        except (InputError, ConflictError):
            assert not (fits and exact) or self._twin(book)
        else:
            assert fits
            book.witnesses[agent] = key
            self._decide(book)

    def step_approve(self) -> None:
        """A person approves."""
        book = self._book()
        if book is None or self.chance.random() < 0.5:
            return
        fits = self.state(book) == "open"
        try:
            self.kit.sharing.decide(book.proposal_id, approve=True, scope=self._someone(book), actor="Dana")
        except (InputError, ConflictError):
            assert not fits or self._twin(book)
        else:
            assert fits
            book.approved = True
            self._decide(book)

    def step_refuse(self) -> None:
        """A person rejects, or an agent withdraws; only the author may."""
        book = self._book()
        if book is None:
            return
        scope, withdraws = self._someone(book), self.chance.random() < 0.5
        fits = self.state(book) in {"open", "stale"} and (not withdraws or scope.agent == book.author)
        try:
            if withdraws:
                self.kit.sharing.withdraw(book.proposal_id, scope=scope)
            else:
                self.kit.sharing.decide(book.proposal_id, approve=False, scope=scope, actor="Dana")
        except ConsensusError:
            assert not fits
        else:
            assert fits
            book.over = "withdrawn" if withdraws else "rejected"

    def step_try_alone(self) -> None:
        """An agent writes, changes or takes back on its own what all know; or lends its voice to a stranger."""
        book = self._book()
        if book is None:
            return
        scope, key, kit = self._someone(book), book.proposal_id, self.kit
        (head,) = self.archive.memories([book.library], ids=[key])
        version = head.version + 1
        forged = [
            MemoryChange(
                memory=head.evolve(memory_id=f"f{self.counted}", status="active"), expected_version=0, action="create"
            ),
            MemoryChange(
                memory=head.evolve(content="Nothing.", version=version), expected_version=head.version, action="refine"
            ),
            MemoryChange(
                memory=head.evolve(status="active", merges=9, version=version),
                expected_version=head.version,
                action="agree",
            ),
        ]
        tries: list[Callable[[], object]] = [
            lambda: kit.forget(key, scope=scope),
            lambda: kit.retention.pin(key, scope=scope),
            lambda: kit.rules.promote(key, scope=scope, reason="x"),
            lambda: kit.restore(key, version=1, scope=scope),
            lambda: kit.save("note", "Nothing at all.", scope=scope, supersedes=[key]),
            lambda: kit.sharing.decide(key, approve=True, scope=scope, actor=str(scope.agent)),
            lambda: kit.topics.link(key, "contradicts", self.chance.choice(list(self.books)), scope=scope),
            *(lambda change=change: self._commit_alone(change) for change in forged),
        ]
        if head.status == "deleted":  # forgetting what is gone changes nothing, and says so
            tries.pop(0)
        try:
            self.chance.choice(tries)()
        except (InputError, ConflictError):
            self.refused += 1
        else:
            raise AssertionError("an agent alone changed what all know")

    def step_tidy(self) -> None:
        """Months pass, and maintenance archives what nobody used."""
        if self.chance.random() < 0.1:
            self.clock.move(timedelta(days=self.chance.choice((1, 30))))
            self.kit.retention.maintain(scope=self.chance.choice(SCOPES))
            for fact in self.facts.values():
                (fact.memory,) = self.archive.memories([fact.owner.partition()], ids=[fact.memory.memory_id])

    # ------------------------------------------------------------------------------------------- checks

    def check_common(self) -> None:
        """Whatever lives in a common library was borne out by two agents, or approved."""
        for head in self.archive.memories(LIBRARIES, statuses=LIVE):
            assert self.books[head.memory_id].over == "agreed"

    def check_books(self) -> None:
        """The ledger tells of each proposal what the model does, and cites the words of each agent."""
        for library in LIBRARIES:
            scope = next(scope for scope in SCOPES if library.sees(scope))
            told = {each.proposal_id: each for each in self.kit.sharing.proposals(scope=scope)}
            books = {key: book for key, book in self.books.items() if book.library == library}
            assert {key: each.state for key, each in told.items()} == {key: self.state(b) for key, b in books.items()}
            for key, book in books.items():
                assert list(told[key].agents) == list(book.witnesses)
                if told[key].memory.status == "purged":  # what it said and stood on is gone, who agreed is not
                    continue
                cited = [item.message_id for item in told[key].memory.evidence]
                homes = {self.facts[f"m{name}"].owner.agent for name in cited}
                origin = told[key].memory.origin  # of one that the upkeep folded with another, of both
                assert origin is not None
                assert set(book.witnesses) <= homes == set(origin.agents)

    def check_reach(self, scope: Scope) -> None:
        """An agent recalls of the common library what lives there, and nothing that is only proposed."""
        library = scope.partition().evolve(agent=None)
        live = {each.memory_id for each in self.archive.memories([library], statuses=LIVE)}
        for words in SAID:
            hits = self.kit.recall(words, scope=scope, k=100).memories
            found = {hit.record_id for hit in hits if hit.partition == library}
            assert {each for each in live if self.books[each].content == words} <= found <= live

    # ------------------------------------------------------------------------------------------- inside

    def _decide(self, book: Book) -> None:
        if self._is_borne_out(book):
            book.over = "agreed"
            self.agreed += 1

    def _book(self) -> Book | None:
        fresh = [book for book in self.books.values() if book.over is None]
        pool = fresh if fresh and self.chance.random() < 0.7 else list(self.books.values())
        return self.chance.choice(pool) if pool else None

    def _heard(self, like: Book | None = None) -> Fact | None:
        """Return what an agent heard; as a rule, what says the same as a proposal."""
        heard = [fact for fact in self.facts.values() if fact.memory.memory_id.startswith("mh")]
        if like is not None and self.chance.random() < 0.7:
            heard = [
                fact
                for fact in heard
                if fact.memory.content == like.content and fact.memory.partition.evolve(agent=None) == like.library
            ]
        return self.chance.choice(heard) if heard else None

    def _someone(self, book: Book) -> Scope:
        return self.chance.choice([scope for scope in SCOPES if book.library.sees(scope)])

    def _commit_alone(self, change: MemoryChange) -> None:
        self.counted += 1
        self.archive.commit(
            ChangeSet(operation_id=f"f{self.counted}", actor="mole", recorded_at=self.clock(), changes=(change,))
        )
