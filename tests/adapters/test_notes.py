"""Where a note stands on later turns, and what of it: a provider's cache is served, and nothing forgotten is shown."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
    before_model,
)
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, SystemMessage, ToolCall
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic import BaseModel
from sqlalchemy.exc import OperationalError

from remegraph import AgentMemorySettings, MemoryKit, RetrievalPolicy, Scope
from remegraph.adapters import MemoryMiddleware, Recalled, inject, recall_node, with_memory
from remegraph.adapters.notes import Note, Notes, passages
from remegraph.engine.frame import RECALLED, short_id, shown_ids, shown_texts
from remegraph.models import ChangeSet, MemoryChange
from remegraph.testing import FailingCall, FrozenClock, ModelCall, ScriptedChatModel
from tests.talk import ANN, NOON, open_kit, replied, said

pytestmark = pytest.mark.requirement("X20")

BICYCLE = "Ann owns a scarlet bicycle."
CAT = "Ann has a grey cat named Tom."
ASKED = "What colour is my bicycle?"
PAINTED = "Was my bicycle ever painted?"


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"The {at} is there."


def looking(at: str, number: int = 0) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name="look", args={"at": at}, id=f"{at} {number}")])


def twice(call: ModelCall) -> AIMessage:
    """Look twice, then answer."""
    since = [message.type for message in call.messages][::-1].index("human")
    return looking("door", since) if since < 4 else AIMessage("Nothing else.")


class Host:
    """An agent with a tool and memory, and what its model was sent."""

    def __init__(self, kit: MemoryKit, *steps: Any, beside: Sequence[Any] = (), **options: Any) -> None:
        self.model = ScriptedChatModel(script={"": list(steps) or [lambda _: AIMessage("Noted.")]})
        options.setdefault("checkpointer", InMemorySaver())
        middleware = [MemoryMiddleware(kit, tools=options.pop("tools", False)), *beside]
        self.graph: Any = create_agent(
            self.model, [look], middleware=middleware, context_schema=Scope, system_prompt="Be kind.", **options
        )

    def __call__(self, text: str, thread: str = "1", scope: Scope = ANN, **fields: Any) -> Any:
        return self.graph.invoke({"messages": [HumanMessage(text, **fields)]}, at(thread), context=scope)

    @property
    def sent(self) -> list[list[str]]:
        """What the model was sent, call by call."""
        return [[f"{each.type}: {each.text}" for each in call.messages] for call in self.model.calls]

    @property
    def notes(self) -> list[list[str]]:
        """The notes in it, call by call."""
        return [
            [each.text for each in call.messages if RECALLED in each.additional_kwargs] for call in self.model.calls
        ]


def at(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def knowing(kit: MemoryKit) -> None:
    kit.save("bicycle", BICYCLE, scope=ANN)
    kit.save("cat", CAT, scope=ANN)


def of(kit: MemoryKit, content: str) -> str:
    return next(each.memory_id for each in kit.memories(scope=ANN) if each.content == content and each.live)


# ------------------------------------------------------------------------------------------------ stays


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_each_call_begins_with_all_that_the_call_before_it_was_sent(kit: MemoryKit, how: str) -> None:
    """What a provider has cached is what a prompt begins with: tool output is paid once."""
    knowing(kit)
    host = Host(kit, twice)
    for text in (ASKED, "How is my cat?", PAINTED, "Well?"):
        run = getattr(host.graph, how)({"messages": [HumanMessage(text)]}, at("1"), context=ANN)
        await run if inspect.isawaitable(run) else run
        kit.drain()
    assert len(host.sent) == 12
    assert all(after[: len(before)] == before for before, after in zip(host.sent, host.sent[1:], strict=False))
    assert "scarlet" in host.notes[0][0]


def test_a_note_says_nothing_that_an_earlier_one_still_says(kit: MemoryKit) -> None:
    """One fact is paid for once in a conversation, whichever questions it bears on."""
    knowing(kit)
    host = Host(kit)
    for text in (ASKED, PAINTED, "And is my cat fond of the bicycle?"):
        host(text)
    shown = [text for note in host.notes[-1] for text in shown_texts(note).values()]
    assert sorted(shown) == sorted({*shown})
    assert BICYCLE in shown_texts(host.notes[-1][0]).values()
    assert CAT in shown


def test_a_note_does_not_repeat_what_the_window_holds(kit: MemoryKit) -> None:
    """What was learned from words that the model is sent anyway is no news; in another conversation it is."""
    host = Host(kit)
    host("I own a scarlet bicycle.")
    kit.summarize(scope=ANN, close=True)
    host(ASKED)
    host(ASKED, "2")
    assert [bool(notes) for notes in host.notes] == [False, False, True]


def test_a_note_does_not_repeat_what_a_tool_brought(kit: MemoryKit) -> None:
    """The agent searched for it a moment ago, and reads it still."""

    def search(call: ModelCall) -> AIMessage:  # noqa: ARG001 - a step is called with it
        knowing(kit)
        return AIMessage("", tool_calls=[ToolCall(name="search_memory", args={"query": "bicycle"}, id="s")])

    host = Host(kit, search, AIMessage("Scarlet."), AIMessage("Scarlet, I said."), tools=True)
    host("Look up what you know of it.")
    host(ASKED)
    assert sum(short_id(of(kit, BICYCLE)) in text for text in host.sent[-1]) == 1


def test_within_a_turn_a_note_stays_to_the_letter_whatever_is_learned_meanwhile(kit: MemoryKit) -> None:
    """A turn is many calls, and the background learns."""
    knowing(kit)

    def learn(call: ModelCall) -> AIMessage:
        kit.save("paint", f"Ann's bicycle was painted {len(call.messages)} times.", scope=ANN)
        return twice(call)

    host = Host(kit, learn)
    host(ASKED)
    assert len({tuple(notes) for notes in host.notes}) == 1
    assert len(host.notes) == 3


def test_a_call_that_is_tried_again_is_sent_the_same(kit: MemoryKit) -> None:
    """Retries come from outside of the model, and pass by the memory again."""
    knowing(kit)

    def fail(call: ModelCall) -> AIMessage:  # noqa: ARG001 - a step is called with it
        kit.save("paint", "Ann's bicycle was painted twice.", scope=ANN)
        raise ConnectionError("lost")

    retry: Any = ModelRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
    model = ScriptedChatModel(script={"": [fail, AIMessage("Scarlet.")]})
    agent: Any = create_agent(model, middleware=[retry, MemoryMiddleware(kit, ANN, tools=False)])
    agent.invoke({"messages": [HumanMessage(ASKED)]})
    first, second = ([message.text for message in call.messages] for call in model.calls)
    assert first == second
    assert BICYCLE in first[0]


def test_a_run_that_waited_for_a_person_goes_on_with_the_same_note(kit: MemoryKit) -> None:
    """In the process that asked, at least; another one recalls again."""
    knowing(kit)
    gate = HumanInTheLoopMiddleware(interrupt_on={"look": True})
    host = Host(kit, looking("door"), AIMessage("Done."), beside=[gate])
    assert host(ASKED)["__interrupt__"]
    kit.save("paint", "Ann's bicycle was painted twice.", scope=ANN)
    host.graph.invoke(Command(resume={"decisions": [{"type": "approve"}]}), at("1"), context=ANN)
    assert host.notes[0] == host.notes[1] != []


def test_after_a_restart_a_conversation_goes_on_with_a_new_note_alone(kit: MemoryKit) -> None:
    """Notes are in no checkpoint: forgetting could not reach them there."""
    knowing(kit)
    saver = InMemorySaver()
    Host(kit, checkpointer=saver)(ASKED)
    assert BICYCLE not in str(saver.storage) + str(saver.blobs)
    host = Host(kit, checkpointer=saver)
    host(PAINTED)
    (notes,) = host.notes
    assert BICYCLE in "".join(notes)
    assert len(notes) == 1


def test_a_host_without_checkpoints_that_gives_all_messages_each_time_keeps_its_notes(kit: MemoryKit) -> None:
    """As servers do that keep conversations themselves: their messages have no ids."""
    knowing(kit)
    host = Host(kit, checkpointer=None)
    told: list[AnyMessage] = []
    for text in (ASKED, "How is my cat?"):
        told.append(HumanMessage(text))
        host.graph.invoke({"messages": told}, context=ANN)
        told.append(AIMessage("Noted."))
    assert host.sent[1][: len(host.sent[0])] == host.sent[0]
    assert len(host.notes[1]) == 2


def test_the_same_conversation_begun_again_is_recalled_for_anew(kit: MemoryKit) -> None:
    """Where no thread is named, two conversations look alike until they differ; what was learned since must be known."""
    host = Host(kit, checkpointer=None)
    first = {"messages": [HumanMessage(ASKED)]}
    host.graph.invoke(first, context=ANN)
    knowing(kit)
    host.graph.invoke(first, context=ANN)
    assert host.notes[0] == []
    assert BICYCLE in host.notes[1][0]


def test_marks_for_a_provider_that_a_host_moves_about_change_nothing() -> None:
    """Hosts mark the newest message as the end of what to cache."""
    mark = {"cache_control": {"type": "ephemeral"}}
    marked = [HumanMessage([{"type": "text", "text": "1", **mark}]), AIMessage("2"), HumanMessage("3")]
    moved = [HumanMessage("1"), AIMessage("2"), HumanMessage([{"type": "text", "text": "3", **mark}])]
    assert passages(marked) == passages(moved)
    assert passages([SystemMessage("Be kind."), *moved])[0][0] == passages(moved)[0][0]
    edited = [HumanMessage("I"), *moved[1:]]
    assert passages(edited)[-1] != passages(moved)[-1]


def test_notes_of_two_memories_stay_each_where_they_stood(kit: MemoryKit) -> None:
    """A user's memory beside a team's."""
    team = Scope(user="team", agent="remy")
    kit.save("rule", "Bicycles are washed on Fridays.", scope=team)
    knowing(kit)
    beside = MemoryMiddleware(kit, team, name="team", tools=False)
    host = Host(kit, twice, beside=[beside])
    for text in ("When is my bicycle washed?", "Well?"):
        host(text)
    assert all(after[: len(before)] == before for before, after in zip(host.sent, host.sent[1:], strict=False))
    assert len(host.notes[-1]) == 2


def test_notes_of_another_user_or_conversation_never_show(kit: MemoryKit) -> None:
    """The same words, said by somebody else."""
    knowing(kit)
    host = Host(kit)
    host(ASKED)
    host(ASKED, "1b", Scope(user="bob", agent="remy"))
    assert host.notes[1] == []


# ------------------------------------------------------------------------------------------- what goes


@pytest.mark.parametrize("how", ["forgotten", "replaced"])
def test_what_no_longer_holds_is_gone_from_earlier_notes_and_the_rest_stays(kit: MemoryKit, how: str) -> None:
    """What was forgotten is never shown; a note is no place where it could live on."""
    knowing(kit)
    host = Host(kit)
    host("What of my bicycle, and of my cat?")
    if how == "forgotten":
        kit.forget(of(kit, BICYCLE), scope=ANN)
    else:
        kit.save("bicycle", "Ann sold her two-wheeler.", scope=ANN, supersedes=[of(kit, BICYCLE)])
    host("Well?")
    assert BICYCLE in host.notes[0][0]
    assert BICYCLE not in host.notes[1][0]
    assert CAT in host.notes[1][0]


def test_what_has_ended_meanwhile_is_gone_from_earlier_notes(kit: MemoryKit) -> None:
    """It was told as what holds; a rule whose time is over binds no more."""
    guest = kit.save("guest", "Ann has a guest, Ben.", scope=ANN).memory
    assert guest is not None
    until = guest.evolve(version=2, valid_to=NOON + timedelta(days=1))
    change = MemoryChange(memory=until, expected_version=1, action="refine")
    change_set = ChangeSet(operation_id="until", actor="x", recorded_at=NOON, changes=(change,))
    kit.context.parts().archive.commit(change_set)
    host = Host(kit)
    host("Who is Ann's guest?")
    host("Well?")
    clock = kit.context.clock
    assert isinstance(clock, FrozenClock)
    clock.move(timedelta(days=2))
    host("And now?")
    line = f"{NOON:%Y-%m-%d}] Ann has a guest, Ben."
    assert [line in "".join(notes) for notes in host.notes] == [True, True, False]


def test_a_note_that_tells_what_was_before_stays_as_it_is(kit: MemoryKit) -> None:
    """Asked for the past, what was replaced is shown as such, within the turn and after it."""
    kit.save("home", "Ann lives in Porto.", scope=ANN)
    kit.save("home", "Ann lives in Braga.", scope=ANN, supersedes=[of(kit, "Ann lives in Porto.")])
    host = Host(kit, twice)
    host("Where did Ann live before?")
    assert ", superseded]" in "".join(host.notes[0])
    assert host.notes[0] == host.notes[2]


def test_what_the_agent_forgets_in_a_turn_is_gone_from_the_next_call_of_it(kit: MemoryKit) -> None:
    """The note was recalled before the tool was called."""
    knowing(kit)
    gone = ToolCall(name="forget_memory", args={"memory_id": of(kit, BICYCLE)}, id="f")
    host = Host(kit, AIMessage("", tool_calls=[gone]), AIMessage("Forgotten."), tools=True)
    host("Please forget my bicycle.")
    assert BICYCLE in "".join(host.notes[0])
    assert BICYCLE not in "".join(host.notes[1])


def test_what_is_asked_to_be_forgotten_is_out_of_earlier_notes_at_once(kit: MemoryKit) -> None:
    """Before any model has read the request: the raw words were shown in another conversation."""
    kit.add_messages([said("My safe holds 4711.", thread="a"), replied("Noted.", minutes=1, thread="a")], scope=ANN)
    host = Host(kit)
    host("What does my safe hold?", "b")
    assert "4711" in host.notes[0][0]
    later = [said("Please forget that.", minutes=2, thread="a"), replied("Gone.", minutes=3, thread="a")]
    kit.capture(later, scope=ANN, thread="a")
    host("Well?", "b")
    assert "4711" not in "".join(host.notes[1])


def test_what_a_host_edits_elsewhere_is_gone_from_notes(kit: MemoryKit) -> None:
    """The edit reaches the ledger with the next capture of that conversation."""
    host = Host(kit)
    host("My daughter is called Emma.", "1", id="m1")
    host("What is my daughter called?", "2")
    assert "Emma" in "".join(host.notes[-1])
    host.graph.update_state(at("1"), {"messages": [HumanMessage("My daughter is called Anna.", id="m1")]})
    host("Thanks.", "1")
    host("Well?", "2")
    assert "Emma" not in "".join(host.notes[-1])


def test_after_an_edit_before_it_a_note_is_not_shown_and_its_facts_are_news(kit: MemoryKit) -> None:
    """The provider has cached something else; and whoever redacted the words may have meant what followed from them."""
    knowing(kit)
    host = Host(kit)
    host("Hello, I am in Oslo.", id="m1")
    host(ASKED)
    host.graph.update_state(at("1"), {"messages": [HumanMessage("Hello.", id="m1")]})
    host(PAINTED)
    (note,) = host.notes[-1]
    assert BICYCLE in note
    assert host.sent[-1][-2] == f"human: {note}"


def test_beside_a_summary_nothing_is_lost_and_facts_are_shown_again(kit: MemoryKit) -> None:
    """What was noted stood before words that the host took out."""
    knowing(kit)
    summary = ScriptedChatModel(script={"": [AIMessage("They talked.")]})
    host = Host(kit, beside=[SummarizationMiddleware(summary, trigger=("messages", 4), keep=("messages", 1))])
    for text in (ASKED, "Hello.", PAINTED):
        host(text)
    assert summary.calls
    assert BICYCLE in "".join(host.notes[-1])


def test_a_fact_that_the_window_lost_is_news_again(kit: MemoryKit) -> None:
    """What counts is what the model is sent, not what the state holds when the run begins."""

    @before_model
    def newest(state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG001 - hooks are called with it
        return {"messages": [RemoveMessage(each.id) for each in state["messages"][:-1]]} if newest_only else None

    newest_only = False
    host = Host(kit, beside=[newest])
    host("I own a scarlet bicycle.")
    kit.summarize(scope=ANN, close=True)
    newest_only = True
    host(ASKED)
    assert "scarlet" in "".join(host.notes[-1])


def test_where_notes_cannot_be_checked_none_is_shown(kit: MemoryKit) -> None:
    """A failing ledger does not say what was forgotten."""
    knowing(kit)
    host = Host(kit)
    host(ASKED)
    with kit.context.background.aside():  # what learns reads memories, too, and would take the failure
        failing = FailingCall(1)
        failing.guard(
            kit.context.parts().archive, {"memories": lambda: OperationalError("SELECT", {}, OSError("disk"))}
        )
        host("Well?")
    assert host.notes[-1] == []
    host("And now?")
    assert BICYCLE in host.notes[-1][0]


def test_a_call_whose_note_cannot_be_checked_leaves_the_next_one_its_note(kit: MemoryKit) -> None:
    """A ledger that stumbles once in a long turn."""
    knowing(kit)

    def stumble(call: ModelCall) -> AIMessage:
        if len(host.notes) == 0:
            failing = FailingCall(1)
            failing.guard(
                kit.context.parts().archive, {"memories": lambda: OperationalError("SELECT", {}, OSError("disk"))}
            )
        return twice(call)

    host = Host(kit, stumble)
    with kit.context.background.aside():  # as above
        host(ASKED)
    assert [bool(notes) for notes in host.notes] == [True, False, True]
    assert host.notes[2] == host.notes[0]


@pytest.mark.slow
def test_too_many_notes_go_by_half_and_what_they_said_may_be_said_again(tmp_path: Path) -> None:
    """A prompt is no archive; and what goes one by one would break the cache at every turn."""
    short = AgentMemorySettings(retrieval=RetrievalPolicy(note_tokens=110, k=1))
    with open_kit(tmp_path, agent=short) as kit:
        for number in range(24):
            kit.save(f"box {number}", f"Ann keeps the {chr(97 + number) * 5} key in box {number}.", scope=ANN)
        host = Host(kit)
        for number in range(24):
            host(f"Where is the {chr(97 + number) * 5} key?")
        counts = [len(notes) for notes in host.notes]
        breaks = sum(after < before for before, after in pairwise(counts))
        assert max(counts) < 20
        assert 1 <= breaks <= 3


def test_notes_in_mind_are_bounded() -> None:
    """A server talks with many."""
    notes = Notes()
    for number in range(1100):
        notes.keep(ANN, f"{number}", {"a": Note("x")})
    assert notes.of(ANN, "0", ["a"]) == {}
    assert notes.of(ANN, "1099", ["a"]) == {"a": "x"}
    for number in range(100):
        notes.keep(ANN, "1099", {f"{number}": Note("y")})
    assert len(notes.of(ANN, "1099", [f"{number}" for number in range(100)])) == 64


# ---------------------------------------------------------------------------------------------- nodes


class State(MessagesState):
    """A host's state."""

    memory: Recalled


