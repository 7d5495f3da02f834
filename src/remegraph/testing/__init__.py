"""Stand-ins for tests, shipped so that applications can use them too."""

from __future__ import annotations

from remegraph.testing.chat import (
    FAULTS,
    Answer,
    FaultyChatModel,
    ModelCall,
    ProviderError,
    ScriptedChatModel,
    Step,
    refusal,
    spoken,
    truncated,
)
from remegraph.testing.fakes import FailingCall, FrozenClock, InMemoryVectorIndex, SequentialIds

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
