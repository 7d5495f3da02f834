"""The audit trail as it leaves the house: who did what, and whether anybody tampered with it since."""

from __future__ import annotations

import json
import random
from datetime import datetime
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from remegraph import InputError, MemoryKit, Scope, Settings
from remegraph.adapters import memory_node, memory_tools
from remegraph.errors import FileFormatError, NaiveTimeError
from remegraph.models import AuditEntry, AuditHead, Memory, Partition
from remegraph.testing import InMemoryVectorIndex
from tests.governance.conftest import DAY, Office

pytestmark = pytest.mark.requirement("B14")


def entries_of(office: Office, since: datetime | None = None, until: datetime | None = None) -> list[AuditEntry]:
    found = office.kit.governance.audit(scope=office.ann, since=since, until=until)
    return [each for each in found if isinstance(each, AuditEntry)]


async def test_the_trail_tells_who_did_what_when_and_why_and_no_word_of_it(office: Office) -> None:
    """An auditor reads it, and learns nothing that a memory says."""
    paris, porto = office.moved("Paris", "Porto")
    office.kit.restore(paris.memory_id, version=1, scope=office.ann)
    told = {(each.event.record_id, each.after): each for each in entries_of(office)}
    made, replaced = told[paris.memory_id, 1], told[paris.memory_id, 2]
    assert (made.event.actor, made.event.action, made.before, made.after) == ("remy", "create", 0, 1)
    assert (replaced.event.action, replaced.before, replaced.after) == ("supersede", 1, 2)
    assert made.evidence == tuple(item.message_id for item in paris.evidence)
    assert (made.extractor, made.prompt, made.event.time) == ("remy", "", paris.said_at)
    assert told[porto.memory_id, 2].event.reason == f"version 1 of {paris.memory_id} was restored"
    every = list(office.kit.governance.audit(scope=office.ann))
    assert [each async for each in office.kit.governance.aaudit(scope=office.ann)] == every
    assert not [word for word in ("Paris", "Porto", "lives") if word in json.dumps([each.to_json() for each in every])]
    *events, head = every
    assert {each.event.partition for each in events if isinstance(each, AuditEntry)} == {office.ann.partition()}
    assert isinstance(head, AuditHead)
    assert isinstance(events[-1], AuditEntry)
    assert (head.events, head.chain) == (len(events), events[-1].event.chain)


def test_the_trail_can_be_read_from_one_time_to_another(office: Office, tmp_path: Path) -> None:
    """Last month's changes, and a head that shows that they follow on those before."""
    paris, porto, lisbon = office.moved("Paris", "Porto", "Lisbon")
    whole = entries_of(office)
    some = entries_of(office, since=porto.said_at, until=porto.said_at + DAY / 2)
    assert some == [each for each in whole if each.event.time == porto.said_at]
    assert some[0].previous == whole[whole.index(some[0]) - 1].event.chain
    assert entries_of(office, since=lisbon.said_at + DAY) == entries_of(office, until=paris.said_at - DAY) == []
    file = tmp_path / "some.jsonl"
    heads = office.kit.governance.export_audit(file, scope=office.ann, since=porto.said_at)
    assert office.kit.governance.verify_export(file, heads) == ()
    with pytest.raises(NaiveTimeError):
        entries_of(office, since=porto.said_at.replace(tzinfo=None))


def test_an_export_that_was_tampered_with_is_found_every_time(office: Office, tmp_path: Path) -> None:
    """Changed, moved, dropped, cut at either end, or with its heads rewritten: a hundred forgeries, none passes."""
    office.moved("Paris", "Porto", "Lisbon", "Faro")
    file = tmp_path / "audit.jsonl"
    heads = office.kit.governance.export_audit(file, scope=office.ann)
    assert office.kit.governance.verify_export(file, heads) == office.kit.governance.verify_export(file) == ()
    honest, chance = file.read_text(encoding="ascii").splitlines(), random.Random(7)
    forged = tmp_path / "forged.jsonl"
    caught = 0
    for trial in range(100):
        lines = (_changed, _swapped, _dropped, _cut)[trial % 4](honest, chance)
        forged.write_text("\n".join([*lines, ""]), encoding="ascii")
        caught += bool(office.kit.governance.verify_export(forged, heads))
    assert caught == 100
    with pytest.raises(FileFormatError, match="not there yet"):
        office.kit.governance.export_audit(file, scope=office.ann)
    with pytest.raises(FileFormatError, match="cannot be read"):
        office.kit.governance.verify_export(tmp_path / "nowhere.jsonl", heads)
    forged.write_text("[]\n", encoding="ascii")
    assert "no line of an export" in office.kit.governance.verify_export(forged, heads)[0].problem


