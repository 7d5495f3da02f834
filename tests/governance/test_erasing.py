"""What goes with a person, a thread, a message or a memory; what stays; and that nothing brings it back."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread, current_thread

import psycopg
import pytest
from sqlalchemy import event, insert, select

from conftest import Figure
from remegraph import MemoryKit, Scope, Settings
from remegraph.errors import ConflictError, ErasedError, InputError, NotFoundError, SetupError, VectorIndexError
from remegraph.failpoints import listen
from remegraph.ledger import partitions as partition_rows
from remegraph.ledger.schema import metadata, reviews
from remegraph.models import (
    Abstraction,
    AddReceipt,
    ChangeSet,
    Cut,
    ErasureRequest,
    Evidence,
    KnowledgeItem,
    Link,
    Memory,
    MemoryChange,
    Partition,
    Subject,
    Topic,
)
from remegraph.models.remnants import Loss, remade
from remegraph.testing import FailingCall, InMemoryVectorIndex
from tests.talk import ANN, NOON, SHARED_KEY, open_kit, replied, said

pytestmark = pytest.mark.requirement("X7")

PERSON = Subject(user="ann")
BOB = Scope(user="bob", agent="remy")
TEA, ROWS, PARIS = "I love green tea from Uji.", "I keep a rowing boat in Zanzibar.", "I live in Paris."


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[MemoryKit]:
    """Ann told two things in one thread and one in another; Bob told one."""
    with open_kit(tmp_path) as kit:
        tell(kit)
        yield kit


def tell(kit: MemoryKit) -> None:
    messages = [
        said(TEA, message_id="tea"),
        replied("Noted.", message_id="reply"),
        said(ROWS, minutes=1, message_id="rows"),
        said("I play chess on Sundays.", minutes=2, message_id="chess", thread="games"),
    ]
    kit.add_messages(messages, scope=ANN)
    kit.add_messages([said(PARIS, name="Bob", message_id="tea")], scope=BOB)
    for scope in (ANN, BOB):
        kit.summarize(scope=scope, close=True)


def contents(kit: MemoryKit, scope: Scope = ANN) -> set[str]:
    return {memory.content for memory in kit.context.parts().archive.memories([scope.partition()])}


def everything(kit: MemoryKit) -> str:
    """All text that the ledger holds, of all tables."""
    with kit.context.parts().archive.database.read() as connection:
        rows = (row for table in metadata.tables.values() for row in connection.execute(select(table)))
        return "\n".join(str(tuple(row)) for row in rows).lower()


def healthy(kit: MemoryKit) -> bool:
    kit.context.parts().projection.sync()
    return kit.admin.verify().differences == ()


def memory_of(kit: MemoryKit, word: str) -> Memory:
    (found,) = (each for each in kit.context.parts().archive.memories([ANN.partition()]) if word in each.content)
    return found


def conclusion(sources: list[Memory], says: str) -> ChangeSet:
    """A change set that makes a long-term memory of others."""
    abstraction = Abstraction(
        conditions=("when Uji comes up",),
        confidence=0.5,
        corroborations=len(sources),
        terms=("love", "rowing", "chess"),
    )
    memory = sources[0].evolve(
        memory_id="long",
        version=1,
        content=says,
        summary="",
        slot_value="",
        canonical_topic="",
        payload=abstraction.within({}),
        evidence=tuple(item for each in sources for item in each.evidence),
        block_ids=tuple(dict.fromkeys(label for each in sources for label in each.block_ids)),
        layer="long_term",
    )
    return ChangeSet(
        operation_id="conclude",
        actor="test",
        recorded_at=NOON,
        at_home=True,
        changes=(MemoryChange(memory=memory, expected_version=0, action="create", reason="rowing recurs"),),
        links=tuple(Link(source_id="long", type="derived_from", target_id=each.memory_id) for each in sources),
    )


# ----------------------------------------------------------------------------------------- what goes


def test_a_message_takes_what_was_made_of_it_and_leaves_the_rest(kit: MemoryKit) -> None:
    """One sentence said by mistake must not cost a whole conversation, nor live on in what was made of it."""
    archive = kit.context.parts().archive
    before = archive.blocks([ANN.partition()], message_ids=["rows"])[0]
    columns = archive.layout(ANN.partition()).seqs.tolist()
    gone = archive.messages([ANN.partition()], ids=["rows"])[0].seq
    erased = memory_of(kit, "rowing").memory_id
    receipt = kit.admin.erase(ANN, message_ids=["rows"])
    assert (receipt.complete, receipt.rederived) == (True, 1)
    assert "zanzibar" not in everything(kit)
    assert archive.layout(ANN.partition()).seqs.tolist() == [seq for seq in columns if seq != gone]
    assert contents(kit) == {f"Ann: {TEA}", "Ann: I play chess on Sundays.", "(erased)"}
    assert kit.context.parts().archive.memories([ANN.partition()], ids=[erased])[0].status == "erased"
    (after,) = archive.blocks([ANN.partition()], message_ids=["tea"])
    assert after.block_id != before.block_id
    assert archive.summaries([ANN.partition()], ids=[after.block_id]) == ()
    kit.summarize(scope=ANN, close=True)
    (entry,) = archive.summaries([ANN.partition()], ids=[after.block_id])
    assert "Uji" in entry.summary
    assert memory_of(kit, "Uji").merges == 0, "it was summarised again, and not said again"
    assert kit.recall("tea", scope=ANN).memories[0].text == f"Ann: {TEA}"
    assert healthy(kit)


def test_a_message_goes_with_all_that_its_host_put_in_its_place(kit: MemoryKit) -> None:
    """Hosts know a message by one id, however often it was edited; each edit is a record of its own here."""
    for words in ("I keep a canoe in Lagos.", "I keep a canoe in Lagos, in truth.", "I keep nothing."):
        kit.capture([{"id": "edited", "role": "user", "content": words}], scope=ANN)
    assert len(kit.sources.retrieve_message("I keep ", scope=ANN)) == 2  # the older forms are hidden
    assert kit.admin.erase(ANN, message_ids=["edited"]).complete
    assert "canoe" not in everything(kit)
    assert [message.text for message in kit.sources.retrieve_message("I keep ", scope=ANN)] == [ROWS]
    kit.capture([{"id": "edited", "role": "user", "content": "I keep a canoe in Lagos, in truth."}], scope=ANN)
    assert "canoe" not in everything(kit)
    assert healthy(kit)


def test_a_thread_goes_with_its_name(kit: MemoryKit) -> None:
    """A conversation may be deleted by the person who had it, and even its title may tell."""
    receipt = kit.admin.erase(ANN, thread="games")
    assert receipt.complete
    assert "chess" not in everything(kit)
    assert "games" not in everything(kit)
    assert contents(kit) == {f"Ann: {TEA}", f"Ann: {ROWS}", "(erased)"}
    assert healthy(kit)


def test_a_memory_goes_and_its_messages_stay(kit: MemoryKit) -> None:
    """Somebody may want a conclusion forgotten and keep the conversation."""
    gone = memory_of(kit, "rowing").memory_id
    receipt = kit.admin.erase(ANN, memory_ids=[gone])
    assert receipt.complete
    assert [each.content for each in kit.context.parts().archive.messages([ANN.partition()], ids=["rows"])] == [ROWS]
    assert kit.summarize(scope=ANN, close=True).created == 0
    assert [version.content for version in kit.context.parts().archive.versions([ANN.partition()], gone)] == [
        "(erased)"
    ]
    assert healthy(kit)


def test_a_conclusion_lives_on_with_words_from_the_rest_of_its_sources(kit: MemoryKit) -> None:
    """What was abstracted from several memories, without a word of the one that goes, is still true of the others."""
    sources = [memory_of(kit, word) for word in ("Uji", "rowing", "chess")]
    kit.context.parts().archive.commit(conclusion(sources, "Ann likes quiet, and chess."))
    kit.admin.erase(ANN, message_ids=["rows"])
    long = kit.context.parts().archive.memories([ANN.partition()], ids=["long"])[0]
    assert long.live
    assert "rowing" not in long.to_json()
    assert long.content == "Ann likes quiet, and chess."
    found = Abstraction.of(long)
    assert found is not None
    assert (found.terms, found.corroborations) == (("love", "chess"), 2)
    assert "rowing" not in everything(kit)
    assert {item.message_id for item in long.evidence} == {"tea", "chess"}
    assert healthy(kit)
    kit.admin.erase(ANN, message_ids=["tea"])
    assert kit.context.parts().archive.memories([ANN.partition()], ids=["long"])[0].status == "erased"
    assert healthy(kit)


def test_a_conclusion_that_says_what_only_the_erased_source_said_goes(kit: MemoryKit) -> None:
    """Nobody but a model could say it anew, and none is asked; what remains may be concluded from again."""
    sources = [memory_of(kit, word) for word in ("Uji", "rowing", "chess")]
    kit.context.parts().archive.commit(conclusion(sources, "Ann likes quiet: rowing, and chess."))
    kit.admin.erase(ANN, message_ids=["rows"])
    assert kit.context.parts().archive.memories([ANN.partition()], ids=["long"])[0].status == "erased"
    assert "rowing" not in everything(kit)
    assert healthy(kit)


def test_a_turn_of_which_one_message_goes_keeps_the_words_of_the_other(tmp_path: Path) -> None:
    """Messages in a row are one memory, and each of them may be erased alone."""
    with open_kit(tmp_path) as kit:
        kit.add_messages([said(TEA, message_id="tea"), said(ROWS, minutes=1, message_id="rows")], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        assert contents(kit) == {f"Ann: {TEA}\n{ROWS}"}
        assert kit.admin.erase(ANN, message_ids=["rows"]).complete
        kit.summarize(scope=ANN, close=True)
        assert contents(kit) == {f"Ann: {TEA}"}
        assert "zanzibar" not in everything(kit)
        assert healthy(kit)


def test_a_memory_of_two_messages_keeps_the_words_of_the_one_that_remains() -> None:
    """A merged text holds both: cut apart by nobody, it would keep what was erased."""
    quotes = {"tea": TEA, "rows": ROWS}
    memory = Memory(
        memory_id="m",
        partition=ANN.partition(),
        topic=Topic(type="personal", target_name="Ann"),
        content=f"Ann: {TEA}\nAnn: {ROWS}",
        evidence=tuple(Evidence(message_id=key, quote=text, block_id="20250304_01") for key, text in quotes.items()),
        block_ids=("20250304_01",),
        tags=("zanzibar", "tea"),
        said_at=NOON,
        recorded_at=NOON,
    )
    loss = Loss(
        cited={("20250304_01", "rows"): None, ("20250304_01", "tea"): "20250304_02"},
        blocks={"20250304_01": "20250304_02"},
        lost=ROWS,
        said={"tea": TEA},
        speakers={"tea": "Ann"},
    )
    left = remade(memory, loss)
    assert left is not None
    assert (left.content, left.tags, left.block_ids) == (f"Ann: {TEA}", ("tea",), ("20250304_02",))
    assert (
        remade(memory, Loss(dict.fromkeys([("20250304_01", "rows"), ("20250304_01", "tea")]), {}, lost=f"{TEA} {ROWS}"))
        is None
    )


def test_what_two_people_told_a_team_stays_as_the_other_told_it(kit: MemoryKit) -> None:
    """A team's memory belongs to nobody alone: it loses one witness, not itself."""
    archive = kit.context.parts().archive
    team = Partition(tenant="default", user=None, agent="remy")
    evidence = [
        Evidence(
            message_id=key, quote=words, block_id=archive.blocks([scope.partition()], message_ids=[key])[0].block_id
        )
        for scope, key, words in ((ANN, "rows", ROWS), (BOB, "tea", PARIS))
    ]
    memory = Memory(
        memory_id="team",
        partition=team,
        topic=Topic(type="task", target_name="travel"),
        content="One lives in Paris, one rows in Zanzibar.",
        evidence=tuple(evidence),
        block_ids=tuple(item.block_id for item in evidence),
        said_at=NOON,
        recorded_at=NOON,
    )
    changes = (MemoryChange(memory=memory, expected_version=0, action="create"),)
    archive.commit(ChangeSet(operation_id="o", actor="test", recorded_at=NOON, at_home=True, changes=changes))
    assert kit.admin.erase(PERSON).complete
    (left,) = archive.memories([team])
    assert (left.status, left.content, left.version) == ("active", f"Bob: {PARIS}", 2)
    assert "zanzibar" not in everything(kit)
    assert healthy(kit)


