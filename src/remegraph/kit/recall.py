"""What an agent is given: what is found for a query, what it is given at a turn, and `kit.rules`, which always apply."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

from remegraph.deadlines import Patience
from remegraph.engine.retrieval.hits import memory_hit
from remegraph.errors import InputError
from remegraph.governance.injection import CAPS, core_rules, known_names, layered, read_workspace, scope_rules, triggers
from remegraph.governance.versions import promote
from remegraph.kit.facade import Context, Facade, twin
from remegraph.kit.health import observed
from remegraph.kit.validation import actor_of, check_choice, check_numbers, check_text, check_times, required
from remegraph.models import (
    Chunk,
    Depth,
    Hit,
    Injected,
    Injection,
    Memory,
    Recall,
    RecallFilter,
    RecallMode,
    Scope,
    Trigger,
    Workspace,
)
from remegraph.models.standing import dated
from remegraph.text.questions import read_question
from remegraph.text.times import parse_range

if TYPE_CHECKING:
    from remegraph.engine.retrieval.hits import Found, RecallInput

__all__ = ["Asked", "Injections", "Recalls", "Rules"]

_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The arguments of `MemoryKit.recall`, which describes them."""

    query: str
    scope: Scope
    k: int | None = None
    depth: Depth = "memories"
    mode: RecallMode = "hybrid"
    time_start: datetime | None = None
    time_end: datetime | None = None
    topics: Sequence[str] | None = None
    only: RecallFilter | None = None
    without: Collection[str] = ()
    budget: int | None = None
    brief: bool = False
    asked_at: datetime | None = None
    previous: str = ""
    task: str | None = None
    review: bool = True


class Recalls(Facade):
    """Finds what is relevant to a query. Calls no model and writes nothing."""

    @observed("recall")
    def recall(self, asked: Asked) -> Recall:
        """Find what is relevant to a query; see `MemoryKit.recall`."""
        began = time.perf_counter()
        parts, context = self._parts(), self._context
        wanted = self._input(asked)
        with parts.archive.session():
            found = cast("Found", parts.retriever.invoke(wanted, context.graph_config()))
        recall = _recalled(wanted, found, began)
        context.health.count("recalls")
        if recall.degraded:
            context.health.count("recalls_degraded")
        own = [hit for hit in recall.memories if not hit.granted]  # to read is not to strengthen what another one knows
        if asked.review and context.reviews.note(own, context.clock()):
            context.write_noted_soon()
        return recall

    def _input(self, asked: Asked) -> RecallInput:
        settings, redact = self._settings, self._parts().redactor.text
        time_start, time_end = asked.time_start, asked.time_end
        k = settings.recall.k if asked.k is None else asked.k
        budget = settings.recall.context_tokens if asked.budget is None else asked.budget
        asked_at = self._context.clock() if asked.asked_at is None else asked.asked_at
        _check(asked, k, budget, asked_at)
        query, previous = redact(asked.query), redact(asked.previous)  # so it names what the ledger holds in its place
        if asked.mode == "temporal" and (time_start, time_end) == (None, None):
            mention = parse_range(query, asked_at)
            time_start, time_end = (mention.begins, mention.ends - _INSTANT) if mention else (None, None)
        scope, only, topics, task = required(asked.scope), asked.only, asked.topics, asked.task
        ranking = settings.for_agent(scope.agent).retrieval
        whole = only is None and topics is None and (time_start, time_end) == (None, None)
        return {
            "scope": scope,
            "query": query,
            "question": read_question(query, asked_at, previous),
            "k": k,
            "depth": asked.depth,
            "mode": asked.mode,
            "topics": None if topics is None else tuple(topics),
            "time_start": time_start,
            "time_end": time_end,
            "only": only.evolve(tags=tuple(map(redact, only.tags))) if only else RecallFilter(),
            "without": frozenset(asked.without),
            "budget": budget,
            "brief": asked.brief,
            "asked_at": asked_at,
            "ranking": ranking,
            "working": () if task is None else self._context.in_mind.recall((scope.partition(), task), query),
            "active": self._context.active.of(scope) if whole and ranking.active_first else (),
            "patience": Patience(settings.recall.index_timeout),
        }


