"""Small files that several tests attach, and the blocks that carry them."""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from typing import Any

__all__ = ["PNG", "TEXT", "b64", "image", "png", "sha", "text_file"]


def png(colour: int = 0) -> bytes:
    """A picture of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes([0, colour]))) + chunk(b"IEND", b"")


PNG = png()
TEXT = b"Anchovies are on offer at the harbour. Ann owns a yacht."


def b64(data: bytes) -> str:
    """Bytes as base64."""
    return base64.b64encode(data).decode()


def sha(data: bytes) -> str:
    """The name that bytes have."""
    return hashlib.sha256(data).hexdigest()


def image(data: bytes = PNG, **fields: Any) -> dict[str, Any]:
    """A LangChain block with a picture."""
    return {"type": "image", "base64": b64(data), "mime_type": "image/png", **fields}


def text_file(data: bytes = TEXT, name: str = "offers.md", mime: str = "text/markdown") -> dict[str, Any]:
    """A LangChain block with a text file."""
    return {"type": "file", "base64": b64(data), "mime_type": mime, "extras": {"filename": name}}
