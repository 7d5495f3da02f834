"""`kit.skills`: procedures. Skills that can be executed and checked, how they went, and which one to use."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from remegraph.engine.summary_tasks import DistilTask
from remegraph.errors import InputError, NotFoundError, SkillError
from remegraph.kit.facade import Context, Facade, twin
from remegraph.kit.validation import check_numbers, check_text, required
from remegraph.models import Learned, Memory, Scope, Skill, SkillChoice, SkillFigures, SkillOutcome, ToolCall
from remegraph.models.skills import planned, read_workflow
from remegraph.skills.choice import choice, figures, histories, predicates_of, unmet, variants
from remegraph.skills.procedures import SkillWriter
from remegraph.text.questions import read_question
from remegraph.text.scripts import language_of

if TYPE_CHECKING:
    from remegraph.engine.summary_tasks import Thinker
    from remegraph.skills.choice import Predicate
    from remegraph.skills.procedures import Attempt

__all__ = ["Skills"]

_LOOKED_AT = 200
"""Memories that a search looks at for skills among them, by vectors."""

_SAID = ("name", "task", "when_to_use", "domain", "steps", "preconditions", "postconditions", "avoid")
"""Fields of a skill that are free text."""

_TOOL = frozenset({"tool"})
"""The key within them that names a tool, by which it is called."""

_LEAST = 0.1
"""Score under which a skill has nothing to do with a query: less than one word in eight is shared."""


class Skills(Facade):
    """The procedural memory of all scopes, one scope at a time.

    Args:
        context: What the verbs of the kit share.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._predicates: dict[str, Predicate] = {}

    def register(self, name: str, predicate: Predicate) -> None:
        """Let conditions name a predicate, as long as this kit is open.

        Args:
            name: What conditions call it.
            predicate: Given the facts, returns whether it holds.
        """
        self._predicates[name] = predicate

    def add(self, skill: Skill, *, scope: Scope) -> Memory:
        """State how something is done. Another skill of that name becomes its next version; the same changes nothing.

        Args:
            skill: Steps that can be executed, and at least one postcondition by which its success is known.
            scope: Whose skill.

        Returns:
            The memory that holds it: active, and a candidate until an outcome is recorded.

        Raises:
            SkillError: It cannot be executed or checked.
            ConflictError: Other changes came first, again and again.
        """
        if not isinstance(skill, Skill):
            raise InputError(f"The skill is of type {type(skill).__name__}.", "Give a remegraph.Skill.")
        stated = self._parts().redactor.record(skill, *_SAID, keep=_TOOL)
        memory = self._writer().add(stated, self._home(scope))
        self._follow()
        return memory

    aadd = twin(add)

    def learn(
        self,
        thread: str,
        *,
        scope: Scope,
        task: str,
        succeeded: bool = True,
        failed: Sequence[str] = (),
        domain: str = "general",
    ) -> Learned:
        """Learn from a recorded run: its successful calls become steps, what a person or a result gave becomes slots.

        Other threads, in which the same task failed, say what made the difference; so does a failed run, compared with
        the skill that is known. What a run teaches that no person asked for, or in which a result named a tool before it
        was called, is quarantined until a person adds it.

        Args:
            thread: The thread of the run; of its messages those that name the task, or all if none does.
            scope: Whose run.
            task: What it was about, as in `choose`.
            succeeded: Whether it reached its end.
            failed: Threads of the same task that did not.
            domain: The shelf of the skill.

        Raises:
            NotFoundError: There are no messages in a thread.
            SkillError: No call of the run succeeded: there is nothing to repeat.
            ModelError: The model did not answer, or not with calls that were made. Nothing was kept.
            ConflictError: Other changes came first, again and again.
        """
        task, domain = self._in_words(task, domain)
        attempts = self._attempts(thread, failed, scope, task)
        if not succeeded:
            return self._kept(self._writer().learn_failure(attempts[0], task, self._home(scope)))
        with self._parts().meter(self._home(scope).partition()) as meter:
            skill = self._thinker(scope).distil(_distilling(attempts[0], task), meter)
        return self._learned(skill, attempts, scope, domain).evolve(usage=meter.usage())

    async def alearn(
        self,
        thread: str,
        *,
        scope: Scope,
        task: str,
        succeeded: bool = True,
        failed: Sequence[str] = (),
        domain: str = "general",
    ) -> Learned:
        """Learn from a recorded run; see `learn`."""
        task, domain = self._in_words(task, domain)
        attempts = await asyncio.to_thread(self._attempts, thread, failed, scope, task)
        if not succeeded:
            done = await asyncio.to_thread(self._writer().learn_failure, attempts[0], task, self._home(scope))
            return await asyncio.to_thread(self._kept, done)
        meter = self._parts().meter(self._home(scope).partition())
        try:
            skill = await self._thinker(scope).athink("distil", _distilling(attempts[0], task), meter)
        finally:
            await asyncio.to_thread(meter.settle)
        learned = await asyncio.to_thread(self._learned, skill, attempts, scope, domain)
        return learned.evolve(usage=meter.usage())

    def choose(self, task: str, *, scope: Scope, facts: Mapping[str, Any] | None = None) -> SkillChoice:
        """Return the skill to use for a task, with the figures that speak for it.

        Among the skills of the task that has these words, or else of the task that is found by them, each gets its
        trials; then the highest lower bound of the success rate decides. The same history gives the same choice.

        Args:
            task: The task.
            scope: Whose skills.
            facts: What is known; with it, skills whose preconditions do not hold are left out.

        Raises:
            NotFoundError: There is no skill for it, or none that can be used now.
            InputError: The task is empty or no text.
        """
        _check_words(task=task)
        task = self._parts().redactor.text(task)
        known = self._writer().known(self._home(scope))
        found = variants(known, task)
        if not found and (like := self._found(task, known)):
            found = variants(known, read_workflow(like[0]).task)
        if not found:
            raise NotFoundError(f"There is no skill for {task!r} here.", "State one with add, or learn it from a run.")
        return choice(self._parts().archive, found, self._parts().redactor.json(facts), self._predicates)

    achoose = twin(choose)

    def record_outcome(
        self,
        skill_id: str,
        ok: bool | None = None,  # noqa: FBT001 - reads as in "it went well"
        *,
        scope: Scope,
        facts: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        version: int | None = None,
        seconds: float | None = None,
        tokens: int | None = None,
    ) -> SkillFigures:
        """Say how a run of a skill went. Once this returns it is durable, counts at the next choice, and reviews the skill.

        Args:
            skill_id: The memory that holds the skill.
            ok: Whether it reached what it is for.
            scope: Whose skill.
            facts: What is known after the run, instead of `ok`: then its postconditions decide.
            run_id: Names the run: reported twice, it counts once. A new one unless given.
            version: The version that was run, as the choice named it; the current one unless given.
            seconds: How long it took.
            tokens: What it cost.

        Returns:
            How this version has gone so far.

        Raises:
            NotFoundError: There is no such skill or version, or it is not this user's.
            SkillError: A postcondition names a predicate that is not registered.
            InputError: Neither or both of `ok` and `facts` are given, a figure is negative, or the run went otherwise
                before.
        """
        memory, skill = self._skill(skill_id, scope)
        check_numbers(least=1, whole=True, version=version)
        if (ok is None) == (facts is None):
            raise InputError("Neither or both of ok and facts are given.", "Give one of them.")
        parts = self._parts()
        ok = self._reached(skill, parts.redactor.json(facts)) if facts is not None else ok
        told = _outcome(
            memory_id=skill_id,
            version=skill.version if version is None else version,
            run_id=parts.new_id() if run_id is None else run_id,
            ok=ok,
            at=parts.clock(),
            seconds=seconds,
            tokens=tokens,
        )
        versions = {read_workflow(each).version for each in parts.archive.versions([memory.partition], skill_id)}
        if told.version not in versions:
            raise NotFoundError(f"The skill {skill.name!r} has no version {told.version}.", "Give that of its choice.")
        kept = parts.archive.add_outcome(memory.partition, told)
        if kept.ok != told.ok:
            raise InputError(
                f"The run {told.run_id!r} ended differently before.", "A run ends once: give the other one a new name."
            )
        return next(each for each in histories(parts.archive, memory) if each.version == kept.version)

    arecord_outcome = twin(record_outcome)

    def get(self, skill_id: str, *, scope: Scope) -> Skill:
        """Return a skill, whether it is live or not.

        Args:
            skill_id: The memory that holds it.
            scope: Whose skill.

        Raises:
            NotFoundError: There is no such skill, or it is not this user's.
        """
        return self._skill(skill_id, scope)[1]

    aget = twin(get)

    def figures(self, *, scope: Scope) -> tuple[SkillFigures, ...]:
        """Return how all live skills have gone so far, by name.

        Args:
            scope: Whose skills.
        """
        found = figures(self._parts().archive, self._writer().known(self._home(scope)))
        return tuple(sorted(found, key=lambda each: (each.name, each.memory_id)))

    afigures = twin(figures)

    def plan(self, skill_id: str, *, scope: Scope, values: Mapping[str, Any] | None = None) -> tuple[ToolCall, ...]:
        """Return the calls of a skill in their order, those of the skills that it calls included.

        Args:
            skill_id: The memory that holds it.
            scope: Whose skill.
            values: What fills its slots. Slots that a result fills, as {search.id}, stay: `call_id` names the steps.

        Raises:
            NotFoundError: There is no such skill, or it is not this user's.
            SkillError: A skill that it calls is no longer there.
        """
        skill = self._skill(skill_id, scope)[1]
        return tuple(planned(skill, self._writer().by_name(self._home(scope)), values or {}))

    aplan = twin(plan)

    # ------------------------------------------------------------------------------------------- inside

    def _home(self, scope: Scope) -> Scope:
        return self._context.library(required(scope))

    def _thinker(self, scope: Scope) -> Thinker:
        return self._parts().thinkers.of(self._home(scope).agent)

    def _writer(self) -> SkillWriter:
        parts = self._parts()
        return SkillWriter(parts.archive, parts.disputes, parts.clock, parts.settings)

    def _skill(self, skill_id: str, scope: Scope) -> tuple[Memory, Skill]:

        check_text(skill_id=skill_id)
        memory = self._writer().get(skill_id, self._home(scope))
        return memory, read_workflow(memory)

    def _found(self, query: str, known: Sequence[Memory]) -> tuple[Memory, ...]:
        """Return those skills that have something in common with a query, the best first."""
        parts = self._parts()
        by_id = {memory.memory_id: memory for memory in known}
        places = list(dict.fromkeys(memory.partition for memory in known))
        question = read_question(query, parts.clock())
        hits = parts.searcher.search(places, "memory", question, _LOOKED_AT).found if known else ()
        return tuple(by_id[hit.record_id] for hit in hits if hit.record_id in by_id and hit.score >= _LEAST)

    def _reached(self, skill: Skill, facts: Mapping[str, Any]) -> bool:
        if unknown := sorted(predicates_of(skill.postconditions) - self._predicates.keys()):
            raise SkillError(f"No predicate {unknown[0]!r} is registered.", "Call kit.skills.register first.")
        return not unmet(skill.postconditions, facts, self._predicates)

    def _in_words(self, task: str, domain: str) -> tuple[str, str]:
        _check_words(task=task, domain=domain)
        told = self._parts().redactor.text
        return told(task), told(domain)

    def _attempts(self, thread: str, failed: Sequence[str], scope: Scope, task: str) -> list[Attempt]:
        check_text(thread=thread)
        if isinstance(failed, str):
            raise InputError("failed is one text.", "Give a list of threads.")
        check_text(**{f"failed[{at}]": each for at, each in enumerate(failed)})
        writer, home = self._writer(), self._home(scope)
        return [writer.attempt(each, task, home) for each in (thread, *failed)]

    def _learned(self, skill: Skill, attempts: Sequence[Attempt], scope: Scope, domain: str) -> Learned:
        run, *failed = attempts
        extractor = self._thinker(scope).name
        return self._kept(self._writer().learn(skill.evolve(domain=domain), run, failed, self._home(scope), extractor))

    def _kept(self, learned: Learned) -> Learned:
        self._follow()
        return learned


def _check_words(**texts: object) -> None:
    """Refuse what is not text, or empty.

    Raises:
        InputError: One is; it is named.
    """
    check_text(**texts)
    for name, value in texts.items():
        if not str(value).strip():
            raise InputError(f"{name} is empty.", "Say it in words.")


def _distilling(attempt: Attempt, task: str) -> DistilTask:
    if not attempt.run.done:
        raise SkillError(f"No call in the thread {attempt.thread!r} succeeded.", "Learn from a run that did something.")
    return DistilTask(task, attempt.run, language_of(" ".join((task, *attempt.run.requests))))


def _outcome(**fields: Any) -> SkillOutcome:
    """Return an outcome.

    Raises:
        InputError: A field cannot be used; it is named.
    """
    try:
        return SkillOutcome(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{first['loc'][0]} cannot be used: {first['msg']}.", "See record_outcome.") from error
