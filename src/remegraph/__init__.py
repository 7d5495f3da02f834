"""remegraph: the memory layer for LangGraph and LangChain agents."""

from __future__ import annotations

__all__: list[str] = []
