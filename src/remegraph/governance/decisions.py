"""Decisions made by people: the queue of conflicts (K4, G7), memories in quarantine (X6), and requests to forget.

A conflict is a pair of memories that a link holds apart. It is open while both are live and no link `settled` joins
them. Its id follows from the two and their words, so a decision about words that changed unread is refused.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import TYPE_CHECKING, cast, get_args

from remegraph.engine.forget_phrases import Request, asked_in, means, sought_by
from remegraph.engine.forget_requests import WAITS, Wish, Wishes
from remegraph.engine.removal import UNSAID, Words
from remegraph.engine.retraction import Discard, Retraction
from remegraph.engine.routes import at_home, own
from remegraph.errors import ConflictError, InputError, NotFoundError
from remegraph.ledger.permissions import is_shared
from remegraph.models import (
    ChangeSet,
    Conflict,
    ConflictKind,
    ConflictState,
    Decided,
    Decision,
    ForgetDecision,
    ForgetRequest,
    Link,
    LinkType,
    Memory,
    MemoryChange,
    Partition,
    Scope,
    Status,
    StoredMessage,
    Work,
)
from remegraph.models.remnants import MARK
from remegraph.models.standing import APPROVE
from remegraph.models.supersession import CONTRARY, Pair, content_digest, folded_together, pair_of, revision, settled
from remegraph.settings import Settings
from remegraph.text.sentences import sentences

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["ForgetDecisions", "Resolution", "approve", "find", "listed", "reject", "resolve", "waiting"]


_TYPES: tuple[LinkType, ...] = (*CONTRARY, "superset_of", "settled")
_LONGEST_NOTE = 500
_ANSWER = 4
"""Messages after a forgotten one to search for its answer."""
_ORDER: Mapping[ConflictKind, int] = {"contradiction": 0, "redundancy": 1, "superset": 2, "subset": 2}


@dataclass(frozen=True, slots=True)
class Resolution:
    """A decision about a conflict."""

    decision: Decision
    by: str
    note: str = ""
    keep: str = ""
    """Which memory stays if one of them goes; the newer by default."""
    by_model: bool = False
    """Whether a model decides: it may not retract core rules, policies or knowledge."""


def listed(
    archive: Archive, partitions: Sequence[Partition], state: ConflictState, kinds: Collection[ConflictKind]
) -> tuple[Conflict, ...]:
    """Return the conflicts in a state, contradictions first, the newest first."""
    found = [each for each in _conflicts(archive, partitions) if each.state == state and each.kind in kinds]
    if state == "resolved":
        found = [each.evolve(decided=_decided(archive, partitions, each)) for each in found]
    found.sort(key=lambda each: each.conflict_id)
    found.sort(key=lambda each: each.newer.said_at, reverse=True)
    return tuple(sorted(found, key=lambda each: (_ORDER[each.kind], not each.certain)))


def find(archive: Archive, partitions: Sequence[Partition], conflict_id: str) -> Conflict:
    """Return a conflict, open or resolved."""
    pair, _, _ = conflict_id.partition("-")
    for each in _conflicts(archive, partitions):
        if not each.conflict_id.startswith(f"{pair}-"):
            continue
        if each.state == "resolved":
            return each.evolve(decided=_decided(archive, partitions, each))
        if each.conflict_id == conflict_id:
            return each
        raise ConflictError([each.older.memory_id, each.newer.memory_id], "List the conflicts again, and decide.")
    raise NotFoundError(f"There is no conflict {conflict_id!r} here.")


def resolve(
    conflict: Conflict, resolution: Resolution, *, at_home: bool, operation_id: str, now: datetime
) -> ChangeSet:
    """Return the change that carries out a decision.

    add, dismiss and keep_both leave both memories as they are: the newer is an addition, there is no contradiction, or
    there is one and both are worth knowing, in which case recall continues to show both together. supersede lets
    one replace the other, merge combines them.
    """
    kept, gone = _sides(conflict, resolution)
    settle = Link(
        source_id=conflict.newer.memory_id,
        type="settled",
        target_id=conflict.older.memory_id,
        reason=resolution.decision,
    )
    links = [settle]
    if resolution.decision in {"supersede", "merge"}:
        _check_loss(kept, gone, resolution)
        links.append(Link(source_id=kept.memory_id, type="supersedes", target_id=gone.memory_id))
        stays = folded_together(kept, [gone]) if resolution.decision == "merge" else kept
        kept_next = stays.evolve(
            version=kept.version + 1, supersedes=tuple(dict.fromkeys((*kept.supersedes, gone.memory_id)))
        )
        ends = gone.valid_to or max(gone.valid_from or gone.said_at, kept.valid_from or kept.said_at)
        gone_next = gone.evolve(version=gone.version + 1, status="superseded", valid_to=ends)
    else:
        kept_next, gone_next = (each.evolve(version=each.version + 1) for each in (kept, gone))
    action = f"resolve_{resolution.decision}"
    changes = [
        MemoryChange(
            memory=new.evolve(recorded_at=now), expected_version=old.version, action=action, reason=resolution.note
        )
        for old, new in ((kept, kept_next), (gone, gone_next))
    ]
    return ChangeSet(
        operation_id=operation_id,
        actor=resolution.by,
        recorded_at=now,
        at_home=at_home or not resolution.by_model,
        changes=tuple(changes),
        links=tuple(links),
    )


def check(resolution: Resolution) -> None:
    """Refuse an unknown decision, one without an author, or one with too long a note."""
    if resolution.decision not in get_args(Decision):
        choices = ", ".join(get_args(Decision))
        raise InputError(f"There is no decision {resolution.decision!r}.", f"Give one of {choices}.")
    if not resolution.by.strip():
        raise InputError("There is no one to decide.", "Say who does: by=...")
    if len(resolution.note) > _LONGEST_NOTE:
        raise InputError(f"The note has {len(resolution.note)} characters.", f"Give at most {_LONGEST_NOTE}.")


def _sides(conflict: Conflict, resolution: Resolution) -> tuple[Memory, Memory]:
    sides = {conflict.newer.memory_id: conflict.newer, conflict.older.memory_id: conflict.older}
    kept = sides.pop(resolution.keep or conflict.newer.memory_id, None)
    if kept is None:
        raise InputError(f"Memory {resolution.keep!r} is none of the two.", f"Keep one of {', '.join(sides)}.")
    return kept, next(iter(sides.values()))


def _check_loss(kept: Memory, gone: Memory, resolution: Resolution) -> None:
    if kept.partition != gone.partition:
        raise InputError("The two live in different places.", "Keep both, or forget the one that is wrong.")
    if resolution.by_model and (gone.is_core or gone.firm or kept.firm):
        raise InputError(
            "One of the two is a core rule, a policy or knowledge, which no model changes.", "Ask a person to decide."
        )


def _conflicts(archive: Archive, partitions: Sequence[Partition]) -> Iterator[Conflict]:
    links = archive.links(partitions, None, types=_TYPES) if partitions else ()
    over = settled(links)
    between: defaultdict[Pair, list[Link]] = defaultdict(list)
    for link in links:
        if link.type != "settled":
            between[pair_of(link)].append(link)
    ids = sorted(frozenset().union(*between))
    memories = {memory.memory_id: memory for memory in archive.memories(partitions, ids=ids)} if ids else {}
    for pair, some in between.items():
        link = min(some, key=lambda each: _TYPES.index(each.type))
        source, target = memories[link.source_id], memories[link.target_id]
        # At the same time, the one that was linked to is the older: it existed before.
        older, newer = (source, target) if source.said_at < target.said_at else (target, source)
        if "procedural" in {older.layer, newer.layer}:
            continue  # skills are variants; their outcomes decide between them
        kind: ConflictKind = "superset" if link.source_id == newer.memory_id else "subset"
        if link.type in CONTRARY:
            kind = "contradiction"
        is_open = older.live and newer.live and pair not in over
        yield Conflict(
            conflict_id=_id(older, newer),
            kind=kind,
            older=older,
            newer=newer,
            certain=link.type != "may_contradict",
            reason=link.reason,
            state="open" if is_open else "resolved",
        )


def _id(*memories: Memory) -> str:
    named = sorted(memories, key=lambda memory: memory.memory_id)
    parts = [[memory.memory_id for memory in named], [content_digest(memory.content) for memory in named]]
    return "-".join(hashlib.sha256("\n".join(part).encode()).hexdigest()[:12] for part in parts)


def _decided(archive: Archive, partitions: Sequence[Partition], conflict: Conflict) -> Decided | None:
    """Return the last decision about both memories, from the journal."""
    mine, yours = (
        {
            event.operation_id: event
            for event in archive.events(partitions, record_id=memory.memory_id)
            if event.action.startswith("resolve_")
        }
        for memory in (conflict.older, conflict.newer)
    )
    both = [event for operation, event in mine.items() if operation in yours]
    if not both:
        return None
    event = both[-1]
    decision = cast("Decision", event.action.removeprefix("resolve_"))
    return Decided(decision=decision, by=event.actor, at=event.time, note=event.reason)


def waiting(archive: Archive, partitions: Sequence[Partition]) -> tuple[Memory, ...]:
    """Return the quarantined memories, the newest first."""
    return archive.memories(partitions, statuses=["quarantined"]) if partitions else ()


def _decision(status: Status, action: str) -> Callable[..., Memory]:
    """Return the function by which a person moves a quarantined memory to a status."""

    def decide(
        archive: Archive,
        commit: Callable[[ChangeSet], object],
        partitions: Sequence[Partition],
        memory_id: str,
        *,
        by: str,
        note: str,
        at: datetime,
        operation_id: str,
    ) -> Memory:
        if not by.strip():
            raise InputError(f"It is not said who {action}s it.", "Name the person.")
        found = archive.memories(partitions, ids=[memory_id]) if partitions else ()
        if not found or not (found[0].live or found[0].status == "quarantined"):
            raise NotFoundError(f"There is no memory {memory_id!r} here that waits for approval.")
        (old,) = found
        if old.live and action == APPROVE:
            return old
        if old.live:
            raise InputError(f"Memory {memory_id!r} is {old.status}.", "Only what waits can be rejected: forget it.")
        change = revision(old, at, action, note, status=status)
        commit(ChangeSet(operation_id=operation_id, actor=by, recorded_at=at, at_home=True, changes=(change,)))
        return archive.memories([old.partition], ids=[old.memory_id])[0]

    return decide


approve = _decision("active", APPROVE)
"""Activate a quarantined memory; its trust does not change. A live memory stays as it is."""

reject = _decision("deleted", "reject")
"""Delete a quarantined memory. Its tombstone prevents the same words from being learned again."""


class ForgetDecisions:
    """Lists pending requests to forget, and settles one as a person decides."""

    def __init__(self, archive: Archive, wishes: Wishes, retraction: Retraction, settings: Settings) -> None:
        self._archive = archive
        self._wishes = wishes
        self._retraction = retraction
        self._settings = settings

    def waiting(self, scope: Scope) -> tuple[ForgetRequest, ...]:
        """Return the undecided requests to forget, with the words that wait for them."""
        return tuple(ForgetRequest(message=wish.message, words=wish.words) for wish in self._wishes.waiting(scope))

    def decide(
        self, scope: Scope, message_id: str, *, forget: bool, actor: str, discard: Discard | None = None
    ) -> ForgetDecision:
        """Forget what a request means, or show its words again; `discard` drops what working memory holds and says the same.

        Everything that holds its words is forgotten first: until then the request remains open.

        Raises:
            NotFoundError: No request of that message waits here.
            ConflictError: Other changes came first.
        """
        waiting = self._wishes.waiting(scope)
        wish = next((each for each in waiting if each.message.message_id == message_id), None)
        if wish is None:
            raise NotFoundError(f"No request of message {message_id!r} waits here.")
        named = asked_in(wish.message) if forget else ()
        leave = self._staying(scope, named)
        gone = tuple(self._forgotten(scope, named, leave, discard))
        silent = self._silenced(scope, wish, named, leave)
        self._settle(scope, wish, waiting, forget=forget, actor=actor)
        others = [row for row in wish.words if row.role == "user" and row.message_id != message_id]
        return ForgetDecision(
            message_id=message_id,
            forget=forget,
            memories=gone,
            messages=tuple(dict.fromkeys((*(row.message_id for row in wish.words), *silent))),
            found=bool(gone or silent or others or wish.held),
        )

    def _forgotten(
        self, scope: Scope, requests: Sequence[Request], leave: Collection[str], discard: Discard | None
    ) -> Iterator[Memory]:
        """Forget the memories that hold what is named."""
        for request in requests:
            for memory in self._near(scope, request):
                if memory.live and memory.memory_id not in leave and _matches(request, memory):
                    done = self._retraction.forget(memory.memory_id, scope, leave=leave, discard=discard)
                    yield from (done.memory, *done.along)

    def _near(self, scope: Scope, request: Request) -> tuple[Memory, ...]:
        mine = own(self._archive.visible(scope), scope, self._settings.trust_boundary)
        found = self._archive.match(mine, "memory", sought_by(request))
        names = [name for matches in found for name in matches.record_ids]
        return self._archive.memories(mine, ids=names) if names else ()

    def _staying(self, scope: Scope, requests: Sequence[Request]) -> frozenset[str]:
        """Return what no conversation may remove, with its words: what is firm, and what agents agreed on."""
        here = at_home(scope, self._settings)
        near = (memory for request in requests for memory in self._near(scope, request))
        stays = [each for each in near if each.firm or (is_shared(each.partition) and not here)]
        return frozenset(name for each in stays for name in (each.memory_id, *(e.message_id for e in each.evidence)))

    def _silenced(
        self, scope: Scope, wish: Wish, requests: Sequence[Request], leave: Collection[str]
    ) -> tuple[str, ...]:
        """Withhold messages, not only memories, that hold what is named, with their answers; return the ids."""
        here, words = wish.message.partition, Words()
        known = {*leave, *(row.message_id for row in wish.words)}
        for request in requests:
            for row in self._retraction.candidates(here, sought_by(request)):
                if row.message_id not in known and means(request, row.text):
                    parts = [span.text for span in sentences(row.text) if means(request, span.text)]
                    words.add(row, parts or [row.text])
                    for answer in self._answers(row):
                        words.add(answer, [answer.text])
        if words.messages:
            self._retraction.silence(here, words, scope)
        return tuple(message_id for _, message_id in words.messages)

    def _answers(self, row: StoredMessage) -> Iterator[StoredMessage]:
        after = self._archive.messages(
            [row.partition], thread=row.thread, first_seq=row.seq + 1, limit=_ANSWER, shown=UNSAID
        )
        said = takewhile(lambda each: each.role != "user", after)
        return (each for each in said if each.text != MARK) if row.role == "user" else iter(())

    def _settle(self, scope: Scope, wish: Wish, waiting: Sequence[Wish], *, forget: bool, actor: str) -> None:
        others = {row.message_id for each in waiting if each.cause != wish.cause for row in each.words}
        self._retraction.put_back(
            own(self._archive.visible(scope), scope, self._settings.trust_boundary),
            [wish.hides(row) for row in wish.words],
            () if forget else (wish.cause,),
            actor=actor,
            scope=scope,
            withheld=[wish.hides(row, reason="forgotten") for row in wish.words] if forget else (),
            work=self._done(wish.message, others),
        )

    def _done(self, asking: StoredMessage, left: Collection[str]) -> list[Work]:
        """Return the work that waited for a request, as done, unless it waits for another."""
        blocks = self._archive.blocks([asking.partition], message_ids=[asking.message_id])
        names = {
            block.block_id
            for block in blocks
            if not any(
                row.message_id in left
                for row in self._archive.messages(
                    [block.partition], thread=block.thread, first_seq=block.first_seq, last_seq=block.last_seq
                )
            )
        }
        review = self._archive.work([asking.partition], states=["review"])
        return [
            work.evolve(state="done", reason="") for work in review if work.block_id in names and work.reason == WAITS
        ]


def _matches(request: Request, memory: Memory) -> bool:
    return any(means(request, text) for text in (memory.content, memory.when_to_use, memory.summary))
