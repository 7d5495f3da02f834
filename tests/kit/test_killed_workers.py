"""A process is killed in the middle of a model's call: the next one goes on, or says who holds what it cannot take."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from remegraph import MemoryKit
from remegraph.models import Finding
from tests.kit.test_serving import opened, turn
from tests.talk import digest

pytestmark = pytest.mark.requirement("X3", "X9")

KILLED = """
import os, signal, sys
from pathlib import Path
from tests.kit.test_serving import opened, turn

kit = opened(Path(sys.argv[1]), lambda call: os.kill(os.getpid(), signal.SIGKILL))
turn(kit)
kit.drain()
"""

ENDED = """
import sys
from threading import Event, Thread
from remegraph import MemoryKit, Scope
from remegraph.failpoints import listen

reached = Event()

def hold(name):
    if name == "index.applied":
        reached.set()
        Event().wait(1)
        print("left in order", flush=True)

kit = MemoryKit.open(sys.argv[1], model=None, embedder=None)
listen(hold)
Thread(target=kit.save, args=("tea", "Ann likes tea."), kwargs={"scope": Scope(user="ann")}, daemon=True).start()
assert reached.wait(60)
"""


def doubts(kit: MemoryKit) -> list[Finding]:
    return [each for each in kit.admin.examine().findings if each.check == "jobs"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the lease must run out")
def test_what_a_killed_process_held_is_done_by_the_next_one_at_once(tmp_path: Path) -> None:
    """Whoever starts again after a crash must not wait for a lease: nobody is left who could renew it."""
    assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False).returncode == -signal.SIGKILL
    with opened(tmp_path, digest()) as kit:
        assert [job.kind for job in kit.admin.jobs("running")] == ["summarize"]
        assert [each.check for each in doubts(kit)] == ["jobs"]
        done = kit.drain()
        assert (len(done.blocks), done.pending, done.degraded) == (1, 0, ())


def test_what_another_machine_holds_is_counted_named_and_freed_by_the_cure(tmp_path: Path) -> None:
    """It may be at work: nothing is taken from it, and nobody is told that all is done."""
    with opened(tmp_path, digest()) as kit:
        turn(kit)
        assert kit.context.parts().jobs.claim("summarize", "web-1/42/a", 300) is not None
        done = kit.drain()
        assert (done.blocks, done.pending) == ((), 1)
        assert "`remegraph work release web-1/42`" in done.degraded[0]
        (finding,) = doubts(kit)
        assert "web-1/42" in finding.what
        assert "1 block" in finding.what
        assert kit.admin.release("web-1/42") == 1
        assert len(kit.drain().blocks) == 1
        assert not doubts(kit)


def test_a_process_that_ends_without_close_waits_for_a_call_to_the_index(tmp_path: Path) -> None:
    """A thread that is ended within compiled code takes the process down: exit code 139, in three of twenty."""
    ended = subprocess.run([sys.executable, "-c", ENDED, str(tmp_path)], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "left in order\n")
