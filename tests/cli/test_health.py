"""What orchestrators ask every few seconds: an answer in time, whatever is down, and for next to no processor time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import pytest

from conftest import Figure
from remegraph import MemoryKit, Settings
from remegraph.errors import SchemaTooNewError, SchemaTooOldError, SetupError
from remegraph.kit import background
from remegraph.kit import health as probes
from remegraph.kit.admin import doctor
from remegraph.ledger.database import Database
from remegraph.ledger.jobs import ASLEEP
from remegraph.ledger.rows import micros
from remegraph.testing import InMemoryVectorIndex
from tests.cli.conftest import Run
from tests.docs.blocks import ROOT
from tests.kit.test_serving import PATIENCE, opened, serving, turn
from tests.proxy import FaultyProxy
from tests.reliability.released import LATER, later
from tests.reliability.test_networks import before_postgres
from tests.talk import SHARED_KEY

pytestmark = pytest.mark.requirement("X9")

NOWHERE = "postgresql://ann:secret@127.0.0.1:1/remegraph"
_HEALTH = """
import resource, sys
from remegraph.cli import main
sys.argv = ["remegraph", "health", "--json"]
try:
    main()
except SystemExit as ended:
    code = ended.code
used = resource.getrusage(resource.RUSAGE_SELF)
print(*sorted(sys.modules), file=sys.stderr)
print(used.ru_utime + used.ru_stime, file=sys.stderr)
sys.exit(code)
"""


def kit_on(url: str, home: Path) -> MemoryKit:
    settings = Settings(home=home, ledger_url=url, journal_key=SHARED_KEY)
    return MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex())


# ------------------------------------------------------------------------------------------- from outside


def test_a_probe_of_a_server_that_is_down_is_told_no_by_its_exit_code_and_shows_no_password(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A traceback tells an orchestrator nothing, and a log whatever the URL holds."""
    monkeypatch.setenv("REMEGRAPH_LEDGER_URL", NOWHERE)
    for told in (run("health"), run("health", "--json")):
        assert told.exit_code == 1
        assert isinstance(told.exception, SystemExit)
        assert "secret" not in told.output
    found = json.loads(run("health", "--json").stdout)
    assert (found["ready"], found["healthy"], found["ledger"]) == (False, False, "postgresql")
    assert "refused" in found["problem"]


@pytest.mark.slow
def test_a_server_that_never_answers_is_not_waited_for(postgres_url: str, tmp_path: Path) -> None:
    """A network that is gone without a word answers no probe either: the probe's own time would run out."""
    with before_postgres(postgres_url) as (proxy, through), kit_on(through, tmp_path) as kit:
        assert kit.admin.ready()
        proxy.deaf = True
        found = probes.health(Settings(home=tmp_path, ledger_url=through))
        assert (found.ready, found.problem) == (False, "There was no answer in 2 seconds.")
        assert not kit.admin.ready()
        assert (kit.admin.health().ready, kit.admin.health().healthy) == (False, False)
        proxy.deaf = False
        proxy.cut()
        assert kit.admin.ready()


def test_what_a_limit_refused_is_not_said_to_have_failed(run: Run, tmp_path: Path) -> None:
    """Nothing is broken then, and nobody has to mend anything."""
    with opened(tmp_path) as kit:
        turn(kit)
        with kit.context.parts().archive.database.write() as connection:
            connection.exec_driver_sql("UPDATE jobs SET state = 'waiting', attempts = 0, reason = 'It is used up.'")
    shown = run("health", "--home", str(tmp_path)).output
    assert "A limit refused" in shown
    assert "Failed last" not in shown


