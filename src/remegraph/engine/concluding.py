"""Asks a chat model what similar memories have in common: one call for each new long-term memory."""

from __future__ import annotations

from collections.abc import Sequence

from remegraph.engine.answers import ConclusionAnswer
from remegraph.engine.asking import Asker, Question
from remegraph.engine.metering import Meter
from remegraph.engine.modelled import framed
from remegraph.engine.rendering import memory_lines, topic_lines
from remegraph.errors import InvalidAnswerError
from remegraph.language.plain import plain
from remegraph.models import Memory, Shelf
from remegraph.ports import Concluded
from remegraph.prompts import Language, load
from remegraph.rules.copying import repeats

__all__ = ["ModelConcluder"]


class ModelConcluder:
    """A `Concluder` that asks a chat model. It may refuse; what repeats the words of a source is sent back.

    Args:
        asker: Asks the model.
        meter: Books the calls.
    """

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
