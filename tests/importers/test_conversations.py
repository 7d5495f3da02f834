from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)

from remegraph.errors import FileFormatError, NaiveTimeError
from remegraph.importers.conversations import Conversation, read_conversations
from remegraph.importers.messages import to_langchain_dict

TURNS = [
    {"role": "user", "content": "I live in Lisbon."},
    {"role": "assistant", "content": "Noted."},
    {"role": "user", "content": "I live in Lisbon."},
]
LANGCHAIN: list[BaseMessage] = [
    HumanMessage("What is the P/E?"),
    AIMessage("", tool_calls=[{"name": "web_search", "args": {"q": "P/E"}, "id": "c1"}]),
    ToolMessage("timed out", tool_call_id="c1", status="error"),
]


def read(path: Path) -> list[Conversation]:
    return list(read_conversations(path, timezone=None))


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def in_lines(values: list[object]) -> str:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", json.dumps(TURNS, indent=2)),
        ("a.json", json.dumps(TURNS)),
        ("a.json", json.dumps({"messages": TURNS, "tools": []}, indent=2)),
        ("a.json", "\ufeff" + json.dumps({"messages": TURNS}) + "\r\n"),
        ("a.json", json.dumps([{"messages": TURNS}])),
        ("a.jsonl", json.dumps({"messages": TURNS})),
        ("a.jsonl", json.dumps(TURNS)),
        ("a.jsonl", in_lines(list(TURNS))),
        ("a.txt", "\n" + in_lines(list(TURNS)) + "\n"),
    ],
)
def test_openai_chat_is_read_in_every_form_it_is_saved_in(tmp_path: Path, name: str, text: str) -> None:
    """A user has a file and wants it in; which of the customary forms it has is our concern."""
    [conversation] = read(written(tmp_path / name, text))
    assert conversation.user is None
    assert [message.text for message in conversation.messages] == ["I live in Lisbon.", "Noted.", "I live in Lisbon."]
    assert len({message.message_id for message in conversation.messages}) == 3


def test_each_line_of_a_fine_tuning_file_is_a_conversation(tmp_path: Path) -> None:
    """Conversations that have nothing to do with each other must not become one thread."""
    found = read(written(tmp_path / "tuning.jsonl", in_lines([{"messages": TURNS}, {"messages": TURNS}])))
    threads = [{message.thread for message in conversation.messages} for conversation in found]
    assert threads == [{"tuning:1"}, {"tuning:2"}]


@pytest.mark.parametrize("lines", [False, True])
def test_saved_langchain_messages_come_back_equal(tmp_path: Path, lines: bool) -> None:
    """A history that was saved with LangChain's own function moves over whole."""
    saved = messages_to_dict(LANGCHAIN)
    text = in_lines(list(saved)) if lines else json.dumps(saved)
    [conversation] = read(written(tmp_path / "history.json", text))
    assert messages_from_dict([to_langchain_dict(message) for message in conversation.messages]) == LANGCHAIN


def test_each_line_of_a_store_file_is_one_user(tmp_path: Path) -> None:
    """The form of the measuring data: ids, threads, names and times are kept, what we do not know goes to extra."""
    turn = {
        "id": "23-0",
        "thread": "23",
        "name": "用户",
        "role": "user",
        "content": "我喜欢喝茶。",
        "place": "江苏南京",
    }
    stores = [
        {"store": name, "language": "zh", "messages": [turn | {"time": "2024年04月01日 周一 08:25"}], "questions": []}
        for name in ("s0", "s1")
    ]
    path = written(tmp_path / "stores.jsonl", in_lines(list(stores)))
    found = list(read_conversations(path, timezone=ZoneInfo("Asia/Shanghai")))
    assert [conversation.user for conversation in found] == ["s0", "s1"]
    message = found[0].messages[0]
    assert (message.message_id, message.thread, message.name) == ("23-0", "23", "用户")
    assert (message.time.isoformat(), message.extra) == ("2024-04-01T08:25:00+08:00", {"place": "江苏南京"})
    with pytest.raises(NaiveTimeError, match=r"stores\.jsonl, line 1, message 0: .*timezone="):
        read(path)


