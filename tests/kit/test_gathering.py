"""Turns are gathered until they make up a block: when they are long enough, nobody says more, or the session ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage

from remegraph import (
    AgentMemorySettings,
    CapturePolicy,
    ExtractionPolicy,
    MemoryKit,
    Scope,
    Settings,
    SlicingPolicy,
    SummaryPolicy,
    failpoints,
)
from remegraph.errors import LedgerUnavailableError, ModelUnavailableError
from remegraph.ledger.archive import Archive
from remegraph.models import BackgroundJob, Captured
from remegraph.testing import FrozenClock, InMemoryVectorIndex, ScriptedChatModel
from tests.talk import ANN, NOON, create, digest, proposal

pytestmark = pytest.mark.requirement("F2", "C8")

IDLE = timedelta(minutes=10)
BOB = Scope(user="bob", agent="remy")
PATIENCE = 60


class Home:
    """One home, opened again and again, at the time of one clock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FrozenClock(NOON)
        self.kits: list[MemoryKit] = []

    def open(
        self,
        script: Mapping[str, Any] | None = None,
        *,
        slicing: SlicingPolicy | None = None,
        capture: CapturePolicy | None = None,
        clock: Callable[[], datetime] | None = None,
        **extraction: Any,
    ) -> MemoryKit:
        """Open it with the default trigger; by default workers are elsewhere."""
        settings = Settings(
            home=self.folder,
            slicing=slicing or SlicingPolicy(),
            summary=SummaryPolicy(backoff=0, retries=0, attention=0),
            capture=capture or CapturePolicy(background=False),
            agent=AgentMemorySettings(extraction=ExtractionPolicy(**extraction)),
        )
        model = None if script is None else ScriptedChatModel(script=dict(script))
        self.kits.append(
            MemoryKit.open(
                settings=settings, model=model, embedder=None, index=InMemoryVectorIndex(), clock=clock or self.clock
            )
        )
        return self.kits[-1]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home whose kits are closed in the end."""
    home = Home(tmp_path)
    yield home
    for kit in home.kits:
        kit.close()


def turn(kit: MemoryKit, *texts: str, thread: str = "main", scope: Scope = ANN, first: int = 0) -> Captured:
    """Let a person and an agent speak in turn; one turn about Lisbon, unless something else is said."""
    said: list[AnyMessage] = []
    for at, text in enumerate(texts or ("I live in Lisbon.", "Noted.")):
        kind = HumanMessage if at % 2 == 0 else AIMessage
        said.append(kind(text, id=f"{thread}-{first + at}"))
    return kit.capture(said, scope=scope, thread=thread)


def blocks(kit: MemoryKit, scope: Scope = ANN) -> list[list[str]]:
    """The words of each block."""
    archive, place = kit.context.parts().archive, scope.partition()
    return [
        [
            row.text
            for row in archive.messages(
                [place], thread=block.thread, first_seq=block.first_seq, last_seq=block.last_seq, shown=["asked"]
            )
        ]
        for block in sorted(archive.blocks([place]), key=lambda block: block.first_seq)
    ]


def cut_job(kit: MemoryKit) -> BackgroundJob:
    """The job that will cut what is idle."""
    (job,) = (job for job in kit.admin.jobs() if job.kind == "cut")
    return job


def test_turns_are_gathered_unless_a_deployment_says_otherwise(home: Home) -> None:
    """A call for each turn made memory dearer than the agent."""
    kit = home.open()
    assert ExtractionPolicy().trigger == "gathered"
    assert [turn(kit, first=2 * at).blocks for at in range(5)] == [()] * 5
    assert blocks(kit) == []


def test_a_tail_that_is_long_enough_is_cut_between_two_turns(home: Home) -> None:
    """A long talk is learned as it goes on."""
    kit = home.open(slicing=SlicingPolicy(max_messages=5))
    cuts = [len(turn(kit, f"I like tea {at}.", "So do I.", first=2 * at).blocks) for at in range(5)]
    assert cuts == [0, 0, 1, 0, 1]
    assert [len(each) for each in blocks(kit)] == [4, 4]


def test_the_end_of_a_session_cuts_what_was_said_last(home: Home) -> None:
    """Who knows that a talk is over need not wait."""
    kit = home.open()
    turn(kit)
    assert len(kit.end_session(scope=ANN).blocks) == 1
    home.clock.move(IDLE)
    assert kit.drain().pending == 0
    assert blocks(kit) == [["I live in Lisbon.", "Noted."]]


def test_a_tail_that_is_idle_is_cut_by_a_worker_though_nobody_speaks_again(home: Home) -> None:
    """The last thing that somebody said must not wait for the next."""
    kit = home.open()
    turn(kit)
    assert (cut_job(kit).state, cut_job(kit).due_at) == ("later", NOON + IDLE)
    kit.drain()
    assert blocks(kit) == []
    home.clock.move(IDLE)
    stop = Event()
    worker = Thread(target=kit.work.serve, args=(stop,), kwargs={"concurrency": 1})
    worker.start()
    learned = Event()
    with suppress(TimeoutError):
        _until(lambda: bool(kit.memories(scope=ANN)), learned)
    stop.set()
    worker.join(PATIENCE)
    assert blocks(kit) == [["I live in Lisbon.", "Noted."]]
    assert [memory.content for memory in kit.memories(scope=ANN)] == ["ann: I live in Lisbon."]


def _until(holds: Callable[[], bool], waiting: Event) -> None:
    for _ in range(PATIENCE * 20):
        if holds():
            return
        waiting.wait(0.05)
    raise TimeoutError


def test_the_process_that_captures_wakes_when_a_tail_is_idle(home: Home) -> None:
    """A chat service without workers learns what was said last by itself."""
    kit = home.open(
        capture=CapturePolicy(poll=0.01),
        clock=lambda: datetime.now(NOON.tzinfo),
        idle=timedelta(milliseconds=300),
    )
    assert turn(kit).blocks == ()
    _until(lambda: bool(kit.memories(scope=ANN)), Event())
    assert blocks(kit) == [["I live in Lisbon.", "Noted."]]


def test_a_talk_that_goes_on_is_not_cut_when_its_first_turn_is_old(home: Home) -> None:
    """Idle is who says nothing, not who began long ago."""
    kit = home.open()
    turn(kit)
    home.clock.move(IDLE - timedelta(minutes=1))
    turn(kit, "I like tea.", "So do I.", first=2)
    home.clock.move(timedelta(minutes=2))
    kit.drain()
    assert blocks(kit) == []
    assert (cut_job(kit).state, cut_job(kit).due_at) == ("later", NOON + IDLE - timedelta(minutes=1) + IDLE)
    home.clock.move(IDLE)
    kit.drain()
    assert [len(each) for each in blocks(kit)] == [4]
    assert [job.kind for job in kit.admin.jobs()] == []


def test_the_next_open_after_a_crash_cuts_what_became_idle(home: Home) -> None:
    """A process that died with a talk in it leaves nothing that nobody ever cuts."""
    kit = home.open()
    turn(kit)
    turn(kit, thread="other")
    kit.close()
    home.clock.move(IDLE)
    kit = home.open()
    assert [len(each) for each in blocks(kit)] == [2, 2]
    assert kit.memories(scope=ANN) == ()
    kit.drain()
    assert kit.memories(scope=ANN)


def test_opening_a_home_that_cannot_be_written_still_recalls(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cutting at open is a favour: it must not cost the open."""
    kit = home.open()
    turn(kit)
    kit.close()
    home.clock.move(IDLE)

    def down(*_: Any, **__: Any) -> None:
        raise LedgerUnavailableError("The ledger does not answer.")

    with monkeypatch.context() as broken:
        broken.setattr(Archive, "add_blocks", down)
        kit = home.open()
        assert kit.recall("Lisbon", scope=ANN, depth="messages").messages
        assert kit.context.health.stats()["background_failures"] == 1


