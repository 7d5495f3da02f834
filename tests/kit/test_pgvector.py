"""Vectors in the PostgreSQL of the ledger: chosen by one setting, rebuilt from SQL, gone with whoever is erased."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Literal

import psycopg
import pytest
from sqlalchemy import make_url
from typer.testing import CliRunner

from evals._servers import postgres_tool
from remegraph import MemoryKit, Scope, Settings
from remegraph.cli.app import app
from remegraph.errors import IndexChangedError, SchemaTooOldError, SetupError
from remegraph.kit import OpenOptions
from remegraph.kit import health as probes
from remegraph.kit.admin.doctor import diagnose, migrate
from remegraph.ledger.database import Database
from remegraph.ledger.index import pgvector
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.ledger.index.pgvector import PgvectorIndex
from remegraph.models import Subject
from remegraph.settings import RecallPolicy
from remegraph.testing import InMemoryVectorIndex
from tests.ledger.test_copies import connect, copied
from tests.talk import SHARED_KEY

ANN, BOB = Scope(user="ann"), Scope(user="bob")
EACH = 2  # vectors of what is saved: of the memory, and of the entry of its block
FACTS = {"drink": "Ann likes green tea.", "pet": "Her cat is called Mia.", "home": "She lives in Lisbon."}


def settings_of(
    url: str,
    home: Path,
    index: Literal["chroma", "pgvector"] | None = "pgvector",
    migrate: Literal["auto", "never"] = "auto",
) -> Settings:
    """Settings by which vectors are searched in the index, however few there are."""
    searched = RecallPolicy(exact_limit=0, index_timeout=30)
    return Settings(
        home=home, ledger_url=url, journal_key=SHARED_KEY, queue="ledger", index=index, migrate=migrate, recall=searched
    )


def opened(settings: Settings, index: InMemoryVectorIndex | None = None) -> MemoryKit:
    return MemoryKit.open(settings=settings, model=None, embedder=None, index=index)


def learn(kit: MemoryKit, facts: Mapping[str, str], scope: Scope = ANN) -> None:
    for name, fact in facts.items():
        kit.save(name, fact, scope=scope)
    assert kit.admin.verify().healthy  # waits for the index


def held(url: str) -> int:
    """Return how many vectors pgvector holds."""
    with connect(url) as connection:
        found = connection.execute("SELECT count(*) FROM pgvector_records").fetchone()
        assert found is not None
        return int(found[0])


def asked(kit: MemoryKit) -> tuple[str, str]:
    """Return how vectors were searched, and what was found first."""
    found = kit.recall("Which tea does Ann like?", scope=ANN)
    return found.index, found.memories[0].text


@pytest.mark.requirement("C3", "X2")
def test_one_setting_has_the_ledgers_own_postgresql_search_vectors(postgres_url: str, tmp_path: Path) -> None:
    """Who runs PostgreSQL anyway should need no second server; what it holds can be rebuilt at any time."""
    settings = settings_of(postgres_url, tmp_path)
    with opened(settings) as kit:
        learn(kit, FACTS)
        assert asked(kit) == ("pgvector", FACTS["drink"])
        assert (kit.admin.health().index, kit.admin.stats()["index"]) == ("pgvector", "pgvector")
        assert kit.admin.rebuild() == EACH * len(FACTS)
        assert kit.admin.verify().healthy
        assert asked(kit) == ("pgvector", FACTS["drink"])
        assert kit.admin.examine().findings == ()
    for named in ("pgvector", None):  # a command without the setting asks the ledger
        assert probes.health(settings.evolve(index=named)).index == "pgvector"
    assert not (tmp_path / "index").exists()
    with opened(settings.evolve(index=None)) as kit:
        assert asked(kit) == ("pgvector", FACTS["drink"]), "a command without the setting takes no index away"


@pytest.mark.requirement("X2")
def test_another_embedder_may_have_vectors_of_another_length(postgres_url: str, tmp_path: Path) -> None:
    """A column of one length would tie a ledger to its first embedder."""
    settings = settings_of(postgres_url, tmp_path)
    with opened(settings) as kit:
        learn(kit, FACTS)
    with MemoryKit.open(
        settings=settings, model=None, embedder=HashedEmbedder(64), options=OpenOptions(reindex=True)
    ) as kit:
        assert kit.admin.reindex() == EACH * len(FACTS)
        assert kit.admin.verify().healthy
        assert asked(kit) == ("pgvector", FACTS["drink"])
    assert held(postgres_url) == EACH * len(FACTS)


@pytest.mark.requirement("X2", "X9")
def test_a_process_that_has_the_index_before_goes_on_from_sql_and_leaves_the_new_one_its_work(
    postgres_url: str, tmp_path: Path
) -> None:
    """Processes are replaced one by one: what the last old one learned must be found by all new ones, and the other way."""
    settings, other = settings_of(postgres_url, tmp_path), InMemoryVectorIndex()  # stands for a Chroma server
    with opened(settings.evolve(index="chroma"), other) as old:
        learn(old, {"pet": FACTS["pet"]})
        with opened(settings) as new:
            learn(new, {"drink": FACTS["drink"]})
            assert asked(old) == ("sql", FACTS["drink"])
            old.save("home", FACTS["home"], scope=ANN)
            with pytest.raises(IndexChangedError, match="REMEGRAPH_INDEX=pgvector"):
                old.admin.rebuild()
            found = old.admin.health()
            assert (found.index, found.ready, "REMEGRAPH_INDEX=pgvector" in found.problem) == ("down", True, True)
            new.save("job", "Ann works as a nurse.", scope=ANN)
            assert (new.admin.verify().differences, held(postgres_url)) == ((), EACH * (len(FACTS) + 1))


@pytest.mark.requirement("X2", "X9")
def test_where_settings_forbid_it_no_process_changes_the_index_over_but_the_job_that_migrates(
    app_url: str, postgres_url: str, tmp_path: Path
) -> None:
    """An old process that is started again would change it back, and mark every record each time."""
    owner, service = settings_of(postgres_url, tmp_path), settings_of(app_url, tmp_path, migrate="never")
    migrate(owner, apply=True)
    with opened(service) as kit:
        learn(kit, FACTS)
    with pytest.raises(SetupError, match=r"chroma.*remegraph migrate --apply"):
        opened(service.evolve(index="chroma"), InMemoryVectorIndex())
    (step,) = migrate(owner.evolve(index="chroma")).steps
    assert (step.what, step.adds_only) == (
        "The index changes from pgvector to chroma: all vectors are brought in again.",
        True,
    )
    assert migrate(owner.evolve(index="chroma"), apply=True, change_index=True).applied
    assert held(postgres_url) == 0
    with pytest.raises(SetupError, match=r"pgvector.*remegraph migrate --apply"):
        opened(service)
    with opened(service.evolve(index="chroma"), InMemoryVectorIndex()) as kit:
        learn(kit, {"job": "Ann works as a nurse."})


@pytest.mark.requirement("X2", "X9")
def test_settings_that_name_another_index_are_told_from_outside_and_migrate_nothing_unasked(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong variable of the job that migrates would empty the index of a service, and stop all that are started again."""
    right = settings_of(postgres_url, tmp_path)
    with opened(right) as kit:
        learn(kit, FACTS)
    wrongly = [right.evolve(index="chroma"), right.evolve(index=None, chroma_url="http://127.0.0.1:1")]
    for wrong in wrongly:
        found = probes.health(wrong)
        assert (found.ready, found.index, found.degraded) == (True, "down", True)
        with pytest.raises(SetupError) as refused:
            migrate(wrong, apply=True)
        (finding,) = diagnose(wrong, embedder=None).findings
        assert (finding.check, finding.severity) == ("index", "error")
        assert found.problem == str(refused.value) == f"{finding.what} {finding.cure}"
        assert found.problem.startswith("The index of the ledger is pgvector, and these settings name chroma. Set ")
        assert (migrate(wrong).changes_index, migrate(wrong).problem) == (True, found.problem)
        assert held(postgres_url) == EACH * len(FACTS), "nothing was changed"
    monkeypatch.setenv("REMEGRAPH_LEDGER_URL", postgres_url)
    monkeypatch.setenv("REMEGRAPH_INDEX", "chroma")
    monkeypatch.setenv("REMEGRAPH_HOME", str(tmp_path))
    command = ["migrate", "--apply"]
    told = CliRunner().invoke(app, command)
    assert (told.exit_code, "Set REMEGRAPH_INDEX=pgvector" in " ".join(told.stderr.split())) == (1, True)
    planned = " ".join(CliRunner().invoke(app, ["migrate"]).stdout.split())
    problem = probes.health(wrongly[0]).problem
    assert planned.startswith(f"{problem} The ledger has schema"), "what is wrong, before what would be done"
    assert "from pgvector to chroma: changes the index" in planned, "which is more than to add"
    assert planned.endswith("If these settings are right, do it: `remegraph migrate --apply --change-index`.")
    assert json.loads(CliRunner().invoke(app, ["migrate", "--json"]).stdout)["problem"] == problem
    assert held(postgres_url) == EACH * len(FACTS)
    assert CliRunner().invoke(app, [*command, "--change-index"]).exit_code == 0
    assert held(postgres_url) == 0
    assert (probes.health(wrongly[0]).problem, probes.health(right).index) == ("", "down")


