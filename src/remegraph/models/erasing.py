"""Erasure (X7): what shall go for good, and the receipt that says what went, what is left, and what is not covered."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from remegraph.models.base import AwareTime, Record, Text, Token
from remegraph.models.scope import Partition, Subject

__all__ = ["NOT_COVERED", "ErasedPlace", "Erasure", "ErasureRequest", "ErasureStage"]

ErasureStage = Literal["ledger", "index", "files", "done"]
"""What is to be done next: rows of the ledger, vectors of the index, bytes of the files; or nothing."""

NOT_COVERED: tuple[str, ...] = (
    "backups of the home or the database",
    "the host's own checkpoints, stores and logs",
    "packs and audit exports that were written to files; heads of the journal exported before no longer fit it",
    "what a model or embedding provider keeps of its requests",
    "working memory of other processes, until its tasks end",
    "what other people told of them, and the names of trusted keys",
)
"""What no erasure can reach."""


class ErasureRequest(Record):
    """What shall be erased: all of a person, or, of one place, a thread, messages or memories."""

    subject: Subject | None = Field(default=None, description="The person, wherever their rows live.")
    partition: Partition | None = Field(default=None, description="The place, where it is not the whole person.")
    thread: Token | None = Field(default=None, description="All messages of this thread.")
    message_ids: tuple[Token, ...] = Field(default=(), description="These messages.")
    memory_ids: tuple[Token, ...] = Field(default=(), description="These memories; the words they came from stay.")


class ErasedPlace(Record):
    """One place where it was."""

    place: str = Field(description="The place: a table of the ledger, the full text, the index, files.")
    removed: int = Field(ge=0, description="How many records went, or were made anew without it.")
    left: int = Field(ge=0, description="How many a look at the end still found.")


class Erasure(Record):
    """The receipt of an erasure. It holds no name and no word of what was erased."""

    erasure_id: str = Field(description="Its id, in the journal too.")
    asked_at: AwareTime = Field(description="When it was asked for.")
    finished_at: AwareTime | None = Field(default=None, description="When the last step was done.")
    stage: ErasureStage = Field(description="What is to be done next; `done` where nothing is.")
    places: tuple[ErasedPlace, ...] = Field(default=(), description="Each place, with counts.")
    rederived: int = Field(default=0, ge=0, description="Memories that live on, made anew from what remains.")
    not_covered: tuple[Text, ...] = Field(default=(), description="What it does not reach.")

    @property
    def left(self) -> int:
        """How many records were still found, in all places."""
        return sum(place.left for place in self.places)

    @property
    def complete(self) -> bool:
        """Whether every step is done and nothing is left."""
        return self.stage == "done" and self.left == 0
