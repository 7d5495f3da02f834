"""What tests need in place of the world, shipped so that applications can use it too."""

from __future__ import annotations

from remegraph.testing.chat import Answer, ModelCall, ScriptedChatModel, Step, refusal, spoken, truncated
from remegraph.testing.clock import FrozenClock, SequentialIds
from remegraph.testing.failing import FailingCall
from remegraph.testing.faults import FAULTS, FaultyChatModel, ProviderError
from remegraph.testing.index import InMemoryVectorIndex

__all__ = [
    "FAULTS",
    "Answer",
    "FailingCall",
    "FaultyChatModel",
    "FrozenClock",
    "InMemoryVectorIndex",
    "ModelCall",
    "ProviderError",
    "ScriptedChatModel",
    "SequentialIds",
    "Step",
    "refusal",
    "spoken",
    "truncated",
]
