"""A disk that is full, and files that cannot grow: what was acknowledged stays, recall goes on, writing resumes."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from conftest import Figure
from tests.reliability.host import Host, HostRefusedError

pytestmark = pytest.mark.requirement("X2", "X3")

FACTS = {f"m{number}": f"green tea number {number} {number * 7919:x}" for number in range(150)}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 12 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root; files that cannot grow are tested all the same")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(disk)], check=False, capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"root, and still not allowed to mount: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(ballast: Path) -> None:
    with ballast.open("ab", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass


def fills_up(host: Host, home: Path, make_room: Callable[[], object]) -> int:
    """Write until nothing more fits; then look at everything; then go on. Return how many were acknowledged."""
    host("open", home=str(home))
    host("learn", memories=FACTS)
    host("sync")
    acknowledged: list[str] = []

    def add_for_ever() -> None:
        while True:
            acknowledged.extend(host("add", texts=[f"message {len(acknowledged)} {'x' * 500}"] * 20))

    with pytest.raises(HostRefusedError, match=r"LedgerUnavailableError.*(Free some space|Check the disk)"):
        add_for_ever()
    assert acknowledged
    query = FACTS["m17"]
    assert host("messages") == acknowledged
    assert host("recall", query=query)[1][0] == "m17"
    with pytest.raises(HostRefusedError):
        host("learn", memories={f"{name} again": text for name, text in FACTS.items()})
    assert host("try_sync") == ""  # nothing to do
    assert host("recall", query=query)[1][0] == "m17"
    make_room()
    acknowledged += host("add", texts=["at last"])
    assert host("learn", memories={"late": "black coffee in the evening"}) == 1
    host("sync")
    assert host("messages") == acknowledged
    assert host("verify")[1] == []
    assert host("recall", query="black coffee in the evening")[1][0] == "late"
    host("close")
    with closing(sqlite3.connect(home / "ledger.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return len(acknowledged)


@pytest.mark.slow
def test_a_full_disk_loses_nothing_and_is_survived(small_disk: Path, figure: Figure) -> None:
    """Disks fill up at night."""
    with Host() as host:
        room = ["mount", "-o", "remount,size=64m", str(small_disk)]
        kept = fills_up(host, small_disk / "home", lambda: subprocess.run(room, check=True))
    figure("bar 10: disk full", f"{kept} messages acknowledged, {kept} there, integrity ok")


@pytest.mark.slow
def test_files_that_cannot_grow_lose_nothing_and_are_survived(tmp_path: Path, figure: Figure) -> None:
    """A quota, or a file system's limit; writes fail half-way."""
    with Host(file_limit=5_000_000) as host:
        kept = fills_up(host, tmp_path / "home", lambda: host("lift_limit"))
    figure("bar 10: files cannot grow", f"{kept} messages acknowledged, {kept} there, integrity ok")


@pytest.mark.slow
def test_recall_goes_on_from_sql_while_chroma_cannot_write(small_disk: Path) -> None:
    """Chroma refuses even to read on a full disk."""
    with Host() as host:
        home = small_disk / "home"
        host("open", home=str(home))
        host("learn", memories=FACTS)
        host("sync")
        ballast = small_disk / "ballast"
        with ballast.open("wb") as file:
            file.write(b"x" * (os.statvfs(small_disk).f_bavail * 4096 - 400_000))
        host("learn", memories={"late": "black coffee in the evening"})
        with pytest.raises(OSError, match="No space left"):
            fill(ballast)
        assert host("try_sync")
        assert host("recall", query="black coffee in the evening")[1][0] == "late"
        assert host("recall", query=FACTS["m17"])[1][0] == "m17"
        ballast.unlink()
        host("sync")
        assert host("verify")[1] == []
        assert host("recall", query=FACTS["m17"])[0] == "chroma"
        host("close")


@contextmanager
def failing(host: Host, calls: str, error: str, every: int, *files: Path) -> Iterator[None]:
    """Let one of so many of these system calls of a process on these files fail, until the end of the block."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is missing: apt-get install strace")
    watched = [option for file in files for option in ("-P", str(file))]
    command = [strace, "-f", "-o", os.devnull, "-e", f"inject={calls}:error={error}:when=2+{every}", *watched]
    command += ["-e", f"trace={calls}", "-p", str(host.process.pid)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr is not None
        told = tracer.stderr.readline()
        if "attached" not in told:
            pytest.skip(f"strace may not look into a process of ours: {told.strip()}")
        try:
            yield
        finally:
            tracer.terminate()


@pytest.mark.slow
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
@pytest.mark.parametrize(("calls", "every"), [("fsync,fdatasync", 3), ("pwrite64", 80)])
def test_a_disk_that_fails_now_and_then_loses_nothing(
    tmp_path: Path, calls: str, every: int, error: str, figure: Figure
) -> None:
    """A disk that dies says so by an error here and there, first of all where data are to be made durable."""
    home, query = tmp_path / "home", FACTS["m17"]
    acknowledged: list[str] = []
    refusals: list[str] = []
    with Host() as host:
        host("open", home=str(home))
        host("learn", memories=FACTS)
        host("sync")
        with failing(host, calls, error, every, home / "ledger.sqlite", home / "ledger.sqlite-wal"):
            for number in range(60):
                try:
                    acknowledged += host("add", texts=[f"message {number}.{each} {'x' * 500}" for each in range(20)])
                except HostRefusedError as refusal:
                    refusals.append(str(refusal))
                assert host("messages") == acknowledged
                assert host("recall", query=query)[1][0] == "m17"
        acknowledged += host("add", texts=["at last"])
        assert host("messages") == acknowledged
        host("sync")
        assert host("verify")[1] == []
        host("close")
    assert 0 < len(refusals) < 60
    assert all(refusal.startswith("LedgerUnavailableError") for refusal in refusals)
    with closing(sqlite3.connect(home / "ledger.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    figure(
        f"bar 10: {error} of {calls}",
        f"{len(refusals)} of 60 calls refused, {len(acknowledged)} messages acknowledged and there, integrity ok",
    )
