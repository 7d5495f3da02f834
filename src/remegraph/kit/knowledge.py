"""`kit.knowledge`: what agents learn from each other (MEK, 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from remegraph.kit.absorbing import absorber
from remegraph.kit.calling import actor_of, check_text, required, twin
from remegraph.kit.extracting import Extracting
from remegraph.kit.facade import Access
from remegraph.models import Absorption, KnowledgeItem, Memory, Recall, Scope

__all__ = ["Knowledge"]


class Knowledge(Extracting):
    """Makes knowledge of memories, and memories of knowledge.

    Args:
        access: To the kit.
        recall: Finds memories.
    """

    def __init__(self, access: Access, recall: Callable[..., Recall]) -> None:
        super().__init__(access)
        self._recall = recall

    def absorb(
        self,
        items: Iterable[KnowledgeItem | Mapping[str, Any]],
        *,
        scope: Scope,
        from_agent: str | None = None,
    ) -> Absorption:
        """Make memories of what other agents shared: all of the items or, on an error, none; the same again changes nothing.

        Each is trusted no further than it says, and than `settings.sharing` says of its source, which this ledger or a
        signature must prove; under .5 it is quarantined, and `waiting` has it. What is known already is borne out, once
        by each agent; what contradicts a memory is kept beside it, and `kit.conflicts` has the two. A workflow that can
        be executed and checked becomes a skill that nobody has tried yet. No model is called.

        Args:
            items: Knowledge items, or JSON in their form.
            scope: Who takes them in.
            from_agent: The agent that they are expected from: items of others are refused.

        Returns:
            What became of each; `memory_ids` are those of new and updated memories, in order.

        Raises:
            InputError: There are too many items, or one is too large, too deep, or no item.
            ConflictError: Other changes came first, again and again.
        """
        from remegraph.engine.routing import home
        from remegraph.exchange.offering import Reception
        from remegraph.exchange.perceiving import perceive

        if from_agent is not None:
            check_text(from_agent=from_agent)
        parts, agent, library = self._parts(), required(scope).agent, self._library(scope)
        reception = Reception(parts.settings.sharing, agent, from_agent, parts.clock())
        offers = [reception.offer(item, self._proven(item, library)) for item in perceive(items)]
        done = absorber(parts, scope).absorb(
            offers,
            said_in=library.partition(),
            lives_in=home(library, parts.settings.trust_boundary),
            actor=actor_of(scope),
        )
        return done.evolve(degraded=self._follow())

    aabsorb = twin(absorb)

    def sign(self, items: Iterable[KnowledgeItem], *, key: str | Path) -> tuple[KnowledgeItem, ...]:
        """Return items with signatures, for agents whose ledger is another one: they prove who shared them.

        Whoever absorbs them believes the key by `kit.packs.trust_key`, under the name of the agent.

        Args:
            items: What `share` returned.
            key: The file of a private key, as `remegraph pack keygen` writes it.

        Raises:
            InputError: The file cannot be read, or is no such key.
            MissingExtraError: The extra `sharing` is not installed.
        """
        from remegraph.exchange.signing import SigningKey
        from remegraph.exchange.vouching import signed

        private = SigningKey.open(Path(key))
        return tuple(signed(item, private) for item in items)

    asign = twin(sign)

    def waiting(self, *, scope: Scope) -> tuple[Memory, ...]:
        """Return the memories that wait for approval, the newest first: nothing recalls or shows them until then.

        Args:
            scope: Whose.
        """
        from remegraph.governance.approving import waiting

        parts = self._parts()
        return waiting(parts.archive, parts.own(self._library(scope)))

    awaiting = twin(waiting)

    def approve(self, memory_id: str, *, scope: Scope, by: str, note: str = "") -> Memory:
        """Let a memory hold that waits for approval; `forget` takes it back. Approving it again changes nothing.

        It is held against what is known, as a new one would be, and is believed no more than before.

        Args:
            memory_id: The memory.
            scope: Whose.
            by: The person who approves it.
            note: Why, for the journal, which outlives the memory: say nothing there that may have to be forgotten.

        Returns:
            The memory, live.

        Raises:
            NotFoundError: There is no such memory, or it is not this user's.
            InputError: It is not said who approves it.
            ConflictError: It changed meanwhile, or its words stand in a live memory by now.
        """
        from remegraph.governance.approving import approve

        return self._decide(approve, memory_id, scope, by, note)

    aapprove = twin(approve)

    def reject(self, memory_id: str, *, scope: Scope, by: str, note: str = "") -> Memory:
        """Delete a memory that waits for approval. Its tombstone stays, so that the same words do not come back.

        Args:
            memory_id: The memory.
            scope: Whose.
            by: The person who rejects it.
            note: Why, for the journal; see `approve`.

        Returns:
            The memory, deleted.

        Raises:
            NotFoundError: There is no such memory, or it is not this user's.
            InputError: It is not said who rejects it, or it holds already.
            ConflictError: It changed meanwhile.
        """
        from remegraph.governance.approving import reject

        return self._decide(reject, memory_id, scope, by, note)

    areject = twin(reject)

    def _decide(self, decide: Callable[..., Memory], memory_id: str, scope: Scope, by: str, note: str) -> Memory:
        """Carry out what a person decides about a memory that waits."""
        check_text(memory_id=memory_id, by=by, note=note)
        parts = self._parts()
        memory = decide(
            parts.archive,
            parts.disputes.commit,
            parts.own(self._library(scope)),
            memory_id,
            by=by,
            note=parts.redactor.text(note),
            at=parts.clock(),
            operation_id=parts.new_id(),
        )
        self._follow()
        return memory

    def _proven(self, item: KnowledgeItem, library: Scope) -> str | None:
        """Return the agent that truly shared an item: as this ledger notes, or a key proves that is believed."""
        from remegraph.rules.standardizing import SIGNATURE, item_digest

        agent = self._parts().archive.shared_by(library, item.knowledge_id, item_digest(item))
        return self._signer(item) if agent is None and SIGNATURE in item.metadata else agent

    def _signer(self, item: KnowledgeItem) -> str | None:
        from remegraph.exchange.signing import TrustStore
        from remegraph.exchange.vouching import signer
        from remegraph.kit.pack_keys import key_list

        return signer(item, TrustStore.open(key_list(self._settings)))
