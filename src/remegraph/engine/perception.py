"""Whether a block is worth a model's call, and which of its messages: small talk is indexed by the rules alone."""

from __future__ import annotations

import base64
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from remegraph.engine.nodes import Think
from remegraph.engine.salience import content_words, uncovered
from remegraph.engine.summary_tasks import DescribeTask, Meter, Pictured, Proposal, Thinker
from remegraph.errors import InvalidAnswerError, SetupError
from remegraph.models import Block, Evidence, Message, Reading, StoredMessage
from remegraph.models.messages import AttachmentKind
from remegraph.ports import Attention
from remegraph.prompts import Language
from remegraph.settings import PerceptionPolicy
from remegraph.text.scripts import language_of

if TYPE_CHECKING:
    from remegraph.ledger.attachments import Attachments

__all__ = [
    "Perceiver",
    "as_blocks",
    "attended",
    "attention",
    "citing",
    "language_spoken",
    "message_of",
    "perceived",
    "utterances",
]


_FULL = 20
"""Different content words with which a block has full attention."""


def attention(messages: Sequence[Message]) -> float:
    """Return how much a block has to say, 0 to 1, by its different words other than stop words and small talk.

    A block with tool calls, or with a statement that the rules find worth remembering, has full attention.
    """
    if any(message.tool_calls for message in messages) or uncovered(messages, ()):
        return 1.0
    words = frozenset[str]().union(*(content_words(message.text) for message in messages))
    return min(1.0, len(words) / _FULL)


def attended(messages: Sequence[StoredMessage], score: Attention, least: float) -> tuple[StoredMessage, ...]:
    """Return the messages of a block that get enough attention; tool calls, their results and attachments always do.

    With `least` 0, all have enough.
    """
    texts = [message.text for message in messages]
    return tuple(
        message
        for at, message in enumerate(messages)
        if not least
        or message.tool_calls
        or message.attachments
        or message.role == "tool"
        or score(message.text, texts[:at]) >= least
    )


_SEPARATOR = "#sha256:"
"""Separates a message's id from its attachment's, in the id of a reading while a thinker works on it."""


@dataclass(frozen=True, slots=True)
class Perceiver:
    """Has attachments read where the settings say that the model can."""

    attachments: Attachments
    policy: PerceptionPolicy
    redact: Callable[[str], str]
    """Removes what is private from what the model read in them."""

    def read(
        self, block: Block, messages: Sequence[StoredMessage], language: Language, thinker: Thinker, meter: Meter
    ) -> Generator[Think, Any, tuple[tuple[StoredMessage, ...], tuple[str, ...]]]:
        """Return messages with what is in their attachments, and why some were not read that a model might have read.

        Raises:
            ModelUnavailableError: The model did not answer.
        """
        pictured = self._pictured(messages) if thinker.learns else ()
        if not pictured:
            return perceived(messages), ()
        try:
            task = DescribeTask(tuple(messages), pictured, language)
            told: Mapping[tuple[str, str], Reading] = yield Think(thinker, "describe", task, meter)
        except InvalidAnswerError as error:  # the words are still learned from; the marks say what was not read
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
        """Return the attachments that a model shall read: readable and unread, the first ones."""
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
        except SetupError:  # lost bytes: the mark still says that it was not read, and `verify` reports the loss
            return None


def perceived(messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
    """Return messages, each with what is in its attachments behind it, as a tool would have returned it."""
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


def utterances(messages: Iterable[StoredMessage]) -> list[StoredMessage]:
    """Return the messages from `perceived` that someone said, without readings of attachments."""
    return [message for message in messages if _SEPARATOR not in message.message_id]


def language_spoken(messages: Iterable[StoredMessage]) -> Language:
    """Return the language of instructions for spoken messages."""
    return language_of("\n".join(message.text for message in utterances(messages)))


def message_of(name: str) -> str:
    """Return the id of the message that something was said in, or whose attachment it was read in."""
    return name.partition(_SEPARATOR)[0]


def citing(proposal: Proposal) -> Proposal:
    """Return a proposal whose evidence cites messages and attachments, where it cited readings."""
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
    """Return attachments as LangChain content blocks, each after its number."""
    blocks: list[dict[str, Any]] = []
    for number, each in enumerate(pictured, start=1):
        kind: AttachmentKind = each.attachment.kind
        data = {"type": kind, "base64": base64.b64encode(each.data).decode(), "mime_type": each.attachment.mime_type}
        blocks += [{"type": "text", "text": f"{number}:"}, data]
    return blocks
