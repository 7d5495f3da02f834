"""A database that refuses for a while: turns are recorded or counted, and no job waits for a lease that nobody holds."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import Any, Self

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from sqlalchemy import func, select

from conftest import Figure
from remegraph import CapturePolicy, LedgerUnavailableError, MemoryKit, Scope, Settings, SetupError
from remegraph.adapters import MemoryMiddleware
from remegraph.ledger.database import Database
from remegraph.ledger.jobs import Stamps
from remegraph.ledger.procrastinate_queue import Procrastinate
from remegraph.ledger.schema import messages
from remegraph.settings import PoolPolicy
from remegraph.testing import InMemoryVectorIndex, ModelCall, ScriptedChatModel
from tests.ledger.test_database import frozen
from tests.reliability.host import ROOT
from tests.reliability.refusals import Role, limited
from tests.talk import ANN, EACH_TURN, SHARED_KEY, digest, replied, said

pytestmark = pytest.mark.requirement("X3", "X9")

PATIENCE = 60
"""Seconds that a test waits before it fails; none waits so long where all is well."""
IMPATIENT = PoolPolicy(wait=0.2)


@pytest.fixture
def role(postgres_url: str, tmp_path: Path) -> Iterator[Role]:
    with limited(postgres_url, tmp_path) as role:
        yield role


@pytest.fixture
def opened(role: Role, tmp_path: Path) -> Iterator[Callable[..., MemoryKit]]:
    """Opens kits of the role, and closes them."""
    with ExitStack() as kits:

        def opened(model: ScriptedChatModel | None = None, **more: Any) -> MemoryKit:
            given = {"capture": CapturePolicy(background=False, poll=0.05), "pool": IMPATIENT, **more}
            settings = Settings(home=tmp_path, ledger_url=role.url, journal_key=SHARED_KEY, **given)
            kit = MemoryKit.open(settings=settings, model=model, embedder=None, index=InMemoryVectorIndex())
            kits.callback(role.limit, -1)
            return kits.enter_context(kit)

        yield opened


def until(true: Callable[[], object]) -> None:
    end, pause = time.monotonic() + PATIENCE, Event()
    while not true():
        assert time.monotonic() < end, "it takes too long"
        pause.wait(0.02)


def work(kit: MemoryKit, scope: Scope) -> None:
    """Talk for a turn, and wait until a worker has done what it left."""
    kit.capture([said("I live in Lisbon."), replied("Noted.")], scope=scope)
    until(lambda: not kit.admin.jobs())


def ping(database: Database) -> int:
    with database.read() as connection:
        return int(connection.exec_driver_sql("SELECT 1").scalar_one())


# --------------------------------------------------------------------------------------------- at the door


def test_a_call_at_the_limit_of_the_server_waits_in_line(role: Role) -> None:
    """Twenty users come at once: the last one is served a moment later, and not turned away."""
    with closing(Database.open(role.url)) as one, closing(Database.open(role.url)) as other:
        one.close()
        other.close()
        role.limit(1)
        with ThreadPoolExecutor(1) as pool:
            with one.read() as connection:
                connection.exec_driver_sql("SELECT 1")
                waiting = pool.submit(ping, other)
                with pytest.raises(TimeoutError):
                    waiting.result(0.3)
            one.close()  # an idle connection of its pool is one, too
            assert waiting.result(PATIENCE) == 1


def test_a_password_in_a_file_is_exchanged_while_processes_run_that_have_it_in_their_url(
    role: Role, opened: Callable[..., MemoryKit]
) -> None:
    """Secrets that a cluster mounts are exchanged by day; nobody is started again for it."""
    role.url = role.url_with_secret
    with role.asked_for_a_password():
        kit = opened(pool=PoolPolicy(wait=PATIENCE))
        kit.add_messages(["I live in Lisbon."], scope=ANN)
        role.change_password("second")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(kit.add_messages, ["I love tea."], scope=ANN)
            with pytest.raises(TimeoutError):
                waiting.result(0.3)
            role.note("second")
            assert waiting.result(PATIENCE).added == 1
        role.note("wrong")
        role.end_all()
        impatient = Database.as_it_is(role.url)
        impatient._wait = 0.0
        with closing(impatient), pytest.raises(LedgerUnavailableError, match="password authentication failed") as told:
            ping(impatient)
        assert "wrong" not in str(told.value)
        role.secret.chmod(0o604)
        with closing(Database.as_it_is(role.url)) as exposed, pytest.raises(SetupError, match="chmod 640"):
            ping(exposed)
        role.secret.unlink()
        with closing(Database.as_it_is(role.url)) as gone, pytest.raises(LedgerUnavailableError, match="Put it back"):
            ping(gone)
        role.note("second")


@pytest.mark.slow
def test_procrastinate_hears_of_work_after_the_password_in_its_file_has_changed(
    role: Role, postgres_url: str, opened: Callable[..., MemoryKit]
) -> None:
    """It has connections of its own, which are lost with all others when the password is exchanged."""
    with closing(Database.open(postgres_url)) as owner:
        Procrastinate(owner, lambda: datetime.now(UTC), Stamps(Settings()))
    role.grant()
    role.url = role.url_with_secret
    stop = Event()
    with role.asked_for_a_password():
        patient = {"queue": "procrastinate", "agent": EACH_TURN, "pool": PoolPolicy(wait=PATIENCE)}
        kit = opened(ScriptedChatModel(script={"DigestAnswer": digest()}), **patient)
        worker = Thread(target=kit.work.serve, args=(stop,))
        worker.start()
        try:
            for password in ("second", "third"):
                role.change_password(password)
                role.note(password)
                work(kit, Scope(user=password))
        finally:
            stop.set()
            worker.join(PATIENCE)


@pytest.mark.slow
def test_a_worker_goes_on_by_itself_once_a_server_that_stood_still_does(
    postgres_url: str, tmp_path: Path, figure: Figure
) -> None:
    """Procrastinate's own connections ask nobody whether the server lives: they wait, and must not be lost for it."""
    policy = CapturePolicy(background=False)
    settings = Settings(home=tmp_path, ledger_url=postgres_url, journal_key=SHARED_KEY, agent=EACH_TURN, capture=policy)
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        stop = Event()
        worker = Thread(target=kit.work.serve, args=(stop,))
        worker.start()
        try:
            work(kit, Scope(user="ann"))
            with frozen(postgres_url):
                assert not stop.wait(15), "longer than procrastinate waits for a connection"
            began = time.monotonic()
            work(kit, Scope(user="bob"))
            figure("a server that stood still for 15 s: seconds until the next job is done", time.monotonic() - began)
        finally:
            stop.set()
            worker.join(PATIENCE)


