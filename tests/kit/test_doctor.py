"""The doctor: every planted fault is found and explained; what is safe is mended; what is sound is left alone."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from remegraph import MemoryKit, Message, Settings, SetupError
from remegraph.errors import IndexSilentError
from remegraph.files import IndexOwner
from remegraph.kit.admin import doctor
from remegraph.kit.admin.doctor import diagnose
from remegraph.kit.admin.examination import mended
from remegraph.ledger.database import Database
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.ledger.journal import add_key, keys_in
from remegraph.models import Diagnosis, Finding
from remegraph.ports import VectorIndex
from remegraph.settings import AgentMemorySettings, ExtractionPolicy
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.pictures import PNG, image, sha
from tests.reliability.power import KeptIndex
from tests.reliability.released import FIRST, columns, hashes, later
from tests.talk import ANN, NOON, said

pytestmark = pytest.mark.requirement("X2")

DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, VectorIndex]:
    """A sound home, and its index."""
    home, index = tmp_path_factory.mktemp("template") / "home", KeptIndex()
    with MemoryKit.open(home, model=None, embedder=None, index=index, clock=FrozenClock(NOON)) as kit:
        shown = Message(role="user", content=[{"type": "text", "text": "My cat."}, image()], time=NOON, thread="main")
        kit.add_messages([said("I live in Lisbon. I love tea."), shown], scope=ANN)
        kit.summarize(scope=ANN, close=True)
    return home, index


@pytest.fixture
def home(template: tuple[Path, VectorIndex], tmp_path: Path) -> Path:
    """A copy, to be spoiled."""
    return Path(shutil.copytree(template[0], tmp_path / "home"))


@pytest.fixture
def look(template: tuple[Path, VectorIndex], home: Path) -> Callable[..., Diagnosis]:
    """Let the doctor look."""

    def look(
        *, fix: bool = False, ahead: timedelta = timedelta(0), index: VectorIndex | None = None, **given: Any
    ) -> Diagnosis:
        clock = FrozenClock(NOON + ahead)
        settings = Settings(home=home, **given)
        return diagnose(settings, fix=fix, embedder=None, index=template[1] if index is None else index, clock=clock)

    return look


def told(found: Diagnosis) -> list[tuple[str, str, bool]]:
    """What was found, how bad it is, and whether it was mended."""
    return [(each.check, each.severity, bool(each.done)) for each in found.findings]


def run(home: Path, *statements: str) -> None:
    """Change the ledger behind everybody's back."""
    with closing(sqlite3.connect(home / "ledger.sqlite", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def content(home: Path) -> dict[str, str]:
    """A checksum of each file; of the ledger, of what it says."""
    files = {
        path.relative_to(home).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in home.rglob("*")
        if path.is_file() and not path.name.startswith("ledger.sqlite")
    }
    engine = create_engine(f"sqlite:///{home / 'ledger.sqlite'}")
    with engine.connect() as connection:
        files |= hashes(connection, columns(connection))
    engine.dispose()
    return files


def test_a_sound_home_is_found_healthy_and_is_not_changed(home: Path, look: Callable[..., Diagnosis]) -> None:
    """A doctor who makes the healthy ill is not called again."""
    before = content(home)
    found = look()
    assert found.findings == ()
    assert found.healthy
    assert len(found.checks) == 16
    assert content(home) == before
    assert look(fix=True).findings == ()


def gone(home: Path) -> None:
    shutil.rmtree(home)


def without_ledger(home: Path) -> None:
    (home / "ledger.sqlite").unlink()


def no_database(home: Path) -> None:
    (home / "ledger.sqlite").write_text("My notes. " * 200, encoding="utf-8")


def torn_page(home: Path) -> None:
    run(home, "PRAGMA wal_checkpoint(TRUNCATE)")
    with (home / "ledger.sqlite").open("r+b") as file:
        file.seek(4096 * 20)
        file.write(b"\xff" * 4096)


def orphan(home: Path) -> None:
    run(home, "INSERT INTO dirty VALUES (99, 'memory', 'x', 'y')")


def of_tomorrow(home: Path) -> None:
    run(home, "UPDATE remegraph_schema SET version_num = '9999'")


@pytest.mark.parametrize(
    ("plant", "check", "words"),
    [
        (gone, "home", "no memory"),
        (without_ledger, "ledger", "no ledger"),
        (no_database, "ledger", "not a database"),
        (torn_page, "ledger", "damaged|malformed"),
        (orphan, "ledger", "refers to a row of partitions"),
        (of_tomorrow, "ledger", "schema 9999"),
    ],
)
def test_a_home_that_no_kit_should_open_is_explained_and_left_alone(
    plant: Callable[[Path], None], check: str, words: str, home: Path, look: Callable[..., Diagnosis]
) -> None:
    """Who calls a doctor cannot open the home; the answer must be more than a traceback, and must do no harm."""
    plant(home)
    files = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} if home.exists() else {}
    for fix in (False, True):
        (found,) = look(fix=fix).findings
        assert (found.check, found.severity, found.done) == (check, "error", "")
        assert found.cure
        assert any(word in found.what for word in words.split("|"))
    assert home.exists() == bool(files)
    assert all(path.read_bytes() == data for path, data in files.items())


def test_a_ledger_of_an_earlier_release_is_brought_up_to_date_only_where_that_is_asked_for(tmp_path: Path) -> None:
    """Looking must not upgrade: the old release may still be running."""
    Database.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}").close()
    settings = Settings(home=tmp_path)
    with later():
        assert told(diagnose(settings, embedder=None, index=KeptIndex())) == [("schema", "warning", False)]
        with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as ledger:
            assert ledger.execute("SELECT version_num FROM remegraph_schema").fetchall() == [(FIRST,)]
        found = diagnose(settings, fix=True, embedder=None, index=KeptIndex())
    assert told(found) == [("schema", "warning", True)]
    assert found.healthy
    assert "clock" in found.checks


