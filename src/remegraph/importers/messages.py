"""Convert messages of other libraries to ours and back: nothing that they hold is lost.

LangChain is recognised by shape, never imported: this module is part of `import remegraph`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, tzinfo
from typing import Any, Protocol, runtime_checkable

from pydantic import ValidationError

from remegraph.errors import MessageError, NaiveTimeError
from remegraph.models import Message, Role, ToolCall

__all__ = [
    "ORIGIN",
    "ROLES",
    "LangChainMessage",
    "MessageLike",
    "at_index",
    "listed",
    "parse_time",
    "timed",
    "to_langchain_dict",
    "to_message",
    "to_messages",
]

NOON = time(12)
"""The hour for a day without one: it is the same day in nearly every zone."""

LATEST_SECONDS = 1e11
"""Unix seconds of the year 5138; larger numbers count something smaller than seconds."""

_CHINESE = re.compile(
    r"(?P<year>\d{4})年(?P<month>\d{1,2})月(?P<day>\d{1,2})日"
    r"(?:\s*(?:周|星期|礼拜)[一二三四五六日天])?"
    r"(?:\s*(?P<hour>\d{1,2})[:：](?P<minute>\d{2})(?:[:：](?P<second>\d{2}))?)?"
)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}|\d{8}")
_CURE = "Give an ISO 8601 time such as 2024-04-01T08:25:00Z, Unix seconds, or 2024年04月01日 周一 08:25."


def parse_time(value: object, *, timezone: tzinfo | None) -> datetime:
    """Read a time: a datetime, a date, ISO 8601, Chinese text, or Unix seconds, in the zone it was written in.

    A day without an hour is taken at noon; `timezone` is the zone of times that name none.

    Raises:
        NaiveTimeError: The time names no zone and none is given.
        MessageError: It is not a time.
    """
    if isinstance(value, bool):
        raise MessageError(f"The time {value!r} is not a time.", _CURE)
    if isinstance(value, int | float):
        return _from_seconds(value)
    try:
        found = _read(value)
    except ValueError as error:
        raise MessageError(f"The time {value!r} cannot be read: {error}.", _CURE) from error
    if found.utcoffset() is not None:
        return found
    if timezone is None:
        raise NaiveTimeError(f"The time {str(value)!r} does not say its zone.")
    return found.replace(tzinfo=timezone)


def _from_seconds(value: float) -> datetime:
    if not abs(value) < LATEST_SECONDS:
        raise MessageError(f"The time {value!r} is too large for Unix seconds.", "Give seconds, not milliseconds.")
    try:
        return datetime.fromtimestamp(value, UTC)
    except (OverflowError, OSError, ValueError) as error:
        raise MessageError(f"The time {value!r} is out of range.", _CURE) from error


def _read(value: object) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, NOON)
    if not isinstance(value, str):
        raise ValueError(f"a {type(value).__name__} is not a time")
    text = value.strip()
    if chinese := _CHINESE.fullmatch(text):
        day = datetime(int(chinese["year"]), int(chinese["month"]), int(chinese["day"]))  # noqa: DTZ001 - zone follows
        if chinese["hour"] is None:
            return datetime.combine(day, NOON)
        return day.replace(hour=int(chinese["hour"]), minute=int(chinese["minute"]), second=int(chinese["second"] or 0))
    found = datetime.fromisoformat(text)
    return datetime.combine(found, NOON) if _DAY.fullmatch(text) else found


@runtime_checkable
class LangChainMessage(Protocol):
    """The part of LangChain's `BaseMessage` by which it is recognised."""

    @property
    def type(self) -> str:
        """The class of message: human, ai, system, tool, function, chat, or a chunk of one."""
        ...

    @property
    def content(self) -> Any:
        """Text or content blocks."""
        ...

    def model_dump(self) -> dict[str, Any]:
        """Return all fields."""
        ...


MessageLike = Message | Mapping[str, object] | LangChainMessage | str
"""Our `Message`, a mapping (our fields, OpenAI chat, LangChain), a LangChain message, or text of the user."""

ORIGIN = "langchain"
"""Key in `Message.extra` of what a LangChain message holds beyond our fields."""

LEFT_OUT = "left_out"
"""Key in `Message.extra` of the metadata that JSON cannot hold, by path, with the type of each."""

ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
"""Our role for each role of OpenAI and type of LangChain."""

TYPES: dict[Role, str] = {"user": "human", "assistant": "ai", "system": "system", "tool": "tool"}
"""LangChain's type for each role of ours."""