@pytest.mark.requirement("X7")
def test_whoever_is_erased_leaves_no_vector(postgres_url: str, tmp_path: Path) -> None:
    """A vector tells much of the words that it was made of."""
    with opened(settings_of(postgres_url, tmp_path)) as kit:
        learn(kit, FACTS)
        learn(kit, {"drink": "Bob likes coffee."}, BOB)
        receipt = kit.admin.erase(Subject(user="ann"))
        assert (receipt.complete, held(postgres_url)) == (True, EACH)
        assert not any("Chroma" in each for each in receipt.not_covered)
        assert kit.admin.verify().healthy


@pytest.mark.requirement("X2", "X7")
def test_an_index_that_was_left_is_empty_and_begins_anew_when_it_is_chosen_again(
    postgres_url: str, tmp_path: Path
) -> None:
    """It knows nothing of what was learned and erased meanwhile, and would answer all the same."""
    settings, other = settings_of(postgres_url, tmp_path), InMemoryVectorIndex()  # stands for a Chroma server
    with opened(settings.evolve(index="chroma"), other) as kit:
        learn(kit, {"town": "Ann was born in Porto."})
        left = other.collections()
    with opened(settings) as kit:
        assert kit.admin.verify().differences[0].problem == "pending"
        learn(kit, FACTS)
        assert asked(kit) == ("pgvector", FACTS["drink"])
    with opened(settings.evolve(index="chroma"), other) as kit:
        assert held(postgres_url) == 0
        learn(kit, {"drink": "Bob likes coffee."}, BOB)
        kit.admin.erase(Subject(user="bob"))
        assert left.isdisjoint(other.collections()), "what was left there once knows nothing of the time since"
        assert kit.recall("Which tea does Ann like?", scope=ANN).index == "chroma"
    with opened(settings) as kit:
        kit.save("job", "Ann works as a nurse.", scope=ANN)
        assert kit.admin.verify().healthy
        assert (held(postgres_url), asked(kit)) == (EACH * (len(FACTS) + 2), ("pgvector", FACTS["drink"]))


