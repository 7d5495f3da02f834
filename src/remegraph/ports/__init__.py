"""The seams: what the engine needs of the world. Storage and the fakes in `testing` fill them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remegraph.ports.archive import Archive, Pulse, Recorded, Tail
from remegraph.ports.attachments import Attachments
from remegraph.ports.concluding import Concluded, Concluder
from remegraph.ports.generalizing import Draft, Generalizer, Reworded
from remegraph.ports.index import WHOLE, Embedder, Nearest, Projection, RecordKind, VectorIndex
from remegraph.ports.journal import AuditTrail
from remegraph.ports.notes import Notes, Tally
from remegraph.ports.queue import Courier, Deliver, Job, JobQueue, Outcome
from remegraph.ports.sharing import GrantBook
from remegraph.ports.text import Layout, TextMatch, TextMatches
from remegraph.ports.world import Attention, Clock, NewId, TokenCounter

if TYPE_CHECKING:
    from remegraph.ports.index import Vectors as Vectors

__all__ = [
    "WHOLE",
    "Archive",
    "Attachments",
    "Attention",
    "AuditTrail",
    "Clock",
    "Concluded",
    "Concluder",
    "Courier",
    "Deliver",
    "Draft",
    "Embedder",
    "Generalizer",
    "GrantBook",
    "Job",
    "JobQueue",
    "Layout",
    "Nearest",
    "NewId",
    "Notes",
    "Outcome",
    "Projection",
    "Pulse",
    "RecordKind",
    "Recorded",
    "Reworded",
    "Tail",
    "Tally",
    "TextMatch",
    "TextMatches",
    "TokenCounter",
    "VectorIndex",
]
