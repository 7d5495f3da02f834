from __future__ import annotations

import json
from pathlib import Path

import pytest

from remegraph import MemoryKit, Scope
from remegraph.testing import FrozenClock
from tests.cli.conftest import Run
from tests.talk import NOON, called, create, digest, open_kit, proposal, returned, said


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
