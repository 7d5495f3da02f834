"""A process with a kit in it that a test drives line by line, and that may die.

`Host` is the near end; the far end is this module run as a program.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self
from uuid import uuid4

from remegraph import MemoryKit, Scope, Settings
from remegraph.errors import RemegraphError, SetupError, VectorIndexError
from remegraph.kit import OpenOptions
from remegraph.models import ChangeSet, Memory, MemoryChange, Message, Topic
from remegraph.settings import RecallPolicy
from tests.talk import packed

ROOT = Path(__file__).parents[2]
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
ANN = Scope(user="ann")
TOPIC = Topic(type="personal", target_name="ann")


class HostDiedError(AssertionError):
    """The process ended; `code` says how."""

    def __init__(self, code: int) -> None:
        super().__init__(f"The host died with {code}.")
        self.code = code


class HostRefusedError(Exception):
    """The kit raised an error of ours in the other process."""


class Host:
    """Another process that has a kit; each call is one of `Commands`.

    Args:
        file_limit: Bytes that no file of it grows over.
        environment: Variables that it has beside ours.
    """

    def __init__(self, *, file_limit: int | None = None, environment: Mapping[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "tests.reliability.host", *([str(file_limit)] if file_limit else [])]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})},
        )

    def __call__(self, command: str, **arguments: object) -> Any:
        """Run a command there; return what it returned."""
        try:
            self._pipe(self.process.stdin).write(json.dumps([command, arguments]) + "\n")
            self._pipe(self.process.stdin).flush()
        except BrokenPipeError:
            raise HostDiedError(self.process.wait()) from None
        line = self._pipe(self.process.stdout).readline()
        if not line:
            raise HostDiedError(self.process.wait())
        answer = json.loads(line)
        if "error" in answer:
            raise HostRefusedError(answer["error"])
        return answer["value"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


class Commands:
    """What a host can be told to do."""

    kit: MemoryKit

    def open(self, home: str, journal_key: str | None = None, **options: Any) -> str:
        """Open a kit that searches the index, however few vectors there are."""
        recall = RecallPolicy(exact_limit=0, index_timeout=60)
        settings = Settings(home=Path(home), journal_key=journal_key, recall=recall)
        self.kit = MemoryKit.open(settings=settings, model=None, embedder=None, **packed(options, OpenOptions))
        return str(self.kit.admin.stats()["index"])

    def close(self) -> None:
        """Close it."""
        self.kit.close()

    def add(self, texts: Sequence[str], prefix: str = "") -> list[str]:
        """Record messages; return their ids."""
        messages = [
            Message(message_id=f"{prefix}{number}" if prefix else uuid4().hex, role="user", content=text, time=NOON)
            for number, text in enumerate(texts)
        ]
        return list(self.kit.add_messages(messages, scope=ANN).message_ids)

    def say(self, text: str) -> list[str]:
        """Record a message at the time that it is here; return its id."""
        return list(self.kit.add_messages([text], scope=ANN).message_ids)

    def now(self) -> str:
        """Return the time that it is here."""
        return datetime.now(UTC).isoformat()

    def statuses(self) -> list[str]:
        """Look after the memories; return the status of each."""
        self.kit.retention.maintain(scope=ANN)
        return [str(memory.status) for memory in self.kit.memories(scope=ANN)]

    def remembered(self) -> list[str]:
        """Return the id of each message that a live memory stands on, once for each."""
        live = self.kit.memories(scope=ANN, statuses=["active"])
        return [item.message_id for memory in live for item in memory.evidence]

    def learn(self, memories: Mapping[str, str]) -> int:
        """Commit memories by id, new or with another text; the index is not told yet."""
        archive = self.kit.context.parts().archive
        heads = {head.memory_id: head for head in archive.memories([ANN.partition()], ids=list(memories))}
        changes = []
        for name, text in memories.items():
            head = heads.get(name)
            memory = head or Memory(
                memory_id=name, partition=ANN.partition(), topic=TOPIC, content=text, said_at=NOON, recorded_at=NOON
            )
            version = head.version if head else 0
            changes.append(MemoryChange(memory=memory.evolve(content=text), expected_version=version, action="test"))
        changed = ChangeSet(
            operation_id=uuid4().hex, actor="test", recorded_at=NOON, at_home=True, changes=tuple(changes)
        )
        return archive.commit(changed).created

    def sync(self) -> int:
        """Bring the index up to date."""
        return self.kit.context.parts().projection.sync()

    def try_sync(self) -> str:
        """The same; return how the index failed."""
        try:
            self.sync()
        except (VectorIndexError, SetupError) as error:
            return str(error)
        return ""

    def summarize(self) -> Sequence[str]:
        """Summarise what was said; return what could not be used."""
        return self.kit.summarize(scope=ANN, close=True).degraded

    def recall(self, query: str, k: int = 5) -> tuple[str, list[str]]:
        """Search; return where vectors were searched, and the ids."""
        found = self.kit.recall(query, scope=ANN, k=k)
        return found.index, [hit.record_id for hit in found.memories]

    def messages(self) -> list[str]:
        """Return the ids of all messages."""
        return [message.message_id for message in self.kit.context.parts().archive.messages([ANN.partition()])]

    def verify(self) -> tuple[float, list[str]]:
        """Compare the index with the ledger; return the processor time that it took, and all differences."""
        began = sum(os.times()[:4])  # with that of ended children; clocks would measure the neighbours, too
        differences = self.kit.admin.verify().differences
        return sum(os.times()[:4]) - began, [f"{each.where}: {each.record_id} {each.problem}" for each in differences]

    def rebuild(self) -> int:
        """Make the index anew."""
        return self.kit.admin.rebuild()

    def lift_limit(self) -> None:
        """Let files grow again."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _main() -> None:
    commands = Commands()
    for line in sys.stdin:
        name, arguments = json.loads(line)
        command: Callable[..., object] = getattr(commands, name)
        try:
            answer = {"value": command(**arguments)}
        except RemegraphError as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    if len(sys.argv) > 1:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that a write fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
    _main()
