"""The thinker that asks a chat model: one call to digest a block, one per touched topic, one to review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from remegraph.engine.answers import (
    DescribeAnswer,
    DigestAnswer,
    OperationAnswer,
    ProposalAnswer,
    QuoteAnswer,
    SkillAnswer,
    VerdictAnswer,
)
from remegraph.engine.asking import Asker, Question
from remegraph.engine.distilling import read_skill
from remegraph.engine.metering import Meter
from remegraph.engine.perceiving import as_blocks
from remegraph.engine.proposals import Writer
from remegraph.engine.rendering import (
    attachment_lines,
    block_lines,
    call_lines,
    memory_lines,
    name_of_agent,
    objection_lines,
    reason_lines,
    topic_lines,
)
from remegraph.engine.tasks import (
    DescribeTask,
    Digest,
    DigestTask,
    DistilTask,
    Proposal,
    ProposeTask,
    ReviewTask,
    Voice,
)
from remegraph.errors import InvalidAnswerError
from remegraph.models import BlockSummary, Claim, Evidence, Memory, Reading, Skill, StoredMessage
from remegraph.prompts import Language, Prompt, load
from remegraph.rules.claims import canonical, read_claims
from remegraph.rules.conflicts import compare, said
from remegraph.rules.duplicates import content_digest
from remegraph.rules.objections import Objection
from remegraph.rules.quotes import find_quote
from remegraph.rules.standing import QUARANTINE_BELOW
from remegraph.rules.tainting import trust_of_evidence, trust_of_summary
from remegraph.rules.telling import NARRATOR, of_narrator

__all__ = ["ModelThinker", "framed"]


class ModelThinker:
    """Thinks with a chat model; what it answers is checked before it counts.

    Args:
        asker: Asks the model.
        similar_limit: How many similar memories are shown to it.
        voice: How memories are written.
        template: A host's prompt for Sub Agents instead of ours.
    """

    learns = True

    def __init__(
        self, asker: Asker, *, similar_limit: int, voice: Voice | None = None, template: Prompt | None = None
    ) -> None:
        self._asker = asker
        self._voice = voice or Voice()
        self._template = template
        self.name = asker.name
        self.similar_limit = similar_limit
        self.looks_back = self._voice.mode == "first-person"

    def describe(self, task: DescribeTask, meter: Meter) -> Mapping[tuple[str, str], Reading]:
        """Say what is in the attachments of a block in one call."""
        return self._asker.ask(self._describe(task), meter)

    async def adescribe(self, task: DescribeTask, meter: Meter) -> Mapping[tuple[str, str], Reading]:
        """Say what is in the attachments of a block in one call."""
        return await self._asker.aask(self._describe(task), meter)

    def digest(self, task: DigestTask, meter: Meter) -> Digest:
        """Summarise and route a block in one call."""
        return self._asker.ask(self._digest(task), meter)

    async def adigest(self, task: DigestTask, meter: Meter) -> Digest:
        """Summarise and route a block in one call."""
        return await self._asker.aask(self._digest(task), meter)

    def propose(self, task: ProposeTask, meter: Meter) -> Proposal:
        """Compare a block with one topic's memories in one call."""
        return self._asker.ask(self._propose(task), meter)

    async def apropose(self, task: ProposeTask, meter: Meter) -> Proposal:
        """Compare a block with one topic's memories in one call."""
        return await self._asker.aask(self._propose(task), meter)

    def review(self, task: ReviewTask, meter: Meter) -> tuple[Objection, ...]:
        """Confirm, drop or add objections in one call."""
        return self._asker.ask(self._review(task), meter)

    async def areview(self, task: ReviewTask, meter: Meter) -> tuple[Objection, ...]:
        """Confirm, drop or add objections in one call."""
        return await self._asker.aask(self._review(task), meter)

    def distil(self, task: DistilTask, meter: Meter) -> Skill:
        """Make a skill of a run in one call."""
        return self._asker.ask(self._distil(task), meter)

    async def adistil(self, task: DistilTask, meter: Meter) -> Skill:
        """Make a skill of a run in one call."""
        return await self._asker.aask(self._distil(task), meter)

    def _describe(self, task: DescribeTask) -> Question[DescribeAnswer, Mapping[tuple[str, str], Reading]]:
        def accept(answer: DescribeAnswer) -> Mapping[tuple[str, str], Reading]:
            told = {each.n: each.text.strip() for each in answer.descriptions}
            wanted = set(range(1, len(task.pictured) + 1))
            if told.keys() != wanted:
                raise InvalidAnswerError(f"descriptions of {sorted(told)}; the attachments are {sorted(wanted)}.")
            return {
                (each.message_id, each.attachment.sha256): Reading(
                    sha256=each.attachment.sha256, text=told[number], reader=self.name
                )
                for number, each in enumerate(task.pictured, start=1)
            }

        data = load("describe", task.language).render(
            attachments=attachment_lines(task.pictured), block=block_lines(task.messages, task.language)
        )
        prompt, shown = framed(data, task.language), as_blocks(task.pictured)
        return Question("describe", prompt, task.language, DescribeAnswer, accept, shown)

    def _digest(self, task: DigestTask) -> Question[DigestAnswer, Digest]:
        keys = {shelf.topic.key.casefold(): shelf.topic.key for shelf in task.shelves}

        def accept(answer: DigestAnswer) -> Digest:
            named = [topic.strip().casefold() for topic in answer.topics]
            if named and not any(topic in keys or topic.startswith("task:") for topic in named):  # all would be lost
                raise InvalidAnswerError(f"unknown topics {answer.topics}; the topics are {sorted(keys.values())}.")
            summary = BlockSummary(
                block_id=task.block.block_id,
                partition=task.block.partition,
                start_time=task.block.start_time,
                end_time=task.block.end_time,
                summary=answer.summary,
                entities=tuple(answer.entities),
                trust=trust_of_summary(" ".join((answer.summary, *answer.entities)), task.messages),
                language=task.language,
                extractor=self.name,
            )
            return Digest(summary=summary, topics=tuple(answer.topics))

        prompt = load("digest", task.language)
        data = prompt.render(topics=topic_lines(task.shelves), block=block_lines(task.messages, task.language))
        return Question("digest", framed(data, task.language), task.language, DigestAnswer, accept)

    def _propose(self, task: ProposeTask) -> Question[ProposalAnswer, Proposal]:
        names = {f"m{number}": memory for number, memory in enumerate(task.similar, start=1)}
        objections = ""
        if task.reasons:
            reasons = reason_lines(task.reasons)
            objections = "\n" + load("objections", task.language).render(reasons=reasons)[1] + "\n"
        told = {"agent": name_of_agent(task.scope), "topic": topic_lines([task.shelf])}
        prompt = self._template or load("propose", task.language)
        data = prompt.render(
            role=_part(f"mode_{self._voice.mode}", task.language, told),
            perspective=_part(f"perspective_{self._voice.perspective}", task.language, told),
            memories=memory_lines([*(("self", memory) for memory in task.itself), *names.items()]),
            objections=objections,
            block=block_lines(task.messages, task.language),
        )
        reader = _Reader(task, names, self.name, self._voice, prompt.digest)
        return Question("propose", framed(data, task.language), task.language, ProposalAnswer, reader.read)

    def _distil(self, task: DistilTask) -> Question[SkillAnswer, Skill]:
        data = load("skill", task.language).render(
            task=reason_lines([task.task]),
            requests=reason_lines(task.run.requests),
            calls=call_lines(task.run.done),
        )
        return Question(
            "skill", framed(data, task.language), task.language, SkillAnswer, lambda answer: read_skill(answer, task)
        )

    def _review(self, task: ReviewTask) -> Question[VerdictAnswer, tuple[Objection, ...]]:
        keys = {topic.key.casefold(): topic.key for topic in task.topics}

        def accept(answer: VerdictAnswer) -> tuple[Objection, ...]:
            unknown = [item.topic for item in answer.objections if item.topic.strip().casefold() not in keys]
            if unknown:
                raise InvalidAnswerError(f"unknown topics {unknown}; the topics are {sorted(keys.values())}.")
            return tuple(
                Objection(kind=item.kind, topic=keys[item.topic.strip().casefold()], reason=item.reason)
                for item in answer.objections
            )

        data = load("review", task.language).render(
            flags=objection_lines(task.flags),
            before=memory_lines((memory.topic.key, memory) for memory in task.before),
            after=memory_lines((memory.topic.key, memory) for memory in task.after),
            block=block_lines(task.messages, task.language),
        )
        return Question("review", framed(data, task.language), task.language, VerdictAnswer, accept)


