"""One process owns the index."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from remegraph.files import IndexOwner

HOLD = """
import sys
from pathlib import Path
from remegraph.files import IndexOwner
print(IndexOwner.acquire(Path(sys.argv[1])) is not None, flush=True)
sys.stdin.read()
"""


def acquired(folder: Path) -> IndexOwner:
    owner = IndexOwner.acquire(folder)
    assert owner is not None
    return owner


def test_only_one_holds_the_lock_until_it_closes(tmp_path: Path) -> None:
    """Two writers on one Chroma directory lose vectors without a word."""
    first = acquired(tmp_path / "index")
    assert IndexOwner.acquire(tmp_path / "index") is None
    acquired(tmp_path / "other").close()
    first.close()
    first.close()
    acquired(tmp_path / "index").close()


def test_the_lock_goes_with_the_process_that_dies(tmp_path: Path) -> None:
    """After kill -9 the next start must not ask anybody to delete a lock file."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == b"True"
        assert IndexOwner.acquire(tmp_path) is None
        holder.kill()
    acquired(tmp_path).close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_that_closes_it_does_not_take_it_from_its_parent(tmp_path: Path) -> None:
    """A child inherits the locked file; were the lock gone when a child ends, a second writer would come in."""
    owner = acquired(tmp_path)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            owner.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert IndexOwner.acquire(tmp_path) is None
    owner.close()
