"""Conflicts on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from remegraph import MemoryKit, Scope
from remegraph.testing import FrozenClock
from tests.talk import NOON

Run = Callable[..., Result]


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

    (conflict,) = json.loads(run("conflicts", "--json").stdout)
    short = conflict["conflict_id"][:6]
    shown = run("conflicts").stdout
    assert all(words in shown for words in (short, "The hall seats 250.", "The hall seats 320."))
    done = run("resolve", short, "supersede", "--by", "Olga", "--note", "I counted.").stdout
    assert "supersede by Olga" in done
    (over,) = json.loads(run("conflicts", "--state", "resolved", "--json").stdout)
    assert over["decided"]["note"] == "I counted."
    assert "There is no conflict 'abc'" in run("resolve", "abc", "add").stderr
    assert run("resolve", "abc", "perhaps").exit_code == 2


@pytest.mark.requirement("G7")
def test_the_one_that_stays_is_named_by_what_the_list_shows_of_its_id(run: Run, tmp_path: Path) -> None:
    """Both sentences stand there with the beginnings of their ids: whoever keeps the older one types what they see."""
    _count_twice(tmp_path / "home")

    (conflict,) = json.loads(run("conflicts", "--json").stdout)
    older = conflict["older"]["memory_id"]
    assert older[:8] in run("conflicts").stdout
    done = run("resolve", conflict["conflict_id"], "supersede", "--keep", older[:8])
    assert done.exit_code == 0, done.output
    assert [each["content"] for each in json.loads(run("memories", "--json").stdout)] == ["The hall seats 250."]
