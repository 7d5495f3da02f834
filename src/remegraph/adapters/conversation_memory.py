"""Memory of a conversation, for node and middleware: recall for the newest words, capture of messages, and the events of both.

One body serves sync and async. `stream_mode="custom"` delivers the events, and nothing else of ours; a guard lets a run go on
where memory fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Literal, TypedDict

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langgraph.config import get_stream_writer

from remegraph.adapters.answers import ids_in
from remegraph.adapters.notes import (
    Note,
    Notes,
    newest_answer,
    newest_words,
    passages,
    person_speaks_last,
    previous_words,
    turns,
)
from remegraph.adapters.scopes import (
    MemoryMode,
    ScopeSource,
    asked_now,
    check_surface,
    memory_mode,
    resolve_scope,
    run_id,
    thread_of,
    usual_mode,
    zone_of,
)
from remegraph.engine.frame import RECALLED, selected, shown_records, statement_of
from remegraph.errors import LimitError, RemegraphError
from remegraph.importers.turns import Turns
from remegraph.importers.views import View
from remegraph.kit import MemoryKit
from remegraph.kit.facade import twin
from remegraph.models import Injection, Recall, Scope
from remegraph.settings import RetrievalPolicy
from remegraph.text.tokens import estimate_tokens

__all__ = [
    "ConversationMemory",
    "HostGuard",
    "MemoryCaptured",
    "MemoryEvent",
    "MemoryFailed",
    "MemoryRecalled",
    "emit",
    "moment",
]

_NOTES_AT_ONCE = 8
"""Most whole notes in a prompt; past that, the older half goes, which costs the provider's cache once."""

_SENT = "__pregel_push"
"""How LangGraph marks a task that was sent a state of its own; and where it keeps the checkpointer. Both are its own
affair: should it name them otherwise, no rewind is noticed any more, and tests say so."""

_CHECKPOINTER = "__pregel_checkpointer"

_TOOLS = "tools:"
"""How the name of a task begins in which an agent's tools run; `create_agent` and LangGraph's examples call the node so."""


