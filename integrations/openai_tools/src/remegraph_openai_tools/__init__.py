"""remegraph's memory tools for users of the bare `openai` SDK: schemas for the request, a dispatcher for the calls.

The user is fixed by the host; a model can neither name nor change one.
"""

from __future__ import annotations

import asyncio
import json
from typing import cast, overload

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_function
from openai.types.chat import (
    ChatCompletionFunctionToolParam,
    ChatCompletionMessageToolCallUnion,
    ChatCompletionToolMessageParam,
)
from openai.types.responses import FunctionToolParam, ResponseFunctionToolCall
from openai.types.responses.response_input_param import FunctionCallOutput
from openai.types.shared_params import FunctionDefinition

from remegraph import MemoryKit, Scope, ScopeError
from remegraph.adapters import checked_arguments, memory_tools

__all__ = ["MemoryFunctions"]


class MemoryFunctions:
    """`save_memory`, `search_memory`, `forget_memory` and `trace_memory` as functions that an OpenAI model can call.

    They are `remegraph.adapters.memory_tools`: the same schemas, the same answers.

    Args:
        kit: The memory.
        scope: Whose memory. It is no argument of any function.

    Raises:
        ScopeError: No scope is given.
    """

    def __init__(self, kit: MemoryKit, scope: Scope) -> None:
        if not isinstance(scope, Scope):
            raise ScopeError(f"A scope is needed, not {type(scope).__name__}.", "Give scope=Scope(user=...).")
        self._tools = {tool.name: tool for tool in memory_tools(kit, scope)}

    @property
    def names(self) -> frozenset[str]:
        """Names of the functions, to tell their calls from those of the host's own functions."""
        return frozenset(self._tools)

    @property
    def chat_tools(self) -> list[ChatCompletionFunctionToolParam]:
        """The functions for `client.chat.completions.create(tools=...)`."""
        return [{"type": "function", "function": _definition(tool)} for tool in self._tools.values()]

    @property
    def responses_tools(self) -> list[FunctionToolParam]:
        """The functions for `client.responses.create(tools=...)`."""
        # strict, the default there, would demand every argument, also those with a default
        return [
            {
                "type": "function",
                "name": function["name"],
                "description": function["description"],
                "parameters": function["parameters"],
                "strict": False,
            }
            for function in map(_definition, self._tools.values())
        ]

    @overload
    def call(self, tool_call: ChatCompletionMessageToolCallUnion) -> ChatCompletionToolMessageParam: ...
    @overload
    def call(self, tool_call: ResponseFunctionToolCall) -> FunctionCallOutput: ...
    def call(
        self, tool_call: ChatCompletionMessageToolCallUnion | ResponseFunctionToolCall
    ) -> ChatCompletionToolMessageParam | FunctionCallOutput:
        """Do what the model asks, and return what goes back to it: a tool message, or a function call's output.

        A function that does not exist, arguments that cannot be read, and what memory refuses are answered as errors
        that the model reads.

        Args:
            tool_call: One of `message.tool_calls`, or an item of `response.output` of type `function_call`.
        """
        if isinstance(tool_call, ResponseFunctionToolCall):
            said = self._answer(tool_call.name, tool_call.arguments)
            return {"type": "function_call_output", "call_id": tool_call.call_id, "output": said}
        if tool_call.type == "function":
            said = self._answer(tool_call.function.name, tool_call.function.arguments)
        else:
            said = self._unknown(tool_call.custom.name)
        return {"role": "tool", "tool_call_id": tool_call.id, "content": said}

    @overload
    async def acall(self, tool_call: ChatCompletionMessageToolCallUnion) -> ChatCompletionToolMessageParam: ...
    @overload
    async def acall(self, tool_call: ResponseFunctionToolCall) -> FunctionCallOutput: ...
    async def acall(
        self, tool_call: ChatCompletionMessageToolCallUnion | ResponseFunctionToolCall
    ) -> ChatCompletionToolMessageParam | FunctionCallOutput:
        """Do what the model asks; see `call`."""
        return await asyncio.to_thread(self.call, tool_call)

    def _answer(self, name: str, arguments: str) -> str:
        tool = self._tools.get(name)
        if tool is None:
            return self._unknown(name)
        try:
            given = _checked(tool, arguments)
        except ValueError as error:
            return f"Error: {name} was not called. {error}"
        answer: ToolMessage = tool.invoke({"type": "tool_call", "id": name, "name": name, "args": given})
        return f"Error: {answer.text}" if answer.status == "error" else answer.text  # OpenAI's messages have no status

    def _unknown(self, name: str) -> str:
        return f"Error: There is no function {name!r} here. There are {', '.join(self._tools)}."


def _definition(tool: BaseTool) -> FunctionDefinition:
    return cast("FunctionDefinition", convert_to_openai_function(tool))


def _checked(tool: BaseTool, arguments: str) -> dict[str, object]:
    """Return the arguments of a call.

    Raises:
        ValueError: They are no JSON object of the function's schema; says how, for the model.
    """
    try:
        given = json.loads(arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Its arguments are not JSON: {error}.") from error
    return checked_arguments(tool, given)