_DEFAULTS: dict[str, object] = {
    "additional_kwargs": {},
    "response_metadata": {},
    "name": None,
    "id": None,
    "tool_calls": [],
    "invalid_tool_calls": [],
    "usage_metadata": None,
    "artifact": None,
    "tool_call_chunks": [],
    "chunk_position": None,
}
"""Defaults of LangChain's fields, which are not kept."""

_TIMES = ("time", "timestamp", "created_at")

_METADATA = frozenset({"additional_kwargs", "response_metadata", "artifact"})
"""Fields with objects of the host; what is not JSON is left out, and noted."""

_OWN = frozenset(
    {"message_id", "id", "thread", "role", "name", "content", "time", "timestamp", "created_at", "tool_calls",
     "tool_call_id", "ok", "task", "extra"}
)  # fmt: skip
_FORMS = (
    'Give a Message, an OpenAI dict {"role": ..., "content": ...}, a LangChain message or its dict, or the text of the '
    "user."
)
_JSON_CURE = "Give values that JSON can hold: text keys, no NaN, and bytes as base64 text."


def to_message(value: object, *, thread: str, default_time: datetime, timezone: tzinfo | None) -> Message:
    """Turn a message of any known form into ours. Its id may be empty; fields that ours lacks are in `extra`.

    Known are our `Message` (returned as is), mappings with our fields, of OpenAI chat or of LangChain
    (`messages_to_dict`, `dumpd`, or flat), a LangChain `BaseMessage`, and plain text of the user.

    Raises:
        NaiveTimeError: Its time names no zone and none is given.
        MessageError: It is not a message, or holds what cannot be recorded; names the field.
    """
    if isinstance(value, Message):
        return value
    fields: dict[str, object] = {"thread": thread, "time": default_time}
    if isinstance(value, str):
        if not value.strip():
            raise MessageError("The text is empty.", "Leave messages without words out.")
        return _validated(fields | {"role": "user", "content": value})
    if isinstance(value, Mapping):
        return _validated(fields | _from_mapping(value, timezone))
    if isinstance(value, LangChainMessage):
        return _validated(fields | _from_langchain(value.type, value.model_dump()))
    raise MessageError(f"A value of type {type(value).__name__} is not a message.", _FORMS)


def to_messages(
    values: Iterable[object],
    *,
    thread: str,
    default_time: datetime,
    timezone: tzinfo | None,
    take: Callable[[Message], Message] | None = None,
) -> tuple[Message, ...]:
    """Turn messages of any known form into ours, all or none; see `to_message`."""
    found: list[Message] = []
    for index, value in enumerate(listed(values)):
        with at_index(index):
            message = to_message(value, thread=thread, default_time=default_time, timezone=timezone)
            found.append(take(message) if take else message)
    return tuple(found)


def listed(values: object) -> Iterable[object]:
    """Return the messages as they are, if they come as a list."""
    if isinstance(values, str | Mapping | Message):
        raise MessageError(f"Messages come as a list, not as one {type(values).__name__}.", "Put it into a list.")
    if not isinstance(values, Iterable):
        raise MessageError(f"Messages come as a list, not as {type(values).__name__}.", _FORMS)
    return values


def timed(value: object) -> bool:
    """Return whether a message of any form names its time."""
    return isinstance(value, Message) or (
        isinstance(value, Mapping) and any(value.get(key) is not None for key in _TIMES)
    )


@contextmanager
def at_index(index: int) -> Iterator[None]:
    """Name the message that an error inside is about, by its index from 0."""
    try:
        yield
    except MessageError as error:
        raise type(error)(f"Message {index}: {error.what}", error.cure) from error


def to_langchain_dict(message: Message) -> dict[str, Any]:
    """Return the message as `langchain_core.messages.messages_from_dict` reads it.

    What came from LangChain comes back equal to what it was, an absent id included; other messages get the LangChain
    type of their role, and their `message_id` as id.
    """
    kept = message.extra.get(ORIGIN) if isinstance(message.extra, dict) else None
    if not (isinstance(kept, dict) and isinstance(kept.get("type"), str) and isinstance(kept.get("data"), dict)):
        kind = TYPES[message.role]
        return {"type": kind, "data": _shared(message, kind) | {"id": message.message_id or None}}
    return {"type": kept["type"], "data": _shared(message, _base(kept["type"])) | kept["data"]}