def test_what_is_wrong_inside_is_found_all_at_once(home: Path, look: Callable[..., Diagnosis]) -> None:
    """Faults come in company; the first one found must not hide the others."""
    shutil.rmtree(home / "blobs")
    run(
        home,
        "UPDATE events SET actor = 'nobody' WHERE id = (SELECT min(id) FROM events)",
        "DELETE FROM messages WHERE seq = 1",
        "UPDATE jobs SET state = 'waiting', due_at = 1, attempts = 4, reason = 'no key' WHERE kind = 'summarize'",
        "UPDATE work SET state = 'failed', reason = '\"no answer\"'",
    )
    found = look(ahead=-DAY)
    assert told(found) == [
        ("records", "error", False),
        ("records", "error", False),
        ("attachments", "error", False),
        ("journal", "error", False),
        ("jobs", "warning", False),
        ("jobs", "warning", False),
        ("work", "warning", False),
        ("clock", "warning", False),
    ]
    assert not found.healthy
    words = " ".join(each.what for each in found.findings)
    for word in (
        sha(PNG),
        "its words are missing",
        "changed, moved or taken away",
        "no key",
        "more than a day",
        "no answer",
        "1 day",
    ):
        assert word in words
    assert told(look(fix=True, ahead=-DAY)) == told(found)


