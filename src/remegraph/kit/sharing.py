"""`kit.sharing`: what the agents of a person let each other read, and what they agree on (B12, B13)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from remegraph.engine.disputes import repeated
from remegraph.errors import InputError
from remegraph.governance.consensus import Consensus
from remegraph.kit.facade import Facade, twin
from remegraph.kit.validation import acting, check_choice, check_numbers, check_text, check_times, required
from remegraph.models import GRANTABLE, Endorsement, Grant, Layer, Memory, Proposal, ProposalState, Scope

if TYPE_CHECKING:
    from remegraph.models import ChangeSet

__all__ = ["Sharing"]


class Sharing(Facade):
    """What agents share: always those of one tenant, one user and one project.

    No agent alone writes the common library of a user's agents.
    """

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

        What it lets through is decided at each read: what is learned later on a topic or in a granted layer is
        readable, too; what is archived, deleted or quarantined is not.

        Args:
            to_agent: The agent that may read, of the same user and project.
            scope: Of the agent whose memories they are.
            memory_ids: Only these memories; all unless given.
            topic: Only memories of this topic, by key.
            layers: Only memories of these layers: episodic; long_term, as what is saved outright; procedural.
            expires_at: When it ends; unless given, it holds until it is revoked.
            reason: Why, for the journal.
            actor: Who decides it, for the journal.

        Raises:
            ScopeError: The scope names no agent.
            NotFoundError: A memory or the topic is not this agent's own, as what it was granted itself.
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
        """Revoke a grant, from the next call on. Revoking again changes nothing.

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
        """Return the grants that an agent gave or received, oldest first, also expired ones.

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

    def propose(
        self, memory_id: str, *, scope: Scope, reason: str, replaces: str = "", expected_version: int | None = None
    ) -> Proposal:
        """Propose a memory of one's own for all agents of the user, in this project. It is not recalled until they agree.

        Proposing the same again changes nothing. Its evidence stays where it was said; those who see the proposal read
        the quotes.

        Args:
            memory_id: A live long-term memory of the agent's own, or a skill of its own that was carried out.
            scope: The agent, named, and its user.
            reason: Why, for the journal.
            replaces: The shared memory that it replaces, by id.
            expected_version: The version of that memory that was read.

        Raises:
            InputError: It cannot be proposed, or there is no reason.
            NotFoundError: The agent has no such memory, or there is no such shared one.
            ConflictError: The shared memory says something else than in that version.
            ScopeError: The scope names no agent.
        """
        check_text(memory_id=memory_id, reason=reason, replaces=replaces)
        check_numbers(expected_version=expected_version, least=1, whole=True)
        self._check_agent(scope)
        if not reason.strip():
            raise InputError("The reason is empty.", "Say why all agents of the user should know it.")
        reason = self._parts().redactor.text(reason)
        those = self._consensus(scope)
        source = those.own(memory_id)
        for each in those.proposals():
            first = each.endorsements[0]
            if each.state == "open" and (first.by, first.memory_id) == (scope.agent, memory_id):
                return each
        new_id = self._parts().new_id()
        return self._done(
            new_id, scope, lambda those: those.propose(source, reason, replaces, expected_version, new_id)
        )

    apropose = twin(propose)

    def corroborate(self, proposal_id: str, *, scope: Scope, memory_id: str) -> Proposal:
        """Support another agent's proposal, with a memory of one's own that says so on evidence of its own.

        Once as many agents support it as `SharingPolicy.quorum` says, it is a memory of all. Doing so again with the same
        memory changes nothing.

        Args:
            proposal_id: The proposal.
            scope: The agent, named, and its user.
            memory_id: A live memory of the agent's own.

        Raises:
            ConsensusError: It does not say the same, it rests on what the others heard or said, or it was decided.
            NotFoundError: There is no such proposal, or the agent has no such memory.
            ConflictError: Others acted at the same time, again and again.
            ScopeError: The scope names no agent.
        """
        check_text(proposal_id=proposal_id, memory_id=memory_id)
        self._check_agent(scope)
        found = self._consensus(scope).get(proposal_id)
        if (scope.agent, memory_id) in {(each.by, each.memory_id) for each in found.endorsements[1:]}:
            return found
        return self._done(
            proposal_id, scope, lambda those: those.corroborate(those.get(proposal_id), those.own(memory_id))
        )

    acorroborate = twin(corroborate)

    def decide(self, proposal_id: str, *, approve: bool, scope: Scope, actor: str, reason: str = "") -> Proposal:
        """Make a proposal a memory of all, or refuse it, on a person's word. No tool offers this to a model.

        What is refused stays in the ledger, and is never recalled.

        Args:
            proposal_id: The proposal.
            approve: Whether it becomes a memory of all.
            scope: Whose.
            actor: The person; no agent.
            reason: Why, for the journal.

        Raises:
            ConsensusError: It was decided, or its author says otherwise by now.
            NotFoundError: There is no such proposal.
            InputError: The actor is an agent, or none is named.
        """
        check_text(proposal_id=proposal_id, actor=actor, reason=reason)
        self._check_person(actor, self._consensus(scope).get(proposal_id), scope)
        if not approve:
            return self._refused(proposal_id, scope, "reject", actor, reason)
        reason = self._parts().redactor.text(reason)
        return self._done(proposal_id, scope, lambda those: those.approve(those.get(proposal_id), actor, reason))

    adecide = twin(decide)

    def withdraw(self, proposal_id: str, *, scope: Scope, reason: str = "") -> Proposal:
        """Take back what one proposed.

        Args:
            proposal_id: The proposal.
            scope: Its author, and the user.
            reason: Why, for the journal.

        Raises:
            ConsensusError: It is another agent's, or it was decided.
            NotFoundError: There is no such proposal.
        """
        check_text(proposal_id=proposal_id, reason=reason)
        return self._refused(proposal_id, scope, "withdraw", self._check_agent(scope), reason)

    awithdraw = twin(withdraw)

    def proposals(self, *, scope: Scope, state: ProposalState | None = None) -> Sequence[Proposal]:
        """Return what was proposed for all agents of the user, the oldest first, with who said what.

        Args:
            scope: Who asks.
            state: open, stale, agreed, rejected or withdrawn; all unless given.

        Raises:
            InputError: There is no such state.
        """
        if state is not None:
            check_choice(ProposalState, state=state)
        found = self._consensus(scope).proposals()
        return tuple(each for each in found if state in {None, each.state})

    aproposals = twin(proposals)

    # ------------------------------------------------------------------------------------------- inside

    def _consensus(self, scope: Scope) -> Consensus:
        return Consensus.of(
            self._parts().archive, required(scope), self._settings.sharing.quorum, self._parts().clock()
        )

    def _check_agent(self, scope: Scope) -> str:
        found = acting(scope)
        if self._parts().at_home(found):
            raise InputError(f"The library of agent {found.agent} is shared already.", "Save it: all have it at once.")
        return str(found.agent)

    def _check_person(self, actor: str, proposal: Proposal, scope: Scope) -> None:
        agents = {name.casefold() for name in (*self._settings.agents, *proposal.agents, scope.agent or "")}
        if not actor.strip() or actor.strip().casefold() in agents:
            raise InputError(f"{actor!r} is no person.", "Name the person who decides: actor=...")

    def _refused(self, proposal_id: str, scope: Scope, act: str, by: str, reason: str) -> Proposal:
        parts = self._parts()
        said = parts.redactor.text(reason)
        word = Endorsement.model_validate(
            {"proposal_id": proposal_id, "act": act, "by": by, "reason": said, "at": parts.clock()}
        )
        return self._done(proposal_id, scope, lambda those: those.refuse(those.get(proposal_id), word))

    def _done(self, proposal_id: str, scope: Scope, act: Callable[[Consensus], ChangeSet]) -> Proposal:
        """Commit what an act changes; if another came first, weigh it again."""
        repeated(lambda: self._parts().disputes.commit(act(self._consensus(scope))))
        self._follow()
        return self._consensus(scope).get(proposal_id)
