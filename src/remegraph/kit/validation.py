"""Checks of what the kit's verbs are given, and who it says is asking."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, tzinfo
from os import PathLike, fspath
from pathlib import Path
from typing import cast, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from remegraph.errors import InputError, NaiveTimeError, ScopeError, SetupError
from remegraph.models import Scope, Topic, TopicType
from remegraph.models.base import encodable
from remegraph.settings import Settings

__all__ = [
    "File",
    "acting",
    "actor_of",
    "check_choice",
    "check_choices",
    "check_numbers",
    "check_text",
    "check_times",
    "check_type",
    "here",
    "library",
    "path_of",
    "required",
    "topic_of",
    "zone",
]

File = str | PathLike[str]
"""The path of a file."""

_MOST = 2**31 - 1
"""More than this of anything is no count, and no time: SQL would refuse it, long after the call."""


def library(scope: Scope, settings: Settings) -> Scope:
    """Return the scope that an agent's memories live under: its own, or that of all agents of the user."""
    return scope.evolve(agent=None) if settings.for_agent(scope.agent).library == "shared" else scope


def required(scope: object) -> Scope:
    """Return the scope.

    Raises:
        ScopeError: It is none.
    """
    if not isinstance(scope, Scope):
        raise ScopeError(f"A scope is needed, not {type(scope).__name__}.")
    return scope


def acting(scope: object) -> Scope:
    """Return the scope, which must name an agent.

    Raises:
        ScopeError: It is none, or names none.
    """
    found = required(scope)
    if found.agent is None:
        raise ScopeError(
            "The scope names no agent.", "Only an agent has memories of its own: Scope(user=..., agent=...)."
        )
    return found


def actor_of(scope: Scope) -> str:
    """Return who acts, for the journal."""
    return scope.agent or "operator"


def zone(timezone: str | tzinfo | None) -> tzinfo | None:
    """Return a time zone by name.

    Raises:
        InputError: There is no such zone.
    """
    if timezone is None or isinstance(timezone, tzinfo):
        return timezone
    check_text(timezone=timezone)
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InputError(f"There is no time zone {timezone!r}.", "Use a name such as Asia/Shanghai.") from error


def here(now: datetime, timezone: tzinfo | None) -> datetime:
    """Return a moment as the clocks of a zone show it."""
    return now.astimezone(timezone) if timezone else now


def check_text(**texts: object) -> None:
    """Refuse what is no text, or text that nothing can be called by.

    Raises:
        InputError: One is not; it is named.
    """
    for name, value in texts.items():
        if not isinstance(value, str):
            raise InputError(f"{name} is of type {type(value).__name__}.", "Give text.")
        if "\x00" in value or not encodable(value):
            raise InputError(f"{name} holds NUL or lone surrogates.", "Give text that can be written as UTF-8.")


def check_numbers(*, least: int, whole: bool, **numbers: object) -> None:
    """Refuse what is no number, and numbers that are too small or beyond use. None is let pass: it was not given.

    Args:
        least: The least that will do.
        whole: Whether only whole numbers will do.
        numbers: What is checked, by name.

    Raises:
        InputError: One is not; it is named.
    """
    for name, value in numbers.items():
        fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        if value is not None and not (fits and least <= cast("float", value) <= _MOST):
            # Python refuses to spell out what is huge
            shown = "beyond use" if fits and abs(cast("float", value)) > _MOST else repr(value)
            kind = "whole number" if whole else "number"
            raise InputError(f"{name} is {shown}.", f"Give a {kind}, {least} or more, up to {_MOST}.")


def check_choice(known: object, **chosen: object) -> None:
    """Refuse what is none of the words of a `Literal`.

    Raises:
        InputError: One is not; it is named.
    """
    for name, value in chosen.items():
        if value not in get_args(known):
            raise InputError(f"There is no {name} {value!r}.", f"Give one of {', '.join(get_args(known))}.")


def check_choices(known: object, **chosen: Collection[object]) -> None:
    """Refuse what is no list of words of a `Literal`.

    Raises:
        InputError: One is not; it is named.
    """
    for name, values in chosen.items():
        if isinstance(values, str) or not all(value in get_args(known) for value in values):
            raise InputError(f"{name} is {values!r}.", f"Give a list of {', '.join(get_args(known))}.")


def check_type(kind: type, **given: object) -> None:
    """Refuse what is of another type. None is let pass: it was not given.

    Raises:
        SetupError: One is; it is named.
    """
    for name, value in given.items():
        if value is not None and not isinstance(value, kind):
            raise SetupError(f"{name} is of type {type(value).__name__}.", f"Give {kind.__name__}(...).")


def check_times(**times: datetime | None) -> None:
    """Refuse what is no time, and times that do not say their zone.

    Raises:
        InputError: One is no time; it is named.
        NaiveTimeError: One does not say its zone.
    """
    for name, value in times.items():
        if not isinstance(value, datetime | None):
            raise InputError(f"{name} is of type {type(value).__name__}.", "Give an aware datetime.")
        if value is not None and value.utcoffset() is None:
            raise NaiveTimeError(f"{name} does not say its time zone.", "Give an aware datetime.")


def path_of(path: object) -> Path:
    """Return a path.

    Raises:
        InputError: It is none.
    """
    if not isinstance(path, str | PathLike):
        raise InputError(f"The path is of type {type(path).__name__}.", "Give the path of a file.")
    text = fspath(cast("File", path))
    check_text(path=text)
    return Path(text)


def topic_of(key: object) -> Topic:
    """Return the topic of a key `type:name`.

    Raises:
        InputError: It is no such key.
    """
    kind, _, name = key.partition(":") if isinstance(key, str) else ("", "", "")
    if kind not in get_args(TopicType) or not name.strip():
        raise InputError(f"The topic is {key!r}.", f"Give type:name, of type {', '.join(get_args(TopicType))}.")
    check_text(topic=name)
    return Topic(type=cast("TopicType", kind), target_name=name)
