"""Opens an index in a process of its own, to learn whether it is sound: a damaged one kills the process that opens it.

`probe` is the near end. The far end is this module run as a program: it prints what it begins, then what it found,
so that the last line names the collection that killed it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING

import numpy as np

from remegraph.errors import VectorIndexError
from remegraph.ledger.index.chroma import SHELF, persistent
from remegraph.ports import WHOLE

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

__all__ = ["Prober", "segments"]

_SECONDS = 60.0
_CHUNK = 1 << 20
_DEATHS = 2  # after this many collections that kill the probe, the whole index is given up
_WALK = 20_000  # records that one search visits: nearly all of a collection, so that a torn graph shows
_FOUND = 0.9  # share of them that a sound graph reaches at least; those we saw reach .999


class Prober:
    """Probes an index, as often as asked; no one else may have it open meanwhile.

    Args:
        seconds: How long one process may take.
    """

    def __init__(self, files: Path, seconds: float = _SECONDS) -> None:
        self._files = files
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False
        self._starting = Lock()

    def run(self) -> dict[str, str]:
        """Return what is wrong, by collection, or for `WHOLE`; empty where all is well.

        Raises:
            VectorIndexError: The probe could not be run, or was stopped.
        """
        found: dict[str, str] = {}
        deaths = 0
        while True:
            code, lines, complaint = self._once(found)
            if self._stopped:
                raise VectorIndexError("The vector index was closed while it was probed.", "Open it again.")
            if not lines:
                raise VectorIndexError(f"The vector index cannot be probed (exit {code}): {complaint}.")
            found |= {name: problem for name, problem in lines if problem is not None}
            if code == 0:
                return {name: problem for name, problem in found.items() if problem}
            deaths += 1
            deadly = lines[-1][0]
            found[deadly] = f"opening it ends a process with {code}" if code is not None else "it does not answer"
            if deadly == WHOLE or deaths == _DEATHS:
                return {WHOLE: found[deadly]}

    def stop(self) -> None:
        """End the probe that runs, and let none begin."""
        with self._starting:
            self._stopped = True
            if self._process is not None:
                self._process.kill()

    def _once(self, known: dict[str, str]) -> tuple[int | None, list[tuple[str, str | None]], str]:
        """Run one process over the collections that are not known yet; return how it ended and what it said."""
        command = [sys.executable, "-P", "-m", "remegraph.ledger.index.probe", str(self._files), *known]
        reading, lifeline = os.pipe()  # closes with this process, and the probe ends, too
        try:
            with self._starting:
                if self._stopped:
                    return None, [], "stopped"
                self._process = subprocess.Popen(  # noqa: S603 - this interpreter, this module, names from Chroma
                    command,
                    stdin=reading,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    encoding="utf-8",
                    errors="replace",
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"},
                )
            code: int | None
            try:
                output, errors = self._process.communicate(timeout=self._seconds)
                code = self._process.returncode
            except subprocess.TimeoutExpired:
                self._process.kill()
                output, errors = self._process.communicate()
                code = None
        except OSError as error:
            raise VectorIndexError(f"The vector index cannot be probed: {error}.") from error
        finally:
            os.close(reading)
            os.close(lifeline)
        lines = [json.loads(line) for line in output.splitlines() if line.endswith("]")]
        return code, [(name, problem) for name, problem in lines], errors.strip().rpartition("\n")[2]


def segments(files: Path) -> dict[str, str]:
    """Return the collections of an index by the folders that hold their vectors, without opening the index.

    Raises:
        sqlite3.Error: Chroma's database is damaged.
    """
    database = files / "chroma.sqlite3"
    if not database.exists():
        return {}
    query = "SELECT s.id, c.name FROM segments s JOIN collections c ON c.id = s.collection WHERE s.scope = 'VECTOR'"
    with closing(sqlite3.connect(database, timeout=5)) as connection:
        return dict(connection.execute(query).fetchall())


# ---------------------------------------------------------------------------------------------- the far end


def _main(files: Path, known: set[str]) -> None:
    Thread(target=_end_with_parent, daemon=True).start()
    import chromadb  # noqa: F401, PLC0415 - before the first word: a missing package is no damaged index

    _answer(WHOLE, None)
    problem = _problem_of_database(files)
    _answer(WHOLE, problem)
    if problem:
        return
    torn = {name for folder, name in segments(files).items() if name not in known and _is_torn(files / folder)}
    for name in torn:
        _answer(name, "a file of its graph is larger than it can be")
    _answer(WHOLE, None)
    client = persistent(files)
    for collection in client.list_collections():
        if collection.name not in known | torn:
            _answer(collection.name, None)
            _answer(collection.name, _problem_of(client.get_collection(collection.name, embedding_function=None)))
    _answer(WHOLE, "")


def _end_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)  # ends when the other end of the pipe does
    os._exit(1)


def _answer(name: str, problem: str | None) -> None:
    print(json.dumps([name, problem]), flush=True)  # noqa: T201 - a program's answer


def _problem_of_database(files: Path) -> str:
    try:
        with closing(sqlite3.connect(files / "chroma.sqlite3")) as connection:
            answer = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return f"its database is damaged: {error}"
    return "" if answer == "ok" else f"its database is damaged: {' '.join(answer.split())}"


def _is_torn(folder: Path) -> bool:
    """Return whether the upper layers of a graph claim more room than all its vectors, as after a torn write."""
    links, vectors = folder / "link_lists.bin", folder / "data_level0.bin"
    return links.exists() and links.stat().st_size > (vectors.stat().st_size if vectors.exists() else 0) + _CHUNK


def _problem_of(collection: Collection) -> str:
    try:
        held = collection.count()
        sample = collection.get(limit=1, include=["embeddings", "metadatas"])
        vectors, shelves = sample["embeddings"], sample["metadatas"]
        if not held or vectors is None or shelves is None:
            return ""
        vector, shelf = np.asarray(vectors[0], np.float32), str(shelves[0][SHELF])
        wanted = min(held, _WALK)
        found = len(collection.query(query_embeddings=vector, n_results=wanted, include=[])["ids"][0])
        if found < _FOUND * wanted:
            return f"{found} of {wanted} vectors are found"
        collection.query(query_embeddings=vector, n_results=1, where={SHELF: shelf}, include=[])
    except Exception as error:  # noqa: BLE001 - whatever Chroma raises is what was looked for
        return str(error) or type(error).__name__
    return ""


if __name__ == "__main__":
    _main(Path(sys.argv[1]), set(sys.argv[2:]))