def _check(asked: Asked, k: object, budget: object, asked_at: datetime) -> None:
    _check_asked(asked.query, asked.previous)
    check_numbers(least=1, whole=True, k=k, budget=budget)
    check_choice(Depth, depth=asked.depth)
    check_choice(RecallMode, mode=asked.mode)
    for name, value, wanted in (("topics", asked.topics, "topic keys"), ("without", asked.without, "message ids")):
        if isinstance(value, str):
            raise InputError(f"{name} is one text.", f"Give a list of {wanted}.")
    if asked.only is not None and not isinstance(asked.only, RecallFilter):
        raise InputError(f"only is of type {type(asked.only).__name__}.", "Give a RecallFilter.")
    if asked.task is not None:
        check_text(task=asked.task)
    check_times(time_start=asked.time_start, time_end=asked.time_end, asked_at=asked_at)


def _check_asked(query: object, previous: object) -> None:
    for name, text in (("query", query), ("previous", previous)):
        if not isinstance(text, str):
            raise InputError(f"{name} is of type {type(text).__name__}.", "Ask with text.")
    if not str(query).strip():
        raise InputError("The query is empty.", "Ask something.")


def _recalled(asked: RecallInput, found: Found, began: float) -> Recall:
    """Return what was found, as a record."""
    return Recall(
        query=asked["query"],
        self_memories=found["self_memories"],
        active=asked["active"],
        topics=found["routed"],
        memories=found["memories"],
        blocks=found["blocks"],
        messages=found["messages"],
        beside=found["beside"],
        working=asked["working"],
        index=found["index"],
        degraded=found["degraded"],
        context=found["context"],
        left_out=dict(found["left_out"]),
        unlikely=found["unlikely"],
        seconds=time.perf_counter() - began,
    )


class Rules(Facade):
    """The rules that always hold for an agent. Only `promote` changes anything."""

    def list(self, *, scope: Scope, workspace: Workspace | str | Path | None = None) -> tuple[Injected, ...]:
        """Return the rules that an agent is given in every conversation: core rules, then what applies here; see `inject`.

        Args:
            scope: Who is served.
            workspace: What is worked on, or the working directory.

        Raises:
            InputError: The working directory cannot be read.
        """
        core, local = _standing(self._context, *_placed(scope, workspace))
        first = [Injected(layer="core", hit=hit) for hit in core[: CAPS["core"]]]
        return (*first, *(Injected(layer="scope", hit=hit) for hit in local[: CAPS["scope"]]))

    alist = twin(list)  # noqa: A003 - the verb above

    def promote(self, memory_id: str, *, scope: Scope, reason: str) -> Memory:
        """Make a memory of a project valid in all projects of the user. The journal records who did it, and why.

        The memory becomes one of no project, under a new id, and supersedes the one of the project. Its evidence stays
        where it was said: from another project, the trace does not show the messages around the words.

        Args:
            memory_id: The memory; one of no project is returned as it is.
            scope: Whose memory, with its project.
            reason: Why it should hold everywhere.

        Returns:
            The memory that holds everywhere.

        Raises:
            NotFoundError: There is no such memory, it is not this user's, or it is not live.
            ConflictError: It changed just now, or its words are known in all projects already.
            InputError: The id is no text, or there is no reason.
        """
        check_text(memory_id=memory_id, reason=reason)
        parts = self._parts()
        memory = promote(
            parts.archive,
            parts.own(required(scope)),
            memory_id,
            actor=actor_of(scope),
            at_home=parts.at_home(scope),
            reason=parts.redactor.text(reason),
            at=self._context.clock(),
            new_id=self._context.new_id,
        )
        self._follow()
        return memory

    apromote = twin(promote)