def _base(kind: str) -> str:
    """Return the LangChain type of a chunk's type, e.g. ai for AIMessageChunk; others as they are."""
    return kind.removesuffix("MessageChunk").lower()


def _shared(message: Message, base: str) -> dict[str, Any]:
    """Return the fields of a LangChain message of this type that follow from ours."""
    data: dict[str, Any] = {"content": message.content, "name": message.name or None}
    if base == "ai":
        calls = [{"name": call.name, "args": call.args, "id": call.call_id or None} for call in message.tool_calls]
        data["tool_calls"] = [call | {"type": "tool_call"} for call in calls if isinstance(call["args"], dict)]
        data["invalid_tool_calls"] = [
            call | {"args": _arguments(call["args"]), "error": None, "type": "invalid_tool_call"}
            for call in calls
            if not isinstance(call["args"], dict)
        ]
    if base == "tool":
        data |= {"tool_call_id": message.tool_call_id, "status": "error" if message.ok is False else "success"}
    return data


def _validated(fields: Mapping[str, object]) -> Message:
    try:
        return Message.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "message"
        reason = first["msg"].removeprefix("Value error, ")
        raise MessageError(f"Field {field!r}: {reason}.", _FORMS) from error


# --- mappings


def _from_mapping(value: Mapping[str, Any], timezone: tzinfo | None) -> dict[str, object]:
    rest = {key: item for key, item in value.items() if key not in {"type", "data", "lc", "kwargs"}}
    kind = value.get("type")
    if isinstance(kind, str) and isinstance(value.get("data"), Mapping):
        return _times(rest, timezone) | _from_langchain(kind, value["data"])
    if value.get("lc") == 1 and isinstance(kwargs := value.get("kwargs"), Mapping):
        return _from_langchain(str(kwargs.get("type", kind)), kwargs)
    if isinstance(kind, str) and "content" in value and ("role" not in value or _base(kind) == "chat"):
        data = {key: item for key, item in value.items() if key != "time"}
        return _times(rest, timezone) | _from_langchain(kind, data)
    return _times(value, timezone) | _from_chat(value)


def _times(value: Mapping[str, Any], timezone: tzinfo | None) -> dict[str, object]:
    """Return the time and the thread that a mapping names, if any."""
    found: dict[str, object] = {}
    for key in _TIMES:
        if value.get(key) is not None:
            found["time"] = parse_time(value[key], timezone=timezone)
            break
    if value.get("thread"):
        found["thread"] = value["thread"]
    return found


def _from_chat(value: Mapping[str, Any]) -> dict[str, object]:
    """Return our fields from a mapping with our names or OpenAI's."""
    role = ROLES.get(value["role"]) if isinstance(value.get("role"), str) else None
    if role is None:
        known = ", ".join(ROLES)
        raise MessageError(f"Field 'role': {value.get('role')!r} is not a role.", f"Give one of {known}.")
    calls = _calls(value)
    content = value.get("content")
    if content is None and role != "assistant" and not calls:
        raise MessageError("Field 'content': it is missing.", "Give text or a list of content parts.")
    extra = {key: item for key, item in value.items() if key not in _OWN}
    if value["role"] != role:
        extra["role"] = value["role"]
    if value.get("tool_calls") and value["tool_calls"] not in (_openai(calls), [call.model_dump() for call in calls]):
        extra["tool_calls"] = value["tool_calls"]
    own_extra = value.get("extra") or {}
    if not isinstance(own_extra, Mapping):
        raise MessageError("Field 'extra': it is not a mapping.", 'Give a mapping, as {"extra": {"place": "Lisbon"}}.')
    return {
        "message_id": value.get("message_id") or value.get("id") or "",
        "role": role,
        "name": value.get("name") or "",
        "content": "" if content is None else _json_only(content, "content"),
        "tool_calls": calls,
        "tool_call_id": value.get("tool_call_id") or "",
        "ok": _outcome(value) if role == "tool" else None,
        "task": value.get("task") or "",
        "extra": _json_only(extra | dict(own_extra), "extra"),
    }


def _outcome(value: Mapping[str, Any]) -> bool | None:
    """Return whether a tool result says that the call succeeded; None if it does not say."""
    for key, good in (("ok", True), ("success", True), ("is_error", False)):
        if isinstance(value.get(key), bool):
            return bool(value[key]) is good
    return {"success": True, "error": False}.get(str(value.get("status")))


