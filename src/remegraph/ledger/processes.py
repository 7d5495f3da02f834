"""The process that a worker is of, by name, and whether it still lives, as far as this one can tell for certain.

A name is `machine/process/mark/worker`. The mark tells the boot of the system and the namespaces in which the process has
its number, and when it began: so neither another container with the same numbers, nor a process that was given the number
of one that ended, is taken for it. Only Linux tells all that; elsewhere there is no mark, and nothing is certain.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from uuid import uuid4

from remegraph.ledger.rows import digest

__all__ = ["lives", "worker_name"]

_PROC = Path("/proc")
_BEGAN = 19
"""Which field after the name of its program tells when a process began, in ticks since boot; see proc(5), stat."""


def worker_name() -> str:
    """Return a new name for a worker of this process."""
    place = _place()
    mark = f"{place}-{_began(os.getpid())}" if place else ""
    return f"{platform.node()}/{os.getpid()}/{mark}/{uuid4().hex}"


def lives(worker: str) -> bool | None:
    """Return whether the process of a worker lives; nothing where that is not certain from here."""
    machine, _, told = worker.partition("/")
    process, _, rest = told.partition("/")
    place, _, began = rest.partition("/")[0].partition("-")
    if machine != platform.node() or not began or place != _place():
        return None
    try:
        os.kill(int(process), 0)
        return _began(int(process)) == int(began)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's, or /proc hides it
        return None


def _place() -> str:
    """Return a digest of the boot and the namespaces that numbers and times of processes hold in; none where unknown."""
    try:
        if str((_PROC / "self").readlink()) != str(os.getpid()):  # this /proc is of another namespace
            return ""
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii")
        spaces = _PROC / "self/ns"
        times = (spaces / "time").readlink() if (spaces / "time").is_symlink() else ""
        return digest(f"{boot} {(spaces / 'pid').readlink()} {times}")[:12]
    except OSError:
        return ""


def _began(process: int) -> int:
    """Return when a process began."""
    told = (_PROC / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
    return int(told.rpartition(")")[2].split()[_BEGAN])
