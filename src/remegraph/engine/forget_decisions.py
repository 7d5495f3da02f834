"""What a person decides about a request to forget, where no model has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from remegraph.engine.forget_phrases import Request, asked_in, means, sought_by
from remegraph.engine.forget_requests import WAITS, Wish, Wishes
from remegraph.engine.removal import Words
from remegraph.engine.retraction import Discard, Retraction
from remegraph.engine.routes import at_home, own
from remegraph.errors import NotFoundError
from remegraph.ledger.permissions import is_shared
from remegraph.models import ForgetDecision, ForgetRequest, Memory, Scope, StoredMessage, Work
from remegraph.settings import Settings
from remegraph.text.sentences import sentences

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["ForgetDecisions"]

_ANSWER = 4
"""Messages after what is forgotten among which its answer is."""


class ForgetDecisions:
    """Lists the requests to forget that wait, and settles one as a person decides."""

    def __init__(self, archive: Archive, wishes: Wishes, retraction: Retraction, settings: Settings) -> None:
        self._archive = archive
        self._wishes = wishes
        self._retraction = retraction
        self._settings = settings

    def waiting(self, scope: Scope) -> tuple[ForgetRequest, ...]:
        """Return the undecided requests to forget, with the words that wait."""
        return tuple(ForgetRequest(message=wish.message, words=wish.words) for wish in self._wishes.waiting(scope))

    def decide(
        self, scope: Scope, message_id: str, *, forget: bool, actor: str, discard: Discard | None = None
    ) -> ForgetDecision:
        """Forget what a request means, or show its words again; `discard` drops what is kept in mind and says the same.

        Whatever holds its words is forgotten first: the request waits on until all of that is done.

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
                if memory.live and memory.memory_id not in leave and _says(request, memory):
                    done = self._retraction.forget(memory.memory_id, scope, leave=leave, discard=discard)
                    yield from (done.memory, *done.along)

    def _near(self, scope: Scope, request: Request) -> tuple[Memory, ...]:
        mine = own(self._archive.visible(scope), scope, self._settings.trust_boundary)
        found = self._archive.match(mine, "memory", sought_by(request))
        names = [name for matches in found for name in matches.record_ids]
        return self._archive.memories(mine, ids=names) if names else ()

    def _staying(self, scope: Scope, requests: Sequence[Request]) -> frozenset[str]:
        """Return what no conversation takes, with its words: what is firm, and what agents agreed on."""
        here = at_home(scope, self._settings)
        near = (memory for request in requests for memory in self._near(scope, request))
        stays = [each for each in near if each.firm or (is_shared(each.partition) and not here)]
        return frozenset(name for each in stays for name in (each.memory_id, *(e.message_id for e in each.evidence)))

    def _silenced(
        self, scope: Scope, wish: Wish, requests: Sequence[Request], leave: Collection[str]
    ) -> tuple[str, ...]:
        """Withhold what was said, and not learned, that holds what is named, with its answer; return the ids."""
        here, words = wish.message.partition, Words()
        known = {*leave, *(row.message_id for row in wish.words)}
        for request in requests:
            found = self._archive.match([here], "message", sought_by(request))
            for row in self._archive.messages([here], seqs=[int(seq) for each in found for seq in each.seqs]):
                if row.message_id not in known and not row.hidden and means(request, row.text):
                    parts = [span.text for span in sentences(row.text) if means(request, span.text)]
                    words.add(row, parts or [row.text])
                    for answer in self._answers(row):
                        words.add(answer, [answer.text])
        if words.messages:
            self._retraction.silence(here, words, scope)
        return tuple(message_id for _, message_id in words.messages)

    def _answers(self, row: StoredMessage) -> Iterator[StoredMessage]:
        after = self._archive.messages([row.partition], thread=row.thread, first_seq=row.seq + 1, limit=_ANSWER)
        said = takewhile(lambda each: each.role != "user", after)
        return (each for each in said if not each.hidden) if row.role == "user" else iter(())

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


def _says(request: Request, memory: Memory) -> bool:
    return any(means(request, text) for text in (memory.content, memory.when_to_use, memory.summary))