def wired(kit: MemoryKit, way: str, sent: list[list[AnyMessage]]) -> Any:
    def call(state: Any) -> dict[str, Any]:
        sent.append(inject(state["messages"], state["memory"]))
        return {"messages": [AIMessage("Noted.")]}

    graph: Any = StateGraph(State, context_schema=Scope)
    if way == "around":
        graph.add_sequence([("model", with_memory(kit, call))])
        graph.add_edge(START, "model")
    else:
        graph.add_sequence([("recall", recall_node(kit)), ("model", call)])
        graph.add_edge(START, "recall")
    return graph.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("way", ["around", "node"])
def test_nodes_keep_notes_where_they_stood_too(kit: MemoryKit, way: str) -> None:
    """`inject` finds them in what the node gave."""
    knowing(kit)
    sent: list[list[AnyMessage]] = []
    graph = wired(kit, way, sent)
    for text in (ASKED, "How is my cat?", PAINTED):
        graph.invoke({"messages": [HumanMessage(text)]}, at("1"), context=ANN)
    texts = [[message.text for message in each] for each in sent]
    assert all(after[: len(before)] == before for before, after in pairwise(texts))
    assert len(shown_ids(texts[0][0])) >= 1


def test_a_host_that_places_memory_itself_gets_all_of_it_each_time(kit: MemoryKit) -> None:
    """Who writes it into a prompt of their own keeps no earlier notes."""
    knowing(kit)
    seen: list[str] = []

    def call(state: Any) -> dict[str, Any]:
        seen.append(f"{state['memory']}")
        return {"messages": [AIMessage("Noted.")]}

    graph: Any = StateGraph(State, context_schema=Scope)
    graph.add_sequence([("model", with_memory(kit, call))])
    graph.add_edge(START, "model")
    compiled = graph.compile(checkpointer=InMemorySaver())
    for text in (ASKED, PAINTED):
        compiled.invoke({"messages": [HumanMessage(text)]}, at("1"), context=ANN)
    assert all(BICYCLE in each for each in seen)