def test_the_next_capture_cuts_idle_threads_of_the_same_user_and_no_others(home: Home) -> None:
    """Who begins a new conversation has ended the last one."""
    kit = home.open()
    turn(kit, thread="old")
    turn(kit, scope=BOB, thread="of bob")
    home.clock.move(IDLE)
    report = turn(kit, "I like tea.", "So do I.", thread="new")
    assert len(report.blocks) == 1
    assert blocks(kit) == [["I live in Lisbon.", "Noted."]]
    assert blocks(kit, BOB) == []


def test_an_answer_is_in_the_block_of_its_question_when_the_person_answers_the_next_day(home: Home) -> None:
    """A mere "58." is no memory of anything."""
    kit = home.open()
    turn(kit, "I marry in June.", "How many guests?")
    home.clock.move(timedelta(days=1))
    kit.drain()
    turn(kit, "58.", "Noted.", first=2)
    home.clock.move(IDLE)
    kit.drain()
    assert blocks(kit) == [["I marry in June.", "How many guests?"], ["How many guests?", "58.", "Noted."]]


def test_an_idle_tail_is_cut_before_a_call_that_waits_for_its_result(home: Home) -> None:
    """An approval may take hours; its result still belongs to the call."""
    kit = home.open()
    call = AIMessage("", id="a0", tool_calls=[ToolCall(name="book", args={}, id="c1")])
    kit.capture([HumanMessage("I am allergic to nuts.", id="h0"), call], scope=ANN)
    home.clock.move(IDLE)
    kit.drain()
    assert blocks(kit) == [["I am allergic to nuts."]]
    kit.capture(
        [ToolMessage("booked", id="t0", tool_call_id="c1"), AIMessage("Done.", id="a1"), HumanMessage("Hi.", id="h1")],
        scope=ANN,
    )
    home.clock.move(IDLE)
    kit.drain()
    assert blocks(kit)[1:] == [["", "booked", "Done.", "Hi."]]


