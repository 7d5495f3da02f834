"""Forgetting: what goes along and what stays, who decides it, and the turn in which it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage

from remegraph import InputError, Memory, MemoryKit, NotFoundError, Scope
from remegraph.adapters import MemoryMiddleware
from remegraph.models import Forgotten, Subject
from remegraph.models.remnants import MARK
from remegraph.testing import ScriptedChatModel
from tests.talk import ANN, open_kit, replied, said

pytestmark = [pytest.mark.usefixtures("setup"), pytest.mark.requirement("X14")]

PAY = "My salary is 91,000 euros."


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[MemoryKit]:
    with open_kit(tmp_path) as opened:
        yield opened


def told(kit: MemoryKit, *messages: Any, scope: Scope = ANN) -> None:
    kit.add_messages(messages, scope=scope)
    kit.summarize(scope=scope, close=True)


def holding(kit: MemoryKit, words: str) -> Memory:
    return next(memory for memory in kit.memories(scope=ANN) if words in memory.content and memory.live)


def shown(kit: MemoryKit) -> str:
    rows = [message.text for message in kit.sources.retrieve_message(scope=ANN)]
    rows += [memory.content for memory in kit.memories(scope=ANN)]
    rows += [entry.summary for entry in kit.sources.blocks(scope=ANN)]
    return "\n".join([*rows, kit.recall("salary 91,000 tea", scope=ANN, depth="messages").context])


def test_what_would_go_along_is_shown_first_and_may_be_left(kit: MemoryKit) -> None:
    """A person sees each statement of the same before it goes, and keeps what is another matter."""
    told(kit, said(PAY), said("The castle cost 91,000 euros.", minutes=1, thread="castle"))
    memory = holding(kit, "salary")
    look = kit.forget(memory.memory_id, scope=ANN, dry_run=True)
    assert (look.done, look.memory.status) == (False, "active")
    assert {words for passage in look.passages for words in passage.words} == {PAY, "The castle cost 91,000 euros."}
    (castle,) = [passage for passage in look.passages if passage.thread == "castle"]
    left = [castle.message_id, *(each.memory_id for each in look.along)]
    done = kit.forget(memory.memory_id, scope=ANN, leave=left)
    assert done.along == ()
    assert "castle cost 91,000" in shown(kit)
    assert PAY not in shown(kit)


def test_a_date_and_common_words_take_nothing_along(kit: MemoryKit) -> None:
    """Of one woman 31 true memories were lost, as they said "Stand 12. Juni 2025" or "nicht mit", too."""
    quarrel = (
        "Birgit redet seit dem Streit am Sonntag, 8. Juni 2025, nicht mit Leonie: Am Telefon nannte sie Leonie "
        "Erbschleicherin, weil Leonie das Konto der Mutter macht (Stand 12. Juni 2025)."
    )
    others = [
        "Ferdl ist Leonies Cousin; er hat seit 12. Juni 2025 ihren Fabia.",
        "Jakob hat am 7. Juni Geburtstag; 2025 wurde er 14.",
        "Der Hausarzt ist Dr. Prassl (nicht mit der Neurologin Wutte zu verwechseln).",
        "Leonie hat am Donnerstag um 16 Uhr Klarinettenstunde.",
    ]
    for statement in (quarrel, *others):
        kit.save("note", statement, scope=ANN)
    done = kit.forget(holding(kit, "Erbschleicherin").memory_id, scope=ANN)

    assert done.along == ()
    assert {memory.content for memory in kit.memories(scope=ANN) if memory.live} == set(others)
    assert "Erbschleicherin" not in shown(kit)


def test_forgetting_again_changes_nothing_and_restoring_undoes_all_of_it(kit: MemoryKit) -> None:
    """One call each way."""
    told(kit, said(f"I like tea. {PAY}"), replied("91,000, noted.", minutes=1))
    before, memory = shown(kit), holding(kit, "salary")
    first = kit.forget(memory.memory_id, scope=ANN)
    assert (first.done, len(first.passages)) == (True, 2)
    events = kit.admin.stats()["events"]
    assert kit.forget(memory.memory_id, scope=ANN) == Forgotten(memory=first.memory, done=True)
    assert not kit.forget(memory.memory_id, scope=ANN, dry_run=True).done
    assert kit.admin.stats()["events"] == events
    assert "91,000" not in shown(kit)
    assert kit.restore(memory.memory_id, scope=ANN).content == memory.content
    assert shown(kit) == before
    assert kit.admin.verify().healthy


def test_what_goes_along_comes_back_with_any_of_it(kit: MemoryKit) -> None:
    """Whichever of the statements a person finds again."""
    told(kit, said(PAY), said("I earn 91k a year.", minutes=1))
    one, other = holding(kit, "salary"), holding(kit, "91k")
    kit.forget(one.memory_id, scope=ANN)
    assert {memory.status for memory in kit.memories(scope=ANN)} == {"deleted"}
    kit.restore(other.memory_id, scope=ANN)
    assert {memory.status for memory in kit.memories(scope=ANN)} == {"active"}


def test_what_rests_on_words_in_part_stays_without_them(kit: MemoryKit) -> None:
    """A memory that two messages bear out loses one of them, and gets it back."""
    told(kit, said("I live in Porto."))
    told(kit, said("I live in Porto.", minutes=1, thread="b"))
    home = holding(kit, "Porto")
    kit.save("pay", "Ann's safe word is Porto.", scope=ANN)
    kit.forget(holding(kit, "safe word").memory_id, scope=ANN, leave=[home.memory_id])
    assert holding(kit, "Porto").memory_id == home.memory_id


def test_an_agent_that_forgets_by_its_tool_leaves_nothing_of_it_in_the_turn(kit: MemoryKit) -> None:
    """The request, the search, the call and the answer of that turn all say what shall be forgotten."""
    told(kit, said(PAY))
    memory = holding(kit, "salary")
    call = {"name": "forget_memory", "args": {"memory_id": memory.memory_id}, "id": "c1", "type": "tool_call"}
    search = {"name": "search_memory", "args": {"query": "salary 91,000"}, "id": "c0", "type": "tool_call"}
    steps = [AIMessage("", tool_calls=[search]), AIMessage("", tool_calls=[call]), AIMessage("I forgot the 91,000.")]
    agent = create_agent(ScriptedChatModel(script={"": steps}), middleware=[MemoryMiddleware(kit, ANN)])
    asked = HumanMessage("Please forget my salary, the 91,000. How is the weather?")
    agent.invoke({"messages": [asked]}, {"configurable": {"thread_id": "t"}})
    assert "91,000" not in shown(kit)
    assert "How is the weather?" in shown(kit)
    assert "91,000" not in "".join(message.to_json() for message in kit.messages("t", scope=ANN))


def test_an_agent_that_repeats_it_later_is_not_heard_and_a_person_who_tells_it_again_is(kit: MemoryKit) -> None:
    """An echo brings nothing back; a person's word is new."""
    told(kit, said(PAY))
    kit.forget(holding(kit, "salary").memory_id, scope=ANN)
    kit.capture([said("Hello.", thread="t"), replied("You earn 91,000, I think.", thread="t")], scope=ANN, thread="t")
    assert "91,000" not in shown(kit)
    told(kit, said("My salary is 91,000 euros, by the way.", minutes=5, thread="u"))
    assert "91,000" in shown(kit)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (PAY, "My salary is 91,000 euros again."),
        ("I live in Bergen.", "I live in Bergen now, near the harbour."),
        ("我家住在杭州西湖区。", "我家又住在杭州西湖区了。"),
        ("我家住喺香港中環。", "我家而家又住喺香港中環。"),
    ],
)
def test_an_agent_may_repeat_what_a_person_says_again(kit: MemoryKit, before: str, after: str) -> None:
    """Their word is new, so an answer that takes it up is no echo of what is forgotten: in the same turn and in later ones."""
    told(kit, said(before))
    (memory,) = kit.memories(scope=ANN)
    kit.forget(memory.memory_id, scope=ANN)
    turn = [said(after, minutes=5, thread="u", message_id="m1"), replied(f"So: {after}", minutes=5, thread="u")]
    kit.capture(turn, scope=ANN, thread="u")
    later = [said("Well?", minutes=6, thread="u"), replied(f"As you said: {after}", minutes=6, thread="u")]
    kit.capture(later, scope=ANN, thread="u")
    heard = [message.text for message in kit.messages("u", scope=ANN)]
    assert heard == [after, f"So: {after}", "Well?", f"As you said: {after}"]


