"""Clocks that jump, run back, or disagree."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from conftest import Figure
from remegraph import MemoryKit, Message, Scope, Settings
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests import talk
from tests.reliability.host import Host
from tests.talk import ANN, NOON

DAY = timedelta(days=1)


def open_kit(home: Path, clock: FrozenClock, index: InMemoryVectorIndex | None = None) -> MemoryKit:
    urls = talk.urls_of(home)
    if index is None and not urls:
        index = InMemoryVectorIndex()
    return MemoryKit.open(settings=Settings(home=home, **urls), model=None, embedder=None, index=index, clock=clock)


@pytest.mark.requirement("X3", "X9")
@pytest.mark.parametrize(
    "jump",
    [-DAY, pytest.param(DAY, marks=pytest.mark.slow), pytest.param(10 * 365 * DAY, marks=pytest.mark.slow)],
    ids=str,
)
def test_a_clock_that_jumps_changes_neither_order_nor_content(
    tmp_path: Path, setup: str, jump: timedelta, figure: Figure
) -> None:
    """NTP, suspended laptops and restored machines move clocks; what was said first stays first."""
    clock = FrozenClock(NOON)
    with open_kit(tmp_path, clock) as kit:
        for number in range(6):
            kit.add_messages([f"I love hiking on mountain {number}."], scope=ANN)
            if number == 2:
                kit.summarize(scope=ANN, close=True)
                clock.move(jump)
        kit.summarize(scope=ANN, close=True)

        messages = kit.sources.retrieve_message(scope=ANN)
        assert [message.seq for message in messages] == [1, 2, 3, 4, 5, 6]
        assert [message.text[-2] for message in messages] == list("012345")
        assert len(kit.sources.blocks(scope=ANN)) == 2
        assert kit.work.list(scope=ANN) == ()
        assert {memory.status for memory in kit.memories(scope=ANN)} == {"active"}
        recalled = kit.recall("Which mountain?", scope=ANN, k=20, depth="messages")
        assert len(recalled.messages) == 6
        assert kit.admin.verify().healthy
    figure("bar 15: clocks that jump", f"{setup}, {jump}: order and content kept")


@pytest.mark.usefixtures("setup")
@pytest.mark.requirement("X3", "X9")
def test_the_hour_that_comes_twice_and_the_one_that_never_was_keep_their_order(tmp_path: Path) -> None:
    """When summer time ends, 2:30 comes twice; a ledger by local time would shuffle the night."""
    paris = ZoneInfo("Europe/Paris")
    night = [datetime(2025, 10, 26, 0, 0, tzinfo=UTC) + timedelta(minutes=30 * step) for step in range(6)]
    spring = [datetime(2025, 3, 30, 0, 30, tzinfo=UTC) + timedelta(minutes=30 * step) for step in range(3)]
    for home, times in (("autumn", night), ("spring", spring)):
        with open_kit(tmp_path / home, FrozenClock(NOON)) as kit:
            kit.add_messages(
                [Message(role="user", content=f"{at}", time=at.astimezone(paris)) for at in times], scope=ANN
            )
            kit.summarize(scope=ANN, close=True)

            stored = kit.sources.retrieve_message(scope=ANN)
            assert [message.time.astimezone(UTC) for message in stored] == times
            (entry,) = kit.sources.blocks(scope=ANN)
            assert entry.end_time - entry.start_time == times[-1] - times[0]
            assert len(kit.sources.retrieve_message(time_start=times[1], time_end=times[2], scope=ANN)) == 2


@pytest.mark.requirement("R1", "X3")
@pytest.mark.parametrize(
    "offset",
    [
        timedelta(0),
        timedelta(hours=5, minutes=45),
        timedelta(hours=-11, minutes=-30),
        timedelta(minutes=9, seconds=21),
        timedelta(seconds=-1),
        timedelta(hours=23, minutes=59, seconds=59),
        timedelta(microseconds=1),
    ],
    ids=str,
)
def test_a_message_keeps_its_time_to_the_microsecond_whatever_its_offset(tmp_path: Path, offset: timedelta) -> None:
    """Paris kept +00:09:21 until 1911, Nepal keeps +05:45: history imports hold both."""
    with open_kit(tmp_path, FrozenClock(NOON)) as kit:
        for year in (1, 1911, 2025, 9999):
            time = datetime(year, 6, 15, 12, 34, 56, 789_012, tzinfo=timezone(offset))
            kit.add_messages([Message(role="user", content="I love hiking.", time=time)], scope=ANN, thread=str(year))

            (message,) = kit.sources.retrieve_message(time_start=time, time_end=time, scope=ANN)
            assert message.time == time
            assert kit.sources.retrieve_message(time_start=time + timedelta(microseconds=1), scope=ANN) == ()
        kit.summarize(scope=ANN, close=True)
        assert kit.admin.verify().healthy


@pytest.mark.usefixtures("setup")
@pytest.mark.requirement("X3", "X9")
def test_two_machines_whose_clocks_disagree_share_a_ledger(tmp_path: Path) -> None:
    """Machines drift; the order of the ledger is the order of recording, and no work is left or done twice."""
    now, late = FrozenClock(NOON), FrozenClock(NOON - DAY)
    index = None if talk.urls_of(tmp_path) else InMemoryVectorIndex()
    with open_kit(tmp_path, now, index) as one, open_kit(tmp_path, late, index) as other:
        for number in range(6):
            kit = one if number % 2 else other
            kit.add_messages([f"I love hiking on mountain {number}."], scope=ANN)
            assert [message.seq for message in kit.sources.retrieve_message(scope=ANN)] == list(range(1, number + 2))
        other.summarize(scope=ANN, close=True)
        one.summarize(scope=ANN, close=True)

        assert [message.text[-2] for message in one.sources.retrieve_message(scope=ANN)] == list("012345")
        assert one.work.list(scope=ANN) == ()
        assert one.admin.verify().healthy


@pytest.mark.usefixtures("setup")
@pytest.mark.requirement("X3", "X9")
def test_a_lease_outlives_a_clock_that_runs_back_and_ends_when_its_time_is_up(tmp_path: Path) -> None:
    """A job taken must not be taken again because a clock was set; a dead worker's must be, in the end."""
    clock = FrozenClock(NOON)
    with open_kit(tmp_path, clock) as kit:
        kit.add_messages(["I love hiking."], scope=ANN)
        jobs = kit.context.parts().jobs
        first = jobs.claim("summarize", "one", 60)
        assert first is not None
        clock.move(-DAY)
        assert jobs.claim("summarize", "two", 60) is None

        clock.move(2 * DAY)
        second = jobs.claim("summarize", "two", 60)

        assert second is not None
        assert second.fence > first.fence
        assert not jobs.finish(first, "done")
        assert jobs.finish(second, "done")


