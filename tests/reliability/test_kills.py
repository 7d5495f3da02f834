"""`kill -9` at every failpoint and at any time: nothing acknowledged is lost, nothing done twice, nothing half."""

from __future__ import annotations

import ast
import itertools
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import remegraph
from remegraph import MemoryKit
from remegraph.failpoints import FAILPOINTS
from remegraph.language.embedding import HashedEmbedder
from tests.reliability.host import ROOT
from tests.reliability.labourer import BATCH, MEMORIES

pytestmark = pytest.mark.requirement("X2", "X3")

IN_LEDGER = [name for name in FAILPOINTS if name.startswith(("add.", "blocks.", "commit."))]
IN_INDEX = [name for name in FAILPOINTS if name.startswith(("index.", "rebuild."))]
WHILE_HEALING = [name for name in FAILPOINTS if name.startswith("heal.")]


@dataclass
class Mill:
    """A home, and what was acknowledged there over many kills."""

    home: Path
    rng: random.Random
    acknowledged: Counter[str] = field(default_factory=Counter)
    said: set[str] = field(default_factory=set)
    kills: Counter[str] = field(default_factory=Counter)
    seconds: float = 0

    def kill(self, mode: str, place: str = "-") -> None:
        """Let one labourer work until it is killed, then look at the ledger."""
        began = time.monotonic()
        healing = place in WHILE_HEALING
        if healing:
            (self.home / "index" / "state.json").write_text("torn")
        hits = 1 if place.startswith(("rebuild.", "heal.")) else self.rng.randint(1, 3)
        command = [sys.executable, "-m", "tests.reliability.labourer", str(self.home), mode, place, str(hits)]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                **({"KILL_WHILE_HEALING": "1"} if healing else {}),
            },
        )
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                self._acknowledge(line.split())
                if place == "-" and line == "ready\n":
                    time.sleep(self.rng.uniform(0, 0.5))  # when it is killed, not what is waited for
                    process.kill()
        assert process.wait() == -9, f"{mode} {place}: ended by itself with {process.returncode}"
        self.kills[place] += 1
        self.seconds += time.monotonic() - began
        self.check()

    def _acknowledge(self, words: list[str]) -> None:
        kind, *rest = words
        if kind in ("batch", "operation"):
            self.acknowledged[kind] = max(self.acknowledged[kind], int(rest[0]))
        elif kind == "said":
            self.said |= set(rest)
        elif kind == "compared":
            assert rest == [], "the index differs from the ledger after a crash"
        self.acknowledged["all"] += 1

    def check(self) -> None:
        """Compare the ledger with what was acknowledged: all of it, once, and nothing by halves."""
        with closing(sqlite3.connect(self.home / "ledger.sqlite")) as connection:
            (here,) = connection.execute("SELECT id FROM partitions WHERE user = 'ann'").fetchone()

            def column(query: str) -> list[Any]:
                return [value for (value,) in connection.execute(query, {"here": here})]

            self._check_messages(column)
            self._check_operations(column)
            assert column("PRAGMA integrity_check") == ["ok"]

    def _check_messages(self, column: Callable[[str], list[Any]]) -> None:
        seqs = column("SELECT seq FROM messages WHERE partition_id = :here ORDER BY seq")
        batches, part_of_one = divmod(len(seqs), BATCH)
        assert part_of_one == 0
        assert batches >= self.acknowledged["batch"]
        assert seqs == list(range(1, len(seqs) + 1))
        assert self.said <= set(column("SELECT message_id FROM messages"))
        firsts = column("SELECT first_seq FROM blocks WHERE partition_id = :here ORDER BY 1")
        lasts = column("SELECT last_seq FROM blocks WHERE partition_id = :here ORDER BY 1")
        assert firsts == [last + 1 for last in [0, *lasts][: len(firsts)]]
        assert len(firsts) == column("SELECT count(*) FROM work WHERE partition_id = :here")[0]

    def _check_operations(self, column: Callable[[str], list[Any]]) -> None:
        heads = column("SELECT DISTINCT version FROM memories WHERE partition_id = :here")
        assert len(heads) <= 1
        done = max(heads, default=0)
        assert self.acknowledged["operation"] <= done <= self.acknowledged["operation"] + 1
        made = ("FROM versions WHERE operation_id GLOB 'operation of *'", "FROM events WHERE action = 'refine'")
        assert [column(f"SELECT count(*) {rows}") for rows in made] == [[done * MEMORIES]] * 2
        finished = ("operations WHERE true", "summaries WHERE true", "work WHERE state = 'done'")
        counts = [column(f"SELECT count(*) FROM {rows} AND partition_id = :here") for rows in finished]
        assert counts == [[done]] * 3

    def finish(self) -> str:
        """Open the home once more as anybody would; return a summary."""
        with MemoryKit.open(self.home, model=None, embedder=HashedEmbedder(64), require_index=True) as kit:
            kit.drain()
            kit._open_parts().projection.sync()
            verified = kit.admin.verify()
        assert verified.differences == ()
        return (
            f"{sum(self.kills.values())} kills at {len(self.kills)} places in {self.seconds:.0f} s: "
            f"{self.acknowledged['all']} acknowledgements, {verified.vectors} vectors compared, 0 lost, 0 doubled, 0 half"
        )


