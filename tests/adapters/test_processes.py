"""Agents with memory in processes of their own: restarts, and several at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Figure
from remegraph import MemoryKit, Scope
from tests import talk as homes

pytestmark = [pytest.mark.slow, pytest.mark.requirement("C7", "C8", "X3")]

ROOT = Path(__file__).parents[2]
ASKED = "What colour is my bicycle?"


def talk(home: Path, kind: str, thread: str, user: str, *texts: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.adapters.talker", str(home), kind, thread, user, *texts]
    urls = {f"REMEGRAPH_{name.upper()}": url for name, url in homes.urls_of(home).items()}
    env = os.environ | urls
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answers(process: subprocess.Popen[str]) -> list[str]:
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return out.splitlines()


@pytest.mark.parametrize("kind", ["agent", "graph"])
def test_what_was_told_is_known_after_a_restart_in_another_thread_by_this_user_only(tmp_path: Path, kind: str) -> None:
    """What people mean when they say that an agent remembers."""
    assert answers(talk(tmp_path, kind, "1", "ann@example.org", "I own a scarlet bicycle."))
    assert answers(talk(tmp_path, kind, "2", "ann@example.org", ASKED)) == ["Scarlet."]
    assert answers(talk(tmp_path, kind, "3", "bob", ASKED)) == ["I do not know."]


@pytest.mark.parametrize("kind", ["agent", "graph"])
@pytest.mark.requirement("X9")
def test_two_processes_on_one_thread_lose_and_double_nothing(
    tmp_path: Path, setup: str, kind: str, figure: Figure
) -> None:
    """Checkpoints of the same thread overwrite each other; the ledger takes both: 2 times 40 messages are 80."""
    texts = {name: [f"{name} says {number}." for number in range(20)] for name in ("One", "Two")}
    running = [talk(tmp_path, kind, "t", "ann", *said) for said in texts.values()]
    for process in running:
        answers(process)
    with MemoryKit.open(tmp_path, model=None, embedder=None, **homes.urls_of(tmp_path)) as kit:
        heard = [message.text for message in kit.messages("t", scope=Scope(user="ann"))]
    expected = [text for said in texts.values() for each in said for text in (each, f"Heard: {each}")]
    assert sorted(heard) == sorted(expected)
    assert len(heard) == 80
    figure("bar 06: two processes on one thread of LangGraph", f"{kind}, {setup}: {len(heard)} of 80 messages kept")
