"""The verb that shares: what an agent has learned becomes knowledge that others may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from remegraph.errors import InputError, ScopeError
from remegraph.kit.calling import ALONE, check_text, required, twin
from remegraph.kit.facade import Facade
from remegraph.models import Budget, Extraction, ExtractionReport, Recall, Scope, SharedItem
from remegraph.models.base import Token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remegraph.exchange.extraction import ExtractService, ShareInput
    from remegraph.kit.draining import Cancel
    from remegraph.kit.summarizing import OnProgress
    from remegraph.models import Memory, SkillFigures

__all__ = ["Extracting"]


class _Context(BaseModel):
    """What may stand in the context of `share`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    include_episodes: bool = False
    public: list[Token] = Field(default=[])
    k: int = Field(default=20, ge=1, le=200)


class Extracting(Facade):
    """How memories become knowledge items."""

    _recall: Callable[..., Recall]

    def share(
        self,
        query: str,
        *,
        scope: Scope,
        context: Mapping[str, object] | None = None,
        budget: Budget | None = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> Extraction:
        """Make knowledge of the memories that bear on a query: without names, secrets, times and places.

        What is found is filtered, cleaned, said in general, searched once more and written as knowledge items. The
        report says what became of each memory. The same knowledge gets the same id whenever it is shared. The ledger
        notes, without a word of them, which agent shared which items. Unless a model is set, rules do it all; where a
        model fails to say something in general, rules do.

        Args:
            query: What the knowledge shall be about.
            scope: Whose memories; it names the agent that shares.
            context: include_episodes: whether the pattern of single episodes may leave, too; public: names that may stay,
                as everybody knows them; k: how many memories to look at.
            budget: Hard limits on calls and tokens.
            progress: Told before each step.
            cancel: Asked before each step and each question to the model.

        Raises:
            ScopeError: The scope names no agent.
            InputError: The query is empty, or the context holds what it may not.
            MissingExtraError: The extra `sharing` is not installed.
            ModelUnavailableError: The model is down; nothing was shared.
            BudgetExceededError: The budget is used up; nothing was shared.
            CancelledError: `cancel` said so; nothing was shared.
        """
        from remegraph.engine.metering import Meter
        from remegraph.lifecycle.maintenance import Round
        from remegraph.rules.standardizing import item_digest

        agent = required(scope).agent
        if agent is None:
            raise ScopeError("Who shares must have a name.", "Give the scope an agent.")
        check_text(query=query)
        options, parts = _read(context), self._parts()
        meter, this = Meter(budget), Round(parts.clock(), dry_run=False, progress=progress, cancel=cancel)
        asked: ShareInput = {
            "query": query,
            "scope": scope,
            "agent": agent,
            "now": this.at,
            "k": options.k,
            "episodes": options.include_episodes,
            "public": tuple(options.public),
            "generalizer": parts.thinkers.generalizer(self._library(scope).agent, meter),
            "tell": this.tell,
            "check": this.check,
        }
        done = self._extractor.invoke(asked, ALONE)
        items = done["items"]
        noted = [
            SharedItem(knowledge_id=each.knowledge_id, digest=item_digest(each), agent=agent, at=each.created_at)
            for each in items
        ]
        if noted:
            parts.archive.add_shared(scope.partition(), noted)
        report = ExtractionReport(
            examined=len(done["found"]),
            rejected=done["rejected"],
            removed=done["removed"],
            by_rules=done["by_rules"],
        )
        return Extraction(items=items, report=report, usage=meter.usage())

    ashare = twin(share)

    @cached_property
    def _extractor(self) -> ExtractService:
        from remegraph.exchange.extraction import Sources, build_extractor
        from remegraph.lifecycle.skills import figures
        from remegraph.rules.procedures import is_skill

        archive = self._parts().archive

        def recall(query: str, scope: Scope, k: int) -> Sequence[Memory]:
            hits = self._recall(query, scope=scope, k=k).memories
            order = {hit.record_id: at for at, hit in enumerate(hits)}
            places = list(dict.fromkeys(hit.partition for hit in hits))
            found = archive.memories(places, ids=list(order))
            return sorted(found, key=lambda memory: order[memory.memory_id])

        def figures_of(memories: Sequence[Memory]) -> Mapping[str, SkillFigures]:
            skills = [memory for memory in memories if is_skill(memory)]
            return {each.memory_id: each for each in figures(archive, skills)}

        return build_extractor(Sources(archive, recall, figures_of))


def _read(context: Mapping[str, object] | None) -> _Context:
    """Return the context of a call.

    Raises:
        InputError: It holds what it may not; that is named.
    """
    given: Any = {} if context is None else context
    if not isinstance(given, Mapping):
        raise InputError(f"context is of type {type(given).__name__}.", "Give a mapping.")
    try:
        return _Context.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise InputError(f"context.{name} cannot be used: {first['msg']}.", "See share.") from error
