"""The thinker that asks a chat model: one call to digest a block, one per touched topic, one to review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remegraph.engine.answers import (
    DescribeAnswer,
    DigestAnswer,
    ProposalAnswer,
    SkillAnswer,
    VerdictAnswer,
)
from remegraph.engine.asking import Asker, Question
from remegraph.engine.distilling import read_skill
from remegraph.engine.metering import Meter
from remegraph.engine.operations import Reader, named_operations
from remegraph.engine.perceiving import as_blocks
from remegraph.engine.rendering import (
    attachment_lines,
    before_lines,
    block_lines,
    call_lines,
    memory_lines,
    name_of_agent,
    objection_lines,
    operation_lines,
    reason_lines,
    topic_lines,
    wish_lines,
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
from remegraph.models import BlockSummary, Reading, Skill
from remegraph.prompts import Language, Prompt, load
from remegraph.rules.objections import Objection
from remegraph.rules.tainting import trust_of_summary

__all__ = ["ModelThinker", "framed"]


class ModelThinker:
    """Thinks with a chat model; what it answers is checked before it counts.

    Args:
        asker: Asks the model.
        similar_tokens: What the memories of a topic that are shown to it may cost.
        voice: How memories are written.
        template: A host's prompt for Sub Agents instead of ours.
    """

    learns = True

    def __init__(
        self, asker: Asker, *, similar_tokens: int, voice: Voice | None = None, template: Prompt | None = None
    ) -> None:
        self._asker = asker
        self._voice = voice or Voice()
        self._template = template
        self.name = asker.name
        self.similar_tokens = similar_tokens
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
            return Digest(
                summary=summary,
                topics=tuple(answer.topics),
                notes=answer.notes,
                forget=_named(answer.forget, task),
                correct=_named(answer.correct, task),
            )

        prompt = load("digest", task.language)
        data = prompt.render(topics=topic_lines(task.shelves), block=block_lines(task.messages, task.language))
        return Question("digest", framed(data, task.language), task.language, DigestAnswer, accept)

    def _propose(self, task: ProposeTask) -> Question[ProposalAnswer, Proposal]:
        names = {f"m{number}": memory for number, memory in enumerate(task.similar, start=1)}
        names |= {f"w{number}": memory for number, memory in enumerate(task.meant, start=1)}
        objections = ""
        if task.reasons:
            last = operation_lines(named_operations(task), {each.memory_id: name for name, each in names.items()})
            _, text = load("objections", task.language).render(last=last, reasons=reason_lines(task.reasons))
            objections = f"\n{text}\n"
        told = {"agent": name_of_agent(task.scope)}
        prompt = self._template or load("propose", task.language)
        data = prompt.render(
            role=_part(f"mode_{self._voice.mode}", task.language, told),
            perspective=_part(f"perspective_{self._voice.perspective}", task.language, told),
            topic=topic_lines([task.shelf]),
            memories=memory_lines(
                [
                    *(("self", memory) for memory in task.itself),
                    *((name, memory) for name, memory in names.items() if memory not in task.meant),
                ]
            ),
            wishes=wish_lines(task, names),
            objections=objections,
            before=before_lines(task),
            block=block_lines(task.messages, task.language),
        )
        reader = Reader(task, names, self.name, self._voice, prompt.digest)
        return Question(
            "propose",
            framed(data, task.language),
            task.language,
            ProposalAnswer,
            reader.read,
            settle=reader.settle,
            begun=bool(task.last),
        )

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


def _named(numbers: Sequence[int], task: DigestTask) -> tuple[str, ...]:
    """Return the ids of messages of a block, by their numbers; numbers of none are passed over."""
    return tuple(message.message_id for at, message in enumerate(task.messages, start=1) if at in numbers)


def _part(name: str, language: Language, values: Mapping[str, str]) -> str:
    """Return a part of a prompt, told what it asks for."""
    prompt = load(name, language)
    return prompt.render(**{variable: values[variable] for variable in prompt.variables})[1]