def test_a_person_goes_whole_and_may_come_back_as_a_stranger(kit: MemoryKit, tmp_path: Path) -> None:
    """The name goes, too; and whoever signs up again is a new person, for processes that knew the old one as well."""
    kit.recall("tea", scope=ANN)
    with open_kit(tmp_path) as other:
        assert contents(other)
        assert kit.admin.erase(PERSON).complete
        assert '"ann"' not in everything(kit)
        assert "ann" not in {partition.user for partition in kit.context.parts().archive.partitions()}
        assert contents(kit, BOB) == {f"Bob: {PARIS}"}
        assert healthy(kit)
        other.add_messages([said("I love cocoa.", message_id="new")], scope=ANN)
        assert kit.recall("tea", scope=ANN).memories == ()
        assert kit.summarize(scope=ANN, close=True).created == 1
        assert [hit.text for hit in other.recall("cocoa", scope=ANN).memories] == ["Ann: I love cocoa."]


def decide(kit: MemoryKit, scope: Scope, by: str) -> None:
    """Let a person decide all that persons decide, about the memory of somebody."""
    memory = kit.save("city", f"{scope.user} lives in Porto.", scope=scope).memory
    assert memory is not None
    given = [
        kit.sharing.grant("clerk", scope=scope, topic=memory.topic.key, reason="work", actor=by).grant_id for _ in "ab"
    ]
    kit.sharing.revoke(given[0], scope=scope, reason="done", actor=by)
    for approve in (True, False):
        fact = kit.save("fact", f"{scope.user} likes {'tea' if approve else 'milk'}.", scope=scope).memory
        assert fact is not None
        proposal = kit.sharing.propose(fact.memory_id, scope=scope, reason="all need it")
        kit.sharing.decide(proposal.proposal_id, approve=approve, scope=scope, actor=by)
    item = KnowledgeItem.model_validate(
        {
            "knowledge_id": "k",
            "title": "Shop",
            "content": {"concept_name": "shop", "generalized_properties": {"door": "green"}, "domain": "shop"},
            "source_memory_type": "semantic",
            "source_agent": "stranger",
            "created_at": NOON,
        }
    )
    kit.knowledge.absorb([item], scope=scope)
    (waiting,) = kit.knowledge.waiting(scope=scope)
    kit.knowledge.decide(waiting.memory_id, approve=True, scope=scope, by=by)
    for words in ("The hall seats 250 guests.", "The hall seats 320 guests."):
        kit.save(words, words, scope=scope, slot="hall:seats", value=words.split()[3])
    conflict, *_ = kit.conflicts.list(scope=scope)
    kit.conflicts.resolve(conflict.conflict_id, "keep_both", scope=scope, by=by)


