"""Knowledge items: their validation (MEK, 2.2.3), ids, digests and titles, and signatures (Ed25519) of items and packs.

A signature for one purpose is never valid for another: the purpose is signed with the data.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import NAMESPACE_URL, uuid4, uuid5

from pydantic import BaseModel, ValidationError

from remegraph.errors import InputError, MissingExtraError, SetupError, SignatureError
from remegraph.models import Kind, KnowledgeItem, MemoryItem, Signature, in_english
from remegraph.models.exchange import TrustedKey, key_id_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = [
    "SIGNATURE",
    "SigningKey",
    "TrustStore",
    "item_digest",
    "knowledge_id",
    "perceive",
    "read_item",
    "short",
    "signed",
    "signer",
]

SIGNATURE = "signature"
"""Key of the signature in the metadata of an item."""

_LONGEST_TITLE = 80


def knowledge_id(kind: Kind, content: Mapping[str, Any]) -> str:
    """Return the id of knowledge: the same content always gets the same id."""
    return str(uuid5(NAMESPACE_URL, f"remegraph:knowledge:{kind}:{_canonical(content)}"))


def item_digest(item: KnowledgeItem) -> str:
    """Return the digest of an item: of all its content except the time of sharing and the signature."""
    said = json.loads(item.to_json())
    del said["created_at"]
    said["metadata"].pop(SIGNATURE, None)
    return sha256(_canonical(said).encode()).hexdigest()


def short(text: str) -> str:
    """Return the beginning of a text as a title, in whole words where it has spaces."""
    if len(text) <= _LONGEST_TITLE:
        return text
    cut = text[: _LONGEST_TITLE - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut}…"


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


Item = TypeVar("Item", KnowledgeItem, MemoryItem)

_MOST_ITEMS = 200
_DEEPEST = 24
_MOST_PARTS = 5_000
_LONGEST = 50_000


def perceive(items: Iterable[KnowledgeItem | Mapping[str, Any]]) -> list[KnowledgeItem]:
    """Return the items that were given, as records."""
    if isinstance(items, str | bytes | Mapping | KnowledgeItem) or not isinstance(items, Iterable):
        raise InputError(f"The items are of type {type(items).__name__}.", "Give a list of knowledge items.")
    given = list(items)
    if len(given) > _MOST_ITEMS:
        raise InputError(f"There are {len(given)} items.", f"Give {_MOST_ITEMS} at most at once.")
    for at, item in enumerate(given):
        _check_size(item, f"items[{at}]")
    return [_item(item, KnowledgeItem, f"items[{at}]") for at, item in enumerate(given)]


def read_item(given: Item | Mapping[str, Any], form: type[Item], **unless_given: object) -> Item:
    """Return one item, as a record."""
    _check_size(given, "item")
    return _item(given, form, "item", **unless_given)


def _item(item: Item | Mapping[str, Any], form: type[Item], name: str, **unless_given: object) -> Item:
    if isinstance(item, form):
        return item
    if not isinstance(item, Mapping):
        wanted = f"Give a {form.__name__}, or a mapping in its form."
        raise InputError(f"{name} is of type {type(item).__name__}.", wanted)
    try:
        return form.model_validate({**unless_given, **in_english(item)})
    except ValueError as error:  # pydantic's error, or a field given twice
        raise _refusal(error, form.__name__, name) from error


def _refusal(error: ValueError, form: str, name: str) -> InputError:
    """Return the error for an item; it names the first wrong field."""
    where, what = [name], str(error)
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where, what = [name, *map(str, first["loc"])], first["msg"]
    return InputError(f"{'.'.join(where)} cannot be used: {what}.", f"See remegraph.models.{form}.")


def _check_size(item: object, name: str) -> None:
    """Refuse what is too large, too deep or no JSON, without recursion."""
    inside: list[tuple[object, int]] = [(item, 1)]
    parts = length = 0
    while inside:
        value, depth = inside.pop()
        parts += 1
        length += len(value) if isinstance(value, str) else 1
        if isinstance(value, float) and not isfinite(value):
            raise InputError(f"{name} holds {value}.", "Give numbers that JSON can hold.")
        if depth > _DEEPEST:
            raise InputError(f"{name} is more than {_DEEPEST} levels deep.", "Say it more simply.")
        if parts > _MOST_PARTS or length > _LONGEST:
            raise InputError(f"{name} is too large.", f"Give at most {_LONGEST} characters and {_MOST_PARTS} values.")
        inside += [(each, depth + 1) for each in _parts(value)]


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, BaseModel):
        return [*dict(value).values()]
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list | tuple) else ()


@contextmanager
def _extra() -> Iterator[None]:
    """Import what the extra `sharing` installs; everything else, including items without signatures, works without it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise MissingExtraError("Signatures need cryptography.", "Run: pip install 'remegraph[sharing]'.") from missing