def test_what_is_due_later_neither_waits_nor_sleeps_until_it_is_asked_for(run: Run, tmp_path: Path) -> None:
    """Who counts what waits starts workers by it, and would look for a fault where a pause is to end or a try to come."""
    with opened(tmp_path) as kit:
        turn(kit)
        now, later = micros(kit.context.clock()), micros(kit.context.clock() + timedelta(days=36500))
        told = [(now, 0, "waiting"), (later, 0, "later"), (later, 3, "later"), (ASLEEP, 0, "asleep")]
        for due, attempts, state in told:
            with kit.context.parts().archive.database.write() as connection:
                change = (
                    f"UPDATE jobs SET state = 'waiting', attempts = {attempts}, due_at = {due} WHERE kind = 'summarize'"
                )
                connection.exec_driver_sql(change)
            (job,) = (each for each in kit.admin.jobs() if each.kind == "summarize")
            queue = kit.admin.health().queue
            counts = {name: getattr(queue, name) for name in ("waiting", "later", "asleep")}
            assert (job.state, counts) == (state, dict.fromkeys(counts, 0) | {state: 1})
    assert (
        "0 waiting, 0 running, 0 gave up, 0 due later, 1 asleep until asked."
        in run("health", "--home", str(tmp_path)).stdout
    )


def test_a_chroma_server_that_is_down_or_silent_leaves_the_memory_ready_and_degraded(run: Run, tmp_path: Path) -> None:
    """Recall works from SQL: to restart all services for it would turn a nuisance into an outage."""
    (tmp_path / "home").mkdir()
    assert run("migrate", "--apply").exit_code == 0
    home = Settings(home=tmp_path / "home")
    assert probes.health(home).index == "embedded"
    with FaultyProxy(("127.0.0.1", 1)) as proxy:
        proxy.deaf = True
        for url in ("http://127.0.0.1:1", proxy.url):
            found = probes.health(home.evolve(chroma_url=url))
            assert (found.ready, found.healthy, found.index, found.degraded) == (True, True, "down", True)
            assert found.problem


@pytest.mark.slow
def test_a_chroma_server_that_answers_is_found_from_outside(chroma_url: str, tmp_path: Path) -> None:
    """The probe asks it by plain HTTP, as importing its client takes a second of processor time."""
    with opened(tmp_path):
        assert urlsplit(chroma_url).port
        found = probes.health(Settings(home=tmp_path, chroma_url=chroma_url))
    assert (found.index, found.problem) == ("chroma", "")


@pytest.mark.slow
def test_a_health_check_imports_neither_engine_nor_model_nor_chroma(
    postgres_url: str, tmp_path: Path, figure: Figure
) -> None:
    """It is run every few seconds beside each worker: what it imports is what it costs."""
    kit_on(postgres_url, tmp_path).close()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "REMEGRAPH_LEDGER_URL": postgres_url}
    done = subprocess.run([sys.executable, "-c", _HEALTH], capture_output=True, text=True, env=environment, check=True)
    modules, seconds = done.stderr.strip().splitlines()
    imported = modules.split()
    figure("remegraph health, PostgreSQL", f"{len(imported)} modules, {float(seconds):.2f} s of processor time")
    heavy = {"langchain_core", "langgraph", "chromadb", "httpx", "alembic", "procrastinate", "numpy"}
    assert heavy & {name.partition(".")[0] for name in imported} == set()
    assert [name for name in imported if name.startswith(("remegraph.engine", "remegraph.kit.kit"))] == []
    assert len(imported) < 800
    assert json.loads(done.stdout)["ready"] is True


def test_a_schema_of_another_release_is_not_ready_and_is_left_alone(run: Run, tmp_path: Path) -> None:
    """The probe of a new image, beside a service of the old one, must not bring the ledger up under it."""
    (tmp_path / "home").mkdir()
    run("migrate", "--apply")
    with later():
        early = run("health")
        assert early.exit_code == 1
        assert "remegraph migrate --apply" in " ".join(early.stdout.split())
        run("migrate", "--apply")
    late = run("health")
    assert late.exit_code == 1
    assert "Upgrade remegraph" in " ".join(late.stdout.split())


