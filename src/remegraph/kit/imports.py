"""`kit.imports`: the memories that other systems exported, taken in as one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import tzinfo
from os import PathLike
from typing import TYPE_CHECKING, Any

from langgraph.store.base import BaseStore

from remegraph.engine.routes import home
from remegraph.errors import CancelledError, ConflictError, ErasedError, InputError, ScopeError
from remegraph.importers.memories import Importing, read_langmem, read_mem0, read_values, store_items
from remegraph.kit.context import Facade, twin
from remegraph.kit.validation import File, actor_of, check_text, library, path_of, required, zone
from remegraph.models import ForeignMemory, Imported, Progress, Scope

if TYPE_CHECKING:
    from remegraph.importers.memories import Export
    from remegraph.kit.worker import Cancel, OnProgress

__all__ = ["Imports"]

BATCH = 100
"""Records taken in by one transaction. Each is held against all before it in its batch, so larger ones take longer."""

_SAID = ("content", "tags", "record")
"""Fields of a record that are free text."""

_ATTEMPTS = 4
"""How often a batch is tried again because other changes came first."""

Whose = Scope | Callable[[ForeignMemory], Scope]


class Imports(Facade):
    """Reads an export whole and checks it, then takes it in by batches. The same export again changes nothing."""

    def mem0(
        self,
        source: File | Iterable[Any],
        *,
        scope: Whose,
        timezone: str | tzinfo | None = None,
        skip_invalid: bool = False,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> Imported:
        """Take in memories of mem0. No model is called.

        Each becomes a memory in its own words, with the record as its evidence: system, id, times, user, agent, run,
        categories and metadata are kept. Of records that say the same, one memory is made, with all of them as evidence.

        Args:
            source: A JSON or JSON lines file; or what `get_all()` returned, in a list.
            scope: Whose they are here; or what says so for each record. One scope is refused for an export of several
                users.
            timezone: Zone of times that name none.
            skip_invalid: Leave out what cannot be read, and tell it, instead of refusing all.
            progress: Told how far it is.
            cancel: Asked before each batch.

        Raises:
            FileFormatError: The file or a record cannot be read; it is named. Nothing changed.
            ScopeError: The export is of several users and one scope is given, or no scope. Nothing changed.
            CancelledError: `cancel` said so. What was taken in stays; the next import goes on.
            ConflictError: Other changes came first, again and again.
        """
        export = read_mem0(_values(source), timezone=zone(timezone), skip_invalid=skip_invalid)
        return self._take_in(export, scope, progress, cancel)

    amem0 = twin(mem0)

    def langmem(
        self,
        source: File | BaseStore | Iterable[Any],
        *,
        scope: Whose,
        prefix: Sequence[str] = (),
        user_at: int = 1,
        timezone: str | tzinfo | None = None,
        skip_invalid: bool = False,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> Imported:
        """Take in the items of a LangGraph store that LangMem filled, as `mem0` does. The store is only read.

        Args:
            source: The store; a JSON or JSON lines file of its items; or those in a list.
            scope: Whose they are here; or what says so for each item. One scope is refused for items of several users.
            prefix: Only what is below this namespace, as in `("memories",)`.
            user_at: The place in the namespace, from 0, that names the user; by LangMem's default `("memories", user)`.
            timezone: Zone of times that name none.
            skip_invalid: Leave out what cannot be read, and tell it, instead of refusing all.
            progress: Told how far it is.
            cancel: Asked before each batch.

        Raises:
            FileFormatError: The file or an item cannot be read, or the store changed meanwhile. Nothing changed.
            ScopeError: The items are of several users and one scope is given, or no scope. Nothing changed.
            CancelledError: `cancel` said so. What was taken in stays; the next import goes on.
            ConflictError: Other changes came first, again and again.
        """
        if isinstance(prefix, str):
            raise InputError("prefix is one text.", "Give a list of labels.")
        check_text(**{f"prefix[{at}]": label for at, label in enumerate(prefix)})
        below = tuple(prefix)
        values = store_items(source, below) if isinstance(source, BaseStore) else _values(source)
        export = read_langmem(values, user_at=user_at, timezone=zone(timezone), skip_invalid=skip_invalid)
        export.memories = [each for each in export.memories if each.namespace[: len(below)] == below]
        return self._take_in(export, scope, progress, cancel)

    alangmem = twin(langmem)

    # ------------------------------------------------------------------------------------------- inside

    def _take_in(self, export: Export, scope: Whose, progress: OnProgress | None, cancel: Cancel | None) -> Imported:
        redact = self._parts().redactor.record
        homes = [(self._importing(whose), records) for whose, records in _by_scope(export.memories, scope).items()]
        done, total = 0, len(export.memories)
        for importing, records in homes:
            for batch in (records[start : start + BATCH] for start in range(0, len(records), BATCH)):
                if cancel is not None and cancel():
                    raise CancelledError(f"The import was cancelled after {done} of {total} records.")
                self._commit(importing, importing.news([redact(each, *_SAID) for each in batch]))
                done += len(batch)
                if progress is not None:
                    progress(Progress(stage="Import", done=done, total=total, detail=importing.user))
        each = [importing for importing, _ in homes]
        return Imported(
            created=sum(one.created for one in each),
            corroborated=sum(one.corroborated for one in each),
            known=sum(one.known for one in each),
            erased=sum(one.erased for one in each),
            changed=tuple(name for one in each for name in one.changed),
            invalid=tuple(export.invalid),
            relations=export.relations,
            users=tuple(dict.fromkeys(one.user for one in each)),
            degraded=self._follow(),
        )

    def _importing(self, whose: Scope) -> Importing:
        parts, shelves = self._parts(), library(whose, self._settings)
        return Importing(
            archive=parts.archive,
            user=whose.user,
            said_in=shelves.partition(),
            lives_in=home(shelves, self._settings.trust_boundary),
            actor=actor_of(whose),
            recipe=self._settings.summary.recipe,
            at_home=parts.at_home(whose),
        )

    def _commit(self, importing: Importing, news: Sequence[ForeignMemory]) -> None:
        """Take new records in, all at once; without those that were erased here, which stay so."""
        if not news:
            return
        try:
            created = self._committed(importing, news)
        except ErasedError:
            if len(news) == 1:
                importing.erased += 1
                return
            middle = len(news) // 2
            self._commit(importing, news[:middle])
            self._commit(importing, news[middle:])
        else:
            importing.created += created
            importing.corroborated += len(news) - created

    def _committed(self, importing: Importing, news: Sequence[ForeignMemory]) -> int:
        """Commit new records; return how many memories they made."""
        parts = self._parts()
        for _ in range(_ATTEMPTS - 1):
            try:
                return parts.disputes.commit(importing.change(news, parts.clock()))[1].created
            except ConflictError:
                continue  # a label was taken, or a memory changed, between our look and our write
        return parts.disputes.commit(importing.change(news, parts.clock()))[1].created


def _values(source: object) -> Iterator[Any]:
    if isinstance(source, str | PathLike):
        return read_values(path_of(source))
    if not isinstance(source, Iterable):
        raise InputError(f"The source is of type {type(source).__name__}.", "Give a path, or a list of records.")
    return iter([source] if isinstance(source, dict) else source)


def _by_scope(memories: Sequence[ForeignMemory], scope: Whose) -> dict[Scope, list[ForeignMemory]]:
    """Return the records of each scope; refuse to put several users into one that is given for all."""
    if isinstance(scope, Scope) or not callable(scope):
        users = sorted({each.user for each in memories} - {""})
        if len(users) > 1:
            told = ", ".join(users[:5]) + (f" and {len(users) - 5} more" if len(users) > 5 else "")
            raise ScopeError(
                f"The export is of {len(users)} users: {told}.",
                "Give a function that returns the Scope of each record; on the command line, leave --user out.",
            )
        return {required(scope): list(memories)}
    found: dict[Scope, list[ForeignMemory]] = {}
    for each in memories:
        found.setdefault(required(scope(each)), []).append(each)
    return found
