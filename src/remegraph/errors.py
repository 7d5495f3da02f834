"""Every error that remegraph raises, in one tree.

    RemegraphError
    ├── InputError (ValueError)      bad input; it was refused and nothing changed
    │   ├── ScopeError               no scope, or one that cannot be used
    │   ├── MessageError             a message that cannot be recorded as it is
    │   │   ├── NaiveTimeError       a time without a zone, and no zone given
    │   │   └── MessageChangedError  an id that is already recorded with other content
    │   ├── FileFormatError          a file that cannot be read, with the line
    │   ├── PackError                a pack that is broken, hostile, or does not fit here, with the reason
    │   ├── SignatureError           a signature that is missing, wrong, or by an untrusted key
    │   ├── SkillError               a skill that cannot be executed or checked
    │   ├── ConsensusError           a change to shared memory by one agent alone
    │   ├── ErasedError              a message that was erased and is not recorded again
    │   └── NotFoundError            an id that this scope does not hold
    ├── SetupError                   the home, the ledger or a part of it cannot be used
    │   ├── SchemaTooNewError        the ledger was written by a newer remegraph
    │   ├── SchemaTooOldError        the ledger must be brought up to date first
    │   ├── EmbedderMismatchError    the ledger's vectors come from another embedder
    │   ├── JournalKeyError          the key of the journal is missing, or another than the ledger's
    │   ├── LedgerUnavailableError ↻ the ledger does not answer, is locked, or cannot be written now
    │   │   └── OutcomeUnknownError ↻ it was lost while a change was committed
    │   ├── IndexOwnedError ↻        another process owns the vector index
    │   ├── BackupError              a backup that is damaged, or cannot be made or restored there
    │   └── MissingExtraError        an optional dependency is not installed
    ├── ModelError                   a chat model or an embedder failed
    │   ├── InvalidAnswerError       it answered, but not what was asked
    │   │   └── RequestRefusedError  it refuses this request, however often it is sent
    │   ├── ModelUnavailableError ↻  it did not answer
    │   └── DimensionError           an embedder returned vectors of an unexpected length
    ├── BudgetExceededError          an operation would cost more than its budget
    ├── LimitError                   a tenant or user has used up what the operator's limits allow
    │   └── RateLimitError ↻         for this minute, or for today
    ├── ConflictError                the records changed since they were read
    ├── VectorIndexError ↻           the vector index failed; the outcome is unknown
    │   ├── IndexSilentError ↻       the Chroma server does not answer
    │   └── IndexChangedError        the ledger uses another index than this process: restart with that one
    ├── CancelledError               the caller cancelled; what was committed stays
    └── ClosedError                  the kit was used after it was closed

A message says what happened; `cure` says what to do about it. `str(error)` holds both. With ↻, `retryable` is true: the
cause may pass, and then the same call succeeds. What carries an id is not recorded twice by calling again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

__all__ = [
    "WITHOUT_VECTORS",
    "BackupError",
    "BudgetExceededError",
    "CancelledError",
    "ClosedError",
    "ConflictError",
    "ConsensusError",
    "DimensionError",
    "EmbedderMismatchError",
    "ErasedError",
    "FileFormatError",
    "IndexChangedError",
    "IndexOwnedError",
    "IndexSilentError",
    "InputError",
    "InvalidAnswerError",
    "JournalKeyError",
    "LedgerUnavailableError",
    "LimitError",
    "MessageChangedError",
    "MessageError",
    "MissingExtraError",
    "ModelError",
    "ModelUnavailableError",
    "NaiveTimeError",
    "NotFoundError",
    "OutcomeUnknownError",
    "PackError",
    "RateLimitError",
    "RemegraphError",
    "RequestRefusedError",
    "SchemaTooNewError",
    "SchemaTooOldError",
    "ScopeError",
    "SetupError",
    "SignatureError",
    "SkillError",
    "VectorIndexError",
]


class RemegraphError(Exception):
    """Base of all errors of this package.

    Args:
        what: What happened, as one sentence.
        cure: What the caller can do about it; the class's own `cure` unless given.
    """

    cure: str = ""
    retryable: ClassVar[bool] = False
    """Whether the same call may succeed later, though the caller changes nothing."""

    def __init__(self, what: str, cure: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        if cure is not None:
            self.cure = cure

    def __str__(self) -> str:
        return f"{self.what} {self.cure}".strip()


class InputError(RemegraphError, ValueError):
    """Bad input. It was refused and nothing changed."""


class ScopeError(InputError):
    """No scope, or one that cannot be used."""

    cure = "Pass scope=Scope(user=...), with text values free of NUL."


class MessageError(InputError):
    """A message that cannot be recorded as it is."""


class NaiveTimeError(MessageError):
    """A message time without a zone."""

    cure = 'Give aware times, or say which zone they are in: timezone="Europe/Paris".'


class MessageChangedError(MessageError):
    """A message id that is already recorded with other content."""

    cure = "Messages are never edited: record the new text under a new message_id."


class FileFormatError(InputError):
    """A file that cannot be read."""


class PackError(InputError):
    """A pack that is broken, hostile, or does not fit here. Nothing of it was installed.

    Args:
        reason: Why, in one word for code to compare: see `remegraph.models.PackReason`.
        what: What is wrong with it, as one sentence.
    """

    cure = "Get it again from where you have it, and check its origin."

    def __init__(self, reason: str, what: str, cure: str | None = None) -> None:
        super().__init__(what, cure)
        self.reason = reason


class SignatureError(InputError):
    """A signature that is missing, wrong, or by an untrusted key."""

    cure = "Take it from someone whose key you trust, or trust the key that signed it."


class SkillError(InputError):
    """A skill that cannot be executed or checked."""


class ConsensusError(InputError):
    """A change to shared memory by one agent alone."""

    cure = "Propose it with kit.sharing.propose, for another agent to corroborate or a person to approve."


class ErasedError(InputError):
    """A message that was erased and is not recorded again."""

    cure = "Leave it out. What is said again is recorded under a new id."


class NotFoundError(InputError):
    """An id that this scope does not hold."""

    cure = "Check the id and the scope: ids of other users are never found."


class SetupError(RemegraphError):
    """The home, the ledger or a part of it cannot be used."""


class SchemaTooNewError(SetupError):
    """The ledger was written by a newer remegraph."""

    cure = "Upgrade remegraph, or open another home."


class SchemaTooOldError(SetupError):
    """The ledger has the schema of an earlier release, and this process does not change it."""

    cure = (
        "Bring it up to date with `remegraph migrate --apply`, as a role that may change tables, or open it with "
        'Settings(migrate="auto"). docs/upgrades.md says in which order.'
    )


class EmbedderMismatchError(SetupError):
    """The ledger's vectors come from another embedder."""

    cure = "Open with the recorded embedder, or open once with options=OpenOptions(reindex=True) and call kit.admin.reindex()."