class SigningKey:
    """A private key. Its holder signs in your name, so its file is readable by its owner only."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self._public = private.public_key().public_bytes_raw()

    @classmethod
    def generate(cls) -> Self:
        """Return a new key."""
        with _extra():
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read a key that `save` wrote: unencrypted PKCS #8 in PEM."""
        with _extra():
            from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
            from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415
        cure = "Give the file of an Ed25519 key, as `remegraph pack keygen` writes it."
        try:
            private = load_pem_private_key(path.read_bytes(), password=None)
        except (OSError, TypeError, ValueError, UnsupportedAlgorithm) as error:
            raise InputError(f"The key {path} cannot be read.", cure) from error
        if not isinstance(private, Ed25519PrivateKey):
            raise InputError(f"The key {path} is not an Ed25519 key.", cure)
        return cls(private)

    def save(self, path: Path) -> None:
        """Write the key to a new file that only its owner may read."""
        with _extra():
            from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
                Encoding,
                NoEncryption,
                PrivateFormat,
            )
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise InputError(f"The key cannot be written to {path} ({error.strerror}).", "Name a new file.") from error
        with os.fdopen(descriptor, "wb") as file:
            file.write(self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    @property
    def public(self) -> str:
        """The public key, in base64, which others need to trust this one."""
        return b64encode(self._public).decode()

    @property
    def key_id(self) -> str:
        """The id of the key."""
        return key_id_of(self._public)

    def sign(self, data: bytes, *, purpose: str) -> Signature:
        """Return the signature of data."""
        raw = self._private.sign(_payload(data, purpose))
        return Signature(key_id=self.key_id, value=b64encode(raw).decode())


class TrustStore:
    """The trusted keys. It is immutable: `trusting` and `without` return another one."""

    def __init__(self, keys: Iterable[TrustedKey] = ()) -> None:
        self._keys = {key.key_id: key for key in keys}

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the list that `save` wrote; without such a file, no key is trusted. A damaged one is never taken for empty."""
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
        """Write the list, whole or not at all."""
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
        """Return the list with one more key. A revoked one stays revoked."""
        try:
            key = TrustedKey(name=name, public=public)
        except ValidationError as error:
            raise InputError(
                "This is not a public key of Ed25519.", "Give its 32 bytes in base64, and a name."
            ) from error
        if (known := self._keys.get(key.key_id)) and known.revoked:
            raise InputError(f"The key {key.key_id} was revoked.", "Ask for a new key.")
        return TrustStore([*self.keys, key])

    def without(self, key_id: str) -> TrustStore:
        """Return the list with a key revoked."""
        if key_id not in self._keys:
            raise InputError(f"There is no key {key_id!r} on the list.", "List the keys first.")
        return TrustStore([*self.keys, self._keys[key_id].evolve(revoked=True)])

    def verify(self, data: bytes, signature: Signature, *, purpose: str) -> TrustedKey:
        """Return the key that signed data."""
        with _extra():
            from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415
        key = self._keys.get(signature.key_id)
        if key is None:
            raise SignatureError(f"The key {signature.key_id} is unknown here.")
        if key.revoked:
            raise SignatureError(f"The key {signature.key_id} of {key.name} was revoked.")
        try:
            public = Ed25519PublicKey.from_public_bytes(b64decode(key.public))
            public.verify(b64decode(signature.value), _payload(data, purpose))
        except (InvalidSignature, ValueError) as error:
            raise SignatureError(
                f"The signature is not one of {key.name} ({signature.key_id}) for this content.",
                "The content was changed, or signed in another's name: do not use it.",
            ) from error
        return key


def _payload(data: bytes, purpose: str) -> bytes:
    return f"remegraph {purpose}\n".encode() + data


_PURPOSE = "knowledge"


def signed(item: KnowledgeItem, key: SigningKey) -> KnowledgeItem:
    """Return an item with a new signature."""
    signature = key.sign(item_digest(item).encode(), purpose=_PURPOSE)
    return item.evolve(metadata={**item.metadata, SIGNATURE: signature.model_dump(mode="json")})


def signer(item: KnowledgeItem, keys: TrustStore) -> str | None:
    """Return the agent that an item names if a trusted key of that agent signed the item, else None."""
    try:
        key = keys.verify(
            item_digest(item).encode(), Signature.model_validate(item.metadata.get(SIGNATURE)), purpose=_PURPOSE
        )
    except (SignatureError, ValidationError):
        return None
    return key.name if key.name == item.source_agent else None