def test_the_name_of_a_person_goes_from_what_they_decided_about_others(kit: MemoryKit) -> None:
    """Grants, approvals and decisions outlive whoever made them: that it was a person stays, who it was does not."""
    carl, dana = Scope(user="carl", agent="remy"), "zzdana"
    decide(kit, Scope(user="eve", agent="remy", tenant="other"), dana)  # of another tenant: another person
    another = everything(kit).count(dana)
    kit.add_messages([said("I like rain.")], scope=Scope(user=dana, agent="remy"))
    for scope in (BOB, carl):
        decide(kit, scope, dana)
    kit.admin.erase(Subject(user="carl"))  # of whom a journal without a name is left
    assert everything(kit).count(dana) > 2 * another

    receipt = kit.admin.erase(Subject(user=dana))

    assert everything(kit).count(dana) == another
    places = {place.place: (place.removed, place.left) for place in receipt.places}
    assert places["actors"][0] > 15
    assert (places["actors"][1], receipt.complete) == (0, True)
    assert {each.actor for each in kit.sharing.grants(scope=BOB)} == {"erased"}
    decided = [each.by for each in kit.sharing.proposals(scope=BOB)[0].endorsements]
    assert decided == ["remy", "erased"]
    assert healthy(kit)


def test_who_never_told_anything_but_decided_can_be_erased(kit: MemoryKit) -> None:
    """Whoever looks after a memory has rights, too."""
    decide(kit, BOB, "zzdana")
    assert kit.admin.erase(Subject(user="zzdana")).complete
    assert "zzdana" not in everything(kit)
    with pytest.raises(NotFoundError):
        kit.admin.erase(Subject(user="zzdana"))


