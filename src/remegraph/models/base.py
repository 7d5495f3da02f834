"""Base of all records: frozen, validated, and with a JSON round trip."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Self
from uuid import UUID, uuid5

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainValidator, TypeAdapter

__all__ = ["AwareTime", "Json", "Record", "Text", "Token", "encodable", "operation_id"]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value


def encodable(value: str) -> bool:
    """Return whether a text can be written as UTF-8: it holds no lone surrogates.

    Args:
        value: Any Python string.
    """
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


_PLAIN = frozenset({str, int, bool, type(None)})


def _json(value: Any) -> Any:
    """Refuse what JSON cannot hold, and return a copy that shares nothing with the caller's."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict and all(type(each) is str for each in value) and _PLAIN.issuperset(map(type, value.values())):
        return dict(value)  # most records carry nothing, or a few words
    if kind is list and not value:
        return []
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"must be JSON: {error}") from error


def _token(value: str) -> str:
    if "\x00" in value:
        raise ValueError("must not contain NUL")
    if not (value.isascii() or encodable(value)):  # most are, and this is asked of every id that is read
        raise ValueError("must not contain lone surrogates")
    return value


def _aware(value: datetime) -> datetime:
    offset = value.utcoffset()
    if offset is None:
        raise ValueError("must say its time zone")
    part_of_minute = offset.seconds % 60 or offset.microseconds
    return value.astimezone(UTC) if part_of_minute else value  # ISO 8601 has no offsets with seconds


def _write(value: object) -> str:
    if isinstance(value, timedelta):
        return str(_SPAN.dump_python(value, mode="json"))
    if not isinstance(value, datetime):
        raise TypeError(f"{type(value).__name__} is not JSON")
    return value.isoformat()


_SPAN = TypeAdapter(timedelta)
_ENCODER = json.JSONEncoder(default=_write, sort_keys=True)

Text = Annotated[str, PlainValidator(_text, json_schema_input_type=str)]
"""Any Python string, to the letter: NUL and lone surrogates too, which pydantic's own `str` refuses."""

Json = Annotated[Any, PlainValidator(_json)]
"""Any JSON value."""

Token = Annotated[str, AfterValidator(_token)]
"""A name or an id: encodable text without NUL. It is compared, never parsed."""

AwareTime = Annotated[datetime, AfterValidator(_aware)]
"""A time that says its zone."""


class Record(BaseModel):
    """A frozen value object that survives JSON unchanged."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, hide_input_in_errors=True)

    def to_json(self) -> str:
        """Return this record as ASCII-only JSON text (lone surrogates are escaped)."""
        return _ENCODER.encode(self.model_dump())  # mode="json" refuses surrogates as keys

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a record that `to_json` wrote.

        Raises:
            pydantic.ValidationError: The text is not this record.
        """
        return cls.model_validate(json.loads(text))

    def evolve(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, validated again.

        Args:
            changes: New values by field name.
        """
        return type(self).model_validate({**dict(self), **changes})


_NAMESPACE = UUID("6f0d9a52-5f0c-4a43-9d53-7f2f6f3b6a11")


def operation_id(*parts: object) -> str:
    """Return the stable id of an operation on these values (uuid5 of their JSON)."""
    return str(uuid5(_NAMESPACE, json.dumps([str(part) for part in parts])))
