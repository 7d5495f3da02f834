"""A role that may change rows and no table: all that a service and its workers do, it can do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any, Literal

import psycopg
import pytest
from sqlalchemy import event, make_url

from evals._servers import postgres, postgres_tool
from remegraph import MemoryKit, Scope, Settings
from remegraph.errors import SchemaTooOldError, SetupError
from remegraph.kit import health as probes
from remegraph.kit.admin.doctor import diagnose, migrate
from remegraph.ledger.database import Database
from remegraph.ledger.jobs import Stamps
from remegraph.ledger.procrastinate_queue import Procrastinate
from remegraph.models import Subject
from remegraph.settings import CapturePolicy
from remegraph.testing import InMemoryVectorIndex, ScriptedChatModel
from tests.reliability.host import ROOT
from tests.reliability.released import FIRST, wider
from tests.reliability.test_refusals import PATIENCE, until
from tests.talk import EACH_TURN, SHARED_KEY, create, digest, proposal, replied, said

pytestmark = pytest.mark.requirement("X9")

_REMEGRAPH = [sys.executable, "-c", "from remegraph.cli import main; main()"]
_PASSWORDS = "SELECT rolname, rolpassword IS NOT NULL FROM pg_authid WHERE rolname LIKE 'remegraph%' ORDER BY 1"

ANN = Scope(user="ann", agent="remy")
STEPS = {
    "DigestAnswer": digest("personal:Ann"),
    "ProposalAnswer": proposal(create("Ann lives in Lisbon.", 1, "I live in Lisbon")),
}


@contextmanager
def opened(url: str, home: Path, *, key: str = SHARED_KEY, **more: Any) -> Iterator[MemoryKit]:
    settings = Settings(
        home=home,
        ledger_url=url,
        journal_key=key,
        former_journal_keys=() if key == SHARED_KEY else (SHARED_KEY,),
        migrate="never",
        agent=EACH_TURN,
        capture=CapturePolicy(background=False, poll=0.05),
        **more,
    )
    model = ScriptedChatModel(script=STEPS)
    with MemoryKit.open(settings=settings, model=model, embedder=None, index=InMemoryVectorIndex()) as kit:
        yield kit


@pytest.mark.slow
def test_a_new_server_is_set_up_by_the_files_that_are_deployed_in_the_order_of_the_page(tmp_path: Path) -> None:
    """Who has a superuser's login and two passwords needs no more, and the account that serves owns nothing."""
    with postgres() as server:
        for name in ("owner-password", "password"):
            (tmp_path / name).write_text(f"of {name}\n", encoding="ascii")

        def psql(file: str, user: str, database: str) -> None:
            url = make_url(server).set(username=user, database=database).render_as_string(hide_password=False)
            file = str(ROOT / "deploy" / "postgresql" / file)
            subprocess.run([postgres_tool("psql"), "-v", "ON_ERROR_STOP=1", "-f", file, url], cwd=tmp_path, check=True)

        def settings(user: str) -> Settings:
            place = make_url(server).set(drivername="postgresql", username=user, database="remegraph")
            return Settings(
                home=tmp_path,
                ledger_url=place.render_as_string(hide_password=False),
                index="pgvector",
                journal_key=SHARED_KEY,
                migrate="never",
            )

        psql("roles.sql", "postgres", "postgres")
        with psycopg.connect(server) as connection:
            assert connection.execute(_PASSWORDS).fetchall() == [("remegraph", True), ("remegraph_app", True)]
        serving = {"REMEGRAPH_LEDGER_URL": str(settings("remegraph_app").ledger_url), "REMEGRAPH_INDEX": "pgvector"}
        command, env = [*_REMEGRAPH, "migrate", "--apply"], {**os.environ, **serving}
        refused = subprocess.run(command, env=env, cwd=ROOT, check=False, capture_output=True, text=True)
        assert (refused.returncode, "Traceback" in refused.stderr) == (1, False)
        assert "run as their owner" in " ".join(refused.stderr.split())
        owner = {"REMEGRAPH_LEDGER_URL": str(settings("remegraph").ledger_url), "REMEGRAPH_INDEX": "pgvector"}
        subprocess.run(command, env={**os.environ, **owner, "REMEGRAPH_QUEUE": "ledger"}, cwd=ROOT, check=True)
        psql("grants.sql", "remegraph", "remegraph")
        refused = subprocess.run(command, env=env, cwd=ROOT, check=False, capture_output=True, text=True)
        assert (refused.returncode, "Traceback" in refused.stderr) == (1, False), "procrastinate's are missing yet"
        assert "as the owner" in " ".join(refused.stderr.split())
        subprocess.run(command, env={**os.environ, **owner}, cwd=ROOT, check=True)
        for _ in range(2):  # again does no harm
            psql("grants.sql", "remegraph", "remegraph")
        assert migrate(settings("remegraph_app")).steps == ()
        with psycopg.connect(server) as connection:
            (version,) = connection.execute("SELECT current_setting('server_version_num')::int").fetchone() or (0,)
        with psycopg.connect(str(settings("remegraph_app").ledger_url)) as connection:
            told = list[str]()
            connection.add_notice_handler(lambda said: told.append(said.message_primary or ""))
            connection.autocommit = True
            connection.execute("VACUUM messages")
        assert bool(told) is (version < 170000), "that of an erasure is done"
        with MemoryKit.open(settings=settings("remegraph_app"), model=None, embedder=None) as kit:
            kit.save("home", "Ann lives in Lisbon.", scope=ANN)
            assert kit.recall("Where does Ann live?", scope=ANN).memories
            assert kit.admin.verify().healthy


