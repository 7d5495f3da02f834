"""What bytes are: the type that they were said to have, against what they begin with."""

from __future__ import annotations

import filetype

from remegraph.models.attachments import AttachmentKind

__all__ = ["checked_mime", "text_of"]

_ALIASES = {
    "application/x-pdf": "application/pdf",
    "audio/aiff": "audio/x-aiff",
    "audio/m4a": "audio/mp4",
    "audio/mp3": "audio/mpeg",
    "audio/vnd.wave": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/x-flac": "audio/flac",
    "audio/x-m4a": "audio/mp4",
    "audio/x-wav": "audio/wav",
    "image/apng": "image/png",
    "image/heif": "image/heic",
    "image/jp2": "image/jpx",
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/vnd.microsoft.icon": "image/x-icon",
    "image/x-png": "image/png",
    "video/x-m4v": "video/mp4",
}
_UNTOLD = frozenset({"", "application/octet-stream", "binary/octet-stream"})
"""Types that say nothing."""

_RECOGNISED = frozenset(_ALIASES.get(kind.mime, kind.mime) for kind in filetype.TYPES) - _UNTOLD
"""Types whose files can be told by their first bytes."""

_CONTAINERS = frozenset({"application/msword", "application/zip"})
"""What office files of many types begin as."""

_TEXTS = frozenset(
    {"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/csv",
     "application/toml", "application/x-ndjson", "application/javascript"}
)  # fmt: skip


def checked_mime(kind: AttachmentKind, declared: str, data: bytes) -> str:
    """Return the type of some bytes: what they were said to be where that can be, else what they begin with.

    Args:
        kind: What the content block is.
        declared: The type that it names; may be empty.
        data: The bytes.

    Raises:
        ValueError: They are of another type than was said; says which.
    """
    said = declared.partition(";")[0].strip().lower()
    said = _ALIASES.get(said, said)
    guessed = filetype.guess_mime(data) or ""
    found = _ALIASES.get(guessed, guessed)
    mime = found if said in _UNTOLD else said
    if kind != "file" and mime not in _UNTOLD and not mime.startswith(f"{kind}/"):
        raise ValueError(f"it is given as {kind}, and is of type {mime}")
    if said not in _UNTOLD and found != said and not _may_be(said, found, data):
        raise ValueError(f"it is given as {said}, and its bytes are {found or 'not'}")
    return mime or "application/octet-stream"


def _may_be(said: str, found: str, data: bytes) -> bool:
    """Whether bytes may be of a type although they begin as those of another."""
    if _is_text(said):  # a text may begin with any letters
        return not found or text_of(said, data, 1) is not None
    if not found:
        return said not in _RECOGNISED
    if found in _CONTAINERS:
        return said.startswith("application/vnd.") or said not in _RECOGNISED
    if said in _CONTAINERS:
        return found.startswith("application/vnd.")
    major, _, minor = found.partition("/")  # sound and film come in the same containers
    return {major, said.partition("/")[0]} == {"audio", "video"} and said.partition("/")[2] == minor


def text_of(mime: str, data: bytes, longest: int) -> str | None:
    """Return the text of a text file, cut at its longest; None where it is none, or no UTF-8.

    Args:
        mime: Its type.
        data: Its bytes.
        longest: In characters.
    """
    if not _is_text(mime):
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text[:longest]


def _is_text(mime: str) -> bool:
    return mime.startswith("text/") or mime in _TEXTS or mime.endswith("+json")
