"""Messages, kept to the letter (R1), with attachments by reference; and the blocks that they are cut into (R2, R3)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, model_validator

from remegraph.models.base import AwareTime, Json, Record, Text, Token
from remegraph.models.scope import Partition

__all__ = [
    "DOCUMENT",
    "FOLLOWS",
    "REVISES",
    "TRUST_BY_ROLE",
    "AddReceipt",
    "Attachment",
    "AttachmentKind",
    "Blob",
    "Block",
    "BlockSummary",
    "Cut",
    "Message",
    "Reading",
    "Role",
    "StoredMessage",
    "ToolCall",
    "Withheld",
    "WithheldReason",
    "attachments_of",
    "held_by",
    "kind_of",
    "marked",
    "printable",
    "revised",
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
"""Kinds of content blocks by type, in the forms of LangChain, OpenAI and Anthropic."""

_LONGEST_NAME = 100
_LONGEST_TYPE = 255
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\[\]\ud800-\udfff\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""Characters by which a name or a type could pose as something else when shown."""

Role = Literal["user", "assistant", "system", "tool"]

TRUST_BY_ROLE: dict[str, float] = {"user": 1.0, "system": 1.0, "assistant": 0.8, "tool": 0.3}
"""How far the words of each role are believed, 0 to 1; tool output is what others wrote."""

_OWN_SYSTEM = 0.9
"""How far results are believed of a tool that the settings name as a system of the owner's: less than the person."""

DOCUMENT = "remegraph_document"
"""Mark in `extra`, or in `additional_kwargs` of a LangChain message: others wrote this, e.g. a file, a page or a mail."""

REVISES = "revises"
"""Key in `extra` of a revision: the id of the message whose content the host replaced."""

FOLLOWS = "follows"
"""Key in `extra`: its place in the list of its host, if that was complete; see `importers.views`."""


class Attachment(Record):
    """A reference from a message; the bytes are elsewhere."""

    kind: AttachmentKind = Field(default="file", description="image, audio, video or file.")
    name: Token = Field(default="", max_length=_LONGEST_NAME, description="Its file name, as it can be shown.")
    mime_type: Token = Field(default="", max_length=_LONGEST_TYPE, description="Its type, e.g. image/png.")
    size: int | None = Field(default=None, ge=0, description="Its size in bytes, if known.")
    sha256: str = Field(default="", pattern="^([0-9a-f]{64})?$", description="Of its bytes; empty: they are not kept.")
    refused: Token = Field(default="", max_length=200, description="Why its bytes are not kept, where they were given.")


class Reading(Record):
    """The content of an attachment, in words other than the speaker's."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="Of the bytes that were read.")
    text: Text = Field(description="The text of a text file, or a description.")
    reader: Text = Field(description="Who read it: `text`, or the name of a model.")


@dataclass(frozen=True, slots=True)
class Blob:
    """The bytes of an attachment on their way into the ledger's folder."""

    data: bytes
    reading: Reading | None = None
    """Its content, if reading it takes no model."""


def held_by(messages: Iterable[Any], blobs: Mapping[str, Blob]) -> dict[str, Blob]:
    """Return the bytes that messages refer to, by SHA-256.

    Args:
        messages: Messages.
        blobs: Bytes, by SHA-256.
    """
    if not blobs:
        return {}
    named = (each.sha256 for message in messages for each in attachments_of(message.content))
    return {sha256: blobs[sha256] for sha256 in dict.fromkeys(named) if sha256 in blobs}


