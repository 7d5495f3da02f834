"""The thinker with a chat model: a call to digest a block, one per touched topic, one to review; and calls to conclude or generalise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from remegraph.engine.chat.answers import (
    ConclusionAnswer,
    DescribeAnswer,
    DigestAnswer,
    GeneralAnswer,
    KnowledgeAnswer,
    NamesAnswer,
    ProposalAnswer,
    QuoteAnswer,
    ScreenAnswer,
    SkillAnswer,
    VerdictAnswer,
)
from remegraph.engine.chat.model_call import Asker, Question
from remegraph.engine.chat.operations import Reader, named_operations, read_skill
from remegraph.engine.chat.prompt_data import (
    attachment_lines,
    before_lines,
    block_lines,
    call_lines,
    draft_lines,
    field_lines,
    memory_lines,
    name_of_agent,
    name_of_user,
    objection_lines,
    operation_lines,
    reason_lines,
    rule_lines,
    topic_lines,
    topics_shown,
    wish_lines,
)
from remegraph.engine.origin import trust_of_summary
from remegraph.engine.perception import as_blocks
from remegraph.engine.routes import resolve
from remegraph.engine.schemas import Schemas
from remegraph.engine.summary_tasks import (
    DescribeTask,
    Digest,
    DigestTask,
    DistilTask,
    Meter,
    Objection,
    OwnerRules,
    Proposal,
    ProposeTask,
    ReviewTask,
    Screened,
    ScreenTask,
    Verb,
    Voice,
)
from remegraph.errors import InvalidAnswerError
from remegraph.models import BlockSummary, Memory, Reading, Shelf, Skill
from remegraph.models.quotes import find_copied, repeats
from remegraph.ports import Concluded, Draft, Reworded
from remegraph.prompts import Language, Prompt, load
from remegraph.text.scripts import plain

__all__ = ["ModelConcluder", "ModelGeneralizer", "ModelThinker", "framed"]


class ModelThinker:
    """Thinks with a chat model; what it answers is checked before it counts.

    `similar_tokens` is what the memories of a topic that are shown to it may cost, `template` a host's prompt for Sub
    Agents instead of ours.
    """

    learns = True

    def __init__(
        self,
        asker: Asker,
        *,
        similar_tokens: int,
        voice: Voice | None = None,
        template: Prompt | None = None,
        rules: OwnerRules | None = None,
        schemas: Schemas | None = None,
    ) -> None:
        self._asker = asker
        self._rules = rules or OwnerRules()
        self._voice = voice or Voice()
        self._template = template
        self._schemas = schemas or Schemas({})
        self.name = asker.name
        self.similar_tokens = similar_tokens
        self.looks_back = self._voice.mode == "first-person"

    def describe(self, task: DescribeTask, meter: Meter) -> Mapping[tuple[str, str], Reading]:
        """Say what is in the attachments of a block in one call."""
        return self._asker.ask(self._describe(task), meter)

    def digest(self, task: DigestTask, meter: Meter) -> Digest:
        """Summarise and route a block in one call."""
        return self._asker.ask(self._digest(task), meter)

    def propose(self, task: ProposeTask, meter: Meter) -> Proposal:
        """Compare a block with one topic's memories in one call."""
        return self._asker.ask(self._propose(task), meter)

    def review(self, task: ReviewTask, meter: Meter) -> tuple[Objection, ...]:
        """Confirm, drop or add objections in one call."""
        return self._asker.ask(self._review(task), meter)

    def distil(self, task: DistilTask, meter: Meter) -> Skill:
        """Make a skill of a run in one call."""
        return self._asker.ask(self._distil(task), meter)

    def screen(self, task: ScreenTask, meter: Meter) -> Screened:
        """Hold statements and words against the owner's rules in one call."""
        return self._asker.ask(_screen(task), meter)

    async def athink(self, verb: Verb, task: Any, meter: Meter) -> Any:
        """Call the method of this name without blocking the event loop."""
        questions: Mapping[Verb, Callable[[Any], Question[Any, Any]]] = {
            "describe": self._describe,
            "digest": self._digest,
            "propose": self._propose,
            "review": self._review,
            "distil": self._distil,
            "screen": _screen,
        }
        return await self._asker.aask(questions[verb](task), meter)

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
        prompt, shown = framed(self._ruled(data, task.language), task.language), as_blocks(task.pictured)
        return Question("describe", prompt, task.language, DescribeAnswer, accept, shown)

    def _digest(self, task: DigestTask) -> Question[DigestAnswer, Digest]:
        told: list[DigestAnswer] = []

        def accept(answer: DigestAnswer) -> Digest:
            topics, _ = resolve(answer.topics, task.shelves, task.block.partition, invents=task.invents)
            if answer.topics and not topics and not told:  # all would be lost; a repeated memory is merely refused
                told.append(answer)
                keys = sorted(shelf.topic.key for shelf in task.shelves)
                raise InvalidAnswerError(f"unknown topics {answer.topics}; the topics are {keys}.")
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
        data = prompt.render(
            language=self._language(task.language),
            topics=topics_shown(task),
            block=block_lines(task.messages, task.language),
        )
        prompted = framed(self._ruled(data, task.language), task.language)
        return Question("digest", prompted, task.language, DigestAnswer, accept)

    def _ruled(self, prompt: tuple[str, str], language: Language) -> tuple[str, str]:
        """Return a prompt with the owner's rules after its instructions, if there are any."""
        instructions, data = prompt
        if not self._rules:
            return prompt
        return f"{instructions}\n{load('rules', language).render(rules=rule_lines(self._rules, language))[1]}", data

    def _language(self, prompt: Language) -> str:
        """Return the language that memories are written in, as a prompt names it."""
        return self._voice.language or load("language", prompt).render()[1]

    def _propose(self, task: ProposeTask) -> Question[ProposalAnswer, Proposal]:
        names = {f"m{number}": memory for number, memory in enumerate(task.similar, start=1)}
        names |= {f"w{number}": memory for number, memory in enumerate(task.meant, start=1)}
        objections = ""
        if task.reasons:
            last = operation_lines(named_operations(task), {each.memory_id: name for name, each in names.items()})
            _, text = load("objections", task.language).render(last=last, reasons=reason_lines(task.reasons))
            objections = f"\n{text}\n"
        told = {
            "agent": name_of_agent(task.scope),
            "user": name_of_user(task.scope),
            "language": self._language(task.language),
        }
        prompt = self._template or load("propose", task.language)
        data = prompt.render(
            role=_part(f"mode_{self._voice.mode}", task.language, told),
            perspective=_part(f"perspective_{self._voice.perspective}", task.language, told),
            topic=topic_lines([task.shelf]) + field_lines(self._schemas.of(task.shelf.topic), task.language),
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
        reader = Reader(task, names, self.name, self._voice, prompt.digest, schemas=self._schemas)
        return Question(
            "propose",
            framed(self._ruled(data, task.language), task.language),
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


def _screen(task: ScreenTask) -> Question[ScreenAnswer, Screened]:
    def accept(answer: ScreenAnswer) -> Screened:
        told = {each.n: each.rule for each in answer.verdicts}
        wanted = range(1, len(task.texts) + 1)
        if told.keys() != set(wanted) or not {0, *task.rules.numbers} >= set(told.values()):
            raise InvalidAnswerError(
                f"verdicts of {sorted(told)} by rules {sorted(set(told.values()))}; give one for each of the statements "
                f"{[*wanted]}, by the rules {[*task.rules.numbers]} or 0."
            )
        return Screened(tuple(told[n] for n in wanted), tuple(_copied(each, task) for each in answer.words))

    data = load("screen", task.language).render(
        rules=rule_lines(task.rules, task.language),
        statements=reason_lines(task.texts, numbered=True) or "-",
        block=block_lines(task.messages, task.language) if task.messages else "-",
    )
    return Question("screen", framed(data, task.language), task.language, ScreenAnswer, accept)


def _copied(quote: QuoteAnswer, task: ScreenTask) -> tuple[str, str]:
    """Return the words of a message that a model copied; all of it where they are not found."""
    named = task.messages[quote.n - 1 : quote.n] if quote.n > 0 else ()
    for message in (*named, *task.messages):
        if place := find_copied(quote.quote, message.text):
            return message.message_id, message.text[place[0] : place[1]]
    if not named:
        raise InvalidAnswerError(f"the words {quote.quote!r} stand in no message; copy them exactly.")
    return named[0].message_id, named[0].text


def framed(prompt: tuple[str, str], language: Language) -> tuple[str, str]:
    """Return a prompt with the rule that every prompt must contain, a host's too: what it shows is data."""
    instructions, data = prompt
    return load("frame", language).render(instructions=instructions, data=data)


def _named(numbers: Sequence[int], task: DigestTask) -> tuple[str, ...]:
    """Return the ids of messages of a block, by their numbers; unknown numbers are ignored."""
    return tuple(message.message_id for at, message in enumerate(task.messages, start=1) if at in numbers)


def _part(name: str, language: Language, values: Mapping[str, str]) -> str:
    """Return a part of a prompt, with its variables filled in."""
    prompt = load(name, language)
    return prompt.render(**{variable: values[variable] for variable in prompt.variables})[1]


class ModelConcluder:
    """A `Concluder` that asks a chat model. It may refuse; what repeats the words of a source is sent back."""

    def __init__(self, asker: Asker, meter: Meter) -> None:
        self._asker = asker
        self._meter = meter
        self.name = asker.name

    def conclude(self, memories: Sequence[Memory], said: Sequence[str], language: str) -> Concluded | None:
        """Return what the memories have in common, if anything; see `Concluder`."""
        return self._asker.ask(_question(memories, said, "zh" if language == "zh" else "en"), self._meter)


def _question(
    memories: Sequence[Memory], said: Sequence[str], language: Language
) -> Question[ConclusionAnswer, Concluded | None]:
    def accept(answer: ConclusionAnswer) -> Concluded | None:
        conclusion = plain(answer.conclusion).strip()
        when = tuple(text for each in answer.conditions if (text := plain(each).strip()))
        if not conclusion:
            return None
        if not when:
            raise InvalidAnswerError("the conclusion has no conditions.")
        if run := repeats([conclusion, *when], said):
            raise InvalidAnswerError(f"{run!r} is a quote; say in other words what the memories have in common.")
        return Concluded(conclusion, when)

    lines = memory_lines((f"m{number}", memory) for number, memory in enumerate(memories, start=1))
    shelf = Shelf(partition=memories[0].partition, topic=memories[0].topic)
    prompt = load("consolidate", language).render(topic=topic_lines([shelf]), memories=lines)
    return Question("consolidate", framed(prompt, language), language, ConclusionAnswer, accept)


class ModelGeneralizer:
    """A `Generalizer` that asks a chat model. What names something new is sent back."""

    def __init__(self, asker: Asker, meter: Meter) -> None:
        self._asker = asker
        self._meter = meter
        self.name = asker.name

    def names(self, texts: Sequence[str], language: str) -> tuple[str, ...]:
        """Return the names in texts; see `Generalizer`."""
        return self._asker.ask(_naming(texts, _language(language)), self._meter)

    def generalize(self, drafts: Sequence[Draft], language: str) -> tuple[Reworded | None, ...]:
        """Return drafts in general words; see `Generalizer`."""
        return self._asker.ask(_rewording(drafts, _language(language)), self._meter)


def _language(language: str) -> Language:
    return "zh" if language == "zh" else "en"


def _naming(texts: Sequence[str], language: Language) -> Question[NamesAnswer, tuple[str, ...]]:
    said = "\n".join(texts).casefold()

    def accept(answer: NamesAnswer) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name for each in answer.names if (name := each.strip())))
        if missing := [name for name in names if name.casefold() not in said]:
            raise InvalidAnswerError(f"{missing[0]!r} does not stand in the texts; copy names as they are written.")
        return names

    prompt = load("private_names", language).render(texts=reason_lines(texts))
    return Question("names", framed(prompt, language), language, NamesAnswer, accept)


