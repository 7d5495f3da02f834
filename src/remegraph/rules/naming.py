"""Ids that follow from what they stand for: the same operation on the same things has the same one."""

from __future__ import annotations

import json
from uuid import UUID, uuid5

__all__ = ["operation_id"]

_NAMESPACE = UUID("6f0d9a52-5f0c-4a43-9d53-7f2f6f3b6a11")


def operation_id(*parts: object) -> str:
    """Return the stable id of an operation on these things (uuid5 of their JSON)."""
    return str(uuid5(_NAMESPACE, json.dumps([str(part) for part in parts])))
