"""`kit.imports`: what other memory systems exported becomes one's own memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from remegraph import CancelledError, MemoryKit, Scope, ScopeError
from remegraph.errors import FileFormatError
from remegraph.models import ForeignMemory
from tests.talk import ANN, open_kit

BOB = Scope(user="bob", agent="remy")


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[MemoryKit]:
    with open_kit(tmp_path) as opened:
        yield opened


def record(name: str, memory: str, **fields: Any) -> dict[str, Any]:
    """A memory as mem0 exports it."""
    return {
        "id": name,
        "memory": memory,
        "hash": "d3a1",
        "metadata": {"source": "chat"},
        "created_at": "2024-07-20T01:30:36.275141-07:00",
        "updated_at": None,
        "user_id": "u-17",
        **fields,
    }


def said_by(kit: MemoryKit, scope: Scope) -> set[str]:
    return {memory.content for memory in kit.memories(scope=scope) if memory.live}


def test_a_memory_of_mem0_keeps_its_words_its_origin_and_its_times(kit: MemoryKit) -> None:
    """Whoever moves wants to know later where a memory came from, and when it was said."""
    export = {"results": [record("m1", "Ann drinks oolong.", categories=["food"], run_id="r1", agent_id="chef")]}
    assert kit.imports.mem0([export], scope=ANN).created == 1

    (memory,) = kit.memories(scope=ANN)
    assert (memory.content, memory.tags, memory.extractor) == ("Ann drinks oolong.", ("food",), "mem0")
    assert memory.payload == {
        "imported": {
            "system": "mem0",
            "id": "m1",
            "agent": "chef",
            "created_at": "2024-07-20T01:30:36.275141-07:00",
        },
        "session": "r1",
    }
    assert memory.said_at.isoformat() == "2024-07-20T01:30:36.275141-07:00"
    (message,) = kit.trace(memory.memory_id, scope=ANN).messages
    assert (message.text, message.extra["record"]) == ("Ann drinks oolong.", export["results"][0])
    assert [hit.record_id for hit in kit.recall("oolong", scope=ANN).memories] == [memory.memory_id]


def test_a_second_import_changes_nothing_and_a_taken_back_memory_stays_so(kit: MemoryKit) -> None:
    """An import that was stopped is simply run again, and what a person forgot meanwhile does not come back."""
    export = [record("m1", "Ann drinks oolong."), record("m2", "Ann lives in Lisbon.")]
    kit.imports.mem0(export, scope=ANN)
    here = {memory.content: memory for memory in kit.memories(scope=ANN)}
    kit.forget(here["Ann drinks oolong."].memory_id, scope=ANN)
    kit.admin.erase(ANN, message_ids=[here["Ann lives in Lisbon."].evidence[0].message_id])
    before = kit.admin.stats()

    again = kit.imports.mem0(export, scope=ANN)
    assert (again.created, again.known, again.erased) == (0, 1, 1)
    assert kit.admin.stats() == before
    assert said_by(kit, ANN) == set()


def test_a_record_that_changed_there_is_told_and_what_is_here_stays(kit: MemoryKit) -> None:
    """Somebody may have changed the memory here since: neither side is overwritten unasked."""
    kit.imports.mem0([record("m1", "Ann drinks oolong.")], scope=ANN)
    again = kit.imports.mem0([record("m1", "Ann drinks sencha.")], scope=ANN)
    assert (again.known, again.changed) == (1, ("m1",))
    assert said_by(kit, ANN) == {"Ann drinks oolong."}


def test_records_that_say_the_same_become_one_memory_with_all_of_them_as_evidence(kit: MemoryKit) -> None:
    """mem0 keeps many copies of one fact; none of them is lost, and the fact is recalled once."""
    kit.save("tea", "Ann drinks oolong.", scope=ANN)
    done = kit.imports.mem0(
        [record("m1", "Ann drinks oolong"), record("m2", "Ann runs."), record("m3", "ann runs.")], scope=ANN
    )
    assert (done.created, done.corroborated) == (1, 2)
    assert sorted((memory.content, len(memory.evidence)) for memory in kit.memories(scope=ANN)) == [
        ("Ann drinks oolong.", 2),
        ("Ann runs.", 2),
    ]


def test_users_are_never_mixed(kit: MemoryKit) -> None:
    """One person's memories in front of another one is the worst that an import can do."""
    export = [record("m1", "Ann drinks oolong."), record("m2", "Bob drinks beer.", user_id="u-18")]
    with pytest.raises(ScopeError, match="2 users: u-17, u-18"):
        kit.imports.mem0(export, scope=ANN)
    assert said_by(kit, ANN) == set()

    def whose(each: ForeignMemory) -> Scope:
        return {"u-17": ANN, "u-18": BOB}[each.user]

    assert kit.imports.mem0(export, scope=whose).users == ("ann", "bob")
    assert (said_by(kit, ANN), said_by(kit, BOB)) == ({"Ann drinks oolong."}, {"Bob drinks beer."})


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"id": "m2", "memory": " "}, r"Record 2 \(m2\): it says nothing"),
        ({"memory": "Ann runs."}, "Record 2: its id is None"),
        (record("m1", "Ann runs."), "its id is in the export twice"),
        (record("m2", "Ann runs.", created_at="2024-07-20 01:30"), "does not say its zone"),
        (record("m2", "Ann runs.", user_id=["ann"]), "its user_id is"),
        (record("m2", "Ann\ud800 runs."), r"Record 2 \(m2\)"),
        ("Ann runs.", "not an object"),
    ],
)
def test_a_record_that_cannot_be_read_is_named_and_nothing_changes(kit: MemoryKit, broken: object, told: str) -> None:
    """Half an import is worse than none; who wants the rest says so."""
    export = [record("m1", "Ann drinks oolong."), broken]
    with pytest.raises(FileFormatError, match=told):
        kit.imports.mem0([export], scope=ANN)
    assert said_by(kit, ANN) == set()
    done = kit.imports.mem0([export], scope=ANN, skip_invalid=True)
    assert (done.created, len(done.invalid)) == (1, 1)


