"""The verbs about what an answer made of memories: what was used is forgotten later, and ranked before what was not."""

from __future__ import annotations

from collections.abc import Sequence

from remegraph.errors import InputError, NotFoundError
from remegraph.kit.calling import check_text, required, twin
from remegraph.kit.verbs import Verbs
from remegraph.models import Memory, Scope

__all__ = ["Using"]


class Using(Verbs):
    """The verbs of the kit that note which memories were used.

    Like recall they only note it: who writes anyway writes it down. No memory is changed, and none is borne out by an
    answer that repeats it.
    """

    def used(self, memory_ids: Sequence[str], *, scope: Scope) -> None:
        """Note that these memories were of use, which counts more than that recall returned them.

        Args:
            memory_ids: The memories.
            scope: Who used them.

        Raises:
            NotFoundError: The scope sees no memory of one of the ids; nothing was noted.
            InputError: The ids are one text, or one is no text.
        """
        archive = self._open_parts().archive
        if isinstance(memory_ids, str):
            raise InputError("memory_ids is one text.", "Give a list of memory ids.")
        wanted = list(memory_ids)
        for memory_id in wanted:
            check_text(memory_id=memory_id)
        found = archive.memories(archive.visible(required(scope)), ids=wanted) if wanted else ()
        unknown = set(wanted) - {memory.memory_id for memory in found}
        if unknown:
            raise NotFoundError(f"There is no memory {min(unknown)!r} here.")
        self._note_used(found)

    aused = twin(used)

    def answered(self, answer: str, *, context: str, question: str = "", scope: Scope) -> tuple[str, ...]:
        """Note which memories of a recall's context an answer drew on, as far as its words tell.

        Node and middleware do this where they capture an answer. Call it where the agent is built otherwise.

        Args:
            answer: What the agent said.
            context: What was put before its model: `Recall.context`.
            question: What it was asked.
            scope: Who asked.

        Returns:
            The ids of the memories that it drew on.

        Raises:
            InputError: One of them is no text, or the context is not as recall wrote it.
        """
        from remegraph.rules.context import shown_texts
        from remegraph.rules.using import drawn_on

        archive = self._open_parts().archive
        check_text(answer=answer, context=context, question=question)
        try:
            shown = shown_texts(context)
        except ValueError as error:
            raise InputError(f"The context is cut or changed ({error}).", "Give Recall.context as it is.") from error
        drawn = drawn_on(answer, question, shown)
        found = archive.memories(archive.visible(required(scope)), ids=drawn) if drawn else ()
        self._note_used(found)
        return tuple(memory.memory_id for memory in found)

    aanswered = twin(answered)

    def _note_used(self, memories: Sequence[Memory]) -> None:
        if self._reviews.note_used(memories, self._clock()):
            self._write_noted_soon()
