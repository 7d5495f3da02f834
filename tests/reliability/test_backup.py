"""Backups: taken while others write, whole or not at all, and what is restored is what was there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from conftest import Figure
from evals._servers import postgres_tool
from remegraph import CancelledError, MemoryKit, Message, Progress, RecallPolicy, Scope, Settings
from remegraph.errors import BackupError, SchemaTooNewError
from remegraph.kit import OpenOptions
from remegraph.kit.admin.doctor import inspect_backup, restore_backup
from remegraph.ledger import backup as backups
from remegraph.ledger.backup import BackupRun
from remegraph.ledger.database import Database
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.testing import FrozenClock, InMemoryVectorIndex, SequentialIds
from tests import talk
from tests.pictures import PNG, image, sha
from tests.reliability.host import ROOT
from tests.reliability.power import KeptIndex
from tests.talk import ANN, NOON, open_kit, said

BOB = Scope(user="bob", agent="remy")
pytestmark = pytest.mark.requirement("X2", "X3")

PLACES = "Lisbon Porto Oslo Rome Kyoto Lima Quito Cairo Accra Hanoi Delhi Perth Turin Ghent Basel Graz".split()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home that was talked with, and a backup of it."""
    folder = tmp_path_factory.mktemp("made")
    with open_kit(folder / "home") as kit:
        kit.add_messages([said("I live in Lisbon. I love tea."), picture()], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        kit.admin.backup(folder / "backup")
    return folder


@pytest.fixture
def backup(made: Path, tmp_path: Path) -> Path:
    """The backup, to be damaged."""
    return Path(shutil.copytree(made / "backup", tmp_path / "backup"))


def picture() -> Message:
    """A message of a user that shows something."""
    return Message(
        role="user", content=[{"type": "text", "text": "This is my cat."}, image()], time=NOON, thread="main"
    )


def told(kit: MemoryKit, scope: Scope = ANN) -> object:
    """All that a scope holds."""
    return kit.sources.retrieve_message(scope=scope), kit.memories(scope=scope), kit.sources.blocks(scope=scope)


class Counting(HashedEmbedder):
    """An embedder that counts what it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += len(texts)
        return super().embed(texts)


def test_what_is_restored_is_what_was_there_and_nothing_is_embedded_again(made: Path, tmp_path: Path) -> None:
    """A disk dies; the agent must know on the next machine what it knew, without a bill for embedding it all."""
    restored = restore_backup(made / "backup", tmp_path / "home")
    embedder = Counting()
    with (
        open_kit(made / "home") as kit,
        MemoryKit.open(tmp_path / "home", model=None, embedder=embedder, index=InMemoryVectorIndex()) as copy,
    ):
        assert copy.admin.rebuild() == kit.admin.rebuild() > 0
        assert embedder.texts == 0
        assert told(copy) == told(kit)
        assert copy.sources.attachment(sha(PNG), scope=ANN) == PNG
        assert copy.admin.verify().healthy
        counts = copy.admin.stats()
    assert {name: counts[name] for name in ("messages", "memories", "events")} == {
        name: restored.counts[name] for name in ("messages", "memories", "events")
    }
    assert restored == inspect_backup(made / "backup")


def test_a_restored_home_leaves_the_index_of_its_original_alone(made: Path, tmp_path: Path) -> None:
    """Both may use one Chroma server: whoever tries a restore must not empty the index of the agent that is at work."""
    index = KeptIndex()  # outlives a kit and is shared, as a server is

    def opened(home: Path) -> MemoryKit:
        return MemoryKit.open(home, model=None, embedder=None, index=index, clock=FrozenClock(NOON))

    restore_backup(made / "backup", tmp_path / "home")
    with opened(made / "home") as kit:
        kit.admin.rebuild()
        with opened(tmp_path / "home") as copy:
            copy.add_messages([said("I love bread.", thread="new")], scope=ANN)
            copy.summarize(scope=ANN, close=True)
            assert copy.admin.verify().differences == kit.admin.verify().differences == ()
            copy.admin.rebuild()
        with opened(tmp_path / "home") as copy:
            assert copy.admin.verify().differences == kit.admin.verify().differences == ()


def test_a_backup_is_one_moment_whatever_is_written_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a conversation, or a block without its messages, would be worse than none; nobody shall wait for it."""
    monkeypatch.setattr(backups, "_PAGES", 40)
    with open_kit(tmp_path / "home") as kit:
        kit.add_messages([f"Before {number}." for number in range(5)], scope=ANN)
        during: list[int] = []

        def write(_progress: Progress) -> None:
            during.append(kit.add_messages(["Meanwhile."], scope=ANN).added)
            assert len(during) < 50, "the copy begins anew at each write"

        taken = kit.admin.backup(tmp_path / "backup", progress=write)
    assert sum(during) > 2
    assert taken.counts["messages"] == 5
    restore_backup(tmp_path / "backup", tmp_path / "other")
    with open_kit(tmp_path / "other") as copy:
        assert [message.text for message in copy.sources.retrieve_message(scope=ANN)] == [
            f"Before {n}." for n in range(5)
        ]


def test_a_backup_holds_neither_addresses_nor_keys_of_the_settings_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Backups travel: a password in one is a password lost."""
    settings = Settings(home=tmp_path / "home", journal_key="hush-1" * 4, chroma_url="http://ann:hush-2@localhost:1")
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        kit.add_messages(["I love tea."], scope=ANN)
        taken = kit.admin.backup(tmp_path / "backup")
    assert b"hush" not in b"".join(path.read_bytes() for path in (tmp_path / "backup").rglob("*") if path.is_file())
    assert set(taken.files) == {"ledger.sqlite"}
    assert taken.settings["recall"] == settings.recall.model_dump(mode="json")
    assert (tmp_path / "backup").stat().st_mode & 0o077 == 0


def flipped(backup: Path) -> None:
    ledger = backup / "ledger.sqlite"
    data = bytearray(ledger.read_bytes())
    data[len(data) // 2] ^= 1
    ledger.write_bytes(data)


def other_picture(backup: Path) -> None:
    next((backup / "blobs").glob("*/*/*")).write_bytes(b"another")


def without_key(backup: Path) -> None:
    (backup / "journal.key").unlink()


def torn(backup: Path) -> None:
    manifest = backup / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:100])


def of_nothing(backup: Path) -> None:
    shutil.rmtree(backup)


def climbing(backup: Path) -> None:
    (backup.parent / "evil").write_bytes(b"")
    manifest = json.loads((backup / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"]["../evil"] = {
        "size": 0,
        "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    }
    (backup / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


@pytest.mark.parametrize("damage", [flipped, other_picture, without_key, torn, of_nothing, climbing])
def test_a_damaged_backup_is_refused_before_anything_is_made(
    damage: Callable[[Path], None], backup: Path, tmp_path: Path
) -> None:
    """Who restores has lost enough: half a memory that looks whole must not take the place of the earlier backup."""
    damage(backup)
    with pytest.raises(BackupError):
        inspect_backup(backup)
    with pytest.raises(BackupError):
        restore_backup(backup, tmp_path / "home")
    assert not (tmp_path / "home").exists()
    assert [path.name for path in tmp_path.iterdir() if "draft" in path.name] == []


def test_a_backup_of_a_newer_schema_is_refused(backup: Path, tmp_path: Path) -> None:
    """An old program on the spare machine must say that it is too old."""
    manifest = json.loads((backup / "manifest.json").read_text(encoding="utf-8")) | {"revision": "9999"}
    (backup / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(SchemaTooNewError, match="Upgrade remegraph"):
        restore_backup(backup, tmp_path / "home")


def test_neither_a_home_nor_a_backup_is_written_over(made: Path, tmp_path: Path) -> None:
    """A mistyped folder must not cost the memory that is in it."""
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(BackupError, match="not empty"):
        restore_backup(made / "backup", tmp_path)
    with open_kit(made / "home") as kit, pytest.raises(BackupError, match="not empty"):
        kit.admin.backup(tmp_path)
    with pytest.raises(BackupError, match="Give a path"):
        restore_backup(made / "backup", "")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_a_folder_that_only_looks_like_a_draft_of_ours_is_left_alone(made: Path, tmp_path: Path) -> None:
    """What a killed backup left is cleared away; what somebody else keeps under that name is not."""
    notes = tmp_path / ".new.draft" / "notes.txt"
    notes.parent.mkdir()
    notes.write_text("Monday", encoding="utf-8")
    with open_kit(made / "home") as kit, pytest.raises(BackupError, match="Move it away"):
        kit.admin.backup(tmp_path / "new")
    with pytest.raises(BackupError, match="Move it away"):
        restore_backup(made / "backup", tmp_path / "new")
    assert [path.name for path in notes.parent.iterdir()] == ["notes.txt"]
    assert not (tmp_path / "new").exists()


def test_a_backup_that_is_cancelled_leaves_nothing(made: Path, tmp_path: Path) -> None:
    """Whoever stops it because the disk fills up wants the room back."""
    with open_kit(made / "home") as kit, pytest.raises(CancelledError):
        kit.admin.backup(tmp_path / "backup", cancel=lambda: True)
    assert list(tmp_path.iterdir()) == []


def test_an_attachment_that_is_lost_is_named_and_costs_no_backup(made: Path, tmp_path: Path) -> None:
    """One lost picture is no reason to lose the rest."""
    home = Path(shutil.copytree(made / "home", tmp_path / "home"))
    shutil.rmtree(home / "blobs")
    with open_kit(home) as kit:
        taken = kit.admin.backup(tmp_path / "backup")
    assert taken.missing == (sha(PNG),)
    assert inspect_backup(tmp_path / "backup") == taken


def test_a_ledger_on_postgresql_is_backed_up_by_its_own_tools(postgres_url: str, tmp_path: Path) -> None:
    """They exist, and are better; what is said is how to find them."""
    database = Database.open(postgres_url)
    with pytest.raises(BackupError, match="pg_dump"):
        BackupRun(database, tmp_path, None).run(tmp_path / "backup", at=NOON, settings={})
    database.close()
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------------------------------------------- slow

KILLED = """
import os, signal, sys
from pathlib import Path
from remegraph import MemoryKit
from remegraph.kit.admin.doctor import restore_backup
from remegraph.testing import InMemoryVectorIndex

what, source, target, steps = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])