@pytest.mark.parametrize("policy", [PoolPolicy(size=1, overflow=0, wait=0.2), PoolPolicy(size=1, overflow=1, wait=0.2)])
def test_calls_over_the_size_of_the_pool_wait_in_line_for_as_long_as_is_said(role: Role, policy: PoolPolicy) -> None:
    """How many connections a process may take is the operator's to say: others need some, too."""
    with closing(Database.open(role.url, policy)) as database, ExitStack() as held:
        for _ in range(policy.size + policy.overflow):
            held.enter_context(database.read())
        began = time.monotonic()
        with pytest.raises(LedgerUnavailableError, match="pool"):
            ping(database)
        assert 0.2 <= time.monotonic() - began < 10


def test_a_new_password_is_taken_up_from_the_file_without_a_restart(role: Role) -> None:
    """Passwords are changed while people talk; the server knows the new one a moment before everybody else."""
    with role.asked_for_a_password(), closing(Database.open(role.url)) as database, ThreadPoolExecutor(1) as pool:
        assert ping(database) == 1
        role.change_password("second")
        waiting = pool.submit(ping, database)
        with pytest.raises(TimeoutError):
            waiting.result(0.3)
        role.note("second")
        assert waiting.result(PATIENCE) == 1


def test_a_wrong_password_is_told_at_once_where_it_never_was_right(role: Role) -> None:
    """Whoever mistyped it must not wait for half a minute to hear of it."""
    role.note("mistyped")
    with role.asked_for_a_password():
        began = time.monotonic()
        with pytest.raises(LedgerUnavailableError, match="password"):
            Database.open(role.url, PoolPolicy(wait=30))
        assert time.monotonic() - began < 10


# ----------------------------------------------------------------------------------------- turns


def agent(kit: MemoryKit, saver: InMemorySaver) -> Any:
    model = ScriptedChatModel(script={"": [lambda call: AIMessage(f"Heard: {call.messages[-1].text}")]})
    return create_agent(
        model, middleware=[MemoryMiddleware(kit, tools=False)], context_schema=Scope, checkpointer=saver
    )


def say(agent: Any, text: str, thread: str = "t") -> str:
    run = {"configurable": {"thread_id": thread}}
    answer = agent.invoke({"messages": [{"role": "user", "content": text}]}, run, context=ANN)
    return str(answer["messages"][-1].text)