@pytest.mark.requirement("X2", "X9")
def test_a_copy_of_the_database_has_an_index_of_its_own(postgres_url: str, tmp_path: Path) -> None:
    """A ledger that is tried out beside its original costs the original nothing, and keeps no vector that it does not use."""
    settings = settings_of(postgres_url, tmp_path)
    with opened(settings) as kit:
        learn(kit, FACTS)
    with copied(postgres_url) as url, opened(settings_of(url, tmp_path)) as copy:
        learn(copy, {"job": "Ann works as a nurse."})
        assert held(url) == EACH * (len(FACTS) + 1)
        copy.admin.erase(Subject(user="ann"))
        assert (held(url), held(postgres_url)) == (0, EACH * len(FACTS))
        with opened(settings) as kit:
            assert kit.admin.verify().healthy
            assert asked(kit) == ("pgvector", FACTS["drink"])


@pytest.mark.slow
@pytest.mark.requirement("X9")
@pytest.mark.parametrize("without", [[], ["--exclude-table-data=pgvector_*"]])
def test_a_dump_brings_the_ledger_back_with_its_index_or_without(
    without: list[str], postgres_server: str, postgres_url: str, tmp_path: Path
) -> None:
    """What is made from SQL need not be in the backup, and harms nothing there."""
    source, dump = postgres_url.replace("+psycopg", ""), tmp_path / "ledger.dump"
    with opened(settings_of(postgres_url, tmp_path)) as kit:
        learn(kit, FACTS)
    subprocess.run([postgres_tool("pg_dump"), "--format=custom", f"--file={dump}", *without, source], check=True)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE brought_back")
    target = make_url(source).set(database="brought_back").render_as_string(hide_password=False)
    subprocess.run([postgres_tool("pg_restore"), f"--dbname={target}", dump], check=True)
    with opened(settings_of(target, tmp_path)) as kit:
        assert kit.recall("Which tea does Ann like?", scope=ANN).memories[0].text == FACTS["drink"]
        assert kit.admin.rebuild() == EACH * len(FACTS)
        assert kit.admin.verify().healthy
        assert asked(kit) == ("pgvector", FACTS["drink"])
    assert held(target) == EACH * len(FACTS)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("DROP DATABASE brought_back WITH (FORCE)")


