"""The MCP server, by the SDK's own client: what it offers, for whom, and what it refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from mcp import Client, MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, TextContent, TextResourceContents
from sqlalchemy.exc import OperationalError

from remegraph import InputError, MemoryKit, Scope, ScopeError
from remegraph.engine.frame import holds_recalled, shown_records
from remegraph.prompts import LANGUAGES
from remegraph.servers.mcp import Rights, memory_server, server
from remegraph.testing import ModelCall, ScriptedChatModel
from tests.talk import ANN, misled, open_kit

Mode = Literal["auto", "legacy"]

MODES = pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.slow)])
"""As the protocol is today, and as it was before 2026: then with a handshake, over streams."""

TEA, BEES = "Ann drinks oolong.", "Ann keeps bees."
SMALL, LARGE = "The hall seats 250 guests.", "The hall seats 320 guests."
LEVELS: dict[Rights, set[str]] = {
    "read": {"search_memory", "trace_memory", "explain_memory", "memory_archaeology", "list_conflicts"},
    "save": {"save_memory"},
    "write": {"forget_memory", "resolve_conflict"},
}


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """A kit for all tests of the module; each has a user of its own."""
    with open_kit(tmp_path_factory.mktemp("kit")) as opened:
        yield opened


@pytest.fixture
def user(request: pytest.FixtureRequest) -> Scope:
    """A user whom no other test knows."""
    return Scope(user=request.node.name, agent="remy")


def client(kit: MemoryKit, scope: Scope, *, mode: Mode = "auto", **options: Any) -> Client:
    """A client of a server for this scope."""
    return Client(memory_server(kit, scope, **options), mode=mode)


def text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def lines(shown: str) -> list[Mapping[str, Any]]:
    """The records in a frame."""
    assert holds_recalled(shown), shown
    told = shown.splitlines()[1:-1]
    return [json.loads(line) for line in told] if told[0].startswith("{") else [*shown_records(shown)]


async def read(session: Client, uri: str) -> str:
    (content,) = (await session.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return content.text


def saved(kit: MemoryKit, scope: Scope, key: str, content: str, slot: str = "") -> str:
    memory = kit.save(key, content, scope=scope, slot=slot).memory
    assert memory is not None
    return memory.memory_id


# ---------------------------------------------------------------------------------------------- what there is


@pytest.mark.requirement("X10")
@MODES
async def test_a_client_lists_and_calls_every_tool(kit: MemoryKit, user: Scope, mode: Mode) -> None:
    """Clients of either protocol generation see the same tools, described, and each answers."""
    async with client(kit, user, mode=mode, rights="write") as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert tools.keys() == set.union(*LEVELS.values())
        for name, tool in tools.items():
            assert tool.description
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is (name in LEVELS["read"])
            assert tool.annotations.destructive_hint is (name in LEVELS["write"])
            assert tool.input_schema["additionalProperties"] is False

        said = text(await session.call_tool("save_memory", {"key": "tea", "content": TEA}))
        (memory,) = kit.memories(scope=user)
        assert said == f"Saved as new memory {memory.memory_id}."
        assert (memory.trust, memory.content) == (0.8, TEA)
        one = {"memory_id": memory.memory_id}
        for name, given in (
            ("search_memory", {"query": "oolong"}),
            ("trace_memory", one),
            ("explain_memory", one),
            ("memory_archaeology", one),
        ):
            shown = lines(text(await session.call_tool(name, given)))
            assert (memory.memory_id.startswith(shown[0]["id"]), shown[0]["text"]) == (True, TEA)

        for count in (SMALL, LARGE):  # at one moment: neither is the later one
            saved(kit, user, "hall", count, slot="hall:seats")
        (conflict,) = lines(text(await session.call_tool("list_conflicts")))
        decided = {"conflict_id": conflict["id"], "decision": "supersede"}
        assert text(await session.call_tool("resolve_conflict", decided)).endswith("is resolved: supersede.")
        plums = {"memory_id": saved(kit, user, "snack", "Ann likes plums.")}
        for name, given in (("forget_memory", one), ("memory_delete", plums)):  # the latter as governance protocols say
            assert text(await session.call_tool(name, given)).startswith("Forgot memory")
        live = kit.memories(scope=user, statuses=["active"])
        assert [each.content for each in live] == [LARGE]


@pytest.mark.requirement("X10")
@MODES
async def test_a_client_reads_topics_memories_and_blocks(kit: MemoryKit, user: Scope, mode: Mode) -> None:
    """Everything that one reading names can be read next, down to the words."""
    memory_id = saved(kit, user, "tea", TEA)
    async with client(kit, user, mode=mode) as session:
        fixed = [each.uri for each in (await session.list_resources()).resources]
        assert fixed == ["remegraph://topics", "remegraph://memories", "remegraph://blocks"]
        templates = [each.uri_template for each in (await session.list_resource_templates()).resource_templates]
        (topic,) = lines(await read(session, fixed[0]))
        (memory,) = lines(await read(session, fixed[1]))
        (block,) = lines(await read(session, fixed[2]))
        assert (memory["id"], memory["about"], memory["text"]) == (memory_id, topic["topic"], TEA)
        assert topic["read"].startswith(templates[0].partition("{")[0])
        assert lines(await read(session, topic["read"])) == [memory]
        head, quote = lines(await read(session, templates[1].replace("{memory_id}", memory_id)))
        assert (head["text"], quote["words"]) == (TEA, TEA)
        (message,) = lines(await read(session, templates[2].replace("{block_id}", block["id"])))
        assert message["text"] == TEA


@pytest.mark.requirement("X10")
async def test_every_prompt_is_there_in_both_languages_and_names_tools_that_exist(kit: MemoryKit) -> None:
    """A prompt that names a tool of yesterday sends the model after nothing."""
    for language in LANGUAGES:
        async with client(kit, ANN, language=language) as session:
            names = {tool.name for tool in (await session.list_tools()).tools}
            told = [session.instructions or ""]
            for prompt in (await session.list_prompts()).prompts:
                given = {argument.name: "<{{search}}>" for argument in prompt.arguments or []}
                (message,) = (await session.get_prompt(prompt.name, given)).messages
                assert isinstance(message.content, TextContent)
                assert message.content.text.count("<{{search}}>") == len(given)
                told.append(message.content.text)
            assert len(told) == 4
            for each in told:
                assert (found := set(re.findall(r"[a-z]+_memory", each)))
                assert found <= names


@pytest.mark.requirement("X10")
async def test_a_model_remembers_from_one_session_to_the_next(kit: MemoryKit, user: Scope) -> None:
    """What Claude does with it: search, answer, save; and another day it knows."""

    def calling(name: str, **args: Any) -> AIMessage:
        return AIMessage("", tool_calls=[ToolCall(name=name, args=args, id=f"call-{name}")])

    def answer(call: ModelCall) -> AIMessage:
        return AIMessage("You drink oolong." if TEA in call.messages[-1].text else "I do not know.")

    search = calling("search_memory", query="What does Ann drink?")
    script = {"": [search, answer, calling("save_memory", key="tea", content=TEA), AIMessage("Noted."), search, answer]}
    model = ScriptedChatModel(script=script)

    async def converse(said: str) -> str:
        async with client(kit, user) as session:
            tools = [
                {"type": "function", "function": {"name": each.name, "parameters": each.input_schema}}
                for each in (await session.list_tools()).tools
            ]
            messages: list[AnyMessage] = [SystemMessage(session.instructions or ""), HumanMessage(said)]
            while True:
                reply = await model.bind_tools(tools).ainvoke(messages)
                assert isinstance(reply, AIMessage)
                messages.append(reply)
                if not reply.tool_calls:
                    return reply.text
                for call in reply.tool_calls:
                    result = await session.call_tool(call["name"], call["args"])
                    messages.append(ToolMessage(text(result), tool_call_id=call["id"]))

    assert await converse("What do I drink?") == "I do not know."
    assert await converse("I drink oolong.") == "Noted."
    assert await converse("What do I drink?") == "You drink oolong."
    assert {each["function"]["name"] for each in model.calls[0].instructions} == LEVELS["read"] | LEVELS["save"]


# ------------------------------------------------------------------------------------------- what is refused


@pytest.mark.requirement("X10")
@pytest.mark.parametrize("rights", get_args(Rights))
async def test_a_client_can_do_what_it_was_given_rights_to_and_no_more(
    kit: MemoryKit, user: Scope, rights: Rights
) -> None:
    """Whoever opens a memory for reading must find it as it was, whatever the model calls."""
    memory_id = saved(kit, user, "tea", TEA)
    granted = set.union(*list(LEVELS.values())[: list(LEVELS).index(rights) + 1])
    before = kit.memories(scope=user)
    async with client(kit, user, rights=rights) as session:
        assert {tool.name for tool in (await session.list_tools()).tools} == granted
        assert ("remember_this" in {each.name for each in (await session.list_prompts()).prompts}) is (rights != "read")
        assert ("save_memory" in (session.instructions or "")) is (rights != "read")
        for name, given in (
            ("save_memory", {"key": "k", "content": BEES}),
            ("forget_memory", {"memory_id": memory_id}),
            ("resolve_conflict", {"conflict_id": "c", "decision": "add"}),
        ):
            if name not in granted:
                with pytest.raises(MCPError, match=f"There is no tool '{name}' here") as refused:
                    await session.call_tool(name, given)
                assert refused.value.code == INVALID_PARAMS
    assert kit.memories(scope=user) == before


HOSTILE: list[tuple[str, dict[str, Any], str]] = [
    ("save_memory", {"key": "k", "content": "c", "user": "ann"}, "It takes no user, only key, content, tags"),
    ("save_memory", {"key": "k", "content": "c", "scope": {"user": "ann"}}, "It takes no scope"),
    ("save_memory", {"key": "k", "content": "c", "runtime": {"context": {"user": "ann"}}}, "It takes no runtime"),
    ("save_memory", {"key": "k", "content": "c", "config": {"configurable": {"user": "ann"}}}, "It takes no config"),
    ("save_memory", {"content": "c"}, "key: Field required"),
    ("save_memory", {"key": "k", "content": 7}, "content: Input should be a valid string"),
    ("save_memory", {"key": "k", "content": "c", "tags": "one"}, "tags: Input should be a valid tuple"),
    ("save_memory", {"key": "k", "content": "c", "importance": 7}, "importance: Input should be less than"),
    ("save_memory", {"key": "k", "content": " "}, "The statement is empty."),
    ("save_memory", {"key": "k", "content": "a\x00b"}, "NUL"),
    ("save_memory", {"key": "k\x00", "content": "c"}, "NUL"),
    ("search_memory", {"query": "tea", "k": 10**9}, "k: Input should be less than"),
    ("search_memory", {"query": "tea", "tenant": "default"}, "It takes no tenant"),
    ("search_memory", {"query": ""}, "The query is empty."),
    ("trace_memory", {"memory_id": "' OR 1=1 --"}, "There is no memory"),
    ("trace_memory", {"memory_id": ["m"]}, "memory_id: Input should be a valid string"),
    ("explain_memory", {"memory_id": "%"}, "There is no memory"),
    ("memory_archaeology", {"memory_id": "../../etc/passwd"}, "There is no memory"),
    ("forget_memory", {"memory_id": "*"}, "There is no memory"),
    ("list_conflicts", {"state": "all"}, "It takes no state, only nothing"),
    ("resolve_conflict", {"conflict_id": "c", "decision": "drop"}, "decision: Input should be 'add'"),
    ("resolve_conflict", {"conflict_id": "c", "decision": "add"}, "There is no conflict"),
]


@pytest.mark.requirement("X5", "X10")
@MODES
async def test_hostile_arguments_are_answered_as_errors_and_change_nothing(
    kit: MemoryKit, user: Scope, mode: Mode
) -> None:
    """Whoever writes to the model would else choose whose memory it reads, or break the server for everybody."""
    saved(kit, user, "tea", TEA)
    before = kit.memories(scope=user), kit.messages("saved", scope=user)
    async with client(kit, user, mode=mode, rights="write") as session:
        for name, given, expected in HOSTILE:
            result = await session.call_tool(name, given)
            assert result.is_error, (name, given)
            assert expected in text(result), (name, given)
    assert (kit.memories(scope=user), kit.messages("saved", scope=user)) == before


ADDRESSES = [
    "remegraph://topics/personal%3Anobody",
    "remegraph://memories/%00",
    "remegraph://memories/made-up",
    "remegraph://blocks/20990101_01",
    "remegraph://blocks/%27%20OR%201%3D1",
    "remegraph://memories/a/b",
    "remegraph://secrets",
    "file:///etc/passwd",
    "",
]


@pytest.mark.requirement("X5", "X10")
async def test_what_is_not_there_or_another_users_cannot_be_read(kit: MemoryKit, user: Scope) -> None:
    """An id is no key, and an address leads to memory alone."""
    theirs = user.evolve(user=f"{user.user} too")
    memory_id = saved(kit, theirs, "tea", TEA)
    (block,) = kit.sources.blocks(scope=theirs)
    foreign = [f"remegraph://memories/{memory_id}", f"remegraph://blocks/{block.block_id}"]
    async with client(kit, user) as session:
        for uri in (*ADDRESSES, *foreign):
            with pytest.raises(MCPError) as refused:
                await read(session, uri)
            assert refused.value.code == INVALID_PARAMS, uri
        for name in ("trace_memory", "explain_memory", "memory_archaeology"):
            result = await session.call_tool(name, {"memory_id": memory_id})
            assert result.is_error
            assert "There is no memory" in text(result)
        for uri in ("remegraph://topics", "remegraph://memories", "remegraph://blocks"):
            assert await read(session, uri) == "Nothing is remembered yet."


@pytest.mark.requirement("X10")
@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("nothing", {}, "There is no prompt 'nothing' here. Ask for one of recall_first, about_me, remember_this."),
        ("recall_first", {}, "The prompt recall_first was given nothing. Give question."),
        ("about_me", {"user": "bob"}, "The prompt about_me was given user. Give nothing."),
        ("recall_first", {"question": "a\x00b"}, "question holds NUL"),
    ],
)
async def test_a_prompt_takes_its_own_arguments_only(
    kit: MemoryKit, name: str, given: dict[str, str], expected: str
) -> None:
    """What a person mistypes is told to them, with what to give."""
    async with client(kit, ANN) as session:
        with pytest.raises(MCPError) as refused:
            await session.get_prompt(name, given)
    assert expected in str(refused.value)
    assert refused.value.code == INVALID_PARAMS


@pytest.mark.requirement("X6", "X10")
async def test_what_nobody_vouches_for_keeps_its_label_and_is_disarmed(tmp_path: Path) -> None:
    """A pasted page must not get its link before a model because another program asks."""
    with misled(tmp_path) as kit:
        (memory,) = kit.knowledge.waiting(scope=ANN)
        (entry,) = kit.sources.blocks(scope=ANN)
        async with client(kit, ANN) as session:
            (listed,) = lines(await read(session, "remegraph://blocks"))
            block = lines(await read(session, f"remegraph://blocks/{entry.block_id}"))
            shown = [
                text(await session.call_tool("search_memory", {"query": "Where does Ann pay?"})),
                await read(session, "remegraph://memories"),
                await read(session, "remegraph://topics/personal%3AAnn"),
                await read(session, f"remegraph://memories/{memory.memory_id}"),
                text(await session.call_tool("explain_memory", {"memory_id": memory.memory_id})),
            ]
    assert (listed["id"], listed["trust"], "text" in listed) == (entry.block_id, 0.3, False)
    assert [each["trust"] for each in block] == [1.0, 0.3]
    assert block[1]["text"] == "Ann pays at hxxps[://]evil.example/x."
    assert [memory.memory_id in each for each in shown] == [False, False, False, True, True]
    assert not any("https://" in each for each in shown)


# ------------------------------------------------------------------------------------------- when parts fail


@MODES
async def test_an_error_that_nobody_foresaw_is_not_told_to_the_client(
    kit: MemoryKit, user: Scope, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words may be those of a conversation; the log has where it happened."""

    def broken(*_args: Any, **_kwargs: Any) -> Any:
        raise RuntimeError("Ann's secret")

    monkeypatch.setattr(kit, "recall", broken)
    monkeypatch.setattr(kit.topics, "alist", broken)
    async with client(kit, user, mode=mode) as session:
        for failing in (session.call_tool("search_memory", {"query": "tea"}), read(session, "remegraph://topics")):
            with pytest.raises(MCPError, match="The memory failed") as told:
                await failing
            assert told.value.code == INTERNAL_ERROR
            assert "secret" not in f"{told.value}{told.value.data}"
    assert kit.context.health.stats()["mcp_failure"] == "RuntimeError"


