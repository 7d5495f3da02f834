"""Long dialogues, judged: what an agent would be shown after months, with and without a model, beside BM25 and Chroma.

    python -m evals talks                                      figures from what is recorded; no model is called
    python -m evals talks --ask FOLDER [--wait]                hands new prompts of the strong model over by files
    python -m evals talks --judge FOLDER [--second 0.25]       hands rows over to blind judges, and takes their verdicts
    python -m evals talks --only t1 --only strong              a dialogue, a mode or a way alone, so that a change is quick

Each dialogue is told to a kit without a model; with one that somebody who has read neither dialogue nor parser stands in
for (strong); and with the same answers damaged by a fixed list of faults (weak). It is told by `kit.summarize` after each
session, or turn by turn by an agent with the default middleware. Then every fact is asked for: what `kit.recall` shows at
500 and 2,000 tokens, and (note) what the model of a new conversation sees by default, beside the lines that BM25 and Chroma
find, and all that was said.
Blind judges say what each context answers, and what the memories are worth (`dialogues/JUDGE.md`). Answers and verdicts
are recorded by the hash of what was shown; what has none is *not judged yet*, and never a figure.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from evals._dialogues import Dialogue, dialogues
from evals._figures import Figure, finish
from evals._handoff import Answers, Unanswered
from evals._pages import place
from evals._systems import BUDGETS, MODES, TRACED, WAYS, found_lines, ours, whole
from evals._verdicts import (
    WORTHS,
    Rate,
    Shown,
    Verdicts,
    agreement,
    answered,
    given_as_true,
    held,
    pooled,
    stated,
    take,
    write,
)
from remegraph.text.tokens import estimate_tokens

__all__ = ["Options", "Run", "figures", "main", "run"]

_DATA = Path(__file__).parent / "dialogues"
_BESIDE = ("BM25", "Chroma")
_WHOLE = "all that was said"
_OPEN = "not judged yet"


@dataclass(frozen=True)
class Options:
    """Where answers are, and what is wanted."""

    recorded: Path
    ask: Path | None = None
    wait: bool = False
    only: frozenset[str] = frozenset()

    def wants(self, name: str, of: Sequence[str]) -> bool:
        """Return whether one of some names is wanted; all are unless one of them is named."""
        return name in self.only or not self.only & set(of)


@dataclass
class Run:
    """What the systems have to show after one dialogue, how often the model was called, and what could not be shown."""

    shown: Shown
    calls: dict[str, int] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    traced: dict[str, Sequence[Sequence[bool]]] = field(default_factory=dict)
    """Of each memory found that tells the fact asked for, whether the context shows its quotes."""


def run(dialogue: Dialogue, options: Options) -> Run:
    """Tell one dialogue to all systems.

    Args:
        dialogue: What is said.
        options: Which systems, and where the answers of the model are.
    """
    contexts: dict[str, Sequence[str]] = {}
    memories: dict[str, Sequence[str]] = {}
    done = Run(Shown(dialogue, contexts, memories))
    for way in WAYS:
        answers = Answers(
            options.recorded / f"{dialogue.name}.{way}.answers.jsonl",
            options.ask and options.ask / dialogue.name / way,
            options.wait,
        )
        for mode in MODES:
            if not options.wants(mode, MODES) or not options.wants(way, WAYS):
                continue
            name = f"{mode}, {way}"
            try:
                learned = ours(dialogue, mode, way, answers)
            except Unanswered:
                done.waiting.append(name)
                continue
            if mode == "strong" and options.ask:
                answers.keep_used()
            memories[name], done.calls[name], done.traced[name] = learned.memories, learned.calls, learned.traced
            contexts.update({f"{name}, {budget}": shown for budget, shown in learned.contexts.items()})
    for beside in _BESIDE:
        contexts.update({f"{beside}, {budget}": found_lines(dialogue, beside, budget) for budget in BUDGETS})
    contexts[_WHOLE] = whole(dialogue)
    return done


def _runs(found: Sequence[Dialogue], options: Options, jobs: int) -> list[Run]:
    if jobs == 1:
        return [run(each, options) for each in found]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return list(pool.map(partial(run, options=options), found))


# ---------------------------------------------------------------------------------------------- figures

_Measure = Callable[[Shown, str, Verdicts], Rate]


def _table(
    title: str, measure: _Measure, names: Sequence[str], judged: Sequence[tuple[Run, Verdicts]]
) -> Iterator[str]:
    """Yield a table: a row for each system, a column for each dialogue, and what they give together."""
    yield f"| {title} | {' | '.join(each.shown.dialogue.name for each, _ in judged)} | all |"
    yield "|" + "---|" * (len(judged) + 2)
    for name in names:
        rates = [
            measure(each.shown, name, verdicts) if name in {*each.shown.contexts, *each.shown.memories} else Rate([], 1)
            for each, verdicts in judged
        ]
        yield f"| {' | '.join([name, *map(_cell, rates), _total(pooled(rates))])} |"


def _cell(rate: Rate) -> str:
    share = rate.share
    if share is None:
        return "–" if rate.unjudged else "none"
    return f"{share:.2f}".removeprefix("0") if share < 1 else "1.00"


def _total(rate: Rate) -> str:
    if rate.share is None:
        return _OPEN
    low, high = rate.interval()
    return f"**{_cell(rate)}** ({low:.2f} to {high:.2f})"


def _worth_table(judged: Sequence[tuple[Run, Verdicts]], names: Sequence[str]) -> Iterator[str]:
    """Yield a table of what live memories are worth, over all dialogues that are judged."""
    yield f"| live memories | of | number | {' | '.join(WORTHS)} |"
    yield "|" + "---|" * (3 + len(WORTHS))
    for name in names:
        for each, verdicts in judged:
            if memories := each.shown.memories.get(name):
                worth = verdicts.worth(each.shown.dialogue, memories)
                shares = [_OPEN, *[""] * (len(WORTHS) - 1)] if worth[""] else [str(worth[kind]) for kind in WORTHS]
                yield f"| {' | '.join([name, each.shown.dialogue.name, str(len(memories)), *shares])} |"


def _traced_table(judged: Sequence[tuple[Run, Verdicts]]) -> Iterator[str]:
    """Yield a table: of the memories found that tell the fact asked for, how many stand in the context with their words."""
    columns = " | ".join(each.shown.dialogue.name for each, _ in judged)
    yield f"| memories found, shown with their words | {columns} | all | with all of them |"
    yield "|" + "---|" * (len(judged) + 3)
    for name in _ordered(name for each, _ in judged for name, told in each.traced.items() if told):
        some, whole = ([_traced(each, name, how) for each, _ in judged] for how in (any, all))
        yield f"| {' | '.join([name, *map(_cell, some), _total(pooled(some)), _cell(pooled(whole))])} |"


def _traced(run: Run, name: str, how: Callable[[Iterable[bool]], bool]) -> Rate:
    """Return the share of a system's memories of which the context shows any, or all, of the words they stand on."""
    return Rate([[how(quotes) for quotes in run.traced.get(name, ())]])