def test_a_name_that_is_an_agents_too_stays_with_what_it_did_and_the_receipt_says_so(kit: MemoryKit) -> None:
    """Nobody can tell which of the two it was; to take it away would hide what an agent did."""
    kit.add_messages([said("I like rain.")], scope=Scope(user="zzdana", agent="remy"))
    kit.save("rain", "It rains.", scope=Scope(user="bob", agent="zzdana"))
    decide(kit, BOB, "zzdana")
    receipt = kit.admin.erase(Subject(user="zzdana"))
    assert any("an agent has the same name" in each for each in receipt.not_covered)
    assert {each.actor for each in kit.sharing.grants(scope=BOB)} == {"zzdana"}
    assert not any("same name" in each for each in kit.admin.erase(PERSON).not_covered)
    assert healthy(kit)


def test_the_journal_keeps_who_did_what_and_nothing_that_a_guess_could_be_checked_against(kit: MemoryKit) -> None:
    """An auditor sees that something was there and was erased; nobody can try words on its digest."""
    erased = memory_of(kit, "rowing")
    receipt = kit.admin.erase(ANN, memory_ids=[erased.memory_id])
    archive = kit.context.parts().archive
    events = archive.events([ANN.partition()], record_id=erased.memory_id)
    assert [event.action for event in events][-1] == "erase"
    assert {event.digest for event in events[:-1]} == {""}
    assert archive.events([ANN.partition()], record_id=receipt.erasure_id)
    assert healthy(kit)