@pytest.mark.parametrize("more", ["My salary is 91,000 euros.", "My locker code is 4471."])
def test_what_a_person_says_again_in_part_opens_no_more_than_that(kit: MemoryKit, more: str) -> None:
    told(kit, said(f"{PAY} My locker code is 4471."))
    (memory,) = kit.memories(scope=ANN)
    kit.forget(memory.memory_id, scope=ANN)
    turn = [said(more, minutes=5, thread="u"), replied(f"{PAY} The locker code is 4471.", minutes=5, thread="u")]
    kit.capture(turn, scope=ANN, thread="u")
    answer = kit.messages("u", scope=ANN)[-1].text
    assert ("91,000" in answer, "4471" in answer) == ("91,000" in more, "4471" in more)


def test_a_request_to_forget_says_nothing_again(kit: MemoryKit) -> None:
    """What it names is withheld with it, and stays so in the answer."""
    told(kit, said(PAY))
    kit.forget(holding(kit, "salary").memory_id, scope=ANN)
    asked = said(f"Please forget it. {PAY}", minutes=5, thread="u")
    kit.capture([asked, replied(f"Forgotten: {PAY}", minutes=5, thread="u")], scope=ANN, thread="u")
    later = [said("Well?", minutes=6, thread="u"), replied(f"Hm. {PAY}", minutes=6, thread="u")]
    kit.capture(later, scope=ANN, thread="u")
    assert "91,000" not in shown(kit)