@pytest.mark.parametrize(
    ("named", "lacks"),
    [({"index": "pgvector", "queue": "ledger"}, "pgvector"), ({"queue": "procrastinate"}, "procrastinate")],
)
def test_a_ledger_without_the_tables_that_the_settings_need_is_not_ready(
    postgres_url: str, tmp_path: Path, named: dict[str, Any], lacks: str
) -> None:
    """No service and no worker starts with them: that it is healthy would send an operator to look elsewhere."""
    settings = Settings(home=tmp_path, ledger_url=postgres_url, journal_key=SHARED_KEY, queue="ledger", migrate="never")
    doctor.migrate(settings, apply=True)
    assert (probes.health(settings).ready, probes.health(settings).problem) == (True, "")
    wanted = settings.evolve(**named)
    with pytest.raises(SchemaTooOldError) as refused:
        MemoryKit.open(settings=wanted, model=None, embedder=None)
    found = probes.health(wanted)
    assert (found.ready, found.healthy, found.problem) == (False, False, str(refused.value))
    assert lacks in found.problem
    assert "remegraph migrate --apply" in found.problem
    assert found.index == ("down" if lacks == "pgvector" else "embedded")
    for each in (wanted, wanted.evolve(migrate="auto")):
        (finding,) = doctor.diagnose(each, embedder=None).findings
        assert (finding.check, finding.severity, str(refused.value)) == (
            "schema",
            "error",
            f"{finding.what} {finding.cure}",
        )
    assert not probes.health(wanted).ready, "the doctor makes nothing unasked"
    doctor.migrate(wanted, apply=True)
    assert (probes.health(wanted).ready, probes.health(wanted).problem) == (True, "")


@pytest.mark.parametrize("named", [{"index": "pgvector"}, {"queue": "procrastinate"}])
def test_settings_that_need_postgresql_are_not_ready_on_sqlite_and_have_no_plan(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: dict[str, str]
) -> None:
    """The URL was forgotten: every command that opens the memory refuses, and these must not say that all is well."""
    (tmp_path / "home").mkdir()
    assert run("migrate", "--apply").exit_code == 0
    for name, value in named.items():
        monkeypatch.setenv(f"REMEGRAPH_{name.upper()}", value)
    for command in (["health"], ["migrate"], ["migrate", "--apply"], ["worker"]):
        told = run(*command)
        assert (told.exit_code, "REMEGRAPH_LEDGER_URL" in " ".join(told.output.split())) == (1, True), command


def test_an_index_that_no_process_may_change_over_is_not_ready(postgres_url: str, tmp_path: Path) -> None:
    """Where settings forbid to change it, no process starts with another index than the ledger has."""
    settings = Settings(
        home=tmp_path, ledger_url=postgres_url, journal_key=SHARED_KEY, index="pgvector", queue="ledger"
    )
    MemoryKit.open(settings=settings, model=None, embedder=None).close()
    other = settings.evolve(index="chroma", migrate="never")
    found = probes.health(other)
    with pytest.raises(SetupError) as refused:
        MemoryKit.open(settings=other, model=None, embedder=None, index=InMemoryVectorIndex())
    assert (found.ready, found.index, found.problem) == (False, "down", str(refused.value))


def test_the_page_explains_every_key_that_a_probe_gives(run: Run, tmp_path: Path) -> None:
    """A monitor is written from the page: a key that is not there is guessed at."""
    home = tmp_path / "home"
    with opened(home) as kit, serving(kit):
        until(lambda: probes.workers(home))
        told = [json.loads(run("health", "--json", *also).stdout) for also in ((), ("--worker",))]
        told.append(kit.admin.health().model_dump())
    given = {key for each in told for key in _keys(each)}
    page = (ROOT / "docs" / "health.md").read_text(encoding="utf-8")
    assert given == set(re.findall(r"^\| `([a-z_.]+)` \|", page, re.MULTILINE))


def _keys(told: dict[str, Any], within: str = "") -> Iterator[str]:
    """Yield the keys of a report, those of the records in it as `queue.dead`."""
    for name, value in told.items():
        (first, *_) = value if isinstance(value, list) else (value,)
        if isinstance(first, dict):
            yield from _keys(first, f"{within}{name}.")
        else:
            yield f"{within}{name}"


# ------------------------------------------------------------------------------------------- of an open kit


def test_a_kit_is_ready_until_it_is_closed_or_its_ledger_is_gone(tmp_path: Path) -> None:
    """A load balancer asks before it sends anybody, also while the process ends."""
    kit = opened(tmp_path)
    assert kit.admin.ready()
    kit.close()
    assert not kit.admin.ready()


