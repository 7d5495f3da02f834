"""Captures in any order, with replays, edits and crashes, in one process and in two: no message doubled, none lost.

What the host edited is shown in its newest form, and kept in all.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections import Counter
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remegraph import MemoryKit, Scope, Settings, failpoints
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.reliability.host import ROOT
from tests.talk import NOON

pytestmark = pytest.mark.requirement("X3", "F2")

SCOPE = Scope(user="ann", agent="remy")
THREADS = ("one", "two")
PLACES = ("add.begin", "add.before_commit", "add.after_commit", "blocks.begin", "blocks.before_commit")
CLIENTS, MESSAGES = 2, 40
PAUSE = timedelta(minutes=11)

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["say", "say", "say", "edit", "capture", "capture", "capture new", "crash", "open", "drain", "pause"]
        ),
        st.sampled_from(THREADS),
        st.sampled_from(PLACES),
        st.integers(0, 7),
    ),
    max_size=25,
)


class CrashedError(Exception):
    """The process died here, as far as the ledger can tell."""


class Talk:
    """A host with two threads, on a home where kits come and go without being closed."""

    def __init__(self, home: Path, trigger: str) -> None:
        self.home = home
        self.settings = Settings.model_validate({"home": home, "agent": {"extraction": {"trigger": trigger}}})
        self.clock = FrozenClock(NOON)
        self.kits: list[MemoryKit] = []
        self.threads: dict[str, list[dict[str, str]]] = {name: [] for name in THREADS}
        self.said: set[str] = set()
        self.captured: set[str] = set()
        self.open()

    def open(self) -> None:
        """Go on with a new kit; the one before works on in the background, as another process would."""
        embedder, index = HashedEmbedder(64), InMemoryVectorIndex()
        self.kits.append(
            MemoryKit.open(settings=self.settings, model=None, embedder=embedder, index=index, clock=self.clock)
        )

    def say(self, thread: str) -> None:
        """The next message; person and agent take turns."""
        said, role = self.threads[thread], ("user", "assistant")[len(self.threads[thread]) % 2]
        said.append({"id": f"{thread}{len(said)}", "role": role, "content": self._words()})

    def edit(self, thread: str, at: int) -> None:
        """Replace the words of a message."""
        if said := self.threads[thread]:
            said[at % len(said)]["content"] = self._words()

    def capture(self, thread: str, last: int = 0) -> None:
        """Give all messages, or the last ones."""
        given = self.threads[thread][-last:]
        self.kits[-1].capture(given, scope=SCOPE, thread=thread)
        self.captured |= {each["content"] for each in given}

    def crash(self, thread: str, place: str) -> None:
        """Die at some place of a capture, if it comes there, and start anew."""
        me = threading.get_ident()

        def reached(name: str) -> None:
            if name == place and threading.get_ident() == me:
                raise CrashedError

        failpoints.listen(reached)
        try:
            self.capture(thread)
        except CrashedError:
            pass
        finally:
            failpoints.listen(None)
        self.open()

    def check(self) -> None:
        """Whatever was captured is there once, and nothing else; what is cut is cut once, and done."""
        for thread in THREADS:
            self.capture(thread)
        self.kits[-1].drain()
        for kit in self.kits:
            kit.close()
        self.clock.move(PAUSE)
        self.open()
        with self.kits[-1] as kit:
            kit.drain()
            archive = kit.context.parts().archive
            recorded = Counter(row.body["content"] for row in archive.recorded(SCOPE.partition()).values())
            assert set(recorded.values()) <= {1}
            assert self.captured <= set(recorded) <= self.said
            for thread in THREADS:
                shown = sorted(message.text for message in kit.messages(thread, scope=SCOPE))
                assert shown == sorted(each["content"] for each in self.threads[thread])
            for thread in THREADS:
                blocks = archive.blocks([SCOPE.partition()], thread=thread)
                spans = sorted((block.first_seq, block.last_seq) for block in blocks)
                assert all(last < first for (_, last), (first, _) in pairwise(spans))
            assert kit.admin.stats()["blocks_pending"] == 0
            if self.settings.agent.extraction.gathers:
                left = [row.role for tail in archive.tails(SCOPE.partition()) for row in tail.messages]
                assert set(left) <= {"assistant"}  # an answer that its host edited when its turn was cut

    def _words(self) -> str:
        self.said.add(f"I like number {len(self.said)}.")
        return f"I like number {len(self.said) - 1}."


@settings(max_examples=12, database=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS, trigger=st.sampled_from(["gathered", "per-turn"]))
@pytest.mark.slow
def test_no_interleaving_of_captures_doubles_or_loses_a_message(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str, int]], trigger: str
) -> None:
    """Replays, edits by the host, and crashes at any place of a capture are what a long-lived agent sees in a week."""
    home = tmp_path_factory.mktemp("talk")
    shutil.copy(_template(tmp_path_factory), home / "ledger.sqlite")
    talk = Talk(home, trigger)
    for step, thread, place, at in steps:
        match step:
            case "say":
                talk.say(thread)
            case "edit":
                talk.edit(thread, at)
            case "capture":
                talk.capture(thread)
            case "capture new":
                talk.capture(thread, last=2)
            case "crash":
                talk.crash(thread, place)
            case "open":
                talk.open()
            case "pause":
                talk.clock.move(PAUSE)
            case _:
                talk.kits[-1].drain()
    talk.check()


def _template(folder: pytest.TempPathFactory) -> Path:
    """An empty ledger with its schema, made once."""
    home = folder.getbasetemp() / "captures"
    if not home.exists():
        MemoryKit.open(home, model=None, embedder=HashedEmbedder(64), index=InMemoryVectorIndex()).close()
    return home / "ledger.sqlite"


@pytest.mark.slow
def test_two_processes_on_one_thread_keep_all_messages(tmp_path: Path) -> None:
    """Two workers of a service talk in one thread; checkpointers keep what the last of them wrote."""
    command = [sys.executable, "-m", "tests.reliability.capturer", str(tmp_path)]
    MemoryKit.open(tmp_path, model=None, embedder=HashedEmbedder(64)).close()
    workers = [
        subprocess.Popen([*command, str(MESSAGES)], cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(CLIENTS)
    ]
    told = [worker.communicate(timeout=120)[0].split() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * CLIENTS
    with MemoryKit.open(tmp_path, model=None, embedder=HashedEmbedder(64)) as kit:
        stored = [message.message_id for message in kit.messages("shared", scope=SCOPE)]
    assert len(stored) == CLIENTS * MESSAGES
    assert sorted(stored) == sorted(word for words in told for word in words)