def _tables(judged: Sequence[tuple[Run, Verdicts]]) -> dict[str, str]:
    contexts = _ordered(name for each, _ in judged for name in each.shown.contexts)
    lists = _ordered(name for each, _ in judged for name in each.shown.memories)
    return {
        "talks answered": "\n".join(_table("current facts answered", answered, contexts, judged)),
        "talks false": "\n".join(_table("gone, never and forgotten given as true", given_as_true, contexts, judged)),
        "talks held": "\n".join(_table("current facts held by a memory", held, lists, judged)),
        "talks stated": "\n".join(_table("gone, never and forgotten stated by one", stated, lists, judged)),
        "talks worth": "\n".join(_worth_table(judged, lists)),
        "talks traced": "\n".join(_traced_table(judged)),
    }


def _ordered(names: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(names))


def figures(judged: Sequence[tuple[Run, Verdicts]]) -> Iterator[Figure]:
    """Yield figures of the machinery: what must hold whatever the judges say."""
    for each, _ in judged:
        name = each.shown.dialogue.name
        budgets = [(system.rpartition(", ")[2], contexts) for system, contexts in each.shown.contexts.items()]
        sizes = [(int(most), map(estimate_tokens, contexts)) for most, contexts in budgets if most.isdecimal()]
        over = sum(size > most for most, contexts in sizes for size in contexts)
        yield Figure(f"{name}: contexts over their budget", over, 0, "exactly")
        for system, calls in each.calls.items():
            if calls:
                said = len(each.shown.dialogue.messages)
                yield Figure(f"{name}: {system}: calls of the model", calls, note=f"for {said} messages")
    for name in _ordered(name for each, _ in judged for name, told in each.traced.items() if told):
        shown = pooled(_traced(each, name, any) for each, _ in judged)
        if shown.share is not None:  # there is one
            told = f"of {sum(map(len, shown.values))} memories found that tell the fact, at {TRACED} tokens"
            bar = None if name.startswith("weak") else 0.95
            yield Figure(f"{name}: memories shown with their words", shown.share, bar, "at least", note=told)
    same, both = agreement((each.shown, verdicts) for each, verdicts in judged)
    if both:
        yield Figure("two judges agree", same / both, note=f"of {both} rows that both have judged")


