"""What a doctor found in a home, and what was done about it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from remegraph.models.base import Record

__all__ = ["Check", "Diagnosis", "Finding", "Severity"]

Check = Literal[
    "home", "disk", "key", "ledger", "schema", "embedder", "owner", "index", "backlog", "records", "attachments",
    "journal", "jobs", "work", "clock",
]  # fmt: skip
"""What is looked at."""

Severity = Literal["note", "warning", "error"]
"""note: nothing is wrong; warning: something is, and the memory works; error: some of it does not, or is lost."""


class Finding(Record):
    """One thing that is not as it should be."""

    check: Check = Field(description="Where it was found.")
    severity: Severity = Field(description="How bad it is.")
    what: str = Field(description="What is wrong.")
    cure: str = Field(description="What to do about it.")
    fixable: bool = Field(default=False, description="Whether `fix` mends it: without loss, and without a model.")
    done: str = Field(default="", description="What `fix` did about it.")


class Diagnosis(Record):
    """All that was looked at, and what was found."""

    checks: tuple[Check, ...] = Field(description="What was looked at; what is not here could not be.")
    findings: tuple[Finding, ...] = Field(default=(), description="What was found, in the order of the checks.")

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong any more."""
        return all(finding.severity == "note" or finding.done for finding in self.findings)