class ConversationMemory:
    """Memory for the run at hand: user, thread and settings are looked up at each call, so one object serves all runs.

    Args:
        kit: The memory.
        scope: Whose memory, or what all calls have in common; see `resolve_scope` for what a run may say.
        channel: The host's key of the conversation.
        level: How deep in the host's graph it is called: 1 in a node of it, 2 in a node that is a graph itself.
        memory: What runs that say nothing of it may do: see `memory_mode`.
    """

    def __init__(
        self,
        kit: MemoryKit,
        scope: Scope | ScopeSource | None,
        *,
        channel: str = "messages",
        level: int = 1,
        memory: MemoryMode = "on",
    ) -> None:
        check_surface(kit, scope)
        self._usual = usual_mode(memory)
        self._kit = kit
        self._scope = scope
        self._channel = channel
        self._level = level
        self._notes = Notes()

    def recall(self, messages: Sequence[BaseMessage], known: Note | None = None) -> Note:
        """Return what is relevant to the newest words of a person, as data for a prompt; nothing where nothing does, or it is off.

        What is in mind for the task that is called like the thread comes first. Notes of earlier turns come along, as
        they may be shown today. Within a turn it stays as it was recalled, but for what was forgotten since.

        Args:
            messages: The conversation, as the model is sent it.
            known: What was recalled for these words already.

        Raises:
            ScopeError: No user is named.
            InputError: The run names a time zone that does not exist, or a mode of memory.
        """
        scope, now = resolve_scope(self._scope), asked_now(self._kit)
        if not self._kit.settings.for_agent(scope.agent).enabled or memory_mode(self._usual) == "off":
            return Note()
        with HostGuard(self._kit, "recall"):
            return self._note(messages, scope, known, now)
        return Note()

    arecall = twin(recall)

    def _note(self, messages: Sequence[BaseMessage], scope: Scope, known: Note | None, now: datetime) -> Note:
        courses, thread = [course for course, _ in passages(messages)], _thread()
        newest = courses[-1] if courses else ""
        kept = self._notes.of(scope, thread, courses)
        if known is None and not person_speaks_last(messages):
            known = kept.get(newest)  # the turn is under way
        older = {course: note for course, note in kept.items() if course != newest}
        told = [*(note.news for note in older.values()), *([known.news, str(known)] if known is not None else ())]
        standing = self._kit.governance.standing(told, scope=scope, task=thread)
        earlier = dict(zip(older, standing, strict=False))
        if known is None:
            earlier = _newest(earlier, _NOTES_AT_ONCE * self._most(scope))
            text, news = self._recalled(messages, scope, now), None
        else:
            news, text = standing[-2:]
        earlier = {course: each for course, each in earlier.items() if each}
        if known is None or not known.earlier.keys() <= earlier.keys():
            news = _without_repeats(text, earlier.values(), messages)
        note = Note(text, news, earlier)
        notes = {course: Note(each) for course, each in earlier.items()} | ({newest: note} if newest else {})
        self._notes.keep(scope, thread, notes, older.keys() - earlier.keys())
        return note

    def _most(self, scope: Scope) -> int:
        """Return how many tokens a note may have."""
        settings = self._kit.settings
        policy = settings.for_agent(scope.agent).retrieval
        return policy.note_tokens if policy.injection == "recall" else settings.recall.context_tokens

    def _recalled(self, messages: Sequence[BaseMessage], scope: Scope, now: datetime) -> str:
        words, policy = newest_words(messages), self._kit.settings.for_agent(scope.agent).retrieval
        if not words:
            return ""
        found = self._found(words, messages, scope, policy, now)
        if memory_mode(self._usual) == "on":
            self._kit.governance.injected(
                found, scope=scope, thread=_thread(), turn=turns(messages), run_id=run_id(ensure_config())
            )
        ids = ids_in(found)
        milliseconds = round(1000 * found.seconds, 3)
        emit({"event": "memory_recalled", "ids": ids, "degraded": [*found.degraded], "ms": milliseconds})
        return found.context

    def _found(
        self,
        words: str,
        messages: Sequence[BaseMessage],
        scope: Scope,
        wanted: RetrievalPolicy,
        now: datetime,
    ) -> Recall | Injection:
        here = {message.id for message in messages if message.id} | self._given_again(messages, scope, now)
        previous, task = previous_words(messages), _thread()
        if wanted.injection == "recall":
            return self._kit.recall(
                words,
                scope=scope,
                k=wanted.k,
                depth=wanted.depth,
                without=here,
                budget=wanted.note_tokens,
                brief=True,
                previous=previous,
                task=task,
                asked_at=now,
            )
        return self._kit.inject(
            words,
            scope=scope,
            turn=turns(messages),
            workspace=wanted.workspace,
            depth=wanted.depth,
            without=here,
            previous=previous,
            task=task,
            asked_at=now,
        )

    def _given_again(self, messages: Sequence[BaseMessage], scope: Scope, now: datetime) -> set[str]:
        """Return the ids that messages of the conversation were recorded under in an earlier run."""
        if not _is_stateless(ensure_config()):
            return set()
        parts, home = self._kit.context.parts(), self._kit.context.library(scope)
        turns = Turns(_thread(), scope.agent, now, None, take=parts.redactor.message)
        recorded, course = partial(parts.archive.recorded, home.partition()), turns.read(messages)
        known = recorded([each.message_id for each in course.heard])
        return set(turns.given_again(course, known, recorded).values())

    def capture(
        self, messages: Sequence[BaseMessage], recalled: str = "", *, due: bool = False, began: str = ""
    ) -> tuple[str, ...]:
        """Record what of the conversation is not recorded yet; also what a run that crashed or waited has left.

        Of a run with memory "read" or "off", nothing is, now or later.

        Return the ids of messages that are still to be recorded.

        Where there is a new answer, the memories that it drew on are noted as used. While an answer is due, only what
        the host did to recorded messages is followed, unless the settings want words early.

        Args:
            messages: The whole conversation, as far as the host has it.
            recalled: What was recalled for the newest words of a person.
            due: Whether the answer is still to come.
            began: The checkpoint at which the run began, where that is known; see `moment`.

        Raises:
            ScopeError: No user is named.
            InputError: The run names a time zone that does not exist.
        """
        scope, place, mode = resolve_scope(self._scope), zone_of(), memory_mode(self._usual)
        messages = _as_said(messages, ensure_config())
        if mode != "on":
            with HostGuard(self._kit, "capture"):
                self._kit.capture(messages, scope=scope, thread=_thread(), timezone=place, record=False)
            return ()
        with HostGuard(self._kit, "capture"):
            view = _view(ensure_config(), self._channel, self._level).evolve(due=due, began=began)
            captured = self._kit.capture(messages, scope=scope, thread=_thread(), timezone=place, view=view)
            if captured.added:
                emit({"event": "memory_captured", "added": captured.added})
            answer = newest_answer(messages)
            if captured.added and answer and recalled:
                self._kit.retention.answered(answer, context=recalled, question=newest_words(messages), scope=scope)
            return captured.due
        return tuple(message.id for message in messages if message.id)

    acapture = twin(capture)

    def follow(self, messages: Sequence[BaseMessage]) -> None:
        """Follow what the host did to recorded messages, and record nothing.

        Args:
            messages: The whole conversation, as far as the host has it.

        Raises:
            ScopeError: No user is named.
        """
        if not self._kit.settings.capture.early:
            self.capture(messages, due=True)


def _newest(notes: Mapping[str, str], most: int) -> dict[str, str]:
    """Return notes as they are; or, where they have more tokens than that, the newest of half as many."""
    if sum(map(estimate_tokens, notes.values())) <= most:
        return dict(notes)
    found: dict[str, str] = {}
    for course, note in reversed([*notes.items()]):
        most -= 2 * estimate_tokens(note)
        if most < 0:
            break
        found[course] = note
    return dict(reversed([*found.items()]))


