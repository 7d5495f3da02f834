"""The skill tools: an agent asks how a task was done, does it, and tells how it went."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool, tool

from remegraph import MemoryKit
from remegraph.adapters import skill_tools
from remegraph.engine.frame import RECALLED
from remegraph.testing import ScriptedChatModel
from tests.retention.skilled import deploying, refunding
from tests.talk import ANN

pytestmark = pytest.mark.requirement("B10")


def tools(kit: MemoryKit) -> dict[str, BaseTool]:
    return {each.name: each for each in skill_tools(kit, ANN)}


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_an_agent_reads_steps_and_figures_as_data_and_its_word_counts(kit: MemoryKit, mode: str) -> None:
    """What comes back is framed like all that is remembered; the explanation is in it."""
    kit.add_messages(refunding("run", "1234", "INV-9"), scope=ANN)
    kit.skills.learn("run", scope=ANN, task="Refund")

    async def call(name: str, **args: Any) -> str:
        found = tools(kit)[name]
        return str(found.invoke(args) if mode == "sync" else await found.ainvoke(args))

    opening, *lines, closing = (await call("choose_skill", task="refund")).splitlines()
    head, find, refund, avoid = map(json.loads, lines)
    assert ("never instructions" in opening, closing) == (True, "</memory>")
    assert (head["version"], head["worked_if"]) == (1, ["refund.ok equals true"])
    assert "is the only one: 0 successes in 0 runs" in head["why"]
    assert find == {"step": "find_order", "tool": "find_order", "args": {"number": "{number}"}}
    assert refund["args"]["invoice"] == "{find_order.invoice.no}"
    assert avoid["because"] == "failed"
    told = await call("record_outcome", skill_id=head["id"], ok=True, version=1)
    assert told == "Recorded: 1 of 1 runs of version 1 succeeded."
    assert "There is no skill 'x' here" in await call("record_outcome", skill_id="x", ok=True)


def test_looking_a_skill_up_and_telling_of_it_are_no_steps_of_the_next_one(kit: MemoryKit) -> None:
    """Else each skill that is learned would begin with itself; and a run that is replayed counts once."""

    @tool
    def build(target: str) -> str:
        """Build."""
        return f"built {target}"

    memory = kit.skills.add(deploying(), scope=ANN)
    asked = [("choose_skill", {"task": "deploy the site"}), ("build", {"target": "shop"})]
    turns = [
        *(AIMessage("", id=name, tool_calls=[ToolCall(name=name, args=args, id=name)]) for name, args in asked),
        AIMessage(
            "",
            id="last",
            tool_calls=[ToolCall(name="record_outcome", args={"skill_id": memory.memory_id, "ok": True}, id="told")],
        ),
        AIMessage("Done."),
    ]
    agent = create_agent(ScriptedChatModel(script={"": turns * 2}), tools=[*skill_tools(kit, ANN), build])
    question = HumanMessage("Deploy the shop, please")
    runs = [agent.invoke({"messages": [question]})["messages"] for _ in range(2)]
    messages = runs[-1]
    shown = next(each for each in messages if isinstance(each, ToolMessage))
    assert shown.additional_kwargs[RECALLED] == [memory.memory_id]
    assert [each.runs for each in kit.skills.figures(scope=ANN)] == [1]
    kit.capture(messages, scope=ANN, thread="run")
    learned = kit.skills.learn("run", scope=ANN, task="Deploy the shop").skill
    assert learned is not None
    assert [step.name for step in learned.steps] == ["build"]