class JournalKeyError(SetupError):
    """The key of the journal is missing, or another than the ledger's. Reading works; nothing was written."""

    cure = (
        "Put the key back: in REMEGRAPH_JOURNAL_KEY or, where that is not set, in the file journal.key in the home. If another "
        "key has taken over since, give this process that one, and start it again. Only if the key is lost: look at the journal, then "
        "`remegraph admin key rotate --despite`."
    )


class LedgerUnavailableError(SetupError):
    """The ledger does not answer, is locked, or cannot be written now."""

    retryable = True


class OutcomeUnknownError(LedgerUnavailableError):
    """The ledger was lost while a change was committed: whether it was recorded is not known."""

    cure = (
        "Repeat it: what carries an id is not recorded twice. Messages without ids get new ones each time, so give them "
        "ids, or look whether they are there."
    )


class IndexOwnedError(SetupError):
    """Another process owns the vector index."""

    retryable = True
    cure = "Run `chroma run` and give its address as chroma_url, or close the other process."


class BackupError(SetupError):
    """A backup that is incomplete or damaged, or that cannot be made or restored where it was asked to be."""

    cure = "Take another backup: nothing was changed."


class MissingExtraError(SetupError):
    """An optional dependency is not installed."""


class ModelError(RemegraphError):
    """A chat model or an embedder failed."""


