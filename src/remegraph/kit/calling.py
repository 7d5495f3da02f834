"""What the kit's verbs have in common: async twins, and checks at the door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from datetime import datetime, tzinfo
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from remegraph.errors import InputError, LedgerUnavailableError, NaiveTimeError, OutcomeUnknownError, ScopeError
from remegraph.models import Scope
from remegraph.models.base import encodable
from remegraph.settings import Settings

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

__all__ = [
    "ALONE",
    "acting",
    "actor_of",
    "check_numbers",
    "check_text",
    "check_times",
    "library",
    "required",
    "settled",
    "stream",
    "twin",
    "zone",
]

ALONE: RunnableConfig = {"configurable": {"__pregel_durability": "async"}}
"""How graphs without a checkpointer run within those of a host that waits for each of its checkpoints: there LangGraph
waits for one of ours, too, which there is not, and fails. The name is its own affair: tests say when it is another."""

_MOST = 2**31 - 1
"""More than this of anything is no count, and no time: SQL would refuse it, long after the call."""

K = TypeVar("K")
P = ParamSpec("P")
T = TypeVar("T")

_PART = 500


def twin(verb: Callable[Concatenate[K, P], T]) -> Callable[Concatenate[K, P], Coroutine[Any, Any, T]]:
    """Return the async twin of a verb that waits for the ledger only: the same code in a thread.

    Args:
        verb: The verb, as a method.
    """

    @wraps(verb)
    async def run(self: K, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(verb, self, *args, **kwargs)

    return run


def stream(verb: Callable[Concatenate[K, P], Iterator[T]]) -> Callable[Concatenate[K, P], AsyncIterator[T]]:
    """Return the async twin of a verb that yields what it reads from the ledger: the same code in a thread, by parts.

    Args:
        verb: The verb, as a method.
    """

    @wraps(verb)
    async def run(self: K, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        found = await asyncio.to_thread(verb, self, *args, **kwargs)
        while part := await asyncio.to_thread(lambda: list(islice(found, _PART))):
            for each in part:
                yield each

    return run


def settled(write: Callable[[], T]) -> T:
    """Do a write that carries its ids, and once more where its outcome is unknown: the second finds what the first did.

    Args:
        write: Records, and does nothing where all is recorded.

    Raises:
        OutcomeUnknownError: The ledger could not be asked again.
    """
    try:
        return write()
    except OutcomeUnknownError as unknown:
        try:
            return write()
        except LedgerUnavailableError as error:
            raise unknown from error


def library(scope: Scope, settings: Settings) -> Scope:
    """Return the scope that an agent's memories live under: its own, or that of all agents of the user.

    Args:
        scope: Who calls.
        settings: Say what the agent shares.
    """
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
            told = "beyond use" if fits and abs(cast("float", value)) > _MOST else repr(value)
            kind = "whole number" if whole else "number"
            raise InputError(f"{name} is {told}.", f"Give a {kind}, {least} or more, up to {_MOST}.")


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
