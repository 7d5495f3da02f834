"""Whether a tool call failed, as its result tells, and which errors are one and the same; English and Chinese."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import Any

from remegraph.rules.tables import table

__all__ = ["call_digest", "error_class", "error_kind", "error_line", "failed", "outcome", "without_values"]

_LINE = 200
_SEARCHED = 2_000
_KIND = 120
"""Characters of an error, and of its kind, that are kept."""

_TRACEBACK = "Traceback (most recent call last)"

_MARKS = [
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>，。]+", re.IGNORECASE), "<url>"),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), "<address>"),
    (re.compile(r"(?:\b[A-Za-z]:\\|(?<![\w<])~?/)[^\s\"':,，。；)）]+"), "<path>"),
    (re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`|“[^”]*”|「[^」]*」"), "<value>"),
    (re.compile(r"(?<![A-Za-z0-9_<-])(?=[A-Za-z0-9_-]*[A-Za-z_-])(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]+"), "<id>"),
    (re.compile(r"[-+]?[0-9]+(?:[.,:][0-9]+)*"), "<n>"),
]
"""What differs between errors that are one: the narrower mark first, as what it covers may hold others."""


def outcome(text: str, *, told: bool | None) -> bool | None:
    """Return whether a call succeeded; none where nothing came back that could tell.

    What the host says of a failure holds. That nothing was raised is no success where the text is that of an error:
    frameworks call each result a success that a tool returns.

    Args:
        text: What came back.
        told: What the host says.
    """
    if told is False or failed(text):
        return False
    return True if text.strip() else told


def failed(text: str) -> bool:
    """Return whether a result is that of an error: by how it begins, or by the fields of a JSON object.

    Args:
        text: What came back.
    """
    start = text.strip()
    if start.startswith("{"):
        try:
            value = json.loads(start)
        except (ValueError, RecursionError):
            return False
        return isinstance(value, dict) and _tells(value)
    return _begins().match(start) is not None


def error_line(text: str, redact: Callable[[str], str] = str) -> str:
    """Return the line of an error that says what it is: the first, of a JSON object its error, of a traceback the last.

    Args:
        text: What came back.
        redact: Takes what is private out of the line before it is cut.
    """
    start = text.strip()
    if start.startswith("{"):
        try:
            value = json.loads(start)
        except (ValueError, RecursionError):
            value = None
        said = _said(value) if isinstance(value, dict) else ""
        start = said or start
    line = start.rpartition("\n")[2] if start.startswith(_TRACEBACK) else start.partition("\n")[0]
    return redact(line.strip()[:_SEARCHED])[:_LINE]


def error_kind(line: str) -> str:
    """Return an error without what differs from call to call, so that equal errors count together.

    Args:
        line: From `error_line`.
    """
    for pattern, mark in _MARKS:
        line = pattern.sub(mark, line)
    return " ".join(line.split())[:_KIND]


def error_class(line: str) -> str:
    """Return the class of an error, one of a few, whatever words a tool has for it; `other` where none fits.

    Args:
        line: From `error_line`.
    """
    return next((name for name, signs in _classes().items() if signs.search(line)), "other")


def without_values(text: str) -> str:
    """Return a text without what differs from case to case: numbers, ids, paths and what is quoted.

    Args:
        text: What is to be done, as a person says it.
    """
    for pattern, _ in _MARKS:
        text = pattern.sub(" ", text)
    return " ".join(text.split())


def call_digest(tool: str, args: object) -> str:
    """Return the digest of a tool and its arguments, in whatever order they were given.

    Args:
        tool: The tool.
        args: Its arguments, as JSON where they are; what is not JSON counts by its type.
    """
    text = json.dumps([tool, args], sort_keys=True, default=lambda value: type(value).__name__)
    return sha256(text.encode()).hexdigest()


def _tells(value: Mapping[str, Any]) -> bool:
    fields = _fields()
    filled = {name for name, held in value.items() if held not in (None, "", False, [], {})}
    return (
        any(name in filled for name in fields["filled"])
        or (bool(filled) and filled <= set(fields["alone"]))
        or any(value.get(name) is False for name in fields["false"])
        or any(value.get(name) is True for name in fields["true"])
        or any(str(value.get(name)).casefold() in words for name, words in fields["said"].items())
    )


def _said(value: Mapping[str, Any]) -> str:
    """Return what an object that tells of an error says of it."""
    for name in (*_fields()["filled"], *_fields()["alone"], "message", "detail"):
        held = value.get(name)
        if isinstance(held, Mapping):
            held = held.get("message") or json.dumps(held, ensure_ascii=False)
        elif isinstance(held, Sequence) and not isinstance(held, str) and held:
            held = json.dumps(held[0], ensure_ascii=False)
        if isinstance(held, str) and held.strip():
            return held.strip()
    return ""


@cache
def _begins() -> re.Pattern[str]:
    patterns = [pattern for each in table("tool_outcomes")["begins"].values() for pattern in each]
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


@cache
def _classes() -> Mapping[str, re.Pattern[str]]:
    return {name: re.compile(signs, re.IGNORECASE) for name, signs in table("tool_outcomes")["classes"].items()}


def _fields() -> Mapping[str, Any]:
    fields: Mapping[str, Any] = table("tool_outcomes")["fields"]
    return fields
