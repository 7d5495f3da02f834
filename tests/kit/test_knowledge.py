"""What is kept as knowledge: conversations are compared with it, and never change it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from remegraph import AgentMemorySettings, ConflictError, InputError, Memory, MemoryKit
from remegraph.kit import SaveOptions
from remegraph.models import ChangeSet, Link, MemoryChange
from remegraph.testing import FrozenClock
from tests.talk import ANN, change, create, digest, model_of, open_kit, proposal, said

TALK = said("I live in Porto now, in the old town.", name="ann")
QUOTE = "live in Porto now"


HOME = "ann:lives_in"


def known(kit: MemoryKit, content: str = "Ann lives in Lisbon.") -> Memory:
    memory = kit.save(
        "home", content, scope=ANN, slot=HOME, value="Lisbon", options=SaveOptions(usage="knowledge")
    ).memory
    assert memory is not None
    return memory


def others(kit: MemoryKit, knowledge: Memory) -> list[Memory]:
    return [memory for memory in kit.memories(scope=ANN) if memory.memory_id != knowledge.memory_id]


@pytest.mark.requirement("F9")
@pytest.mark.parametrize(
    ("operation", "left", "reason"),
    [
        (
            change("SUPERSEDE", "m1", 1, QUOTE, content="Ann lives in Porto.", slot="lives_in"),
            ["Ann lives in Porto."],
            "",
        ),
        (create("Ann lives in Porto.", 1, QUOTE), ["Ann lives in Porto."], ""),
        (create("Ann has Porto as her home.", 1, QUOTE, slot="lives_in"), ["Ann has Porto as her home."], ""),
        (change("REFINE", "m1", 1, QUOTE, content="Ann lives in Porto."), [], "leave it as it is"),
        (change("DELETE", "m1", 1, QUOTE), [], "leave it as it is"),
        (change("CORROBORATE", "m1", 1, QUOTE), [], ""),
        (create("Ann lives in  Lisbon", 1, QUOTE), [], ""),
    ],
    ids=["supersede", "create", "create-in-slot", "refine", "delete", "corroborate", "copy"],
)
def test_no_operation_of_a_model_changes_knowledge(
    tmp_path: Path, operation: dict[str, Any], left: list[str], reason: str
) -> None:
    """A handbook must not be rewritten by the first user who says otherwise; what they say stands beside it."""
    steps = {
        "DigestAnswer": digest("personal:ann"),
        "ProposalAnswer": proposal(operation),
        "VerdictAnswer": {"objections": []},
    }
    with open_kit(tmp_path, steps) as kit:
        knowledge = known(kit)
        kit.add_messages([TALK], scope=ANN)
        report = kit.summarize(scope=ANN, close=True)

        assert knowledge in kit.memories(scope=ANN)
        beside = others(kit, knowledge)
        assert [(memory.content, memory.usage, memory.status) for memory in beside] == [
            (content, "memory", "active") for content in left
        ]
        in_its_place = {"slot", "id"} & operation.keys()
        for memory in beside if in_its_place else ():  # that the words alone say otherwise, nothing reads
            (link,) = kit.trace(memory.memory_id, scope=ANN).links
            assert (link.type, link.target_id) == ("may_contradict", knowledge.memory_id)
        assert reason in "".join(work.reason for work in report.work)
        assert bool(report.work) == bool(reason)
        shown = next(call.text for call in model_of(kit).calls if call.schema == "ProposalAnswer")
        assert "knowledge] " in shown


@pytest.mark.requirement("F9")
@pytest.mark.parametrize(
    ("words", "left"), [("I live in Porto.", ["ann: I live in Porto."]), ("I live in  Lisbon!", [])]
)
def test_without_a_model_knowledge_stays_too(tmp_path: Path, words: str, left: list[str]) -> None:
    """Said again in the same words it is simply known; anything else stands beside it, and nothing reads what it says."""
    with open_kit(tmp_path) as kit:
        knowledge = known(kit, "ann: I live in Lisbon.")
        kit.add_messages([said(words, name="ann")], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert knowledge in kit.memories(scope=ANN)
        beside = others(kit, knowledge)
        assert [(memory.content, memory.status) for memory in beside] == [(content, "active") for content in left]
        assert not any(kit.trace(memory.memory_id, scope=ANN).links for memory in beside)


def _rewritten(old: Memory) -> dict[str, Any]:
    memory = old.evolve(version=2, content="Ann lives in Porto.")
    return {"changes": (MemoryChange(memory=memory, expected_version=1, action="refine"),)}


def _created(old: Memory, **fields: Any) -> Memory:
    return old.evolve(memory_id="new", content="Ann lives in Porto.", usage="memory", **fields)


def _replaced(old: Memory) -> dict[str, Any]:
    memory = _created(old, supersedes=(old.memory_id,))
    return {"changes": (MemoryChange(memory=memory, expected_version=0, action="create"),)}


def _linked(old: Memory) -> dict[str, Any]:
    made = MemoryChange(memory=_created(old), expected_version=0, action="create")
    return {"changes": (made,), "links": (Link(source_id="new", type="supersedes", target_id=old.memory_id),)}


def _made(old: Memory) -> dict[str, Any]:
    memory = _created(old).evolve(usage="knowledge")
    return {"changes": (MemoryChange(memory=memory, expected_version=0, action="create"),)}


@pytest.mark.requirement("F9", "X6")
@pytest.mark.parametrize("forge", [_rewritten, _replaced, _linked, _made])
def test_the_ledger_refuses_it_once_more(tmp_path: Path, forge: Callable[[Memory], dict[str, Any]]) -> None:
    """Whatever a thinker let slip, code disposes: the one door for change looks again."""
    with open_kit(tmp_path) as kit:
        knowledge = known(kit)
        changes = ChangeSet(operation_id="o", actor="x", recorded_at=knowledge.recorded_at, **forge(knowledge))
        archive = kit.context.parts().archive
        with pytest.raises(ConflictError, match="no conversation changes"):
            archive.commit(changes.evolve(extracted=True))
        assert kit.memories(scope=ANN) == (knowledge,)

        archive.commit(changes)  # said outright, it may be


@pytest.mark.requirement("F9")
@pytest.mark.parametrize(("usage", "kept"), [("memory", "memory"), ("knowledge", "knowledge"), ("hybrid", "knowledge")])
def test_the_agents_settings_say_as_what_a_statement_is_kept(tmp_path: Path, usage: Any, kept: str) -> None:
    """Who runs a knowledge base should not have to say so with every statement."""
    with open_kit(tmp_path, agent=AgentMemorySettings(usage=usage)) as kit:
        saved = kit.save("home", "Ann lives in Lisbon.", scope=ANN).memory
        outright = kit.save("tea", "Ann likes tea.", scope=ANN, options=SaveOptions(usage="memory")).memory
        with pytest.raises(InputError, match="no usage 'wisdom'"):
            kit.save("tea", "Ann likes coffee.", scope=ANN, options=SaveOptions(usage="wisdom"))  # type: ignore[arg-type]  # bad input

    assert saved is not None
    assert outright is not None
    assert (saved.usage, outright.usage) == (kept, "memory")


@pytest.mark.requirement("F9")
def test_a_model_that_saves_mere_memory_leaves_knowledge_as_it_is(tmp_path: Path) -> None:
    """A tool call is the agent's way to learn from a conversation: it is held to the same rule."""
    with open_kit(tmp_path) as kit:
        knowledge = known(kit)
        same = kit.save("home", "Ann lives in Lisbon.", scope=ANN, options=SaveOptions(by_model=True))
        worded = kit.save(
            "home", "Lisbon is Ann's home.", scope=ANN, slot=HOME, value="Lisbon", options=SaveOptions(by_model=True)
        )
        other = kit.save(
            "home", "Ann lives in Porto.", scope=ANN, slot=HOME, value="Porto", options=SaveOptions(by_model=True)
        )
        assert knowledge in kit.memories(scope=ANN)
        clock = kit.context.clock
        assert isinstance(clock, FrozenClock)
        clock.move(timedelta(minutes=1))
        person = kit.save("home", "Ann lives in Faro.", scope=ANN, slot=HOME, value="Faro")

    for known_already in (same, worded):
        assert (known_already.outcome, known_already.reason) == (
            "refused",
            f"Memory {knowledge.memory_id} says it already, as knowledge.",
        )
    assert (other.outcome, other.superseded, other.may_contradict) == ("new", (), (knowledge.memory_id,))
    assert knowledge.memory_id in person.superseded


@pytest.mark.requirement("F9")
def test_stating_a_memory_as_knowledge_makes_it_knowledge(tmp_path: Path) -> None:
    """An editor who confirms what was learned expects it to stay."""
    with open_kit(tmp_path) as kit:
        kit.save("home", "Ann lives in Lisbon.", scope=ANN)
        assert known(kit).usage == "knowledge"
        assert (
            kit.save("home", "Ann lives in Lisbon.", scope=ANN, options=SaveOptions(usage="memory")).memory
            == kit.memories(scope=ANN)[0]
        )
        assert [memory.usage for memory in kit.memories(scope=ANN)] == ["knowledge"]
