"""`kit.tools`: how calls of tools went, which tools to use for a task, and what to watch for (R12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from remegraph.errors import InputError
from remegraph.kit.facade import Facade, twin
from remegraph.kit.validation import check_numbers, check_text, required
from remegraph.models import (
    LIVE,
    Memory,
    Partition,
    Scope,
    ToolAdvice,
    ToolRefresh,
    ToolStats,
    ToolWindow,
)
from remegraph.models.tools import Prior, call_digest, expected, is_guideline, without_values
from remegraph.skills.choice import advised, failure, usual
from remegraph.skills.tool_guidelines import guideline_id
from remegraph.text.questions import read_question

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["ToolMemory"]

_LOOKED_AT = 200
"""Memories that are searched for a tool's guideline, by vectors; all that share a word count."""


class ToolMemory(Facade):
    """The memory of tools. A call that is noted here and in captured messages counts once.

    Args:
        context: What the verbs of the kit share.
    """

    def record(
        self,
        tool: str,
        *,
        scope: Scope,
        args: object = None,
        call_id: str = "",
        ok: bool | None = None,
        result: str = "",
        seconds: float | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
    ) -> None:
        """Note how a tool call went. It waits for nothing: the ledger gets it with the next write, or read of tools.

        Of the arguments a digest is kept, of the result only the first line of an error, without numbers, addresses and
        what is quoted: a host may redact them before the conversation is captured, whose messages then hold the rest. A crash may lose the
        last calls that were noted; they are then known from their messages, without seconds and tokens.

        Args:
            tool: Its name.
            scope: Who called it.
            args: What it was given, as JSON.
            call_id: The id of the call, as the message that asked for it has it; a call without one is a call of its own.
            ok: Whether it succeeded, as the host says; read from the result where it does not, or where it says that
                nothing was raised and the result is still an error.
            result: What came back, as text.
            seconds: How long it took.
            input_tokens: Tokens that the tool was sent.
            output_tokens: Tokens that it gave.

        Raises:
            InputError: The tool has no name, or something cannot be used.
        """
        redactor = self._parts().redactor
        due = self._context.calls.hear(
            self._context.library(required(scope)).partition(),
            tool,
            args=redactor.json(args),
            call_id=call_id,
            ok=ok,
            result=result,
            redact=redactor.text,
            seconds=seconds,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
        )
        if due:
            self._context.write_noted_soon()

    arecord = twin(record)

    def stats(
        self, *, scope: Scope, tools: Sequence[str] | None = None, last: int | None = None
    ) -> tuple[ToolStats, ...]:
        """Return the statistics of the tools that were called: of all calls, and closely of the last ones.

        Args:
            scope: Who asks.
            tools: Only these.
            last: How many calls of each to look at closely; the policy's unless given.

        Raises:
            InputError: `last` is not positive, or the tools are no list of names.
        """
        check_numbers(least=1, whole=True, last=last)
        archive = self._archive()
        return archive.tool_stats(
            archive.visible(required(scope)), _names(tools), last=last or self._settings.tools.last
        )

    astats = twin(stats)

    def predict(self, tool: str, *, scope: Scope, args: object = None) -> float:
        """Return the error rate that is to be expected of the next call of a tool, 0 to 1.

        It is that of its last calls, shrunk to what is usual for the tools of this scope: by much where few calls are
        known, or the tools are much alike. Where arguments are given, the calls with the same ones weigh most.

        Args:
            tool: The tool; one that was never called is as reliable as tools are.
            scope: Who asks.
            args: What it is to be given.
        """
        check_text(tool=tool)
        found = {each.tool: each.recent for each in self.stats(scope=scope)}
        prior = usual(found.values())
        rate = failure(found.get(tool, ToolWindow()), prior)
        if args is None:
            return rate
        archive = self._archive()
        same = archive.tool_calls(
            archive.visible(scope),
            [tool],
            last=self._settings.tools.last,
            digest=call_digest(tool, self._parts().redactor.json(args)),
        )
        known = [call.ok for call in same if call.ok is not None]
        return expected(known.count(False), len(known), Prior(rate * prior.weight, (1 - rate) * prior.weight))

    apredict = twin(predict)

    def advise(self, task: str, *, scope: Scope, k: int = 3) -> tuple[ToolAdvice, ...]:
        """Return which tools to use for a task, best first, each with what to watch for. No model is called.

        Tools are known by their guidelines: call `refresh` after new calls.

        Args:
            task: What is to be done.
            scope: Who asks.
            k: How many at most.

        Raises:
            InputError: The task is empty, or k is not positive.
        """
        check_text(task=task)
        if not task.strip():
            raise InputError("The task is empty.", "Say what is to be done.")
        check_numbers(least=1, whole=True, k=k)
        task = self._parts().redactor.text(task)
        stats = {each.tool: each for each in self.stats(scope=scope)}
        parts = self._parts()
        partitions = parts.archive.visible(scope)
        question = read_question(
            without_values(task) or task, parts.clock()
        )  # whose number it is does not help to choose a tool
        candidates = parts.searcher.search(partitions, "memory", question, _LOOKED_AT)
        relevance = {(each.partition, each.record_id): each.score for each in candidates.found}
        return tuple(advised(self._guidelines(partitions, [name for _, name in relevance]), relevance, stats)[:k])

    aadvise = twin(advise)

    def guideline(self, tool: str, *, scope: Scope) -> Memory | None:
        """Return the guideline of a tool, the caller's own first; none where it has none yet, or it was taken back.

        Args:
            tool: The tool.
            scope: Who asks.
        """
        check_text(tool=tool)
        partitions = self._archive().visible(required(scope))
        places = {guideline_id(partition, tool): at for at, partition in enumerate(partitions)}
        found = self._guidelines(partitions, list(places))
        return min(found, key=lambda memory: places[memory.memory_id], default=None)

    aguideline = twin(guideline)

    def refresh(self, *, scope: Scope, tools: Sequence[str] | None = None) -> ToolRefresh:
        """Write the guidelines that are new or out of date. No model is called, and no word of a tool gets in.

        Out of date means: the success rate lies outside of what was likely then, a class of errors is new, or the calls
        have doubled. A guideline that a person took back, or made knowledge, stays as it is.

        Args:
            scope: Whose tools: the user's own, and the team's where the users of an agent are one.
            tools: Only these.

        Raises:
            InputError: The tools are no list of names.
        """
        parts, named = self._parts(), _names(tools)
        self._context.calls.flush()
        report = parts.guide.refresh(parts.own(required(scope)), named)
        return report.evolve(degraded=self._follow()) if report.written else report

    arefresh = twin(refresh)

    # ------------------------------------------------------------------------------------------- inside

    def _archive(self) -> Archive:
        """Return the ledger, once what was noted is in it."""
        archive = self._parts().archive
        self._context.calls.flush()
        return archive

    def _guidelines(self, partitions: Sequence[Partition], ids: Sequence[str]) -> list[Memory]:
        found = self._parts().archive.memories(partitions, ids=ids, statuses=sorted(LIVE)) if ids else ()
        return [memory for memory in found if is_guideline(memory)]


def _names(tools: object) -> list[str] | None:
    if tools is None:
        return None
    if isinstance(tools, str) or not isinstance(tools, Sequence):
        raise InputError(f"tools is of type {type(tools).__name__}.", "Give a list of names.")
    for tool in tools:
        check_text(tool=tool)
    return list(tools)