def test_what_is_forgotten_is_traced_to_the_day_it_was_withheld(kit: MemoryKit) -> None:
    """A trace that ends says why."""
    told(kit, said(PAY))
    memory = holding(kit, "salary")
    kit.forget(memory.memory_id, scope=ANN)
    trace = kit.trace(memory.memory_id, scope=ANN)
    assert trace.memory.content == MARK
    assert any("withheld on 2025-03-04" in reason for reason in trace.missing)
    assert {message.text for message in trace.messages} == {MARK}


def test_what_is_erased_after_it_was_forgotten_is_gone(kit: MemoryKit) -> None:
    """Withheld rows are a person's, too."""
    told(kit, said(PAY))
    memory = holding(kit, "salary")
    kit.forget(memory.memory_id, scope=ANN)
    kit.admin.erase(Subject(user="ann"))
    with pytest.raises(NotFoundError):
        kit.restore(memory.memory_id, scope=ANN)
    assert kit.sources.retrieve_message(scope=ANN) == ()


def test_what_an_agent_saved_goes_with_the_value_that_its_call_gave(kit: MemoryKit) -> None:
    """A call says the same twice: in a sentence, and as the value of a slot."""
    home = {"key": "home", "content": "Ann lives in Milan.", "slot": "ann:lives_in", "value": "Milan"}
    call = {"name": "save_memory", "args": home, "id": "c1", "type": "tool_call"}
    steps = [AIMessage("", tool_calls=[call]), AIMessage("Saved.")]
    agent = create_agent(ScriptedChatModel(script={"": steps}), middleware=[MemoryMiddleware(kit, ANN)])
    agent.invoke({"messages": [HumanMessage("Please save my new town.")]}, {"configurable": {"thread_id": "t"}})
    kit.forget(holding(kit, "Milan").memory_id, scope=ANN)
    assert "Milan" not in "".join(message.to_json() for message in kit.messages("t", scope=ANN))


def test_a_conversation_with_an_erased_request_is_recorded_on(kit: MemoryKit) -> None:
    """A host sends the whole thread at each turn: what was erased stays away, and what is new is recorded."""
    erased = [said("My PIN is 7731.", thread="t"), said("Please forget that.", minutes=1, thread="t")]
    kit.capture(erased, scope=ANN, thread="t")
    kit.admin.erase(Subject(user="ann"))
    kit.capture([*erased, said("I live in Rome.", minutes=2, thread="t")], scope=ANN, thread="t")
    assert [message.text for message in kit.messages("t", scope=ANN)] == ["I live in Rome."]


def test_ids_to_leave_are_texts(kit: MemoryKit) -> None:
    """Bad input is refused at the door."""
    told(kit, said(PAY))
    with pytest.raises(InputError, match="leave"):
        kit.forget(holding(kit, "salary").memory_id, scope=ANN, leave=[7])  # type: ignore[list-item]
    assert PAY in shown(kit)
