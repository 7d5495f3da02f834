"""How large a pack may be, and JSON that is measured before it is parsed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from remegraph.errors import PackError

__all__ = ["LIMITS", "PackLimits", "parse"]

_MIB = 1 << 20
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"|([\[{])|[\]}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class PackLimits:
    """What a pack may not exceed; all is counted while it is read, whatever its headers say."""

    file: int = 32 * _MIB
    """Bytes of the file."""
    document: int = 8 * _MIB
    """Bytes of a pack that is one JSON document."""
    member: int = 64 * _MIB
    """Bytes of a member, expanded."""
    total: int = 128 * _MIB
    """Bytes of all members, expanded."""
    ratio: int = 100
    """Times that a member may grow when it is expanded, from its first mebibyte on."""
    manifest: int = 64 * 1024
    """Bytes of the manifest, and of the signature."""
    line: int = _MIB
    """Bytes of a record."""
    text: int = 256 * 1024
    """Characters of a field."""
    depth: int = 32
    """Levels of JSON."""
    records: int = 200_000
    """Records of a member."""
    items: int = 5_000
    """Items of a preset."""


LIMITS = PackLimits()


def parse(data: bytes, where: str, limits: PackLimits) -> Any:
    """Return JSON that is not too deep, holds no field twice, and no field that is too large.

    Args:
        data: The JSON, in UTF-8; its length was checked.
        where: What it is, for errors.
        limits: How deep and large it may be.

    Raises:
        PackError: It is something else.
    """
    _check_depth(data, where, limits.depth)

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(names := dict(found)) != len(found):
            raise PackError("duplicate", f"{where} gives a field twice.")
        if any(isinstance(value, str) and len(value) > limits.text for value in names.values()):
            raise PackError("too_large", f"{where} has a field of more than {limits.text} characters.")
        return names

    try:
        return json.loads(data, object_pairs_hook=pairs, parse_constant=_refuse_constant)
    except PackError:
        raise
    except (ValueError, RecursionError) as error:
        raise PackError("record", f"{where} is no JSON: {error}.") from error


def _check_depth(data: bytes, where: str, most: int) -> None:
    """Refuse deep nesting before a parser follows it down."""
    if data.count(b"[") + data.count(b"{") <= most:
        return
    depth = 0
    for found in _BRACKETS.finditer(data):
        if found.group(1):
            depth += 1
        elif not found.group().startswith(b'"'):
            depth -= 1
        if depth > most:
            raise PackError("too_large", f"{where} is nested more than {most} levels deep.")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no value of JSON")