def test_a_receipt_names_each_place_and_what_a_look_found_left_there(kit: MemoryKit) -> None:
    """Who has to prove an erasure needs the count of each place; and a receipt that cannot say no proves nothing."""
    archive = kit.context.parts().archive
    with archive.database.read() as connection:
        (number,) = partition_rows.known(connection, [ANN.partition()])

    def come_back() -> None:
        with archive.database.write() as connection:
            connection.execute(insert(reviews).values(partition_id=number, memory_id="m", kind="hit", at=0))

    with at("erase.files_gone", come_back):
        receipt = kit.admin.erase(PERSON)
    removed = {place.place: place.removed for place in receipt.places}
    assert removed.items() >= {"messages": 4, "memories": 3, "versions": 3, "blocks": 2, "threads": 2}.items()
    assert min(removed[place] for place in ("full text", "vectors", "topics", "summaries", "journal")) > 0
    assert (receipt.complete, receipt.left) == (False, 1)
    assert {place.place for place in receipt.places if place.left} == {"reviews"}


def test_what_is_not_said_or_not_there_erases_nothing(kit: MemoryKit) -> None:
    """A slip of the pen in an erasure cannot be undone."""
    before = everything(kit)
    wrongs: list[Callable[[], object]] = [
        lambda: kit.admin.erase(ANN),
        lambda: kit.admin.erase(PERSON, thread="games"),
        lambda: kit.admin.erase(ANN, message_ids=["tea\0"]),
    ]
    for wrong in wrongs:
        with pytest.raises(InputError):
            wrong()
    unknowns: list[Callable[[], object]] = [
        lambda: kit.admin.erase(Subject(user="nobody")),
        lambda: kit.admin.erase(Scope(user="nobody"), thread="games"),
        lambda: kit.admin.erase(ANN, thread="no such"),
        lambda: kit.admin.erase(ANN, message_ids=["tea", "no such"]),
        lambda: kit.admin.erase(BOB, memory_ids=[memory_of(kit, "rowing").memory_id]),
    ]
    for unknown in unknowns:
        with pytest.raises(NotFoundError):
            unknown()
    assert everything(kit) == before


# ------------------------------------------------------------------------------------- nothing comes back


def test_a_host_that_still_tells_an_erased_message_is_told_that_it_was_turned_away(kit: MemoryKit) -> None:
    """Checkpoints of a graph keep what was erased here, and each turn brings it again: it must not count as new."""
    kit.admin.erase(ANN, message_ids=["tea"])
    messages = [said(TEA, message_id="tea"), said("I swim.", minutes=9, message_id="swim")]
    captured = kit.capture(messages, thread="main", scope=ANN)
    assert (captured.added, captured.erased, captured.known) == (1, 1, 0)
    assert kit.capture(messages, thread="main", scope=ANN).added == 0


def test_a_repeated_import_and_a_replayed_operation_bring_nothing_back(kit: MemoryKit) -> None:
    """Hosts hand over the whole thread at every turn, and queues deliver twice."""
    archive = kit.context.parts().archive
    old = archive.memories([ANN.partition()])
    summaries = archive.summaries([ANN.partition()])
    late = conclusion(list(old), "Ann likes quiet, and chess.")
    alone = late.evolve(
        changes=(late.changes[0].evolve(memory=late.changes[0].memory.evolve(evidence=(), block_ids=())),)
    )
    kit.admin.erase(PERSON)
    receipt = kit.add_messages([said(TEA, message_id="tea"), said("I love cocoa.", message_id="new")], scope=ANN)
    assert (receipt.added, receipt.erased) == (1, 1)
    again = tuple(MemoryChange(memory=each, expected_version=0, action="create") for each in old)
    wrong: list[ChangeSet] = [
        late,
        alone,
        late.evolve(changes=again, links=()),
        late.evolve(
            changes=tuple(each.evolve(memory=each.memory.evolve(evidence=(), block_ids=())) for each in again), links=()
        ),
        late.evolve(changes=(), links=(), summaries=summaries),
    ]
    for number, changes in enumerate(wrong):
        with pytest.raises((ErasedError, NotFoundError, ConflictError)):
            archive.commit(changes.evolve(operation_id=f"late {number}"))
    assert "uji" not in everything(kit)


@contextmanager
def at(place: str, act: Callable[[], object]) -> Iterator[list[int]]:
    """Do something when a place is reached for the first time; tell how often it was."""
    reached: list[int] = []

    def told(name: str) -> None:
        if name == place:
            reached.append(1)
            if len(reached) == 1:
                act()

    listen(told)
    try:
        yield reached
    finally:
        listen(None)


LATE = ("add.kept", "index.before_embed", "index.embedded", "summary", "cuts")


