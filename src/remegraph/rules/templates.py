"""Arguments with slots: what a step of a skill is called with. {city} is a slot; a brace that means itself is doubled."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["filled", "fits", "literal", "slots"]

_MARK = re.compile(r"(\{\{|\}\}|\{[^{}]+\})")
_BRACES = {"{{": "{", "}}": "}"}


def slots(template: Any) -> tuple[str, ...]:
    """Return the names of the slots of a template, in their order.

    Args:
        template: JSON.
    """
    found: dict[str, None] = {}

    def note(text: str) -> str:
        found.update(dict.fromkeys(name for part in _MARK.split(text) if (name := _slot(part))))
        return text

    _mapped(template, note)
    return tuple(found)


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with its slots filled in; a text that is one slot becomes the value itself.

    Args:
        template: JSON.
        values: By the names of slots; a slot without one stays as it is.
    """

    def fill(text: str) -> Any:
        parts = [part for part in _MARK.split(text) if part]
        if len(parts) == 1 and _slot(parts[0]) in values:
            return values[_slot(parts[0])]
        return "".join(str(values.get(_slot(part), _BRACES.get(part, part))) for part in parts)

    return _mapped(template, fill)


def literal(value: Any) -> Any:
    """Return the template that stands for a value to the letter."""
    return _mapped(value, lambda text: text.replace("{", "{{").replace("}", "}}"))


def fits(template: Any, value: Any) -> bool:
    """Return whether a value is what a template becomes with some texts in its slots.

    Args:
        template: JSON.
        value: JSON.
    """
    if isinstance(template, str):
        parts = [part for part in _MARK.split(template) if part]
        if len(parts) == 1 and _slot(parts[0]):
            return True
        return isinstance(value, str) and _fits(parts, value)
    if isinstance(template, dict) and isinstance(value, dict):
        return template.keys() == value.keys() and all(fits(template[name], value[name]) for name in template)
    if isinstance(template, list) and isinstance(value, list):
        return len(template) == len(value) and all(map(fits, template, value))
    return type(template) is type(value) and bool(template == value)


def _fits(parts: Sequence[str], value: str) -> bool:
    """Look for the fixed texts one after the other: what lies between them fills the slots, and is never empty."""
    fixed = [""]
    for part in parts:
        if _slot(part):
            fixed.append("")
        else:
            fixed[-1] += _BRACES.get(part, part)
    if len(fixed) == 1:
        return value == fixed[0]
    if not value.startswith(fixed[0]):
        return False
    at = len(fixed[0])
    for text in fixed[1:-1]:
        at = value.find(text, at + 1) + len(text)
        if at < len(text):
            return False
    return len(value) - len(fixed[-1]) > at and value.endswith(fixed[-1])


def _slot(part: str) -> str:
    """Return the name of the slot that a part of a text is, or nothing."""
    return part[1:-1] if part.startswith("{") and part not in _BRACES and len(part) > 1 else ""


def _mapped(value: Any, change: Callable[[str], Any]) -> Any:
    """Return JSON with each text in it changed; names stay as they are."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _mapped(each, change) for name, each in value.items()}
    if isinstance(value, list):
        return [_mapped(each, change) for each in value]
    return value