def _without_repeats(text: str, notes: Iterable[str], messages: Sequence[BaseMessage]) -> str:
    """Return what of a context neither notes say nor results of tools that recall."""
    said = {statement_of(record) for note in notes for record in shown_records(note)}
    for message in messages:
        if message.type == "tool" and RECALLED in message.additional_kwargs:
            with suppress(ValueError):  # the host cut it
                said.update(map(statement_of, shown_records(message.text)))
    return selected(text, lambda record: statement_of(record) not in said)


def moment() -> str:
    """Return the checkpoint that the run at hand has come to; nothing outside of any graph."""
    return _moment(ensure_config())


def _moment(config: RunnableConfig) -> str:
    checkpoints = config.get("configurable", {}).get("checkpoint_map")
    return str(checkpoints.get("", "")) if isinstance(checkpoints, Mapping) else ""


def _view(config: RunnableConfig, channel: str, level: int) -> View:
    """Return what the messages are to the host: its whole state only in the outermost graph, and with a checkpointer.

    A worker sees what it was sent. Without a checkpointer, a caller may hand over the newest messages only.
    """
    places, told = config.get("configurable", {}), config.get("metadata", {})
    checkpoints, path = places.get("checkpoint_map"), told.get("langgraph_path") or ("",)
    return View(
        whole=isinstance(checkpoints, Mapping)
        and len(checkpoints) == level
        and path[0] != _SENT
        and places.get(_CHECKPOINTER) is not None,
        stateless=_is_stateless(config),
        channel=channel,
        moment=_moment(config),
        addressed=str(told.get("checkpoint_id") or ""),
    )


def _as_said(messages: Sequence[BaseMessage], config: RunnableConfig) -> Sequence[BaseMessage]:
    """Return messages under who said them: where a tool runs an agent, another agent wrote what it is asked, not a person.

    It may have read it on a page, whose words would become the person's own.
    """
    graphs = str(config.get("metadata", {}).get("langgraph_checkpoint_ns", "")).split("|")[:-1]
    if not any(graph.startswith(_TOOLS) for graph in graphs):
        return messages
    return [
        AIMessage(message.content, id=message.id, name=message.name) if message.type == "human" else message
        for message in messages
    ]


def _is_stateless(config: RunnableConfig) -> bool:
    """Return whether no checkpointer keeps the state of the graph at hand: LangGraph gives ids to what comes without any."""
    return config.get("configurable", {}).get(_CHECKPOINTER) is None


def _thread() -> str:
    """Return the thread of the run at hand; runs that name none are one conversation."""
    return thread_of(ensure_config()) or "main"


class MemoryRecalled(TypedDict):
    """Memory was looked up for the newest words."""

    event: Literal["memory_recalled"]
    ids: list[str]
    """The text for the model."""
    degraded: list[str]
    """Failures, with their reasons; empty if all went well."""
    ms: float
    """How long it took."""


class MemoryCaptured(TypedDict):
    """Messages are in the ledger."""

    event: Literal["memory_captured"]
    added: int
    """Messages that were new, or whose content the host had replaced."""


class MemoryFailed(TypedDict):
    """Memory could not do its part; the run goes on without."""

    event: Literal["memory_failed"]
    verb: Literal["recall", "capture"]
    reason: str
    refused: bool
    """Whether a limit refused it; else it failed."""


MemoryEvent = MemoryRecalled | MemoryCaptured | MemoryFailed
"""Any of them; `event` says which."""


def emit(event: MemoryEvent) -> None:
    """Hand an event to the stream of the run at hand, if there is one."""
    try:
        write = get_stream_writer()
    except (RuntimeError, KeyError):  # outside of any graph; in a run whose config was made by hand
        return
    write(event)


class HostGuard:
    """Lets the run go on, whatever fails inside: the failure is logged, counted in the kit's statistics, and emitted as an event.

    The end of the process and a cancelled run pass, and so does a failed capture where the settings are strict about it.
    Who the user is must be settled before: a missing user is the developer's to cure, and to go on would hide it.
    """

    def __init__(self, kit: MemoryKit, verb: Literal["recall", "capture"]) -> None:
        self._kit = kit
        self._verb: Literal["recall", "capture"] = verb

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self._kit.context.health.note(self._verb, error)
        if self._verb == "capture" and self._kit.settings.capture.strict:
            return False
        refused = isinstance(error, LimitError)
        emit({"event": "memory_failed", "verb": self._verb, "reason": _reason(error), "refused": refused})
        return True


def _reason(error: Exception) -> str:
    """Return what a caller may read: our own words; others' may quote rows of the ledger."""
    return str(error) if isinstance(error, RemegraphError) else type(error).__name__
