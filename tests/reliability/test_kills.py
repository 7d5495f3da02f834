"""`kill -9` at every failpoint and at any time: nothing acknowledged is lost, nothing done twice, nothing half."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import remegraph
from conftest import Figure
from remegraph import MemoryKit
from remegraph.failpoints import FAILPOINTS
from remegraph.language.embedding import HashedEmbedder
from tests.reliability.host import ROOT
from tests.reliability.labourer import BATCH, MEMORIES

pytestmark = pytest.mark.requirement("X2", "X3")

IN_LEDGER = [name for name in FAILPOINTS if name.startswith(("add.", "blocks.", "commit."))]
IN_INDEX = [name for name in FAILPOINTS if name.startswith(("index.", "rebuild."))]
WHILE_HEALING = [name for name in FAILPOINTS if name.startswith("heal.")]
ANY_MOMENT = ""
PARTS = 8


@dataclass
class Mill:
    """A home, and what was acknowledged there over many kills."""

    home: Path
    rng: random.Random
    foreman: subprocess.Popen[str]
    acknowledged: Counter[str] = field(default_factory=Counter)
    said: set[str] = field(default_factory=set)
    kills: Counter[str] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    """What was being done when it was killed."""
    seconds: float = 0

    def kill(self, mode: str, place: str = ANY_MOMENT) -> None:
        """Let one labourer work until it is killed, then look at the ledger."""
        began = time.monotonic()
        if place in WHILE_HEALING:
            mode = "healing"
            (self.home / "index" / "state.json").write_text("torn")
        hits = 1 if place.startswith(("rebuild.", "heal.")) else self.rng.randint(1, 3)
        order = {"home": str(self.home), "mode": mode, "place": place, "hits": hits}
        assert self._labour(order) == -9, f"{mode} {place}: ended by itself"
        self.kills[place] += 1
        self.modes[mode] += 1
        self.seconds += time.monotonic() - began
        self.check()

    def _labour(self, order: dict[str, object]) -> int:
        """Have an order carried out; return how the labourer ended."""
        assert self.foreman.stdin is not None
        assert self.foreman.stdout is not None
        self.foreman.stdin.write(json.dumps(order) + "\n")
        self.foreman.stdin.flush()
        born = 0
        for line in self.foreman.stdout:
            kind, *rest = line.split()
            if kind == "ended":
                return int(rest[0])
            if kind == "born":
                born = int(rest[0])
            elif kind == "ready" and order["place"] == ANY_MOMENT:
                time.sleep(self.rng.uniform(0, 0.5))  # when it is killed, not what is waited for
                os.kill(born, signal.SIGKILL)
            self._acknowledge(kind, rest)
        raise AssertionError("the foreman died")

    def _acknowledge(self, kind: str, rest: list[str]) -> None:
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
            # NULL before there is one
            (here,) = connection.execute("SELECT max(id) FROM partitions WHERE user = 'ann'").fetchone()

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


@contextmanager
def foreman() -> Iterator[subprocess.Popen[str]]:
    """The process that the labourers are forked from."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.reliability.labourer"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"},  # none to fork away
    ) as process:
        try:
            yield process
        finally:
            process.kill()  # a labourer that is left ends when nobody listens to it


def grind(mill: Mill) -> None:
    """Kill labourers: one at each failpoint, and four at any moment; the first one makes an index to heal."""
    kills = [
        *((mill.rng.choice(["ledger", "ledger", "kit"]), place) for place in IN_LEDGER),
        *(("index", place) for place in (*IN_INDEX, *WHILE_HEALING)),
        *((mode, ANY_MOMENT) for mode in ("ledger", "index", "kit")),
    ]
    for mode, place in [("index", ANY_MOMENT), *mill.rng.sample(kills, len(kills))]:
        mill.kill(mode, place)


def test_failpoints_are_the_ones_that_the_code_names() -> None:
    """A place that nobody can reach would be tested in vain; one that is not listed, never."""
    named = [
        name
        for path in Path(remegraph.__file__).parent.rglob("*.py")
        for name in re.findall(r'^ +failpoint\("([^"]+)"\)', path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert set(named) == set(FAILPOINTS)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(1, PARTS + 1), ids=lambda part: f"part {part} of {PARTS}")
def test_two_hundred_kills_lose_nothing(part: int, tmp_path: Path, figure: Figure) -> None:
    """Power cuts, out-of-memory kills and impatient operators are everyday; a memory that pays for them is none."""
    seed = random.SystemRandom().randrange(10**6)
    print(f"part {part}, seed {seed}")  # noqa: T201 - shown where it fails
    with foreman() as process:
        mill = Mill(tmp_path, random.Random(seed), process)
        grind(mill)
    figure("bar 01: kill -9", f"seed {seed}: {mill.finish()}")
    modes = ", ".join(f"{count} in {mode}" for mode, count in sorted(mill.modes.items()))
    figure("bar 02: kill -9, by what was being done", f"seed {seed}: {modes}, 0 half states")
    assert sum(mill.kills.values()) * PARTS >= 200
    assert mill.kills.keys() >= {*IN_LEDGER, *IN_INDEX, *WHILE_HEALING}  # those of erasures: test_erasing_bytes
