"""The verbs of `kit.admin` that erase: a person, a thread, messages, memories."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from remegraph.errors import InputError, NotFoundError
from remegraph.kit.calling import check_text, required, twin
from remegraph.kit.facade import Facade
from remegraph.models import Erasure, ErasureRequest, Scope, Subject

__all__ = ["Erasing"]


class Erasing(Facade):
    """Erasure for the operator of a home. It cannot be undone."""

    _write_noted: Callable[[], None]
    _forget_sensed: Callable[[], None]

    def erase(
        self,
        whom: Subject | Scope,
        *,
        thread: str | None = None,
        message_ids: Sequence[str] = (),
        memory_ids: Sequence[str] = (),
        full: bool = False,
    ) -> Erasure:
        """Erase a person, or, of the place that a scope writes to, a thread, messages or memories; prove it.

        What was made of erased words goes with them: index entries, memories in all versions, vectors, links, notes
        of tools, jobs. A memory that other words bear out lives on, made anew from those. Stubs without content and
        the events of the journal stay. It is done step by step; where it was stopped, the next call finishes it.

        Args:
            whom: The person, wherever their rows live; or the scope of the place.
            thread: All messages of this thread, and what was made of them.
            message_ids: These messages, likewise.
            memory_ids: These memories; the messages that they came from stay.
            full: On PostgreSQL, whether tables are written anew (VACUUM FULL), which locks them meanwhile.

        Returns:
            The receipt: each place with counts, what a look found left, and what is not covered.

        Raises:
            InputError: With a scope, it is not said what; with a person, more is said.
            NotFoundError: There is no such person, thread, message or memory; nothing was erased.
            IndexOwnedError: Another process owns the index: the rows are gone, and it finishes the rest by `resume`.
            VectorIndexError: The index failed: the rows are gone; repeat `resume`.
            SetupError: The ledger or a file cannot be used; repeat `resume`.
        """
        request = self._request(whom, thread, message_ids, memory_ids)
        self._write_noted()
        eraser = self._parts().eraser
        erasure_id = eraser.ask(request)
        for name in eraser.unfinished():
            self._run(name, full=full)
        return self._run(erasure_id, full=full)  # where it is done, by us or by others, that only tells the receipt

    aerase = twin(erase)

    def resume(self, *, full: bool = False) -> tuple[Erasure, ...]:
        """Finish the erasures that were stopped; return their receipts.

        Args:
            full: On PostgreSQL, whether tables are written anew.

        Raises:
            IndexOwnedError: Another process owns the index.
            VectorIndexError: The index failed; repeat.
            SetupError: The ledger or a file cannot be used; repeat.
        """
        return tuple(self._run(name, full=full) for name in self._parts().eraser.unfinished())

    aresume = twin(resume)

    def _run(self, erasure_id: str, *, full: bool) -> Erasure:
        receipt = self._parts().eraser.run(erasure_id, full=full)
        self._forget_sensed()
        return receipt

    def _request(
        self, whom: Subject | Scope, thread: str | None, message_ids: Sequence[str], memory_ids: Sequence[str]
    ) -> ErasureRequest:
        for name in (*(() if thread is None else (thread,)), *message_ids, *memory_ids):
            check_text(id=name)
        part = thread is not None or bool(message_ids) or bool(memory_ids)
        archive = self._parts().archive
        if isinstance(whom, Subject):
            if part:
                raise InputError("A person is erased whole.", "Give a scope to erase a thread, messages or memories.")
            return ErasureRequest(subject=whom)
        place = required(whom).partition()
        if not part:
            raise InputError(
                "It is not said what to erase.", "Name a thread, messages or memories, or give a Subject for a person."
            )
        if place not in archive.partitions():
            raise NotFoundError("Nothing is recorded in this scope.")
        return ErasureRequest(
            partition=place, thread=thread, message_ids=tuple(message_ids), memory_ids=tuple(memory_ids)
        )
