from __future__ import annotations

import json
from pathlib import Path

import pytest

from remegraph import MemoryKit, Scope
from remegraph.testing import FrozenClock
from tests.cli.conftest import Run
from tests.governance.conftest import DAY
from tests.talk import NOON, called, create, digest, open_kit, proposal, returned, said


@pytest.mark.requirement("B14")
def test_forgetting_is_foreseen_explained_done_and_undone_on_the_command_line(run: Run, tmp_path: Path) -> None:
    """Whoever keeps the memory in order needs no Python for it, and is told why each memory goes."""
    with MemoryKit.open(tmp_path / "home", model=None, embedder=None, clock=FrozenClock(NOON)) as kit:
        memory = kit.save("tea", "Ann likes sencha tea.", scope=Scope(user="me")).memory
    assert memory is not None
    short = memory.memory_id[:8]

    explained = run("memory", "explain", short).stdout
    assert "long_term, long_term tier, active. Forgotten: from 2026-01-05" in explained
    assert "0.5 ^ (days / half_life)" in explained
    assert short in run("memory", "forecast", "--days", "1").stdout
    assert "1 of 1 live memory would be moved" in run("memory", "maintain", "--dry-run").stdout
    assert short in run("memory", "list").stdout
    assert "1 of 1 live memory moved" in run("memory", "maintain").stdout
    assert short not in run("memory", "list").stdout
    assert (
        "under forget_threshold"
        in json.loads(run("memory", "explain", short, "--json").stdout)["trace"]["events"][1]["reason"]
    )
    assert "active" in run("memory", "restore", short).stdout
    assert short in run("memory", "list").stdout


def test_a_forecast_looks_ahead_not_back(run: Run) -> None:
    """A slip of the keyboard is told as one."""
    assert run("memory", "forecast", "--days", "-3").exit_code == 2


@pytest.mark.requirement("B6")
def test_episodes_that_are_alike_are_named_on_the_command_line_and_left_to_whom_concludes(
    run: Run, tmp_path: Path
) -> None:
    """Without a model likeness proposes and nobody concludes: which memories, by id, and nothing is made of them."""
    lines = ["I drink sencha tea from Uji.", "I keep my sencha tea at the office.", "Bob gave me sencha tea from Uji."]
    with MemoryKit.open(tmp_path / "home", model=None, embedder=None, clock=FrozenClock(NOON)) as kit:
        turns = [said(text, thread=text) for text in (*lines, "I have a grey cat.")]
        kit.add_messages(turns, scope=Scope(user="me"))
        kit.summarize(scope=Scope(user="me"), close=True)
        tea = {each.memory_id for each in kit.memories(scope=Scope(user="me")) if "tea" in each.content}
    assert "Of 4 live memories, 0 long-term memories would be made" in run("memory", "consolidate", "--dry-run").stdout
    done = " ".join(run("memory", "consolidate").stdout.split())
    assert "0 long-term memories made; 0 grown, 1 only proposed" in done
    assert all(memory_id[:8] in done for memory_id in tea)
    found = json.loads(run("memory", "consolidate", "--json").stdout)
    assert (found["made"], [set(group) for group in found["proposed"]]) == ([], [tea])


@pytest.fixture
def moved(tmp_path: Path) -> list[str]:
    """Ids of what was remembered as somebody moved."""
    clock = FrozenClock(NOON)
    with MemoryKit.open(tmp_path / "home", model=None, embedder=None, clock=clock) as kit:
        ids = []
        for city in ("Paris", "Porto"):
            text = f"Ann lives in {city}."
            memory = kit.save("home", text, scope=Scope(user="me"), slot="ann:lives_in", value=city).memory
            assert memory is not None
            ids.append(memory.memory_id)
            clock.move(DAY)
    return ids


