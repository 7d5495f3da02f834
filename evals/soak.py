"""Whether hours of use leave anything behind: memory that grows, messages that are lost, an index that differs.

    python -m evals soak
    python -m evals soak --messages 2000 --figure soak

One process lives as long as the soak; beside it, another one works on the same ledger and the same index (a Chroma
server, as where many machines share them), is killed (`kill -9`) at random moments, and another one follows. Both do
turns: a conversation of 24 messages of a random user is added, summarised without a model, and recalled from; now and
then a memory is forgotten, and a user's memories are maintained. The long-living process closes its kit and opens it
again at random, too.

In the end all that was ever acknowledged, by whoever lived then, must be there, what was forgotten must be gone, and
index, journal and ledger must agree. Chroma's graph is approximate: where a search for its own vector does not find a
record that is there, that is told by itself, the index is made anew, and nothing at all may differ then.

The memory of the long-living process may grow by less than 1 MB for each 10,000 messages; shown is also how much that is
for those that it handled itself, about half of them. The first half is left out of that, as caches of a fixed size fill
up, and a short soak, where they never do, has no bar. Before each look garbage is collected: what statements and graphs
leave to the collector comes and goes by megabytes, and is not left behind.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import random
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from evals._figures import Figure, block, finish
from evals._pages import place
from evals._plots import Line, plot
from evals._servers import ChromaServer
from evals._soaking import TURN, Done, Labour, open_kit, work_until_killed
from evals._talk import Talk
from remegraph import MemoryKit, Settings
from remegraph.ledger.index.projection import UNREACHED

__all__ = ["Soaked", "main", "soak"]

_EACH = 200
"""Messages of a user, about."""

_KILLS, _LEAST = 40, 5
"""About so many processes are killed; the long-living one does at least so many turns between two kills, on average."""

_SLOPE, _SECONDS, _LONG = 1.0, 600, 50_000
"""The bars: MB for each 10,000 messages, and seconds; for soaks of so many messages and more."""

_WARM = 0.5
_LOOK = 5
"""After each so many turns its memory is looked at."""
_POINTS = 60
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["chromadb", "evals._soaking", "remegraph.kit.components"])


class Look(NamedTuple):
    """How large the long-living process was."""

    acknowledged: int
    """Messages, by all processes until then."""
    handled: int
    """Those of them that it handled itself."""
    resident: float
    """Its memory, in MB."""


@dataclass
class Soaked:
    """What was done, and what it left behind."""

    diary: Path
    """What was acknowledged, a line each: were it kept in memory, the soak would measure itself."""
    messages: int = 0
    """Acknowledged."""
    forgotten: int = 0
    looks: list[Look] = field(default_factory=list)
    maintained: int = 0
    kills: int = 0
    restarts: int = 0
    lost: int = 0
    twice: int = 0
    back: int = 0
    unreached: int = 0
    """Records in the index that a search for their own vector did not find, before it was made anew."""
    differences: int = 0
    """All others, and all that are left then."""

    def note(self, done: Done) -> None:
        """Remember what was acknowledged."""
        with self.diary.open("a", encoding="utf-8") as diary:
            diary.write(json.dumps([done.user, done.messages, done.forgotten]) + "\n")
        self.messages += len(done.messages)
        self.forgotten += done.forgotten is not None
        self.maintained += done.maintained

    def acknowledged(self) -> tuple[set[tuple[int, str]], set[tuple[int, str]]]:
        """Return the messages, and the memories that were forgotten, each by user and id."""
        lines = [json.loads(line) for line in self.diary.read_text(encoding="utf-8").splitlines()]
        messages = {(user, message_id) for user, message_ids, _ in lines for message_id in message_ids}
        return messages, {(user, memory_id) for user, _, memory_id in lines if memory_id is not None}

    def slope(self, *, own: bool) -> float:
        """Return by how many MB the resident memory grew for each 10,000 messages, once it was warm.

        Args:
            own: Whether only those count that the process handled itself.
        """
        warm = self.looks[int(len(self.looks) * _WARM) :]
        messages = [look.handled if own else look.acknowledged for look in warm]
        return float(np.polyfit(messages, [look.resident for look in warm], 1)[0]) * 10_000


class _Neighbour:
    """The process beside the long-living one, which is killed and replaced."""

    def __init__(self, settings: Settings, seed: int, users: int, soaked: Soaked) -> None:
        self._settings = settings
        self._users = users
        self._soaked = soaked
        self._rng = random.Random(seed)
        self._born = 0

    def start(self) -> None:
        """Let one work."""
        self._born += 1
        labour = Labour(f"life {self._born}", self._rng.randrange(10**6), self._users)
        self._told, ours = _CONTEXT.Pipe(duplex=False)
        self._process = _CONTEXT.Process(target=work_until_killed, args=(self._settings, labour, ours), daemon=True)
        self._process.start()
        ours.close()

    def listen(self) -> None:
        """Note what it has acknowledged by now; fail where it died by itself."""
        try:
            while self._told.poll():
                self._soaked.note(self._told.recv())
        except EOFError:
            self._process.join()
            raise RuntimeError(f"A process died by itself: {self._process.exitcode}.") from None

    def kill(self) -> None:
        """Kill it, whatever it is at; what it had acknowledged counts. Killing it again changes nothing."""
        if self._told.closed:
            return
        self._process.kill()
        self._process.join()
        try:
            while True:
                self._soaked.note(self._told.recv())
        except (EOFError, OSError):  # it may have died in the midst of a word
            self._told.close()
        self._soaked.kills += 1


def soak(home: Path, chroma_url: str, messages: int, seed: int = 1) -> Soaked:
    """Use a home until so many messages were acknowledged; return what was done and what it left behind.

    Args:
        home: A folder.
        chroma_url: An empty Chroma server.
        messages: How many, of all processes together.
        seed: Of all that is random but the moments of the kills.
    """
    settings, rng = Settings(home=home, chroma_url=chroma_url), random.Random(seed)
    soaked = Soaked(home.with_suffix(".diary"))
    users = max(1, messages // _EACH)
    labour, neighbour = Labour("long life", seed, users), _Neighbour(settings, seed, users, soaked)
    pause = max(_LEAST, messages // TURN // 2 // _KILLS)  # half of the turns are the neighbour's
    kit = open_kit(settings)
    neighbour.start()
    try:
        handled = 0
        while soaked.messages < messages:
            for done in labour.turn(kit):
                soaked.note(done)
            handled += TURN
            if handled % (_LOOK * TURN) == 0:
                soaked.looks.append(Look(soaked.messages, handled, _resident_mb()))
            neighbour.listen()
            if rng.randrange(pause) == 0:
                neighbour.kill()
                neighbour.start()
            if rng.randrange(2 * pause) == 0:
                kit.close()
                kit = open_kit(settings)
                soaked.restarts += 1
        neighbour.kill()
        _examine(kit, users, soaked)
    finally:
        neighbour.kill()
        kit.close()
    return soaked


def _examine(kit: MemoryKit, users: int, soaked: Soaked) -> None:
    """Finish what the killed left, and compare what is there with what was acknowledged."""
    kept: set[tuple[int, str]] = set()
    live: set[tuple[int, str]] = set()
    for user in range(users):
        scope = Talk.scope(user)
        kit.summarize(scope=scope, close=True)
        archive = kit.context.parts().archive
        held = archive.messages([scope.partition()])
        there = [message.message_id for message in held]
        soaked.twice += len(there) - len(set(there))
        kept.update((user, each) for each in there)
        live.update((user, memory.memory_id) for memory in kit.memories(scope=scope) if memory.status != "deleted")
    told, forgotten = soaked.acknowledged()
    soaked.lost = len(told - kept)
    soaked.back = len(forgotten & live)
    found = kit.admin.verify().differences
    soaked.unreached = sum(each.problem == UNREACHED for each in found)
    if soaked.unreached:
        kit.admin.rebuild()
        found = (*(each for each in found if each.problem != UNREACHED), *kit.admin.verify().differences)
    soaked.differences = len(found)
    print("\n".join(f"{each.where} {each.record_id}: {each.problem}" for each in found[:10]))


def _resident_mb() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def _figures(soaked: Soaked, seconds: float, asked: int) -> list[Figure]:
    slope, limit = (_SLOPE, _SECONDS) if asked >= _LONG else (None, None)
    return [
        Figure("messages acknowledged", soaked.messages, asked, "at least"),
        Figure("of these lost", soaked.lost, 0, "exactly"),
        Figure("messages recorded twice", soaked.twice, 0, "exactly"),
        Figure("memories forgotten", soaked.forgotten),
        Figure("of these live again", soaked.back, 0, "exactly"),
        Figure("runs of maintenance", soaked.maintained),
        Figure("processes killed", soaked.kills),
        Figure("kits closed and opened", soaked.restarts),
        Figure("records that the graph lost", soaked.unreached, note="found again once the index was made anew"),
        Figure("differences in the end", soaked.differences, 0, "exactly"),
        Figure("growth for each 10,000 messages", soaked.slope(own=False), slope, "under", "MB", _range(soaked)),
        Figure("the same, of those that it handled", soaked.slope(own=True), unit="MB"),
        Figure("seconds", seconds, limit, note=f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"),
    ]


def _range(soaked: Soaked) -> str:
    first, last = soaked.looks[0], soaked.looks[-1]
    return f"{first.resident:.0f} MB at first, {last.resident:.0f} MB after {last.handled:,} of its own"


def main(argv: Sequence[str] | None = None) -> None:
    """Soak, print all figures, and draw the memory of the long-living process."""
    parser = argparse.ArgumentParser(prog="python -m evals soak", description="What hours of use leave behind.")
    parser.add_argument("--messages", type=int, default=100_000, help="Of all processes together.")
    parser.add_argument("--seed", type=int, default=1, help="Of all that is random but the moments of the kills.")
    parser.add_argument("--figure", type=Path, help="Chart of the resident memory, without an ending.")
    parser.add_argument("--page", type=Path, help="A page with a place for the table, as docs/benchmarks.md.")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as index:
        chroma = ChromaServer(Path(index))
        with chroma.running():
            began = time.perf_counter()
            soaked = soak(Path(folder) / "home", chroma.url, options.messages, options.seed)
            figures = _figures(soaked, time.perf_counter() - began, options.messages)
    if options.figure:
        every = max(1, len(soaked.looks) // _POINTS)
        points = [(look.acknowledged, look.resident) for look in soaked.looks[::every]]
        lines = [Line("long-living process", points)]
        plot(options.figure, "Resident memory in a soak", "MB", lines, proportional=False)
    place(options.page, {"soak": block(figures)})
    finish(figures)


if __name__ == "__main__":
    main()
