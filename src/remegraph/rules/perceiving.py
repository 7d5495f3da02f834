"""What is shown of an attachment where its bytes cannot be: what it is, and what is in it or that it was not read."""

from __future__ import annotations

from typing import Literal

from remegraph.language.scripts import language_of
from remegraph.models import Attachment, Message, StoredMessage
from remegraph.rules.disarming import disarmed

__all__ = ["marks", "shown"]

_Language = Literal["en", "zh"]

_WORDS: dict[_Language, dict[str, str]] = {
    "en": {"image": "image", "audio": "audio", "video": "video", "file": "file", "unread": "not read",
           "refused": "not kept", ":": ": ", ",": ", "},
    "zh": {"image": "图片", "audio": "音频", "video": "视频", "file": "文件", "unread": "未读取",
           "refused": "未保存", ":": "：", ",": "，"},
}  # fmt: skip
_LONGEST = 200
"""Characters of a reading that stand for it."""


def marks(message: Message, language: _Language, *, told: bool = True) -> tuple[str, ...]:
    """Return one mark for each attachment of a message: `[image: photo.png, 12 KB, not read]`.

    Args:
        message: The message, with its readings where the ledger gave it.
        language: Of the marks.
        told: Whether they tell what is in it, as far as it was read.
    """
    return tuple(_mark(each, _reading(message, each), language, told=told) for each in message.attachments)


def shown(message: Message) -> str:
    """Return the words of a message with a mark for each of its attachments, in the language of the words.

    Args:
        message: The message.
    """
    text = message.text
    if isinstance(message.content, str):
        return text
    return " ".join(part for part in (text, *marks(message, language_of(text))) if part)


def _mark(attachment: Attachment, reading: str | None, language: _Language, *, told: bool) -> str:
    words = _WORDS[language]
    parts = [attachment.name, "" if attachment.size is None else _size(attachment.size)]
    if attachment.refused:
        parts.append(words["refused"])
    if reading is None:
        parts.append(words["unread"])
    known = words[","].join(part for part in parts if part)
    said = _short(reading) if reading and told else ""
    return f"[{words[':'].join(part for part in (words[attachment.kind], known, said) if part)}]"


def _reading(message: Message, attachment: Attachment) -> str | None:
    return message.reading(attachment.sha256) if isinstance(message, StoredMessage) else None


def _short(text: str) -> str:
    line = " ".join(disarmed(text).split()).replace("[", "(").replace("]", ")")
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _size(size: int) -> str:
    """Return a size for people, in thousands: the last digits say nothing."""
    for unit, many in (("MB", 1_000_000), ("KB", 1_000)):
        if size >= many:
            return f"{round(size / many)} {unit}"
    return f"{size} B"