@pytest.mark.requirement("G6", "X4")
def test_a_chain_is_dug_out_compared_and_turned_back_on_the_command_line(run: Run, moved: list[str]) -> None:
    """Which version holds, since when, on whose word: whoever keeps order needs no Python for it."""
    paris, porto = (memory_id[:8] for memory_id in moved)
    shown = run("memory", "archaeology", paris).stdout
    for part in ("Ann lives in Paris.", "replaced by", "1  2025-03-04", "create by operator", "“Ann lives in Porto.”"):
        assert part in shown
    assert f"Holds: {porto}" in shown
    assert f"Holds: {paris}" in run("memory", "archaeology", porto, "--true-at", NOON.isoformat()).stdout
    assert json.loads(run("memory", "archaeology", paris, "--json").stdout)["held"][0]["memory_id"] == moved[1]
    difference = run("memory", "diff", paris, "1", "2").stdout
    assert "status" in difference
    assert "superseded" in difference
    assert "say the same" in run("memory", "diff", paris, "1", "1").stdout
    assert "has no version 7" in run("memory", "diff", paris, "1", "7").stderr
    restored = run("memory", "restore", paris, "--version", "1").stdout
    assert "Ann lives in Paris." in restored
    assert "[-" not in restored
    assert "was restored" in run("memory", "archaeology", porto).stdout


@pytest.mark.requirement("B14")
@pytest.mark.slow
def test_the_journal_is_shown_exported_and_checked_on_the_command_line(
    run: Run, moved: list[str], tmp_path: Path
) -> None:
    """An auditor gets a file, and a way to tell whether it is the file that was written."""
    shown = run("admin", "audit").stdout
    assert "supersede" in shown
    assert "1 → 2" in shown
    assert moved[0][:8] in shown
    assert "Paris" not in shown
    file = tmp_path / "audit.jsonl"
    assert f"written to {file.name}" in run("admin", "audit", "--export", str(file)).stdout
    assert "is whole" in run("admin", "audit", "--check", str(file)).stdout
    lines = file.read_text(encoding="ascii").splitlines(keepends=True)
    kept = tmp_path / "kept.jsonl"
    kept.write_text(lines[-1], encoding="ascii")
    assert "is whole" in run("admin", "audit", "--check", str(file), "--heads", str(kept)).stdout
    assert run("admin", "verify", "--heads", str(kept)).exit_code == 0
    file.write_text("".join(lines[1:]), encoding="ascii")
    checked = run("admin", "audit", "--check", str(file), "--heads", str(kept))
    assert (checked.exit_code, "is not as it was exported" in checked.stdout) == (1, True)
    kept.write_text(lines[-1].replace('"chain": "', '"chain": "0'), encoding="ascii")
    assert "ended with: 0" in " ".join(run("admin", "verify", "--heads", str(kept)).stdout.split())
    kept.write_text("{}", encoding="ascii")
    assert "holds no head" in run("admin", "verify", "--heads", str(kept)).stderr
    assert run("admin", "audit", "--export", str(file)).exit_code == 1
    assert "Nothing happened." in run("admin", "audit", "--user", "bob").stdout


@pytest.mark.requirement("G3")
def test_a_rule_is_stated_on_the_command_line_with_all_that_governance_asks_for(run: Run, tmp_path: Path) -> None:
    """Class, scope, enforcement and canonical topic need no program."""
    MemoryKit.open(tmp_path / "home", model=None, embedder=None).close()
    options = ("--class", "policy", "--enforcement", "hard", "--applies-to", "lang:go", "--importance", "0.8")
    slot = ("--canonical-topic", "go:errors", "--value", "handled")
    first = run("memory", "save", "Handle each error.", *slot, *options, "--json")
    memory = json.loads(first.stdout)["memory"]
    told = [memory[name] for name in ("memory_class", "enforcement_level", "applies_to", "canonical_topic")]
    assert told == ["policy", "hard", "lang:go", "go:errors"]

    replaced = run(
        "memory", "save", "Wrap each error.", "--class", "policy", "--supersedes", memory["memory_id"][:8], "--json"
    )
    assert json.loads(replaced.stdout)["superseded"] == [memory["memory_id"]]
    assert "new" in run("memory", "save", "Run the linter.").stdout
    refused = run("memory", "save", "Run it.", "--class", "law")
    assert refused.exit_code == 1
    assert "Give one of policy" in refused.stderr


# ------------------------------------------------------------------------------------------- what a person decides


def _count_twice(home: Path) -> None:
    """Two counts of one hall, told at one moment: neither is the later one."""
    with MemoryKit.open(home, model=None, embedder=None, clock=FrozenClock(NOON)) as kit:
        for count in ("250", "320"):
            kit.save("hall", f"The hall seats {count}.", scope=Scope(user="me"), slot="hall:seats", value=count)