def test_what_a_turn_could_not_record_is_counted_until_the_next_one_does(
    opened: Callable[..., MemoryKit], role: Role, caplog: pytest.LogCaptureFixture
) -> None:
    """An answer of 200 hides that nothing was recorded; who runs it must see it, and the next turn mends it."""
    kit, saver = opened(), InMemorySaver()
    talker = agent(kit, saver)
    say(talker, "I live in Lisbon.")
    assert kit.admin.health().unrecorded == 0
    role.limit(0)
    with caplog.at_level(logging.WARNING, "remegraph"):
        assert say(talker, "I like tea.") == "Heard: I like tea."
        assert say(talker, "I have a dog.") == "Heard: I have a dog."
        assert say(talker, "I bake.", "other") == "Heard: I bake."
    assert kit.context.health.stats()["threads_unrecorded"] == 2
    assert len([each for each in caplog.records if "threads_unrecorded" in each.getMessage()]) == 1
    role.limit(-1)
    found = kit.admin.health()
    assert (found.unrecorded, found.healthy) == (2, True)
    assert [(each.thread, each.messages) for each in kit.admin.unrecorded()] == [("t", 4), ("other", 2)]
    say(talker, "I sing.")
    assert kit.admin.health().unrecorded == 1
    texts = [message.text for message in kit.messages("t", scope=ANN)]
    assert texts[::2] == ["I live in Lisbon.", "I like tea.", "I have a dog.", "I sing."]
    assert len(texts) == 8


def test_what_another_process_has_recorded_meanwhile_is_counted_no_more(
    opened: Callable[..., MemoryKit], role: Role
) -> None:
    """The next turn of a user may come to any process."""
    kit, other, saver = opened(), opened(), InMemorySaver()
    role.limit(0)
    say(agent(kit, saver), "I like tea.")
    role.limit(-1)
    assert kit.admin.health().unrecorded == 1
    say(agent(other, saver), "I have a dog.")
    assert kit.admin.unrecorded() == ()
    assert kit.admin.health().unrecorded == 0


def test_what_no_turn_follows_is_recorded_from_the_checkpoint(opened: Callable[..., MemoryKit], role: Role) -> None:
    """Some people never come back; what they said last is in the host's state."""
    kit, saver = opened(), InMemorySaver()
    talker = agent(kit, saver)
    role.limit(0)
    say(talker, "I like tea.")
    role.limit(-1)
    (lost,) = kit.admin.unrecorded()
    state = talker.get_state({"configurable": {"thread_id": lost.thread}})
    kit.capture(state.values["messages"], scope=ANN, thread=lost.thread)
    assert kit.admin.unrecorded() == ()
    assert [message.text for message in kit.messages("t", scope=ANN)] == ["I like tea.", "Heard: I like tea."]


def test_a_message_that_a_host_gives_once_is_counted_until_it_is_given_again(
    opened: Callable[..., MemoryKit], role: Role
) -> None:
    """A host that gives only what is new has lost what it gave in vain: the next capture does not make up for it."""
    kit = opened()
    role.limit(0)
    with pytest.raises(LedgerUnavailableError):
        kit.capture([{"id": "1", "role": "user", "content": "I like tea."}], scope=ANN)
    role.limit(-1)
    kit.capture([{"id": "2", "role": "assistant", "content": "Noted."}], scope=ANN)
    assert [(each.thread, each.messages) for each in kit.admin.unrecorded()] == [("main", 1)]
    kit.capture([{"id": "1", "role": "user", "content": "I like tea."}], scope=ANN)
    assert kit.admin.unrecorded() == ()


def test_a_turn_fails_where_recording_is_a_must(opened: Callable[..., MemoryKit], role: Role) -> None:
    """Some hosts owe it to somebody that no answer goes unrecorded."""
    strict = CapturePolicy(background=False, strict=True)
    kit, saver = opened(capture=strict), InMemorySaver()
    talker = agent(kit, saver)
    role.limit(0)
    with pytest.raises(LedgerUnavailableError):
        say(talker, "I like tea.")


# ------------------------------------------------------------------------------------------ workers


