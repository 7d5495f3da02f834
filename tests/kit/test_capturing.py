"""Write-back: what a host gives again and again is recorded once, and cut where the settings say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

from remegraph import (
    AgentMemorySettings,
    CapturePolicy,
    ConflictError,
    ExtractionPolicy,
    MemoryKit,
    MessageError,
    Scope,
    ScopeError,
    Settings,
    SummaryPolicy,
    failpoints,
)
from remegraph.engine.frame import RECALLED
from remegraph.kit import OpenOptions
from remegraph.models import Captured
from remegraph.testing import FrozenClock, InMemoryVectorIndex, ModelCall, ScriptedChatModel, SequentialIds
from tests.talk import ANN, EACH_TURN, NOON, create, digest, proposal, said

pytestmark = pytest.mark.requirement("F2", "C8")

Open = Callable[..., MemoryKit]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens kits on one home, and closes them in the end; settings by name: `agent` what it says of the agent."""
    kits: list[MemoryKit] = []

    def opened(
        script: Mapping[str, Any] | None = None,
        *,
        extraction: Mapping[str, Any] | None = None,
        max_pending: int = 16,
        agents: Mapping[str, AgentMemorySettings] | None = None,
        **agent: Any,
    ) -> MemoryKit:
        settings = Settings(
            home=tmp_path,
            summary=SummaryPolicy(backoff=0, retries=0),
            capture=CapturePolicy(max_pending=max_pending),
            agent=AgentMemorySettings(
                extraction=ExtractionPolicy(**{"trigger": "per-turn", **(extraction or {})}), **agent
            ),
            agents=dict(agents or {}),
        )
        kits.append(
            MemoryKit.open(
                settings=settings,
                model=None if script is None else ScriptedChatModel(script=dict(script)),
                embedder=None,
                index=InMemoryVectorIndex(),
                clock=FrozenClock(NOON),
                options=OpenOptions(new_id=SequentialIds()),
            )
        )
        return kits[-1]

    yield opened
    for kit in kits:
        kit.close()


def asks(number: int, text: str = "I live in Lisbon.") -> HumanMessage:
    return HumanMessage(text, id=f"h{number}")


def answers(number: int, text: str = "Noted.") -> AIMessage:
    return AIMessage(text, id=f"a{number}")


def turns(count: int) -> list[AnyMessage]:
    """A thread of so many turns, as a LangGraph state holds it."""
    return [each for number in range(count) for each in (asks(number), answers(number))]


def texts(kit: MemoryKit, scope: Scope = ANN, thread: str = "main") -> list[str]:
    return [message.text for message in kit.messages(thread, scope=scope)]


def counted(report: Captured) -> tuple[int, int, int, int]:
    return report.added, report.known, report.revised, len(report.blocks)


def spans(kit: MemoryKit, scope: Scope = ANN) -> list[tuple[int, int]]:
    """The first and the last place of the messages of each block."""
    return [(block.first_seq, block.last_seq) for block in kit.context.parts().archive.blocks([scope.partition()])]


ASKED = {"trigger": "manual"}
"""Nothing happens by itself: for tests that look at the ledger only."""


# ----------------------------------------------------------------------------------------- what is recorded


def test_a_thread_that_is_given_again_and_again_is_recorded_once(opened: Open) -> None:
    """Hosts hold the whole conversation and give it after every turn, also when a run is replayed."""
    kit = opened(extraction=ASKED)
    assert counted(kit.capture(turns(2), scope=ANN)) == (4, 0, 0, 0)
    assert counted(kit.capture(turns(2), scope=ANN)) == (0, 4, 0, 0)
    assert counted(kit.capture(turns(3), scope=ANN)) == (2, 4, 0, 0)
    assert counted(kit.capture(turns(4)[6:], scope=ANN)) == (2, 0, 0, 0)
    assert [message.message_id for message in kit.messages(scope=ANN)] == "h0 a0 h1 a1 h2 a2 h3 a3".split()


async def test_the_async_twin_records_the_same(opened: Open) -> None:
    """Agents run async, and resume sync."""
    kit = opened(extraction=ASKED)
    assert counted(await kit.acapture(turns(2), scope=ANN)) == (4, 0, 0, 0)
    assert counted(kit.capture(turns(2), scope=ANN)) == (0, 4, 0, 0)
    assert not (await kit.aend_session("main", scope=ANN)).blocks