def _changed(lines: list[str], chance: random.Random) -> list[str]:
    """Change any field of any event, also those that the chain of the ledger does not cover."""
    at = chance.randrange(len(lines) - 1)
    entry = json.loads(lines[at])
    place = chance.choice((entry, entry["event"]))
    name = chance.choice(sorted(place.keys() - {"kind", "event", "partition", "time", "event_id"}))
    place[name] = {str: f"{place[name]}x", int: 7, list: ["another"]}[type(place[name])]
    return [*lines[:at], json.dumps(entry), *lines[at + 1 :]]


def _swapped(lines: list[str], chance: random.Random) -> list[str]:
    one, two = chance.sample(range(len(lines) - 1), 2)
    moved = list(lines)
    moved[one], moved[two] = moved[two], moved[one]
    return moved


def _dropped(lines: list[str], chance: random.Random) -> list[str]:
    at = chance.randrange(len(lines) - 1)
    return [*lines[:at], *lines[at + 1 :]]


def _cut(lines: list[str], chance: random.Random) -> list[str]:
    """Take the end away, and write the head that the rest would have had, as far as one can without the key."""
    end = chance.randrange(1, len(lines) - 1)
    last = json.loads(lines[end - 1])["event"]
    head = json.loads(lines[-1]) | {"events": end, "chain": last["chain"]}
    return [*lines[:end], json.dumps(head)]


def test_verify_reads_the_journal_and_compares_it_with_exported_heads(office: Office) -> None:
    """One command proves words, index and journal."""
    office.moved("Paris", "Porto")
    *_, head = office.kit.governance.audit(scope=office.ann)
    assert isinstance(head, AuditHead)
    before = int(office.kit.admin.stats()["events"])
    report = office.kit.admin.verify(heads=[head])
    assert report.healthy
    # what was shown before is noted in the background, perhaps just now
    assert before <= report.events <= int(office.kit.admin.stats()["events"])
    other = head.evolve(chain=head.chain[::-1])
    (mismatch,) = office.kit.admin.verify(heads=[head, other]).differences
    assert (mismatch.where, mismatch.problem) == (
        "journal",
        f"it lacks the event that an export ended with: {other.chain}",
    )