def kind_of(block: object) -> AttachmentKind | None:
    """Return what a content block attaches, by its type; None for words and everything else.

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
    """Yield names that identify a block without bytes: of a file, the end of a URL, an id."""
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


def _deed(block: object) -> str:
    """Return in words what a person did in an interaction block: `[input: city = Lisbon]`; empty for other blocks.

    Args:
        block: `{"type": "interaction", "action": ..., "target": ..., "value": ...}`, also as the value of LangChain's
            `non_standard` block.
    """
    if isinstance(block, dict) and block.get("type") == "non_standard":
        block = block.get("value")
    if not isinstance(block, dict) or block.get("type") != "interaction" or not isinstance(block.get("action"), str):
        return ""
    target, value = _as_text(block.get("target")), _as_text(block.get("value"))
    what = " = ".join(part for part in (target, value) if part)
    return f"[{_as_text(block['action'])}{what and f': {what}'}]"


def _as_text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class ToolCall(Record):
    """A call that an assistant asked for."""

    name: Text = Field(description="The tool.")
    args: Json = Field(default_factory=dict, description="Its arguments, as JSON.")
    call_id: Text = Field(default="", description="Joins the call with its result.")


class Message(Record):
    """One raw turn, as it was said."""

    message_id: Token = Field(default="", description="Unique in its partition; a new uuid where empty.")
    thread: Token = Field(default="main", min_length=1, description="The conversation it belongs to.")
    role: Role = Field(description="Who speaks: user, assistant, system or tool.")
    name: Text = Field(default="", description="Name of the person, agent or tool that speaks.")
    content: Json = Field(default="", description="Text, or a list of content blocks, as received.")
    time: AwareTime = Field(description="When it was said, with its zone.")
    tool_calls: tuple[ToolCall, ...] = Field(default=(), description="Calls that this message asks for.")
    tool_call_id: Text = Field(default="", description="The call that this message answers (role tool).")
    ok: bool | None = Field(default=None, description="Whether the tool call succeeded (role tool), if known.")
    task: Text = Field(default="", description="Name of the task it belongs to; a change ends a block.")
    extra: Json = Field(default_factory=dict, description="All else the host attached, as JSON.")

    @model_validator(mode="after")
    def _content_is_text_or_blocks(self) -> Message:
        if not isinstance(self.content, str | list):
            raise ValueError("content must be text or a list of content blocks")
        return self

    @property
    def text(self) -> str:
        """The words of this message: its text, or the text and the deeds of its content blocks, one per line."""
        if isinstance(self.content, str):
            return self.content
        parts = [
            part if isinstance(part, str) else part.get("text") or _deed(part) if isinstance(part, dict) else ""
            for part in self.content
        ]
        return "\n".join(part for part in parts if isinstance(part, str) and part)

    @property
    def indexed_text(self) -> str:
        """The words it is found by: its speaker, its text, its tool calls, and names of attachments."""
        asked = (word for call in self.tool_calls for word in (call.name, *_words(call.args)))
        return " ".join((self.speaker, self.text, *asked, *(each.name for each in self.attachments)))

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """Its attachments, in order."""
        return attachments_of(self.content)

    @property
    def speaker(self) -> str:
        """The name where there is one, else the role."""
        return self.name or self.role

    @property
    def trust(self) -> float:
        """How far its words are believed, 0 to 1: by its role; a document no further than what a tool returned."""
        by_role = TRUST_BY_ROLE[self.role]
        return min(by_role, TRUST_BY_ROLE["tool"]) if self.is_document else by_role

    @property
    def is_document(self) -> bool:
        """Whether it is marked as written by others, whoever sent it."""
        return marked(self.extra, DOCUMENT)

    @property
    def from_user(self) -> bool:
        """Whether the user said it, and did not merely pass on what others wrote."""
        return self.role == "user" and not self.is_document


def marked(extra: object, mark: str) -> bool:
    """Return whether what a host attached has a mark, wherever its format kept it.

    Args:
        extra: Of a message, as JSON.
        mark: Its key; a true value counts.
    """
    inside = [extra]
    while inside:
        part = inside.pop()
        if isinstance(part, dict):
            if part.get(mark):
                return True
            inside.extend(part.values())
        elif isinstance(part, list):
            inside.extend(part)
    return False


def revised(body: Mapping[str, Any]) -> str:
    """Return the id of the message that a revision replaces; nothing for any other message.

    Args:
        body: A message, as plain JSON.
    """
    extra = body.get("extra")
    found = extra.get(REVISES) if isinstance(extra, Mapping) else None
    return found if isinstance(found, str) else ""


def _words(value: Any) -> Iterator[str]:
    """Yield names and values of JSON, in their order; nothing for null."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from _words(each)
    elif isinstance(value, list):
        for each in value:
            yield from _words(each)
    elif value is not None:
        yield str(value)


WithheldReason = Literal["forgotten", "edited", "rewound", "removed", "asked"]
"""forgotten: someone took back what it says; asked: it sounds like a request to forget, not decided yet; edited: a
newer form replaces it; rewound: the conversation took another course; removed: its host removed it, if the settings
say that this hides it.
"""


