from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    ToolMessageChunk,
    messages_from_dict,
    messages_to_dict,
)

from remegraph.errors import MessageError, NaiveTimeError
from remegraph.importers.messages import to_langchain_dict, to_message, to_messages
from remegraph.models import Message, ToolCall

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def read(value: object) -> Message:
    return to_message(value, thread="main", default_time=NOW, timezone=None)


def there_and_back(value: object) -> BaseMessage:
    """Through our message, its JSON, and an id that the kit gave it, back to LangChain."""
    message = Message.from_json(read(value).to_json())
    return messages_from_dict([to_langchain_dict(message.evolve(message_id=message.message_id or "given"))])[0]


# --- LangChain

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
MAPPING = st.dictionaries(TEXT, JSON, max_size=3)
BLOCKS = st.lists(
    TEXT
    | st.builds(lambda text: {"type": "text", "text": text}, TEXT)
    | st.builds(lambda url: {"type": "image_url", "image_url": {"url": url}}, TEXT)
    | st.builds(lambda words, rest: {"type": "reasoning", "reasoning": words, "extras": rest}, TEXT, MAPPING),
    max_size=3,
)
ANY = {
    "content": TEXT | BLOCKS,
    "additional_kwargs": MAPPING.map(lambda found: {f"x_{key}": value for key, value in found.items()}),
    "response_metadata": MAPPING.map(lambda found: {f"x_{key}": value for key, value in found.items()}),
    "name": st.none() | TEXT,
    "id": st.none() | TEXT.filter(bool),
}
CALLS = st.lists(st.fixed_dictionaries({"name": TEXT, "args": MAPPING, "id": st.none() | TEXT}), max_size=3)
INVALID = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.just("invalid_tool_call"),
            "name": st.none() | TEXT,
            "args": st.none() | TEXT,
            "id": st.none() | TEXT,
            "error": st.none() | TEXT,
        }
    ),
    max_size=2,
)
USAGE = st.none() | st.builds(
    lambda i, o: {"input_tokens": i, "output_tokens": o, "total_tokens": i + o, "input_token_details": {"audio": i}},
    st.integers(0, 99),
    st.integers(0, 99),
)
AI = ANY | {"tool_calls": CALLS, "invalid_tool_calls": INVALID, "usage_metadata": USAGE}
TOOL = ANY | {"tool_call_id": TEXT, "artifact": JSON, "status": st.sampled_from(["success", "error"])}
MESSAGES: st.SearchStrategy[BaseMessage] = st.one_of(
    st.builds(HumanMessage, **ANY),
    st.builds(SystemMessage, **ANY),
    st.builds(AIMessage, **AI),
    st.builds(ToolMessage, **TOOL),
    st.builds(FunctionMessage, **(ANY | {"name": TEXT})),
    st.builds(ChatMessage, role=TEXT | st.sampled_from(["user", "Assistant"]), **ANY),
    st.builds(HumanMessageChunk, **ANY),
    st.builds(ToolMessageChunk, **TOOL),
    st.builds(AIMessageChunk, **ANY, usage_metadata=USAGE),
)


@pytest.mark.requirement("R1")
@given(MESSAGES)
def test_a_langchain_message_comes_back_equal(message: BaseMessage) -> None:
    """A host gets back every field of what it recorded, whatever the class and the content blocks."""
    assert there_and_back(message) == message


@pytest.mark.requirement("R1")
@given(MESSAGES)
def test_a_saved_langchain_message_comes_back_equal(message: BaseMessage) -> None:
    """Files of `messages_to_dict` and of the agent server lose nothing either."""
    assert there_and_back(messages_to_dict([message])[0]) == message
    assert there_and_back(json.loads(message.model_dump_json())) == message


def test_a_message_that_langchain_dumped_comes_back_equal() -> None:
    """`dumpd` is the third form in which LangChain messages are saved."""
    message = AIMessage("Done.", tool_calls=[{"name": "search", "args": {"q": "tea"}, "id": "c1"}], id="m1")
    assert there_and_back(dumpd(message)) == message


def test_streamed_tool_calls_come_back_as_they_were_streamed() -> None:
    """A chunk holds its calls as text in pieces; half a JSON is kept too."""
    chunk = AIMessageChunk(
        content="", tool_call_chunks=[{"name": "search", "args": '{"q": "te', "id": "c1", "index": 0}]
    )
    assert there_and_back(chunk) == chunk


def test_a_langchain_tool_result_says_whether_the_call_succeeded() -> None:
    """Tool statistics count on it."""
    assert read(ToolMessage("timed out", tool_call_id="c1", status="error")).ok is False
    assert read(ToolMessage("42", tool_call_id="c1")).ok is True
    assert read(FunctionMessage(name="f", content="42")).ok is None