class Injections(Facade):
    """Puts memories before an agent. No model is called, nothing is written."""

    def __init__(self, context: Context, recalls: Recalls) -> None:
        super().__init__(context)
        self._recalls = recalls

    def inject(
        self,
        text: str,
        *,
        scope: Scope,
        turn: int = 1,
        budget: int | None = None,
        workspace: Workspace | str | Path | None = None,
        depth: Depth = "memories",
        without: Collection[str] = (),
        previous: str = "",
        task: str | None = None,
        always: bool = False,
        review: bool = True,
        asked_at: datetime | None = None,
    ) -> Injection:
        """Return what an agent should have before it when it answers, in layers; see `MemoryKit.inject`."""
        began = time.perf_counter()
        budget = self._settings.recall.context_tokens if budget is None else budget
        _check_turn(text, turn, budget)
        scope, languages = _placed(scope, workspace)
        parts = self._parts()
        core, local = _standing(self._context, scope, languages)
        fired = self._triggers(text, turn, scope, (*core, *local), always=always)
        held = min(len(core), CAPS["core"]) + min(len(local), CAPS["scope"])
        k = CAPS["query"] + held  # what the first layers hold may be the best of it
        found = (
            self._recalls.recall(
                Asked(
                    query=text,
                    scope=scope,
                    k=k,
                    depth=depth,
                    previous=previous,
                    without=without,
                    review=review,
                    asked_at=asked_at,
                )
            )
            if fired
            else None
        )
        query = (*found.memories, *found.blocks, *found.messages) if found else ()
        result = layered(
            {"core": core, "scope": local, "query": [hit for hit in query if hit.record_id not in without]},
            budget,
            parts.count_tokens,
            self._in_mind(scope, task, text),
            share=self._settings.sharing.source_share,
            reader=scope.agent,
        )
        return Injection(
            context=result.text,
            shown=tuple(result.shown),
            triggers=fired,
            left_out=result.left_out,
            turn=turn,
            budget=budget,
            tokens=parts.count_tokens(result.text),
            degraded=found.degraded if found else (),
            seconds=time.perf_counter() - began,
        )

    def _triggers(
        self, text: str, turn: int, scope: Scope, shown: Sequence[Hit], *, always: bool
    ) -> tuple[Trigger, ...]:
        """Return why memory should be searched; without any words it cannot be."""
        if not text.strip():
            return ()
        known = known_names(self._parts().archive, scope, text)
        fired = triggers(text, turn=turn, known=known, shown="\n".join(hit.text for hit in shown))
        return (*fired, Trigger(kind="asked")) if always else fired

    def _in_mind(self, scope: Scope, task: str | None, text: str) -> tuple[Chunk, ...]:
        if task is None:
            return ()
        check_text(task=task)
        return self._context.in_mind.recall((scope.partition(), task), text)


def _standing(context: Context, scope: Scope, languages: tuple[str, ...]) -> tuple[tuple[Hit, ...], tuple[Hit, ...]]:
    """Return the first two layers, as hits of now, without rules that have ended."""
    archive, now = context.parts().archive, context.clock()
    core = dated((memory_hit(rule, {}) for rule in core_rules(archive, scope, languages)), now)
    local = dated((memory_hit(rule, {}) for rule in scope_rules(archive, scope, languages)), now)
    return tuple(filter(_holds, core)), tuple(filter(_holds, local))


def _holds(hit: Hit) -> bool:
    return hit.standing == "current"


def _check_turn(text: object, turn: object, budget: object) -> None:
    if not isinstance(text, str):
        raise InputError(f"text is of type {type(text).__name__}.", "Give what the person said.")
    check_numbers(least=0, whole=True, turn=turn)
    check_numbers(least=1, whole=True, budget=budget)


def _placed(scope: Scope, workspace: Workspace | str | Path | None) -> tuple[Scope, tuple[str, ...]]:
    """Return the scope, in the project that is worked on, and the languages in use."""
    scope = required(scope)
    if workspace is None:
        return scope, ()
    at = workspace if isinstance(workspace, Workspace) else read_workspace(workspace)
    project = scope.project if scope.project is not None else at.project
    return scope.evolve(project=project), tuple(name.casefold() for name in at.languages)