def _calls(value: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """Return the calls of a mapping: OpenAI's, LangChain's or ours, and OpenAI's older single `function_call`."""
    listed = value.get("tool_calls") or ()
    if not isinstance(listed, list | tuple):
        raise MessageError("Field 'tool_calls': it is not a list.", "Give a list of calls, as OpenAI does.")
    older = value.get("function_call")
    return tuple(
        _call(call, f"tool_calls.{index}")
        for index, call in enumerate([*listed, *([{"function": older}] if isinstance(older, Mapping) else [])])
    )


def _call(value: object, field: str) -> ToolCall:
    if isinstance(value, ToolCall):
        return value
    if not isinstance(value, Mapping):
        raise MessageError(
            f"Field {field!r}: a value of type {type(value).__name__} is not a tool call.", "Give it as OpenAI does."
        )
    inner = value.get("function") or value.get("custom") or value
    name = inner.get("name") if isinstance(inner, Mapping) else None
    if not isinstance(name, str):
        raise MessageError(f"Field {field!r}: the call names no tool.", 'Give {"function": {"name": ...}}.')
    args: object = next((inner[key] for key in ("arguments", "args", "input") if inner.get(key) is not None), {})
    call_id = value.get("call_id") or value.get("id") or ""
    try:
        return ToolCall(name=name, args=_json_only(_parsed(args), field), call_id=call_id)
    except ValidationError as error:
        raise MessageError(f"Field {field!r}: the call id {call_id!r} is not text.", "Give it as text.") from error


def _parsed(arguments: object) -> object:
    """Return the value of a text of arguments; the text itself if it is not JSON."""
    if not isinstance(arguments, str):
        return arguments
    try:
        parsed: object = json.loads(arguments, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return arguments
    return parsed


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


def _arguments(args: object) -> str:
    return args if isinstance(args, str) else json.dumps(args, ensure_ascii=False)


def _openai(calls: Iterable[ToolCall]) -> list[dict[str, Any]]:
    """Return calls in OpenAI's form; anything equal to it need not be kept."""
    return [
        {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": _arguments(call.args)}}
        for call in calls
    ]


# --- LangChain


def _from_langchain(kind: str, data: Mapping[str, Any]) -> dict[str, object]:
    """Return our fields from a LangChain message, with everything else in `extra`."""
    base = _base(kind)
    speaker = str(data.get("role")) if base == "chat" else base
    role = ROLES.get(speaker.lower(), "assistant" if base == "chat" else None)
    if role is None:
        what = f"A LangChain message of type {kind!r} is nothing that was said."
        raise MessageError(what, "Leave it out; known are human, ai, system, tool, function and chat.")
    kept, left_out = _keepable(data)
    fields: dict[str, object] = {
        "message_id": kept.get("id") or "",
        "role": role,
        "name": kept.get("name") or (speaker if speaker.lower() not in ROLES else ""),
        "content": kept.get("content", ""),
        "tool_calls": tuple(_call(call, f"tool_calls.{i}") for i, call in enumerate(kept.get("tool_calls") or ())),
        "tool_call_id": kept.get("tool_call_id") or "",
        "ok": {"success": True, "error": False}.get(str(data.get("status", "success"))) if base == "tool" else None,
    }
    implied = _DEFAULTS | _shared(_validated(fields | {"time": datetime.min.replace(tzinfo=UTC)}), base)
    beyond = {key: item for key, item in ({"name": None} | kept).items() if key not in implied or implied[key] != item}
    beyond.pop("type", None)
    extra: dict[str, object] = {ORIGIN: {"type": kind, "data": beyond}}
    return fields | {"extra": extra | ({LEFT_OUT: left_out} if left_out else {})}


def _keepable(data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Split the fields of a LangChain message into what JSON holds, and the paths of metadata that it does not."""
    kept: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for key, value in data.items():
        if key not in _METADATA:
            kept[key] = _json_only(value, key)
        elif _is_json(value):
            kept[key] = value
        elif isinstance(value, Mapping):
            kept[key] = {name: item for name, item in value.items() if _is_json({name: item})}
            left_out |= {f"{key}.{name}": type(item).__name__ for name, item in value.items() if name not in kept[key]}
        else:
            left_out[key] = type(value).__name__
    return kept, left_out


def _json_only(value: Any, field: str) -> Any:
    if not _is_json(value):
        raise MessageError(f"Field {field!r}: JSON cannot hold it.", _JSON_CURE)
    return value


def _is_json(value: object) -> bool:
    """Return whether a value comes back from JSON as it was (numbers as keys, for one, do not)."""
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError, RecursionError):
        return False