def test_reading_a_file_again_gives_the_same_messages(tmp_path: Path) -> None:
    """A second ingest of the same file must change nothing."""
    path = written(tmp_path / "a.json", json.dumps(TURNS))
    assert read(path) == read(path)


def test_a_file_that_has_grown_keeps_the_ids_of_what_it_held(tmp_path: Path) -> None:
    """Ingesting a log daily adds what is new."""
    path = written(tmp_path / "a.jsonl", in_lines(list(TURNS)))
    before = [message.message_id for message in read(path)[0].messages]
    written(path, in_lines([*TURNS, {"role": "user", "content": "I moved."}]))
    assert [message.message_id for message in read(path)[0].messages][:3] == before


def test_messages_without_a_time_were_said_when_the_file_was_written(tmp_path: Path) -> None:
    """The next best knowledge, the same at each reading; or the caller says."""
    path = written(tmp_path / "a.json", json.dumps(TURNS))
    os.utime(path, (86400, 86400))
    assert {message.time for message in read(path)[0].messages} == {datetime(1970, 1, 2, tzinfo=UTC)}
    said = datetime(2026, 3, 2, tzinfo=UTC)
    [conversation] = read_conversations(path, timezone=None, default_time=said)
    assert {message.time for message in conversation.messages} == {said}


def test_conversations_are_given_as_they_are_read(tmp_path: Path) -> None:
    """A file larger than memory can be read: what is behind the first line is not looked at yet."""
    path = written(tmp_path / "a.jsonl", json.dumps({"messages": TURNS}) + "\n{broken\n")
    conversations = read_conversations(path, timezone=None)
    assert len(next(conversations).messages) == 3
    with pytest.raises(FileFormatError, match="line 2"):
        next(conversations)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "a.jsonl",
            in_lines([TURNS[0]]) + '{"role": "user", "cont',
            r"a\.jsonl, line 2, column 18: it is not JSON.*Mend",
        ),
        ("a.jsonl", "{\n" + in_lines(list(TURNS)), r"a\.jsonl, line 1"),
        ("a.json", '[\n{"role": "user"\n}\n5]', r"a\.json, line 4, column 1"),
        ("a.jsonl", in_lines([TURNS[0], {"role": "user"}]), r"line 2: Field 'content'"),
        (
            "a.jsonl",
            in_lines([{"messages": [TURNS[0], 5]}]),
            r"line 1, message 1: A value of type int is not a message",
        ),
        ("a.jsonl", in_lines([{"messages": "x"}]), r"line 1.*no messages"),
        ("a.jsonl", in_lines([{"messages": TURNS, "user": 5}]), r"line 1, the user 5"),
        ("a.jsonl", in_lines([TURNS[0], {"messages": TURNS}]), r"line 2: .*mixed"),
        ("a.jsonl", in_lines([TURNS[0]]).encode() + b'{"role": "user", "content": "\xff"}', r"line 2: it is not UTF-8"),
        ("a.json", b'[\n{"role": "user", "content": "\xff"}]', r"line 2: it is not UTF-8"),
        ("a.jsonl", "[" * 200_000, "line 1"),
        ("a.json", "7", "message 0: A value of type int is not a message"),
        ("a.json", " \n ", "empty"),
        ("a.json", '{"role": "user", "content": "x", "time": "soon"}', "time"),
    ],
)
@pytest.mark.requirement("R1")
def test_an_unreadable_file_is_refused_by_its_line_with_the_cure(
    tmp_path: Path, name: str, text: str | bytes, words: str
) -> None:
    """In a file of a million lines, the number is what one needs."""
    with pytest.raises(FileFormatError, match=words) as caught:
        read(written(tmp_path / name, text))
    assert caught.value.cure


def test_a_missing_file_is_refused_with_its_path(tmp_path: Path) -> None:
    """One line that says what to check, not a traceback."""
    with pytest.raises(FileFormatError, match="No such file"):
        read(tmp_path / "none.json")
    with pytest.raises(FileFormatError, match="cannot be read"):
        read(tmp_path)