@pytest.mark.requirement("X3")
def test_work_that_was_queued_tomorrow_is_done_today(tmp_path: Path) -> None:
    """A clock that was a day ahead and is set right must not hold jobs up for a day."""
    clock = FrozenClock(NOON + DAY)
    with open_kit(tmp_path, clock) as kit:
        kit.add_messages(["I love hiking."], scope=Scope(user="bob"))
        clock.move(-DAY)

        kit.summarize(scope=Scope(user="bob"), close=True)
        assert len(kit.sources.blocks(scope=Scope(user="bob"))) == 1

        clock.move(DAY)
        assert kit.drain().pending == 0


@pytest.mark.usefixtures("setup")
@pytest.mark.requirement("X3", "X9")
def test_a_day_that_the_clock_jumps_and_back_forgets_nothing(tmp_path: Path) -> None:
    """A wrong clock for one night of upkeep must not cost memories that had weeks to live."""
    clock = FrozenClock(NOON)
    with open_kit(tmp_path, clock) as kit:
        kit.add_messages(["I love hiking.", "I live in Lisbon."], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        before = kit.retention.forecast(10_000, scope=ANN)
        assert before
        for jump in (DAY, -2 * DAY, DAY):
            clock.move(jump)
            kit.retention.maintain(scope=ANN)
            assert {memory.status for memory in kit.memories(scope=ANN)} == {"active"}
        assert kit.retention.forecast(10_000, scope=ANN) == before
        assert kit.admin.verify().healthy


def clock_of(folder: Path, name: str, zone: str) -> tuple[Path, dict[str, str]]:
    """Give a clock that a process can be made to live by, all its libraries included: a file, and the environment."""
    faketime = shutil.which("faketime")
    if faketime is None:
        pytest.skip("faketime is missing: apt-get install faketime")
    told = subprocess.run([faketime, "-f", "+0", "env"], check=True, capture_output=True, text=True).stdout
    (library,) = (line.partition("=")[2] for line in told.splitlines() if line.startswith("LD_PRELOAD="))
    file = folder / name
    file.write_text("+0", encoding="ascii")
    environment = {"FAKETIME_TIMESTAMP_FILE": str(file), "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    return file, {**environment, "LD_PRELOAD": library, "TZ": zone}


@pytest.mark.slow
@pytest.mark.requirement("X3", "X9")
def test_processes_whose_system_clocks_jump_keep_one_order_and_forget_nothing(tmp_path: Path, figure: Figure) -> None:
    """Clocks of our own are asked by us alone; the system's are asked by SQLite, Chroma and the queue, too."""
    zones = ("Europe/Paris", "America/New_York", "Asia/Kathmandu")
    clocks = [clock_of(tmp_path, f"clock {number}", zone) for number, zone in enumerate(zones)]
    jumps = [("+0", "-1d", "+1d"), ("+1d", "+0", "-1d"), ("-1d", "+1d", "+0"), ("-1h", "+1h", "+0")]
    acknowledged: list[str] = []
    with ExitStack() as stack:
        hosts = [stack.enter_context(Host(environment=environment)) for _, environment in clocks]
        for host in hosts:
            host("open", home=str(tmp_path / "home"))
        for number, offsets in enumerate(jumps):
            for (file, _), offset in zip(clocks, offsets, strict=True):
                file.write_text(offset, encoding="ascii")
            times = [datetime.fromisoformat(host("now")) for host in hosts]
            assert max(times) - min(times) > timedelta(minutes=59)
            for round_ in range(5):
                for each, host in enumerate(hosts):
                    acknowledged += host("say", text=f"I love hiking on mountain {number}{round_}{each}.")
            for host in hosts:
                assert host("summarize") == []
                assert set(host("statuses")) == {"active"}
                assert host("messages") == acknowledged
        for host in hosts:
            host("close")
    with Host() as host:  # whose clock is right, as faketime lets nobody wait for a child
        host("open", home=str(tmp_path / "home"))
        assert host("messages") == acknowledged
        assert set(host("statuses")) == {"active"}
        assert sorted(host("remembered")) == sorted(acknowledged)  # messages in a row are one memory
        host("sync")
        assert host("verify")[1] == []
    figure(
        "bar 15: system clocks that jump",
        f"3 processes at once, 3 zones, up to two days apart: order kept, {len(acknowledged)} messages remembered, all active",
    )