def _open(judged: Sequence[tuple[Run, Verdicts]]) -> Iterator[str]:
    for each, verdicts in judged:
        shown = each.shown
        rows = [verdicts.context(*row) for name in shown.contexts for row in shown.rows(name)]
        rows += [verdicts.holding(fact, listed) for listed in shown.memories.values() for fact in shown.dialogue.facts]
        if unjudged := rows.count(None):
            yield f"{shown.dialogue.name}: {unjudged} of {len(rows)} rows are {_OPEN}."
        for name in each.waiting:
            yield f"{shown.dialogue.name}: {name}: a prompt has no recorded answer; {_OPEN}."


# ---------------------------------------------------------------------------------------------- the command


def main(argv: Sequence[str] | None = None) -> None:
    """Print what is known, or hand over what waits.

    Args:
        argv: The options.
    """
    parser = argparse.ArgumentParser(prog="python -m evals talks", description="Long dialogues, judged.")
    parser.add_argument("--data", type=Path, default=_DATA, help="Folder of dialogues.")
    parser.add_argument("--recorded", type=Path, help="Folder of answers and verdicts: DATA/recorded unless given.")
    parser.add_argument("--only", action="append", default=[], help="A dialogue, a mode or a way; repeatable.")
    parser.add_argument("--ask", type=Path, help="Folder where new prompts of the strong model wait.")
    parser.add_argument("--wait", action="store_true", help="Wait for their answers.")
    parser.add_argument("--judge", type=Path, help="Folder where rows wait for a judge.")
    parser.add_argument("--second", type=float, default=0.0, help="Ask a second judge about such a share instead.")
    parser.add_argument("--jobs", type=int, default=2, help="Dialogues at a time.")
    parser.add_argument("--page", type=Path, help="A page whose tables are written anew.")
    given = parser.parse_args(argv)
    recorded = given.recorded or given.data / "recorded"
    only = frozenset(given.only) | ({"strong"} if "weak" in given.only else frozenset())  # whose answers are damaged
    options = Options(recorded, given.ask, given.wait, only)
    names = [path.stem for path in sorted(given.data.glob("*.json"))]
    found = [each for each in dialogues(given.data) if options.wants(each.name, names)]
    if not found:
        sys.exit(f"talks: there is no dialogue in {given.data}. Give a folder of them: --data FOLDER.")
    verdicts = {each.name: Verdicts(recorded / f"{each.name}.verdicts.jsonl") for each in found}
    if given.judge:
        for line in take(given.judge, {each.name: (each, verdicts[each.name]) for each in found}):
            print(f"Not taken: {line}")
    judged = [(each, verdicts[each.shown.dialogue.name]) for each in _runs(found, options, given.jobs)]
    if given.judge:
        judge, share = (2, given.second) if given.second else (1, 1.0)
        written = [path for each, known in judged for path in write(given.judge, each.shown, known, judge, share)]
        print(f"{len(written)} batches wait in {given.judge}." if written else "Nothing waits for a judge.")
    tables = _tables(judged)
    place(given.page, tables)
    print("\n\n".join(tables.values()))
    print("\n".join(("", *_open(judged), "")))
    finish(list(figures(judged)))


if __name__ == "__main__":
    main()