def test_a_message_that_the_host_replaced_is_recorded_beside_the_first_and_shown_alone(opened: Open) -> None:
    """The ledger never forgets what was said, and never misses what it became; readers see what the host has."""
    kit = opened(extraction=ASKED)
    kit.capture([asks(0, "I live in Lisbon."), answers(0)], scope=ANN)
    edited = [asks(0, "I live in Porto."), answers(0)]
    assert counted(kit.capture(edited, scope=ANN)) == (1, 1, 1, 0)
    assert counted(kit.capture(edited, scope=ANN)) == (0, 2, 0, 0)
    revision = kit.messages(scope=ANN)[-1]
    assert (revision.text, revision.extra["revises"]) == ("I live in Porto.", "h0")
    assert texts(kit)[:1] != ["I live in Lisbon."]
    assert counted(kit.capture([asks(0, "I live in Lisbon.")], scope=ANN)) == (0, 1, 0, 0)
    assert texts(kit)[0] == "I live in Lisbon."
    assert "I live in Porto." not in texts(kit)
    assert counted(kit.capture([asks(0, "I live in Madeira.")], scope=ANN)) == (1, 0, 1, 0)
    assert not {"I live in Lisbon.", "I live in Porto."} & {*texts(kit)}


def test_what_was_learned_from_the_older_form_alone_goes_with_it(opened: Open) -> None:
    """What rests on other words, too, stays."""
    kit = opened()
    kit.capture([asks(0, "My daughter is called Emma."), answers(0), asks(1, "I live in Rome."), answers(1)], scope=ANN)
    kit.drain()
    kit.capture([asks(0, "My daughter is called Anna.")], scope=ANN)
    kit.drain()
    known = [memory.content for memory in kit.memories(scope=ANN, statuses=["active"])]
    assert any("Rome" in each for each in known)
    assert not any("Emma" in each for each in known)


def test_a_crash_between_hiding_the_older_form_and_recording_the_newer_is_made_good(opened: Open) -> None:
    """In between, nothing stale is shown; the next capture records what the host has."""

    class CrashedError(Exception):
        pass

    def reached(name: str) -> None:
        if name == "add.begin":
            raise CrashedError

    kit = opened(extraction=ASKED)
    kit.capture([asks(0, "I live in Lisbon."), answers(0)], scope=ANN)
    edited = [asks(0, "I live in Porto."), answers(0)]
    failpoints.listen(reached)
    try:
        with pytest.raises(CrashedError):
            kit.capture(edited, scope=ANN)
    finally:
        failpoints.listen(None)
    assert "I live in Lisbon." not in texts(kit)
    assert counted(kit.capture(edited, scope=ANN)) == (1, 1, 1, 0)
    assert texts(kit)[-1] == "I live in Porto."


def test_words_that_are_withdrawn_while_they_are_learned_from_are_read_again(opened: Open) -> None:
    """The model has seen what was edited meanwhile: what it says of that is not kept, and nothing waits for another day."""
    edits: list[list[Any]] = [[asks(0, "I live in Porto."), answers(0)]]
    calls: list[str] = []

    def summarised(call: ModelCall) -> dict[str, Any]:
        calls.append(call.text)
        for edit in (edits.pop(),) if edits else ():
            kit.capture(edit, scope=ANN)
        return digest(summary="Ann lives in Lisbon." if "Lisbon" in call.text else "Ann lives somewhere.")

    kit = opened({"DigestAnswer": summarised}, extraction=ASKED)
    kit.capture([asks(0, "I live in Lisbon."), answers(0)], scope=ANN)
    report = kit.summarize(scope=ANN, close=True)
    assert report.pending == 0
    assert len(report.blocks) == len({*report.blocks})
    assert "Lisbon" in calls[0]
    assert "Lisbon" not in calls[-1]
    assert not any("Lisbon" in entry.summary for entry in kit.sources.blocks(scope=ANN))


def test_a_tool_call_that_a_person_edited_is_a_revision(opened: Open) -> None:
    """Human review changes the arguments of a call and keeps the id and the empty text of its message."""
    kit = opened(extraction=ASKED)
    for amount, revised in ((900, 0), (90, 1), (90, 0)):
        call = ToolCall(name="pay", args={"amount": amount}, id="c1")
        assert kit.capture([AIMessage("", id="a0", tool_calls=[call])], scope=ANN).revised == revised
    assert [message.tool_calls[0].args["amount"] for message in kit.messages(scope=ANN)] == [90]
    assert len(kit.context.parts().archive.recorded(ANN.partition())) == 2


