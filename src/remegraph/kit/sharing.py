"""`kit.sharing`: what the agents of a person let each other read, and what they agree on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from remegraph.errors import InputError
from remegraph.kit.calling import acting, check_text, check_times, required, twin
from remegraph.kit.proposing import Proposing
from remegraph.models import GRANTABLE, Grant, Layer, Memory, Scope

__all__ = ["Sharing"]


class Sharing(Proposing):
    """What agents share: always those of one tenant, one user and one project."""

    def grant(
        self,
        to_agent: str,
        *,
        scope: Scope,
        memory_ids: Sequence[str] = (),
        topic: str | None = None,
        layers: Sequence[Layer] = ("episodic",),
        expires_at: datetime | None = None,
        reason: str,
        actor: str,
    ) -> Grant:
        """Let another agent read memories of this one: to recall and to trace them, never to change or to pass them on.

        What it lets through is decided at each read: what is learned later on a topic or in a layer that was granted is
        readable, too, and what is put away, deleted or quarantined is not.

        Args:
            to_agent: The agent that may read, of the same user and project.
            scope: Of the agent whose memories they are.
            memory_ids: Only these memories; all unless given.
            topic: Only memories of this topic, by key.
            layers: Only memories of these layers: episodic, long_term, procedural.
            expires_at: From then on it opens nothing; unless given, it holds until it is revoked.
            reason: Why, for the journal.
            actor: Who decides it, for the journal.

        Raises:
            ScopeError: The scope names no agent.
            NotFoundError: A memory or the topic is not this agent's own. What it was granted itself is not.
            InputError: A layer or a memory cannot be granted, the time is past, or a text is none.
        """
        giver, now = acting(scope), self._parts().clock()
        check_text(to_agent=to_agent, reason=reason, actor=actor)
        check_times(expires_at=expires_at)
        if isinstance(memory_ids, str) or isinstance(layers, str):
            raise InputError("memory_ids or layers is one text.", "Give a list.")
        check_text(topic=topic or "", **{f"memory_ids[{at}]": each for at, each in enumerate(memory_ids)})
        if unknown := [str(layer) for layer in layers if layer not in GRANTABLE]:
            raise InputError(f"Layer {', '.join(unknown)} is never shared.", f"Name some of {', '.join(GRANTABLE)}.")
        if not layers or not reason.strip() or not actor.strip() or not to_agent.strip():
            raise InputError("The layers, the reason, the actor or the agent is empty.", "Name all four.")
        if to_agent == giver.agent:
            raise InputError("An agent reads its own memories without a grant.", "Name another agent.")
        if expires_at is not None and expires_at <= now:
            raise InputError(f"The grant would be over since {expires_at:%Y-%m-%d %H:%M}.", "Name a time to come.")
        grant = Grant(
            grant_id=self._parts().new_id(),
            giver=giver.partition(),
            to_agent=to_agent,
            memory_ids=tuple(dict.fromkeys(memory_ids)),
            topic=topic or "",
            layers=tuple(dict.fromkeys(layers)),
            given_at=now,
            expires_at=expires_at,
            actor=actor,
            reason=self._parts().redactor.text(reason),
        )
        return self._parts().grants.give(grant)

    agrant = twin(grant)

    def revoke(self, grant_id: str, *, scope: Scope, reason: str, actor: str) -> Grant:
        """Take a grant back: it opens nothing from the next call on. Revoking again changes nothing.

        Args:
            grant_id: The grant.
            scope: Of the agent that gave it.
            reason: Why, for the journal.
            actor: Who decides it, for the journal.

        Raises:
            NotFoundError: This agent gave no such grant.
            InputError: A text is none.
        """
        giver = acting(scope)
        check_text(grant_id=grant_id, reason=reason, actor=actor)
        if not reason.strip() or not actor.strip():
            raise InputError("The reason or the actor is empty.", "Name both.")
        parts = self._parts()
        return parts.grants.revoke(giver.partition(), grant_id, actor=actor, reason=parts.redactor.text(reason))

    arevoke = twin(revoke)

    def grants(self, *, scope: Scope) -> tuple[Grant, ...]:
        """Return the grants that an agent gave or received, oldest first, also those that are over.

        Args:
            scope: Of the agent.
        """
        return self._parts().grants.grants(required(scope))

    agrants = twin(grants)

    def granted(self, *, scope: Scope) -> tuple[Memory, ...]:
        """Return the memories of other agents that an agent may read now, the newest first.

        Args:
            scope: Of the agent that reads.
        """
        return self._parts().grants.memories(required(scope))

    agranted = twin(granted)
