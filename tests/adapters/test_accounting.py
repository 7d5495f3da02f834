"""The tools by which an agent accounts for what it remembers."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from langchain_core.tools import BaseTool

from remegraph import InputError, MemoryKit, Scope
from remegraph.adapters import history_tools
from remegraph.adapters.answers import checked_arguments
from remegraph.testing import FrozenClock
from tests.talk import ANN, misled

OLD, NEW = "Ann lives in Lisbon.", "Ann lives in Porto."


def tools(kit: MemoryKit, scope: Scope = ANN) -> dict[str, BaseTool]:
    return {tool.name: tool for tool in history_tools(kit, scope)}


def moved(kit: MemoryKit) -> str:
    """Save that Ann moved; return the id of what holds now."""
    kit.save("home", OLD, scope=ANN, slot="ann:lives_in", value="Lisbon")
    clock = kit.context.clock
    assert isinstance(clock, FrozenClock)
    clock.move(timedelta(hours=1))
    saved = kit.save("home", NEW, scope=ANN, slot="ann:lives_in", value="Porto").memory
    assert saved is not None
    return saved.memory_id


@pytest.mark.requirement("B14")
async def test_a_model_can_say_why_it_remembers_and_until_when(kit: MemoryKit) -> None:
    """A user who asks "why do you know that?" gets an answer, not a shrug."""
    memory_id = moved(kit)
    told = tools(kit)["explain_memory"].invoke({"memory_id": memory_id})
    head, *events = [json.loads(line) for line in told.splitlines()[1:-1]]

    assert (head["id"], head["text"], head["status"], head["layer"]) == (memory_id, NEW, "active", "long_term")
    assert head["weight"].startswith("weight 1.0000 = ")
    assert head["forgotten_from"] > "2025-03-04"
    assert {"at": "2025-03-04 13:00", "did": "create", "by": "remy"}.items() <= events[0].items()
    assert told == await tools(kit)["explain_memory"].ainvoke({"memory_id": memory_id})


@pytest.mark.requirement("G6")
async def test_a_model_can_dig_out_what_a_memory_replaced(kit: MemoryKit) -> None:
    """What was true before is evidence, too; and it says of itself that it does not hold any more."""
    memory_id = moved(kit)
    told = await tools(kit)["memory_archaeology"].ainvoke({"memory_id": memory_id})
    *versions, last = [json.loads(line) for line in told.splitlines()[1:-1]]

    assert {(each["text"], each["status"]) for each in versions if "status" in each} == {
        (NEW, "active"),
        (OLD, "superseded"),
    }
    assert all(each["words"] == [each["text"]] for each in versions if each["did"] == "create")
    assert last == {"holds": [memory_id]}


@pytest.mark.requirement("X6")
def test_what_nobody_vouches_for_is_disarmed_here_too(tmp_path: Path) -> None:
    """A page that somebody pasted must not get its link before a model by the back door."""
    with misled(tmp_path) as kit:
        (memory,) = kit.knowledge.waiting(scope=ANN)
        told = [tool.invoke({"memory_id": memory.memory_id}) for tool in tools(kit).values()]
    assert memory.status == "quarantined"
    assert all("hxxps[://]evil.example" in each and "https://" not in each for each in told)


@pytest.mark.requirement("X5")
@pytest.mark.parametrize("name", ["explain_memory", "memory_archaeology"])
def test_the_history_of_another_users_memory_is_not_told(kit: MemoryKit, name: str) -> None:
    """An id is no key."""
    tool = tools(kit, Scope(user="bob", agent="remy"))[name]
    assert "There is no memory" in tool.invoke({"memory_id": moved(kit)})
    with pytest.raises(InputError, match="It takes no user, only memory_id"):
        checked_arguments(tool, {"memory_id": "m", "user": "ann"})
