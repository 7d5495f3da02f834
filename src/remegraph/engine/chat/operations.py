"""A model's answers, read and checked: a proposal, operation by operation, with what is wrong with it, and a skill, step by step."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from remegraph.engine.chat.answers import OperationAnswer, ProposalAnswer, QuoteAnswer, SkillAnswer, UnreadOperation
from remegraph.engine.chat.model_call import FaultyPartsError
from remegraph.engine.chat.prompt_data import call_text, line_of
from remegraph.engine.grounds import Ground
from remegraph.engine.origin import Belief
from remegraph.engine.proposals import Writer, ground_of, sources_of
from remegraph.engine.schemas import SchemaField, Schemas
from remegraph.engine.summary_tasks import Action, DistilTask, Operation, Proposal, ProposeTask, Voice
from remegraph.engine.trajectories import Call, skill_of, step_of, template_of
from remegraph.errors import InvalidAnswerError, SkillError
from remegraph.models import Evidence, Memory, Skill, SkillStep, StoredMessage
from remegraph.models.quotes import find_copied, find_quote
from remegraph.models.skills import check_skill, fits, slots
from remegraph.models.standing import QUARANTINE_BELOW
from remegraph.models.supersession import attribute, canonical, content_digest
from remegraph.models.tools import called
from remegraph.prompts import reason
from remegraph.text.scripts import plain

__all__ = ["Reader", "named_operations", "read_skill"]


_TELLING = 8
"""Characters a quote needs to identify its message when the number is wrong."""

_LONGEST_ANSWER = 300
"""Characters of a tool's answer that support the call."""

_TITLE = 80
"""Characters of a memory's text in a report of a fault."""

_REDUCED = re.compile(r"(\d{4})(?:[-/.](\d{2}))?")

_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")

_FOR_WISHES = frozenset({"DELETE", "CORRECT", "SUPERSEDE", "END"})
"""Operations that a request in talk may ask for on a memory of another topic."""

_TOPICS_OWN = frozenset({"user", "the user", "用户"})
"""Names that models give the subject of a topic."""


_ENDINGS = frozenset({"END", "DELETE"})


@dataclass(frozen=True, slots=True)
class _Place:
    """The slot that an operation fills, and with what."""

    slot: str
    value: str
    many: bool
    field: SchemaField | None = None


