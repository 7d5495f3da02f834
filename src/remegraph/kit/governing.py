"""`kit.governance`: which version holds, how it came about, who did what, and what an agent was shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from remegraph.errors import InputError, NotFoundError
from remegraph.kit.calling import actor_of, check_numbers, check_text, check_times, required, stream, twin
from remegraph.kit.facade import Access, Facade
from remegraph.models import (
    Archaeology,
    AuditEntry,
    AuditHead,
    Diff,
    Injection,
    Known,
    Memory,
    Mismatch,
    Recall,
    RecallFilter,
    Scope,
    Shown,
    StoredMessage,
)

if TYPE_CHECKING:
    from remegraph.kit.showing import ShownBuffer

__all__ = ["Governance"]


class Governance(Facade):
    """Versions and the audit trail, of what a scope may see.

    Args:
        access: To the kit.
        shown: What agents were shown, and is not written down yet.
    """

    def __init__(self, access: Access, shown: ShownBuffer) -> None:
        super().__init__(access)
        self._shown = shown

    def archaeology(
        self,
        memory_id: str,
        *,
        scope: Scope,
        known_at: datetime | None = None,
        true_at: datetime | None = None,
    ) -> Archaeology:
        """Dig out the chain that a memory is part of: what it replaced, and what replaced it, with all versions (G6).

        Args:
            memory_id: The memory.
            scope: Who asks.
            known_at: As it was recorded by this time; now unless given.
            true_at: `held` tells what of it was true in the world at this time; what holds, unless given.

        Raises:
            NotFoundError: The scope sees no such memory, or it was not known then.
            InputError: The id is no text, or a time has no zone.
        """
        from remegraph.governance.digging import dig, dug

        check_text(memory_id=memory_id)
        check_times(known_at=known_at, true_at=true_at)
        parts = self._parts()
        as_of = RecallFilter(known_at=known_at, true_at=true_at)
        if granted := parts.grants.versions(required(scope), memory_id):
            return dug(granted, memory_id, as_of)
        return dig(parts.archive, parts.archive.visible(scope), memory_id, as_of)

    aarchaeology = twin(archaeology)

    def diff(self, memory_id: str, a: int, b: int, *, scope: Scope) -> Diff:
        """Return what differs between two versions of a memory, field by field and word by word.

        Args:
            memory_id: The memory.
            a: Number of the first version.
            b: Number of the second.
            scope: Who asks.

        Raises:
            NotFoundError: The scope sees no such memory, or it has no such version.
            InputError: The id is no text.
        """
        from remegraph.rules.differing import difference

        check_text(memory_id=memory_id)
        check_numbers(least=0, whole=True, a=a, b=b)
        archive, grants = self._parts().archive, self._parts().grants
        seen = archive.versions(archive.visible(required(scope)), memory_id) or grants.versions(scope, memory_id)
        versions = {each.version: each for each in seen}
        if not versions:
            raise NotFoundError(f"There is no memory {memory_id!r} here.")
        if unknown := [str(number) for number in (a, b) if number not in versions]:
            told = f"Memory {memory_id!r} has no version {' and no version '.join(unknown)}."
            raise NotFoundError(told, f"It has {min(versions)} to {max(versions)}.")
        return difference(versions[a], versions[b])

    adiff = twin(diff)

    def restore(self, memory_id: str, version: int, *, scope: Scope) -> Memory:
        """Let an old version hold again, as a new one: nothing is overwritten, and the journal tells who did.

        Where another memory replaced this one, a new memory says what that version said, and replaces the end of the
        chain. `kit.restore` brings back what was archived.

        Args:
            memory_id: The memory.
            version: Number of the version, as `archaeology` and `trace` give it.
            scope: Whose memory.

        Returns:
            The memory that says it now, active.

        Raises:
            NotFoundError: There is no such memory or version, or it is not this user's.
            InputError: The version was not live, or the id is no text.
            ConflictError: Something changed meanwhile, or its words stand in another live memory.
        """
        from remegraph.governance.restoring import restore

        check_text(memory_id=memory_id)
        check_numbers(least=0, whole=True, version=version)
        parts = self._parts()
        parts.retraction.restore(memory_id, required(scope))  # else its versions say nothing
        memory = restore(
            parts.archive,
            parts.archive.visible(scope),
            parts.own(scope),
            memory_id,
            version,
            actor=actor_of(scope),
            at_home=parts.at_home(scope),
            at=parts.clock(),
            new_id=parts.new_id(),
            operation_id=parts.new_id(),
        )
        self._follow()
        return memory

    arestore = twin(restore)

    def requests(self, *, scope: Scope) -> tuple[StoredMessage, ...]:
        """Return the messages that wait for a decision on a request to forget, with their words.

        Nobody else is shown them meanwhile. Where a model learns, it decides when it reads the block; without one, a
        person does, with `decide`.

        Args:
            scope: Whose.
        """
        return self._parts().wishes.waiting(required(scope))

    arequests = twin(requests)

    def decide(self, message_id: str, *, forget: bool, scope: Scope) -> None:
        """Decide a request to forget: its words are forgotten, or it was none, and they are shown again.

        Args:
            message_id: The message that asks.
            forget: Whether it does.
            scope: Who decides.

        Raises:
            NotFoundError: No request of that message waits here.
            InputError: The id is no text.
            ConflictError: Other changes came first.
        """
        check_text(message_id=message_id)
        self._parts().wishes.decide(required(scope), message_id, forget=forget, actor=actor_of(scope))
        self._follow()

    adecide = twin(decide)

    def audit(
        self, *, scope: Scope, since: datetime | None = None, until: datetime | None = None
    ) -> Iterator[AuditEntry | AuditHead]:
        """Yield the journal: who did what when and why, from which version to which; then the head of each partition.

        No event holds a word of what is remembered. What is recorded while it is read may be left out.

        Args:
            scope: Who asks.
            since: From the first event of this time or later on.
            until: To the last event of this time or earlier.

        Raises:
            InputError: A time has no zone.
        """
        from remegraph.governance.auditing import entries

        check_times(since=since, until=until)
        parts = self._parts()
        return entries(parts.trail, parts.archive.visible(required(scope)), since, until)

    aaudit = stream(audit)

    def export_audit(
        self, path: str | Path, *, scope: Scope, since: datetime | None = None, until: datetime | None = None
    ) -> tuple[AuditHead, ...]:
        """Write what `audit` yields as JSON lines; return the heads. Keep these where nobody can change them.

        Args:
            path: The file; it must not be there yet.
            scope: Who asks.
            since: See `audit`.
            until: See `audit`.

        Raises:
            FileFormatError: The file is there, or cannot be written.
        """
        from remegraph.governance.auditing import export

        return export(Path(path).expanduser(), self.audit(scope=scope, since=since, until=until))

    aexport_audit = twin(export_audit)

    def verify_export(self, path: str | Path, heads: Sequence[AuditHead] = ()) -> tuple[Mismatch, ...]:
        """Return what of an exported file was changed or left out since; nothing where it is whole.

        Args:
            path: The file.
            heads: What `export_audit` returned for it; unless given, those that stand at its end, which only whoever
                has no key could not rewrite.

        Raises:
            FileFormatError: It cannot be read.
        """
        from remegraph.governance.auditing import check_export

        return check_export(self._parts().trail, Path(path).expanduser(), heads)

    averify_export = twin(verify_export)

    def read_heads(self, path: str | Path) -> tuple[AuditHead, ...]:
        """Return the heads that stand in a file, such as one with the last lines of an export.

        Args:
            path: The file.

        Raises:
            FileFormatError: It cannot be read, or holds none.
        """
        from remegraph.governance.auditing import read_heads

        return read_heads(Path(path).expanduser())

    aread_heads = twin(read_heads)

    def injected(
        self,
        found: Recall | Injection | Mapping[str, int],
        *,
        scope: Scope,
        thread: str = "main",
        turn: int = 0,
        run_id: str = "",
    ) -> None:
        """Note which memories an agent was shown, by id and version. The adapters do so; it is written down later.

        Args:
            found: A recall or an injection whose context was shown to it; or, for a context made in another way,
                versions by memory id.
            scope: Who asked.
            thread: The conversation.
            turn: How often a person has spoken in it.
            run_id: The run, where it has a name.

        Raises:
            InputError: The thread, the run or an id is no text, or the turn or a version is no number that can be kept.
        """
        check_text(thread=thread, run_id=run_id)
        check_numbers(least=0, whole=True, turn=turn)
        partition = required(scope).partition()
        if shown := _shown(found):
            at = self._parts().clock()
            self._shown.add(
                [Shown(partition=partition, thread=thread, run_id=run_id, turn=turn, at=at, versions=shown)]
            )

    def known_to(
        self, *, scope: Scope, thread: str | None = None, run_id: str | None = None, turn: int | None = None
    ) -> tuple[Known, ...]:
        """Tell what an agent knew then: each time that it was shown memories, in the versions that it was shown.

        Args:
            scope: Who was talked with.
            thread: In this conversation.
            run_id: In this run.
            turn: When a person had spoken so often.

        Raises:
            InputError: Neither a thread nor a run is named, or the turn is no number that can be kept.
        """
        from remegraph.governance.knowing import known

        if thread is None and run_id is None:
            raise InputError("Neither a thread nor a run is named.", "Give thread=... or run_id=...")
        check_text(**{name: value for name, value in (("thread", thread), ("run_id", run_id)) if value is not None})
        check_numbers(least=0, whole=True, turn=turn)
        parts, partition = self._parts(), required(scope).partition()
        self._shown.flush()
        records = parts.trail.shown(partition, thread=thread, run_id=run_id, turn=turn)
        return known(parts.archive, parts.archive.visible(scope), records)

    aknown_to = twin(known_to)


def _shown(found: Recall | Injection | Mapping[str, int]) -> dict[str, int]:
    """Return the memories that a context shows, with their versions."""
    if isinstance(found, Injection):
        return {item.hit.record_id: item.hit.version for item in found.shown if item.hit.kind == "memory"}
    if isinstance(found, Mapping):
        for memory_id, version in found.items():
            check_text(memory_id=memory_id)
            check_numbers(least=1, whole=True, version=version or 0)
        return dict(found)
    if not isinstance(found, Recall):
        raise InputError(
            f"{type(found).__name__} shows no memories.", "Give a recall, an injection, or versions by memory id."
        )
    versions = {memory.memory_id: memory.version for memory in (*found.self_memories, *found.active)}
    versions |= {hit.record_id: hit.version for hit in found.memories}
    return {memory_id: version for memory_id, version in versions.items() if memory_id not in found.left_out}