@pytest.mark.parametrize("workers", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_late_workers_bring_nothing_back(workers: int, tmp_path: Path, figure: Figure) -> None:
    """A worker that read before the erasure and writes after it is the usual way in which erased words return."""
    with open_kit(tmp_path) as kit:
        for number, place in zip(range(workers), itertools.cycle(LATE), strict=False):
            late(kit, Scope(user=f"user{number}", agent="remy"), place)
        kit.context.parts().projection.sync()
        text = everything(kit)
        assert "zanzibar" not in text
        assert '"user' not in text
        assert kit.admin.verify().differences == ()
    figure("bar 19: late workers", f"{workers} of {workers} brought nothing back")


def late(kit: MemoryKit, scope: Scope, place: str) -> None:
    """Let a worker stop at a place, erase the person in another thread, and let the worker go on."""
    archive, projection = kit.context.parts().archive, kit.context.parts().projection
    message = said(ROWS, message_id="rows")
    gone = Event()
    eraser = Thread(target=lambda: kit.admin.erase(Subject(user=scope.user)))

    def erase() -> None:
        """Erase; the index waits for the worker that is at it, the rows do not."""
        eraser.start()
        assert gone.wait(30)

    def told(name: str) -> None:
        if name == "erase.rows_gone":
            gone.set()
        elif name == place and not eraser.ident:
            erase()

    kit.add_messages([message], scope=scope)
    listen(told)
    try:
        if place == "add.kept":
            archive.add_messages(scope.partition(), [message], NOON)
        elif place == "cuts":
            (tail,) = archive.tails(scope.partition())
            erase()
            end = tail.messages[-1].seq
            cut = Cut(thread=tail.thread, after_seq=0, first_seq=tail.messages[0].seq, last_seq=end)
            assert archive.add_blocks(scope.partition(), [cut], "standard") == ()
            with pytest.raises(NotFoundError):
                archive.commit(explicit(scope))
        elif place == "summary":
            kit.summarize(scope=scope, close=True)
            read = archive.memories([scope.partition()])
            erase()
            changed = tuple(
                MemoryChange(memory=each.evolve(version=2, tags=("late",)), expected_version=1, action="tag")
                for each in read
            )
            with pytest.raises((ErasedError, NotFoundError, ConflictError)):
                archive.commit(ChangeSet(operation_id="late", actor="x", recorded_at=NOON, changes=changed))
        else:
            kit.summarize(scope=scope, close=True)
            projection.sync()
        if not eraser.ident:
            erase()
        eraser.join(60)
    finally:
        listen(None)


def explicit(scope: Scope) -> ChangeSet:
    """What a summariser would commit of a block that it read."""
    evidence = Evidence(message_id="rows", quote=ROWS, block_id="20250304_01")
    memory = Memory(
        memory_id=f"of {scope.user}",
        partition=scope.partition(),
        topic=Topic(type="personal", target_name="Ann"),
        content=ROWS,
        evidence=(evidence,),
        block_ids=("20250304_01",),
        said_at=NOON,
        recorded_at=NOON,
    )
    changes = (MemoryChange(memory=memory, expected_version=0, action="create"),)
    return ChangeSet(operation_id=f"late {scope.user}", actor="x", recorded_at=NOON, at_home=True, changes=changes)


# ----------------------------------------------------------------------------------------- stopped on the way

STEPS = (
    "erase.asked", "erase.begin", "erase.before_commit", "erase.rows_gone", "erase.index_dropped",
    "erase.index_rebuilt", "erase.files_gone",
)  # fmt: skip
SOON = ("erase.before_commit", "erase.rows_gone", "erase.files_gone")
"""One of each stage is tried in every run of the tests."""


class PowerCutError(Exception):
    """It stops here."""


@pytest.mark.parametrize(
    "step", [step if step in SOON else pytest.param(step, marks=pytest.mark.slow) for step in STEPS]
)
def test_an_erasure_that_was_stopped_is_finished_by_whoever_comes_next(step: str, tmp_path: Path) -> None:
    """Half an erasure is none; and nobody can be asked to remember that it was begun."""

    def stop() -> None:
        raise PowerCutError

    with open_kit(tmp_path) as kit:
        tell(kit)
        with at(step, stop) as reached, pytest.raises(PowerCutError):
            kit.admin.erase(PERSON)
        assert reached
        assert kit.admin.stats()["erasures_unfinished"] == 1
        assert not kit.admin.receipts()[0].complete
    with open_kit(tmp_path) as kit:
        (receipt,) = kit.admin.resume()
        assert receipt.complete
        assert kit.admin.receipts() == (receipt,)
        assert "zanzibar" not in everything(kit)
        assert contents(kit, BOB) == {f"Bob: {PARIS}"}
        assert kit.admin.resume() == ()
        kit.admin.rebuild()  # an index in memory does not outlive a restart
        assert healthy(kit)


def test_a_receipt_is_asked_for_by_its_number_long_after_and_names_nobody(kit: MemoryKit) -> None:
    """A terminal is closed, and an auditor comes a year later."""
    tell(kit)
    receipt = kit.admin.erase(PERSON)
    bobs = kit.admin.erase(Subject(tenant=BOB.tenant, user=BOB.user))

    assert kit.admin.receipts(receipt.erasure_id) == (receipt,)
    assert kit.admin.receipts(receipt.erasure_id[:8]) == (receipt,)
    assert kit.admin.receipts() == (bobs, receipt)
    with pytest.raises(NotFoundError, match="receipt 'no-such'"):
        kit.admin.receipts("no-such")


def test_a_message_whose_person_is_erased_first_is_erased_with_them(kit: MemoryKit) -> None:
    """An erasure that can never be finished would stop all later ones, and keep the name of who wanted to be forgotten."""

    def stop() -> None:
        raise PowerCutError

    with at("erase.asked", stop), pytest.raises(PowerCutError):
        kit.admin.erase(PERSON)
    receipt = kit.admin.erase(ANN, message_ids=["rows"])
    assert (receipt.complete, receipt.places) == (True, ())
    assert kit.admin.stats()["erasures_unfinished"] == 0
    assert '"ann"' not in everything(kit)


def test_an_erasure_that_somebody_else_finished_meanwhile_has_its_receipt(kit: MemoryKit) -> None:
    """Two operators, or two machines, may clean up at once: who asked learns what went, whoever did it."""

    def finish(place: str) -> None:
        if place == "erase.asked":
            kit.admin.resume()

    listen(finish)
    try:
        receipt = kit.admin.erase(ANN, thread="games")
    finally:
        listen(None)
    assert receipt.complete
    assert kit.admin.stats()["erasures_unfinished"] == 0


def test_an_index_that_fails_leaves_the_erasure_open_and_the_next_call_finishes_it(kit: MemoryKit) -> None:
    """Whoever answers for it must hear that something is left, and what to do."""
    index = kit.context.parts().projection._index
    assert index is not None
    FailingCall(1).guard(index, {"drop": lambda: VectorIndexError("The index failed.")})
    with pytest.raises(VectorIndexError):
        kit.admin.erase(PERSON)
    assert kit.admin.erase(BOB, message_ids=["tea"]).complete
    assert kit.admin.resume() == ()
    assert "zanzibar" not in everything(kit)


# --------------------------------------------------------------------------------------------- both engines, many rows


def test_postgresql_erases_likewise_and_says_what_stays_until_it_is_written_anew(
    postgres_url: str, tmp_path: Path
) -> None:
    """The same promise on the engine of many machines; its dead rows are named, not hidden."""
    settings = Settings(home=tmp_path, ledger_url=postgres_url, journal_key=SHARED_KEY)
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        tell(kit)
        first = kit.admin.erase(ANN, message_ids=["rows"])
        assert (first.complete, first.rewritten) == (True, False)
        assert "remegraph admin erase --resume --full" in first.not_rewritten
        assert "zanzibar" not in everything(kit)
        kit.summarize(scope=ANN, close=True)
        receipt = kit.admin.erase(PERSON, full=True)
        assert (receipt.complete, receipt.rewritten, receipt.not_rewritten) == (True, True, "")
        assert any("write-ahead log" in each for each in receipt.not_covered)
        assert kit.admin.resume() == ()
        assert kit.admin.resume(full=True) == (first.evolve(not_rewritten=""),), (
            "what was said without is asked for later"
        )
        assert kit.admin.resume(full=True) == ()
        assert kit.add_messages([said(TEA, message_id="tea")], scope=ANN).erased == 1
        assert "uji" not in everything(kit)
        assert "ann" not in {partition.user for partition in kit.context.parts().archive.partitions()}
        assert contents(kit, BOB) == {f"Bob: {PARIS}"}
        assert healthy(kit)


@pytest.mark.parametrize("full", [False, True])
def test_what_postgresql_keeps_of_columns_for_its_plans_goes_as_well(
    postgres_url: str, tmp_path: Path, full: bool
) -> None:
    """Its statistics are values: whole messages, names and words of the full text, until somebody counts again."""
    settings = Settings(home=tmp_path, ledger_url=postgres_url, journal_key=SHARED_KEY)
    kept = "SELECT count(*) FROM pg_stats WHERE pg_stats::text LIKE '%zanzibar%'"
    with (
        MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit,
        psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as owner,
    ):
        kit.add_messages([said(f"I went to zanzibar {number} times.") for number in range(40)], scope=ANN)
        owner.execute("CREATE SCHEMA host")
        owner.execute("CREATE TABLE host.own AS SELECT 'what a host has beside'")
        owner.execute("ANALYZE")
        assert owner.execute(kept).fetchone() != (0,)
        before = owner.execute("SELECT pg_relation_filenode('host.own')").fetchone()
        assert kit.admin.erase(PERSON, full=full).complete
        assert owner.execute(kept).fetchone() == (0,)
        assert owner.execute("SELECT pg_relation_filenode('host.own')").fetchone() == before, (
            "what a host has beside is left alone"
        )


def test_two_machines_that_finish_one_erasure_at_once_do_it_once(postgres_url: str, tmp_path: Path) -> None:
    """The second would find nothing left, and write that into the receipt of the first."""
    settings = Settings(home=tmp_path, ledger_url=postgres_url, journal_key=SHARED_KEY)
    waits = Event()
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        tell(kit)
        parts = kit.context.parts()
        second = Thread(target=lambda: parts.eraser.run(erasure_id))

        def about_to_wait(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            if current_thread() is second and ("FOR UPDATE" in statement or "advisory" in statement):
                waits.set()

        def meet(place: str) -> None:
            if place == "erase.before_commit" and not second.ident:
                second.start()
                assert waits.wait(30)
            elif place == "erase.rows_gone" and current_thread() is not second:
                second.join(60)

        erasure_id = parts.eraser.ask(ErasureRequest(subject=PERSON))
        event.listen(parts.archive.database.engine, "before_cursor_execute", about_to_wait)
        listen(meet)
        try:
            parts.eraser.run(erasure_id)
        finally:
            listen(None)
        receipt = parts.eraser.run(erasure_id)
    assert receipt.complete
    assert {place.place: place.removed for place in receipt.places}["messages"] == 4


def test_a_message_that_is_told_again_while_its_person_is_erased_writes_no_name(
    postgres_url: str, tmp_path: Path
) -> None:
    """Hosts repeat a thread at every turn, also in the moment in which everything of a person goes."""
    settings = Settings(home=tmp_path, ledger_url=postgres_url, journal_key=SHARED_KEY)
    waits, told = Event(), list[AddReceipt]()
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        tell(kit)
        archive = kit.context.parts().archive
        again = [said(TEA, message_id="tea")]
        writer = Thread(target=lambda: told.append(archive.add_messages(ANN.partition(), again, NOON)))

        def about_to_wait(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            if current_thread() is writer and "advisory" in statement:
                waits.set()

        def repeat() -> None:
            writer.start()
            assert waits.wait(30)

        event.listen(archive.database.engine, "before_cursor_execute", about_to_wait)
        with at("erase.before_commit", repeat):
            assert kit.admin.erase(PERSON).complete
        writer.join(60)
        assert [(receipt.added, receipt.erased) for receipt in told] == [(0, 1)]
        assert "ann" not in {partition.user for partition in archive.partitions()}


@pytest.mark.slow
@pytest.mark.requirement("X9")
def test_twenty_five_hundred_memories_go_though_the_store_fails_midway(
    tmp_path: Path, setup: str, figure: Figure
) -> None:
    """Peers delete the first page only, or stop at the first error, and say that all is gone."""
    with open_kit(tmp_path) as kit:
        tell(kit)
        learn(kit, 2_500)
        kit.context.parts().projection.sync()
        engine, left = kit.context.parts().archive.database.engine, [60]

        def fail(*_: object) -> None:
            left[0] -= 1
            if not left[0]:
                raise SetupError("The ledger cannot be used: disk I/O error.", "Check the disk.")

        event.listen(engine, "before_cursor_execute", fail)
        with pytest.raises(SetupError):
            kit.admin.erase(PERSON)
        event.remove(engine, "before_cursor_execute", fail)
        guard = FailingCall(2)
        index = kit.context.parts().projection._index
        assert index is not None
        guard.guard(index, {"drop": lambda: VectorIndexError("gone"), "upsert": lambda: VectorIndexError("gone")})
        with pytest.raises(VectorIndexError):
            kit.admin.resume()
        (receipt,) = kit.admin.resume()
        assert (receipt.complete, receipt.left) == (True, 0)
        assert {place.place: place.removed for place in receipt.places}["memories"] >= 2_500
        assert "fact number" not in everything(kit)
        assert contents(kit, BOB) == {f"Bob: {PARIS}"}
        assert healthy(kit)
    figure("bar 20: erasing many", f"{setup}: 2,500 memories, ledger and index failed midway, resumed: 0 left")


def learn(kit: MemoryKit, count: int) -> None:
    """Commit so many memories of Ann."""
    for start in range(0, count, 500):
        changes = tuple(
            MemoryChange(
                memory=Memory(
                    memory_id=f"fact{number}",
                    partition=ANN.partition(),
                    topic=Topic(type="personal", target_name="Ann"),
                    content=f"Fact number {number}.",
                    said_at=NOON,
                    recorded_at=NOON,
                ),
                expected_version=0,
                action="create",
            )
            for number in range(start, start + 500)
        )
        done = ChangeSet(operation_id=f"learn{start}", actor="t", recorded_at=NOON, at_home=True, changes=changes)
        kit.context.parts().archive.commit(done)
