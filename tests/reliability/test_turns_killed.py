"""`kill -9` between an agent's answer and the capture of its turn: what the checkpoint holds is remembered with the next."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from conftest import Figure
from remegraph import MemoryKit
from remegraph.ledger.index.embedders import HashedEmbedder
from tests.reliability.chatter import ANN, ANSWERED, DONE, THREAD
from tests.reliability.host import ROOT
from tests.reliability.pauser import SCOPE, opened

pytestmark = [pytest.mark.slow, pytest.mark.requirement("X2", "X3")]

PLACES = [ANSWERED, DONE, "add.begin", "add.before_commit", "add.after_commit"]
DURABILITIES = ["sync", "async", "exit"]


@contextmanager
def foreman() -> Iterator[subprocess.Popen[str]]:
    """The process that the chatters are forked from."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.reliability.chatter"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str], **order: Any) -> int:
    """Have a turn said; return how the chatter ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def held(home: Path) -> dict[str, str]:
    """What the checkpoint holds, by id."""
    with closing(sqlite3.connect(home / "host.sqlite", check_same_thread=False)) as database:
        found = SqliteSaver(database).get_tuple(THREAD)
    said = found.checkpoint["channel_values"].get("messages", []) if found else []
    return {str(message.id): message.text for message in said}


def test_a_turn_that_was_killed_before_its_capture_is_remembered_with_the_next(tmp_path: Path, figure: Figure) -> None:
    """The answer was on its way to the person, and they come back: what they and the agent said is known, once."""
    kills = [(place, durability) for place in PLACES for durability in DURABILITIES] * 2
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")  # noqa: T201 - shown where it fails
    random.Random(seed).shuffle(kills)
    held_before: dict[str, str] = {}
    heard: dict[str, str] = {}
    left = 0
    with foreman() as process:
        for number, (place, durability) in enumerate(kills):
            order = {"home": str(tmp_path), "durability": durability}
            assert ended(process, text=f"My drawer {number} holds key {number}.", place=place, **order) == -9
            seen = held(tmp_path)
            left += len(seen.keys() - held_before.keys())
            assert ended(process, text=f"And then, {number}?", place="", **order) == 0
            held_before = held(tmp_path)
            assert seen.items() <= held_before.items()
            with MemoryKit.open(tmp_path, model=None, embedder=HashedEmbedder(64)) as kit:
                heard = {message.message_id: message.text for message in kit.messages("1", scope=ANN)}
            assert held_before.items() <= heard.items(), (place, durability)
            assert durability == "exit" or f"My drawer {number} holds key {number}." in heard.values()
    texts = [text for text in heard.values() if text.startswith("My drawer")]
    assert len(texts) == len(set(texts))
    figure(
        "bar 01: kill -9",
        f"seed {seed}: {len(kills)} kills between answer and capture: {left} messages left in checkpoints, "
        f"{len(heard)} remembered, 0 lost, 0 doubled",
    )


CUTTING = ["blocks.begin", "blocks.before_commit", "blocks.after_commit"]


def test_turns_that_were_gathered_when_their_process_was_killed_are_cut_once(tmp_path: Path, figure: Figure) -> None:
    """A crash between recording and cutting, in the middle of a cut, or before the job is closed, leaves nothing behind."""
    kills = [
        *product(["open", "wish", "end"], CUTTING),
        *product(["capture"], ["add.before_commit", "add.after_commit"]),
    ]
    kills *= 2
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")  # noqa: T201 - shown where it fails
    random.Random(seed).shuffle(kills)
    opened(tmp_path, 0).close()
    killed, said = 0, set[str]()
    for number, (act, place) in enumerate(kills):
        command = [sys.executable, "-m", "tests.reliability.pauser", str(tmp_path), str(number), act, place]
        ended = subprocess.run(command, cwd=ROOT, check=False, timeout=120, capture_output=True)
        assert ended.returncode in {-9, 0}, ended.stderr
        killed += ended.returncode == -9
        if ended.returncode == 0 or act in {"wish", "end"} or place == "add.after_commit":
            said |= {f"h{number}", f"a{number}"}
    with opened(tmp_path, len(kills)) as kit:  # so much waits that what is idle is not cut before that is done
        kit.drain()
    with opened(tmp_path, len(kills) + 1) as kit:
        kit.drain()
        archive, home = kit.context.parts().archive, SCOPE.partition()
        rows = archive.messages([home], shown=["asked"])
        held = [
            row.message_id
            for block in archive.blocks([home])
            for row in rows
            if row.thread == block.thread and block.first_seq <= row.seq <= block.last_seq
        ]
        assert sorted(held) == sorted(row.message_id for row in rows)
        assert said <= set(held)
        assert kit.admin.stats()["blocks_pending"] == 0
        assert [job for job in kit.admin.jobs() if job.kind == "cut"] == []
    figure(
        "bar 01: kill -9",
        f"seed {seed}: {killed} kills while turns are gathered or cut: {len(rows)} messages, 0 lost, 0 doubled",
    )
