"""What a background worker does: take the waiting jobs one by one, oldest first."""

from __future__ import annotations

from collections.abc import Callable

from remegraph.errors import RemegraphError
from remegraph.kit.parts import Parts
from remegraph.models import Partition, Scope, SummaryReport, Usage

__all__ = ["drain"]

_LEASE_SECONDS = 300.0
"""How long a job belongs to a worker that says nothing; a block takes seconds."""


def drain(parts: Parts, owner: str, summarize: Callable[[Scope], SummaryReport]) -> SummaryReport:
    """Summarise every partition that has a waiting job; return the reports added up.

    A job whose run fails waits again with its reason, and the error goes to the caller.

    Args:
        parts: The parts of the kit.
        owner: Names this worker.
        summarize: Summarises one scope.

    Raises:
        RemegraphError: What a run failed with.
    """
    total = SummaryReport()
    while (job := parts.jobs.claim("summarize", owner, _LEASE_SECONDS)) is not None:
        scope = _scope(job.partition)
        try:
            if scope is not None:
                total = _add(total, summarize(scope))
        except RemegraphError as error:
            parts.jobs.finish(job, "retry", str(error))
            raise
        parts.jobs.finish(job, "done")
    return total


def _scope(partition: Partition) -> Scope | None:
    """The scope whose own partition this is; none for what belongs to no user and is never talked into."""
    if partition.user is None:
        return None
    return Scope(tenant=partition.tenant, user=partition.user, agent=partition.agent, project=partition.project)


def _add(one: SummaryReport, other: SummaryReport) -> SummaryReport:
    return SummaryReport(
        blocks=one.blocks + other.blocks,
        created=one.created + other.created,
        updated=one.updated + other.updated,
        work=one.work + other.work,
        objections=one.objections + other.objections,
        pending=one.pending + other.pending,
        degraded=tuple(dict.fromkeys(one.degraded + other.degraded)),
        usage=Usage(calls=one.usage.calls + other.usage.calls),
    )
