"""The server: which request is answered by what, for whom, and what a failure looks like from outside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from importlib.metadata import version
from typing import Any, TypeVar, get_args

from langchain_core.tools import ToolException
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextResourceContents,
)

from remegraph.adapters.answering import answered
from remegraph.errors import InputError
from remegraph.integrations.mcp import prompting, resources
from remegraph.integrations.mcp.rights import Rights
from remegraph.integrations.mcp.tokens import scope_of
from remegraph.integrations.mcp.tools import Toolbox
from remegraph.kit import MemoryKit
from remegraph.kit.calling import required
from remegraph.models import Scope
from remegraph.prompts import LANGUAGES, Language

__all__ = ["memory_server"]

Context = ServerRequestContext[Any, Any]
P = TypeVar("P")
R = TypeVar("R")


def memory_server(
    kit: MemoryKit, scope: Scope | None = None, *, rights: Rights = "save", language: Language = "en"
) -> Server[Any]:
    """Return the kit as a server of the SDK, to be served by `serve_stdio` or `http_app`, or tested in memory.

    Args:
        kit: The memory; whoever opened it closes it.
        scope: Whose memory; None where each caller's token says it, over HTTP. No argument of a tool can.
        rights: read: look up; save: state memories, too; write: forget them and decide conflicts, too.
        language: Of the instructions and prompts, en or zh.

    Raises:
        ScopeError: What is given as scope is none.
        InputError: There are no such rights, or no such language.
    """
    for given, known in ((rights, get_args(Rights)), (language, LANGUAGES)):
        if given not in known:
            raise InputError(f"There is no {given!r} here.", f"Give one of {', '.join(known)}.")
    serving = _Serving(kit, None if scope is None else required(scope), rights, language)
    server: Server[Any] = Server(
        "remegraph",
        version=version("remegraph"),
        title="remegraph",
        instructions=prompting.instructions(rights, language),
        on_list_tools=serving.spared(serving.list_tools),
        on_call_tool=serving.spared(serving.call_tool),
        on_list_resources=serving.spared(serving.list_resources),
        on_list_resource_templates=serving.spared(serving.list_templates),
        on_read_resource=serving.spared(serving.read_resource),
        on_list_prompts=serving.spared(serving.list_prompts),
        on_get_prompt=serving.spared(serving.get_prompt),
    )
    server.middleware.clear()  # the SDK's own tells OpenTelemetry of every request: nothing leaves unasked
    return server


class _Serving:
    """Answers requests. A caller gets what their scope sees, and what the server's rights allow."""

    def __init__(self, kit: MemoryKit, scope: Scope | None, rights: Rights, language: Language) -> None:
        self._kit = kit
        self._scope = scope
        self._rights = rights
        self._language = language
        self._tools = Toolbox(kit, None, rights).listed()
        self._toolbox = cache(lambda scope: Toolbox(kit, scope, rights))  # there are as many as callers have tokens

    def spared(self, handle: Callable[[Context, P], Awaitable[R]]) -> Callable[[Context, P], Awaitable[R]]:
        """Return a handler whose caller learns what they did wrong, and of all else only that it failed.

        Args:
            handle: The handler.
        """

        async def run(context: Context, params: P) -> R:
            try:
                return await handle(context, params)
            except MCPError:
                raise
            except InputError as error:
                raise MCPError(INVALID_PARAMS, str(error)) from error
            except Exception as error:  # noqa: BLE001 - the boundary: the SDK would send its words to whoever asks
                self._kit.health.note("mcp", error)
                raise MCPError(INTERNAL_ERROR, "The memory failed; nothing can be relied on as saved.") from None

        return run

    async def list_tools(self, _context: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=self._tools)

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        return await self._toolbox(self._caller(context)).call(params.name, params.arguments)

    async def list_resources(self, _context: Context, _: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=resources.RESOURCES)

    async def list_templates(self, _context: Context, _: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def read_resource(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        try:
            with answered():
                text = await resources.read(self._kit, self._caller(context), params.uri)
        except ToolException as error:
            theirs = isinstance(error.__cause__, InputError)
            raise MCPError(INVALID_PARAMS if theirs else INTERNAL_ERROR, str(error)) from error
        return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, mime_type="text/plain", text=text)])

    async def list_prompts(self, _context: Context, _: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=prompting.listed(self._rights))

    async def get_prompt(self, _context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        return prompting.filled(params.name, params.arguments, self._rights, self._language)

    def _caller(self, context: Context) -> Scope:
        """Return whose memory it is: that of the server, or of the token that the request came with."""
        if self._scope is not None:
            return self._scope
        user = context.request.scope.get("user") if context.request is not None else None
        scope = scope_of(user.access_token) if isinstance(user, AuthenticatedUser) else None
        if scope is None:
            raise MCPError(INVALID_REQUEST, "Nobody says whose memory this is. Serve with a scope, or with tokens.")
        return scope
