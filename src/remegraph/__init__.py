"""remegraph: the memory layer for LangGraph and LangChain agents.

Every memory can be traced to the words that it came from, says when it will be forgotten, and survives a crash.

These are the names that most programs need; other records are in `remegraph.models`, settings in `remegraph.settings` and
errors in `remegraph.errors`. A name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remegraph.errors import (
        BudgetExceededError,
        CancelledError,
        ClosedError,
        ConflictError,
        InputError,
        LedgerUnavailableError,
        MessageError,
        ModelError,
        NotFoundError,
        OutcomeUnknownError,
        RemegraphError,
        ScopeError,
        SetupError,
    )
    from remegraph.kit import MemoryKit
    from remegraph.models import (
        Budget,
        Captured,
        Hit,
        Injection,
        Memory,
        Message,
        Partition,
        Profile,
        Progress,
        Recall,
        RecallFilter,
        Scope,
        SummaryReport,
        Topic,
        Trace,
    )
    from remegraph.settings import (
        AgentMemorySettings,
        CapturePolicy,
        ExtractionPolicy,
        LifecyclePolicy,
        RecallPolicy,
        RetrievalPolicy,
        Settings,
        SharingPolicy,
        SlicingPolicy,
        SummaryPolicy,
        ToolPolicy,
    )

__all__ = [
    "AgentMemorySettings",
    "Budget",
    "BudgetExceededError",
    "CancelledError",
    "CapturePolicy",
    "Captured",
    "ClosedError",
    "ConflictError",
    "ExtractionPolicy",
    "Hit",
    "Injection",
    "InputError",
    "LedgerUnavailableError",
    "LifecyclePolicy",
    "Memory",
    "MemoryKit",
    "Message",
    "MessageError",
    "ModelError",
    "NotFoundError",
    "OutcomeUnknownError",
    "Partition",
    "Profile",
    "Progress",
    "Recall",
    "RecallFilter",
    "RecallPolicy",
    "RemegraphError",
    "RetrievalPolicy",
    "Scope",
    "ScopeError",
    "Settings",
    "SetupError",
    "SharingPolicy",
    "SlicingPolicy",
    "SummaryPolicy",
    "SummaryReport",
    "ToolPolicy",
    "Topic",
    "Trace",
]


def _home(name: str) -> str:
    """Return the module that a public name comes from."""
    if name == "MemoryKit":
        return "remegraph.kit"
    if name.endswith("Error"):
        return "remegraph.errors"
    return "remegraph.settings" if name.endswith(("Policy", "Settings")) else "remegraph.models"


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_home(name)), name)
    globals()[name] = value  # the next look finds it without us
    return value


def __dir__() -> list[str]:
    return __all__