def test_langchain_fields_become_ours() -> None:
    """What was called, by whom and under which id is readable without knowing LangChain."""
    message = read(AIMessage("Hi", name="Remy", id="m1", tool_calls=[{"name": "search", "args": {"q": 1}, "id": "c1"}]))
    assert (message.role, message.name, message.message_id, message.time) == ("assistant", "Remy", "m1", NOW)
    assert message.tool_calls == (ToolCall(name="search", args={"q": 1}, call_id="c1"),)


def test_an_artifact_that_is_no_json_is_left_out_and_said_to_be() -> None:
    """A tool may hand its host any object; that must not keep its words from being recorded."""
    message = read(ToolMessage("3 rows", tool_call_id="c1", artifact={"rows": 3, "handle": object()}))
    assert message.extra["left_out"] == {"artifact.handle": "object"}
    assert messages_from_dict([to_langchain_dict(message)])[0] == ToolMessage(
        "3 rows", tool_call_id="c1", artifact={"rows": 3}
    )


def test_content_that_is_no_json_is_refused_by_name() -> None:
    """Bytes would come back as something else, so they are refused with the way to give them."""
    with pytest.raises(MessageError, match=r"'content'.*base64"):
        read(HumanMessage([{"type": "image", "data": b"\x00"}]))


def test_a_command_to_remove_messages_is_refused() -> None:
    """It is nothing that was said, and it bears the id of another message."""
    with pytest.raises(MessageError, match="remove"):
        read(RemoveMessage(id="m1"))


# --- OpenAI


def call(arguments: str) -> dict[str, object]:
    return {"id": "c1", "type": "function", "function": {"name": "search", "arguments": arguments}}


@pytest.mark.parametrize(
    ("arguments", "args"),
    [('{"q": "tea"}', {"q": "tea"}), ('{"q": "te', '{"q": "te'), ("", ""), ("[1]", [1]), ('{"q": NaN}', '{"q": NaN}')],
)
def test_openai_tool_calls_are_kept_even_when_their_arguments_are_no_json(arguments: str, args: object) -> None:
    """Models write broken arguments; the record says exactly what they wrote."""
    message = read({"role": "assistant", "content": None, "tool_calls": [call(arguments)]})
    assert message.tool_calls == (ToolCall(name="search", args=args, call_id="c1"),)
    assert message.content == ""


def test_openai_arguments_written_another_way_are_kept_to_the_letter() -> None:
    """Spaces and order inside the arguments are part of what the model said."""
    odd = call('{"q":   "tea", "q": "te\\u0061"}')
    assert read({"role": "assistant", "content": None, "tool_calls": [odd]}).extra["tool_calls"] == [odd]
    assert read({"role": "assistant", "content": None, "tool_calls": [call('{"q": "tea"}')]}).extra == {}


def test_openai_broken_calls_reach_langchain_as_invalid_calls() -> None:
    """A host that reads the history through LangChain gets a valid message."""
    message = read({"role": "assistant", "content": "", "tool_calls": [call("{")], "id": "m1"})
    back = messages_from_dict([to_langchain_dict(message)])[0]
    assert isinstance(back, AIMessage)
    assert back.id == "m1"
    assert [invalid["args"] for invalid in back.invalid_tool_calls] == ["{"]


@pytest.mark.parametrize(
    ("role", "ours"), [("user", "user"), ("developer", "system"), ("system", "system"), ("assistant", "assistant")]
)
def test_openai_roles_become_ours_and_the_original_is_kept(role: str, ours: str) -> None:
    """`developer` is the newer name of the system role."""
    message = read({"role": role, "content": "Be brief."})
    assert message.role == ours
    assert message.extra == ({} if role == ours else {"role": role})


def test_openai_content_parts_are_kept() -> None:
    """Images and texts in one message stay what they are."""
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "https://x/y"}}]
    message = read({"role": "user", "content": parts})
    assert (message.content, message.text) == (parts, "What is this?")


@pytest.mark.parametrize(
    ("hint", "ok"),
    [
        ({}, None),
        ({"status": "error"}, False),
        ({"status": "success"}, True),
        ({"is_error": True}, False),
        ({"success": False}, False),
        ({"ok": True}, True),
        ({"status": "done"}, None),
    ],
)
def test_a_tool_result_is_only_known_to_have_failed_where_it_says_so(
    hint: Mapping[str, object], ok: bool | None
) -> None:
    """Statistics of guesses would be worth nothing."""
    message = read({"role": "tool", "tool_call_id": "c1", "content": "..."} | dict(hint))
    assert (message.role, message.tool_call_id, message.ok) == ("tool", "c1", ok)