def plan(rng: random.Random, ledger: int, index: int, kit: int) -> Iterator[tuple[str, str]]:
    """Yield modes and places: every failpoint of the mode in turn, every third time any moment."""
    for mode, count, places in (("ledger", ledger, IN_LEDGER), ("index", index, IN_INDEX), ("kit", kit, IN_LEDGER)):
        chosen = [place for place in rng.sample(places, len(places)) for place in (place, place, "-")]
        chosen = [*rng.sample(places, len(places)), *chosen] if mode != "kit" else chosen
        yield from zip(itertools.repeat(mode, count), itertools.cycle(chosen))


def grind(home: Path, seed: int, ledger: int, index: int, kit: int) -> Mill:
    """Kill so many labourers, mixed, on one home."""
    rng = random.Random(seed)
    home.mkdir(exist_ok=True)
    mill = Mill(home, rng)
    kills = [*plan(rng, ledger, index, kit), *(("index", place) for place in WHILE_HEALING)]
    mill.kill("index")  # so that there is an index to heal
    for mode, place in rng.sample(kills, len(kills)):
        mill.kill(mode, place)
    return mill


def test_failpoints_are_the_ones_that_the_code_names() -> None:
    """A place that nobody can reach would be tested in vain; one that is not listed, never."""
    named = [
        ast.literal_eval(node.args[0])
        for path in Path(remegraph.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "failpoint"
    ]
    assert set(named) == set(FAILPOINTS)


@pytest.mark.slow
def test_a_few_kills_lose_nothing(tmp_path: Path) -> None:
    """The same as below, small enough for every run."""
    mill = grind(tmp_path, seed=random.SystemRandom().randrange(10**6), ledger=10, index=7, kit=1)
    assert mill.finish()


@pytest.mark.slow
def test_two_hundred_kills_lose_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Power cuts, out-of-memory kills and impatient operators are everyday; a memory that pays for them is none."""
    seed = random.SystemRandom().randrange(10**6)
    with ThreadPoolExecutor(2) as pool:
        lanes = [pool.submit(grind, tmp_path / str(lane), seed + lane, 55, 34, 8) for lane in range(2)]
    mills = [lane.result() for lane in lanes]
    with capsys.disabled():
        for mill in mills:
            print(f"\nseed {seed}: {mill.finish()}")  # noqa: T201 - the figures
    assert sum(sum(mill.kills.values()) for mill in mills) == 200
    assert set().union(*(mill.kills for mill in mills)) >= set(FAILPOINTS)