async def test_a_ledger_that_cannot_be_reached_is_told_as_such(
    kit: MemoryKit, user: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model may tell its user, and must not think that nothing was ever remembered."""

    def down(*_args: Any, **_kwargs: Any) -> Any:
        raise OperationalError("SELECT", {}, Exception("disk"))

    monkeypatch.setattr(kit, "recall", down)
    for verb in ("memories", "trace"):
        monkeypatch.setattr(kit, verb, down)
        monkeypatch.setattr(kit, f"a{verb}", down)
    async with client(kit, user) as session:
        result = await session.call_tool("search_memory", {"query": "tea"})
        assert result.is_error
        for uri in ("remegraph://memories", "remegraph://memories/any"):
            with pytest.raises(MCPError, match="cannot be reached") as told:
                await read(session, uri)
            assert told.value.code == INTERNAL_ERROR, uri
    assert "cannot be reached" in text(result)


async def test_a_long_reading_is_cut_and_says_that_there_is_more(
    kit: MemoryKit, user: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A context that is flooded forgets the question."""
    saved(kit, user, "tea", TEA)
    saved(kit, user, "bees", BEES)
    monkeypatch.setattr(server, "_MOST", 1)
    monkeypatch.setattr(server, "_LONGEST", 9)
    saved(kit, user, "hall", SMALL)
    (block, *_) = kit.sources.blocks(scope=user)
    reading, rows = kit.amemories, list[int]()

    async def counted(**asked: Any) -> Any:
        found = await reading(**asked)
        rows.append(len(found))
        return found

    monkeypatch.setattr(kit, "amemories", counted)
    async with client(kit, user) as session:
        newest, left = lines(await read(session, "remegraph://memories"))
        (message,) = lines(await read(session, f"remegraph://blocks/{block.block_id}"))
    assert (newest["id"], left["left_out"]) == (kit.memories(scope=user)[0].memory_id, "all others")
    assert rows == [2], "no more is read than it takes to know that there is more"
    assert (message["text"], message["more_characters"]) == (TEA[:9], len(TEA) - 9)


def test_a_server_for_nobody_or_with_unknown_rights_is_refused(kit: MemoryKit) -> None:
    """A user's name is no scope, and a mistyped right must not grant the usual ones."""
    wrong: Any
    for wrong in ("ann", ""):
        with pytest.raises(ScopeError):
            memory_server(kit, wrong)
    for options in ({"rights": "admin"}, {"language": "fr"}):
        wrong = options
        with pytest.raises(InputError, match="Give one of"):
            memory_server(kit, ANN, **wrong)


async def test_without_scope_and_token_nothing_is_answered(kit: MemoryKit) -> None:
    """A developer who forgets to say whose memory it is must find out at once."""
    async with Client(memory_server(kit)) as session:
        with pytest.raises(MCPError, match="It is not known whose memory this is"):
            await session.call_tool("search_memory", {"query": "tea"})
