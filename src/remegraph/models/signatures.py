"""Signatures as they are written down, and the keys that are believed."""

from __future__ import annotations

import hashlib
from base64 import b64decode
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from remegraph.models.base import Record, Token

__all__ = ["Signature", "TrustedKey", "key_id_of"]


def _base64(length: int) -> AfterValidator:
    def check(value: str) -> str:
        try:
            raw = b64decode(value, validate=True)
        except ValueError as error:  # so is binascii.Error
            raise ValueError("must be base64") from error
        if len(raw) != length:
            raise ValueError(f"must be {length} bytes in base64, and is {len(raw)}")
        return value

    return AfterValidator(check)


PublicKey = Annotated[str, _base64(32)]
"""The 32 bytes of a public Ed25519 key, in base64."""


def key_id_of(public: bytes) -> str:
    """Return the id of a public key: the first half of its SHA-256, in hex.

    Args:
        public: Its 32 bytes.
    """
    return hashlib.sha256(public).hexdigest()[:32]


class Signature(Record):
    """Who signed something, and what came of it."""

    algorithm: Literal["ed25519"] = Field(default="ed25519", description="How it was signed.")
    key_id: Token = Field(pattern=r"^[0-9a-f]{32}$", description="The key that signed it: see `key_id_of`.")
    value: Annotated[str, _base64(64)] = Field(description="The 64 bytes of the signature, in base64.")


class TrustedKey(Record):
    """A public key, and whose it is said to be by whoever put it on the list."""

    name: Token = Field(min_length=1, max_length=200, description="Whose it is: the name that trust is given to.")
    public: PublicKey = Field(description="The public key.")
    revoked: bool = Field(default=False, description="Whether it is believed no more.")

    @property
    def key_id(self) -> str:
        """The id of the key."""
        return key_id_of(b64decode(self.public))