def test_with_too_few_turns_an_idle_tail_waits_for_more_and_costs_no_further_look(home: Home) -> None:
    """`min_turns` holds here, too; and a worker does not look at the same greeting for ever."""
    kit = home.open(min_turns=2)
    turn(kit)
    home.clock.move(IDLE)
    kit.drain()
    assert blocks(kit) == []
    assert [job.kind for job in kit.admin.jobs()] == []
    turn(kit, "I like tea.", "So do I.", first=2)
    home.clock.move(IDLE)
    kit.drain()
    assert [len(each) for each in blocks(kit)] == [4]


@pytest.mark.parametrize("request_", ["Please forget that.", "Please don't remember this: my PIN is 4711."])
def test_a_request_to_forget_is_cut_at_once(home: Home, request_: str) -> None:
    """Who asks for something to be gone is not told to wait for a pause."""
    kit = home.open({"DigestAnswer": digest(), "ProposalAnswer": proposal()})
    assert turn(kit, "My salary is 91,000 euros.", "Noted.").blocks == ()
    assert len(turn(kit, request_, "Done.", first=2).blocks) == 1
    assert turn(kit, "I like tea.", "So do I.", first=4).blocks == ()
    assert [len(each) for each in blocks(kit)] == [4]


def test_words_that_are_not_cut_are_found_and_said_to_be_recent(home: Home) -> None:
    """An agent must know that what it was told an hour ago may not be in any memory yet."""
    script = {
        "DigestAnswer": digest("personal:Ann"),
        "ProposalAnswer": proposal(create("Ann lives in Porto.", 1, "I live in Porto")),
    }
    kit = home.open(script)
    turn(kit, "I live in Porto.", "Noted.")
    home.clock.move(timedelta(hours=1))
    kit.drain()
    turn(kit, "I live in Lisbon now, no more in Porto.", "I see.", first=2, thread="new")
    found = kit.recall("Where do I live? Porto, Lisbon", scope=ANN, depth="messages")
    recent = {hit.text: hit.recent for hit in found.messages}
    assert recent["user: I live in Lisbon now, no more in Porto."]
    assert not recent["user: I live in Porto."]
    lines = found.context.splitlines()
    assert [", recent]" in line for line in lines if "Lisbon now" in line] == [True]
    assert {'"status": "recent"' in line for line in lines if "Porto." in line and "Lisbon" not in line} == {False}