def framed(prompt: tuple[str, str], language: Language) -> tuple[str, str]:
    """Return a prompt with the rule that no prompt goes without, whoever wrote it: what it shows is data.

    Args:
        prompt: Instructions and data.
        language: en or zh.
    """
    instructions, data = prompt
    return load("frame", language).render(instructions=instructions, data=data)


def _part(name: str, language: Language, values: Mapping[str, str]) -> str:
    """Return a part of a prompt, told what it asks for."""
    prompt = load(name, language)
    return prompt.render(**{variable: values[variable] for variable in prompt.variables})[1]


class _Reader:
    """Reads a proposal: every id must be one of those shown, every quote must stand in its message."""

    def __init__(self, task: ProposeTask, names: dict[str, Memory], extractor: str, voice: Voice, prompt: str) -> None:
        self._task = task
        self._names = names
        self._extractor = extractor
        self._voice = voice
        self._prompt = prompt

    def read(self, answer: ProposalAnswer) -> Proposal:
        """Return the proposal.

        Raises:
            InvalidAnswerError: An id is unknown or used twice, a quote is not found, a text is missing.
        """
        targets = [operation.id for operation in answer.operations if operation.action != "CREATE"]
        if twice := sorted({target for target in targets if targets.count(target) > 1}):
            raise InvalidAnswerError(f"several operations on {', '.join(twice)}; give one for each memory.")
        writer = Writer(self._task, self._extractor, self._voice, self._prompt)
        written: set[str] = set()
        for operation in answer.operations:
            self._apply(operation, writer, written)
        return Proposal(
            shelf=self._task.shelf,
            attempt=self._task.attempt,
            similar=self._task.similar,
            changes=tuple(writer.changes),
            links=tuple(writer.links),
        )

    def _apply(self, operation: OperationAnswer, writer: Writer, written: set[str]) -> None:
        evidence = [self._evidence(quote) for quote in operation.evidence]
        if not evidence:
            raise InvalidAnswerError(f"{operation.action} {operation.id} has no evidence.")
        if operation.action == "CREATE":
            self._create(operation, evidence, writer, written)
            return
        old = self._target(operation, evidence)
        match operation.action:
            case "CORROBORATE":
                writer.corroborate(old, evidence)
            case "REFINE":
                writer.update_memory(old, _text(operation), evidence, when_to_use=operation.when_to_use)
            case "SUPERSEDE":
                self._create(operation, evidence, writer, written, old)
            case "CONTRADICT":
                self._contradict(operation, evidence, writer, written, old)
            case "DELETE":
                writer.delete_memory(old, evidence)

    def _target(self, operation: OperationAnswer, evidence: Sequence[Evidence]) -> Memory:
        """Return the memory that an operation is about, if it may be."""
        old = self._names.get(operation.id)
        if old is None:
            raise InvalidAnswerError(
                f"unknown memory id {operation.id!r}; the ids are {', '.join(self._names) or 'none'}."
            )
        if trust_of_evidence(evidence, self._task.messages) < min(old.trust, QUARANTINE_BELOW):
            raise InvalidAnswerError(f"words of a tool cannot change {operation.id}.")
        if old.firm and operation.action in {"REFINE", "DELETE"}:
            raise InvalidAnswerError(
                f"{operation.id} is knowledge or a policy, which no conversation changes; leave it as it is."
            )
        return old

    def _create(
        self,
        operation: OperationAnswer,
        evidence: Sequence[Evidence],
        writer: Writer,
        written: set[str],
        old: Memory | None = None,
    ) -> Memory | None:
        content = _text(operation)
        digest = content_digest(content)
        if digest in written:
            raise InvalidAnswerError(f"the same text twice: {content!r}.")
        written.add(digest)
        claims = self._claims(content)
        if writer.is_known(content, claims):
            return None
        slot = operation.slot.strip()
        return writer.new_memory(
            content,
            evidence,
            when_to_use=operation.when_to_use,
            category=operation.category,
            canonical_topic=canonical(f"{self._about(content)}:{slot}") if slot else old.canonical_topic if old else "",
            claims=claims,
            importance=operation.importance,
            valid_from=self._valid_from(operation, evidence),
            replaces=(old,) if old else (),
        )

    def _contradict(
        self,
        operation: OperationAnswer,
        evidence: Sequence[Evidence],
        writer: Writer,
        written: set[str],
        old: Memory,
    ) -> None:
        """Keep what is said beside what it contradicts, unless code sees that it does not."""
        new = self._create(operation, evidence, writer, written)
        if new is None:
            return
        finding = compare(said(new), said(old))
        if finding is not None and finding.kind != "contradiction":
            raise InvalidAnswerError(f"{operation.id} does not contradict {new.content!r}: {finding.reason}")
        writer.contradict(new, old)

    def _claims(self, content: str) -> tuple[Claim, ...]:
        """Read what a memory states; in the first person, "I" is the agent, and never the person it is about."""
        person = self._task.shelf.topic.target_name
        first = self._voice.perspective == "first-person"
        return read_claims(content, NARRATOR if first else person, self._task.language, (person,))

    def _about(self, content: str) -> str:
        """Return whose slot a memory fills."""
        told = self._voice.perspective == "first-person" and of_narrator(content)
        return NARRATOR if told else self._task.shelf.topic.target

    def _evidence(self, quote: QuoteAnswer) -> Evidence:
        message = self._message(quote)
        span = find_quote(quote.quote, message.text)
        if span is None:
            raise InvalidAnswerError(f"the words {quote.quote!r} do not stand in message {quote.n}; copy them exactly.")
        start, end = span
        return Evidence(
            message_id=message.message_id, quote=message.text[start:end], block_id=self._task.block.block_id
        )

    def _message(self, quote: QuoteAnswer) -> StoredMessage:
        if not 1 <= quote.n <= len(self._task.messages):
            raise InvalidAnswerError(f"there is no message {quote.n}; they are 1 to {len(self._task.messages)}.")
        return self._task.messages[quote.n - 1]

    def _valid_from(self, operation: OperationAnswer, evidence: Sequence[Evidence]) -> datetime | None:
        if not operation.valid_from.strip():
            return None
        try:
            time = datetime.fromisoformat(operation.valid_from.strip())
        except ValueError:
            raise InvalidAnswerError(f"valid_from {operation.valid_from!r} is no ISO date.") from None
        if time.tzinfo is not None:
            return time
        said = next(message.time for message in self._task.messages if message.message_id == evidence[0].message_id)
        return time.replace(tzinfo=said.tzinfo)


def _text(operation: OperationAnswer) -> str:
    content = operation.content.strip()
    if not content:
        raise InvalidAnswerError(f"{operation.action} {operation.id} has no content.")
    return content
