"""What all commands about somebody's memories share: the options that say whose, where and how, each said once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remegraph.cli.options import ME, Agent, AsJson, Home, Project, Tenant, User, scope_of
from remegraph.cli.session import Output, guarded, open_kit
from remegraph.kit import MemoryKit
from remegraph.models import Scope

__all__ = ["Asked", "asked"]

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
