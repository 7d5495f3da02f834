"""The verbs that put memories before an agent at a turn, and the one that lets a memory hold in all projects."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path

from remegraph.errors import InputError
from remegraph.kit.base import twin
from remegraph.kit.lookup import Lookup
from remegraph.kit.validation import actor_of, check_numbers, check_text, required
from remegraph.models import Chunk, Depth, Hit, Injected, Injection, Memory, Scope, Trigger, Workspace
from remegraph.models.standing import dated

__all__ = ["Injections"]


class Injections(Lookup):
    """The verbs of the kit about rules, and what is read for them. Only `promote` changes anything."""

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
        """Return what an agent should have before it when it answers, in layers. No model is called, nothing is written.

        First core rules (importance .9 or more, at most 10), then what applies to the project or to a language at hand
        (at most 5), then what bears on the words (at most 5), which is looked up only where they call for it: they speak
        of the past, ask for a decision or about the person's own things, name what memory knows and the first layers do
        not show, or it is a fifth turn.

        Args:
            text: What the person said; empty: no third layer.
            scope: Who is served.
            turn: How many messages the person has said in the conversation, this one included.
            budget: Tokens of the context; the recall policy's, 2,000, unless given. Core rules are never cut. Of the other
                layers, summaries stand in where there is no room for the whole.
            workspace: What is worked on, or the working directory: gives the languages, and the project where the scope
                names none.
            depth: How far the third layer looks: memories, then index entries, then raw messages.
            without: Ids of what the third layer need not bring again.
            previous: What the person said before.
            task: What is in mind for this task comes before the third layer; see `sense`.
            always: Whether the third layer is looked up whatever the text says.
            review: Whether it strengthens the memories that it finds; see `recall`.
            asked_at: When it is asked, for the times that it names; now unless given.

        Raises:
            BudgetExceededError: The core rules do not fit into the budget.
            InputError: The text or task is no text, the turn or budget is no number that can be, or the working directory
                cannot be read.
        """
        from remegraph.governance.injection import CAPS, layered

        began = time.perf_counter()
        budget = self.settings.recall.context_tokens if budget is None else budget
        _check(text, turn, budget)
        scope, languages = _placed(scope, workspace)
        parts = self._open_parts()
        core, local = self._standing(scope, languages)
        fired = self._triggers(text, turn, scope, (*core, *local), always=always)
        held = min(len(core), CAPS["core"]) + min(len(local), CAPS["scope"])
        k = CAPS["query"] + held  # what the first layers hold may be the best of it
        found = (
            self.recall(
                text,
                scope=scope,
                k=k,
                depth=depth,
                previous=previous,
                without=without,
                review=review,
                asked_at=asked_at,
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
            share=self.settings.sharing.source_share,
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

    ainject = twin(inject)

    def rules(self, *, scope: Scope, workspace: Workspace | str | Path | None = None) -> tuple[Injected, ...]:
        """Return the rules that an agent is given whatever is said: core rules, then what applies here; see `inject`.

        Args:
            scope: Who is served.
            workspace: What is worked on, or the working directory.

        Raises:
            InputError: The working directory cannot be read.
        """
        from remegraph.governance.injection import CAPS

        core, local = self._standing(*_placed(scope, workspace))
        first = [Injected(layer="core", hit=hit) for hit in core[: CAPS["core"]]]
        return (*first, *(Injected(layer="scope", hit=hit) for hit in local[: CAPS["scope"]]))

    arules = twin(rules)

    def promote(self, memory_id: str, *, scope: Scope, reason: str) -> Memory:
        """Let a memory of a project hold in all projects of the user. The journal says who did it, and why.

        The memory becomes one of no project, under a new id, and supersedes the one of the project. Its evidence stays
        where it was said: from another project, the trace does not show the messages around the words.

        Args:
            memory_id: The memory; one of no project is returned as it is.
            scope: Whose memory, with its project.
            reason: Why it shall hold everywhere.

        Returns:
            The memory that holds everywhere.

        Raises:
            NotFoundError: There is no such memory, it is not this user's, or it is not live.
            ConflictError: It changed just now, or its words are known in all projects already.
            InputError: The id is no text, or there is no reason.
        """
        from remegraph.governance.versions import promote

        check_text(memory_id=memory_id, reason=reason)
        parts = self._open_parts()
        memory = promote(
            parts.archive,
            parts.own(required(scope)),
            memory_id,
            actor=actor_of(scope),
            at_home=parts.at_home(scope),
            reason=parts.redactor.text(reason),
            at=self._clock(),
            new_id=self._new_id,
        )
        self._bring_up_to_date()
        return memory

    apromote = twin(promote)

    def _standing(self, scope: Scope, languages: tuple[str, ...]) -> tuple[tuple[Hit, ...], tuple[Hit, ...]]:
        """Return the first two layers, as hits of now; a rule whose time is over holds no more."""
        from remegraph.engine.retrieval.hits import memory_hit
        from remegraph.governance.injection import core_rules, scope_rules

        archive, now = self._open_parts().archive, self._clock()
        core = dated((memory_hit(rule, {}) for rule in core_rules(archive, scope, languages)), now)
        local = dated((memory_hit(rule, {}) for rule in scope_rules(archive, scope, languages)), now)
        return tuple(filter(_holds, core)), tuple(filter(_holds, local))

    def _triggers(
        self, text: str, turn: int, scope: Scope, shown: Sequence[Hit], *, always: bool
    ) -> tuple[Trigger, ...]:
        """Return why memory should be searched; where nothing was said, it cannot be."""
        from remegraph.governance.injection import known_names, triggers

        if not text.strip():
            return ()
        known = known_names(self._open_parts().archive, scope, text)
        fired = triggers(text, turn=turn, known=known, shown="\n".join(hit.text for hit in shown))
        return (*fired, Trigger(kind="asked")) if always else fired

    def _in_mind(self, scope: Scope, task: str | None, text: str) -> tuple[Chunk, ...]:
        if task is None:
            return ()
        check_text(task=task)
        return self._working.recall((scope.partition(), task), text)


def _holds(hit: Hit) -> bool:
    return hit.standing == "current"


def _check(text: object, turn: object, budget: object) -> None:
    if not isinstance(text, str):
        raise InputError(f"text is of type {type(text).__name__}.", "Give what the person said.")
    check_numbers(least=0, whole=True, turn=turn)
    check_numbers(least=1, whole=True, budget=budget)


def _placed(scope: Scope, workspace: Workspace | str | Path | None) -> tuple[Scope, tuple[str, ...]]:
    """Return the scope, in the project that is worked on, and the languages at hand."""
    from remegraph.governance.injection import read_workspace

    scope = required(scope)
    if workspace is None:
        return scope, ()
    at = workspace if isinstance(workspace, Workspace) else read_workspace(workspace)
    project = scope.project if scope.project is not None else at.project
    return scope.evolve(project=project), tuple(name.casefold() for name in at.languages)