def test_a_lost_key_is_told_and_the_journal_sealed_anew(office: Office, tmp_path: Path) -> None:
    """Who copies the ledger without its key keeps the memory, and is told what can no longer be proven."""
    with MemoryKit.open(tmp_path, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        kit.save("note", "Ann likes tea.", scope=office.ann)
    (tmp_path / "journal.key").unlink()
    key = "as the environment gives it"
    settings = Settings(home=tmp_path, journal_key=key)
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        assert not (tmp_path / "journal.key").exists()
        assert key not in repr(settings)
        assert len(kit.memories(scope=office.ann)) == 1
        kit.admin.rebuild()
        (mismatch,) = kit.admin.verify().differences
        assert "another key" in mismatch.problem
        kit.admin.seal_journal("the key is lost", despite=True)
        kit.save("note", "Ann likes cake.", scope=office.ann)
        assert kit.admin.verify().healthy


# ------------------------------------------------------------------------------------------- what was shown


def shown_to(
    office: Office, thread: str | None = None, run_id: str | None = None, turn: int | None = None
) -> list[list[Memory]]:
    found = office.kit.governance.known_to(scope=office.ann, thread=thread, run_id=run_id, turn=turn)
    assert not [each for each in found if each.missing]
    return [list(each.memories) for each in found]


async def test_what_an_agent_was_shown_is_kept_by_run_and_turn_in_the_versions_of_then(office: Office) -> None:
    """Why did it say Paris? Because that is what it knew."""
    (paris,) = office.moved("Paris")
    node = memory_node(office.kit, office.ann)
    asked = [HumanMessage("Where does Ann live?")]
    config: RunnableConfig = {"configurable": {"thread_id": "travel", "run_id": "run 1"}}
    node.invoke({"messages": asked}, config)
    (porto,) = office.moved("Porto")
    again = [*asked, AIMessage("In Paris."), HumanMessage("And where does Ann live now?")]
    await node.ainvoke({"messages": again}, {"configurable": {"thread_id": "travel"}})
    assert shown_to(office, thread="travel", turn=1) == [[paris]] == shown_to(office, run_id="run 1")
    assert shown_to(office, thread="travel", turn=2) == [[porto]]
    assert shown_to(office, thread="travel") == [[paris], [porto]]
    assert shown_to(office, thread="work") == []
    (known,) = await office.kit.governance.aknown_to(scope=office.ann, run_id="run 1")
    assert (known.shown.thread, known.shown.turn, known.shown.partition) == ("travel", 1, office.ann.partition())
    assert "Paris" not in known.shown.to_json()
    with pytest.raises(InputError, match="Neither a thread nor a run"):
        office.kit.governance.known_to(scope=office.ann)
    assert office.kit.governance.known_to(scope=Scope(user="bob", agent="remy"), thread="travel") == ()


def test_what_a_tool_showed_is_kept_and_outlives_the_kit(office: Office, tmp_path: Path) -> None:
    """Notes are written down when the kit closes, at the latest."""
    with MemoryKit.open(tmp_path, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        tea = kit.save("note", "Ann likes tea.", scope=office.ann).memory
        search = next(tool for tool in memory_tools(kit, office.ann) if tool.name == "search_memory")
        assert "tea" in search.invoke({"query": "What does Ann like?"})
    with MemoryKit.open(tmp_path, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        (known,) = kit.governance.known_to(scope=office.ann, thread="main")
        assert known.memories == (tea,)
        assert kit.admin.stats()["injections"] == 1


def test_rules_that_were_put_before_an_agent_are_kept_too(office: Office) -> None:
    """A rule that nobody asked for steers the answer all the same."""
    rule = office.kit.save("calls", "Never call Ann before nine.", scope=office.ann, importance=0.95).memory
    found = office.kit.inject("Hello.", scope=office.ann, turn=1)
    office.kit.governance.injected(found, scope=office.ann, thread="layers", turn=1)
    assert shown_to(office, thread="layers") == [[rule]]


def test_what_is_not_kept_any_more_is_named_as_missing(office: Office) -> None:
    """After an erasure the record says that something was shown, and not what."""
    (paris,) = office.moved("Paris")
    found = office.kit.recall("Where does Ann live?", scope=office.ann)
    office.kit.governance.injected({paris.memory_id: 9}, scope=office.ann, thread="old")
    (known,) = office.kit.governance.known_to(scope=office.ann, thread="old")
    assert (known.memories, known.missing) == ((), (paris.memory_id,))
    office.kit.governance.injected(found.evolve(memories=()), scope=office.ann, thread="nothing")
    assert office.kit.governance.known_to(scope=office.ann, thread="nothing") == ()
    with pytest.raises(InputError, match="turn is -1"):
        office.kit.governance.injected(found, scope=office.ann, turn=-1)


def test_nobody_sees_the_trail_of_another(office: Office) -> None:
    """The journal names records and actors: it is nobody else's business."""
    office.moved("Paris")
    bob = Scope(user="bob", agent="remy", project="atlas")
    seen = [each for each in office.kit.governance.audit(scope=bob) if isinstance(each, AuditEntry)]
    assert {each.event.partition for each in seen} <= {Partition(tenant="default", user=None, agent="remy")}
