"""Remove the bytes of attachments from messages, and put them back.

Known are the forms of LangChain (`base64`, `data`, data: URLs), of OpenAI and of Anthropic. Nothing is ever fetched:
a block with a URL or a file id stays as it is.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

import filetype

from remegraph.engine.redaction import UNREDACTED, Redactor
from remegraph.errors import MessageError
from remegraph.models import Message
from remegraph.models.messages import (
    Attachment,
    AttachmentKind,
    Blob,
    Reading,
    attachments_of,
    kind_of,
    printable,
    shown_name,
)
from remegraph.settings import PerceptionPolicy

__all__ = ["Intake", "restored"]

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
"""Types that carry no information."""

_RECOGNISED = frozenset(_ALIASES.get(kind.mime, kind.mime) for kind in filetype.TYPES) - _UNTOLD
"""Types whose files are recognised by their first bytes."""

_CONTAINERS = frozenset({"application/msword", "application/zip"})
"""First bytes of office files of many types."""

_TEXTS = frozenset(
    {"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/csv",
     "application/toml", "application/x-ndjson", "application/javascript"}
)  # fmt: skip


def _checked_mime(kind: AttachmentKind, declared: str, data: bytes) -> str:
    """Return the type of some bytes: the declared one if that is possible, else the one that they begin with."""
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
        return not found or _readable(said, data, 1) is not None
    if not found:
        return said not in _RECOGNISED
    if found in _CONTAINERS:
        return said.startswith("application/vnd.") or said not in _RECOGNISED
    if said in _CONTAINERS:
        return found.startswith("application/vnd.")
    major, _, minor = found.partition("/")  # sound and film come in the same containers
    return {major, said.partition("/")[0]} == {"audio", "video"} and said.partition("/")[2] == minor


def _readable(mime: str, data: bytes, longest: int) -> str | None:
    """Return the text of a text file, cut at its longest; None where it is none, or no UTF-8."""
    if not _is_text(mime):
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text[:longest]


def _is_text(mime: str) -> bool:
    return mime.startswith("text/") or mime in _TEXTS or mime.endswith("+json")


_RAW = (("base64",), ("data",), ("source", "data"), ("input_audio", "data"), ("file", "file_data"), ("file_data",))
"""Where blocks hold base64, or a data: URL."""

_URLS = (("image_url", "url"), ("image_url",), ("source", "url"), ("url",), ("file_url",))
"""Where blocks hold a URL, which may be a data: URL."""

_PATHS = (*_RAW, *_URLS, ("text",))
"""All places where bytes may have been."""

_MIMES = (("mime_type",), ("media_type",), ("source", "media_type"), ("source", "mime_type"), ("file", "mime_type"))
_NAMES = (("name",), ("filename",), ("file", "filename"), ("title",), ("extras", "filename"), ("extras", "name"))

_PATH, _PREFIX = "path", "prefix"
"""Keys of a reference, beside the fields of `Attachment`: where its bytes were, and what came before them."""

_BEYOND = 1_000
"""Characters of a text file that are searched beyond those that are kept."""

_TEXT = "text"
"""The prefix of bytes that were given as text."""


class _Refused(ValueError):  # noqa: N818 - not an error yet: the intake decides
    """Bytes that are not kept."""

    def __init__(self, why: str, cure: str) -> None:
        super().__init__(why)
        self.cure = cure


@dataclass
class Intake:
    """Replaces the bytes in the messages of one call with references."""

    policy: PerceptionPolicy
    _: KW_ONLY
    strict: bool
    keeps: bool = True
    redactor: Redactor = UNREDACTED
    blobs: dict[str, Blob] = field(default_factory=dict, init=False)

    def take(self, message: Message) -> Message:
        """Return the message as it is recorded: with references instead of bytes, and nothing private."""
        return self.redactor.message(self._without_bytes(message))

    def _without_bytes(self, message: Message) -> Message:
        if isinstance(message.content, str):
            return message
        content = [self._taken(block) for block in message.content]
        total = sum(each.size or 0 for each in attachments_of(content) if each.sha256 in self.blobs)
        if total > self.policy.max_message_bytes:
            whole = f"the attachments of one message are {total} bytes, over {self.policy.max_message_bytes}"
            if self.strict:
                raise MessageError(
                    f"Too much at once: {whole}.", "Send them apart, or raise perception.max_message_bytes."
                )
            content = [_kept_out(block, whole) for block in content]
        return message if content == message.content else message.model_copy(update={"content": content})

    def _taken(self, block: Any) -> Any:
        kind = kind_of(block)
        where = _bytes_of(block) if kind else None
        if kind is None or where is None:
            return block
        path, prefix, payload = where
        url_mime = prefix.removeprefix("data:").partition(";")[0].rstrip(",") if prefix.startswith("data:") else ""
        sound = _at(block, ("input_audio", "format"))  # OpenAI names the form of sound alone
        said = printable(_first(block, _MIMES) or url_mime or (f"audio/{sound}" if sound else ""))
        known: dict[str, object] = {"kind": kind, "name": shown_name(_first(block, _NAMES)), "mime_type": said[:255]}
        try:
            data = self._decoded(prefix, payload)
            known |= self._keep(kind, said, data)
        except _Refused as refusal:
            if self.strict:
                raise MessageError(f"The attachment {known['name'] or kind!r}: {refusal}.", refusal.cure) from refusal
            known |= {"refused": str(refusal)[:200]}
        reference = Attachment.model_validate(known).model_dump(exclude_defaults=True)
        return _with(block, path, None) | {"attachment": reference | {_PATH: list(path), _PREFIX: prefix}}

    def _decoded(self, prefix: str, payload: str) -> bytes:
        most = self.policy.max_bytes
        packed = prefix != _TEXT and (not prefix or prefix.endswith(";base64,"))
        if not self.keeps:
            raise _Refused("there is no folder to keep its bytes in", "Name a folder: perception.folder, or a home.")
        if (
            len(payload) * 3 // 4 > most + most // 32 if packed else len(payload) > most * 3
        ):  # before a byte is unpacked
            raise _Refused(f"it is larger than {most} bytes", "Send less, or raise perception.max_bytes.")
        if not packed:
            data = payload.encode("utf-8", "surrogatepass") if prefix == _TEXT else unquote_to_bytes(payload)
        else:
            try:
                data = base64.b64decode("".join(payload.split()), validate=True)
            except (binascii.Error, ValueError) as error:
                raise _Refused(f"it is not base64 ({error})", "Give the bytes in base64, padded.") from error
        if len(data) > most:
            raise _Refused(f"it is larger than {most} bytes", "Send less, or raise perception.max_bytes.")
        return data

    def _keep(self, kind: AttachmentKind, said: str, data: bytes) -> dict[str, object]:
        try:
            mime = _checked_mime(kind, said, data)
        except ValueError as error:
            raise _Refused(str(error), "Say what it is, in mime_type; a block's type must fit it.") from error
        sha256 = hashlib.sha256(data).hexdigest()
        text = self._text_of(mime, data)
        self.blobs[sha256] = Blob(data, None if text is None else Reading(sha256=sha256, text=text, reader="text"))
        major = mime.partition("/")[0]  # a file may turn out to be a picture
        return {
            "kind": major if major in {"image", "audio", "video"} else kind,
            "mime_type": mime,
            "size": len(data),
            "sha256": sha256,
        }

    def _text_of(self, mime: str, data: bytes) -> str | None:
        """Return what is read of a text file; what an end would cut in two would no longer look private."""
        most = self.policy.max_text + _BEYOND
        text = _readable(mime, data, most)
        if text is None:
            return None
        clean = self.redactor.text(text)
        return (clean[:-_BEYOND] if len(text) == most else clean)[: self.policy.max_text]


def restored(content: Any, read: Callable[[str], bytes | None]) -> Any:
    """Return content with the bytes of its attachments back in place."""
    return [_restored(block, read) for block in content] if isinstance(content, list) else content


def _restored(block: Any, read: Callable[[str], bytes | None]) -> Any:
    reference = block.get("attachment") if isinstance(block, dict) and kind_of(block) else None
    if not isinstance(reference, dict) or not isinstance(reference.get(_PATH), list):
        return block
    path = next((each for each in _PATHS if list(each) == reference[_PATH]), None)
    data = read(str(reference.get("sha256")))
    packed = _packed(data, str(reference.get(_PREFIX, ""))) if data is not None else None
    if path is None or packed is None:  # a message may hold any reference: only ours lead back
        return block
    return _with({key: value for key, value in block.items() if key != "attachment"}, path, packed)


def _packed(data: bytes, prefix: str) -> str | None:
    if prefix == _TEXT:
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return None
    if prefix and not prefix.endswith(";base64,"):
        prefix = f"{prefix.removesuffix(',')};base64,"
    return prefix + base64.b64encode(data).decode()


def _kept_out(block: Any, why: str) -> Any:
    """Return a block without its bytes, with the reason."""
    reference = block.get("attachment") if isinstance(block, dict) else None
    if not isinstance(reference, dict) or not reference.get("sha256"):
        return block
    return block | {"attachment": {**reference, "sha256": "", "refused": why[:200]}}


def _bytes_of(block: Mapping[str, Any]) -> tuple[tuple[str, ...], str, str] | None:
    """Return the path of the bytes in a block, their prefix, and the bytes as given; None without bytes."""
    source = block.get("source")
    inner = isinstance(source, dict)
    form = source.get("type") if isinstance(source, dict) else block.get("source_type")
    if form == "text" or block.get("type") == "text-plain":
        path = ("source", "data") if inner else ("text",)
        if value := _at(block, path):
            return path, _TEXT, value
    for path in (*_RAW, *_URLS):
        value = _at(block, path)
        if value.startswith("data:"):
            head, comma, payload = value.partition(",")
            return path, head + comma, payload
        if value and path in _RAW:
            return path, "", value
    return None


def _at(block: Any, path: tuple[str, ...]) -> str:
    for key in path:
        block = block.get(key) if isinstance(block, Mapping) else None
    return block if isinstance(block, str) else ""


def _with(block: Mapping[str, Any], path: tuple[str, ...], value: str | None) -> dict[str, Any]:
    """Return a copy of a block with another value at a path; None: without it."""
    key, *rest = path
    if rest:
        inner = block.get(key)
        return {**block, key: _with(inner if isinstance(inner, Mapping) else {}, tuple(rest), value)}
    left = {name: item for name, item in block.items() if name != key}
    return left if value is None else left | {key: value}


def _first(block: Mapping[str, Any], paths: tuple[tuple[str, ...], ...]) -> str:
    return next((value for path in paths if (value := _at(block, path))), "")
