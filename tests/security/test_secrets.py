"""No key, no password and no word of a conversation stands in a log, an error, a figure or what a command prints of one."""

from __future__ import annotations

import json
import logging
import sqlite3
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import exc
from typer.testing import CliRunner

from remegraph import MemoryKit, RemegraphError, Settings
from remegraph.cli.app import app
from remegraph.errors import ModelUnavailableError
from remegraph.kit.admin.doctor import diagnose
from remegraph.ledger.database import Database
from remegraph.models import Message
from remegraph.settings import without_passwords
from remegraph.testing import InMemoryVectorIndex
from tests.talk import ANN, NOON, open_kit, replied, said

pytestmark = [pytest.mark.requirement("X6"), pytest.mark.usefixtures("log")]

WORD = "canary-message-4711"
KEY = "sk-proj-canaryKEY1234567890abcdefGHIJ"
PASSWORD = "canary-password"
URL = f"postgresql://ann:{PASSWORD}@localhost:1/db?password={PASSWORD}"


def clean(text: str) -> None:
    """Nothing of a conversation, of a key or of a password stands in a text."""
    assert [each for each in (WORD, KEY, PASSWORD) if each in text] == []


def told(act: Callable[[], object]) -> Exception:
    """Return the error that comes of it; neither it nor its trace says what it must not."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is
        act()
    clean("".join(traceback.format_exception(caught.value)))
    return caught.value


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """All that is logged, by anybody, at every level; at the end it is clean."""
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, logger="sqlalchemy.engine"):
        yield caplog
    clean("\n".join(f"{record.getMessage()} {record.exc_text}" for record in caplog.records))


def open_with(home: Path, script: dict[str, Any] | None = None) -> MemoryKit:
    """A kit in which the canary was said."""
    kit = open_kit(home, script)
    kit.add_messages([said(f"I love {WORD}.", message_id="m1"), replied(WORD, minutes=1)], scope=ANN)
    return kit


def test_a_whole_run_logs_no_word_of_it(log: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """Logs go to other people and other machines than memories do; hosts set everything to debug one day."""
    with open_with(tmp_path) as kit:
        kit.summarize(scope=ANN, close=True)
        kit.save("note", f"Ann keeps {WORD}.", scope=ANN)
        found = kit.recall(WORD, scope=ANN, depth="messages")
        assert WORD in found.context
        kit.forget(found.memories[0].record_id, scope=ANN)
        kit.capture([said(WORD, thread="other")], scope=ANN, thread="other")
        kit.admin.rebuild()
        clean(repr(kit))
        clean(json.dumps(dict(kit.admin.stats())))
    assert log.records  # else nothing was looked at


def test_errors_of_callers_do_not_repeat_what_was_said(tmp_path: Path) -> None:
    """Errors end up in logs and in tickets."""
    with open_with(tmp_path) as kit:
        bad: tuple[Callable[[], object], ...] = (
            lambda: kit.add_messages([said(f"I hate {WORD}.", message_id="m1")], scope=ANN),
            lambda: kit.add_messages([{"role": "user", "content": WORD, "time": "2025-03-04T12:00:00"}], scope=ANN),
            lambda: kit.add_messages([{"role": "nobody", "content": WORD}], scope=ANN),
            lambda: kit.add_messages([{"role": "user", "content": {"x": WORD}}], scope=ANN),
            lambda: kit.save("note", f"Ann loves {WORD}.", scope=ANN, importance=7),
            lambda: Message(role="user", content={WORD: 1}, time=NOON),
            lambda: Message.model_validate({"role": "user", "content": WORD, "time": WORD}),
        )
        assert len([told(each) for each in bad]) == len(bad)


def test_a_database_that_fails_says_what_and_where_and_no_parameters(tmp_path: Path) -> None:
    """By default SQLAlchemy writes the values of a statement into its error, and so the message into the log."""
    with open_with(tmp_path) as kit:
        with closing(sqlite3.connect(next(tmp_path.glob("*.sqlite")))) as connection, connection:
            connection.execute(
                "CREATE TRIGGER broken BEFORE INSERT ON messages BEGIN SELECT RAISE(ABORT, 'broken'); END"
            )
        error = told(lambda: kit.add_messages([said(f"Also {WORD}.")], scope=ANN))
        assert isinstance(error, (exc.DBAPIError, RemegraphError))
        kit.context.health.note("capture", error)
        kit.context.health.note("recall", KeyError(WORD))
        clean(json.dumps(dict(kit.context.health.stats())))


def test_what_a_provider_says_of_a_key_is_not_told_on(tmp_path: Path) -> None:
    """Providers repeat the key, and clients the URL with its password."""
    down = ConnectionError(f"Incorrect API key provided: {KEY} at {URL}")
    with open_with(tmp_path, {"DigestAnswer": down}) as kit:
        with pytest.raises(ModelUnavailableError, match="Incorrect API key provided") as caught:
            kit.summarize(scope=ANN, close=True)
        clean(str(caught.value))
        kit.context.health.note("background", caught.value)
        clean(repr(kit.work.list(scope=ANN, states=["pending", "failed"])))
        clean(json.dumps(dict(kit.admin.stats())))


def test_settings_are_shown_without_passwords(tmp_path: Path) -> None:
    """Somebody prints the settings in the first minute of every support case."""
    settings = Settings(
        home=tmp_path, ledger_url=URL, chroma_url=f"http://ann:{PASSWORD}@h:1", journal_key=PASSWORD * 2
    )
    clean(f"{settings!r} {settings}")
    assert "ann:***@localhost" in repr(settings)
    assert settings.evolve(home=tmp_path).ledger_url == URL
    told(lambda: Settings(journal_key=PASSWORD[:6] + PASSWORD[6:8]))
    told(lambda: Settings.model_validate({"ledger_url": [URL]}))


def test_a_ledger_that_cannot_be_reached_is_named_without_its_password(tmp_path: Path) -> None:
    """The URL stands in the error, so that one sees which; the password does not."""
    settings = Settings(home=tmp_path, ledger_url=URL)
    error = told(lambda: MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()))
    assert isinstance(error, RemegraphError)
    for url in (f"nonsense://{PASSWORD}", f"postgresql://ann:{PASSWORD}@:x:/", f"mysql://ann:{PASSWORD}@h/db"):
        settings = Settings(home=tmp_path, ledger_url=url)
        told(partial(MemoryKit.open, settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()))


@pytest.mark.parametrize("before", ["p@", "p@:x@", "p@ret/", "p@ret:", "p@ret?x=", "p/", "p?x=", "p#"])
def test_a_password_that_is_not_encoded_is_shown_in_no_part(tmp_path: Path, before: str) -> None:
    """What is written into a URL by hand has an @ in it one day; whoever reads it finds a host that is none."""
    url = f"postgresql://ann@server:{before}{PASSWORD}@localhost:1/db"
    settings = Settings(home=tmp_path, ledger_url=url)
    clean(repr(settings))
    assert f"{without_passwords(url)}" == "postgresql://ann@server:***@localhost:1/db"
    if "@" in before:
        assert "%40" in str(told(lambda: Database.as_it_is(url)))
    else:
        clean(str(diagnose(settings, embedder=None)))


def test_a_command_that_fails_prints_no_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Terminals are recorded, and shown to others."""
    monkeypatch.setenv("REMEGRAPH_HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("REMEGRAPH_MODEL", "nobody:model")
    chat = tmp_path / "chat.json"
    chat.write_text(json.dumps([{"role": "nobody", "content": WORD}]), encoding="utf-8")
    runs = [["ingest", str(chat)], ["recall", "x"], ["admin", "stats"], ["ingest", str(chat), "--json"]]
    for url in ("", URL):
        monkeypatch.setenv("REMEGRAPH_LEDGER_URL", url)
        for arguments in runs:
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code in {1, 2}
            clean(result.output)
            assert result.exception is None or isinstance(result.exception, SystemExit)


def test_a_new_home_is_its_owners_alone_and_one_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    """Another account of the machine reads no talk; a group that shares a folder on purpose goes on to share it."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o770)
    for home, mode in ((tmp_path / "new", 0o700), (shared, 0o770)):
        with open_kit(home):
            assert home.stat().st_mode & 0o777 == mode