def test_the_older_function_form_is_read_too() -> None:
    """Old logs hold `function_call` and the role `function`."""
    asked = read({"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a": 1}'}})
    assert asked.tool_calls == (ToolCall(name="f", args={"a": 1}),)
    assert read({"role": "function", "name": "f", "content": "2"}).role == "tool"


# --- our own forms


def test_our_own_message_is_taken_as_it_is() -> None:
    """Nothing is changed behind the caller's back."""
    message = Message(role="user", content="Hi", time=NOW, thread="other")
    assert read(message) is message


@given(
    st.builds(
        Message,
        role=st.sampled_from(["user", "assistant", "system", "tool"]),
        content=st.text(min_size=1) | BLOCKS,
        time=st.just(NOW),
        name=st.text(),
        tool_calls=st.lists(st.builds(ToolCall, name=st.text(), args=MAPPING, call_id=TEXT), max_size=2).map(tuple),
    )
)
def test_our_own_field_names_make_the_same_message(message: Message) -> None:
    """A message that was dumped to JSON is read back as it was."""
    assert read(json.loads(message.to_json())).evolve(ok=message.ok) == message


def test_fields_that_we_do_not_know_go_to_extra() -> None:
    """What a source attaches is kept, though nothing reads it."""
    message = read({"id": "m1", "thread": "t", "role": "user", "content": "Hi", "time": 0, "place": "Lisbon"})
    assert (message.message_id, message.thread, message.extra) == ("m1", "t", {"place": "Lisbon"})
    assert message.time == datetime(1970, 1, 1, tzinfo=UTC)


def test_plain_text_is_said_by_the_user() -> None:
    """The shortest way to record a turn."""
    message = read("I moved to Porto.")
    assert (message.role, message.content, message.time, message.thread) == ("user", "I moved to Porto.", NOW, "main")


def test_a_naive_time_is_read_in_the_zone_given_and_refused_without() -> None:
    """The zone comes from the caller, never from the machine."""
    value = {"role": "user", "content": "你好", "time": "2024年04月01日 周一 08:25"}
    zone = ZoneInfo("Asia/Shanghai")
    found = to_message(value, thread="main", default_time=NOW, timezone=zone)
    assert found.time.isoformat() == "2024-04-01T08:25:00+08:00"
    with pytest.raises(NaiveTimeError, match="timezone="):
        read(value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (7, "int is not a message"),
        ("  ", "empty"),
        ({}, "role"),
        ({"role": "narrator", "content": "x"}, "'role'.*narrator"),
        ({"role": ["user"], "content": "x"}, "role"),
        ({"role": "user"}, "'content'"),
        ({"role": "user", "content": 5}, "content"),
        ({"role": "user", "content": {"a": 1}}, "content"),
        ({"role": "user", "content": "x", "name": 5}, "name"),
        ({"role": "user", "content": "x", "time": "soon"}, "time"),
        ({"role": "user", "content": "x", "extra": 5}, "extra"),
        ({"role": "user", "content": "x", "id": "a\x00b"}, "NUL"),
        ({"role": "user", "content": [float("nan")]}, "content"),
        ({"role": "user", "content": "x", "place": {1: 2}}, "extra"),
        ({"role": "assistant", "content": "", "tool_calls": "search"}, "tool_calls"),
        ({"role": "assistant", "content": "", "tool_calls": ["search"]}, r"tool_calls\.0"),
        ({"role": "assistant", "content": "", "tool_calls": [{"id": "c1"}]}, r"tool_calls\.0"),
        ({"role": "assistant", "content": "", "tool_calls": [{"name": "f", "id": 1}]}, r"tool_calls\.0"),
        ({"type": "remove", "data": {"id": "1", "content": ""}}, "remove"),
        ({"type": "human", "data": {"content": None}}, "content"),
    ],
)
def test_what_is_no_message_is_refused_by_the_name_of_the_field(value: object, words: str) -> None:
    """Whoever feeds a log in finds the bad field at once."""
    with pytest.raises(MessageError, match=words):
        read(value)


def test_a_bad_message_in_a_list_is_named_by_its_index() -> None:
    """Among a thousand messages, the index is what one needs."""
    with pytest.raises(NaiveTimeError, match=r"^Message 1: .*timezone="):
        to_messages(
            ["Hi", {"role": "user", "content": "x", "time": "2024-04-01"}],
            thread="main",
            default_time=NOW,
            timezone=None,
        )


def test_one_message_in_place_of_a_list_is_refused() -> None:
    """A text is a sequence of letters; each letter as a message is never meant."""
    with pytest.raises(MessageError, match="list"):
        to_messages("Hi", thread="main", default_time=NOW, timezone=None)


def test_reading_langchain_messages_does_not_import_langchain() -> None:
    """`import remegraph` stays light."""
    code = (
        "import sys, remegraph.importers.messages; sys.exit(any(name.startswith('langchain') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
