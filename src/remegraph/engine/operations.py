"""A model's proposal, operation by operation: which of them are sound, and what is wrong with the others."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from remegraph.engine.answers import OperationAnswer, ProposalAnswer, QuoteAnswer, UnreadOperation
from remegraph.engine.asking import FaultyPartsError
from remegraph.engine.proposals import Writer
from remegraph.engine.rendering import call_text, line_of
from remegraph.engine.tasks import Action, Operation, Proposal, ProposeTask, Voice
from remegraph.errors import InvalidAnswerError
from remegraph.language.plain import plain
from remegraph.models import Evidence, Memory, StoredMessage
from remegraph.rules.duplicates import content_digest
from remegraph.rules.quotes import find_copied, find_quote
from remegraph.rules.slots import canonical
from remegraph.rules.standing import QUARANTINE_BELOW
from remegraph.rules.tainting import trust_of_evidence
from remegraph.rules.tool_records import called

__all__ = ["Reader", "named_operations"]

_TELLING = 8
"""Characters of a quote that can tell which message it is from, where its number is wrong."""

_LONGEST_ANSWER = 300
"""Characters of a tool's answer that bear out the call."""

_TITLE = 80
"""Characters of a memory's text by which a fault is told."""

_REDUCED = re.compile(r"(\d{4})(?:[-/.](\d{2}))?")

_FOR_WISHES = frozenset({"DELETE", "CORRECT", "SUPERSEDE", "END"})
"""What a request in talk may do to a memory of another topic."""

_TOPICS_OWN = frozenset({"user", "the user", "用户"})
"""What models call whom a topic is about."""


