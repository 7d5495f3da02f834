from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from remegraph import Message
from remegraph.demo import PEOPLE, answers, key, model, play
from remegraph.errors import ModelUnavailableError
from remegraph.kit import MemoryKit
from remegraph.testing import FrozenClock
from tests.cli.conftest import Run


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that holds the demo's memory."""
    home = tmp_path_factory.mktemp("demo") / "remy"
    with MemoryKit.open(home, model=model(), embedder=None) as kit:
        play(kit)
    return home


def told(run: Run, home: Path, *arguments: str) -> Any:
    """What a command tells as JSON."""
    result = run(*arguments, "--home", str(home), "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.requirement("R4", "R12")
def test_the_demo_shows_the_whole_path(run: Run, tmp_path: Path) -> None:
    """It is the first thing that anybody runs: each of its promises is on the screen, and nothing is left behind."""
    result = run("demo")
    assert result.exit_code == 0, result.output
    shown = result.stdout
    for words in (
        "20260309_01",
        "superseded",
        "What the reviser objected to",
        "25%",
        "Memories of the other that either finds: 0.",
        "小林打算2026年3月11日（周三）去成都旅行。",
        "[But my doctor was strict. I don't like coffee anymore.]",
    ):
        assert words in shown
    assert result.stderr == ""
    assert not (tmp_path / "home").exists()


def test_the_demo_stays_by_itself_whatever_is_configured(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It promises no network: a key must not send its talk anywhere, nor a ledger's URL put it among real memories."""
    real = tmp_path / "real.sqlite"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("REMEGRAPH_LEDGER_URL", f"sqlite:///{real}")
    result = run("demo", "--home", str(tmp_path / "remy"))
    assert result.exit_code == 0, result.output
    assert (result.stderr, "openai" in result.stdout, real.exists()) == ("", False, False)
    shown = "".join(result.stdout.split())
    assert "OPENAI_API_KEY=REMEGRAPH_LEDGER_URL=remegraph--home" in shown, "the next commands look at the same memory"


def test_every_prompt_of_the_demo_has_the_answer_of_a_model_and_no_answer_is_left_over(tmp_path: Path) -> None:
    """An answer of ours would show what we wish for; a changed prompt shows here (`python -m evals demo`)."""
    asked = model()
    with MemoryKit.open(tmp_path, model=asked, embedder=None) as kit:
        reports = [played.report for played in play(kit)]
    assert {key(call) for call in asked.calls} == set(answers())
    assert [(report.work, report.degraded) for report in reports] == [((), ()), ((), ())]


@pytest.mark.parametrize("day", [datetime(2026, 3, 20, tzinfo=UTC), datetime(2031, 2, 1, tzinfo=UTC)], ids=str)
def test_the_answers_are_found_on_whatever_day_the_demo_is_played(tmp_path: Path, day: datetime) -> None:
    """Prompts show on which day Remy was told what it is: recorded for one day, the demo would fail on the next."""
    with MemoryKit.open(tmp_path, model=model(), embedder=None, clock=FrozenClock(day)) as kit:
        assert [played.report.degraded for played in play(kit)] == [(), ()]


@pytest.mark.slow
def test_the_demos_model_answers_nothing_else(tmp_path: Path) -> None:
    """Made up on the spot, an answer would be a lie."""
    with MemoryKit.open(tmp_path, model=model(), embedder=None) as kit:
        message = Message(role="user", name="Ann", content="I live in Oslo.", time=datetime(2026, 3, 2, tzinfo=UTC))
        kit.add_messages([message], scope=PEOPLE[0].scope)
        with pytest.raises(ModelUnavailableError, match="no recorded"):
            kit.summarize(scope=PEOPLE[0].scope, close=True)


def test_the_demo_tells_the_same_as_json(run: Run) -> None:
    """Its figures can be checked by a program."""
    data = json.loads(run("demo", "--json").stdout)
    assert [person["user"] for person in data["people"]] == ["Ann", "小林"]
    assert data["seen_of_others"] == 0


def test_playing_the_demo_twice_changes_nothing(kept: Path) -> None:
    """Whoever runs `demo --home` again finds the same memory."""
    with MemoryKit.open(kept, model=model(), embedder=None) as kit:
        before = [kit.memories(scope=person.scope) for person in PEOPLE]
        again = play(kit)
        assert [kit.memories(scope=person.scope) for person in PEOPLE] == before
    assert [(entry.added, entry.report.created, entry.report.updated) for entry in again] == [(0, 0, 0), (0, 0, 0)]


WHO = ("--user", "Ann", "--agent", "remy")


def test_recall_gives_the_town_that_holds_and_the_old_one_is_history(run: Run, kept: Path) -> None:
    """Ann moved: the model put the new town in the place of the old one, and both say when."""
    found = told(run, kept, "recall", "Where does Ann live?", *WHO)
    assert found["memories"][0]["text"] == "Ann lives in Porto."
    assert not any("Lisbon" in hit["text"] for hit in found["memories"])
    towns = {
        (each["said_at"][:10], each["status"]): each["content"]
        for each in told(run, kept, "memory", "list", "--all", *WHO)
        if "lives in" in each["content"]
    }
    assert towns == {
        ("2026-03-02", "superseded"): "Ann lives in Lisbon.",
        ("2026-03-09", "active"): "Ann lives in Porto.",
    }


@pytest.mark.requirement("X4")
def test_recall_reaches_what_was_replaced_by_its_status_or_its_time(run: Run, kept: Path) -> None:
    """Where Ann lived before is there for those who ask for it."""
    question = "Where does Ann live?"
    for bound in (("--status", "superseded"), ("--true-at", "2026-03-03T00:00Z")):
        found = told(run, kept, "recall", question, *bound, *WHO)
        assert found["memories"][0]["text"] == "Ann lives in Lisbon."
        assert not any("Porto" in hit["text"] for hit in found["memories"])
    over = run("recall", question, "--status", "superseded", "--home", str(kept), *WHO).output
    assert "(superseded)" in over


@pytest.mark.requirement("K5")
def test_recall_prints_summaries_alone_where_they_are_asked_for(run: Run, kept: Path) -> None:
    """An overview shows no words of memories or messages."""
    found = told(run, kept, "recall", "Where does Ann live?", "--depth", "summaries", *WHO)
    assert (found["self_memories"], found["memories"], found["messages"]) == ([], [], [])
    assert found["blocks"][0]["age"].startswith("P")


def test_recall_prints_a_context_for_a_prompt(run: Run, kept: Path) -> None:
    """What an agent would be given can be looked at."""
    assert "Porto" in run("recall", "Where does Ann live?", "--context", "--home", str(kept), *WHO).stdout


def test_recall_goes_down_to_the_raw_messages_where_asked(run: Run, kept: Path) -> None:
    """Topic memories, blocks, messages: as far down as asked."""
    found = told(run, kept, "recall", "lunch with allergens listed", "--depth", "messages", *WHO)
    assert found["blocks"]
    assert any("Mesa Azul" in hit["text"] for hit in found["messages"])


@pytest.mark.requirement("R10")
def test_a_memory_is_traced_by_the_beginning_of_its_id(run: Run, kept: Path) -> None:
    """Tables show eight characters of an id; these are enough."""
    [memory] = [each for each in told(run, kept, "memory", "list", *WHO) if "allergic" in each["content"]]
    found = told(run, kept, "trace", memory["memory_id"][:8], *WHO)
    [quote] = found["quotes"]
    text = quote["message"]["content"]
    assert text == "I am allergic to peanuts. Can you find me a lunch place near Praça do Comércio?"
    assert text[quote["start"] : quote["end"]] == "I am allergic to peanuts."


def test_ids_of_other_users_are_not_found(run: Run, kept: Path) -> None:
    """Not even by their whole id."""
    [memory] = [each for each in told(run, kept, "memory", "list", *WHO) if "allergic" in each["content"]]
    result = run("trace", memory["memory_id"], "--user", "小林", "--agent", "remy", "--home", str(kept))
    assert result.exit_code == 1
    assert "Check the id and the scope" in result.stderr


def test_an_id_that_several_share_the_beginning_of_is_refused(run: Run, kept: Path) -> None:
    """Guessing would show the wrong memory."""
    firsts = [each["memory_id"][0] for each in told(run, kept, "memory", "list", "--all", *WHO)]
    shared = next(first for first in firsts if firsts.count(first) > 1)
    result = run("trace", shared, "--home", str(kept), *WHO)
    assert result.exit_code == 1
    assert "Give more of the id" in result.stderr


def test_replaced_memories_are_listed_on_request(run: Run, kept: Path) -> None:
    """Nothing is overwritten, and one can see it."""
    old = [each["content"] for each in told(run, kept, "memory", "list", "--status", "superseded", *WHO)]
    assert sorted(old) == ["Ann lives in Lisbon.", "Ann loves coffee."]
    assert not set(old) & {each["content"] for each in told(run, kept, "memory", "list", *WHO)}


@pytest.mark.slow
def test_the_tables_show_what_json_tells(run: Run, kept: Path) -> None:
    """Every command works for people too."""
    for arguments, words in (
        (
            (
                "memory",
                "topics",
            ),
            "finance",
        ),
        (("memory", "list", "--topic", "task:finance"), "forward P/E"),
        (
            (
                "memory",
                "blocks",
            ),
            "20260302_01",
        ),
        (("memory", "messages", "20260302_01"), "TimeoutError"),
        (("memory", "messages", "--key-word", "Biscuit"), "dog named Biscuit"),
        (("memory", "messages", "--since", "2026-03-11T00:00Z"), "Borealis"),
        (
            (
                "memory",
                "tools",
            ),
            "web_search",
        ),
        (("recall", "coffee"), "Topics:"),
    ):
        result = run(*arguments, "--home", str(kept), *WHO)
        assert result.exit_code == 0, result.output
        assert words in result.stdout
        assert told(run, kept, *arguments, *WHO)
    for command in ("stats", "verify"):
        assert run("admin", command, "--home", str(kept)).exit_code == 0


@pytest.mark.slow
def test_a_home_is_verified_and_rebuilt(run: Run, kept: Path) -> None:
    """The ledger is the truth; the index is made from it."""
    assert told(run, kept, "admin", "verify")["healthy"] is True
    assert told(run, kept, "admin", "rebuild")["vectors"] > 0
    assert told(run, kept, "admin", "verify")["differences"] == []
