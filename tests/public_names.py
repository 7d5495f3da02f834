"""What is public, as text: names with their fields and signatures, commands with their options.

`make api` writes it to `public_api.txt`; `test_public_api.py` compares. The pages of the reference say what is public.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Annotated, Any, ForwardRef, get_origin

from pydantic import BaseModel

import remegraph
from remegraph.cli.app import whole

__all__ = ["LIST", "described", "named"]

LIST = Path(__file__).with_name("public_api.txt")
_HOMES = re.compile(r"\b(?:[a-z_]+\.)+")
_REFERENCE = Path(__file__).parents[1] / "docs" / "reference"


class _Bare:
    """Text that shows itself without quotes in a signature."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def described() -> str:
    """Return all that is public, a line each."""
    pages = sorted(_REFERENCE.glob("*.md"))
    paths = [path for page in pages for path in re.findall(r"^::: (\S+)", page.read_text("utf-8"), re.MULTILINE)]
    public = [pair for path in paths for pair in named(path)]
    known = frozenset(value for _, value in public if isinstance(value, type))
    lines = ["# What is public (docs/versioning.md). `make api` writes it.", ""]
    lines += [f"remegraph.{name}" for name in remegraph.__all__]
    lines += [line for name, value in public for line in _lines(name, value, known)]
    return "\n".join([*lines, *_commands("remegraph", whole()), ""])


def named(path: str) -> list[tuple[str, Any]]:
    """Return the names in `__all__` of a module, or the one class or function that a page names."""
    home, _, name = path.rpartition(".")
    one = getattr(import_module(home), name, None)
    if one is not None and not isinstance(one, ModuleType):
        return [(path, one)]
    module = import_module(path)
    names = sorted(module.__all__, key=lambda each: (0 if each.isupper() else 1 if each[0].isupper() else 2, each))
    return [(f"{path}.{each}", getattr(module, each)) for each in names]


def _lines(name: str, value: Any, known: frozenset[type]) -> Iterator[str]:
    if isinstance(value, FunctionType):
        yield _signature(name, value)
    elif isinstance(value, type):
        shown = [base.__name__ for base in value.__bases__ if base in known or not (_ours(base) or base is object)]
        yield f"class {name}({', '.join(shown)})".removesuffix("()")
        bases = [base for base in value.__mro__ if _ours(base) and (base is value or base not in known)]
        lines = {line for base in bases for line in _members(value, base)}
        yield from (f"    {line}" for line in sorted(lines, key=lambda line: line.removeprefix("async ")))
    elif get_origin(value):
        meant = _text(value.__origin__ if get_origin(value) is Annotated else value)
        yield f"{name} = {_HOMES.sub('', meant)}"
    else:
        yield f"{name}: {type(value).__name__}"


def _members(whole: type, base: type) -> Iterator[str]:
    """Return the lines of what a base gives a class, unless it is given anew further down."""
    for name, note in inspect.get_annotations(base).items():
        if not name.startswith("_"):
            yield f"{name}: {_text(note)}{_default(whole, name)}"
    for name, member in vars(base).items():
        made = name == "__init__" and not base.__module__.startswith("remegraph.kit.")  # a kit and its parts are opened
        if (name.startswith("_") and not made) or inspect.getattr_static(whole, name) is not member:
            continue
        function = getattr(member, "__func__", member)  # of a class method or a static one
        if isinstance(member, Enum):
            yield f"{name} = {member.value!r}"
        elif isinstance(member, property) and member.fget:
            yield f"{name}: {_text(inspect.get_annotations(member.fget)['return'])}"
        elif isinstance(function, FunctionType) and _ours(function):
            yield _signature(name, function)


def _default(owner: type, name: str) -> str:
    field = owner.model_fields.get(name) if issubclass(owner, BaseModel) else None
    if field is None or field.is_required():
        return ""
    return " = ..." if field.default_factory else f" = {_plain(field.default)!r}"


def _signature(name: str, function: FunctionType) -> str:
    found = inspect.signature(function)
    parameters = [
        each.replace(annotation=_bare(each.annotation), default=_plain(each.default))
        for each in found.parameters.values()
    ]
    shown = found.replace(parameters=parameters, return_annotation=_bare(found.return_annotation))
    return f"{'async ' * inspect.iscoroutinefunction(function)}{name}{shown}"


def _bare(note: Any) -> Any:
    return note if note is inspect.Parameter.empty else _Bare(_text(note))


def _text(note: Any) -> str:
    if isinstance(note, ForwardRef):
        return note.__forward_arg__
    return note if isinstance(note, str) else inspect.formatannotation(note)


def _plain(default: Any) -> Any:
    """Return what shows the same in every process: no address, no order of a set."""
    if isinstance(default, frozenset | set):
        return _Bare(f"{{{', '.join(sorted(map(repr, default)))}}}")
    return _Bare(getattr(default, "__name__", "...")) if " at 0x" in repr(default) else default


def _ours(thing: type | FunctionType) -> bool:
    return thing.__module__.startswith("remegraph.")


def _commands(name: str, command: Any) -> Iterator[str]:
    """Return the lines of a command and all below it. Typer may bring a click of its own: nothing asks for its types."""
    for each, below in sorted(getattr(command, "commands", {}).items()):
        yield from _commands(f"{name} {each}", below)
    if not hasattr(command, "commands"):
        yield " ".join([f"$ {name}", *map(_parameter, command.params)])


def _parameter(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    names = "|".join([*parameter.opts, *parameter.secondary_opts])
    return names if parameter.required else f"[{names}]"


if __name__ == "__main__":
    LIST.write_text(described(), encoding="utf-8")
