"""Signatures (Ed25519): keys in files, and the list of keys that are believed.

What is signed for one purpose never passes for another: the purpose is signed along with the data.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Self
from uuid import uuid4

from pydantic import ValidationError

from remegraph.errors import InputError, MissingExtraError, SetupError, SignatureError
from remegraph.models.signatures import Signature, TrustedKey, key_id_of

try:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
        load_pem_private_key,
    )
except ModuleNotFoundError as missing:
    raise MissingExtraError("Signatures need cryptography.", "Run: pip install 'remegraph[sharing]'.") from missing

__all__ = ["SigningKey", "TrustStore"]


class SigningKey:
    """A private key. Whoever has it signs in your name: its file is for its owner's eyes only.

    Args:
        private: The key.
    """

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self._public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    @classmethod
    def generate(cls) -> Self:
        """Return a new key."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read a key that `save` wrote: unencrypted PKCS #8 in PEM.

        Raises:
            InputError: The file cannot be read, or is no such key.
        """
        cure = "Give the file of an Ed25519 key, as `remegraph pack keygen` writes it."
        try:
            private = load_pem_private_key(path.read_bytes(), password=None)
        except (OSError, TypeError, ValueError, UnsupportedAlgorithm) as error:
            raise InputError(f"The key {path} cannot be read.", cure) from error
        if not isinstance(private, Ed25519PrivateKey):
            raise InputError(f"The key {path} is no Ed25519 key.", cure)
        return cls(private)

    def save(self, path: Path) -> None:
        """Write the key to a new file that only its owner may read.

        Raises:
            InputError: The file is there already, or cannot be written.
        """
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise InputError(f"The key cannot be written to {path} ({error.strerror}).", "Name a new file.") from error
        with os.fdopen(descriptor, "wb") as file:
            file.write(self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    @property
    def public(self) -> str:
        """The public key, in base64: what others need to believe this one."""
        return b64encode(self._public).decode()

    @property
    def key_id(self) -> str:
        """The id of the key."""
        return key_id_of(self._public)

    def sign(self, data: bytes, *, purpose: str) -> Signature:
        """Return the signature of data.

        Args:
            data: What is signed.
            purpose: What it is signed as, such as "pack"; it is verified as the same only.
        """
        raw = self._private.sign(_told(data, purpose))
        return Signature(key_id=self.key_id, value=b64encode(raw).decode())


class TrustStore:
    """The keys that are believed. It never changes: `trusting` and `without` return another one.

    Args:
        keys: The keys; of two with the same id, the later one counts.
    """

    def __init__(self, keys: Iterable[TrustedKey] = ()) -> None:
        self._keys = {key.key_id: key for key in keys}

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the list that `save` wrote; without such a file, nobody is believed.

        Raises:
            SetupError: The file is no such list. It is never taken for an empty one.
        """
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return cls()
        except OSError as error:
            raise SetupError(
                f"The trusted keys {path} cannot be read ({error.strerror}).", "Check the file."
            ) from error
        try:
            return cls(TrustedKey.model_validate(each) for each in json.loads(text)["keys"])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise SetupError(f"The trusted keys {path} cannot be read.", "Put the file back as it was.") from error

    def save(self, path: Path) -> None:
        """Write the list, whole or not at all.

        Raises:
            SetupError: It cannot be written.
        """
        draft = path.with_name(f"{path.name}.{uuid4().hex}")
        try:
            text = json.dumps({"keys": [key.model_dump() for key in self.keys]}, indent=2)
            draft.write_text(f"{text}\n", encoding="utf-8")
            draft.replace(path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise SetupError(f"The trusted keys cannot be written to {path} ({error}).", "Check the folder.") from error

    @property
    def keys(self) -> tuple[TrustedKey, ...]:
        """The keys, revoked ones too, in the order in which they came."""
        return tuple(self._keys.values())

    def trusting(self, name: str, public: str) -> TrustStore:
        """Return the list with one more key.

        Args:
            name: Whose it is.
            public: The public key, in base64.

        Raises:
            InputError: That is no public key, or it was revoked: it stays so.
        """
        try:
            key = TrustedKey(name=name, public=public)
        except ValidationError as error:
            raise InputError("This is no public key of Ed25519.", "Give its 32 bytes in base64, and a name.") from error
        if (known := self._keys.get(key.key_id)) and known.revoked:
            raise InputError(f"The key {key.key_id} was revoked.", "Ask for a new key.")
        return TrustStore([*self.keys, key])

    def without(self, key_id: str) -> TrustStore:
        """Return the list with a key revoked.

        Raises:
            InputError: There is no such key.
        """
        if key_id not in self._keys:
            raise InputError(f"There is no key {key_id!r} on the list.", "List the keys first.")
        return TrustStore([*self.keys, self._keys[key_id].evolve(revoked=True)])

    def verify(self, data: bytes, signature: Signature, *, purpose: str) -> TrustedKey:
        """Return the key that signed data.

        Args:
            data: What was signed.
            signature: Its signature.
            purpose: What it was signed as.

        Raises:
            SignatureError: The key is unknown or revoked, or the signature is not of this data for this purpose.
        """
        key = self._keys.get(signature.key_id)
        if key is None:
            raise SignatureError(f"The key {signature.key_id} is unknown here.")
        if key.revoked:
            raise SignatureError(f"The key {signature.key_id} of {key.name} was revoked.")
        try:
            public = Ed25519PublicKey.from_public_bytes(b64decode(key.public))
            public.verify(b64decode(signature.value), _told(data, purpose))
        except (InvalidSignature, ValueError) as error:
            raise SignatureError(
                f"The signature is not one of {key.name} ({signature.key_id}) for this content.",
                "Somebody changed the content, or signed it in another's name: do not use it.",
            ) from error
        return key


def _told(data: bytes, purpose: str) -> bytes:
    return f"remegraph {purpose}\n".encode() + data