class Reader:
    """Reads a proposal operation by operation: what is sound is kept, whatever the others are.

    Every id must be one of those shown, every quote must be in its message. A later answer amends what was kept.
    """

    def __init__(
        self,
        task: ProposeTask,
        names: Mapping[str, Memory],
        extractor: str,
        voice: Voice,
        prompt: str,
        *,
        schemas: Schemas,
    ) -> None:
        self._task = task
        self._schemas = schemas
        self._names = names
        self._known = {memory.memory_id: memory for memory in names.values()}
        self._last = named_operations(task)
        self._heard = sources_of(task)
        self._voice = voice
        self._extractor = extractor
        self._prompt = prompt
        self._kept = list(task.last)
        self._earlier: list[Operation] = list(task.last)
        """Kept from earlier answers: a later one may change it."""
        self._faults: list[str] = []
        self._doubts: dict[str, str] = {}
        """Asked about once, and kept, by the text."""
        self._notes: list[str] = []

    def read(self, answer: ProposalAnswer) -> Proposal:
        """Return the proposal.

        Raises:
            FaultyPartsError: Some operations are unsound; it says which, all of them, and why. The others are kept.
        """
        before, taken, asked = self._faults, 0, len(self._doubts)
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
            self._faults.append(f"- {self._reason('broke_off')}")
        if taken + len(self._faults) < len(before):
            self._notes += [f"not given again {fault}" for fault in before]
        doubts = list(self._doubts.values())[asked:]
        if self._faults or doubts:
            raise FaultyPartsError("\n".join((*self._faults, *doubts)))
        return self.settle("")

    def settle(self, failure: str) -> Proposal:
        """Return the proposal as far as it is sound, and why the rest is not; what was only asked about is sound."""
        failure = "" if self._doubts and not self._faults else failure
        kept = {operation.content for operation in self._kept}
        self._notes += [f"kept all the same {doubt}" for content, doubt in self._doubts.items() if content in kept]
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

    def _reason(self, why: str, **values: str) -> str:
        return reason(why, self._task.language, **values)

    def _refused(self, why: str, **values: str) -> InvalidAnswerError:
        return InvalidAnswerError(self._reason(why, **values))

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
                self._one_value(new, old)
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
                    return  # the other says more about it
            elif shared and not {old.action, new.action} <= {"SUPERSEDE", "CORRECT"}:  # several may replace one
                raise self._refused("taken_already", ids=" ".join(operation.id))
        self._kept.append(new)

    def _one_value(self, new: Operation, old: Operation) -> None:
        """Refuse a second value of a field in the statement of the first: one memory holds one value."""
        same = new.canonical_topic == old.canonical_topic and canonical(new.slot_value) == canonical(old.slot_value)
        if not same and self._schemas.field(new.canonical_topic, [self._task.shelf.topic]):
            raise self._refused("one_value", slot=new.canonical_topic)

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
            belief = self._belief(operation, evidence)
            olds = [self._target(name, operation, belief) for name in ids]
        for each in amended:
            olds += [self._known[target] for target in each.targets if target in self._known]
            action = each.action if not ids else action
        olds = [*{old.memory_id: old for old in olds}.values()]
        if not olds and action != "CREATE":
            raise self._refused("without_memory", action=action, ids=self._ids())
        if evidence and not operation.content.strip() and action in {"CREATE", "REFINE", "SUPERSEDE", "CONTRADICT"}:
            raise self._refused("no_content", action=action)
        place = self._place(operation, action, evidence, olds)
        self._founded(operation, evidence, olds, place)
        return Operation(
            action=action,
            evidence=tuple(evidence),
            targets=tuple(old.memory_id for old in olds),
            content=operation.content.strip() if action != "CORROBORATE" else "",
            when_to_use=operation.when_to_use,
            category=operation.category,
            canonical_topic=place.slot,
            slot_value=place.value,
            slot_many=place.many,
            importance=operation.importance,
            tags=tuple(dict.fromkeys(tag.strip() for tag in operation.tags if tag.strip())),
            valid_from=self._time(operation.valid_from, evidence),
            valid_to=self._time(operation.valid_to, evidence),
        )

    def _place(
        self, operation: OperationAnswer, action: Action, evidence: Sequence[Evidence], olds: Sequence[Memory]
    ) -> _Place:
        """Return the slot that an operation fills, and with what: a field of a schema takes only what is of its type.

        Raises:
            InvalidAnswerError: It fills a field with something that is not one of its values.
        """
        slot, value = self._slot(operation, olds), operation.value.strip()
        inherited = olds[0] if not slot and len({old.canonical_topic for old in olds}) == 1 else None
        place = _Place(slot, value if slot else "", operation.many)
        if inherited is not None:
            place = _Place(inherited.canonical_topic, value, inherited.slot_many if evidence else operation.many)
        topic = self._task.shelf.topic
        found = self._schemas.field(place.slot, (topic, *(old.topic for old in olds)))
        if found is None:
            return place
        if action in _ENDINGS:
            return _Place("", "", many=False)  # that it ended is not a value
        field = found.field
        amends = action == "REFINE" and len(olds) == 1
        told = value or not (amends and olds[0].slot_value)  # without a value, an amended memory keeps its own
        if operation.content.strip() and action != "CORROBORATE" and told:
            try:
                field.read(value)
            except ValueError as error:
                name = field.attributes[0]
                raise self._refused(
                    "no_such_value", name=name, form=field.form, value=repr(value), problem=str(error)
                ) from error
        kept = amends and bool(olds[0].canonical_topic)
        return _Place(place.slot if kept else found.slot, value, field.many, field)

    def _founded(
        self, operation: OperationAnswer, evidence: Sequence[Evidence], olds: Sequence[Memory], place: _Place
    ) -> None:
        """Refuse a text with names, numbers or dates that no source has; ask once about possible names, or if no word is shared.

        Raises:
            InvalidAnswerError: Some are found nowhere; all of them are listed.
        """
        if not operation.content.strip() or operation.action == "CORROBORATE" or not evidence:
            return
        ground = replace(self._ground, cited=[*(each.quote for each in evidence), *(old.content for old in olds)])
        said = f"{operation.content} {self._worded(operation.value, place, ground)}"
        if lacking := ground.lacking(said):
            raise self._refused("stand_nowhere", words=", ".join(map(repr, lacking)))
        strange = ground.strange(said, "" if place.field is not None else operation.value)
        if strange and operation.content not in self._doubts:
            self._doubts[operation.content] = (
                f"- {_title(operation)}: {self._reason('no_word', words=', '.join(strange))}"
            )

    @staticmethod
    def _worded(value: str, place: _Place, ground: Ground) -> str:
        """Return the part of a value that must have been said: a schema may ask for a form that people do not use in speech."""
        if place.field is None:
            return value
        if place.field.closed:  # it names its values itself
            return ""
        return value[2:] if _ISO_DAY.match(value) and ground.lacking(value) else value  # born in 91

    @cached_property
    def _ground(self) -> Ground:
        return ground_of(self._task)

    def _repeats(self, operation: OperationAnswer, memory: Memory) -> bool:
        digest = content_digest(plain(operation.content))
        return bool(operation.content.strip()) and content_digest(memory.content) == digest and not memory.firm

    def _belief(self, operation: OperationAnswer, evidence: Sequence[Evidence]) -> Belief:
        """Return how far an operation is believed, by what it says, or by the words that it cites if it says nothing."""
        said = [operation.content, operation.value] if operation.content.strip() else [each.quote for each in evidence]
        return self._heard.belief(" ".join(said), evidence, self._task.shelf.topic)

    def _target(self, name: str, operation: OperationAnswer, belief: Belief) -> Memory:
        """Return the memory that an operation names, if it may be changed."""
        old = self._names.get(name) or self._names.get(f"m{name}") or self._of_slot(name)
        if old is None:
            raise self._refused("unknown_id", name=repr(name), ids=self._ids())
        if old in self._task.meant and operation.action not in _FOR_WISHES:
            raise self._refused("other_topic", name=name)
        if belief.trust < min(old.trust, QUARANTINE_BELOW) and operation.evidence:
            raise self._refused("of_a_tool", name=name)
        if belief.of_tools and old.trust >= 1 and operation.action not in {"CORROBORATE", "CONTRADICT"}:
            raise self._refused("of_a_person", name=name)
        if old.firm and operation.action in {"REFINE", "DELETE", "END"}:
            raise self._refused("firm", name=name)
        return old

    def _of_slot(self, name: str) -> Memory | None:
        """Return the one memory in a slot of that name: some models name what they change by its slot."""
        holding = [old for old in self._known.values() if old.canonical_topic.endswith(f":{attribute(name)}")]
        return holding[0] if len(holding) == 1 else None

    def _ids(self) -> str:
        return ", ".join((*self._names, *self._last)) or "none"

    def _slot(self, operation: OperationAnswer, olds: Sequence[Memory]) -> str:
        """Return the slot that a model names, as subject and attribute: the topic is the subject unless it names one.

        Of what it changes under another topic, the attribute of that is meant.
        """
        whose, _, name = operation.slot.rpartition(":")
        if not name.strip():
            return ""
        whose = whose.strip() or operation.whose.strip()
        if whose.casefold() in _TOPICS_OWN:
            whose = ""
        if not whose and len(olds) == 1 and olds[0] in self._task.meant:
            whose = olds[0].canonical_topic.rpartition(":")[0]
        return canonical(f"{whose or self._task.shelf.topic.target}:{attribute(name)}")

    def _evidence(self, operation: OperationAnswer) -> list[Evidence]:
        """Return the words that an operation rests on.

        Raises:
            InvalidAnswerError: There are none, or some are found nowhere; all of those are listed.
        """
        found = {quote: self._found(quote) for quote in operation.evidence}
        if missing := [quote for quote, evidence in found.items() if evidence is None]:
            faults = "; ".join(
                self._reason("not_copied", words=repr(each.quote), number=str(each.n)) for each in missing
            )
            raise self._refused("copy", faults=faults, most=str(len(self._task.messages)))
        if not found and not self._settles(operation):
            raise self._refused("no_evidence")
        return [evidence for evidence in found.values() if evidence is not None]

    def _settles(self, operation: OperationAnswer) -> bool:
        """Return whether an operation settles memories that share a slot, which needs no words of this block."""
        ids = {memory.memory_id for name in operation.id if (memory := self._names.get(name))}
        wanted = operation.action in {"CORROBORATE", "SUPERSEDE", "CORRECT", "END"}
        return wanted and bool(ids) and any(ids <= set(pair) for pair in self._task.settle)

    def _found(self, quote: QuoteAnswer) -> Evidence | None:
        """Return the words of a quote as its message has them; those of another one, if that alone has them."""
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
        """Return the beginning of the result of the call that a quote is from: the call itself is not in any message's words."""
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
        """Return an ISO date, which may be a year or a month alone; what cannot be read is dropped, with a note."""
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
    """Return the operations kept from the last attempt, by the names that the prompt gives."""
    return {f"o{number}": operation for number, operation in enumerate(task.last, start=1)}