def test_a_store_that_langmem_filled_is_taken_in_whole(kit: MemoryKit) -> None:
    """Words, profiles in a schema of one's own, and plain values: all of LangMem's forms come along."""
    store = InMemoryStore()
    store.put(("memories", "u-17"), "a", {"kind": "Memory", "content": {"content": "Ann drinks oolong."}})
    store.put(("memories", "u-17"), "b", {"content": "Ann lives in Lisbon."})
    store.put(("memories", "u-17"), "c", {"kind": "Profile", "content": {"name": "Ann", "pets": ["Rex"]}})
    store.put(("prompts", "main"), "d", {"text": "Be kind."})

    done = kit.imports.langmem(store, scope=ANN, prefix=("memories",))
    assert (done.created, kit.imports.langmem(store, scope=ANN, prefix=("memories",)).known) == (3, 3)
    assert said_by(kit, ANN) == {"Ann drinks oolong.", "Ann lives in Lisbon.", 'name: Ann\npets: ["Rex"]'}
    (source,) = (m.payload["imported"] for m in kit.memories(scope=ANN) if "oolong" in m.content)
    item = store.get(("memories", "u-17"), "a")
    assert item is not None
    assert (source["id"], source["namespace"], source["created_at"]) == (
        "a",
        ["memories", "u-17"],
        item.created_at.isoformat(),
    )


def test_a_dump_of_items_is_read_line_by_line(kit: MemoryKit, tmp_path: Path) -> None:
    """Whoever no longer runs the store has a dump of its table."""
    items = [
        {"namespace": ["memories", "u-17"], "key": "a", "value": {"content": "Ann drinks oolong."}},
        {"prefix": "memories.u-18", "key": "a", "value": {"content": "Bob drinks beer."}},
    ]
    file = tmp_path / "items.jsonl"
    file.write_text("\n".join(map(json.dumps, items)), encoding="utf-8")
    with pytest.raises(ScopeError, match="u-17, u-18"):
        kit.imports.langmem(file, scope=ANN)
    kit.imports.langmem(file, scope=lambda each: Scope(user=each.user))
    assert said_by(kit, Scope(user="u-18")) == {"Bob drinks beer."}


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+10:00", "9999-12-31T23:59:59-10:00"])
def test_a_record_with_a_time_at_an_end_of_the_calendar_comes_in(kit: MemoryKit, time: str) -> None:
    """Programs write such times for "unknown"; one of them must not keep a person from moving."""
    assert kit.imports.mem0([record("m1", "Ann drinks oolong.", created_at=time)], scope=ANN).created == 1
    (memory,) = kit.memories(scope=ANN)
    assert [each.text for each in kit.sources.retrieve_block(memory.block_ids[0], scope=ANN)] == ["Ann drinks oolong."]


def test_no_record_gets_the_label_of_a_block_that_was_erased(kit: MemoryKit) -> None:
    """Whoever noted a label must never be led to words that came later."""
    kit.imports.mem0([record("m1", "Ann drinks oolong."), record("m2", "Ann lives in Lisbon.")], scope=ANN)
    (gone,) = (memory for memory in kit.memories(scope=ANN) if "Lisbon" in memory.content)
    kit.admin.erase(ANN, message_ids=[gone.evidence[0].message_id])
    kit.imports.mem0([record("m3", "Ann owns a boat.")], scope=ANN)
    labels = {memory.content: memory.block_ids for memory in kit.memories(scope=ANN, statuses=["active"])}
    assert labels == {"Ann drinks oolong.": ("20240720_01",), "Ann owns a boat.": ("20240720_03",)}


@pytest.mark.slow
def test_two_thousand_memories_of_mem0_come_whole_by_batches(kit: MemoryKit) -> None:
    """Nothing is lost, whatever the size; a run that is cancelled continues where it stopped."""
    said = ("Likes dish {}.", "Plans trip {} for spring.", "Works on project {} with Tom.", "Has read book {}.")
    export = {"results": [record(f"m{number}", said[number % 4].format(number)) for number in range(2_000)]}
    done: list[int] = []
    with pytest.raises(CancelledError, match="500 of 2000"):
        kit.imports.mem0([export], scope=ANN, progress=lambda p: done.append(p.done), cancel=lambda: 500 in done)
    rest = kit.imports.mem0([export], scope=ANN)
    assert (rest.created, rest.known) == (1_500, 500)
    assert said_by(kit, ANN) == {each["memory"] for each in export["results"]}
    assert {m.payload["imported"]["id"] for m in kit.memories(scope=ANN)} == {each["id"] for each in export["results"]}
    assert kit.imports.mem0([export], scope=ANN).known == 2_000
