"""Who calls: one answer for all surfaces, from what the caller, the run and the server say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, tzinfo
from typing import Annotated, Any, Literal, Protocol, get_args

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langgraph.runtime import ServerInfo, get_runtime
from pydantic import Field, ValidationError

from remegraph.errors import InputError, ScopeError, SetupError
from remegraph.kit import MemoryKit
from remegraph.kit.validation import here, zone
from remegraph.models import Scope
from remegraph.models.base import Record, Token

__all__ = [
    "MemoryMode",
    "RuntimeLike",
    "ScopeSource",
    "asked_now",
    "check_surface",
    "memory_mode",
    "resolve_scope",
    "run_id",
    "thread_of",
    "usual_mode",
    "zone_of",
]

MemoryMode = Literal["on", "read", "off"]
"""on: recalled and recorded; read: recalled, and nothing is recorded or learned; off: neither."""

_Name = Annotated[Token, Field(min_length=1)]

_KEYS = {
    "user": ("user_id", "user", "langgraph_user_id"),
    "tenant": ("tenant_id", "tenant"),
    "agent": ("agent_id", "agent"),
    "project": ("project_id", "project"),
}
"""Names of each field of a scope in a context or in `configurable`; the first that is there counts."""

_CURE = (
    'Name the user: context={"user_id": ...} or config={"configurable": {"user_id": ...}} with the run, '
    "or scope=Scope(user=...) with the surface."
)


_MODES: tuple[MemoryMode, ...] = get_args(MemoryMode)
"""The stricter, the later."""


class ScopeSource(Record):
    """The fields of a scope that are the same for all calls; the user comes with each run."""

    tenant: _Name = Field(default="default", description="The organisation, where the run names none.")
    agent: _Name | None = Field(default=None, description="The agent, where the run names none.")
    project: _Name | None = Field(default=None, description="The project, where the run names none.")


class RuntimeLike(Protocol):
    """The common part of `langgraph.runtime.Runtime` and `ToolRuntime`."""

    @property
    def context(self) -> object:
        """The caller's `context`."""
        ...

    @property
    def server_info(self) -> ServerInfo | None:
        """The Agent Server's information on the run."""
        ...


def check_surface(kit: object, scope: object = None) -> None:
    """Refuse what a surface cannot work with when it is made, not at the first message of a user.

    Args:
        kit: Anything that can recall; a wrapper of a kit can.
        scope: A scope, what all runs have in common, or nothing.

    Raises:
        SetupError: The kit is none.
        ScopeError: The scope is none.
    """
    if isinstance(kit, type) or not callable(getattr(kit, "recall", None)):
        cure = "Give what MemoryKit.open(...) returns, or await MemoryKit.aopen(...) first."
        raise SetupError(f"kit is of type {type(kit).__name__}.", cure)
    if scope is not None and not isinstance(scope, Scope | ScopeSource):
        raise ScopeError(f"A scope is needed, not {type(scope).__name__}.")


def resolve_scope(
    explicit: Scope | ScopeSource | None = None,
    *,
    runtime: RuntimeLike | None = None,
    config: RunnableConfig | None = None,
) -> Scope:
    """Return who calls. The first that names a user decides, whole: fields are never mixed from two sources.

    In this order: an explicit `Scope`; `runtime.context` (a `Scope`, or an object or mapping with `user_id` or `user`,
    and optionally `tenant_id`, `agent_id`, `project_id`, or these without `_id`); `config["configurable"]`, with the
    same keys and `langgraph_user_id`; the user whom the Agent Server authenticated. Names are compared, never parsed.

    Args:
        explicit: The scope, or what all calls have in common.
        runtime: The runtime of the node or tool; that of the run at hand unless given.
        config: The config of the run; that of the run at hand unless given.

    Raises:
        ScopeError: No user is named, or a name is no text or empty: that is never taken for no name.
    """
    if isinstance(explicit, Scope):
        return explicit
    if explicit is not None and not isinstance(explicit, ScopeSource):
        raise ScopeError(f"A scope is needed, not {type(explicit).__name__}.")
    for source in _sources(runtime or _running(), ensure_config(config)):
        if isinstance(source, Scope):
            return source
        named = _named(source)
        if "user" in named:
            return _scope(dict(explicit or ScopeSource()) | named)
    raise ScopeError("The user is not known.", _CURE)


