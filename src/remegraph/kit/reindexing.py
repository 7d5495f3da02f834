"""A change of the embedder in the background: everything is embedded anew while recall goes on by words."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from remegraph.errors import CancelledError
from remegraph.kit.health import Health

if TYPE_CHECKING:
    from remegraph.ports import Embedder
    from remegraph.storage.projection import VectorProjection

__all__ = ["Reindexing"]


class Reindexing:
    """One run of `VectorProjection.reindex` in a thread; the next one goes on where it stopped.

    Args:
        projection: The vectors.
        embedder: The new embedder.
        health: Told what fails.
    """

    def __init__(self, projection: VectorProjection, embedder: Embedder, health: Health) -> None:
        self._projection = projection
        self._embedder = embedder
        self._health = health
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="remegraph-reindexing", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until it is done, or has failed."""
        self._thread.join()

    def close(self) -> None:
        """Stop after the batch at hand. Stopping twice is fine."""
        self._closed = True
        self.wait()

    def _run(self) -> None:
        try:
            self._projection.reindex(self._embedder, progress=self._go_on)
        except CancelledError:
            return
        except Exception as error:  # noqa: BLE001 - the boundary: nobody is above, and the embedder may be a host's own
            self._health.note("background", error)

    def _go_on(self, _done: int, _total: int) -> None:
        if self._closed:
            raise CancelledError("The kit is closed.")
