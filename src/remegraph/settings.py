"""Frozen policies, and the one place that reads the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["RecallPolicy", "Settings", "SlicingPolicy", "SummaryPolicy"]


class _Policy(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def evolve(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, validated again.

        Args:
            changes: New values by field name.
        """
        return type(self).model_validate({**dict(self), **changes})


class SlicingPolicy(_Policy):
    """Where a thread is cut into blocks (R2)."""

    strategy: Literal["combined", "window", "gap", "task", "length"] = Field(
        default="combined", description="combined: gap, task boundary and length, whichever comes first."
    )
    window: timedelta = Field(
        default=timedelta(minutes=5), gt=timedelta(0), description="Fixed window (strategy window)."
    )
    gap: timedelta = Field(default=timedelta(hours=3), gt=timedelta(0), description="A silence that ends a block.")
    max_messages: int = Field(default=24, ge=1, description="Longest block, in messages.")
    max_tokens: int = Field(default=1500, ge=1, description="Longest block, in estimated tokens.")
    overlap: int = Field(default=0, ge=0, description="Messages that two blocks share (strategy length).")


class SummaryPolicy(_Policy):
    """How blocks become memories (R4 to R8, R11)."""

    create_topics: bool = Field(default=False, description="Whether a model may invent task topics.")
    allowed_topics: tuple[str, ...] = Field(default=(), description="Task topics that it may create all the same.")
    reviser: Literal["rules", "auto", "always"] = Field(
        default="auto", description="auto: the model reviews where rules flag; rules: rules only; always: both."
    )
    max_attempts: int = Field(default=2, ge=1, description="How often one topic is tried before a person looks.")
    attention: float = Field(
        default=0.1, ge=0, le=1, description="A block under this score is indexed without a model."
    )
    similar: int = Field(default=8, ge=1, description="Similar memories shown to a Sub Agent.")
    merge_threshold: float = Field(
        default=0.85, ge=0, le=1, description="A statement more similar than this to a memory is merged into it."
    )
    max_concurrency: int = Field(default=8, ge=1, description="Sub Agents at work at once.")
    timeout: float = Field(default=60.0, gt=0, description="Seconds that a model call may take, retries not counted.")
    repairs: int = Field(default=1, ge=0, description="How often an invalid answer is sent back with the error.")
    retries: int = Field(default=2, ge=0, description="Retries of a failed transport.")
    backoff: float = Field(default=0.5, ge=0, description="First wait before such a retry, in seconds; doubles.")
    longest_wait: float = Field(
        default=30.0, ge=0, description="Longest wait before such a retry, also where the provider asks for more."
    )
    recipe: str = Field(default="1", min_length=1, description="Name of this way; another name summarises anew.")


class RecallPolicy(_Policy):
    """How much is recalled, and how wide the search is."""

    k: int = Field(default=10, ge=1, description="Hits of each kind.")
    threshold: float = Field(default=0.0, ge=0, le=1, description="Least score of a hit, 0 to 1.")
    max_topics: int = Field(default=8, ge=1, description="Topics searched at most (bounded fan-out).")
    context_tokens: int = Field(default=2000, ge=1, description="Token budget of the assembled context.")
    exact_limit: int = Field(default=5000, ge=0, description="Vectors up to which exact search over SQL is used.")


class Settings(_Policy):
    """All settings of a kit."""

    home: Path = Field(default=Path("~/.remegraph"), description="Folder of the ledger and the embedded index.")
    ledger_url: str | None = Field(default=None, description="SQLAlchemy URL; SQLite in the home where none is given.")
    chroma_url: str | None = Field(default=None, description="http://host:port of a Chroma server; embedded if none.")
    model: str | None = Field(default=None, description="Chat model as provider:model; none: extractive mode.")
    embedder: str | None = Field(default=None, description="Embedder as provider:model; none: hashed n-grams.")
    trust_boundary: Literal["user", "agent"] = Field(
        default="user", description="agent: the users of an agent are one team and share what it learns."
    )
    slicing: SlicingPolicy = Field(default_factory=SlicingPolicy, description="Where threads are cut.")
    summary: SummaryPolicy = Field(default_factory=SummaryPolicy, description="How blocks become memories.")
    recall: RecallPolicy = Field(default_factory=RecallPolicy, description="How much is recalled.")

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Self:
        """Read REMEGRAPH_HOME, _LEDGER_URL, _CHROMA_URL, _MODEL and _EMBEDDER; OpenAI where only its key is set.

        Args:
            env: The environment; that of the process unless given.
        """
        env = os.environ if env is None else env
        names = ("home", "ledger_url", "chroma_url", "model", "embedder")
        given = {name: env[key] for name in names if env.get(key := f"REMEGRAPH_{name.upper()}")}
        if env.get("OPENAI_API_KEY"):
            given = {"model": "openai:gpt-5-mini", "embedder": "openai:text-embedding-3-small"} | given
        return cls.model_validate(given)