def test_what_nobody_ever_cuts_is_not_said_to_be_recent_for_ever(home: Home) -> None:
    """What waits until it is asked for is old in the end."""
    kit = home.open(trigger="manual")
    turn(kit)
    (hit, *_) = kit.recall("Lisbon", scope=ANN, depth="messages").messages
    assert hit.recent
    home.clock.move(timedelta(days=2))
    (hit, *_) = kit.recall("Lisbon", scope=ANN, depth="messages").messages
    assert not hit.recent


def test_while_the_workers_are_behind_idle_tails_wait_and_are_cut_later(home: Home) -> None:
    """While a model is down for a day, each pause must not become a call for the day after; nor is anything forgotten."""
    kit = home.open(
        {"DigestAnswer": [TimeoutError("down")] * 1000}, capture=CapturePolicy(background=False, max_pending=1)
    )
    turn(kit)
    home.clock.move(IDLE)
    turn(kit, "I like tea.", "So do I.", first=2, thread="other")
    assert [len(each) for each in blocks(kit)] == [2]
    home.clock.move(IDLE)
    _drain(kit)
    assert [len(each) for each in blocks(kit)] == [2]
    kit.close()
    kit = home.open({"DigestAnswer": digest()}, capture=CapturePolicy(background=False, max_pending=1))
    home.clock.move(timedelta(hours=2))
    kit.drain()
    home.clock.move(IDLE)
    kit.drain()
    assert [len(each) for each in blocks(kit)] == [2, 2]


def _drain(kit: MemoryKit) -> None:
    with suppress(ModelUnavailableError):
        kit.drain()


def test_a_change_of_the_trigger_leaves_nothing_behind(home: Home) -> None:
    """What was gathered when the settings changed is cut as was decided then."""
    kit = home.open()
    turn(kit)
    kit.close()
    kit = home.open(trigger="session-end")
    home.clock.move(IDLE)
    kit.drain()
    assert [len(each) for each in blocks(kit)] == [2]


@pytest.mark.parametrize(
    "at", ["add.before_commit", "add.after_commit", "blocks.begin", "blocks.before_commit", "blocks.after_commit"]
)
def test_a_crash_anywhere_on_the_way_loses_and_doubles_nothing(home: Home, at: str) -> None:
    """Between recording, cutting and closing the job there are no gaps."""
    kit = home.open()
    turn(kit)

    class Died(BaseException):
        pass

    def dies(name: str) -> None:
        if name == at:
            raise Died

    home.clock.move(IDLE)
    speaks = partial(turn, kit, "I like tea.", "So do I.", first=2, thread="other")
    failpoints.listen(dies)
    try:
        with pytest.raises(Died):
            _ = speaks() if at.startswith("add") else kit.drain()
    finally:
        failpoints.listen(None)
    kit.close()
    home.clock.move(timedelta(hours=1))  # leases of who died are over
    kit = home.open()
    if at == "add.before_commit":
        turn(kit, "I like tea.", "So do I.", first=2, thread="other")
        home.clock.move(IDLE)
    kit.drain()
    told = [["I live in Lisbon.", "Noted."], ["I like tea.", "So do I."]]
    assert blocks(kit) == (told if at.startswith("add") else told[:1])
    assert [job.kind for job in kit.admin.jobs()] == []


def test_threads_of_a_user_are_looked_at_only_where_one_may_be_idle(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user with a thousand threads must not pay for them at each turn."""
    kit, looked, tails = home.open(), list[str | None](), Archive.tails

    def watched(archive: Archive, *given: Any, thread: str | None = None) -> Sequence[Any]:
        looked.append(thread)
        return tails(archive, *given, thread=thread)

    monkeypatch.setattr(Archive, "tails", watched)
    turn(kit, thread="one")
    turn(kit, thread="two")
    home.clock.move(IDLE)
    turn(kit, thread="two", first=2)
    assert looked == ["one", "two", None]
