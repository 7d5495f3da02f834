"""Asks a chat model, before knowledge leaves, which names stand in it, and how it is said in general."""

from __future__ import annotations

from collections.abc import Sequence

from remegraph.engine.answers import GeneralAnswer, KnowledgeAnswer, NamesAnswer
from remegraph.engine.asking import Asker, Question
from remegraph.engine.metering import Meter
from remegraph.engine.modelled import framed
from remegraph.engine.rendering import draft_lines, reason_lines
from remegraph.errors import InvalidAnswerError
from remegraph.ports import Draft, Reworded
from remegraph.prompts import Language, load

__all__ = ["ModelGeneralizer"]


class ModelGeneralizer:
    """A `Generalizer` that asks a chat model. What names something new is sent back.

    Args:
        asker: Asks the model.
        meter: Books the calls.
    """

    def __init__(self, asker: Asker, meter: Meter) -> None:
        self._asker = asker
        self._meter = meter
        self.name = asker.name

    def names(self, texts: Sequence[str], language: str) -> tuple[str, ...]:
        """Return the names that stand in texts; see `Generalizer`."""
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