@pytest.mark.requirement("X9")
def test_two_processes_write_and_both_find_everything(postgres_url: str, tmp_path: Path) -> None:
    """One at a time brings changes into the index; what the other one learned is left out by neither."""
    settings = settings_of(postgres_url, tmp_path)
    with opened(settings) as one, opened(settings) as other, ThreadPoolExecutor(4) as pool:
        users = [Scope(user=f"user {number}") for number in range(8)]

        def write(number: int) -> None:
            kit = (one, other)[number % 2]
            for name, fact in FACTS.items():
                kit.save(name, fact, scope=users[number])

        list(pool.map(write, range(len(users))))
        one.admin.examine(fix=True)  # what the one left to the other while that one was at it
        for kit in (one, other):
            assert kit.admin.verify().healthy
            for scope in users:
                found = kit.recall("Which tea does Ann like?", scope=scope)
                assert (found.index, found.memories[0].text) == ("pgvector", FACTS["drink"])
    assert held(postgres_url) == EACH * len(users) * len(FACTS)


# ------------------------------------------------------------------------------ who may make what


@pytest.mark.requirement("X9")
def test_a_role_that_may_change_no_table_does_all_once_the_tables_are_there(
    app_url: str, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who breaks into a service must not get tables by its account; graphs are for whoever migrates."""
    service, owner = settings_of(app_url, tmp_path, migrate="never"), settings_of(postgres_url, tmp_path)
    with pytest.raises(SchemaTooOldError, match=r"pgvector.*migrate --apply"):
        opened(service)
    assert [step.what for step in migrate(owner).steps] == ["The tables of pgvector."]
    assert migrate(owner, apply=True).applied
    assert migrate(owner).steps == ()
    monkeypatch.setattr(pgvector, "LARGE", 2)
    with opened(service) as kit:
        learn(kit, FACTS)
        assert kit.admin.rebuild() == EACH * len(FACTS)
        assert asked(kit) == ("pgvector", FACTS["drink"])
        assert [step.what for step in migrate(owner).steps] == ["Graphs of pgvector for 1 large collections."]
        (due,) = kit.admin.examine().findings
        assert (due.check, due.severity, due.what) == (
            "index",
            "warning",
            "Graphs of pgvector for 1 large collections are due.",
        )
        assert due.commands == ("remegraph migrate --apply",)
        migrate(owner, apply=True)
        assert (migrate(owner).steps, kit.admin.examine().findings) == ((), ())
        assert asked(kit) == ("pgvector", FACTS["drink"])
        assert kit.admin.erase(Subject(user="ann")).complete
    assert held(postgres_url) == 0


@pytest.mark.requirement("X9")
def test_a_database_without_the_extension_is_told_with_the_cure(
    app_url: str, postgres_url: str, tmp_path: Path
) -> None:
    """That a permission is denied says nothing of who should do what."""
    with connect(postgres_url) as connection:
        connection.execute("GRANT CREATE ON SCHEMA public TO remegraph_app")
        with pytest.raises(SetupError) as refused:
            opened(settings_of(app_url, tmp_path))
        assert "CREATE EXTENSION vector" in refused.value.cure
        assert "REMEGRAPH_INDEX=chroma" in refused.value.cure
        connection.execute("CREATE EXTENSION vector")
    with opened(settings_of(app_url, tmp_path)) as kit:
        learn(kit, FACTS)
        assert asked(kit) == ("pgvector", FACTS["drink"])


def test_pgvector_on_sqlite_is_refused_with_the_cure(tmp_path: Path) -> None:
    """A setting that has no effect would be found out when it is too late."""
    with pytest.raises(SetupError, match="REMEGRAPH_LEDGER_URL"):
        MemoryKit.open(settings=Settings(home=tmp_path, index="pgvector"), model=None, embedder=None)
    with pytest.raises(SetupError, match="REMEGRAPH_LEDGER_URL"):
        migrate(Settings(home=tmp_path, index="pgvector"), apply=True)


def test_a_graph_goes_with_its_collection(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each rebuild would leave one behind, which every later write would be held against."""
    monkeypatch.setattr(pgvector, "LARGE", 2)
    graphs = "SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'pgvector_graph_%'"
    with closing(Database.open(postgres_url)) as database, connect(postgres_url) as connection:
        index, vectors = PgvectorIndex.open(database), HashedEmbedder(64).embed(list(FACTS.values()))
        for gone in (lambda: index.drop("col"), index.reset):
            index.upsert("col", list(FACTS), ["x"] * len(FACTS), vectors)
            index.optimize("col")
            index.optimize("col")
            assert connection.execute(graphs).fetchone() == (1,)
            gone()
            assert connection.execute(graphs).fetchone() == (0,)
