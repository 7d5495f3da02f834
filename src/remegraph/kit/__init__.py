"""The composition root: what applications open and call."""

from remegraph.kit.kit import MemoryKit

__all__ = ["MemoryKit"]