SET = "UPDATE memories SET {} WHERE id = (SELECT min(id) FROM memories)"
MOVED = 'UPDATE partitions SET "user" = \'bob\', key = \'["default", "bob", "remy", null]\' WHERE "user" = \'ann\''


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (SET.format("status = 'archived'"), "its status is not what was committed"),
        (SET.format("status = 'archived', importance = 1"), "its status and importance are not what was committed"),
        (SET.format("applies_to = 'project:x', memory_class = 'policy'"), "its applies_to and memory_class are not"),
        (SET.format("version = 7"), "its head is no version that was committed"),
        (SET.format("body = replace(body, 'Lisbon', 'Madrid')"), "its head is no version that was committed"),
        (SET.format("partition_id = (SELECT max(id) FROM partitions)"), "its partition is not what was committed"),
        (SET.format("topic_id = (SELECT max(id) FROM topics)"), "its topic is not what was committed"),
        ("UPDATE partitions SET \"user\" = 'bob' WHERE \"user\" = 'ann'", "its name was changed"),
        (MOVED, "its partition is not what was committed"),
    ],
)
def test_what_was_changed_in_the_ledger_past_the_journal_is_told_also_after_a_rebuild(
    tmp_path: Path, change: str, words: str
) -> None:
    """A status decides what agents are shown, and a partition whom; the index follows whatever the ledger says."""
    bob = ANN.evolve(user="bob", agent="other")
    with MemoryKit.open(tmp_path, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        kit.save("place", "Ann lives in Lisbon.", scope=ANN)
        kit.save("drink", "Bob likes tea.", scope=bob)
        assert kit.admin.verify().healthy
        run(tmp_path, "PRAGMA foreign_keys=OFF", change)
    with MemoryKit.open(tmp_path, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        kit.admin.rebuild()
        assert words in " ".join(each.problem for each in kit.admin.verify().differences)
        assert "records" in {each.check for each in kit.admin.examine(fix=True).findings}


def test_a_memory_whose_block_is_gone_is_told(home: Path, look: Callable[..., Diagnosis]) -> None:
    """The trace of such a memory would end at nothing, and nobody would know before they need it."""
    run(home, "DELETE FROM blocks")
    (finding,) = look().findings
    assert (finding.check, finding.severity) == ("records", "error")
    assert "its blocks are missing" in finding.what


def test_what_is_safe_is_mended_and_all_is_looked_at_again(home: Path, look: Callable[..., Diagnosis]) -> None:
    """At three in the night, one command that puts right what it may, and says what is left, is worth a manual."""
    (home / "journal.key").chmod(0o644)
    run(
        home,
        "UPDATE jobs SET state = 'dead', reason = 'gave up' WHERE kind = 'summarize'",
        "UPDATE work SET state = 'failed', reason = '\"no answer\"'",
    )
    empty = KeptIndex()
    left = ("work", "warning", False)
    before = look(index=empty)
    assert told(before) == [("key", "warning", False), ("index", "warning", False), ("jobs", "warning", False), left]
    assert [each.fixable for each in before.findings] == [True, True, True, False]
    commands = before.findings[-1].commands
    assert commands == ("remegraph work retry --tenant default --user ann --agent remy",)  # of another agent: nothing
    after = look(index=empty, fix=True)
    assert told(after) == [("key", "warning", True), ("index", "warning", True), ("jobs", "warning", True), left]
    assert not after.healthy
    assert (home / "journal.key").stat().st_mode & 0o077 == 0
    assert told(look(index=empty)) == [left]


@pytest.mark.parametrize("error", [SetupError("It may not be.", "Ask its owner."), PermissionError("not permitted")])
def test_what_could_not_be_repaired_is_not_offered_for_repair_again(error: Exception) -> None:
    """Who lacks the rights would run the same command for ever."""

    def repair() -> str:
        raise error

    finding = Finding(check="key", severity="warning", what="Others may read it.", cure="Close it.", fixable=True)
    (left,) = mended(iter([(finding, repair)]), fix=True)
    assert (left.fixable, left.done) == (False, "")
    assert "It could not be repaired" in left.cure


def test_what_waits_for_the_index_is_brought_in(home: Path, look: Callable[..., Diagnosis]) -> None:
    """What a crash left to do is done."""
    run(home, "INSERT INTO dirty SELECT partition_id, 'memory', memory_id, 'm' FROM memories")
    assert told(look()) == [("backlog", "warning", False)]
    assert told(look(fix=True)) == [("backlog", "warning", True)]
    assert look().findings == ()


def test_a_lost_key_is_told_and_no_other_one_is_made(home: Path, look: Callable[..., Diagnosis]) -> None:
    """A fresh key would look like the old one, until somebody wants to prove something."""
    (home / "journal.key").unlink()
    for fix in (False, True):
        assert told(look(fix=fix)) == [("key", "error", False), ("journal", "error", False)]
    assert not (home / "journal.key").exists()


def test_a_key_that_the_settings_hold_as_a_former_one_is_not_missing(
    home: Path, look: Callable[..., Diagnosis]
) -> None:
    """Until another key seals, the settings may call the one that does a former one."""
    former = keys_in(home)[0].decode()
    (home / "journal.key").unlink()
    assert look(former_journal_keys=(former,)).healthy


def test_another_embedder_is_told_and_all_else_is_examined(home: Path, template: tuple[Path, VectorIndex]) -> None:
    """A wrong setting must not hide a damaged index behind it."""
    (home / "journal.key").chmod(0o644)
    for wrong in (HashedEmbedder(64), "nobody:nothing"):
        found = diagnose(Settings(home=home), embedder=wrong, index=template[1], clock=FrozenClock(NOON))
        assert told(found) == [("key", "warning", False), ("embedder", "error", False)]
        assert "clock" in found.checks


@pytest.mark.parametrize(
    "given",
    [
        {"model": "nobody:nothing"},
        {"agent": AgentMemorySettings(extraction=ExtractionPolicy(model_id="nobody:nothing"))},
        {"agents": {"remy": AgentMemorySettings(extraction=ExtractionPolicy(model_id="nobody:nothing"))}},
    ],
)
def test_a_model_that_cannot_be_made_is_told_and_all_else_is_examined(
    home: Path, template: tuple[Path, VectorIndex], given: dict[str, Any]
) -> None:
    """No worker starts with it: whoever deploys must hear of it here, and not from a pod that starts again and again."""
    settings = Settings(home=home, **given)
    found = diagnose(settings, embedder=None, index=template[1], clock=FrozenClock(NOON))
    (wrong,) = (each for each in found.findings if each.check == "model")
    assert (wrong.severity, "nobody:nothing" in wrong.what) == ("error", True)
    assert "clock" in found.checks


def test_an_index_that_another_process_owns_is_no_fault(home: Path) -> None:
    """An agent that runs is how it should be; it is said who it is, as far as the system tells."""
    owner = IndexOwner.acquire(home / "index")
    assert owner is not None
    found = diagnose(Settings(home=home), embedder=None, clock=FrozenClock(NOON))
    owner.close()
    assert told(found) == [("owner", "note", False)]
    assert found.healthy
    assert "owns the vector index" in found.findings[0].what


def test_a_chroma_server_that_does_not_answer_is_a_warning_and_its_cure_is_to_start_it(home: Path) -> None:
    """Memory works meanwhile, and to rebuild the index fails for the same reason."""
    settings = Settings(home=home, chroma_url="http://127.0.0.1:1")
    found = diagnose(settings, embedder=None, clock=FrozenClock(NOON))
    assert told(found) == [("index", "warning", False)]
    (finding,) = found.findings
    assert finding.what.startswith("The Chroma server does not answer")
    assert "REMEGRAPH_CHROMA_URL" in finding.cure
    assert "rebuild" not in finding.cure
    with (
        MemoryKit.open(settings=settings, model=None, embedder=None, clock=FrozenClock(NOON)) as kit,
        pytest.raises(IndexSilentError) as refused,
    ):
        kit.admin.rebuild()
    assert (refused.value.what, refused.value.cure) == (finding.what, finding.cure)


def test_little_room_is_told_before_there_is_none(
    look: Callable[..., Diagnosis], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is the one fault that can be seen coming."""
    monkeypatch.setattr(doctor, "_ROOM", 1 << 62)
    assert told(look()) == [("disk", "warning", False)]


def test_an_open_kit_examines_itself(home: Path, template: tuple[Path, VectorIndex]) -> None:
    """A service that runs for months is asked without being stopped."""
    run(home, "UPDATE jobs SET state = 'dead'")
    with MemoryKit.open(home, model=None, embedder=None, index=template[1], clock=FrozenClock(NOON)) as kit:
        assert told(kit.admin.examine()) == [("jobs", "warning", False)]
        assert told(kit.admin.examine(fix=True)) == [("jobs", "warning", True)]
        assert kit.admin.examine().healthy


def test_a_ledger_on_a_server_is_examined_where_it_is(postgres_url: str, tmp_path: Path) -> None:
    """Whoever moved to PostgreSQL wants the doctor to come along, and no password in what it says."""
    settings = Settings(home=tmp_path, ledger_url=postgres_url)
    add_key(tmp_path)
    assert told(diagnose(settings, embedder=None, index=KeptIndex())) == [("schema", "warning", False)]
    assert told(diagnose(settings, fix=True, embedder=None, index=KeptIndex())) == [("schema", "warning", True)]
    (tmp_path / "journal.key").chmod(0o644)
    assert told(diagnose(settings, embedder=None, index=KeptIndex())) == [("key", "warning", False)]
    away = settings.evolve(ledger_url="postgresql://ann:hush@127.0.0.1:1/none")
    (found,) = diagnose(away, embedder=None, index=KeptIndex()).findings
    assert found.check == "ledger"
    assert "server runs" in found.cure
    assert "hush" not in f"{found}"
