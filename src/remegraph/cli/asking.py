"""What all commands about somebody's memories share: the options that say whose, where and how, and ids cut short."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remegraph.cli.options import ME, Agent, AsJson, Home, Project, Tenant, User, scope_of
from remegraph.cli.session import Output, guarded, open_kit
from remegraph.errors import InputError
from remegraph.kit import MemoryKit
from remegraph.models import MOVES, Scope

__all__ = ["Asked", "asked", "full_id", "one_of"]

_UUID = 36
"""Characters of a whole id: what is as long is no beginning of one."""

_SHARED = tuple(
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
    for name, annotation, default in (
        ("user", User, ME),
        ("agent", Agent, None),
        ("project", Project, None),
        ("tenant", Tenant, "default"),
        ("home", Home, None),
        ("as_json", AsJson, False),
    )
)


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose memories a command is about, where they are, and where its results go."""

    scope: Scope
    home: Path | None
    out: Output

    def kit(self, model: str | None = None) -> AbstractContextManager[MemoryKit]:
        """Open the kit; see `open_kit`."""
        return open_kit(self.home, model=model)


def asked(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the shared options beside its own, which runs guarded.

    Args:
        command: Takes an `Asked`, then its own arguments and options.
    """

    def run(**given: Any) -> None:
        who = [given.pop(name) for name in ("user", "agent", "project", "tenant")]
        home, as_json = given.pop("home"), given.pop("as_json")
        with guarded(as_json=as_json) as out:
            command(Asked(scope_of(*who), home, out), **given)

    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [*own, *_SHARED]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


def full_id(kit: MemoryKit, given: str, scope: Scope) -> str:
    """Return the id of the one memory of this scope that begins as given; what was given where none does.

    Raises:
        InputError: Several do.
    """
    if not 0 < len(given) < _UUID:  # nothing to look up: to read all memories takes a while where there are many
        return given
    return one_of((memory.memory_id for memory in kit.memories(scope=scope, statuses=tuple(MOVES))), given, "memories")


def one_of(known: Iterable[str], given: str, what: str) -> str:
    """Return the one id that begins as given; what was given where none does, or where it is one itself.

    Args:
        known: The ids.
        given: The beginning of one.
        what: What they are the ids of.

    Raises:
        InputError: Several begin so.
    """
    found = [each for each in known if each.startswith(given)]
    if given in found or not found or not given:
        return given
    if len(found) > 1:
        raise InputError(f"{len(found)} {what} have an id that begins with {given}.", "Give more of the id.")
    return found[0]
