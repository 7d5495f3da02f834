"""The vocabulary: the frozen, validated records that all layers speak in. Each module says which of its names are public."""

from remegraph.models import (
    changes,
    exchange,
    governance,
    memories,
    recall,
    reports,
    retention,
    scope,
    sharing,
)
from remegraph.models.base import Json, Record
from remegraph.models.changes import *
from remegraph.models.exchange import *
from remegraph.models.governance import *
from remegraph.models.memories import *
from remegraph.models.messages import (
    DOCUMENT,
    FOLLOWS,
    REVISES,
    AddReceipt,
    Attachment,
    AttachmentKind,
    Block,
    BlockSummary,
    Cut,
    Message,
    Reading,
    Role,
    StoredMessage,
    ToolCall,
    Withheld,
    WithheldReason,
)
from remegraph.models.recall import *
from remegraph.models.reports import *
from remegraph.models.retention import *
from remegraph.models.scope import *
from remegraph.models.sharing import *
from remegraph.models.skills import (
    Avoidance,
    Condition,
    Learned,
    Skill,
    SkillChoice,
    SkillFigures,
    SkillOutcome,
    SkillSource,
    SkillStep,
    StepPattern,
)
from remegraph.models.tools import ToolAdvice, ToolRecord, ToolStats, ToolWindow, TypicalError

__all__ = [
    "DOCUMENT",
    "FOLLOWS",
    "REVISES",
    "AddReceipt",
    "Attachment",
    "AttachmentKind",
    "Avoidance",
    "Block",
    "BlockSummary",
    "Condition",
    "Cut",
    "Json",
    "Learned",
    "Message",
    "Reading",
    "Record",
    "Role",
    "Skill",
    "SkillChoice",
    "SkillFigures",
    "SkillOutcome",
    "SkillSource",
    "SkillStep",
    "StepPattern",
    "StoredMessage",
    "ToolAdvice",
    "ToolCall",
    "ToolRecord",
    "ToolStats",
    "ToolWindow",
    "TypicalError",
    "Withheld",
    "WithheldReason",
]
__all__ += changes.__all__
__all__ += exchange.__all__
__all__ += governance.__all__
__all__ += memories.__all__
__all__ += recall.__all__
__all__ += reports.__all__
__all__ += retention.__all__
__all__ += scope.__all__
__all__ += sharing.__all__
