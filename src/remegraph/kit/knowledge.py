"""`kit.knowledge`: what agents learn from each other (MEK, 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from remegraph.kit.calling import check_text, required, twin
from remegraph.models import Absorption, KnowledgeItem, Scope
from remegraph.settings import Settings

if TYPE_CHECKING:
    from remegraph.exchange.absorbing import Absorber
    from remegraph.kit.parts import Parts
    from remegraph.ports import Clock, NewId

__all__ = ["Knowledge"]


class Knowledge:
    """Knowledge from and for other agents.

    Args:
        parts: Gives the parts of an open kit.
        settings: Its settings.
        clock: Tells the time.
        new_id: Makes ids.
        follow: Lets the vectors follow what changed; returns why they do not, if so.
    """

    def __init__(
        self,
        parts: Callable[[], Parts],
        settings: Settings,
        clock: Clock,
        new_id: NewId,
        follow: Callable[[], tuple[str, ...]],
    ) -> None:
        self._parts = parts
        self._settings = settings
        self._clock = clock
        self._new_id = new_id
        self._follow = follow

    def absorb(
        self,
        items: Iterable[KnowledgeItem | Mapping[str, Any]],
        *,
        scope: Scope,
        from_agent: str | None = None,
    ) -> Absorption:
        """Make memories of what other agents shared: all of the items or, on an error, none. The same again changes nothing.

        Each is trusted no further than it says, and than `settings.sharing` says of its source, which must be proven;
        under .5 it is quarantined, and `waiting` has it. What is known already is borne out, once by each agent; what
        contradicts a memory is kept beside it, and `kit.conflicts` has the two. A workflow that can be executed and
        checked becomes a skill that nobody has tried yet. No model is called.

        Args:
            items: Knowledge items, or JSON in their form.
            scope: Who takes them in.
            from_agent: The agent that they are expected from: items of others are refused.

        Returns:
            What became of each; `memory_ids` are those of new and updated memories, in order.

        Raises:
            InputError: There are too many items, or one is too large, too deep, or no item.
            ConflictError: Other changes came first, again and again.
        """
        from remegraph.engine.routing import home
        from remegraph.exchange.offering import Reception
        from remegraph.exchange.perceiving import perceive

        if from_agent is not None:
            check_text(from_agent=from_agent)
        mine = required(scope)
        given = perceive(items)
        reception = Reception(self._settings.sharing, mine.agent, from_agent, self._clock())
        offers = [reception.offer(item, None) for item in given]
        done = self._absorber().absorb(
            offers,
            said_in=mine.partition(),
            lives_in=home(mine, self._settings.trust_boundary),
            actor=mine.agent or "operator",
        )
        return done.evolve(degraded=self._follow())

    aabsorb = twin(absorb)

    def _absorber(self) -> Absorber:
        from remegraph.engine.disputes import Disputes
        from remegraph.exchange.absorbing import Absorber

        parts = self._parts()
        return Absorber(
            archive=parts.archive,
            near=parts.searcher.worded,
            commit=Disputes(parts.archive, parts.searcher).commit,
            clock=self._clock,
            recipe=self._settings.summary.recipe,
        )
