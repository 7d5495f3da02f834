"""`kit.knowledge` and `kit.imports`: what an agent gives to others, and what it imports from other agents and systems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph.store.base import BaseStore
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from remegraph.engine.disputes import repeated
from remegraph.engine.routes import home
from remegraph.errors import CancelledError, ErasedError, InputError, ScopeError
from remegraph.governance import decisions
from remegraph.importers.memories import Importing, read_langmem, read_mem0, read_values, store_items
from remegraph.kit.facade import ALONE, Context, Facade, twin
from remegraph.kit.packs import key_list
from remegraph.kit.recall import Asked, Recalls
from remegraph.kit.validation import File, actor_of, check_text, library, path_of, required, zone
from remegraph.mek.extraction import Sources, build_extractor
from remegraph.mek.items import SIGNATURE, SigningKey, TrustStore, item_digest, perceive, signed, signer
from remegraph.mek.offers import Reception
from remegraph.models import (
    Absorption,
    Budget,
    Extraction,
    ExtractionReport,
    ForeignMemory,
    Imported,
    KnowledgeItem,
    Memory,
    Progress,
    Scope,
    SharedItem,
)
from remegraph.models.base import Token
from remegraph.models.skills import is_skill
from remegraph.retention.maintenance import Round
from remegraph.skills.choice import figures

if TYPE_CHECKING:
    from remegraph.importers.memories import Export
    from remegraph.kit.worker import Cancel, OnProgress
    from remegraph.mek.extraction import ExtractService, ShareInput
    from remegraph.models import SkillFigures

__all__ = ["Imports", "Knowledge"]


class _Context(BaseModel):
    """Keys that the context of `share` may have."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    include_episodes: bool = False
    public: list[Token] = Field(default=[])
    k: int = Field(default=20, ge=1, le=200)


def _read(context: Mapping[str, object] | None) -> _Context:
    """Return the context of a call.

    Raises:
        InputError: It holds a field that it may not; the error names it.
    """
    given: Any = {} if context is None else context
    if not isinstance(given, Mapping):
        raise InputError(f"context is of type {type(given).__name__}.", "Give a mapping.")
    try:
        return _Context.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise InputError(f"context.{name} cannot be used: {first['msg']}.", "See share.") from error


