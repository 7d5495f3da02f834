"""The middle layer (R2, R3): blocks of messages and the index entry of each."""

from __future__ import annotations

from pydantic import Field

from remegraph.models.base import AwareTime, Record, Token
from remegraph.models.scope import Partition

__all__ = ["Block", "BlockSummary", "Cut"]


class Cut(Record):
    """A range of one thread that a slicer proposes as a block."""

    thread: Token = Field(description="The thread that is cut.")
    after_seq: int = Field(ge=0, description="Last seq of the thread's newest block when this was cut; 0 if none.")
    first_seq: int = Field(ge=1, description="Seq of the first message; at or before after_seq where blocks overlap.")
    last_seq: int = Field(ge=1, description="Seq of the last message.")


class Block(Record):
    """An immutable range of one thread: its messages with first_seq <= seq <= last_seq."""

    block_id: str = Field(pattern=r"^\d{8}_\d{2,}$", description="Label YYYYMMDD_NN, unique in its partition.")
    partition: Partition = Field(description="Where it lives.")
    thread: Token = Field(description="The thread that it is a part of.")
    first_seq: int = Field(ge=1, description="Seq of its first message.")
    last_seq: int = Field(ge=1, description="Seq of its last message.")
    start_time: AwareTime = Field(description="Time of its earliest message.")
    end_time: AwareTime = Field(description="Time of its latest message.")


class BlockSummary(Record):
    """The index entry of a block: `block_id: time + summary`."""

    block_id: str = Field(description="The block it stands for.")
    partition: Partition = Field(description="Where it lives.")
    start_time: AwareTime = Field(description="Start of the block.")
    end_time: AwareTime = Field(description="End of the block.")
    summary: str = Field(description="What happened, in a sentence or two.")
    entities: tuple[str, ...] = Field(default=(), description="Names, places and things it speaks of.")
    language: str = Field(default="en", description="Language of the block: en or zh.")
    trust: float = Field(default=1.0, ge=0, le=1, description="The least trust of the words that it draws on, 0 to 1.")
    extractor: str = Field(default="extractive", description="The model that wrote it, or `extractive`.")

    @property
    def entry(self) -> str:
        """The line of the index: `block_id: time + summary`."""
        return f"{self.block_id}: {self.start_time:%Y-%m-%d %H:%M} + {self.summary}"