@pytest.mark.parametrize("queue", ["ledger", pytest.param("procrastinate", marks=pytest.mark.slow)])
def test_a_worker_that_the_database_refuses_gives_its_job_back(
    opened: Callable[..., MemoryKit], role: Role, queue: str
) -> None:
    """Else twelve users wait for five minutes, for leases that nobody holds."""
    reached, go = Event(), Event()

    def answer(_: ModelCall) -> Any:
        reached.set()
        assert go.wait(PATIENCE)
        return digest()

    model = ScriptedChatModel(script={"DigestAnswer": answer})
    kit, stop = opened(model, queue=queue, agent=EACH_TURN), Event()
    kit.capture([{"role": "user", "content": "I live in Lisbon."}, {"role": "assistant", "content": "Oh."}], scope=ANN)
    worker = Thread(target=kit.work.serve, args=(stop,), kwargs={"concurrency": 1})
    worker.start()
    try:
        assert reached.wait(PATIENCE)
        role.limit(0)
        go.set()
        until(lambda: kit.context.health.stats()["background_failures"])
        role.limit(-1)
        until(lambda: not kit.admin.jobs())
        assert kit.work.list(scope=ANN, states=["pending"]) == ()
    finally:
        go.set()
        stop.set()
        worker.join(PATIENCE)


# ------------------------------------------------------------------------------------------ a service

PROCESSES, USERS, TURNS, CONNECTIONS = 4, 50, 3, 22
MESSAGES = 2 * USERS * TURNS


class Service:
    """Four processes in which fifty users talk at once."""

    def __init__(self, role: Role, home: Path, wait: float) -> None:
        self._lines: Queue[dict[str, Any]] = Queue()
        self._told: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        firsts = [USERS * number // PROCESSES for number in range(PROCESSES + 1)]
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.reliability.speaker", role.url, str(home / str(first))]
                + [str(each) for each in (first, end - first, TURNS, wait)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
            )
            for first, end in pairwise(firsts)
        ]
        for process in self._processes:
            Thread(target=self._hear, args=(process,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()

    def go_on(self) -> None:
        """Let all begin, say their last turn, or mend what they can."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()

    def heard(self, key: str, times: int = 1) -> list[dict[str, Any]]:
        """Wait until this was told so often; what else was told is kept for who asks for it."""
        told = self._told[key]
        while len(told) < times:
            line = self._lines.get(timeout=3 * PATIENCE)
            self._told[next(iter(line))].append(line)
        found, self._told[key] = told[:times], told[times:]
        return found

    def _hear(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._lines.put(json.loads(line))


def recorded(url: str) -> int:
    with closing(Database.open(url)) as database, database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(messages)).scalar_one())


@pytest.mark.slow
def test_a_service_over_the_limit_of_its_role_records_every_turn(
    role: Role, postgres_url: str, tmp_path: Path, figure: Figure
) -> None:
    """Four processes would like sixty connections and may have twenty-two; all answer, and nothing is missing."""
    role.limit(CONNECTIONS)
    with Service(role, tmp_path, wait=PoolPolicy().wait) as service:
        service.heard("ready", PROCESSES)
        service.go_on()
        service.go_on()
        done = service.heard("done", PROCESSES)
        failures = sum(each["failures"] for each in done)
        figure(
            f"at {CONNECTIONS} connections, {PROCESSES} processes, {USERS} users",
            f"{recorded(postgres_url)} of {MESSAGES} messages recorded, {failures} captures failed",
        )
        assert recorded(postgres_url) == MESSAGES
        assert [each["unrecorded"] for each in done] == [0] * PROCESSES


@pytest.mark.slow
@pytest.mark.parametrize("wait", [0.3, 10.0])
def test_a_service_whose_password_changes_under_load_records_every_turn_in_the_end(
    role: Role, postgres_url: str, tmp_path: Path, figure: Figure, wait: float
) -> None:
    """Secrets are rotated by day; what could not be recorded in between is known, and recorded later."""
    with role.asked_for_a_password(), Service(role, tmp_path, wait) as service:
        service.heard("ready", PROCESSES)
        service.go_on()
        service.heard("turn", USERS)
        role.change_password("second")
        until(lambda: not role.end_all())  # one may be let in by the password of before
        service.go_on()
        if wait < 1:
            while not service.heard("turn")[0]["turn"]:
                pass
        else:
            Event().wait(1)  # the server knows it, and for a while nobody else does
        role.note("second")
        done = service.heard("done", PROCESSES)
        missed, before = sum(each["unrecorded"] for each in done), recorded(postgres_url)
        service.go_on()
        assert [each["left"] for each in service.heard("left", PROCESSES)] == [0] * PROCESSES
        failures = sum(each["failures"] for each in done)
        figure(
            f"password rotated under load, {PROCESSES} processes, {USERS} users",
            f"wait {wait:g} s: {failures} captures failed, {before} of {MESSAGES} recorded by the next turns, {missed} "
            f"conversations told as missing, {recorded(postgres_url)} of {MESSAGES} after a look at the checkpoints",
        )
        assert recorded(postgres_url) == MESSAGES
        assert before == MESSAGES or missed