def _title(operation: OperationAnswer | UnreadOperation) -> str:
    """Return the name of an operation in a report of faults: what it does, to what, and how its text begins."""
    if isinstance(operation, UnreadOperation):
        return operation.written
    said = [f'"{operation.content[:_TITLE]}"'] if operation.content else []
    return " ".join((operation.action, *operation.id, *said))


def read_skill(answer: SkillAnswer, task: DistilTask) -> Skill:
    """Read a model's answer: each step must repeat a call that was made, with its arguments or slots for them.

    Raises:
        InvalidAnswerError: A step repeats no call, or the steps make no skill.
    """
    calls, taken, earlier = task.run.done, dict[str, str](), dict[str, Call]()
    steps: list[SkillStep] = []
    for step in answer.steps:
        if not 1 <= step.n <= len(calls):
            raise InvalidAnswerError(f"there is no call {step.n}; they are 1 to {len(calls)}.")
        call = calls[step.n - 1]
        if not fits(step.args, call.args):
            raise InvalidAnswerError(f"the args of {step.name} are not those of call {step.n}: {step.args}.")
        args = _merged(step.args, template_of(call.args, task.run.requests, earlier, taken))
        steps.append(step_of(step.name, call.tool, args, step.after))
        earlier[step.name] = call
    skill = skill_of(task.run, steps, task=task.task, name=answer.name, when_to_use=answer.when_to_use)
    try:
        check_skill(skill, {})
    except SkillError as error:
        raise InvalidAnswerError(str(error)) from error
    return skill


def _merged(theirs: Any, ours: Any) -> Any:
    """Return arguments by the model where it has slots, else by the rules: no word of a result stays."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return {name: _merged(each, ours[name]) for name, each in theirs.items()}
    if isinstance(theirs, list) and isinstance(ours, list):
        return [_merged(each, other) for each, other in zip(theirs, ours, strict=True)]
    return theirs if slots(theirs) else ours
