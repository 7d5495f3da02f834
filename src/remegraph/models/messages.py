"""The raw layer (R1): one record per message, to the letter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from remegraph.models.attachments import Attachment, Reading, attachments_of, deed
from remegraph.models.base import AwareTime, Json, Record, Text, Token
from remegraph.models.scope import Partition

__all__ = [
    "DOCUMENT",
    "FOLLOWS",
    "REVISES",
    "AddReceipt",
    "Message",
    "Role",
    "StoredMessage",
    "ToolCall",
    "Withheld",
    "WithheldReason",
    "marked",
    "revised",
]

Role = Literal["user", "assistant", "system", "tool"]

TRUST_BY_ROLE: dict[str, float] = {"user": 1.0, "system": 1.0, "assistant": 0.8, "tool": 0.3}
"""How far the words of each role are believed, 0 to 1; tool output is what others wrote."""

DOCUMENT = "remegraph_document"
"""Mark in `extra`, or in `additional_kwargs` of a LangChain message: others wrote this, e.g. a file, a page or a mail."""

REVISES = "revises"
"""Key in `extra` of a revision: the id of the message whose content the host replaced."""

FOLLOWS = "follows"
"""Key in `extra`: where it stood in the list of its host, if that was whole; see `exchange.views`."""


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
            part if isinstance(part, str) else part.get("text") or deed(part) if isinstance(part, dict) else ""
            for part in self.content
        ]
        return "\n".join(part for part in parts if isinstance(part, str) and part)

    @property
    def indexed_text(self) -> str:
        """The words it is found by: who speaks, what is said, what is asked of tools, and names of attachments."""
        asked = (word for call in self.tool_calls for word in (call.name, *_words(call.args)))
        return " ".join((self.speaker, self.text, *asked, *(each.name for each in self.attachments)))

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """What it refers to beside words, in its order."""
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
        """Whether it is marked as what others wrote, whoever brings it."""
        return marked(self.extra, DOCUMENT)

    @property
    def from_user(self) -> bool:
        """Whether the user said it, and does not merely bring what others wrote."""
        return self.role == "user" and not self.is_document


def marked(extra: object, mark: str) -> bool:
    """Return whether what a host attached has a mark, wherever its format kept it.

    Args:
        extra: Of a message, as JSON.
        mark: Its key; its value says yes.
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
    """Return the id of the message that a revision stands for; nothing for any other message.

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
"""forgotten: somebody took back what it says; asked: it sounds like a request to forget, and nobody has decided yet; edited: a newer form replaces it; rewound: the conversation took another
course; removed: its host took it out, where the settings say that this hides it."""


class Withheld(Record):
    """That words of a message are shown no more."""

    reason: WithheldReason = Field(description="Why.")
    cause: Token = Field(description="The operation that withheld them; taking it back shows them again.")
    at: AwareTime = Field(description="Since when.")
    whole: bool = Field(description="Whether it is the whole message, or a part of it.")


class StoredMessage(Message):
    """A message as the ledger shows it: a mark stands where words are withheld."""

    partition: Partition = Field(description="Where it lives.")
    seq: int = Field(ge=1, description="Its place in the partition, in the order of recording, from 1.")
    recorded_at: AwareTime = Field(description="When it was committed.")
    readings: tuple[Reading, ...] = Field(default=(), description="What is in its attachments, as far as it was read.")
    withheld: tuple[Withheld, ...] = Field(default=(), description="What of it is shown no more, and why.")

    @property
    def hidden(self) -> bool:
        """Whether nothing of it is shown."""
        return any(each.whole for each in self.withheld)

    @property
    def asked(self) -> frozenset[str]:
        """The requests to forget, by their causes, of which nobody has decided yet whether they mean its words."""
        return frozenset(each.cause for each in self.withheld if each.reason == "asked")

    @property
    def dropped(self) -> bool:
        """Whether its host holds it no more: it was edited, abandoned or removed, and is no part of the conversation."""
        return any(each.whole and each.reason not in {"forgotten", "asked"} for each in self.withheld)

    def reading(self, sha256: str) -> str | None:
        """Return what is in one of its attachments; None where that was not read.

        Args:
            sha256: Of its bytes.
        """
        return next((each.text for each in self.readings if each.sha256 == sha256), None)


class AddReceipt(Record):
    """What `add_messages` did: durable once returned."""

    message_ids: tuple[str, ...] = Field(description="The ids, in the order of the messages given.")
    added: int = Field(ge=0, description="How many were new.")
    known: int = Field(ge=0, description="How many were recorded before, with the same content.")
    erased: int = Field(default=0, ge=0, description="How many were erased before: they are not recorded again.")