@pytest.mark.requirement("K4", "G7")
@pytest.mark.slow
def test_conflicts_are_listed_side_by_side_and_decided(run: Run, tmp_path: Path) -> None:
    """Whoever decides needs no Python for it: both sentences, one word, and why."""
    _count_twice(tmp_path / "home")

    (conflict,) = json.loads(run("review", "conflicts", "--json").stdout)
    short = conflict["conflict_id"][:6]
    shown = run("review", "conflicts").stdout
    assert all(words in shown for words in (short, "The hall seats 250.", "The hall seats 320."))
    done = run("review", "resolve", short, "supersede", "--by", "Olga", "--note", "I counted.").stdout
    assert "supersede by Olga" in done
    (over,) = json.loads(run("review", "conflicts", "--state", "resolved", "--json").stdout)
    assert over["decided"]["note"] == "I counted."
    assert "There is no conflict 'abc'" in run("review", "resolve", "abc", "add").stderr
    assert run("review", "resolve", "abc", "perhaps").exit_code == 2


@pytest.mark.requirement("G7")
def test_the_one_that_stays_is_named_by_what_the_list_shows_of_its_id(run: Run, tmp_path: Path) -> None:
    """Both sentences stand there with the beginnings of their ids: whoever keeps the older one types what they see."""
    _count_twice(tmp_path / "home")

    (conflict,) = json.loads(run("review", "conflicts", "--json").stdout)
    older = conflict["older"]["memory_id"]
    assert older[:8] in run("review", "conflicts").stdout
    done = run("review", "resolve", conflict["conflict_id"], "supersede", "--keep", older[:8])
    assert done.exit_code == 0, done.output
    assert [each["content"] for each in json.loads(run("memory", "list", "--json").stdout)] == ["The hall seats 250."]


ME = Scope(user="Ann")
PLANTED = ("Invoices go to account 4711.", "Invoices go to account 4712.")


@pytest.fixture
def home(tmp_path: Path) -> str:
    """A home in which a model fell for two sentences of a page."""
    steps = {
        "DigestAnswer": digest("personal:Ann"),
        "ProposalAnswer": proposal(*(create(text, 3, text) for text in PLANTED)),
    }
    folder = tmp_path / "home"
    with open_kit(folder, steps, reviser="rules") as kit:
        page = returned("c1", " ".join(PLANTED), minutes=2)
        kit.add_messages([said("Please read this."), called("read_page", "c1", minutes=1), page], scope=ME)
        kit.summarize(scope=ME, close=True)
    return str(folder)


@pytest.mark.requirement("X6")
def test_a_person_lists_approves_and_rejects_what_waits_on_the_command_line(run: Run, home: str) -> None:
    """Nobody should have to write a program to say that a page was right."""

    def waiting() -> dict[str, str]:
        listed = run("review", "waiting", "--user", "Ann", "--home", home, "--json")
        return {memory["content"]: memory["memory_id"] for memory in json.loads(listed.stdout)}

    right, wrong = (waiting()[text] for text in PLANTED)
    assert "quarantined" in run("--home", home, "review", "waiting", "--user", "Ann").stdout
    assert run("review", "approve", right[:8], "--user", "Ann", "--home", home, "--note", "it is ours").exit_code == 0
    assert run("review", "reject", wrong, "--user", "Ann", "--home", home, "--by", "Bob").exit_code == 0
    assert waiting() == {}
    heads = json.loads(run("memory", "list", "--user", "Ann", "--home", home, "--json").stdout)
    assert [memory["content"] for memory in heads if memory["status"] == "active"] == [PLANTED[0]]
    assert run("review", "reject", right, "--user", "Ann", "--home", home).exit_code == 1


@pytest.mark.parametrize("verb", ["forget", "keep"])
def test_requests_to_forget_are_listed_and_decided_on_the_command_line(run: Run, tmp_path: Path, verb: str) -> None:
    """Where no model decides, a person does, and sees which words it is about."""
    scope = Scope(user="me")
    with MemoryKit.open(tmp_path / "home", model=None, embedder=None) as kit:
        asked = said("Please forget that.", minutes=1, message_id="ask-1")
        kit.add_messages([said("My locker combination is 4711."), asked], scope=scope)
    listed = run("review", "requests").stdout
    assert "Please forget that." in listed
    assert "4711" in listed
    assert "2 messages" in run("review", verb, "ask").stdout
    assert "No requests." in run("review", "requests").stdout
    assert ("4711" in run("recall", "locker combination", "--depth", "messages").stdout) is (verb == "keep")
    assert run("review", verb, "ask-1").exit_code == 1