def test_a_kit_is_not_ready_once_the_schema_is_another_releases(tmp_path: Path) -> None:
    """It can record nothing any more: whoever is sent to it is answered without memory."""
    with opened(tmp_path) as kit:
        url = str(kit.context.parts().archive.database.engine.url)
        with later():
            Database.open(url).close()
        found = kit.admin.health()
        assert (kit.admin.ready(), found.ready) == (False, False)
        assert "Upgrade remegraph" in found.problem


# ------------------------------------------------------------------------------------------- workers


def until(true: Callable[[], object]) -> None:
    end, pause = time.monotonic() + PATIENCE, Event()
    while not true():
        assert time.monotonic() < end, "it takes too long"
        pause.wait(0.02)


def test_a_worker_shows_that_it_lives_until_it_ends(run: Run, tmp_path: Path) -> None:
    """A pod without a port is probed by a command."""
    home = tmp_path / "home"
    assert run("health", "--worker").exit_code == 1
    with opened(home) as kit, serving(kit):
        until(lambda: probes.workers(home))
        told = json.loads(run("health", "--worker", "--json").stdout)
        (worker,) = told["workers"]
        assert (told["healthy"], worker["process"], worker["alive"]) == (True, os.getpid(), True)
        (file,) = (home / "workers").iterdir()
        os.utime(file, (0, 0))  # its clock stood still for long
        until(lambda: probes.workers(home)[0].silent_seconds < PATIENCE)
    assert probes.workers(home) == ()
    assert run("health", "--worker").exit_code == 1


def test_a_worker_that_is_silent_for_longer_than_a_lease_is_taken_for_stuck(run: Run, tmp_path: Path) -> None:
    """Others take over its jobs by then; whoever runs it starts it again."""
    home, sign = tmp_path / "home", probes.LifeSign(tmp_path / "home", 300, lambda error: pytest.fail(str(error)))
    sign.give()
    assert run("health", "--worker").exit_code == 0
    (file,) = (home / "workers").iterdir()
    os.utime(file, (time.time() - 301,) * 2)
    assert run("health", "--worker").exit_code == 1
    sign.close()


def test_what_a_killed_worker_left_is_no_sign_of_life(run: Run, tmp_path: Path) -> None:
    """Its file is as young as its death."""
    home, sign = tmp_path / "home", probes.LifeSign(tmp_path / "home", 300, lambda error: pytest.fail(str(error)))
    sign.give()
    (file,) = (home / "workers").iterdir()
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait(PATIENCE)
    left = file.with_name(f"{ended.pid}@{file.name.partition('@')[2]}")
    file.rename(left)
    assert run("health", "--worker").exit_code == 1
    assert not left.exists()


def test_a_home_that_cannot_be_written_costs_a_worker_its_sign_and_no_work(tmp_path: Path) -> None:
    """A file system that is read-only is a common rule of clusters."""
    with opened(tmp_path) as kit:
        (tmp_path / "workers").write_text("in the way", encoding="utf-8")
        turn(kit)
        with serving(kit):
            until(lambda: not kit.admin.jobs())
        assert kit.context.health.stats()["background_failures"] == 1


def test_a_worker_ends_with_the_reason_once_the_schema_is_another_releases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can do nothing more: its supervisor starts the next one, of the new release, and an exit code says why."""
    monkeypatch.setattr(background, "_KEEP", 0.01)
    ended: list[Exception] = []

    def serve(kit: MemoryKit, stop: Event) -> None:
        try:
            kit.work.serve(stop)
        except SchemaTooNewError as error:
            ended.append(error)

    with opened(tmp_path) as kit:
        worker = Thread(target=serve, args=(kit, Event()))
        worker.start()
        with kit.context.parts().archive.database.write() as connection:
            connection.exec_driver_sql(f"UPDATE remegraph_schema SET version_num = '{LATER}'")
        worker.join(PATIENCE)
        assert "Upgrade remegraph" in str(ended[0])