@contextmanager
def working(kit: MemoryKit) -> Iterator[None]:
    stop = Event()
    worker = Thread(target=kit.work.serve, args=(stop,))
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join(PATIENCE)


def test_the_role_may_change_no_table_and_not_the_number_of_the_schema(app_url: str) -> None:
    """Else the tests below would prove nothing."""
    with psycopg.connect(app_url.replace("+psycopg", ""), autocommit=True) as connection:
        for statement in (
            "CREATE TABLE mine (id int)",
            "ALTER TABLE messages ADD COLUMN mine int",
            "DROP TABLE reviews",
            "TRUNCATE messages",
            "UPDATE remegraph_schema SET version_num = 'mine'",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


@pytest.mark.parametrize("queue", ["ledger", "procrastinate"])
def test_a_service_and_a_worker_do_all_their_work_as_that_role(
    queue: Literal["ledger", "procrastinate"], app_url: str, postgres_url: str, tmp_path: Path
) -> None:
    """Who breaks into a service must not get tables, nor other databases, by its account."""
    migrate(Settings(home=tmp_path, ledger_url=postgres_url, queue=queue), apply=True)
    with opened(app_url, tmp_path, queue=queue) as kit:
        kit.capture([said("I live in Lisbon."), replied("Noted.")], scope=ANN)
        with working(kit):
            until(lambda: not kit.admin.jobs())
        (memory,) = kit.memories(scope=ANN)
        kit.save("drink", "Ann likes tea.", scope=ANN)
        assert kit.recall("Where does Ann live?", scope=ANN).memories
        kit.retention.maintain(scope=ANN)
        kit.retention.consolidate(scope=ANN)
        kit.forget(memory.memory_id, scope=ANN)
        kit.restore(memory.memory_id, scope=ANN)
        assert kit.admin.health().healthy
        assert kit.admin.rebuild()
        assert kit.admin.verify().healthy
    with opened(app_url, tmp_path, key="the key of the next spring", queue=queue) as kit:
        kit.admin.seal_journal("every spring")
        engine, warned = kit.context.parts().archive.database.engine, list[str | None]()
        event.listen(
            engine, "connect", lambda raw, _: raw.add_notice_handler(lambda told: warned.append(told.message_primary))
        )
        engine.dispose()
        receipt = kit.admin.erase(Subject(user="ann"), full=True)
        assert receipt.complete
        assert receipt.rewritten
        assert warned == [], "each would stand in the server's log"


def test_a_receipt_says_which_tables_its_account_could_not_write_anew_and_their_owner_does_it_later(
    app_url: str, postgres_url: str, tmp_path: Path
) -> None:
    """PostgreSQL skips them with a warning that nobody reads, and the words of a person are in the files still."""
    with psycopg.connect(postgres_url.replace("+psycopg", "")) as connection:
        for table in ("messages", "memories"):
            connection.execute(f"REVOKE MAINTAIN ON {table} FROM remegraph_app")
    with opened(app_url, tmp_path, queue="ledger") as kit:
        kit.save("drink", "Ann likes tea.", scope=ANN)
        with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute("ANALYZE")
        receipt = kit.admin.erase(Subject(user="ann"), full=True)
        assert (receipt.complete, receipt.rewritten) == (True, False)
        assert "memories, messages" in receipt.not_rewritten
        assert "as their owner" in receipt.not_rewritten
        assert kit.admin.resume(full=True) == (receipt,)
    with opened(postgres_url, tmp_path, queue="ledger") as kit:
        assert [each.rewritten for each in kit.admin.resume(full=True)] == [True]


def test_tables_that_are_missing_are_told_with_the_cure_and_not_tried_to_make(app_url: str, tmp_path: Path) -> None:
    """A permission that is denied says nothing of who should do what."""
    with (
        pytest.raises(SchemaTooOldError, match=r"procrastinate.*remegraph migrate --apply"),
        opened(app_url, tmp_path, queue="procrastinate"),
    ):
        pass
    with wider(), pytest.raises(SchemaTooOldError, match=rf"schema {FIRST}.*remegraph migrate --apply"):
        Database.open(app_url, migrate="never")


def test_an_account_without_its_grants_is_told_the_file_that_has_them(
    app_url: str, postgres_url: str, tmp_path: Path
) -> None:
    """It only wants to read and write rows: that tables are changed by their owner is no help."""
    settings = Settings(home=tmp_path, ledger_url=app_url, journal_key=SHARED_KEY, queue="ledger", migrate="never")
    with psycopg.connect(postgres_url.replace("+psycopg", "")) as connection:
        connection.execute("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM remegraph_app")
    with pytest.raises(SetupError) as refused:
        MemoryKit.open(settings=settings, model=None, embedder=None)
    assert "permission denied for table" in refused.value.what
    assert refused.value.cure.startswith("Let this account read and write rows: run deploy/postgresql/grants.sql")
    assert (ROOT / "deploy" / "postgresql" / "grants.sql").is_file()
    (finding,) = diagnose(settings, embedder=None).findings
    assert probes.health(settings).problem == f"{finding.what} {finding.cure}" == str(refused.value)
    with (
        closing(Database.as_it_is(app_url)) as database,
        pytest.raises(SetupError, match="run as their owner"),
        database.write() as changing,
    ):
        changing.exec_driver_sql("CREATE TABLE mine (id int)")


def test_what_a_later_release_adds_is_open_to_the_role_at_once(app_url: str, postgres_url: str) -> None:
    """Grants that have to be repeated at each upgrade are forgotten at one."""
    with closing(Database.open(postgres_url)) as owner:
        Procrastinate(owner, lambda: datetime.now(UTC), Stamps(Settings()))
    place = make_url(app_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(place) as connection:
        made = connection.execute("INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id").fetchall()
    assert len(made) == 1
