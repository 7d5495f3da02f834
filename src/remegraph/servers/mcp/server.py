"""The server: its tools, prompts and resources, who asks, and what a failure looks like from outside.

A resource is what a client may read by address: topics, memories and blocks, as data with its trust, never as instructions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from itertools import chain
from typing import Any, TypeVar, get_args

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_function
from mcp import MCPError, UriTemplate, types
from mcp.server import ServerRequestContext
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.types import Resource, ResourceTemplate

from remegraph.adapters import conflict_tools, history_tools, memory_tools
from remegraph.adapters.answers import answered, checked_arguments
from remegraph.adapters.tools import traced
from remegraph.engine.frame import disarmed, framed, vouched
from remegraph.errors import InputError, NotFoundError
from remegraph.kit import MemoryKit
from remegraph.kit.validation import check_text, required
from remegraph.models import LIVE, BlockSummary, Memory, Scope, Shelf, StoredMessage
from remegraph.models.standing import QUARANTINE_BELOW
from remegraph.prompts import LANGUAGES, Language, load
from remegraph.servers.mcp import Rights
from remegraph.servers.mcp.transport import MemoryServer, scope_of

__all__ = ["memory_server"]


Context = ServerRequestContext[Any, Any]
P = TypeVar("P")
R = TypeVar("R")


def _allows(rights: Rights, needed: Rights) -> bool:
    """Return whether some rights are enough: each has all of the one before."""
    levels: Sequence[Rights] = get_args(Rights)
    return levels.index(needed) <= levels.index(rights)


# ----------------------------------------------------------------------------------------------------- server


def memory_server(
    kit: MemoryKit, scope: Scope | None = None, *, rights: Rights = "save", language: Language = "en"
) -> MemoryServer:
    """Return the kit as a server of the SDK, to be served by `serve_stdio` or `http_app`, or tested in memory.

    Args:
        kit: The memory; its opener closes it.
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
    requests = _Requests(kit, None if scope is None else required(scope), rights, language)
    parts = ["mcp_instructions", *(["mcp_saving"] if _allows(rights, "save") else [])]
    server = MemoryServer(
        "remegraph",
        version=version("remegraph"),
        title="remegraph",
        instructions="\n".join(_rendered(part, language, {}) for part in parts),
        on_list_tools=requests.bounded(requests.list_tools),
        on_call_tool=requests.bounded(requests.call_tool),
        on_list_resources=requests.bounded(requests.list_resources),
        on_list_resource_templates=requests.bounded(requests.list_templates),
        on_read_resource=requests.bounded(requests.read_resource),
        on_list_prompts=requests.bounded(requests.list_prompts),
        on_get_prompt=requests.bounded(requests.get_prompt),
    )
    server.kit = kit
    server.middleware.clear()  # the SDK's own reports every request to OpenTelemetry: nothing leaves unasked
    return server


