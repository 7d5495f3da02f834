from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from remegraph import MemoryKit, Scope
from remegraph.testing import FrozenClock
from tests.talk import NOON, said

Run = Callable[..., Result]


@pytest.mark.requirement("B14")
def test_forgetting_is_foreseen_explained_done_and_undone_on_the_command_line(run: Run, tmp_path: Path) -> None:
    """Whoever keeps the memory in order needs no Python for it, and is told why each memory goes."""
    with MemoryKit.open(tmp_path / "home", model=None, embedder=None, clock=FrozenClock(NOON)) as kit:
        memory = kit.save("tea", "Ann likes sencha tea.", scope=Scope(user="me")).memory
    assert memory is not None
    short = memory.memory_id[:8]

    explained = run("explain", short).stdout
    assert "long_term, long_term tier, active. Forgotten: from 2026-01-05" in explained
    assert "0.5 ^ (days / half_life)" in explained
    assert short in run("forecast", "--days", "1").stdout
    assert "1 of 1 live memory would be moved" in run("maintain", "--dry-run").stdout
    assert short in run("memories").stdout
    assert "1 of 1 live memory moved" in run("maintain").stdout
    assert short not in run("memories").stdout
    assert (
        "under forget_threshold" in json.loads(run("explain", short, "--json").stdout)["trace"]["events"][1]["reason"]
    )
    assert "active" in run("restore", short).stdout
    assert short in run("memories").stdout


def test_a_forecast_looks_ahead_not_back(run: Run) -> None:
    """A slip of the keyboard is told as one."""
    assert run("forecast", "--days", "-3").exit_code == 2


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
    assert "Of 4 live memories, 0 long-term memories would be made" in run("consolidate", "--dry-run").stdout
    done = " ".join(run("consolidate").stdout.split())
    assert "0 long-term memories made; 0 grown, 1 only proposed" in done
    assert all(memory_id[:8] in done for memory_id in tea)
    found = json.loads(run("consolidate", "--json").stdout)
    assert (found["made"], [set(group) for group in found["proposed"]]) == ([], [tea])