def test_what_a_host_notes_on_a_message_later_is_no_revision(opened: Open) -> None:
    """Usage, names and finish reasons come after the words, and streamed chunks become messages."""
    kit = opened(extraction=ASKED)
    kit.capture([AIMessageChunk(content="Noted.", id="a0")], scope=ANN)
    later = AIMessage("Noted.", id="a0", name="remy", response_metadata={"finish_reason": "stop"})
    assert counted(kit.capture([later], scope=ANN)) == (0, 1, 0, 0)


def test_one_id_with_two_contents_loses_neither(opened: Open) -> None:
    """Hosts that number messages anew in each thread use ids twice: that is no edit."""
    kit = opened(extraction=ASKED)
    given = [asks(0, "one"), asks(0, "two"), asks(0, "one")]
    assert counted(kit.capture(given, scope=ANN)) == (2, 1, 1, 0)
    assert counted(kit.capture([asks(0, "three")], scope=ANN, thread="other")) == (1, 0, 1, 0)
    assert texts(kit) == ["one", "two"]
    assert [message.text for message in kit.messages("other", scope=ANN)] == ["three"]


def test_messages_without_ids_are_told_by_their_place(opened: Open) -> None:
    """A second "yes" is a second message; a replay of both is none."""
    kit = opened(extraction=ASKED)
    whole: list[Any] = ["Yes.", {"role": "assistant", "content": "Sure?"}, "Yes.", HumanMessage("Yes.")]
    assert counted(kit.capture(whole[:2], scope=ANN)) == (2, 0, 0, 0)
    assert counted(kit.capture([SystemMessage("Be kind."), *whole], scope=ANN)) == (2, 2, 0, 0)
    assert counted(kit.capture(whole, scope=ANN)) == (0, 4, 0, 0)
    assert counted(kit.capture(whole[:1], scope=ANN, thread="other")) == (1, 0, 0, 0)
    assert texts(kit) == ["Yes.", "Sure?", "Yes.", "Yes."]


SUMMARY = {"lc_source": "summarization"}


@pytest.mark.parametrize(
    "message",
    [
        SystemMessage("You are Remy.", id="x"),
        {"role": "developer", "content": "You are Remy."},
        HumanMessage("So far: ...", id="x", additional_kwargs=SUMMARY),
        HumanMessage("So far: ...", additional_kwargs=SUMMARY),
        HumanMessage("<memory>", id="x", additional_kwargs={RECALLED: ["m1"]}),
        {"type": "human", "content": "<memory>", "additional_kwargs": {RECALLED: []}},
        RemoveMessage(id="h0"),
    ],
    ids=["system", "developer", "summary", "summary without id", "recalled", "recalled mapping", "removal"],
)
def test_what_nobody_said_is_not_recorded(opened: Open, message: Any) -> None:
    """Instructions and summaries are no memories, and what was recalled must not be learned again."""
    kit = opened()
    assert kit.capture([message], scope=ANN) == Captured()
    assert kit.messages(scope=ANN) == ()


def test_the_result_of_a_tool_that_recalls_stays_with_its_call(opened: Open) -> None:
    """The ledger is lossless: a call without its result could not be shown to any model again."""
    kit = opened(extraction=ASKED)
    call = ToolCall(name="search_memory", args={"query": "home"}, id="c1")
    result = ToolMessage("<memory>", id="t0", tool_call_id="c1", additional_kwargs={RECALLED: ["m1"]})
    assert kit.capture([AIMessage("", id="a0", tool_calls=[call]), result], scope=ANN).added == 2


def test_nothing_new_is_no_error(opened: Open) -> None:
    """A run may be interrupted before anybody said anything."""
    kit = opened()
    assert kit.capture([], scope=ANN) == kit.end_session("main", scope=ANN) == Captured()
    assert kit.admin.stats()["partitions"] == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([asks(0), 7], "Message 1: A value of type int"),
        ([asks(0), {"role": "ghost", "content": "boo"}], "Message 1: Field 'role'"),
        ([asks(0), HumanMessage("hi", id="a\x00b")], "Message 1: Field 'message_id'"),
        ([asks(0), HumanMessage("hi", id="\ud800")], "Message 1: Field 'message_id'"),
        ("hello", "come as a list"),
    ],
)
def test_bad_messages_are_refused_and_nothing_is_recorded(opened: Open, given: Any, told: str) -> None:
    """Half a turn in the ledger would be taken for the whole."""
    kit = opened()
    with pytest.raises(MessageError, match=told):
        kit.capture(given, scope=ANN)
    with pytest.raises(ScopeError):
        kit.capture([asks(0)], scope=None)  # type: ignore[arg-type]
    assert kit.admin.stats()["messages"] == 0