class InvalidAnswerError(ModelError):
    """The model answered, but not what was asked."""


class RequestRefusedError(InvalidAnswerError):
    """The provider refuses this request, however often it is sent: it is too long, or against its rules."""

    cure = "Read the provider's reason; change the model or the slicing where it helps, then `remegraph work retry` (kit.work.retry)."


class ModelUnavailableError(ModelError):
    """The model did not answer."""

    retryable = True
    cure = "Nothing is lost: the block stays pending. Workers retry it on their own; without one, run `remegraph summarize` (kit.summarize) when the model is back."


class DimensionError(ModelError):
    """An embedder returned vectors of another length than it declares."""


class BudgetExceededError(RemegraphError):
    """An operation would cost more than its budget."""

    cure = "Raise the budget, or repeat the call: it continues where it stopped."


class LimitError(RemegraphError):
    """A tenant or a user has used up what the operator's limits allow. Nothing was done.

    Args:
        whose: `tenant` or `user`.
        limit: The limit, by its name in the settings.
        what: What happened, as one sentence.
    """

    cure = "Erase what is no longer needed, or raise the limit: `limits` in the settings."

    def __init__(self, whose: str, limit: str, what: str, cure: str | None = None) -> None:
        super().__init__(what, cure)
        self.whose = whose
        self.limit = limit


class RateLimitError(LimitError):
    """A limit is used up for this minute, or for today.

    Args:
        retry_at: When the same call may succeed.
    """

    retryable = True

    def __init__(self, whose: str, limit: str, what: str, retry_at: datetime) -> None:
        super().__init__(whose, limit, what, f"Repeat it at {retry_at:%H:%M} UTC, or raise the limit.")
        self.retry_at = retry_at


class ConflictError(RemegraphError):
    """The records changed since they were read.

    Args:
        records: Ids of the records that changed.
    """

    cure = "Read them again and repeat the change."

    def __init__(self, records: Sequence[str], cure: str | None = None) -> None:
        super().__init__(f"Changed since they were read: {', '.join(records)}.", cure)
        self.records = tuple(records)


class VectorIndexError(RemegraphError):
    """The vector index failed. What it did before it failed is unknown."""

    retryable = True
    cure = "The ledger is intact: recall searches SQL, and `remegraph admin rebuild` (kit.admin.rebuild) rebuilds the index."


class IndexSilentError(VectorIndexError):
    """The Chroma server does not answer. Recall searches SQL meanwhile."""

    cure = (
        "Nothing is lost, and SQL is searched meanwhile: start the server, or correct its address (REMEGRAPH_CHROMA_URL). "
        "What it lacks follows then."
    )


class IndexChangedError(VectorIndexError):
    """The ledger uses another vector index than this process, which leaves its own as it is and searches SQL.

    Args:
        index: The one that the ledger uses, as the setting names it.
    """

    retryable = False

    def __init__(self, index: str) -> None:
        super().__init__(
            f"The ledger has another vector index than this process: {index}.",
            f"Nothing is lost, and SQL is searched. Start this process again with REMEGRAPH_INDEX={index}.",
        )


WITHOUT_VECTORS = (EmbedderMismatchError, ModelError, VectorIndexError)
"""Errors that affect vectors only: records are still found by words, and the vectors follow at the next sync."""


class CancelledError(RemegraphError):
    """The caller cancelled. What was committed before stays."""

    cure = "Call again to continue where it stopped."


class ClosedError(RemegraphError):
    """The kit was used after it was closed."""

    cure = "Open a new one: MemoryKit.open(...)."
