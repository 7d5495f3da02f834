"""Whether the process of a worker lives: yes, no, or not to be told."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from remegraph.files import lives, worker_name

pytestmark = [
    pytest.mark.requirement("X3"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells"),
]

NAME = "from remegraph.files import worker_name as name; print(name(), flush=True); input()"


def test_a_process_lives_until_it_is_killed() -> None:
    """A name is the only thing that is left of it, and it must be told apart from one that is at work."""
    with subprocess.Popen([sys.executable, "-c", NAME], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        other = process.stdout.readline().decode().strip()
        assert lives(worker_name())
        assert lives(other)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert lives(other) is False, "in a container, nobody may ever ask how it ended"
        process.wait()
        assert lives(other) is False


def test_a_process_that_was_given_the_number_of_another_is_not_that_one() -> None:
    """Numbers come back: the one that bears it now began later."""
    machine, process, mark, worker = worker_name().split("/")
    place, began = mark.split("-")
    assert lives(f"{machine}/{process}/{place}-{int(began) - 1}/{worker}") is False


@pytest.mark.parametrize("part", ["machine", "namespace", "release", "unmarked"])
def test_of_another_machine_boot_or_container_nothing_is_certain(part: str) -> None:
    """There, the same number is another process, or none, and says nothing."""
    machine, process, mark, worker = worker_name().split("/")
    place, began = mark.split("-")
    gone = int(began) - 1
    names = {
        "machine": f"{machine}x/{process}/{place}-{gone}/{worker}",
        "namespace": f"{machine}/{process}/{place[::-1]}-{gone}/{worker}",
        "release": f"{machine}/{2**22 + 1}/{worker}",
        "unmarked": f"{machine}/{2**22 + 1}//{worker}",
    }
    assert lives(names[part]) is None