def test_where_earlier_notes_have_no_place_the_newest_says_all() -> None:
    """A host may hand over fewer messages than were recalled for."""
    note = Note("all of it", news="the rest", earlier={"elsewhere": "before"})
    assert [each.text for each in inject([HumanMessage("1")], note)] == ["all of it", "1"]


def test_a_state_of_pydantic_gets_the_text_of_the_newest_note(kit: MemoryKit) -> None:
    """It makes plain text of it, and the cache is served as far as that goes."""
    knowing(kit)
    seen: list[Any] = []

    class Checked(BaseModel):
        messages: list[Any] = []
        memory: str = ""

    def call(state: Checked) -> dict[str, Any]:
        seen.append(inject(state.messages, state.memory))
        return {"messages": [*state.messages, AIMessage("Noted.")]}

    graph: Any = StateGraph(Checked, context_schema=Scope)
    graph.add_sequence([("recall", recall_node(kit)), ("model", call)])
    graph.add_edge(START, "recall")
    graph.compile().invoke({"messages": [HumanMessage(ASKED)]}, at("1"), context=ANN)
    assert BICYCLE in seen[0][0].text


# ------------------------------------------------------------------------------------- what it says


def test_a_request_that_was_carried_out_is_told_by_the_next_note(kit: MemoryKit) -> None:
    """It has no id, and is no record: it broke the whole note."""
    knowing(kit)
    context = kit.recall(ASKED, scope=ANN).context
    head, rest = context.split("\n", 1)
    told = f"{head}\n[] Forgotten at the person's request: 1 memory.\n{rest}"
    assert shown_ids(told) == shown_ids(context)
    (again,) = kit.governance.standing([told], scope=ANN)
    assert again == told


