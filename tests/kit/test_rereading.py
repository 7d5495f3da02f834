"""A model switched on over a home that was written without one: what waits is read again, newest first, and nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from remegraph import Budget, CapturePolicy, InputError, MemoryKit, RecallFilter, Settings, SummaryPolicy
from remegraph.failpoints import listen
from remegraph.kit import OpenOptions
from remegraph.models import MOVES, Memory
from remegraph.testing import (
    Answer,
    FrozenClock,
    InMemoryVectorIndex,
    ModelCall,
    ScriptedChatModel,
    SequentialIds,
    refusal,
)
from tests.talk import (
    ANN,
    EACH_TURN,
    NOON,
    by_topic,
    change,
    create,
    digest,
    model_of,
    open_kit,
    proposal,
    replied,
    said,
)

ROME = "I live in Rome, near the old harbour."
CHESS = "On Sundays I play chess in the park."
BERLIN = "I have moved to Berlin and live there now."
TALK = (ROME, CHESS, BERLIN)
DAY = 24 * 60
"""Minutes."""


def without_a_model(home: Path, *texts: str) -> None:
    """Write a home without a model: each text is said on a day of its own, and is a block of its own."""
    with open_kit(home) as kit:
        for day, text in enumerate(texts or TALK):
            kit.add_messages([said(text, minutes=day * DAY, message_id=f"said {day}")], scope=ANN)
            kit.summarize(scope=ANN, close=True)


def learned(call: ModelCall) -> Answer:
    """Make a memory of the text of the talk that is in the block."""
    _, _, block = call.text.rpartition("Block:")
    if ROME in block:
        return proposal(place("Ann lives in Rome.", "I live in Rome", "Rome"))
    if CHESS in block:
        return proposal(create("Ann plays chess on Sundays.", 1, "I play chess"))
    return proposal(place("Ann lives in Berlin.", "live there now", "Berlin")) if BERLIN in block else proposal()


def place(content: str, quote: str, value: str) -> dict[str, Any]:
    return create(content, 1, quote, slot="lives_in", value=value)


def script(answer: Any = learned, **steps: Any) -> dict[str, Any]:
    return {"DigestAnswer": digest("personal:Ann"), "ProposalAnswer": answer} | steps


@contextmanager
def reopened(
    home: Path, model: ScriptedChatModel, *, clock: FrozenClock | None = None, reread: int = 0
) -> Iterator[MemoryKit]:
    settings = Settings(
        home=home,
        summary=SummaryPolicy(backoff=0, reviser="rules", attention=0),
        capture=CapturePolicy(background=False, reread=reread),
        agent=EACH_TURN,
    )
    with MemoryKit.open(
        settings=settings,
        model=model,
        embedder=None,
        index=InMemoryVectorIndex(),
        clock=clock or FrozenClock(NOON),
        options=OpenOptions(new_id=SequentialIds()),
    ) as kit:
        yield kit


def talk(kit: MemoryKit, text: str, *, day: int) -> None:
    """Let a turn be captured, as a host does."""
    kit.capture([said(text, minutes=day * DAY), replied("I see.", minutes=day * DAY + 1)], scope=ANN)


class _Death(BaseException):
    """Ends a run as a kill does: nothing catches it."""


@contextmanager
def dying(*, at: str, after: int) -> Iterator[None]:
    """Die where the code passes a failpoint, but for so many times."""
    passed = 0

    def die(name: str) -> None:
        nonlocal passed
        passed += name == at
        if passed > after:
            raise _Death

    listen(die)
    try:
        yield
    finally:
        listen(None)


def live(kit: MemoryKit) -> set[str]:
    return {memory.content for memory in kit.memories(scope=ANN) if memory.live}


def of(kit: MemoryKit, content: str) -> Memory:
    (found,) = (memory for memory in kit.memories(scope=ANN) if memory.content == content)
    return found


def readers(kit: MemoryKit) -> list[str]:
    return [entry.extractor for entry in kit.sources.blocks(scope=ANN)]


def open_model(home: Path, answer: Any = learned, **policy: Any) -> MemoryKit:
    return open_kit(home, script(answer), reviser="rules", attention=0, **policy)


# ---------------------------------------------------------------------------------------------- what is read again


def test_what_was_read_without_a_model_is_read_again_newest_first(tmp_path: Path) -> None:
    without_a_model(tmp_path)
    told: list[tuple[int, int]] = []
    with open_model(tmp_path) as kit:
        report = kit.work.reread(scope=ANN, progress=lambda progress: told.append((progress.done, progress.total)))

        assert report.blocks == ("20250306_01", "20250305_01", "20250304_01")
        assert (report.pending, report.created, report.work) == (0, 3, ())
        assert told == [(1, 3), (2, 3), (3, 3)]
        assert readers(kit) == ["scripted"] * 3
        assert live(kit) == {"Ann plays chess on Sundays.", "Ann lives in Berlin."}


async def test_what_is_read_again_is_the_same_in_async_code(tmp_path: Path) -> None:
    without_a_model(tmp_path)
    with open_model(tmp_path) as kit:
        report = await kit.work.areread(scope=ANN, budget=Budget(max_calls=3))

        assert report.blocks == ("20250306_01",)
        assert report.pending == 2


def test_what_was_read_again_is_not_read_a_third_time(tmp_path: Path) -> None:
    without_a_model(tmp_path)
    with open_model(tmp_path) as kit:
        kit.work.reread(scope=ANN)
        before = kit.memories(scope=ANN)

        again = kit.work.reread(scope=ANN)

        assert (again.blocks, again.usage.calls) == ((), ())
        assert kit.memories(scope=ANN) == before


def test_what_a_model_finds_no_call_worth_counts_as_read(tmp_path: Path) -> None:
    """Small talk is indexed by the rules: it must not be offered for money again and again."""
    without_a_model(tmp_path, "Hi!")
    with open_kit(tmp_path, script()) as kit:
        assert kit.work.reread(scope=ANN).blocks == ("20250304_01",)
        assert model_of(kit).calls == ()
        assert kit.work.reread(scope=ANN).blocks == ()

    with open_kit(tmp_path / "with a model", script()) as kit:
        kit.add_messages([said("Hi!")], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        assert kit.work.reread(scope=ANN).blocks == ()


def test_what_was_saved_outright_is_not_read_again(tmp_path: Path) -> None:
    """A statement is a block of its own, which nobody need read."""
    with open_kit(tmp_path) as kit:
        kit.save("allergy", "Ann is allergic to nuts.", scope=ANN)
    with open_model(tmp_path) as kit:
        assert kit.work.reread(scope=ANN).blocks == ()
        assert live(kit) == {"Ann is allergic to nuts."}


def test_what_another_model_read_is_read_again_where_it_is_named(tmp_path: Path) -> None:
    """A better model later: its memories take the place of what the weaker one made."""
    weak = proposal(create("Ann lives somewhere.", 1, "I live in Rome"))
    with open_model(tmp_path, weak) as kit:
        kit.add_messages([said(ROME)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

    better = ScriptedChatModel(script=script(), model_name="better")
    with reopened(tmp_path, better) as kit:
        assert kit.work.reread(scope=ANN).blocks == ()

        assert kit.work.reread(scope=ANN, by="scripted").blocks == ("20250304_01",)
        assert live(kit) == {"Ann lives in Rome."}
        assert kit.work.reread(scope=ANN, by="scripted").blocks == ()
        with pytest.raises(InputError, match="better"):
            kit.work.reread(scope=ANN, by="better")


def test_without_a_model_there_is_nobody_to_read_again(tmp_path: Path) -> None:
    without_a_model(tmp_path)
    with open_kit(tmp_path) as kit, pytest.raises(InputError, match="no model"):
        kit.work.reread(scope=ANN)


# ---------------------------------------------------------------------------------------------- what gives way


def test_what_was_made_without_a_model_gives_way_in_the_commit_that_brings_the_new(tmp_path: Path) -> None:
    """There is no moment at which neither is there, and history says what became of it and by whom."""
    without_a_model(tmp_path, CHESS)
    with open_model(tmp_path) as kit:
        (raw,) = kit.memories(scope=ANN)
        kit.work.reread(scope=ANN)

        new, gone = of(kit, "Ann plays chess on Sundays."), of(kit, raw.content)
        assert (gone.memory_id, gone.status) == (raw.memory_id, "superseded")
        assert new.supersedes == (raw.memory_id,)
        archive = kit.context.parts().archive
        *_, retired = archive.events([ANN.partition()], record_id=raw.memory_id)
        made, *_ = archive.events([ANN.partition()], record_id=new.memory_id)
        assert (retired.action, retired.reason) == ("supersede", "read again by scripted")
        assert made.operation_id == retired.operation_id


def test_what_gives_way_is_not_shown_as_known(tmp_path: Path) -> None:
    """A writer that is shown the raw words as a memory would corroborate them, and write nothing."""
    without_a_model(tmp_path)
    with open_model(tmp_path) as kit:
        kit.work.reread(scope=ANN)

        first = next(call for call in model_of(kit).calls if call.schema == "ProposalAnswer")
        assert first.text.count(BERLIN) == 1  # in the block
        assert CHESS in first.text  # of a block that waits


def test_what_another_block_bears_out_stays(tmp_path: Path) -> None:
    without_a_model(tmp_path, CHESS, CHESS)
    with open_model(tmp_path, proposal()) as kit:
        (raw,) = kit.memories(scope=ANN)
        kit.work.reread(scope=ANN)

        assert of(kit, raw.content).live


def test_what_a_person_touched_stays(tmp_path: Path) -> None:
    without_a_model(tmp_path, CHESS)
    with open_model(tmp_path) as kit:
        (raw,) = kit.memories(scope=ANN)
        kit.retention.pin(raw.memory_id, scope=ANN)

        kit.work.reread(scope=ANN)

        assert live(kit) == {raw.content, "Ann plays chess on Sundays."}


def test_what_faded_by_itself_gives_way_all_the_same(tmp_path: Path) -> None:
    without_a_model(tmp_path, CHESS)
    later = FrozenClock(NOON + timedelta(days=60))
    with reopened(tmp_path, ScriptedChatModel(script=script()), clock=later) as kit:
        kit.retention.maintain(scope=ANN)
        (raw,) = kit.memories(scope=ANN)
        assert (raw.status, raw.version) == ("low_priority", 2)

        kit.work.reread(scope=ANN)

        assert live(kit) == {"Ann plays chess on Sundays."}


@pytest.mark.parametrize("verb", ["digest", "propose"])
def test_nothing_gives_way_where_the_model_fails(tmp_path: Path, verb: str) -> None:
    """What failed is kept as it was, visible, and gives way once it is tried again and comes out."""
    without_a_model(tmp_path, CHESS)
    bad = {"digest": {"DigestAnswer": refusal()}, "propose": {"ProposalAnswer": refusal()}}[verb]
    with open_kit(tmp_path, script() | bad, reviser="rules", attention=0) as kit:
        before = live(kit)
        report = kit.work.reread(scope=ANN)

        assert [work.state for work in report.work] == ["failed"]
        assert live(kit) == before
        assert kit.work.reread(scope=ANN).usage.calls == ()  # it is not tried for money again and again

    with open_model(tmp_path) as kit:
        assert kit.work.retry(scope=ANN).work == ()
        assert live(kit) == {"Ann plays chess on Sundays."}


def test_nothing_gives_way_while_one_topic_of_the_block_has_failed(tmp_path: Path) -> None:
    without_a_model(tmp_path, CHESS)
    chess: list[Answer] = [refusal(), refusal(), refusal(), proposal()]
    answers = by_topic({"personal:Ann": proposal(), "task:chess": chess})
    steps = {"DigestAnswer": digest("personal:Ann", "task:chess"), "ProposalAnswer": answers}
    with open_kit(tmp_path, steps, reviser="rules", attention=0, allowed_topics=("chess",)) as kit:
        before = live(kit)
        kit.work.reread(scope=ANN)
        assert live(kit) == before

        for _ in range(3):
            kit.work.retry(scope=ANN)
        assert live(kit) == set()


# ---------------------------------------------------------------------------------------------- later wins


@pytest.mark.parametrize("action", ["SUPERSEDE", "CORRECT", "END", "DELETE"])
def test_what_was_said_later_is_not_replaced_by_an_older_block_that_is_read_later(tmp_path: Path, action: str) -> None:
    """The newest is read first: to all older blocks, what it says stands there already."""
    without_a_model(tmp_path, ROME, BERLIN)

    def answer(call: ModelCall) -> Answer:
        known = re.search(r"(m\d+).*Ann lives in Berlin", call.text)
        if known is None:
            return learned(call)
        return proposal(change(action, known[1], 1, "I live in Rome", content="Ann lives in Rome."))

    with open_model(tmp_path, answer) as kit:
        report = kit.work.reread(scope=ANN)

        berlin = of(kit, "Ann lives in Berlin.")
        assert (berlin.status, berlin.valid_to) == ("active", None)
        assert any("said later" in note for note in report.notes)


def test_of_one_slot_the_later_value_holds_whichever_block_is_read_first(tmp_path: Path) -> None:
    without_a_model(tmp_path)
    with open_model(tmp_path) as kit:
        kit.work.reread(scope=ANN)

        rome, berlin = of(kit, "Ann lives in Rome."), of(kit, "Ann lives in Berlin.")
        assert (rome.status, berlin.status) == ("superseded", "active")
        then = kit.recall("Where does Ann live?", scope=ANN, only=RecallFilter(true_at=NOON + timedelta(days=1)))
        held = {hit.text for hit in then.memories}
        assert "Ann lives in Rome." in held
        assert not held & {f"Ann: {text}" for text in TALK}  # not what it was before, in other words


# ---------------------------------------------------------------------------------------------- requests that wait


def test_a_request_to_forget_that_waited_for_a_model_is_decided(tmp_path: Path) -> None:
    pin = "My PIN is 4711 and I was born in Rome."
    with open_kit(tmp_path) as kit:
        kit.add_messages([said(pin, message_id="pin")], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        kit.add_messages([said("Please forget that.", minutes=5, message_id="asks")], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        assert kit.governance.requests(scope=ANN)

    def answer(call: ModelCall) -> Answer:
        known = re.search(r"([mw]\d+).*4711", call.text)
        return proposal(change("DELETE", known[1], 1, "forget that")) if known else proposal()

    with open_model(tmp_path, answer) as kit:
        report = kit.work.reread(scope=ANN)

        assert report.work == ()
        assert kit.governance.requests(scope=ANN) == ()
        shown = "".join(memory.to_json() for memory in kit.memories(scope=ANN, statuses=tuple(MOVES)))
        assert "4711" not in shown + "".join(row.text for row in kit.messages(scope=ANN))


def test_what_a_model_finds_to_be_forgotten_is_shown_by_no_memory_that_gives_way(tmp_path: Path) -> None:
    """Who has no model is not understood who asks in other words: what was kept of it goes, and is no history."""
    secret = "O meu PIN é 4711, e não guardes isso."
    without_a_model(tmp_path, secret)
    steps = script(proposal()) | {"DigestAnswer": digest() | {"forget": [1]}}
    with open_kit(tmp_path, steps, reviser="rules", attention=0) as kit:
        kit.work.reread(scope=ANN)

        (gone,) = kit.memories(scope=ANN, statuses=tuple(MOVES))
        assert gone.status == "deleted"
        assert "4711" not in gone.to_json()


# ---------------------------------------------------------------------------------------------- what it costs


def test_a_dry_run_says_what_it_would_cost_and_costs_nothing(tmp_path: Path) -> None:
    without_a_model(tmp_path)
    with open_model(tmp_path) as kit:
        before = kit.memories(scope=ANN)
        told = kit.work.reread(scope=ANN, dry_run=True)

        assert model_of(kit).calls == ()
        assert kit.memories(scope=ANN) == before
        assert (told.blocks, told.pending) == (("20250306_01", "20250305_01", "20250304_01"), 3)
        assert all(call.estimated for call in told.usage.calls)

        done = kit.work.reread(scope=ANN)
        assert len(told.usage.calls) == len(done.usage.calls) == 6
        assert 0.5 < told.usage.input_tokens / done.usage.input_tokens < 2


def test_the_budget_ends_it_and_the_next_run_goes_on(tmp_path: Path) -> None:
    """No block is begun that it cannot pay, nothing fails, and nothing is paid twice."""
    without_a_model(tmp_path)
    with open_model(tmp_path) as kit:
        expected = kit.work.reread(scope=ANN, dry_run=True).usage
        third = (expected.input_tokens + expected.output_tokens) // 3

        first = kit.work.reread(scope=ANN, budget=Budget(max_tokens=int(third * 1.5)))

        assert (first.blocks, first.pending, first.work) == (("20250306_01",), 2, ())
        assert len(first.usage.calls) == 2
        rest = kit.work.reread(scope=ANN)
        assert (rest.blocks, rest.pending) == (("20250305_01", "20250304_01"), 0)


def test_a_block_that_costs_more_than_was_expected_is_left_as_it_was(tmp_path: Path) -> None:
    """The hard limit holds in the middle of a block, too: what it has made so far is not written."""
    without_a_model(tmp_path, CHESS)
    steps = {"ProposalAnswer": [proposal(create("Ann flies.", 1, "no such words")), refusal(), learned]}
    with open_kit(tmp_path, script() | steps, reviser="rules", attention=0, repairs=3) as kit:
        before = kit.memories(scope=ANN)

        report = kit.work.reread(scope=ANN, budget=Budget(max_calls=3))

        assert (report.blocks, report.pending, report.work, len(report.usage.calls)) == ((), 1, (), 3)
        assert kit.memories(scope=ANN) == before
        assert kit.work.reread(scope=ANN).created == 1


def test_a_cancelled_run_tells_what_is_left(tmp_path: Path) -> None:
    without_a_model(tmp_path)
    with open_model(tmp_path) as kit:
        report = kit.work.reread(scope=ANN, cancel=lambda: len(model_of(kit).calls) > 1)
        assert (len(report.blocks), report.pending) == (1, 2)


# ---------------------------------------------------------------------------------------------- crashes and others


@pytest.mark.parametrize(
    "place", ["commit.begin", "commit.half_written", "commit.before_commit", "commit.after_commit"]
)
def test_a_run_that_dies_in_the_middle_loses_and_doubles_nothing(tmp_path: Path, place: str) -> None:
    without_a_model(tmp_path)
    with open_model(tmp_path) as kit:
        raw = live(kit)
        with dying(at=place, after=1), pytest.raises(_Death):
            kit.work.reread(scope=ANN)
        written = place == "commit.after_commit"
        now = {"Ann lives in Berlin."} | ({"Ann plays chess on Sundays."} if written else set())
        assert live(kit) == now | {content for content in raw if ROME in content or (CHESS in content and not written)}

    with open_model(tmp_path) as kit:
        kit.work.reread(scope=ANN)
        assert live(kit) == {"Ann plays chess on Sundays.", "Ann lives in Berlin."}
        assert len(kit.memories(scope=ANN, statuses=tuple(MOVES))) == 6
        assert kit.admin.verify().healthy


def test_two_that_read_a_block_again_at_once_write_it_once(tmp_path: Path) -> None:
    without_a_model(tmp_path, CHESS)
    others: list[MemoryKit] = []

    def answer(_: ModelCall) -> Answer:
        if others:
            others.pop().work.reread(scope=ANN)
        return proposal(create("Ann is a player of chess.", 1, "I play chess"))

    first, later = ScriptedChatModel(script=script()), FrozenClock(NOON + timedelta(hours=1))
    with reopened(tmp_path, first, clock=later) as other, open_model(tmp_path, answer) as kit:
        others.append(other)
        report = kit.work.reread(scope=ANN)

        assert report.work == ()
        assert live(kit) == {"Ann plays chess on Sundays."}


def test_what_a_person_touches_while_the_model_reads_stays(tmp_path: Path) -> None:
    without_a_model(tmp_path, CHESS)

    def answer(call: ModelCall) -> Answer:
        (raw,) = kit.memories(scope=ANN)
        kit.retention.pin(raw.memory_id, scope=ANN)
        return learned(call)

    with open_model(tmp_path, answer) as kit:
        kit.work.reread(scope=ANN)
        assert len(live(kit)) == 2


# ---------------------------------------------------------------------------------------------- in the background


def test_the_background_reads_nothing_again_unless_it_is_asked_to(tmp_path: Path) -> None:
    """It costs money: a model that is switched on must not spend on years of talk by itself."""
    without_a_model(tmp_path)
    with open_model(tmp_path) as kit:
        talk(kit, "I met an old friend at the harbour today.", day=9)
        kit.drain()
        assert readers(kit) == ["extractive"] * 3 + ["scripted"]


def test_the_background_reads_again_what_waits_after_all_new_talk_and_for_so_many_tokens_a_day(tmp_path: Path) -> None:
    without_a_model(tmp_path)
    clock = FrozenClock(NOON + timedelta(days=9))
    with open_model(tmp_path) as kit:
        each = kit.work.reread(scope=ANN, dry_run=True).usage
        most = int((each.input_tokens + each.output_tokens) / 3 * 1.5)
    with reopened(tmp_path, ScriptedChatModel(script=script()), clock=clock, reread=most) as kit:
        talk(kit, "I met an old friend at the harbour today.", day=9)
        kit.drain()
        assert readers(kit) == ["extractive", "extractive", "scripted", "scripted"]

        clock.move(timedelta(hours=2))
        talk(kit, "We want to sail to the islands next year.", day=9)
        kit.drain()
        assert readers(kit)[:3] == ["extractive", "extractive", "scripted"]  # the day is not over

        clock.move(timedelta(days=1))
        kit.drain()
        assert readers(kit)[:3] == ["extractive", "scripted", "scripted"]
        clock.move(timedelta(days=1))
        kit.drain()
        clock.move(timedelta(days=1))
        kit.drain()
        assert set(readers(kit)) == {"scripted"}
        assert [job for job in kit.admin.jobs() if job.kind == "reread"] == []


def test_the_doctor_says_how_much_was_read_without_a_model_once_there_is_one(tmp_path: Path) -> None:
    without_a_model(tmp_path)
    with open_kit(tmp_path) as kit:
        assert [each for each in kit.admin.examine().findings if "without a model" in each.what] == []
    with open_model(tmp_path) as kit:
        (found,) = (each for each in kit.admin.examine().findings if "without a model" in each.what)
        assert found.severity == "note"
        assert found.what.startswith("3 blocks were read without a model")
        assert [each.startswith("remegraph work reread --dry-run ") for each in found.commands] == [True]
