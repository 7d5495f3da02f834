"""How many questions a model answers rightly from what recall gives it, as a model judges. Never a headline.

    python -m evals qa --data locomo10.json --model openai:gpt-5-mini [--questions 20] [--stores 2]

For files whose questions have answers, such as LoCoMo's and LongMemEval's own ones. Memory itself works without a model:
messages are recorded and summarised, `kit.recall(question, depth="messages")` gives the context. The model sees this and
the question, and nothing else; then it is shown the expected answer, and judges its own (`prompts/`). Where nothing in
the conversation answers, it is right to say so: LoCoMo's adversarial and LongMemEval's abstention questions.

Such a figure depends on the model that answers, on the one that judges, and on the prompts: it compares with no other
one that was made in another way. An answer or a verdict that cannot be used counts as wrong, and is counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from pydantic import BaseModel, Field

from evals._figures import Figure, explain_data, finish
from evals._measuring import sample
from evals._metrics import interval
from evals._rankers import asked_at
from evals._records import Question, Store
from evals._stores import stores
from remegraph import MemoryKit, Scope, Settings
from remegraph.engine.asking import Asker
from remegraph.engine.asking import Question as Prompted
from remegraph.engine.metering import Meter
from remegraph.errors import InvalidAnswerError, RequestRefusedError
from remegraph.kit.providers import as_chat_model
from remegraph.language.tokens import estimate_tokens
from remegraph.prompts import Language, load

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

__all__ = ["Answered", "Judge", "Outcome", "Verdict", "main", "outcomes"]

_PROMPTS = "evals.prompts"
_SCOPE = Scope(user="ann", agent="remy")
_TIMEOUT = 60.0


class Answered(BaseModel):
    """The answer to the question."""

    answer: str = Field(min_length=1)


class Verdict(BaseModel):
    """Whether the given answer is correct."""

    reason: str
    correct: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a question."""

    category: str
    correct: bool
    usable: bool
    context: int
    """Tokens of what was recalled."""
    spent: int
    """Tokens of all calls."""


class Judge:
    """Answers questions from memories, and judges the answers.

    Args:
        model: Does both.
        language: Of the prompts.
    """

    def __init__(self, model: BaseChatModel, language: Language) -> None:
        self._asker = Asker(model, repairs=1, retries=3, backoff=1.0, timeout=_TIMEOUT)
        self._language = language

    def answer(self, question: Question, memories: str, now: str, meter: Meter) -> str:
        """Return the answer that follows from the memories."""
        prompt = load("answer", self._language, _PROMPTS)
        filled = prompt.render(memories=memories, now=now, question=question["text"])
        asked = Prompted("answer", filled, self._language, Answered, lambda given: given.answer)
        return self._asker.ask(asked, meter)

    def correct(self, question: Question, answer: str, meter: Meter) -> bool:
        """Return whether an answer is right."""
        if unanswerable(question):
            prompt = load("grade_unanswerable", self._language, _PROMPTS)
            filled = prompt.render(question=question["text"], answer=answer)
        else:
            prompt = load("grade", self._language, _PROMPTS)
            filled = prompt.render(question=question["text"], expected=question["answer"], answer=answer)
        asked = Prompted("grade", filled, self._language, Verdict, lambda given: given.correct)
        return self._asker.ask(asked, meter)


def unanswerable(question: Question) -> bool:
    """Return whether it is right to say that the answer is not known."""
    return question.get("unanswerable", question.get("category") == "adversarial")


def outcomes(
    store: Store, model: BaseChatModel, *, questions: int | None = None, timezone: str | None = None
) -> Iterator[Outcome]:
    """Tell a memory the messages of a store, let the model answer from what it recalls, and yield what is right.

    Args:
        store: The store.
        model: Answers and judges.
        questions: At most so many, the same in every run.
        timezone: Zone of times that name none.
    """
    judge = Judge(model, cast("Language", store.get("language", "en")))
    answered = [each for each in store["questions"] if unanswerable(each) or each.get("answer")]
    with (
        tempfile.TemporaryDirectory() as home,
        MemoryKit.open(settings=Settings(home=Path(home)), model=None, embedder=None) as kit,
    ):
        kit.add_messages(store["messages"], scope=_SCOPE, timezone=timezone)
        kit.summarize(scope=_SCOPE, close=True)
        for question in sample(answered, questions):
            at = asked_at(store["messages"], timezone, question.get("time"))
            memories = kit.recall(question["text"], scope=_SCOPE, depth="messages", asked_at=at).context
            yield _outcome(judge, question, memories, f"{at:%Y-%m-%d %H:%M}")


def _outcome(judge: Judge, question: Question, memories: str, now: str) -> Outcome:
    meter = Meter()
    correct, usable = False, True
    try:
        correct = judge.correct(question, judge.answer(question, memories, now, meter), meter)
    except (InvalidAnswerError, RequestRefusedError) as error:
        print(f"{question['text']}: {error.what}")
        usable = False
    spent = sum(call.input_tokens + call.output_tokens for call in meter.usage().calls)
    return Outcome(question.get("category", "all"), correct, usable, estimate_tokens(memories), spent)


def _figures(name: str, rows: Sequence[Outcome]) -> Iterator[Figure]:
    yield _accuracy(name, rows)
    categories = sorted({row.category for row in rows})
    for category in categories if len(categories) > 1 else ():
        yield _accuracy(f"{name}, {category}", [row for row in rows if row.category == category])
    yield Figure(f"{name}: answers or verdicts of no use", sum(not row.usable for row in rows))
    yield Figure(f"{name}: tokens recalled for a question", float(np.mean([row.context for row in rows])))
    yield Figure(f"{name}: tokens of all calls for a question", float(np.mean([row.spent for row in rows])))


def _accuracy(name: str, rows: Sequence[Outcome]) -> Figure:
    right = np.array([row.correct for row in rows], dtype=np.float64)
    low, high = interval(right)
    return Figure(f"{name}: judged right", float(right.mean()), note=f"[{low:.3f}, {high:.3f}] of {len(rows)}")


def main(argv: Sequence[str] | None = None, model: BaseChatModel | None = None) -> None:
    """Print the figures of each file.

    Args:
        argv: The options.
        model: A chat model instead of the one that they name.
    """
    parser = argparse.ArgumentParser(prog="python -m evals qa", description="Answers from memory, judged by a model.")
    parser.add_argument("--data", type=Path, action="append", help="A file of stores with answers; repeatable.")
    parser.add_argument("--model", help="Answers and judges: provider:model.")
    parser.add_argument("--questions", type=int, help="At most so many of each store.")
    parser.add_argument("--stores", type=int, help="At most so many of each file.")
    parser.add_argument("--timezone", help="Zone of times that name none.")
    options = parser.parse_args(argv)
    if not options.data:
        explain_data("qa", "locomo10.json --model openai:gpt-5-mini")
        return
    chosen = model or as_chat_model(options.model, _TIMEOUT)
    if chosen is None:
        sys.exit(
            "qa: a model answers and judges. Give one, as --model openai:gpt-5-mini, and its key in the environment."
        )
    figures: list[Figure] = []
    for path in options.data:
        rows = [
            outcome
            for store in islice(stores(path, unanswered=True), options.stores)
            for outcome in outcomes(store, chosen, questions=options.questions, timezone=options.timezone)
        ]
        if rows:
            figures += _figures(path.stem, rows)
        else:
            print(f"{path}: no question has an answer.")
    finish(figures)


if __name__ == "__main__":
    main()
