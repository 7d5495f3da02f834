"""What blind judges said: batches of rows for them, their verdicts by the hash of what they were shown, and figures.

A verdict holds for exactly what was shown. What was never judged has no figure: it is counted as *not judged yet*.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evals._dialogues import Dialogue, Fact
from evals._handoff import digest, jsonl

__all__ = [
    "WORTHS",
    "Rate",
    "Shown",
    "Verdicts",
    "agreement",
    "answered",
    "given_as_true",
    "held",
    "pooled",
    "stated",
    "take",
    "write",
]

ANSWERS = ("answer", "stale", "both", "none")
HOLDINGS = ("held", "missing", "stated", "clean")
WORTHS = ("useful", "history", "junk", "double", "wrong")

_ROWS = 8
"""Rows of a batch, as the judge works."""

_RECORD_ID = re.compile(r"^\[(?!\d{4}-\d\d)[^],]*(?:, )?", re.MULTILINE)


@dataclass(frozen=True)
class Shown:
    """What the systems have to show after one dialogue."""

    dialogue: Dialogue
    contexts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By system, for each fact."""
    memories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What the live memories of a system say."""

    def rows(self, name: str) -> Iterator[tuple[Fact, str]]:
        """Yield each fact with what a judge is shown of a system: ids of records tell nothing."""
        for fact, context in zip(self.dialogue.facts, self.contexts[name], strict=True):
            yield fact, _RECORD_ID.sub("[", context)


class Verdicts:
    """Verdicts on one dialogue, of a first judge and of others.

    Args:
        path: Where they are recorded.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[tuple[str, int], str] = {(each["k"], each["j"]): each["v"] for each in jsonl(path)}

    def of(self, key: str, judge: int = 1) -> str | None:
        """Return a verdict, if there is one."""
        return self._known.get((key, judge))

    def add(self, verdicts: Mapping[str, str], judge: int) -> None:
        """Record verdicts."""
        self._known |= {(key, judge): verdict for key, verdict in verdicts.items()}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        lines = (json.dumps({"k": key, "j": by, "v": verdict}) for (key, by), verdict in sorted(self._known.items()))
        self._path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def context(self, fact: Fact, context: str, judge: int = 1) -> str | None:
        """Return what was said of a context; an empty one answers nothing, and says nothing false."""
        if not context.strip():
            return "none"
        return self.of(context_key(fact, context), judge)

    def holding(self, fact: Fact, memories: Sequence[str], judge: int = 1) -> str | None:
        """Return what was said of a list of memories; an empty one holds nothing, and states nothing."""
        if not memories:
            return "missing" if _lasting(fact) else "clean"
        return self.of(list_key(fact, memories), judge)

    def worth(self, dialogue: Dialogue, memories: Sequence[str]) -> Counter[str]:
        """Return how many memories are worth what; under the empty name those that were not judged."""
        keys = [memory_key(dialogue, each) for each in memories]
        found: Counter[str] = Counter()
        for at, key in enumerate(keys):
            again = key in keys[:at] or _doubles(self, key, keys)
            found["double" if again else self.of(key) or ""] += 1
        return found


def _lasting(fact: Fact) -> bool:
    return fact.state in {"current", "uncertain"}


def context_key(fact: Fact, context: str) -> str:
    """Return the hash of a row with one context."""
    return digest("context", fact.shown, context)


def list_key(fact: Fact, memories: Sequence[str]) -> str:
    """Return the hash of a row with one list of memories."""
    return digest("list", fact.shown, list(memories))


def memory_key(dialogue: Dialogue, memory: str) -> str:
    """Return the hash of a memory beside the dialogue."""
    return digest("memory", list(dialogue.lines.values()), memory)


def double_key(key: str, other: str) -> str:
    """Return the hash under which one memory says what another one says: that holds as long as both are there."""
    return digest("double", key, other)


# ---------------------------------------------------------------------------------------------- batches


@dataclass(frozen=True)
class _Sample:
    """What a judge is to see: all that this judge has not judged, or a share of it, the same in every run."""

    verdicts: Verdicts
    judge: int
    share: float

    def wants(self, key: str) -> bool:
        chosen = int(key[:8], 16) / 16**8 < self.share
        return chosen and self.verdicts.of(key, self.judge) is None