def test_another_process_that_was_faster_costs_nothing(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers of a service may hold the same thread; the later one finds the messages there."""
    kit, other = opened(extraction=ASKED), opened(extraction=ASKED)
    archive = kit.context.parts().archive
    look = archive.recorded

    def late(*args: Any, **options: Any) -> Mapping[str, Any]:
        found = look(*args, **options)
        monkeypatch.undo()
        other.context.clock.move(timedelta(seconds=1))  # type: ignore[attr-defined]
        other.capture(turns(1), scope=ANN)
        return found

    monkeypatch.setattr(archive, "recorded", late)
    assert counted(kit.capture(turns(2), scope=ANN)) == (2, 2, 0, 0)
    assert len(texts(kit)) == 4
    monkeypatch.setattr(archive, "recorded", lambda *_, **__: {})
    with pytest.raises(ConflictError, match="h0"):
        kit.capture([asks(0, "other")], scope=ANN)


# ------------------------------------------------------------------------------------------------ triggers


def test_a_turn_is_cut_when_it_is_answered_and_not_before(opened: Open) -> None:
    """A question without its answer, or a call without its result, would be remembered as half a turn."""
    kit = opened()
    call = ToolCall(name="search", args={}, id="c1")
    thread: list[AnyMessage] = [asks(0)]
    for message, blocks in (
        (None, 0),
        (AIMessage("", id="a0", tool_calls=[call]), 0),
        (ToolMessage("found", id="t0", tool_call_id="c1"), 0),
        (answers(1), 1),
        (asks(2), 0),
    ):
        thread += [message] if message else []
        report = kit.capture(thread, scope=ANN)
        assert len(report.blocks) == blocks
        assert report.waiting or not blocks
    assert spans(kit) == [(1, 4)]


def test_a_turn_whose_call_never_came_back_is_cut_with_the_next(opened: Open) -> None:
    """A tool that crashed the run must not hold back all that follows."""
    kit = opened()
    lost = AIMessage("", id="a0", tool_calls=[ToolCall(name="search", args={}, id="c1")])
    assert kit.capture([asks(0), lost], scope=ANN).blocks == ()
    assert len(kit.capture([asks(0), lost, asks(1), answers(1)], scope=ANN).blocks) == 1
    kit.drain()
    assert kit.capture(turns(3)[4:], scope=ANN).blocks


def test_turns_are_gathered_up_to_min_turns(opened: Open) -> None:
    """Each extraction costs a call; who wants fewer sets how many turns one pays for."""
    kit = opened(extraction={"min_turns": 3})
    assert [len(kit.capture(turns(count), scope=ANN).blocks) for count in (1, 2, 3, 4, 5, 6)] == [0, 0, 1, 0, 0, 1]


def test_a_crash_between_recording_and_cutting_is_made_good_by_the_next_capture(opened: Open) -> None:
    """What is recorded and not cut must not wait for the next thing that somebody says."""
    kit = opened()
    kit.context.parts().archive.add_messages(ANN.partition(), [said("I live in Lisbon.", message_id="h0")], NOON)
    assert len(kit.capture([asks(0), answers(0)], scope=ANN).blocks) == 1
    kit.drain()
    kit.context.parts().archive.add_messages(ANN.partition(), [said("I like tea.", message_id="h1")], NOON)
    assert kit.capture([asks(0), answers(0), asks(1, "I like tea.")], scope=ANN).blocks == ()
    assert len(kit.capture([asks(1, "I like tea."), answers(1)], scope=ANN).blocks) == 1


def test_at_session_end_waits_for_the_end_of_the_session(opened: Open) -> None:
    """One extraction over the whole talk knows more, and costs less, than one for each turn."""
    kit = opened(extraction={"trigger": "session-end"})
    assert counted(kit.capture(turns(3), scope=ANN)) == (6, 0, 0, 0)
    assert len(kit.end_session("main", scope=ANN).blocks) == 1
    assert kit.end_session("main", scope=ANN).blocks == ()
    assert kit.drain().pending == 0
    assert [memory.content for memory in kit.memories(scope=ANN)] == ["ann: I live in Lisbon."]


def test_a_session_with_too_few_turns_is_left_and_joins_what_is_said_next(opened: Open) -> None:
    """A hello is not worth a call; it may be worth one together with what follows."""
    kit = opened(extraction={"trigger": "session-end", "min_turns": 2})
    kit.capture(turns(1), scope=ANN)
    assert kit.end_session("main", scope=ANN) == Captured()
    kit.capture(turns(2), scope=ANN)
    kit.end_session("main", scope=ANN)
    assert spans(kit) == [(1, 4)]


def test_manual_means_when_asked(opened: Open) -> None:
    """Who decides for themselves when money is spent finds nothing spent."""
    kit = opened(extraction=ASKED)
    for report in (kit.capture(turns(1), scope=ANN), kit.end_session("main", scope=ANN)):
        assert (report.blocks, report.waiting) == ((), False)
    kit.add_messages([said("I like tea.", minutes=600)], scope=ANN)
    assert kit.admin.stats()["jobs_asleep"] == 1
    assert len(kit.drain().blocks) == 1
    assert kit.admin.stats()["jobs_asleep"] == 0


def test_what_is_knowledge_learns_nothing_from_talk(opened: Open) -> None:
    """An agent over a handbook must not rewrite it with what its users say."""
    kit = opened(usage="knowledge")
    assert counted(kit.capture(turns(1), scope=ANN)) == (2, 0, 0, 0)
    assert kit.end_session("main", scope=ANN) == Captured()
    assert kit.admin.stats()["jobs_waiting"] == 0


def test_what_is_switched_off_records_nothing_and_says_so(opened: Open) -> None:
    """Off means off: nothing of a user is kept."""
    kit = opened(agents={"remy": AgentMemorySettings(enabled=False)})
    off = Captured(enabled=False)
    assert kit.capture(turns(1), scope=ANN) == kit.end_session("main", scope=ANN) == off
    assert kit.admin.stats()["messages"] == 0
    assert kit.capture(turns(1), scope=Scope(user="ann", agent="other")).added == 2


def test_agents_that_share_a_library_learn_for_each_other(opened: Open) -> None:
    """What one agent is told, the user's other agents know; messages without ids do not collide."""
    shared = EACH_TURN.evolve(library="shared")
    kit = opened(agents={"remy": shared, "rosa": shared})
    remy, rosa, own = (Scope(user="ann", agent=name) for name in ("remy", "rosa", "olaf"))
    assert [kit.context.library(scope).agent for scope in (remy, rosa, own)] == [None, None, "olaf"]
    for scope in (remy, rosa, own):
        assert kit.capture(["I live in Lisbon.", {"role": "assistant", "content": "Noted."}], scope=scope).added == 2
    kit.drain()
    assert kit.recall("Where does she live? Lisbon", scope=rosa).memories
    home = kit.context.library(rosa)
    assert [len(kit.messages(scope=scope)) for scope in (home, own)] == [4, 2]


# ------------------------------------------------------------------------------------------- back-pressure


def test_a_backlog_grows_by_messages_not_by_turns(opened: Open) -> None:
    """While the model is down for a day, a turn each minute must not become a call each for the day after."""
    down: Sequence[Any] = [TimeoutError("down")] * 1000
    kit = opened({"DigestAnswer": down}, max_pending=3)
    cuts = [len(kit.capture(turns(count)[-2:], scope=ANN).blocks) for count in range(1, 61)]
    assert cuts[:4] == [1, 1, 1, 0]
    assert sum(cuts) == kit.admin.stats()["blocks_pending"] == 3 + 114 // 24
    assert len(texts(kit)) == 120


def test_after_a_backlog_nothing_is_missing(opened: Open) -> None:
    """What was not cut in the crush is cut and learned when it is over."""
    fact = proposal(create("Ann lives in Lisbon.", 1, "I live in Lisbon"))
    answers_ = {"DigestAnswer": digest("personal:Ann"), "ProposalAnswer": fact}
    kit = opened(
        {**answers_, "DigestAnswer": [TimeoutError("down")] * 6 + [digest("personal:Ann")] * 50}, max_pending=1
    )
    for count in range(1, 6):
        kit.capture(turns(count)[-2:], scope=ANN)
    kit.close()
    again = opened(answers_)
    again.context.clock.move(timedelta(hours=2))  # type: ignore[attr-defined]
    again.drain()
    assert len(again.capture(turns(6), scope=ANN).blocks) == 1
    assert [seq for first, last in spans(again) for seq in range(first, last + 1)] == list(range(1, 13))
