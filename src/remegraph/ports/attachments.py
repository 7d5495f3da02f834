"""The bytes that messages refer to, and what is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from remegraph.models import Partition, Reading

__all__ = ["Attachments"]


class Attachments(Protocol):
    """What messages hold beside words. Only a message that came with the bytes lets anybody read them."""

    @property
    def keeps(self) -> bool:
        """Whether there is a folder for bytes."""
        ...

    def get(self, partitions: Sequence[Partition], sha256: str) -> bytes | None:
        """Return the bytes of an attachment that some message in these partitions holds; None where none does.

        Raises:
            SetupError: One does, and the bytes are lost or damaged.
        """
        ...

    def held(
        self, partitions: Sequence[Partition], *, message_id: str | None = None, sha256: str | None = None
    ) -> tuple[str, ...]:
        """Return the SHA-256 of the attachments that messages in these partitions hold.

        Args:
            partitions: Where to look.
            message_id: Only those of this message.
            sha256: Only this one.
        """
        ...

    def missing(self, partition: Partition) -> tuple[str, ...]:
        """Return the SHA-256 of attachments that messages hold, and whose bytes are lost."""
        ...

    def describe(self, partition: Partition, read: Mapping[str, Sequence[Reading]]) -> None:
        """Record what is in attachments, in one transaction; what was read before stays. Messages are found by it.

        Args:
            partition: Where the messages live.
            read: What is in their attachments, by message id.
        """
        ...

    def unreferenced(self, *, remove: bool = False) -> tuple[str, ...]:
        """Return the SHA-256 of bytes that are kept and that no message holds.

        Args:
            remove: Whether they are removed. Nobody adds any meanwhile.
        """
        ...
