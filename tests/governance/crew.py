"""Three agents who work for one person in one project, and short ways to let them learn and agree."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from remegraph import MemoryKit, Scope
from remegraph.models import ChangeSet, Cut, Evidence, Memory, MemoryChange, Message, Proposal, Topic
from remegraph.testing import FrozenClock
from tests.talk import packed

__all__ = ["HOUR", "LISBON", "NUMBERS", "PORTO", "Crew"]

HOUR = timedelta(hours=1)
NUMBERS = itertools.count(1)
"""Of all users and records."""
LISBON, PORTO = "Ann lives in Lisbon.", "Ann lives in Porto."


@dataclass(frozen=True)
class Crew:
    """A kit, and three agents who work for one person in one project."""

    kit: MemoryKit
    clock: FrozenClock
    scout: Scope
    writer: Scope
    third: Scope

    def saved(self, scope: Scope, content: str, **fields: Any) -> Memory:
        """Let a person tell an agent something, an hour after what came before."""
        self.clock.move(HOUR)
        home = {"slot": "ann:lives_in", "value": content} if content.startswith("Ann lives in ") else {}
        memory = self.kit.save("note", content, scope=scope, **packed(home | fields)).memory
        assert memory is not None
        return memory

    def learned(self, scope: Scope, said: Message | None = None, **fields: Any) -> Memory:
        """Write a memory as it is given, with a message that bears it out."""
        self.clock.move(HOUR)
        archive, now = self.kit.context.parts().archive, self.clock()
        partition, name = scope.partition(), f"{scope.user} {scope.agent} {next(NUMBERS)}"
        text = str(fields.get("content", LISBON))
        message = said or Message(message_id=name, role="user", content=text, time=now, thread=name)
        archive.add_messages(partition, [message], now)
        (stored,) = archive.messages([partition], ids=[message.message_id])
        cut = Cut(thread=stored.thread, after_seq=0, first_seq=stored.seq, last_seq=stored.seq)
        archive.add_blocks(partition, [cut], "1")
        (block,) = archive.blocks([partition], thread=stored.thread)
        evidence = Evidence(message_id=message.message_id, quote=stored.text, block_id=block.block_id)
        given = {
            "memory_id": name,
            "partition": partition,
            "topic": Topic(type="personal", target_name="Ann"),
            "content": LISBON,
            "layer": "long_term",
            "evidence": (evidence,),
            "block_ids": (block.block_id,),
            "said_at": now,
            "recorded_at": now,
        }
        memory = Memory.model_validate(given | fields)
        self.commit(MemoryChange(memory=memory, expected_version=0, action="create"))
        return memory

    def commit(self, *changes: MemoryChange) -> None:
        """Commit changes that no verb makes."""
        self.kit.context.parts().archive.commit(
            ChangeSet(operation_id=f"o{next(NUMBERS)}", actor="test", recorded_at=self.clock(), changes=changes)
        )

    def proposed(self, content: str = LISBON, **options: Any) -> Proposal:
        """Let the scout propose what it was told."""
        source = self.saved(self.scout, content)
        return self.kit.sharing.propose(source.memory_id, scope=self.scout, reason="all need it", **options)

    def agreed(self, content: str = LISBON, **options: Any) -> Proposal:
        """Let scout and writer agree on something."""
        proposal = self.proposed(content, **options)
        same = self.saved(self.writer, content)
        return self.kit.sharing.corroborate(proposal.proposal_id, scope=self.writer, memory_id=same.memory_id)

    def head(self, memory_id: str) -> Memory:
        """Read a memory as any of them does."""
        return self.kit.trace(memory_id, scope=self.third).memory

    def found(self, scope: Scope, query: str = "Where does Ann live?", **options: Any) -> list[str]:
        """What an agent recalls."""
        return [hit.text for hit in self.kit.recall(query, scope=scope, **options).memories]

    def state(self, proposal: Proposal) -> str:
        """What became of a proposal."""
        (found,) = [
            each for each in self.kit.sharing.proposals(scope=self.third) if each.proposal_id == proposal.proposal_id
        ]
        return found.state