class Knowledge(Facade):
    """Makes knowledge of memories, and memories of knowledge.

    Args:
        context: What the verbs of the kit share.
        recalls: Finds memories.
    """

    def __init__(self, context: Context, recalls: Recalls) -> None:
        super().__init__(context)
        self._recalls = recalls

    def absorb(
        self,
        items: Iterable[KnowledgeItem | Mapping[str, Any]],
        *,
        scope: Scope,
        from_agent: str | None = None,
    ) -> Absorption:
        """Make memories of what other agents shared: all of the items or, on an error, none. The same again changes nothing.

        Each is trusted no further than it says, and than `settings.sharing` says of its source, which this ledger or a
        signature must prove; under .5 it is quarantined, and `waiting` has it. What is known already is confirmed, once
        by each agent; what contradicts a memory is kept beside it, and `kit.conflicts` has the two. A workflow that can
        be executed and checked becomes a skill without any runs. No model is called.

        Args:
            items: Knowledge items, or JSON in their form.
            scope: Who takes them in.
            from_agent: The agent that they are expected from: items of others are refused.

        Returns:
            What became of each; `memory_ids` are those of new and updated memories, in order.

        Raises:
            InputError: There are too many items, or one is too large, too deep, or no item.
            ConflictError: Other changes came first, again and again.
        """
        if from_agent is not None:
            check_text(from_agent=from_agent)
        parts, agent, library = self._parts(), required(scope).agent, self._context.library(scope)
        reception = Reception(parts.settings.sharing, agent, from_agent, parts.clock())
        offers = [reception.offer(item, self._proven(item, library)) for item in perceive(items)]
        done = parts.absorber(scope).absorb(
            offers,
            said_in=library.partition(),
            lives_in=home(library, parts.settings.trust_boundary),
            actor=actor_of(scope),
        )
        return done.evolve(degraded=self._follow())

    aabsorb = twin(absorb)

    def waiting(self, *, scope: Scope) -> tuple[Memory, ...]:
        """Return the memories that wait for approval, the newest first: nothing recalls or shows them until then.

        Args:
            scope: Whose.
        """
        parts = self._parts()
        return decisions.waiting(parts.archive, parts.own(self._context.library(scope)))

    awaiting = twin(waiting)

    def decide(self, memory_id: str, *, approve: bool, scope: Scope, by: str, note: str = "") -> Memory:
        """Approve a memory that waits for approval, or delete it. Approving it again changes nothing.

        An approved memory is compared with what is known, as a new one would be, and is trusted no more than before;
        `forget` takes it back. A deleted one leaves a tombstone, so that the same words do not come back.

        Args:
            memory_id: The memory.
            approve: Whether it is valid from now on.
            scope: Whose.
            by: The person who decides.
            note: Why, for the journal, which outlives the memory: say nothing there that may have to be forgotten.

        Returns:
            The memory, live or deleted.

        Raises:
            NotFoundError: There is no such memory, or it is not this user's.
            InputError: It is missing who decides, or what is to be deleted was approved already.
            ConflictError: It changed meanwhile, or a live memory has its words by now.
        """
        check_text(memory_id=memory_id, by=by, note=note)
        parts = self._parts()
        memory = (decisions.approve if approve else decisions.reject)(
            parts.archive,
            parts.disputes.commit,
            parts.own(self._context.library(scope)),
            memory_id,
            by=by,
            note=parts.redactor.text(note),
            at=parts.clock(),
            operation_id=parts.new_id(),
        )
        self._follow()
        return memory

    adecide = twin(decide)

    def _proven(self, item: KnowledgeItem, library: Scope) -> str | None:
        """Return the agent that truly shared an item: as this ledger notes, or a key proves that is believed."""
        agent = self._parts().archive.shared_by(library, item.knowledge_id, item_digest(item))
        return self._signer(item) if agent is None and SIGNATURE in item.metadata else agent

    def _signer(self, item: KnowledgeItem) -> str | None:
        return signer(item, TrustStore.open(key_list(self._settings)))

    def share(
        self,
        query: str,
        *,
        scope: Scope,
        context: Mapping[str, object] | None = None,
        key: str | Path | None = None,
        budget: Budget | None = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> Extraction:
        """Make knowledge of the memories that are relevant to a query: without names, secrets, times and places.

        What is found is filtered, cleaned, said in general, searched once more and written as knowledge items. The
        report says what became of each memory. The same knowledge gets the same id whenever it is shared. The ledger
        notes, without a word of them, which agent shared which items. Unless a model is set, rules do it all; where a
        model fails to say something in general, rules do.

        Args:
            query: What the knowledge should be about.
            scope: Whose memories; it names the agent that shares.
            context: include_episodes: whether the pattern of single episodes may leave, too; public: names that may stay,
                as everyone knows them; k: how many memories to look at.
            key: The file of a private key, as `remegraph pack keygen` writes it, to sign the items for agents whose ledger
                is another one: they believe it by `kit.packs.trust_key`, under the name of the agent.
            budget: Hard limits on calls and tokens.
            progress: Called before each step.
            cancel: Asked before each step and each question to the model.

        Raises:
            ScopeError: The scope names no agent.
            InputError: The query is empty, the context holds what it may not, or the file is no such key.
            MissingExtraError: The extra `sharing` is not installed.
            ModelUnavailableError: The model is down; nothing was shared.
            BudgetExceededError: The budget is used up; nothing was shared.
            CancelledError: `cancel` said so; nothing was shared.
        """
        agent = required(scope).agent
        if agent is None:
            raise ScopeError("Who shares must have a name.", "Give the scope an agent.")
        check_text(query=query)
        options, parts = _read(context), self._parts()
        private = None if key is None else SigningKey.open(Path(key))
        meter, this = (
            parts.meter(scope.partition(), budget),
            Round(parts.clock(), dry_run=False, progress=progress, cancel=cancel),
        )
        asked: ShareInput = {
            "query": query,
            "scope": scope,
            "agent": agent,
            "now": this.at,
            "k": options.k,
            "episodes": options.include_episodes,
            "public": tuple(options.public),
            "generalizer": parts.thinkers.generalizer(self._context.library(scope).agent, meter),
            "tell": this.report,
            "check": this.check,
        }
        with meter:
            done = self._extractor.invoke(asked, ALONE)
        items = done["items"] if private is None else tuple(signed(each, private) for each in done["items"])
        noted = [
            SharedItem(knowledge_id=each.knowledge_id, digest=item_digest(each), agent=agent, at=each.created_at)
            for each in items
        ]
        if noted:
            parts.archive.add_shared(scope.partition(), noted)
        report = ExtractionReport(
            examined=len(done["found"]),
            rejected=done["rejected"],
            removed=done["removed"],
            by_rules=done["by_rules"],
        )
        return Extraction(items=items, report=report, usage=meter.usage())

    ashare = twin(share)

    @cached_property
    def _extractor(self) -> ExtractService:
        archive = self._parts().archive

        def recall(query: str, scope: Scope, k: int) -> Sequence[Memory]:
            hits = self._recalls.recall(Asked(query=query, scope=scope, k=k)).memories
            order = {hit.record_id: at for at, hit in enumerate(hits)}
            places = list(dict.fromkeys(hit.partition for hit in hits))
            found = archive.memories(places, ids=list(order))
            return sorted(found, key=lambda memory: order[memory.memory_id])

        def figures_of(memories: Sequence[Memory]) -> Mapping[str, SkillFigures]:
            skills = [memory for memory in memories if is_skill(memory)]
            return {each.memory_id: each for each in figures(archive, skills)}

        return build_extractor(Sources(archive, recall, figures_of))


# ------------------------------------------------------------------------------------------- from other systems


BATCH = 100
"""Records taken in by one transaction. Each is held against all before it in its batch, so larger ones take longer."""

_SAID = ("content", "tags", "record")
"""Fields of a record that are free text."""

Whose = Scope | Callable[[ForeignMemory], Scope]


class Imports(Facade):
    """Reads and checks a whole export, then imports it by batches. The same export again changes nothing."""

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
        """Import memories of mem0. No model is called.

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
        """Import the items of a LangGraph store that LangMem filled, as `mem0` does. The store is only read.

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
        """Import new records in one transaction; without those that were erased here, which stay so."""
        if not news:
            return
        parts = self._parts()
        try:
            _, receipt = repeated(lambda: parts.disputes.commit(importing.change(news, parts.clock())))
        except ErasedError:
            if len(news) == 1:
                importing.erased += 1
                return
            middle = len(news) // 2
            self._commit(importing, news[:middle])
            self._commit(importing, news[middle:])
        else:
            importing.created += receipt.created
            importing.corroborated += len(news) - receipt.created


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
            named = ", ".join(users[:5]) + (f" and {len(users) - 5} more" if len(users) > 5 else "")
            raise ScopeError(
                f"The export is of {len(users)} users: {named}.",
                "Give a function that returns the Scope of each record; on the command line, leave --user out.",
            )
        return {required(scope): list(memories)}
    found: dict[Scope, list[ForeignMemory]] = {}
    for each in memories:
        found.setdefault(required(scope(each)), []).append(each)
    return found
