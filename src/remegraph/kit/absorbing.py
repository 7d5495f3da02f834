"""What makes memories of what others give: of knowledge, and of packs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remegraph.models import ChangeSet, Receipt, Scope

if TYPE_CHECKING:
    from remegraph.exchange.absorbing import Absorber
    from remegraph.kit.parts import Parts

__all__ = ["absorber"]


def absorber(parts: Parts, scope: Scope, *, dry_run: bool = False) -> Absorber:
    """Return what takes offers in for a scope, each held against what is known.

    Args:
        parts: The parts of the kit.
        scope: Who takes them in.
        dry_run: Whether it only tells what it would do.
    """
    from remegraph.exchange.absorbing import Absorber

    def weighed(change: ChangeSet) -> tuple[ChangeSet, Receipt]:
        return parts.disputes.weigh(change), Receipt(operation_id=change.operation_id, replayed=False)

    return Absorber(
        archive=parts.archive,
        near=parts.searcher.worded,
        commit=weighed if dry_run else parts.disputes.commit,
        clock=parts.clock,
        recipe=parts.settings.summary.recipe,
        at_home=parts.at_home(scope),
        redactor=parts.redactor,
    )