class _Requests:
    """Answers requests. A caller gets what their scope sees, and what the server's rights allow."""

    def __init__(self, kit: MemoryKit, scope: Scope | None, rights: Rights, language: Language) -> None:
        self._kit = kit
        self._scope = scope
        self._language: Language = language
        self._tools = cache(lambda scope: _tools(kit, scope, rights))  # there are as many as callers have tokens
        self._listed = [_described(tool) for tool in _tools(kit, None, rights).values()]
        self._prompts = {name: offer for name, offer in _PROMPTS.items() if _allows(rights, offer.needs)}

    def bounded(self, handle: Callable[[Context, P], Awaitable[R]]) -> Callable[[Context, P], Awaitable[R]]:
        """Return a handler whose caller learns what they did wrong, and of all else only that it failed."""

        async def run(context: Context, params: P) -> R:
            try:
                return await handle(context, params)
            except MCPError:
                raise
            except InputError as error:
                raise MCPError(types.INVALID_PARAMS, str(error)) from error
            except Exception as error:  # noqa: BLE001 - the boundary: the SDK would send its words to the client
                self._kit.context.health.note("mcp", error)
                raise MCPError(types.INTERNAL_ERROR, "The memory failed; nothing can be relied on as saved.") from None

        return run

    async def list_tools(self, _context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._listed)

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Call a tool. What is refused is answered in words that the model reads."""
        name, tools = params.name, self._tools(self._caller(context))
        tool = tools.get(_ALSO_CALLED.get(name, name))
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {name!r} here. There are {', '.join(tools)}.")
        try:
            given = checked_arguments(tool, {} if params.arguments is None else params.arguments)
        except InputError as error:
            return _result(f"{name} was not called. {error}", failed=True)
        answer: ToolMessage = await tool.ainvoke({"type": "tool_call", "id": name, "name": name, "args": given})
        return _result(answer.text, failed=answer.status == "error")

    async def list_resources(
        self, _context: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=RESOURCES)

    async def list_templates(
        self, _context: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=TEMPLATES)

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        try:
            with answered():
                text = await read(self._kit, self._caller(context), params.uri)
        except ToolException as error:
            theirs = isinstance(error.__cause__, InputError)
            raise MCPError(types.INVALID_PARAMS if theirs else types.INTERNAL_ERROR, str(error)) from error
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=text)]
        )

    async def list_prompts(self, _context: Context, _: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[offer.described(name) for name, offer in self._prompts.items()])

    async def get_prompt(self, _context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """Return a prompt with what it was given; refuse one that is not offered, or other arguments."""
        name, values = params.name, dict(params.arguments or {})
        if name not in self._prompts:
            raise InputError(f"There is no prompt {name!r} here.", f"Ask for one of {', '.join(self._prompts)}.")
        offer = self._prompts[name]
        if values.keys() != offer.arguments.keys():
            raise InputError(
                f"The prompt {name} was given {_enumerated(values)}.", f"Give {_enumerated(offer.arguments)}."
            )
        check_text(**values)
        text = types.TextContent(text=_rendered(f"mcp_{name}", self._language, values))
        return types.GetPromptResult(description=offer.about, messages=[types.PromptMessage(role="user", content=text)])

    def _caller(self, context: Context) -> Scope:
        """Return whose memory it is: that of the server, or of the token that the request came with."""
        if self._scope is not None:
            return self._scope
        user = context.request.scope.get("user") if context.request is not None else None
        scope = scope_of(user.access_token) if isinstance(user, AuthenticatedUser) else None
        if scope is None:
            raise MCPError(
                types.INVALID_REQUEST, "It is not known whose memory this is. Serve with a scope, or with tokens."
            )
        return scope


# ------------------------------------------------------------------------------------------------------ tools

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

_ALSO_CALLED: Mapping[str, str] = {"memory_delete": "forget_memory"}
"""Names of governance protocols for tools that are listed by another name."""


def _tools(kit: MemoryKit, scope: Scope | None, rights: Rights) -> dict[str, BaseTool]:
    """Return the tools for one caller, whose scope is no argument of any of them; `None` where they are only listed."""
    made = chain(memory_tools(kit, scope), history_tools(kit, scope), conflict_tools(kit, scope))
    return {tool.name: tool for tool in made if _allows(rights, _NEEDS[tool.name])}


def _described(tool: BaseTool) -> types.Tool:
    function = convert_to_openai_function(tool)
    needs = _NEEDS[tool.name]
    hints = types.ToolAnnotations(
        read_only_hint=needs == "read", destructive_hint=needs == "write", open_world_hint=False
    )
    return types.Tool(
        name=tool.name,
        description=function["description"],
        input_schema=function["parameters"] | {"additionalProperties": False},
        annotations=hints,
    )


def _result(text: str, *, failed: bool) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=failed)


# ---------------------------------------------------------------------------------------------------- prompts

_TOOL_NAMES = {"search": "search_memory", "save": "save_memory", "trace": "trace_memory"}
"""Names of the tools in texts."""


@dataclass(frozen=True, slots=True)
class _Offer:
    """A prompt that a person may ask a client for by name."""

    about: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    needs: Rights = "read"

    def described(self, name: str) -> types.Prompt:
        """Return it as the protocol describes it."""
        arguments = [
            types.PromptArgument(name=each, description=about, required=True) for each, about in self.arguments.items()
        ]
        return types.Prompt(name=name, description=self.about, arguments=arguments)


_PROMPTS = {
    "recall_first": _Offer("Answer a question from memory.", {"question": "What you want to know."}),
    "about_me": _Offer("Say what is remembered about me, and where it comes from."),
    "remember_this": _Offer("Remember what lasts of a text.", {"text": "What to remember."}, "save"),
}


def _enumerated(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def _rendered(name: str, language: Language, values: Mapping[str, str]) -> str:
    prompt = load(name, language)
    tools = {key: tool for key, tool in _TOOL_NAMES.items() if key in prompt.variables}
    return prompt.render(**tools, **values)[1]


# -------------------------------------------------------------------------------------------------- resources

_MOST = 200
"""Records that one reading shows, the newest; it says if there are others, which searching finds."""

_LONGEST = 4000
"""Characters that it shows of one message: a tool may have returned a book."""

_WITHHELD = "words that nobody vouches for; the block has them"

_TYPE = "text/plain"

_TOPICS, _MEMORIES, _BLOCKS = (f"remegraph://{name}" for name in ("topics", "memories", "blocks"))

RESOURCES = [
    Resource(uri=uri, name=name, description=description, mime_type=_TYPE)
    for uri, name, description in (
        (_TOPICS, "topics", "The topics that memories stand under."),
        (_MEMORIES, "memories", "What is remembered, the newest first."),
        (_BLOCKS, "blocks", "What happened when, the newest first."),
    )
]

TEMPLATES = [
    ResourceTemplate(uri_template=uri, name=name, description=description, mime_type=_TYPE)
    for uri, name, description in (
        (f"{_TOPICS}/{{key}}", "topic", "The memories of one topic, the newest first."),
        (f"{_MEMORIES}/{{memory_id}}", "memory", "One memory, and the exact words that it came from."),
        (f"{_BLOCKS}/{{block_id}}", "block", "The raw messages of one block, to the letter."),
    )
]


async def read(kit: MemoryKit, scope: Scope, uri: str) -> str:
    """Return the record or the list at an address, as this scope sees it.

    Raises:
        NotFoundError: There is nothing for this scope.
        InputError: The address holds what no id may hold.
    """
    match _parted(uri):
        case "topics", None:
            return _lines([_topic(shelf) for shelf in await kit.topics.alist(scope=scope)])
        case "memories", None:
            return _lines([_memory(each) for each in await _newest(kit, scope)])
        case "blocks", None:
            return _lines([_block(each) for each in reversed(await kit.sources.ablocks(scope=scope))])
        case "topic", str(key):
            return _lines([_memory(each) for each in await _on_topic(kit, scope, key)])
        case "memory", str(memory_id):
            return traced(await kit.atrace(memory_id, scope=scope))
        case "block", str(block_id):
            return framed(_message(each) for each in await kit.sources.aretrieve_block(block_id, scope=scope))
    known = [*(each.uri for each in RESOURCES), *(each.uri_template for each in TEMPLATES)]
    raise NotFoundError(f"There is no resource {uri!r} here.", f"Read one of {', '.join(known)}.")


def _parted(uri: str) -> tuple[str, str | None] | None:
    """Return the name of the resource or template that an address belongs to, with what it is about."""
    for resource in RESOURCES:
        if resource.uri == uri:
            return resource.name, None
    for template in TEMPLATES:
        if found := UriTemplate.parse(template.uri_template).match(uri):
            (value,) = found.values()
            return template.name, str(value)
    return None


async def _on_topic(kit: MemoryKit, scope: Scope, key: str) -> Sequence[Memory]:
    keys = {shelf.topic.key.casefold() for shelf in await kit.topics.alist(scope=scope)}
    if key.casefold() not in keys:
        raise NotFoundError(f"There is no topic {key!r} here.", f"See {_TOPICS}.")
    return await _newest(kit, scope, key)


async def _newest(kit: MemoryKit, scope: Scope, topic: str | None = None) -> Sequence[Memory]:
    """Return what is shown, and one more where there are others: to count them all would read them all."""
    return await kit.amemories(scope=scope, topic=topic, statuses=sorted(LIVE), limit=_MOST + 1)


def _lines(records: Sequence[Mapping[str, object]]) -> str:
    others = [{"left_out": "all others", "because": "these are the newest; search_memory finds the others"}]
    return framed([*records[:_MOST], *(others if len(records) > _MOST else [])]) or "Nothing is remembered yet."


def _topic(shelf: Shelf) -> dict[str, object]:
    address = UriTemplate.parse(TEMPLATES[0].uri_template).expand({"key": shelf.topic.key})
    return {"topic": disarmed(shelf.topic.key), "about": disarmed(shelf.topic.description), "read": address}


def _memory(memory: Memory) -> dict[str, object]:
    return {
        "id": memory.memory_id,
        "about": disarmed(memory.topic.key),
        "date": f"{memory.said_at:%Y-%m-%d}",
        "status": memory.status,
        "trust": round(memory.trust, 2),
        "text": vouched(memory.content, memory.trust),
    }


def _block(entry: BlockSummary) -> dict[str, object]:
    trusted = entry.trust >= QUARANTINE_BELOW  # what is not stays out unless the block itself is asked for
    return {
        "id": entry.block_id,
        "from": f"{entry.start_time:%Y-%m-%d %H:%M}",
        "to": f"{entry.end_time:%Y-%m-%d %H:%M}",
        "trust": round(entry.trust, 2),
    } | ({"text": entry.summary} if trusted else {"withheld": _WITHHELD})


def _message(message: StoredMessage) -> dict[str, object]:
    said = {"id": message.message_id, "by": message.speaker, "at": f"{message.time:%Y-%m-%d %H:%M}"}
    more = len(message.text) - _LONGEST
    text = vouched(message.text[:_LONGEST], message.trust)
    return said | {"trust": round(message.trust, 2), "text": text} | ({"more_characters": more} if more > 0 else {})