def step(_progress):
    global steps
    steps -= 1
    if steps == 0:
        os.kill(os.getpid(), signal.SIGKILL)

if what == "backup":
    with MemoryKit.open(source, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        kit.admin.backup(target, progress=step)
else:
    restore_backup(source, target, progress=step)
"""


@pytest.mark.slow
def test_a_backup_or_restore_that_is_killed_is_nothing_and_can_be_repeated(
    made: Path, tmp_path: Path, figure: Figure
) -> None:
    """Backups are taken at night, when nobody sees the machine restart."""
    kills = 0
    for what, source in (("backup", made / "home"), ("restore", made / "backup")):
        target = tmp_path / what
        for steps in range(1, 20):
            process = subprocess.run(
                [sys.executable, "-c", KILLED, what, str(source), str(target), str(steps)],
                check=False,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
            if process.returncode == 0:
                break
            assert process.returncode == -signal.SIGKILL
            assert not target.exists()
            kills += 1
        assert steps > 3
        assert target.is_dir()
        assert [path.name for path in tmp_path.iterdir() if "draft" in path.name] == []
    inspect_backup(tmp_path / "backup")
    with open_kit(tmp_path / "restore") as kit, open_kit(made / "home") as before:
        assert told(kit) == told(before)
    figure("bar 17: backup", f"{kills} kills of backups and restores: none left a folder, each was repeated")


@pytest.mark.slow
def test_backups_under_load_lose_nothing_acknowledged_and_recall_is_the_same(tmp_path: Path, figure: Figure) -> None:
    """An agent that is talked with day and night is never at rest; its backup has to be true all the same."""

    def opened(home: Path) -> MemoryKit:
        settings = Settings(
            home=home, recall=RecallPolicy(exact_limit=0, index_timeout=60)
        )  # the index answers, however few there are
        return MemoryKit.open(
            settings=settings,
            model=None,
            embedder=HashedEmbedder(64),
            clock=FrozenClock(NOON),
            options=OpenOptions(new_id=SequentialIds()),
        )

    def top(kit: MemoryKit, query: str) -> list[str]:
        return [hit.record_id for hit in kit.recall(query, scope=ANN, k=10).memories]

    after: list[list[str]] = []
    queries = [
        f"What do I love in {PLACES[n % 16]}, {'tea coffee bread music rain'.split()[n % 5]}?" for n in range(50)
    ]
    stop, acknowledged = threading.Event(), list[list[str]]([[], [], []])
    with opened(tmp_path / "home") as kit:
        kit.add_messages(
            [f"I love {thing} in {place}." for place in PLACES for thing in ("tea", "bread", "rain")], scope=ANN
        )
        kit.summarize(scope=ANN, close=True)
        before = [top(kit, query) for query in queries]

        def talk(number: int) -> None:
            scope = Scope(user=f"talker {number}", agent="remy")
            while not stop.is_set():
                acknowledged[number].extend(kit.add_messages(["Still here."] * 3, scope=scope).message_ids)

        talkers = [threading.Thread(target=talk, args=(number,)) for number in range(3)]
        for talker in talkers:
            talker.start()
        known = 0
        try:
            for number in range(4):
                so_far = {message_id for each in acknowledged for message_id in each}
                kit.admin.backup(tmp_path / f"backup {number}")
                known += len(so_far)
                restore_backup(tmp_path / f"backup {number}", tmp_path / f"home {number}")
                with opened(tmp_path / f"home {number}") as copy:
                    held = {
                        message.message_id
                        for talker in range(3)
                        for message in copy.sources.retrieve_message(
                            limit=10**6, scope=Scope(user=f"talker {talker}", agent="remy")
                        )
                    }
                    assert so_far <= held
                    if number == 0:
                        copy.admin.rebuild()
                        assert copy.admin.verify().differences == ()
                        after = [top(copy, query) for query in queries]
        finally:
            stop.set()
            for talker in talkers:
                talker.join()
    same = [len(set(one) & set(other)) / len(one) for one, other in zip(before, after, strict=True) if one]
    assert len(same) == 50
    figure(
        "bar 17: backup",
        f"4 under load: {known} messages acknowledged before, 0 lost; same top 10: {sum(same) / 50:.3f}",
    )
    assert sum(same) / 50 >= 0.98


def tool(name: str, *arguments: str) -> None:
    """Run a program of PostgreSQL's, in the name of the account that owns the tables."""
    subprocess.run([postgres_tool(name), *arguments], check=True)


@pytest.mark.slow
@pytest.mark.requirement("X9")
@pytest.mark.parametrize("setup", ["servers"], indirect=True)
def test_the_tools_of_postgresql_bring_back_all_that_was_acknowledged(
    setup: str, tmp_path: Path, figure: Figure
) -> None:
    """The page on operations tells which commands to run: here they are run while people talk, as it says."""
    first, again = tmp_path / "home", tmp_path / "again"
    urls, dump, stop = [talk.urls_of(home) for home in (first, again)], tmp_path / "dump", threading.Event()
    owned = [each["ledger_url"].replace("remegraph_app:@", "postgres:@") for each in urls]
    acknowledged: list[str] = []
    with open_kit(first) as kit:
        kit.add_messages([said(f"I love tea in {place}.") for place in PLACES] + [picture()], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        def go_on() -> None:
            while not stop.is_set():
                acknowledged.extend(kit.add_messages(["Still here."] * 3, scope=BOB).message_ids)

        talker = threading.Thread(target=go_on)
        talker.start()
        try:
            while len(acknowledged) < 30:
                stop.wait(0.01)
            so_far = set(acknowledged)
            tool("pg_dump", "--format=custom", f"--file={dump}", owned[0])
        finally:
            stop.set()
            talker.join()
        shutil.copytree(first / "blobs", again / "blobs")
        shutil.copy(first / "journal.key", again)
        tool("pg_restore", "--clean", "--if-exists", f"--dbname={owned[1]}", str(dump))
        with MemoryKit.open(again, **urls[1], model=None, embedder=None, clock=FrozenClock(NOON)) as copy:
            copy.admin.rebuild()
            held = {message.message_id for message in copy.sources.retrieve_message(limit=10**6, scope=BOB)}
            assert so_far <= held
            assert told(copy) == told(kit)
            asked = [f"What do I love in {place}?" for place in PLACES]
            for query in asked:
                assert copy.recall(query, scope=ANN).memories == kit.recall(query, scope=ANN).memories
            assert copy.admin.verify().differences == ()
            assert copy.sources.attachment(sha(PNG), scope=ANN) == PNG
        kit.context.parts().projection.sync()
        assert kit.admin.verify().differences == ()
    figure(
        "bar 17: backup",
        f"{setup}, pg_dump under load: {len(so_far)} messages acknowledged before, 0 lost; same answers to {len(asked)} queries",
    )
