"""The verbs of the kit about attachments: their bytes, to those whose messages hold them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from remegraph.errors import NotFoundError
from remegraph.kit.calling import check_text, required, twin
from remegraph.kit.verbs import Verbs
from remegraph.models import Scope, StoredMessage

if TYPE_CHECKING:
    from remegraph.exchange.attaching import Intake

__all__ = ["Attaching"]


class Attaching(Verbs):
    """What messages hold beside words. Nothing is ever fetched: what came without bytes stays a reference."""

    def attachment(self, sha256: str, *, scope: Scope) -> bytes:
        """Return the bytes of an attachment, to the letter.

        Args:
            sha256: As `Message.attachments` names it.
            scope: Who asks; some message that it sees must have come with these bytes.

        Raises:
            NotFoundError: None did.
            SetupError: One did, and the bytes are lost or damaged.
            ScopeError: The scope is missing.
        """
        check_text(sha256=sha256)
        archive = self._open_parts().archive
        data = archive.attachments.get(archive.visible(required(scope)), sha256)
        if data is None:
            raise NotFoundError(f"There is no attachment {sha256!r} here.")
        return data

    aattachment = twin(attachment)

    def with_attachments(self, messages: Iterable[StoredMessage], *, scope: Scope) -> tuple[StoredMessage, ...]:
        """Return messages with the bytes of their attachments where they stood, as a chat model takes them.

        Args:
            messages: Messages of the ledger.
            scope: Who asks; what it cannot read stays a reference.

        Raises:
            SetupError: Bytes are lost or damaged.
            ScopeError: The scope is missing.
        """
        from remegraph.exchange.attaching import restored

        archive = self._open_parts().archive
        partitions = archive.visible(required(scope))

        def read(sha256: str) -> bytes | None:
            return archive.attachments.get(partitions, sha256)

        return tuple(
            message.model_copy(update={"content": restored(message.content, read)}) if message.attachments else message
            for message in messages
        )

    awith_attachments = twin(with_attachments)

    def _intake(self, *, strict: bool) -> Intake:
        """Return what takes the bytes out of messages."""
        from remegraph.exchange.attaching import Intake

        keeps = (
            strict or self._open_parts().archive.attachments.keeps
        )  # strictly, the ledger itself says what is missing
        return Intake(self.settings.perception, strict=strict, keeps=keeps, redactor=self._open_parts().redactor)
