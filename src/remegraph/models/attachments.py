"""What a message holds beside words: attachments by reference, and what a person did."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationError

from remegraph.models.base import Record, Text, Token

__all__ = [
    "Attachment",
    "AttachmentKind",
    "Blob",
    "Reading",
    "attachments_of",
    "deed",
    "held_by",
    "kind_of",
    "printable",
    "shown_name",
]

AttachmentKind = Literal["image", "audio", "video", "file"]

_KINDS: dict[str, AttachmentKind] = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
    "file": "file",
    "input_file": "file",
    "document": "file",
    "media": "file",
    "text-plain": "file",
}
"""What a content block is by its type, in the forms of LangChain, OpenAI and Anthropic."""

_LONGEST_NAME = 100
_LONGEST_TYPE = 255
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\[\]\ud800-\udfff\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""Characters that would let a name or a type pose as something else where it is shown."""


class Attachment(Record):
    """What a message refers to; its bytes are elsewhere."""

    kind: AttachmentKind = Field(default="file", description="image, audio, video or file.")
    name: Token = Field(default="", max_length=_LONGEST_NAME, description="Its file name, as it can be shown.")
    mime_type: Token = Field(default="", max_length=_LONGEST_TYPE, description="Its type, e.g. image/png.")
    size: int | None = Field(default=None, ge=0, description="Its size in bytes, if known.")
    sha256: str = Field(default="", pattern="^([0-9a-f]{64})?$", description="Of its bytes; empty: they are not kept.")
    refused: Token = Field(default="", max_length=200, description="Why its bytes are not kept, where they were given.")


class Reading(Record):
    """What is in an attachment, in words that somebody else than the speaker chose."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="Of the bytes that were read.")
    text: Text = Field(description="The text of a text file, or a description.")
    reader: Text = Field(description="Who read it: `text`, or the name of a model.")


@dataclass(frozen=True, slots=True)
class Blob:
    """The bytes of an attachment on their way into the ledger's folder."""

    data: bytes
    reading: Reading | None = None
    """What is in it, where that takes no model."""


def held_by(messages: Iterable[Any], blobs: Mapping[str, Blob]) -> dict[str, Blob]:
    """Return those of the bytes that messages refer to, by SHA-256.

    Args:
        messages: Messages.
        blobs: Bytes, by SHA-256.
    """
    if not blobs:
        return {}
    named = (each.sha256 for message in messages for each in attachments_of(message.content))
    return {sha256: blobs[sha256] for sha256 in dict.fromkeys(named) if sha256 in blobs}


def kind_of(block: object) -> AttachmentKind | None:
    """Return what a content block attaches, by its type; None for words and all else.

    Args:
        block: One of a message's content blocks.
    """
    kind = block.get("type") if isinstance(block, dict) else None
    return _KINDS.get(kind) if isinstance(kind, str) else None


def attachments_of(content: object) -> tuple[Attachment, ...]:
    """Return what the content of a message refers to, in its order.

    Args:
        content: Text or content blocks, as the ledger holds them.
    """
    return tuple(found for block in content if (found := _attachment(block))) if isinstance(content, list) else ()


def _attachment(block: Any) -> Attachment | None:
    kind = kind_of(block)
    if kind is None:
        return None
    kept = block.get("attachment")
    if isinstance(kept, dict):
        try:
            known = {name: kept[name] for name in Attachment.model_fields if name in kept}
            return Attachment.model_validate({"kind": kind, **known, "name": shown_name(kept.get("name"))})
        except ValidationError:  # a host's own key of this name
            pass
    mime = block.get("mime_type")
    mime = printable(mime) if isinstance(mime, str) else ""
    return Attachment(kind=kind, name=next(_names(block), ""), mime_type=mime[:_LONGEST_TYPE])


def _names(block: dict[str, Any]) -> Iterator[str]:
    """Yield names by which a block without bytes can be told: of a file, the end of a URL, an id."""
    inner = [part for key in ("file", "image_url", "source", "extras") if isinstance(part := block.get(key), dict)]
    for key in ("name", "filename", "title", "url", "image_url", "file_url", "file_id", "id"):
        for part in (block, *inner):
            value = part.get(key)
            if isinstance(value, str) and not value.startswith("data:"):
                name = shown_name(_tail(value) if "url" in key else value)
                if name:
                    yield name


def _tail(url: str) -> str:
    """Return the last part of a URL's path, or its host: never what is asked for in the query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts.path.rstrip("/") or parts.netloc.rpartition("@")[2]


def shown_name(value: object) -> str:
    """Return a file name without its folders and without characters that could pose as something else.

    Args:
        value: As a host gave it.
    """
    if not isinstance(value, str):
        return ""
    name = value.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return " ".join(printable(name).split())[:_LONGEST_NAME]


def printable(value: str) -> str:
    """Return a text without characters by which it could pose as something else where it is shown.

    Args:
        value: As a host gave it.
    """
    return _UNSHOWN.sub("", value)


def deed(block: object) -> str:
    """Return in words what an interaction block says that somebody did: `[input: city = Lisbon]`; else nothing.

    Args:
        block: `{"type": "interaction", "action": ..., "target": ..., "value": ...}`, also as the value of LangChain's
            `non_standard` block.
    """
    if isinstance(block, dict) and block.get("type") == "non_standard":
        block = block.get("value")
    if not isinstance(block, dict) or block.get("type") != "interaction" or not isinstance(block.get("action"), str):
        return ""
    target, value = _said(block.get("target")), _said(block.get("value"))
    what = " = ".join(part for part in (target, value) if part)
    return f"[{_said(block['action'])}{what and f': {what}'}]"


def _said(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
