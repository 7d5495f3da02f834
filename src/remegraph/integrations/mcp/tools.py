"""The tools of the adapters, as a client of the protocol lists and calls them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_function
from mcp import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, TextContent, Tool, ToolAnnotations

from remegraph.adapters import checked_arguments, conflict_tools, history_tools, memory_tools
from remegraph.errors import InputError
from remegraph.integrations.mcp.rights import Rights, allows
from remegraph.kit import MemoryKit
from remegraph.models import Scope

__all__ = ["Toolbox"]

_NEEDS: Mapping[str, Rights] = {
    "search_memory": "read",
    "trace_memory": "read",
    "explain_memory": "read",
    "memory_archaeology": "read",
    "list_conflicts": "read",
    "save_memory": "save",
    "forget_memory": "write",
    "resolve_conflict": "write",
}


class Toolbox:
    """The tools for one caller. Whom they are for stands fixed; it is no argument of any of them.

    Args:
        kit: The memory.
        scope: Who calls; None where the tools are only listed.
        rights: What they may do.
    """

    def __init__(self, kit: MemoryKit, scope: Scope | None, rights: Rights) -> None:
        made = chain(memory_tools(kit, scope), history_tools(kit, scope), conflict_tools(kit, scope))
        self._tools = {tool.name: tool for tool in made if allows(rights, _NEEDS[tool.name])}

    def listed(self) -> list[Tool]:
        """Return the tools as the protocol describes them."""
        return [_described(tool) for tool in self._tools.values()]

    async def call(self, name: str, arguments: Mapping[str, Any] | None) -> CallToolResult:
        """Call a tool. What is refused is answered in words that the model reads.

        Args:
            name: The tool.
            arguments: What the model gave.

        Raises:
            MCPError: There is no such tool for this caller.
        """
        tool = self._tools.get(name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool {name!r} here. There are {', '.join(self._tools)}.")
        try:
            given = checked_arguments(tool, {} if arguments is None else arguments)
        except InputError as error:
            return _said(f"{name} was not called. {error}", failed=True)
        call = {"type": "tool_call", "id": name, "name": name, "args": given}
        answer: ToolMessage = await tool.ainvoke(call)
        return _said(answer.text, failed=answer.status == "error")


def _described(tool: BaseTool) -> Tool:
    function = convert_to_openai_function(tool)
    needs = _NEEDS[tool.name]
    hints = ToolAnnotations(read_only_hint=needs == "read", destructive_hint=needs == "write", open_world_hint=False)
    return Tool(
        name=tool.name,
        description=function["description"],
        input_schema=function["parameters"] | {"additionalProperties": False},
        annotations=hints,
    )


def _said(text: str, *, failed: bool) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=failed)
