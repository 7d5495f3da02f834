"""The fakes that are shipped for the tests of applications."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from langchain_core.messages import AIMessage, ToolCall
from pydantic import BaseModel

from remegraph.errors import VectorIndexError
from remegraph.testing import (
    FaultyChatModel,
    FrozenClock,
    InMemoryVectorIndex,
    ModelCall,
    ScriptedChatModel,
    SequentialIds,
    refusal,
    spoken,
    truncated,
)


class Red(BaseModel):
    """One schema."""

    shade: int


class Blue(BaseModel):
    """Another."""

    shade: int


def ask(model: ScriptedChatModel, schema: type[BaseModel], text: str = "Which?") -> object:
    return model.bind_tools([schema], tool_choice="any").invoke(text).tool_calls[0]["args"]


def test_the_scripted_model_answers_by_the_schema_asked_for() -> None:
    """Branches run in parallel: a queue of answers would give one branch the other's."""
    model = ScriptedChatModel(script={"Red": [{"shade": 1}, {"shade": 2}], "Blue": {"shade": 9}, "": {"plain": True}})

    assert [ask(model, Blue), ask(model, Red), ask(model, Blue), ask(model, Red), ask(model, Red)] == [
        {"shade": shade} for shade in (9, 1, 9, 2, 2)
    ]
    assert model.invoke("Hello").text == '{"plain": true}'


def test_tools_that_are_merely_offered_leave_the_turn_to_the_script() -> None:
    """An agent binds its tools to every call; the script says when it uses one."""
    using = AIMessage("", tool_calls=[ToolCall(name="Red", args={"shade": 1}, id="1")])
    model = ScriptedChatModel(script={"": [using, AIMessage("Done.")], "Blue": {"shade": 9}})
    offered = model.bind_tools([Blue, Red])
    assert offered.invoke("?").tool_calls == using.tool_calls
    assert offered.invoke("?").text == "Done."
    assert ask(model, Blue) == {"shade": 9}
    assert [call.schema for call in model.calls] == ["", "", "Blue"]


def test_a_question_that_the_script_does_not_know_is_an_error_that_names_it() -> None:
    """A test that asks more than it thinks should say so."""
    with pytest.raises(AssertionError, match="no steps for 'Red'; it has \\['Blue'\\]"):
        ask(ScriptedChatModel(script={"Blue": {}}), Red)


def test_faults_come_as_real_models_make_them() -> None:
    """What breaks in production should break in a test first."""
    model = ScriptedChatModel(
        script={"Red": [TimeoutError("slow"), refusal(), spoken({"shade": 1}), truncated({"shade": 1}), AIMessage("")]}
    )
    bound = model.bind_tools([Red], tool_choice="any")
    with pytest.raises(TimeoutError):
        bound.invoke("?")
    texts = [bound.invoke("?").text for _ in range(4)]

    assert "can't help" in texts[0]
    assert '```json\n{"shade": 1}\n```' in texts[1]
    assert texts[2] == '{"shade"'[: len(texts[2])]
    assert texts[3] == ""
    assert len(model.calls) == 5


async def test_a_call_that_hangs_ends_once_the_model_is_healed() -> None:
    """A test of an outage ends with it: a call that is awaited is let go as one in a thread is."""
    reached = asyncio.Event()

    def step(_: ModelCall) -> dict[str, int]:
        reached.set()
        return {"shade": 1}

    model = FaultyChatModel(script={"Red": step}, faults=("hang",), hang=30)
    hanging = asyncio.ensure_future(model.bind_tools([Red], tool_choice="any").ainvoke("?"))
    await reached.wait()
    model.heal()
    with pytest.raises(TimeoutError, match="hung"):
        await asyncio.wait_for(hanging, timeout=10)


def test_an_answer_can_be_made_from_the_call() -> None:
    """Some answers depend on what was said."""
    model = ScriptedChatModel(script={"Red": lambda call: {"shade": len(call.text)}})
    assert ask(model, Red, "12345") == {"shade": 5}


async def test_the_log_holds_every_call_and_how_many_were_under_way_at_once() -> None:
    """Whether branches overlap is a promise, and a promise needs a figure."""
    model = ScriptedChatModel(script={"Red": {"shade": 1}}, latency=0.02)
    ask(model, Red, "alone")
    assert model.most_at_once == 1

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda text: ask(model, Red, text), ["a", "b", "c"]))
    assert model.most_at_once >= 2
    await asyncio.gather(*(model.bind_tools([Red], tool_choice="any").ainvoke("later") for _ in range(4)))

    assert model.most_at_once == 4
    assert len(model.calls) == 8
    first = model.calls[0]
    assert isinstance(first, ModelCall)
    assert (first.schema, first.text) == ("Red", "alone")
    assert first.ended - first.began >= 0.02
    assert first.instructions[0]["function"]["name"] == "Red"
    assert [call.began for call in model.calls] == sorted(call.began for call in model.calls)


def test_a_frozen_clock_stands_until_it_is_moved() -> None:
    """A test that depends on the day it runs on will fail on another."""
    clock = FrozenClock(datetime(2025, 3, 4, tzinfo=UTC))
    assert clock() == clock() == datetime(2025, 3, 4, tzinfo=UTC)
    clock.move(timedelta(days=1))
    clock.move(timedelta(hours=-1))
    assert clock() == datetime(2025, 3, 4, 23, tzinfo=UTC)
    assert FrozenClock()().tzinfo is UTC


def test_ids_come_in_order() -> None:
    """Ids that a test can name beforehand, and no two alike."""
    new_id, other = SequentialIds(), SequentialIds("m")
    assert [new_id(), new_id(), other(), new_id()] == ["id-0001", "id-0002", "m0001", "id-0003"]
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda _: new_id(), range(200)))) == 200


def test_the_vector_index_in_memory_is_exact() -> None:
    """What holds against it must hold against Chroma, so it may not be kinder."""
    index = InMemoryVectorIndex()
    vectors = np.array([[1, 0], [0.6, 0.8], [0, 1]], np.float32)
    index.upsert("c", ["a", "b", "x"], ["1", "1", "2"], vectors)
    vectors[0] = 0  # by copy

    assert [name for name, _ in index.query("c", ["1"], np.array([1, 0], np.float32), 5)] == ["a", "b"]
    assert index.query("c", ["2", "1"], np.array([0, 1], np.float32), 1) == [("x", 1.0)]
    index.delete("c", ["a", "nobody"])
    index.drop("nowhere")
    assert (index.ids("c"), index.ids("nowhere"), index.collections()) == ({"b", "x"}, set(), {"c"})
    with pytest.raises(VectorIndexError):
        index.query("nowhere", ["1"], np.array([1, 0], np.float32), 1)
    index.close()
    assert index.collections() == set()
