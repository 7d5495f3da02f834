"""`kit.conflicts`: the memories that contradict each other, and what somebody decides about them."""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

from remegraph.errors import ConflictError, InputError
from remegraph.kit.calling import check_text, required, twin
from remegraph.kit.facade import Facade
from remegraph.models import Conflict, ConflictKind, ConflictState, Decision, Scope

__all__ = ["Conflicts"]


_WAITING: tuple[ConflictKind, ...] = ("contradiction",)
"""The kinds that wait for a decision."""


class Conflicts(Facade):
    """The queue of conflicts of a user, and of their team where the users of an agent are one."""

    def list(
        self,
        *,
        scope: Scope,
        state: ConflictState = "open",
        kinds: Collection[ConflictKind] = _WAITING,
    ) -> tuple[Conflict, ...]:
        """Return the conflicts, contradictions first, the newest first.

        Args:
            scope: Whose.
            state: open: those that wait for a decision; resolved: those that were decided, or of which a memory is gone.
            kinds: contradiction; superset and subset: pairs of which one says all that the other says, and which nobody
                needs to decide.

        Raises:
            InputError: There is no such state or kind.
        """
        from remegraph.governance.conflicts import listed

        if state not in get_args(ConflictState):
            raise InputError(f"There is no state {state!r}.", f"Give one of {', '.join(get_args(ConflictState))}.")
        if isinstance(kinds, str) or not set(kinds) <= set(get_args(ConflictKind)):
            raise InputError(f"kinds is {kinds!r}.", f"Give a list of {', '.join(get_args(ConflictKind))}.")
        parts = self._parts()
        return listed(parts.archive, parts.own(required(scope)), state, kinds)

    alist = twin(list)  # noqa: A003 - the verb above

    def resolve(
        self,
        conflict_id: str,
        decision: Decision,
        *,
        scope: Scope,
        by: str,
        note: str = "",
        keep: str = "",
        by_model: bool = False,
    ) -> Conflict:
        """Decide a conflict. No version is lost, and the journal tells who decided what, when and why.

        add: the newer is an addition, both hold. supersede: one replaces the other. merge: one takes in the other.
        keep_both: they do contradict each other, and both are worth knowing: recall goes on showing the one with the
        other. dismiss: there is no contradiction. Deciding the same again changes nothing.

        Args:
            conflict_id: The conflict, as it was listed.
            decision: What becomes of the two.
            scope: Whose conflict.
            by: Who decides.
            note: Why, for the journal, which outlives the memories: say nothing there that may have to be forgotten.
            keep: Which of the two stays, of supersede and merge; the newer unless given.
            by_model: Whether a model decides: it takes back neither core rules nor policies nor knowledge.

        Returns:
            The conflict, resolved.

        Raises:
            NotFoundError: There is no such conflict, or it is not this user's.
            ConflictError: The memories changed since it was listed, or it was decided otherwise meanwhile.
            InputError: There is no such decision, or it cannot be carried out.
        """
        from remegraph.governance.conflicts import Resolution, check, find, resolve

        check_text(conflict_id=conflict_id, decision=decision, by=by, note=note, keep=keep)
        parts = self._parts()
        resolution = Resolution(decision, by, parts.redactor.text(note), keep, by_model)
        check(resolution)
        mine = parts.own(required(scope))
        conflict = find(parts.archive, mine, conflict_id)
        if conflict.state == "resolved":
            return _as_decided(conflict, decision)
        home = parts.at_home(scope)
        change = resolve(conflict, resolution, at_home=home, operation_id=parts.new_id(), now=parts.clock())
        parts.disputes.commit(change)
        self._follow()
        return find(parts.archive, mine, conflict_id)

    aresolve = twin(resolve)


def _as_decided(conflict: Conflict, decision: Decision) -> Conflict:
    if conflict.decided is not None and conflict.decided.decision == decision:
        return conflict
    what = f"was decided: {conflict.decided.decision}" if conflict.decided else "is over: one of the memories is gone"
    raise ConflictError(
        [conflict.older.memory_id, conflict.newer.memory_id],
        f"The conflict {what}. List the conflicts again.",
    )
