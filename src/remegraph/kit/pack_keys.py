"""The verbs about the keys that are believed: whose signature on a pack says from whom it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from remegraph.errors import ConflictError
from remegraph.kit.calling import check_text, twin
from remegraph.kit.facade import Facade
from remegraph.models import Signature, TrustedKey
from remegraph.settings import Settings

if TYPE_CHECKING:
    from remegraph.exchange.signing import TrustStore

__all__ = ["PackKeys", "key_list"]


def key_list(settings: Settings) -> Path:
    """Return the file of the list, in the home."""
    return settings.home.expanduser() / "trusted_keys.json"


class PackKeys(Facade):
    """Keeps the list of keys."""

    def trust_key(self, name: str, public: str) -> TrustedKey:
        """Believe a key from now on: what it signs is of its owner, and is believed as far as `settings.sharing` says.

        Args:
            name: Whose it is.
            public: The public key, in base64, as `remegraph pack keygen` prints it.

        Raises:
            InputError: That is no public key, or it was revoked.
            ConflictError: Another process changes the list at this moment.
        """
        check_text(name=name, public=public)
        with self._alone():
            store = self._store().trusting(name, public)
            store.save(self._file())
        return next(key for key in store.keys if key.public == public)

    atrust_key = twin(trust_key)

    def revoke_key(self, key_id: str) -> TrustedKey:
        """Believe a key no more, for good. What it brought before stays.

        Args:
            key_id: The key.

        Raises:
            InputError: There is no such key.
            ConflictError: Another process changes the list at this moment.
        """
        check_text(key_id=key_id)
        with self._alone():
            store = self._store().without(key_id)
            store.save(self._file())
        return next(key for key in store.keys if key.key_id == key_id)

    arevoke_key = twin(revoke_key)

    def keys(self) -> tuple[TrustedKey, ...]:
        """Return the keys that are believed, and those that were revoked."""
        return self._store().keys

    akeys = twin(keys)

    def _file(self) -> Path:
        return key_list(self._settings)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Change the list while nobody else does: of two who write what they read, one loses, perhaps a revocation."""
        from remegraph.storage.owner import alone

        file = self._file()
        with alone(file.with_suffix(".lock")) as free:
            if not free:
                raise ConflictError([file.name])
            yield

    def _verify(self, manifest: bytes, signature: Signature) -> TrustedKey:
        """Return the believed key that signed a manifest."""
        from remegraph.exchange.packs.layout import PURPOSE

        return self._store().verify(manifest, signature, purpose=PURPOSE)

    def _store(self) -> TrustStore:
        from remegraph.exchange.signing import TrustStore

        return TrustStore.open(self._file())
