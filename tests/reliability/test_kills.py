"""`kill -9` at every failpoint and at any time: nothing acknowledged is lost, nothing done twice, nothing half."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

import remegraph
from conftest import Figure
from remegraph.failpoints import FAILPOINTS
from remegraph.ledger.database import Database
from tests import talk
from tests.reliability.host import ROOT
from tests.reliability.labourer import BATCH, MEMORIES, Place

pytestmark = pytest.mark.requirement("X2", "X3")

IN_LEDGER = [name for name in FAILPOINTS if name.startswith(("add.", "blocks.", "commit."))]
IN_INDEX = [name for name in FAILPOINTS if name.startswith(("index.", "rebuild."))]
ON_A_SERVER = [name for name in IN_INDEX if name not in ("index.announced", "index.applied", "index.recorded")]
"""Where nobody guards files."""
WHILE_HEALING = [name for name in FAILPOINTS if name.startswith("heal.")]
ANY_MOMENT = ""
PARTS = 8

_WHEN_ALONE = """
DO $$ BEGIN
    WHILE EXISTS (
        SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
    ) LOOP
        PERFORM pg_sleep(0.01);
        PERFORM pg_stat_clear_snapshot();
    END LOOP;
END $$
"""
"""Waits until PostgreSQL has heard that who was killed is dead: until then what they locked is locked."""


@dataclass
class Mill:
    """A place of work, and what was acknowledged there over many kills."""

    place: Place
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
            (self.place.home / "index" / "state.json").write_text("torn")
        most = 2 if self.place.servers else 3  # there each turn takes twice as long
        hits = 1 if place.startswith(("rebuild.", "heal.")) else self.rng.randint(1, most)
        where = {"home": str(self.place.home), "servers": self.place.servers}
        order = {**where, "mode": mode, "place": place, "hits": hits}
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
        with closing(Database.as_it_is(self.place.ledger_url)) as ledger, ledger.engine.connect() as connection:
            if self.place.servers:
                connection.execute(text(_WHEN_ALONE))
            # NULL before there is one
            here = connection.execute(text("SELECT max(id) FROM partitions WHERE \"user\" = 'ann'")).scalar_one()

            def column(query: str) -> list[Any]:
                return list(connection.execute(text(query), {"here": here} if ":here" in query else {}).scalars())

            self._check_messages(column)
            self._check_operations(column)
            if not self.place.servers:
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
        made = ("FROM versions WHERE operation_id LIKE 'operation of %'", "FROM events WHERE action = 'refine'")
        assert [column(f"SELECT count(*) {rows}") for rows in made] == [[done * MEMORIES]] * 2
        finished = ("operations WHERE true", "summaries WHERE true", "work WHERE state = 'done'")
        counts = [column(f"SELECT count(*) FROM {rows} AND partition_id = :here") for rows in finished]
        assert counts == [[done]] * 3

    def finish(self) -> str:
        """Open the home once more as anybody would; return a summary."""
        with self.place.kit(require_index=True) as kit:
            kit.drain()
            kit.context.parts().projection.sync()
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


def grind(mill: Mill, in_index: Sequence[str]) -> None:
    """Kill labourers: one at each failpoint, and four at any moment; the first one makes an index to heal."""
    kills = [
        *((mill.rng.choice(["ledger", "ledger", "kit"]), place) for place in IN_LEDGER),
        *(("index", place) for place in in_index),
        *((mode, ANY_MOMENT) for mode in ("ledger", "index", "kit")),
    ]
    for mode, place in [("index", ANY_MOMENT), *mill.rng.sample(kills, len(kills))]:
        mill.kill(mode, place)
    assert mill.kills.keys() == {*IN_LEDGER, *in_index, ANY_MOMENT}  # those of erasures: test_erasing_bytes


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
    kills = _grind(Place(tmp_path, {}), [*IN_INDEX, *WHILE_HEALING], f"part {part}", figure)
    assert kills * PARTS >= 200


@pytest.mark.slow
@pytest.mark.requirement("X9")
@pytest.mark.parametrize("setup", ["servers"], indirect=True)
def test_kills_lose_nothing_on_servers(setup: str, tmp_path: Path, figure: Figure) -> None:
    """There a process dies in the midst of what two servers still do for it."""
    place = Place(tmp_path, talk.urls_of(tmp_path))
    Database.open(place.ledger_url).close()
    assert _grind(place, ON_A_SERVER, setup, figure) >= 20


def _grind(place: Place, in_index: Sequence[str], name: str, figure: Figure) -> int:
    """Kill labourers, note what came of it, and return how many there were."""
    seed = random.SystemRandom().randrange(10**6)
    print(f"{name}, seed {seed}")  # noqa: T201 - shown where it fails
    with foreman() as process:
        mill = Mill(place, random.Random(seed), process)
        grind(mill, in_index)
    where = f"{name}, seed {seed}" if place.servers else f"seed {seed}"
    figure("bar 01: kill -9", f"{where}: {mill.finish()}")
    modes = ", ".join(f"{count} in {mode}" for mode, count in sorted(mill.modes.items()))
    figure("bar 02: kill -9, by what was being done", f"{where}: {modes}, 0 half states")
    return sum(mill.kills.values())