def write(folder: Path, shown: Shown, verdicts: Verdicts, judge: int = 1, share: float = 1.0) -> list[Path]:
    """Write batches of what a judge has not judged yet; return their files.

    Args:
        folder: Where to; a file `NAME.json` is answered by `NAME.answer.json`.
        shown: What is to be judged.
        verdicts: What is judged already.
        judge: Which judge.
        share: How much of it, chosen by hash.
    """
    wanted = _Sample(verdicts, judge, share)
    batches = [
        *_context_batches(shown, wanted),
        *_list_batches(shown, wanted),
        *(_memory_batches(shown, wanted) if judge == 1 else ()),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind, batch in batches:
        text = json.dumps({"judge": judge, "dialogue": shown.dialogue.name, **batch}, ensure_ascii=False, indent=1)
        path = folder / f"{shown.dialogue.name}-{kind}-{digest(text)[:6]}.json"
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def _context_batches(shown: Shown, wanted: _Sample) -> Iterator[tuple[str, dict[str, Any]]]:
    rows: dict[int, tuple[Fact, dict[str, None]]] = {}
    always = _same_everywhere(shown)
    for name in shown.contexts:
        for fact, context in shown.rows(name):
            if context.strip() and context not in always and wanted.wants(context_key(fact, context)):
                rows.setdefault(fact.n, (fact, {}))[1][context] = None
    made = [{"n": fact.n, **fact.shown, "contexts": _lettered(contexts, fact.n)} for fact, contexts in rows.values()]
    for start in range(0, len(made), _ROWS):
        yield "contexts", {"rows": made[start : start + _ROWS]}
    for context in always:
        plain = [fact for fact in shown.dialogue.facts if wanted.wants(context_key(fact, context))]
        if context.strip() and plain:
            yield "same", {"contexts": {"A": context}, "rows": [{"n": fact.n, **fact.shown} for fact in plain]}


def _same_everywhere(shown: Shown) -> list[str]:
    """Return contexts that are the same for all questions: a judge is shown them once."""
    plain = ({context for _, context in shown.rows(name)} for name in shown.contexts)
    return sorted({context for contexts in plain if len(contexts) == 1 for context in contexts})


def _list_batches(shown: Shown, wanted: _Sample) -> Iterator[tuple[str, dict[str, Any]]]:
    lists = {
        "\n".join(memories): list(memories)
        for memories in shown.memories.values()
        if memories and any(wanted.wants(list_key(fact, memories)) for fact in shown.dialogue.facts)
    }
    for at, memories in enumerate(_lettered(lists, len(lists)).values()):
        rows = [fact for fact in shown.dialogue.facts if wanted.wants(list_key(fact, lists[memories]))]
        batch = {"memory_lists": {"A": lists[memories]}, "rows": [{"n": fact.n, **fact.shown} for fact in rows]}
        yield f"list{at}", batch


def _memory_batches(shown: Shown, wanted: _Sample) -> Iterator[tuple[str, dict[str, Any]]]:
    asked: set[str] = set()
    for memories in shown.memories.values():
        listed = list(dict.fromkeys(memories))
        keys = [memory_key(shown.dialogue, each) for each in listed]
        known = asked | {key for key in keys if wanted.verdicts.of(key) or _doubles(wanted.verdicts, key, keys)}
        new = [at for at, key in enumerate(keys) if key not in known]
        asked |= {keys[at] for at in new}  # a double of a line that another list lacks is still open here
        if new:
            lines = list(shown.dialogue.lines.values())
            yield "worth", {"dialogue_lines": lines, "memories": listed, "wanted": new}


def _doubles(verdicts: Verdicts, key: str, others: Sequence[str]) -> bool:
    return any(verdicts.of(double_key(key, other)) for other in others)


def _lettered(texts: Iterable[str], seed: int) -> dict[str, str]:
    """Return texts by letters that tell nothing of where they came from."""
    shuffled = sorted(texts)
    random.Random(seed).shuffle(shuffled)
    return {chr(ord("A") + at): text for at, text in enumerate(shuffled)}


def take(folder: Path, recorded: Mapping[str, tuple[Dialogue, Verdicts]]) -> list[str]:
    """Record the verdicts of all batches that are answered; return what is wrong with others, of which none is taken.

    Args:
        folder: Where batches and answers are.
        recorded: Dialogues and their verdicts, by name.
    """
    wrong = []
    for path in sorted(folder.glob("*.answer.json")):
        batch = json.loads(path.with_name(path.name.replace(".answer", "")).read_text(encoding="utf-8"))
        dialogue, verdicts = recorded.get(batch["dialogue"], (None, None))
        if dialogue is None or verdicts is None:
            continue
        try:
            answer = json.loads(path.read_text(encoding="utf-8"))
            read = _worths(dialogue, batch, answer) if "memories" in batch else dict(_judged(dialogue, batch, answer))
        except (KeyError, TypeError, ValueError) as error:
            wrong.append(f"{path.name}: {type(error).__name__}: {error}")
            continue
        verdicts.add(read, batch["judge"])
    return wrong


def _judged(dialogue: Dialogue, batch: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    said = {row["n"]: row for row in answer["rows"]}
    for row in batch["rows"]:
        fact = dialogue.facts[row["n"]]
        if fact.shown != {name: row[name] for name in fact.shown}:
            raise ValueError(f"row {fact.n} is another fact today")
        for letter, context in (row.get("contexts") or batch.get("contexts") or {}).items():
            yield context_key(fact, context), _one_of(ANSWERS, said[fact.n]["contexts"][letter])
        for letter, memories in (batch.get("memory_lists") or {}).items():
            allowed = HOLDINGS[:2] if _lasting(fact) else HOLDINGS[2:]
            yield list_key(fact, memories), _one_of(allowed, said[fact.n]["lists"][letter])


def _worths(dialogue: Dialogue, batch: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, str]:
    keys = [memory_key(dialogue, each) for each in batch["memories"]]
    said = {each["n"]: each for each in answer["memories"]}
    found = {}
    for at in batch["wanted"]:
        verdict = _one_of(WORTHS, said[at]["verdict"])
        key = double_key(keys[at], keys[said[at]["of"]]) if verdict == "double" else keys[at]
        found[key] = verdict
    return found


def _one_of(known: Sequence[str], verdict: str) -> str:
    if verdict not in known:
        raise ValueError(f"{verdict!r} is none of {', '.join(known)}")
    return verdict


# ---------------------------------------------------------------------------------------------- figures


@dataclass(frozen=True)
class Rate:
    """A share of facts, of several dialogues; or how many of them were not judged yet, and then no share."""

    values: Sequence[Sequence[bool]]
    unjudged: int = 0

    @property
    def share(self) -> float | None:
        """The share."""
        flat = [value for part in self.values for value in part]
        return None if self.unjudged or not flat else sum(flat) / len(flat)

    def interval(self, draws: int = 2000, seed: int = 7) -> tuple[float, float]:
        """Return the 95 % interval by bootstrap: dialogues are drawn with replacement, then facts of each."""
        rng = np.random.default_rng(seed)
        parts = [np.array(part, dtype=np.float64) for part in self.values if len(part)]
        means = []
        for _ in range(draws):
            chosen = [parts[at] for at in rng.integers(0, len(parts), len(parts))]
            means.append(np.concatenate([part[rng.integers(0, len(part), len(part))] for part in chosen]).mean())
        low, high = np.percentile(means, [2.5, 97.5])
        return float(low), float(high)


def pooled(rates: Iterable[Rate]) -> Rate:
    """Return what several dialogues give together."""
    listed = list(rates)
    return Rate([part for rate in listed for part in rate.values], sum(rate.unjudged for rate in listed))


def rate(verdicts: Iterable[str | None], true: Sequence[str]) -> Rate:
    """Return the share of verdicts that are one of some."""
    listed = list(verdicts)
    return Rate([[verdict in true for verdict in listed]], sum(verdict is None for verdict in listed))


def answered(shown: Shown, name: str, verdicts: Verdicts, states: Sequence[str] = ("current",)) -> Rate:
    """Return how many of the facts that hold are answered from a system's contexts."""
    return rate((verdicts.context(*row) for row in shown.rows(name) if row[0].state in states), ["answer"])


def given_as_true(shown: Shown, name: str, verdicts: Verdicts) -> Rate:
    """Return how many of the facts that are over, were never so or were to be forgotten are given as true."""
    rows = (row for row in shown.rows(name) if not _lasting(row[0]))
    return rate((verdicts.context(*row) for row in rows), ["stale", "both"])


def held(shown: Shown, name: str, verdicts: Verdicts) -> Rate:
    """Return how many of the facts that hold some memory states."""
    memories, facts = shown.memories[name], shown.dialogue.facts
    return rate((verdicts.holding(fact, memories) for fact in facts if fact.state == "current"), ["held"])


def stated(shown: Shown, name: str, verdicts: Verdicts) -> Rate:
    """Return how many of the facts that do not hold some memory states all the same."""
    memories, facts = shown.memories[name], shown.dialogue.facts
    return rate((verdicts.holding(fact, memories) for fact in facts if not _lasting(fact)), ["stated"])


def agreement(shown: Iterable[tuple[Shown, Verdicts]]) -> tuple[int, int]:
    """Return how often two judges say the same of the contexts and lists that both have judged, and how many these are."""
    same = both = 0
    for each, verdicts in shown:
        keys = {context_key(*row) for name in each.contexts for row in each.rows(name)}
        keys |= {list_key(fact, memories) for memories in each.memories.values() for fact in each.dialogue.facts}
        pairs = [(verdicts.of(key), verdicts.of(key, 2)) for key in keys]
        both += sum(None not in pair for pair in pairs)
        same += sum(one == other is not None for one, other in pairs)
    return same, both
