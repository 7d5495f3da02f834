"""Worker processes that share a ledger, with a model that takes its time, and work that tells what was done with it.

Run as a program, this is their foreman: for each line with a number it forks so many, and a second line sets them to work.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import chromadb  # noqa: F401 - the workers need it

from remegraph import AgentMemorySettings, ExtractionPolicy, MemoryKit, Scope, Settings
from remegraph.engine import summarizer  # noqa: F401 - likewise
from remegraph.kit import background, components  # noqa: F401 - likewise
from remegraph.ledger import procrastinate_queue  # noqa: F401 - likewise
from remegraph.settings import CapturePolicy, SummaryPolicy
from remegraph.testing import ModelCall, ScriptedChatModel

__all__ = ["FACTS", "Crew", "Order", "effects", "fill", "scopes"]

ROOT = Path(__file__).parents[1]
FACTS = {
    "I was born in Lisbon.": "Ann was born in Lisbon.",
    "My sister Eve plays the cello.": "Ann's sister Eve plays the cello.",
    "I am allergic to peanuts.": "Ann is allergic to peanuts.",
    "I drive an old red van.": "Ann drives an old red van.",
    "I bake rye bread on Sundays.": "Ann bakes rye bread on Sundays.",
    "My dog is called Biscuit.": "Ann's dog is called Biscuit.",
}
"""What is said, one a block, and what is learned from it."""


@dataclass(frozen=True)
class Order:
    """What a worker works on, and how."""

    home: str
    ledger_url: str | None = None
    chroma_url: str | None = None
    queue: Literal["ledger", "procrastinate"] = "ledger"
    latency: float = 0.2
    concurrency: int = 2
    lease: float = 300.0
    background: bool = False
    """Whether a worker works as a service does beside its answers, and not as `remegraph worker`."""

    def open(self) -> MemoryKit:
        """Open a kit that leaves its work to the crew."""
        settings = Settings(
            home=Path(self.home),
            ledger_url=self.ledger_url,
            chroma_url=self.chroma_url,
            queue=self.queue,
            journal_key="of all workers of a crew",
            summary=SummaryPolicy(attention=0, reviser="rules"),
            agent=AgentMemorySettings(extraction=ExtractionPolicy(trigger="per-turn")),
            capture=CapturePolicy(lease=self.lease, poll=0.2, background=False, concurrency=self.concurrency),
        )
        steps = {"DigestAnswer": _digest, "ProposalAnswer": _propose}
        return MemoryKit.open(
            settings=settings, model=ScriptedChatModel(script=steps, latency=self.latency), embedder=None
        )


def scopes(count: int) -> list[Scope]:
    """Return so many users."""
    return [Scope(user=f"user{number}") for number in range(count)]


def fill(kit: MemoryKit, users: int, *blocks: int) -> None:
    """Let each user tell these facts, by number; each becomes a block that waits."""
    for number, said in ((each, list(FACTS)[each]) for each in blocks):
        for scope in scopes(users):
            turn = [("user", "Ann", said), ("assistant", "remy", "Noted.")]
            kit.capture(
                [
                    {"id": f"{scope.user}-{number}-{role}", "role": role, "name": name, "content": content}
                    for role, name, content in turn
                ],
                scope=scope,
            )


def effects(kit: MemoryKit, users: int, blocks: int) -> Counter[str]:
    """Count what went wrong: work that is not done, memories that are missing or there twice, blocks out of order."""
    archive, wrong = kit.context.parts().archive, Counter[str]()
    expected = Counter(list(FACTS.values())[:blocks])
    for scope in scopes(users):
        home = scope.partition()
        wrong["not done"] += len(archive.work([home], states=["pending", "failed", "review"]))
        memories = sorted(archive.memories([home]), key=lambda memory: memory.recorded_at)
        found = Counter(memory.content for memory in memories)
        wrong["lost"] += (expected - found).total()
        wrong["twice"] += (found - expected).total()
        order = [memory.block_ids[0] for memory in memories if memory.block_ids]
        wrong["out of order"] += order != sorted(order)
    return +wrong


class Crew:
    """Worker processes; those that are left are killed in the end.

    Args:
        order: What each works on.
    """

    def __init__(self, order: Order) -> None:
        self.workers: list[int] = []
        self._foreman = subprocess.Popen(
            [sys.executable, "-m", "evals._crew", json.dumps(asdict(order))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            process_group=0,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(ProcessLookupError):  # all of them ended
            os.killpg(self._foreman.pid, signal.SIGKILL)  # also whom nobody heard of yet: they hold the pipe
        self._foreman.communicate()

    def hire(self, count: int) -> None:
        """Start so many workers, wait until all are ready, and set them to work at once."""
        self._tell(str(count))
        for _ in range(count):
            word, pid = self._heard()
            assert word == "ready"
            self.workers.append(pid)
        self._tell("go")

    def kill(self, number: int) -> None:
        """Kill a worker, as when its machine goes."""
        os.kill(self.workers.pop(number), signal.SIGKILL)

    def dismiss(self) -> list[int]:
        """Have all stop gracefully; return the exit codes of those that were not killed."""
        left, self.workers = len(self.workers), []
        told, _ = self._foreman.communicate("")  # the end of its orders
        codes = [int(line.split()[1]) for line in told.splitlines()]
        return sorted(code for code in codes if code != -signal.SIGKILL) if left else []

    def processor_seconds(self) -> float:
        """Return the processor time that the workers have used."""
        fields = (Path(f"/proc/{pid}/stat").read_text(encoding="ascii").split() for pid in self.workers)
        return sum(int(each[13]) + int(each[14]) for each in fields) / os.sysconf("SC_CLK_TCK")

    def _tell(self, line: str) -> None:
        assert self._foreman.stdin is not None
        self._foreman.stdin.write(f"{line}\n")
        self._foreman.stdin.flush()

    def _heard(self) -> tuple[str, int]:
        assert self._foreman.stdout is not None
        word, number = self._foreman.stdout.readline().split()
        return word, int(number)


_SAID = re.compile("|".join(map(re.escape, FACTS)))


def _digest(call: ModelCall) -> Mapping[str, Any]:
    return {"summary": _said(call), "entities": [], "topics": ["personal:Ann"]}


def _propose(call: ModelCall) -> Mapping[str, Any]:
    quote = _said(call)
    evidence = [{"n": 1, "quote": quote}]
    fact = FACTS[quote]
    return {"operations": [{"action": "CREATE", "content": fact, "when_to_use": fact, "evidence": evidence}]}


def _said(call: ModelCall) -> str:
    """Return what was said in the block: nobody else says it in these words."""
    found: list[str] = _SAID.findall(call.text)
    return found[-1]


def _work(order: Order, gate: int) -> None:
    """Work until SIGTERM, from when the gate opens."""
    with background.until_signalled() as stop, order.open() as kit:
        kit.summarize(scope=Scope(user="nobody"))  # what is built at first use is there
        sys.stdout.write(f"ready {os.getpid()}\n")  # at once: others say it, too
        sys.stdout.flush()
        os.read(gate, 1)
        if order.background:
            kit.context.background.wake()
            stop.wait()
        else:
            kit.work.serve(stop)


def _main() -> None:
    """Be the foreman: it has imported everything and opened nothing, so a worker costs only its work."""
    order = Order(**json.loads(sys.argv[1]))
    hired: list[int] = []
    for line in iter(sys.stdin.readline, ""):
        gate, opener = os.pipe()
        for _ in range(int(line)):
            child = os.fork()
            if not child:
                os.close(opener)
                _work(order, gate)
                return
            hired.append(child)
        os.close(gate)
        sys.stdin.readline()
        os.close(opener)
    for child in hired:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)
    for child in hired:
        print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    _main()
