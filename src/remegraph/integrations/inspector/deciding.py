"""What a person decides here; the journal tells that it was the user."""

from __future__ import annotations

from typing import cast

from remegraph.errors import InputError
from remegraph.integrations.inspector.forms import Form
from remegraph.integrations.inspector.pages import Desk, whole
from remegraph.models import Decision

__all__ = ["decide_proposal", "decide_quarantined", "resolve", "restore"]


def resolve(at: Desk, form: Form) -> None:
    """Decide a conflict."""
    at.kit.conflicts.resolve(
        form.get("id", ""),
        cast("Decision", form.get("decision", "")),
        scope=at.scope,
        by=at.scope.user,
        note=form.get("note", ""),
        keep=form.get("keep", ""),
    )


def decide_proposal(at: Desk, form: Form) -> None:
    """Approve or reject a proposal."""
    decide = at.kit.sharing.approve if _approved(form) else at.kit.sharing.reject
    decide(form.get("id", ""), scope=at.scope, actor=at.scope.user, reason=form.get("note", ""))


def decide_quarantined(at: Desk, form: Form) -> None:
    """Let a quarantined memory hold, or delete it."""
    decide = at.kit.knowledge.approve if _approved(form) else at.kit.knowledge.reject
    decide(form.get("id", ""), scope=at.scope, by=at.scope.user, note=form.get("note", ""))


def restore(at: Desk, form: Form) -> None:
    """Bring an archived memory back, or let an old version hold again."""
    memory_id, version = form.get("id", ""), whole(form.get("version", ""))
    if version is None:
        at.kit.restore(memory_id, scope=at.scope)
    else:
        at.kit.governance.restore(memory_id, version, scope=at.scope)


def _approved(form: Form) -> bool:
    """Return what was decided.

    Raises:
        InputError: Neither.
    """
    decision = form.get("decision", "")
    if decision not in {"approve", "reject"}:
        raise InputError(f"{decision!r} is no decision.", "Send approve or reject.")
    return decision == "approve"
