"""Which of the memories that were put before a model its answer drew on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from remegraph.rules.salience import telling_words

__all__ = ["drawn_on"]

_DRAWN = 0.5
"""Mean of two shares: of what only the memory could tell, the answer says; of what the answer tells, the memory does."""


def drawn_on(answer: str, question: str, memories: Mapping[str, str]) -> list[str]:
    """Return the ids of the memories that an answer drew on, by words alone; what the question held tells nothing.

    A word counts the less, the more of the memories hold it, and for those alone that tell most of the answer, then of
    the question: "celery" tells of Tom where Tom was asked for. Of the two shares, the first alone would find every
    short memory in a long answer, the second every long memory in a short one. An answer that repeats a memory is
    found nearly always; one that puts it in other words often is not: `python -m evals used` measures both errors.

    Args:
        answer: What the agent said.
        question: What it was asked.
        memories: What was put before it, by id.
    """
    asked = telling_words(question)
    news = telling_words(answer) - asked
    told = {memory_id: telling_words(text) for memory_id, text in memories.items()}
    own = {memory_id: words - asked for memory_id, words in told.items()}
    held_by = Counter(word for words in own.values() for word in words)
    fit = {memory_id: (len(words & news), len(words & asked)) for memory_id, words in told.items()}
    best = {word: max(fit[memory_id] for memory_id in own if word in own[memory_id]) for word in news & held_by.keys()}

    def worth(words: Iterable[str]) -> float:
        return sum(1 / max(held_by[word], 1) for word in words)

    def share(memory_id: str) -> float:
        common = worth(word for word in own[memory_id] & news if best[word] == fit[memory_id])
        return (common / worth(own[memory_id]) + common / worth(news)) / 2 if common else 0.0

    return [memory_id for memory_id in own if share(memory_id) >= _DRAWN]