def _rewording(drafts: Sequence[Draft], language: Language) -> Question[GeneralAnswer, tuple[Reworded | None, ...]]:
    def accept(answer: GeneralAnswer) -> tuple[Reworded | None, ...]:
        given = [item.n for item in answer.items]
        if odd := [n for n in given if not 1 <= n <= len(drafts) or given.count(n) > 1]:
            raise InvalidAnswerError(f"number {odd[0]} is unknown or there twice; they go from 1 to {len(drafts)}.")
        said = {item.n: _reworded(item, drafts[item.n - 1]) for item in answer.items}
        return tuple(said.get(n) for n in range(1, len(drafts) + 1))

    prompt = load("generalize", language).render(knowledge=draft_lines(drafts))
    return Question("generalize", framed(prompt, language), language, GeneralAnswer, accept)


def _reworded(item: KnowledgeAnswer, draft: Draft) -> Reworded:
    fields = {each.field: each.text.strip() for each in item.fields}
    if unknown := sorted(fields.keys() - draft.fields.keys()):
        raise InvalidAnswerError(f"{item.n} has no field {unknown[0]!r}; it has {', '.join(draft.fields)}.")
    if not all(fields.values()):
        raise InvalidAnswerError(f"a field of {item.n} is empty; leave it out, or say it.")
    if problem := draft.objection([item.title, *fields.values()]):
        raise InvalidAnswerError(f"{item.n}: {problem}")
    return Reworded(item.title.strip(), fields)