def run_id(config: RunnableConfig) -> str:
    """Return the name of a run, as the Agent Server or the host gives it in `configurable` or `metadata`; else nothing."""
    places = (config.get("configurable", {}), config.get("metadata", {}))
    return next((str(place["run_id"]) for place in places if place.get("run_id") is not None), "")


def zone_of(runtime: RuntimeLike | None = None) -> tzinfo | None:
    """Return the time zone of the person: `timezone` in the context or `configurable` of the run; `None` where there is none.

    Args:
        runtime: The runtime of the node or tool; that of the run at hand unless given.

    Raises:
        InputError: There is no such zone.
    """
    for source in _sources(runtime or _running(), ensure_config()):
        named = _value(source, "timezone")
        if named is not None:
            return zone(named)
    return None


def memory_mode(
    usual: MemoryMode = "on", *, runtime: RuntimeLike | None = None, config: RunnableConfig | None = None
) -> MemoryMode:
    """Return what memory may do in the run at hand: `memory` in its context or `configurable`, else what is usual.

    Where both say something, the stricter word counts.

    Args:
        usual: What holds where the run says nothing.
        runtime: The runtime of the node or tool; that of the run at hand unless given.
        config: The config of the run; that of the run at hand unless given.

    Raises:
        InputError: The run says another word; it is never taken for "on".
    """
    named = [_mode(_value(source, "memory")) for source in _sources(runtime or _running(), ensure_config(config))]
    return max((each for each in named if each), key=_MODES.index, default=usual)


def usual_mode(given: object) -> MemoryMode:
    """Return the mode of runs that say none.

    Raises:
        InputError: It is none.
    """
    if (mode := _mode(given)) is None:
        raise InputError(f"memory is {given!r}.", "Give on, read or off.")
    return mode


def _mode(named: object) -> MemoryMode | None:
    """Return the mode that a value names; None where it is none of ours, but something of the host's of that name."""
    if not isinstance(named, str | bool):
        return None
    mode = next((each for each in _MODES if each == named), None)
    if mode is None:
        raise InputError(f"memory is {named!r}.", "Give on, read or off.")
    return mode


def asked_now(kit: MemoryKit, runtime: RuntimeLike | None = None) -> datetime:
    """Return the moment as the person's clock shows it, for a question that says "yesterday".

    Args:
        kit: The memory, whose clock counts.
        runtime: The runtime of the node or tool; that of the run at hand unless given.

    Raises:
        InputError: The run names a time zone that does not exist.
    """
    return here(kit.context.clock(), zone_of(runtime))


def thread_of(config: RunnableConfig) -> str:
    """Return the thread of a run, as `configurable` names it; else nothing."""
    thread = config.get("configurable", {}).get("thread_id")
    return "" if thread is None else str(thread)


def _running() -> RuntimeLike | None:
    """Return the runtime of the graph that we run in, if any."""
    with suppress(RuntimeError, KeyError):  # outside of any run; in a run whose config was made by hand
        return get_runtime()
    return None


def _sources(runtime: RuntimeLike | None, config: RunnableConfig) -> Iterator[object]:
    if runtime is not None:
        yield runtime.context
    yield config.get("configurable")
    if runtime is not None and runtime.server_info is not None and runtime.server_info.user is not None:
        yield {"user_id": runtime.server_info.user.identity}


def _value(source: object, key: str) -> Any:
    """Return what a mapping or an object says under a name; None where it says nothing."""
    return source.get(key) if isinstance(source, Mapping) else getattr(source, key, None)


def _named(source: object) -> dict[str, object]:
    """Return the fields of a scope that a mapping or an object names."""
    found: dict[str, object] = {}
    for field, keys in _KEYS.items():
        values = (_value(source, key) for key in keys)
        value = next((value for value in values if value is not None), None)
        if value is not None:
            found[field] = value
    return found


def _scope(fields: dict[str, object]) -> Scope:
    try:
        return Scope.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = str(first["loc"][0])
        raise ScopeError(
            f"The {field} of this run, {fields[field]!r}, names no one: {first['msg']}.", "Give text, free of NUL."
        ) from error