def test_what_stands_is_the_same_to_the_letter(kit: MemoryKit) -> None:
    """Memories, index entries, messages alone and in passages, and what is in mind."""
    kit.add_messages([said("My safe is <red> & old."), said("It holds gold.", minutes=1)], scope=ANN)
    kit.summarize(scope=ANN, close=True)
    kit.working.sense("The red safe is for sale.", scope=ANN, task="t", attention=1)
    knowing(kit)
    context = kit.recall(
        "What of my red safe and bicycle? Does it hold gold?", scope=ANN, depth="messages", task="t"
    ).context
    assert kit.governance.standing([context, ""], scope=ANN, task="t") == (context, "")
    (without_mind,) = kit.governance.standing([context], scope=ANN)
    assert "for sale" in context
    assert "for sale" not in without_mind
    bob = kit.governance.standing([context], scope=Scope(user="bob", agent="remy"))
    assert bob == ("",)


def test_a_host_that_checkpoints_what_was_recalled_keeps_its_text_alone() -> None:
    """Where the key is not declared as `Recalled`, earlier notes must not get there with it."""
    kind, written = JsonPlusSerializer().dumps_typed({"memory": Note("abc", "b", {"x": "EARLIER"})})
    assert JsonPlusSerializer().loads_typed((kind, written)) == {"memory": "abc"}
    assert b"EARLIER" not in written


def test_what_another_agent_lets_read_no_more_is_gone_from_notes(kit: MemoryKit) -> None:
    """A grant that was taken back opens nothing, nor does what it opened a turn ago."""
    scout = Scope(user="ann", agent="scout")
    memory = kit.save("gate", "The gate opens at seven.", scope=scout).memory
    assert memory is not None
    grant = kit.sharing.grant(
        "remy", scope=scout, memory_ids=[memory.memory_id], layers=["long_term"], reason="to visit", actor="Ann"
    )
    host = Host(kit)
    host("When does the gate open?")
    host("Well?")
    kit.sharing.revoke(grant.grant_id, scope=scout, reason="over", actor="Ann")
    host("And now?")
    assert ["at seven" in "".join(notes) for notes in host.notes] == [True, True, False]
