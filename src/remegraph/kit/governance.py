"""`kit.governance` and `kit.conflicts`: which version is valid, who did what, what contradicts, and what an agent was shown."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from os import PathLike
from pathlib import Path

from remegraph.engine.frame import selected, shown_records
from remegraph.engine.retrieval.hits import record_parts, still_shown
from remegraph.errors import ConflictError, InputError, NotFoundError
from remegraph.governance.decisions import Resolution, check, find, listed, resolve
from remegraph.governance.versions import difference, dig, dug, known, restore
from remegraph.kit.facade import Context, Facade, stream, twin
from remegraph.kit.validation import (
    File,
    actor_of,
    check_choice,
    check_choices,
    check_numbers,
    check_text,
    check_times,
    required,
)
from remegraph.ledger.audit import check_export, entries, export, read_heads
from remegraph.models import (
    Archaeology,
    AuditEntry,
    AuditHead,
    Conflict,
    ConflictKind,
    ConflictState,
    Decision,
    Diff,
    ForgetDecision,
    ForgetRequest,
    Injection,
    Known,
    Memory,
    Mismatch,
    Recall,
    RecallFilter,
    Scope,
    Shown,
)

__all__ = ["Conflicts", "Governance", "heads_of", "restored"]


class Governance(Facade):
    """Versions and the audit trail, of what a scope may see.

    Args:
        context: What the verbs of the kit share.
    """

    def archaeology(
        self,
        memory_id: str,
        *,
        scope: Scope,
        known_at: datetime | None = None,
        true_at: datetime | None = None,
    ) -> Archaeology:
        """Return the chain that a memory is part of: what it replaced, and what replaced it, with all versions (G6).

        Args:
            memory_id: The memory.
            scope: Who asks.
            known_at: As it was recorded by this time; now unless given.
            true_at: `held` has what of it was true in the world at this time; what is valid now, unless given.

        Raises:
            NotFoundError: The scope sees no such memory, or it was not known then.
            InputError: The id is no text, or a time has no zone.
        """
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

    def requests(self, *, scope: Scope) -> tuple[ForgetRequest, ...]:
        """Return the requests to forget that wait for a decision, each with the words that it withholds.

        No one else is shown these meanwhile. Where a model learns, it decides when it reads the block; without one, a
        person does, with `decide`.

        Args:
            scope: Whose.
        """
        return self._parts().forget_decisions.waiting(required(scope))

    arequests = twin(requests)

    def decide(self, message_id: str, *, forget: bool, scope: Scope) -> ForgetDecision:
        """Decide a request to forget: its words are forgotten, or it was no request, and they are shown again.

        What it names is forgotten with them, as `forget` does it: memories and raw words that hold a value of it, or all of its
        words, two at least. What is firm stays.

        Args:
            message_id: The message that asks.
            forget: Whether it does.
            scope: Who decides.

        Returns:
            What was forgotten, and whether anything was found besides the request itself.

        Raises:
            NotFoundError: No request of that message waits here.
            InputError: The id is no text.
            ConflictError: Other changes came first.
        """
        check_text(message_id=message_id)
        decided = self._parts().forget_decisions.decide(
            required(scope), message_id, forget=forget, actor=actor_of(scope), discard=self._context.in_mind.discard
        )
        self._follow()
        return decided

    adecide = twin(decide)

    def audit(
        self, *, scope: Scope, since: datetime | None = None, until: datetime | None = None
    ) -> Iterator[AuditEntry | AuditHead]:
        """Yield the journal: who did what when and why, from which version to which; then the head of each partition.

        No event holds a word of what is remembered. Events recorded during the read may be left out.

        Args:
            scope: Who asks.
            since: From the first event of this time or later on.
            until: To the last event of this time or earlier.

        Raises:
            InputError: A time has no zone.
        """
        check_times(since=since, until=until)
        parts = self._parts()
        return entries(parts.trail, parts.archive.visible(required(scope)), since, until)

    aaudit = stream(audit)

    def export_audit(
        self, path: str | Path, *, scope: Scope, since: datetime | None = None, until: datetime | None = None
    ) -> tuple[AuditHead, ...]:
        """Write what `audit` yields as JSON lines; return the heads. Keep these where no one can change them.

        Args:
            path: The file; it must not exist yet.
            scope: Who asks.
            since: See `audit`.
            until: See `audit`.

        Raises:
            FileFormatError: The file exists, or cannot be written.
        """
        return export(Path(path).expanduser(), self.audit(scope=scope, since=since, until=until))

    aexport_audit = twin(export_audit)

    def verify_export(self, path: File, heads: Sequence[AuditHead] | File = ()) -> tuple[Mismatch, ...]:
        """Return what was changed or left out of an exported file since; nothing where it is intact.

        Args:
            path: The file.
            heads: What `export_audit` returned for it, or a file with such lines, kept elsewhere; unless given, those
                at its end, which anyone with the key could rewrite.

        Raises:
            FileFormatError: It cannot be read, or the other file holds no heads.
        """
        return check_export(self._parts().trail, Path(path).expanduser(), heads_of(heads))

    averify_export = twin(verify_export)

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
            self._context.shown.add(
                [Shown(partition=partition, thread=thread, run_id=run_id, turn=turn, at=at, versions=shown)]
            )

    def known_to(
        self, *, scope: Scope, thread: str | None = None, run_id: str | None = None, turn: int | None = None
    ) -> tuple[Known, ...]:
        """Return what an agent knew then: each time that it was shown memories, in the versions that it was shown.

        Args:
            scope: Who was talked with.
            thread: In this conversation.
            run_id: In this run.
            turn: When a person had spoken this often.

        Raises:
            InputError: Neither a thread nor a run is named, or the turn is no number that can be kept.
        """
        if thread is None and run_id is None:
            raise InputError("Neither a thread nor a run is named.", "Give thread=... or run_id=...")
        check_text(**{name: value for name, value in (("thread", thread), ("run_id", run_id)) if value is not None})
        check_numbers(least=0, whole=True, turn=turn)
        parts, partition = self._parts(), required(scope).partition()
        self._context.shown.flush()
        records = parts.trail.shown(partition, thread=thread, run_id=run_id, turn=turn)
        return known(parts.archive, parts.archive.visible(scope), records)

    aknown_to = twin(known_to)

    def standing(self, contexts: Sequence[str], *, scope: Scope, task: str | None = None) -> tuple[str, ...]:
        """Return contexts that were shown before, as they may be shown again.

        Whatever was forgotten, withheld, edited, replaced or has ended since is left out, as is what is no longer in mind; the rest
        is unchanged. A context with nothing left is empty.

        Args:
            contexts: As recall wrote them: `Recall.context`.
            scope: Who is shown them.
            task: What is in mind for this task may be shown again.

        Raises:
            InputError: A context is not as recall wrote it, or the task is no text.
        """
        if task is not None:
            check_text(task=task)
        try:
            records = [said for each in contexts for said in shown_records(each)]
        except ValueError as error:
            raise InputError(f"A context is cut or changed ({error}).", "Give Recall.context as it is.") from error
        if not records:
            return tuple(contexts)
        parts = self._parts()
        with parts.archive.session():
            said = still_shown(parts.archive, parts.grants, required(scope), records, parts.clock())
        if task is not None:
            chunks = self._context.in_mind.chunks((scope.partition(), task))
            said |= {(each.chunk_id, each.content, "current") for each in chunks}
        return tuple(selected(each, lambda record: record_parts(record) in said) for each in contexts)

    astanding = twin(standing)


def restored(context: Context, memory_id: str, version: int, scope: Scope) -> Memory:
    """Make an old version valid again, as a new one; see `MemoryKit.restore`."""
    check_text(memory_id=memory_id)
    check_numbers(least=0, whole=True, version=version)
    parts = context.parts()
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
    context.follow()
    return memory


def heads_of(heads: Sequence[AuditHead] | File) -> Sequence[AuditHead]:
    """Return heads of the journal as they are, or those in a file, such as one with the last lines of an export.

    Raises:
        FileFormatError: The file cannot be read, or holds none.
    """
    return read_heads(Path(heads).expanduser()) if isinstance(heads, str | PathLike) else heads


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
    versions |= {hit.record_id: hit.version for hit in (*found.memories, *found.beside) if hit.kind == "memory"}
    return {memory_id: version for memory_id, version in versions.items() if memory_id not in found.left_out}


_WAITING: tuple[ConflictKind, ...] = ("contradiction",)
"""The kinds that wait for a decision."""


class Conflicts(Facade):
    """The queue of conflicts of a user, and of their team where the users of an agent are one."""

    def list(
        self,
        *,
        scope: Scope,
        state: ConflictState = "open",
        kinds: Collection[ConflictKind] = _WAITING,
    ) -> tuple[Conflict, ...]:
        """Return the conflicts, contradictions first, the newest first.

        Args:
            scope: Whose.
            state: open: those that wait for a decision; resolved: those that were decided, or that have lost a memory.
            kinds: contradiction; superset and subset: pairs where one says all that the other says, which need no
                decision.

        Raises:
            InputError: There is no such state or kind.
        """
        check_choice(ConflictState, state=state)
        check_choices(ConflictKind, kinds=kinds)
        parts = self._parts()
        return listed(parts.archive, parts.own(required(scope)), state, kinds)

    alist = twin(list)  # noqa: A003 - the verb above

    def resolve(
        self,
        conflict_id: str,
        decision: Decision,
        *,
        scope: Scope,
        by: str,
        note: str = "",
        keep: str = "",
        by_model: bool = False,
    ) -> Conflict:
        """Decide a conflict. No version is lost, and the journal records who decided what, when and why.

        add: the newer is an addition, both are valid. supersede: one replaces the other. merge: one absorbs the other.
        keep_both: they do contradict each other, and both are worth knowing: recall keeps showing the one with the
        other. dismiss: there is no contradiction. Deciding the same again changes nothing.

        Args:
            conflict_id: The conflict, as it was listed.
            decision: What becomes of the two.
            scope: Whose conflict.
            by: Who decides.
            note: Why, for the journal, which outlives the memories: say nothing there that may have to be forgotten.
            keep: Which of the two stays, of supersede and merge; the newer unless given.
            by_model: Whether a model decides: it takes back neither core rules nor policies nor knowledge.

        Returns:
            The conflict, resolved.

        Raises:
            NotFoundError: There is no such conflict, or it is not this user's.
            ConflictError: The memories changed since it was listed, or it was decided otherwise meanwhile.
            InputError: There is no such decision, or it cannot be carried out.
        """
        check_text(conflict_id=conflict_id, decision=decision, by=by, note=note, keep=keep)
        parts = self._parts()
        resolution = Resolution(decision, by, parts.redactor.text(note), keep, by_model)
        check(resolution)
        mine = parts.own(required(scope))
        conflict = find(parts.archive, mine, conflict_id)
        if conflict.state == "resolved":
            return _as_decided(conflict, decision)
        home = parts.at_home(scope)
        change = resolve(conflict, resolution, at_home=home, operation_id=parts.new_id(), now=parts.clock())
        parts.disputes.commit(change)
        self._follow()
        return find(parts.archive, mine, conflict_id)

    aresolve = twin(resolve)


def _as_decided(conflict: Conflict, decision: Decision) -> Conflict:
    if conflict.decided is not None and conflict.decided.decision == decision:
        return conflict
    what = f"was decided: {conflict.decided.decision}" if conflict.decided else "is over: one of the memories is gone"
    raise ConflictError(
        [conflict.older.memory_id, conflict.newer.memory_id],
        f"The conflict {what}. List the conflicts again.",
    )
