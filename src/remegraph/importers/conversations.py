"""Files of conversations: OpenAI chat and fine-tuning files, saved LangChain messages, and stores as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from remegraph.errors import FileFormatError, MessageError, NaiveTimeError
from remegraph.importers.messages import to_message
from remegraph.models import Message

__all__ = ["Conversation", "read_conversations"]

LINES = frozenset({".jsonl", ".ndjson"})
"""Suffixes of files that hold one JSON value per line; other files may, too."""

_IDS = UUID("5c0ee3d0-6c0b-5b36-9d54-0f3b8e1f0a11")
_SHAPES = (
    'Give a list of messages, {"messages": [...]}, or lines of either; a message is {"role": ..., "content": ...} or '
    "what LangChain's messages_to_dict writes."
)


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages of one person with an agent, in the order of the file."""

    user: str | None
    """The person, where the file says who it is (`user` or `store`)."""
    messages: tuple[Message, ...]


def read_conversations(
    path: Path, *, timezone: tzinfo | None, default_time: datetime | None = None
) -> Iterator[Conversation]:
    """Read the conversations of a file, one after the other; lines are read on demand.

    It may hold a JSON list of messages, `{"messages": [...]}`, a list of these, or JSON lines of any of them: one
    message per line is one conversation, one list or `{"messages": [...]}` per line is one each. Messages have any form
    that `to_message` reads; the names `user` or `store` beside `messages` name the person.

    A message without an id gets one that follows from the file's name, its place and its content: reading the same file
    again gives the same ids. A message that names no thread belongs to one named after the file and the conversation.

    Yields:
        Whole conversations. Nothing of a conversation is yielded before all of it was read and checked.

    Raises:
        NaiveTimeError: A time names no zone and none is given; names file and line.
        FileFormatError: The file cannot be read; names file and line.
    """
    try:
        with path.open("rb") as file:
            head = list(islice((line for line in file if line.strip()), 2))
        default_time = default_time or datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        raise FileFormatError(f"{path}: it cannot be read: {error.strerror}.", "Check the path.") from error
    if not head:
        raise FileFormatError(f"{path}: it is empty.", _SHAPES)
    reader = _Reader(path, timezone, default_time)
    by_line = path.suffix.lower() in LINES or (len(head) > 1 and _stands_alone(head[0]))
    yield from reader.lines() if by_line else reader.document()


def _stands_alone(line: bytes) -> bool:
    """Return whether a line is a JSON value of its own."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one file; every error that leaves it names the file and the place."""

    path: Path
    timezone: tzinfo | None
    default_time: datetime

    @property
    def name(self) -> str:
        """The name of the file without its suffix, encodable."""
        return self.path.stem.encode("utf-8", "replace").decode()

    def document(self) -> Iterator[Conversation]:
        """Read a file that is one JSON value."""
        value = self.parsed(self.path.read_bytes(), 1)
        if isinstance(value, list) and value and _holds_messages(value[0]):
            for index, item in enumerate(value):
                yield self.conversation(item, f"{self.name}:{index + 1}", f"conversation {index + 1}, ")
        elif isinstance(value, list) or _holds_messages(value):
            yield self.conversation(value, self.name, "")
        else:
            yield self.conversation([value], self.name, "")

    def lines(self) -> Iterator[Conversation]:
        """Read a file with one JSON value per line."""
        single: list[Message] = []
        kinds: set[bool] = set()
        for number, value in self.numbered():
            kinds.add(isinstance(value, list) or _holds_messages(value))
            if len(kinds) > 1:
                what = f"{self.path}, line {number}: messages and conversations are mixed."
                raise FileFormatError(what, "Give one message per line, or one conversation per line.")
            if True in kinds:
                yield self.conversation(value, f"{self.name}:{number}", f"line {number}, ")
            else:
                single.append(self.message(value, self.name, number, f"line {number}"))
        if single:
            yield Conversation(None, tuple(single))

    def numbered(self) -> Iterator[tuple[int, Any]]:
        """Yield each line's number, from 1, and its value."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, self.parsed(line.strip(), number)

    def parsed(self, text: bytes, line: int) -> Any:
        """Return the JSON value of a text that begins at this line."""
        try:
            return json.loads(text.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            line += text.count(b"\n", 0, error.start)
            raise FileFormatError(f"{self.path}, line {line}: it is not UTF-8.", "Save the file as UTF-8.") from error
        except json.JSONDecodeError as error:
            what = f"{self.path}, line {line + error.lineno - 1}, column {error.colno}: it is not JSON: {error.msg}."
            raise FileFormatError(what, "Mend or remove that line; nothing of it was taken.") from error
        except (ValueError, RecursionError) as error:
            what = f"{self.path}, line {line}: the JSON cannot be read: {error}."
            raise FileFormatError(what, "Mend or remove that line; nothing of it was taken.") from error

    def conversation(self, value: Any, thread: str, place: str) -> Conversation:
        """Return one conversation, checked as a whole."""
        user = None
        if isinstance(value, Mapping):
            user = value.get("user") or value.get("store")
            value = value.get("messages")
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise FileFormatError(f"{self.path}, {place or 'line 1'}: it holds no messages.", _SHAPES)
        if user is not None and not isinstance(user, str):
            raise FileFormatError(f"{self.path}, {place}the user {user!r} is not a name.", "Name the user with text.")
        return Conversation(
            user,
            tuple(self.message(item, thread, index, f"{place}message {index}") for index, item in enumerate(value)),
        )

    def message(self, value: Any, thread: str, index: int, place: str) -> Message:
        """Return one message, with an id that follows from its place and content where it has none."""
        if not isinstance(value, Mapping):
            what = f"{self.path}, {place}: A value of type {type(value).__name__} is not a message."
            raise FileFormatError(what, _SHAPES)
        try:
            found = to_message(value, thread=thread, default_time=self.default_time, timezone=self.timezone)
        except NaiveTimeError as error:
            raise NaiveTimeError(f"{self.path}, {place}: {error.what}", error.cure) from error
        except MessageError as error:
            raise FileFormatError(f"{self.path}, {place}: {error.what}", error.cure) from error
        if found.message_id:
            return found
        origin = json.dumps([self.path.name, thread, index, value], sort_keys=True)
        return found.evolve(message_id=str(uuid5(_IDS, origin)))


def _holds_messages(value: object) -> bool:
    return isinstance(value, Mapping) and "messages" in value
