"""The verbs of the active tier: what stands ready without a query, and what a person puts there or takes out."""

from __future__ import annotations

from remegraph.kit.calling import actor_of, check_text, required, twin
from remegraph.kit.verbs import Verbs
from remegraph.models import Memory, Scope

__all__ = ["Activating"]


class Activating(Verbs):
    """The verbs of the kit about the active tier."""

    def active(self, *, scope: Scope, task: str | None = None) -> tuple[Memory, ...]:
        """Return the memories that stand ready without a query: core rules, then what was used most of late.

        They are held in the process. While nothing was written, asking costs one look at the ledger's newest rows. It is
        no review, or whatever is active would stay so for ever. Use counts once it is written down.

        Args:
            scope: Who asks.
            task: What shares words with what is in mind for this task comes first; see `sense`.

        Raises:
            InputError: The task is no text.
        """
        from remegraph.rules.salience import telling_words

        self._open_parts()
        found = self._active.of(required(scope))
        if task is None:
            return found
        check_text(task=task)
        chunks = self._working.chunks((scope.partition(), task))
        in_mind = frozenset[str]().union(*(telling_words(chunk.content) for chunk in chunks))
        return tuple(sorted(found, key=lambda memory: in_mind.isdisjoint(telling_words(memory.content))))

    aactive = twin(active)

    def activate(self, memory_id: str, *, scope: Scope) -> Memory:
        """Have a memory stand ready from now on, whether it is used or not. The journal keeps it.

        Args:
            memory_id: The memory.
            scope: Whose memory.

        Raises:
            NotFoundError: There is no such live memory, or it is not this user's.
            ConflictError: It changed just now.
            InputError: The id is no text.
        """
        return self._pin(memory_id, scope, resident=True)

    aactivate = twin(activate)

    def deactivate(self, memory_id: str, *, scope: Scope) -> Memory:
        """Have a memory never stand ready, however often it is used; queries find it. `activate` takes it back.

        Args:
            memory_id: The memory.
            scope: Whose memory.

        Raises:
            NotFoundError: There is no such live memory, or it is not this user's.
            ConflictError: It changed just now.
            InputError: The id is no text.
        """
        return self._pin(memory_id, scope, resident=False)

    adeactivate = twin(deactivate)

    def _pin(self, memory_id: str, scope: Scope, *, resident: bool) -> Memory:
        from remegraph.lifecycle.active import pin

        check_text(memory_id=memory_id)
        parts = self._open_parts()
        memory = pin(
            parts.archive,
            parts.own(required(scope)),
            memory_id,
            resident=resident,
            actor=actor_of(scope),
            at_home=parts.at_home(scope),
            at=self._clock(),
            operation_id=self._new_id(),
        )
        self._bring_up_to_date()
        return memory