class Withheld(Record):
    """A record that words of a message are no longer shown."""

    reason: WithheldReason = Field(description="Why.")
    cause: Token = Field(description="The operation that withheld them; taking it back shows them again.")
    at: AwareTime = Field(description="Since when.")
    whole: bool = Field(description="Whether it is the whole message, or a part of it.")


class StoredMessage(Message):
    """A message as the ledger shows it, with a mark in place of withheld words."""

    partition: Partition = Field(description="Where it lives.")
    seq: int = Field(ge=1, description="Its place in the partition, in the order of recording, from 1.")
    recorded_at: AwareTime = Field(description="When it was committed.")
    readings: tuple[Reading, ...] = Field(default=(), description="What is in its attachments, as far as it was read.")
    withheld: tuple[Withheld, ...] = Field(default=(), description="What of it is shown no more, and why.")
    own_system: bool = Field(
        default=False, description="Whether the settings name the tool that returned it as trusted."
    )

    @property
    def trust(self) -> float:
        """How far its words are believed, 0 to 1: by the speaker, and for a tool by the settings."""
        return _OWN_SYSTEM if self.own_system and not self.is_document else super().trust

    @property
    def hidden(self) -> bool:
        """Whether nothing of it is shown."""
        return any(each.whole for each in self.withheld)

    @property
    def asked(self) -> frozenset[str]:
        """The undecided requests to forget, by cause, that may mean its words."""
        return frozenset(each.cause for each in self.withheld if each.reason == "asked")

    @property
    def dropped(self) -> bool:
        """Whether its host no longer has it: it was edited, abandoned or removed, and is not part of the conversation."""
        return any(each.whole and each.reason not in {"forgotten", "asked"} for each in self.withheld)

    def reading(self, sha256: str) -> str | None:
        """Return the content of one of its attachments; None if that was not read.

        Args:
            sha256: Of its bytes.
        """
        return next((each.text for each in self.readings if each.sha256 == sha256), None)


class AddReceipt(Record):
    """Result of `add_messages`: durable once returned."""

    message_ids: tuple[str, ...] = Field(description="The ids, in the order of the messages given.")
    added: int = Field(ge=0, description="How many were new.")
    known: int = Field(ge=0, description="How many were recorded before, with the same content.")
    erased: int = Field(default=0, ge=0, description="How many were erased before: they are not recorded again.")


class Cut(Record):
    """A range of one thread that a slicer proposes as a block."""

    thread: Token = Field(description="The thread that is cut.")
    after_seq: int = Field(ge=0, description="Last seq of the thread's newest block when this was cut; 0 if none.")
    first_seq: int = Field(ge=1, description="Seq of the first message; at or before after_seq where blocks overlap.")
    last_seq: int = Field(ge=1, description="Seq of the last message.")


class Block(Record):
    """An immutable range of one thread: its messages with first_seq <= seq <= last_seq."""

    block_id: str = Field(pattern=r"^\d{8}_\d{2,}$", description="Label YYYYMMDD_NN, unique in its partition.")
    partition: Partition = Field(description="Where it lives.")
    thread: Token = Field(description="The thread that it is a part of.")
    first_seq: int = Field(ge=1, description="Seq of its first message.")
    last_seq: int = Field(ge=1, description="Seq of its last message.")
    start_time: AwareTime = Field(description="Time of its earliest message.")
    end_time: AwareTime = Field(description="Time of its latest message.")


class BlockSummary(Record):
    """The index entry of a block: `block_id: time + summary`."""

    block_id: str = Field(description="The block it summarises.")
    partition: Partition = Field(description="Where it lives.")
    start_time: AwareTime = Field(description="Start of the block.")
    end_time: AwareTime = Field(description="End of the block.")
    summary: str = Field(description="What happened, in a sentence or two.")
    entities: tuple[str, ...] = Field(default=(), description="Names, places and things it speaks of.")
    language: str = Field(default="en", description="Language of the block: en or zh.")
    trust: float = Field(default=1.0, ge=0, le=1, description="The least trust of the words that it draws on, 0 to 1.")
    extractor: str = Field(
        default="extractive",
        description="Who read the block: a model, even if it was not worth a call; or `extractive`, nobody's model.",
    )

    @property
    def entry(self) -> str:
        """The line of the index: `block_id: time + summary`."""
        return f"{self.block_id}: {self.start_time:%Y-%m-%d %H:%M} + {self.summary}"
