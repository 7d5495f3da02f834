"""What is in attachments, before a block is summarised: a model that can read them describes them, once.

To a thinker, what is in an attachment is what a tool returned: the words of somebody else, never the speaker's. It is
trusted as little, and what is learned from it alone is quarantined. Evidence of it cites the message and the attachment.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from remegraph.engine.metering import Meter
from remegraph.engine.nodes import Think
from remegraph.engine.tasks import DescribeTask, Pictured, Proposal, Thinker
from remegraph.errors import InvalidAnswerError, SetupError
from remegraph.models import Block, Evidence, Reading, StoredMessage
from remegraph.models.attachments import AttachmentKind
from remegraph.ports import Attachments
from remegraph.prompts import Language
from remegraph.settings import PerceptionPolicy

__all__ = ["Perceiver", "as_blocks", "citing", "perceived", "spoken"]

_SEPARATOR = "#sha256:"
"""Between a message's id and that of its attachment, in the id that a reading has while a thinker looks at it."""


@dataclass(frozen=True, slots=True)
class Perceiver:
    """Has attachments read where the settings say that the model can."""

    attachments: Attachments
    policy: PerceptionPolicy
    redact: Callable[[str], str]
    """Takes what is private out of what the model read in them."""

    def read(
        self, block: Block, messages: Sequence[StoredMessage], language: Language, thinker: Thinker, meter: Meter
    ) -> Generator[Think, Any, tuple[tuple[StoredMessage, ...], tuple[str, ...]]]:
        """Return messages with what is in their attachments, and why some were not read that a model might have read.

        Args:
            block: The block.
            messages: What was said in it.
            language: Of the descriptions.
            thinker: Who looks.
            meter: Books the call.

        Raises:
            ModelUnavailableError: The model did not answer.
        """
        pictured = self._pictured(messages) if thinker.learns else ()
        if not pictured:
            return perceived(messages), ()
        try:
            task = DescribeTask(tuple(messages), pictured, language)
            told: Mapping[tuple[str, str], Reading] = yield Think(thinker, "describe", task, meter)
        except InvalidAnswerError as error:  # the words teach all the same; the marks say what was not read
            return perceived(messages), (f"attachments not read: {error}",)
        read: dict[str, list[Reading]] = {}
        for (message_id, _), reading in told.items():
            read.setdefault(message_id, []).append(reading.evolve(text=self.redact(reading.text)))
        self.attachments.describe(block.partition, read)
        known = [
            message.model_copy(update={"readings": (*message.readings, *read.get(message.message_id, ()))})
            for message in messages
        ]
        return perceived(known), ()

    def _pictured(self, messages: Sequence[StoredMessage]) -> tuple[Pictured, ...]:
        """Return what a model shall look at: what it can read and nobody read before, the first ones."""
        found: list[Pictured] = []
        for number, message in enumerate(messages, start=1):
            readable = {each.sha256: each for each in message.attachments if each.kind in self.policy.reads}
            held = self.attachments.held([message.partition], message_id=message.message_id) if readable else ()
            unread = set(held) - {each.sha256 for each in message.readings}
            for sha256 in filter(unread.__contains__, readable):
                data = self._bytes(message, sha256) if len(found) < self.policy.most else None
                if data is not None:
                    found.append(Pictured(number, message.message_id, readable[sha256], data))
        return tuple(found)

    def _bytes(self, message: StoredMessage, sha256: str) -> bytes | None:
        try:
            return self.attachments.get([message.partition], sha256)
        except SetupError:  # lost bytes: the mark goes on saying that it was not read, and `verify` that they are lost
            return None


def perceived(messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
    """Return messages, each with what is in its attachments behind it, as a tool would have returned it.

    Args:
        messages: What was said in a block.
    """
    found: list[StoredMessage] = []
    for message in messages:
        found.append(message)
        names = {each.sha256: each.name or each.kind for each in message.attachments}
        found += [
            message.model_copy(
                update={
                    "message_id": f"{message.message_id}{_SEPARATOR}{reading.sha256}",
                    "role": "tool",
                    "name": names.get(reading.sha256, "file"),
                    "content": reading.text,
                    "readings": (),
                    "tool_calls": (),
                    "tool_call_id": "",
                    "ok": None,
                    "extra": {},
                }
            )
            for reading in message.readings
            if reading.text.strip()
        ]
    return tuple(found)


def spoken(messages: Iterable[StoredMessage]) -> list[StoredMessage]:
    """Return those of the messages that `perceived` gives that somebody said."""
    return [message for message in messages if _SEPARATOR not in message.message_id]


def citing(proposal: Proposal) -> Proposal:
    """Return a proposal whose evidence cites messages and attachments, where it cited readings.

    Args:
        proposal: What a Sub Agent wants.
    """
    changes = tuple(
        change.evolve(memory=change.memory.evolve(evidence=tuple(map(_cited, change.memory.evidence))))
        if any(_SEPARATOR in item.message_id for item in change.memory.evidence)
        else change
        for change in proposal.changes
    )
    return replace(proposal, changes=changes)


def _cited(evidence: Evidence) -> Evidence:
    message_id, separator, sha256 = evidence.message_id.rpartition(_SEPARATOR)
    return evidence.evolve(message_id=message_id, attachment=sha256) if separator else evidence


def as_blocks(pictured: Sequence[Pictured]) -> list[dict[str, Any]]:
    """Return attachments as LangChain content blocks, each after its number.

    Args:
        pictured: What a model shall look at.
    """
    blocks: list[dict[str, Any]] = []
    for number, each in enumerate(pictured, start=1):
        kind: AttachmentKind = each.attachment.kind
        data = {"type": kind, "base64": base64.b64encode(each.data).decode(), "mime_type": each.attachment.mime_type}
        blocks += [{"type": "text", "text": f"{number}:"}, data]
    return blocks