class Reader:
    """Reads a proposal operation by operation: what is sound is kept, whatever the others are.

    Every id must be one of those shown, every quote must stand in its message. A later answer amends what was kept.
    """

    def __init__(
        self, task: ProposeTask, names: Mapping[str, Memory], extractor: str, voice: Voice, prompt: str
    ) -> None:
        self._task = task
        self._names = names
        self._known = {memory.memory_id: memory for memory in names.values()}
        self._last = named_operations(task)
        self._voice = voice
        self._extractor = extractor
        self._prompt = prompt
        self._kept = list(task.last)
        self._earlier: list[Operation] = list(task.last)
        """What earlier answers gave: a later one may say it otherwise."""
        self._faults: list[str] = []
        self._notes: list[str] = []

    def read(self, answer: ProposalAnswer) -> Proposal:
        """Return the proposal.

        Raises:
            FaultyPartsError: Some operations are unsound; it says which, all of them, and why. The others are kept.
        """
        before, taken = self._faults, 0
        self._faults = []
        self._earlier = list(self._kept)
        self._notes += answer.notes
        for operation in answer.operations:
            try:
                self._take(operation)
                taken += 1
            except InvalidAnswerError as error:
                self._faults.append(f"- {_title(operation)}: {error.what}")
        if answer.cut:
            self._faults.append("- the answer broke off; give what is missing.")
        if taken + len(self._faults) < len(before):
            self._notes += [f"not given again {fault}" for fault in before]
        if self._faults:
            raise FaultyPartsError("\n".join(self._faults))
        return self.settle("")

    def settle(self, failure: str) -> Proposal:
        """Return the proposal as far as it is sound, and why the rest is not."""
        writer = Writer(self._task, self._extractor, self._voice, self._prompt)
        for operation in self._kept:
            (writer.apply if operation.evidence else writer.settle)(operation, self._known)
        return Proposal(
            shelf=self._task.shelf,
            attempt=self._task.attempt,
            similar=self._task.similar,
            changes=tuple(writer.changes),
            links=tuple(writer.links),
            failure=failure,
            operations=tuple(self._kept),
            notes=tuple(dict.fromkeys((*self._notes, *writer.notes))),
        )

    def _take(self, operation: OperationAnswer | UnreadOperation) -> None:
        if isinstance(operation, UnreadOperation):
            raise InvalidAnswerError(operation.problem)
        amended = [self._last[name] for name in operation.id if name in self._last]
        rest = [name for name in operation.id if name not in self._last]
        if amended and not rest and operation.action in {"DELETE", "CORROBORATE"}:
            self._drop(amended if operation.action == "DELETE" else ())
            return
        checked = self._checked(operation, rest, amended)
        self._notes += [f"{_title(operation)}: {note}" for note in operation.notes]
        self._drop(amended)
        self._keep(checked, operation)

    def _drop(self, operations: Collection[Operation]) -> None:
        self._kept = [each for each in self._kept if each not in operations]

    def _keep(self, new: Operation, operation: OperationAnswer) -> None:
        """Keep an operation beside those kept, or in the place of one that it amends or that says less."""
        digest = content_digest(new.content) if new.content else ""
        for old in list(self._kept):
            again = bool(digest) and bool(old.content) and content_digest(old.content) == digest
            if again and (set(new.targets) <= set(old.targets)):
                return  # said already
            shared = set(new.targets) & set(old.targets)
            if again or (shared and (old in self._earlier or old.action == "CORROBORATE")):
                left = tuple(target for target in old.targets if target not in shared)
                self._drop([old])
                if left and not again:
                    self._kept.append(replace(old, targets=left))
            elif shared and new.action == "CORROBORATE":
                new = replace(new, targets=tuple(target for target in new.targets if target not in shared))
                if not new.targets:
                    return  # the other says more of it
            elif shared and not {old.action, new.action} <= {"SUPERSEDE", "CORRECT"}:  # several may replace one
                raise InvalidAnswerError(
                    f"{' '.join(operation.id)} has an operation already; give one for each memory."
                )
        self._kept.append(new)

    def _checked(self, operation: OperationAnswer, ids: Sequence[str], amended: Sequence[Operation]) -> Operation:
        """Return an operation with the memories and the words that it names."""
        evidence = self._evidence(operation)
        action: Action = operation.action
        if action == "CREATE":
            if ids:
                self._notes.append(f"{_title(operation)}: id {' '.join(ids)} not read; a new memory has none")
            olds = [memory for memory in self._task.similar if self._repeats(operation, memory)]
            action = "CORROBORATE" if olds else action
        else:
            olds = [self._target(name, operation, evidence) for name in ids]
        for each in amended:
            olds += [self._known[target] for target in each.targets if target in self._known]
            action = each.action if not ids else action
        olds = [*{old.memory_id: old for old in olds}.values()]
        if not olds and action != "CREATE":
            raise InvalidAnswerError(f"{action} without a memory: unknown memory id ''; the ids are {self._ids()}.")
        if evidence and not operation.content.strip() and action in {"CREATE", "REFINE", "SUPERSEDE", "CONTRADICT"}:
            raise InvalidAnswerError(f"{action} has no content.")
        slot = self._slot(operation)
        inherited = olds[0] if not slot and len({old.canonical_topic for old in olds}) == 1 else None
        return Operation(
            action=action,
            evidence=tuple(evidence),
            targets=tuple(old.memory_id for old in olds),
            content=operation.content.strip() if action != "CORROBORATE" else "",
            when_to_use=operation.when_to_use,
            category=operation.category,
            canonical_topic=inherited.canonical_topic if inherited else slot,
            slot_value=operation.value.strip() if inherited or slot else "",
            slot_many=inherited.slot_many if inherited and evidence else operation.many,
            importance=operation.importance,
            valid_from=self._time(operation.valid_from, evidence),
            valid_to=self._time(operation.valid_to, evidence),
        )

    def _repeats(self, operation: OperationAnswer, memory: Memory) -> bool:
        digest = content_digest(plain(operation.content))
        return bool(operation.content.strip()) and content_digest(memory.content) == digest and not memory.firm

    def _target(self, name: str, operation: OperationAnswer, evidence: Sequence[Evidence]) -> Memory:
        """Return the memory that an operation names, if it may be changed."""
        old = self._names.get(name) or self._names.get(f"m{name}") or self._of_slot(name)
        if old is None:
            raise InvalidAnswerError(f"unknown memory id {name!r}; the ids are {self._ids()}.")
        if old in self._task.meant and operation.action not in _FOR_WISHES:
            raise InvalidAnswerError(
                f"{name} is of another topic: it may be deleted, corrected or ended, if asked for."
            )
        if evidence and trust_of_evidence(evidence, self._task.messages) < min(old.trust, QUARANTINE_BELOW):
            raise InvalidAnswerError(f"words of a tool cannot change {name}.")
        if old.firm and operation.action in {"REFINE", "DELETE", "END"}:
            raise InvalidAnswerError(
                f"{name} is knowledge or a policy, which no conversation changes; leave it as it is."
            )
        return old

    def _of_slot(self, name: str) -> Memory | None:
        """Return the one memory in a slot of that name: some models name what they change by its slot."""
        holding = [old for old in self._known.values() if old.canonical_topic.endswith(f":{_attribute(name)}")]
        return holding[0] if len(holding) == 1 else None

    def _ids(self) -> str:
        return ", ".join((*self._names, *self._last)) or "none"

    def _slot(self, operation: OperationAnswer) -> str:
        """Return the slot that a model names, whose and which attribute: the topic's, where it does not say."""
        whose, _, attribute = operation.slot.rpartition(":")
        if not attribute.strip():
            return ""
        whose = whose.strip() or operation.whose.strip()
        if whose.casefold() in _TOPICS_OWN:
            whose = ""
        return canonical(f"{whose or self._task.shelf.topic.target}:{_attribute(attribute)}")

    def _evidence(self, operation: OperationAnswer) -> list[Evidence]:
        """Return the words that an operation rests on.

        Raises:
            InvalidAnswerError: There are none, or some stand nowhere; all of those are told.
        """
        found = {quote: self._found(quote) for quote in operation.evidence}
        if missing := [quote for quote, evidence in found.items() if evidence is None]:
            words = "; ".join(f"the words {each.quote!r} do not stand in message {each.n}" for each in missing)
            raise InvalidAnswerError(f"{words}; copy them exactly, from messages 1 to {len(self._task.messages)}.")
        if not found and not self._settles(operation):
            raise InvalidAnswerError("it has no evidence: give the message number and words copied from it.")
        return [evidence for evidence in found.values() if evidence is not None]

    def _settles(self, operation: OperationAnswer) -> bool:
        """Return whether an operation settles what stands in one slot together: that needs no words of this block."""
        ids = {memory.memory_id for name in operation.id if (memory := self._names.get(name))}
        wanted = operation.action in {"CORROBORATE", "SUPERSEDE", "CORRECT", "END"}
        return wanted and bool(ids) and any(ids <= set(pair) for pair in self._task.settle)

    def _found(self, quote: QuoteAnswer) -> Evidence | None:
        """Return the words of a quote as they stand in its message; in another one, if they stand in that alone."""
        messages = self._task.messages
        named = messages[quote.n - 1] if 1 <= quote.n <= len(messages) else None
        if named is not None and (found := self._shown(quote.quote, named, quote.n)) is not None:
            return found
        spans = [(message, find_copied(quote.quote, message.text)) for message in messages]
        elsewhere = [(message, span) for message, span in spans if span is not None]
        if len(elsewhere) != 1 or (named is not None and len(quote.quote) < _TELLING):
            return None
        ((message, span),) = elsewhere
        if quote.n:
            at = messages.index(message) + 1
            self._notes.append(f"the words {quote.quote!r} stand in message {at}, not {quote.n}")
        return self._words_of(message, span)

    def _shown(self, quote: str, message: StoredMessage, number: int) -> Evidence | None:
        """Return the words of a quote in a message as the prompt shows it: number, speaker, calls and dates around it."""
        if (span := find_copied(quote, message.text)) is not None:
            return self._words_of(message, span)
        line = line_of(message, number, self._task.language)
        span = find_copied(quote, f"{line.speaker}{message.text} {line.calls}{line.beside}")
        if span is None:
            return None
        start, end = (max(min(at - len(line.speaker), len(message.text)), 0) for at in span)
        if message.text[start:end].strip():
            return self._words_of(message, (start, end))
        return self._answered(quote, number - 1)

    def _answered(self, quote: str, at: int) -> Evidence | None:
        """Return the beginning of what answered the call that a quote is from: a call is in no message's words."""
        for asked, call, answer in called(self._task.messages):
            if asked == at and answer is not None and find_copied(quote, call_text(call)) is not None:
                message = self._task.messages[answer]
                line = message.text.strip().partition("\n")[0].strip()
                words = line if len(line) <= _LONGEST_ANSWER else line[:_LONGEST_ANSWER].rpartition(" ")[0]
                span = find_quote(words, message.text)
                return self._words_of(message, span) if span else None
        return None

    def _words_of(self, message: StoredMessage, span: tuple[int, int]) -> Evidence:
        words = message.text[slice(*span)].strip()
        return Evidence(message_id=message.message_id, quote=words, block_id=self._task.block.block_id)

    def _time(self, text: str, evidence: Sequence[Evidence]) -> datetime | None:
        """Return an ISO date, also one of a year or a month alone; what cannot be read is dropped, with a note."""
        if not text.strip():
            return None
        whole = _REDUCED.fullmatch(text.strip())
        try:
            time = datetime.fromisoformat(f"{whole[1]}-{whole[2] or '01'}-01" if whole else text.strip())
        except ValueError:
            self._notes.append(f"{text!r} is no ISO date; dropped")
            return None
        if time.tzinfo is not None:
            return time
        if not evidence:
            return time.replace(tzinfo=self._task.block.end_time.tzinfo)
        said = next(message.time for message in self._task.messages if message.message_id == evidence[0].message_id)
        return time.replace(tzinfo=said.tzinfo)


def named_operations(task: ProposeTask) -> dict[str, Operation]:
    """Return what stands of the last attempt, by the names that the prompt gives."""
    return {f"o{number}": operation for number, operation in enumerate(task.last, start=1)}


def _attribute(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().casefold())


def _title(operation: OperationAnswer | UnreadOperation) -> str:
    """Return how an operation is told from the others: what it does, to what, and how its text begins."""
    if isinstance(operation, UnreadOperation):
        return operation.written
    said = [f'"{operation.content[:_TITLE]}"'] if operation.content else []
    return " ".join((operation.action, *operation.id, *said))
