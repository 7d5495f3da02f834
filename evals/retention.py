"""A year of memories that fade: whether what was asked for stays, what nobody asked for goes, and each says why.

    python -m evals retention [--messages 10000] [--days 365] [--seed 7 --seed 8] [--figure docs/figures/retention]

Ann talks to her agent every day; one in five things that she says tells something, which does not matter later. In the
first two months she also tells forty facts; half of them are asked for again and again, after pauses of two weeks on
average (exponentially distributed), the others never. Where the agent finds the fact, it answers with it. Every day two
questions are asked about what she said in the week before. One kit runs maintenance every week, another never; both hear
the same, by a clock that the eval moves. At the end each fact that was asked for is asked once more. Nothing is asked of
the kit that never forgets before that: its reviews would change nothing.

*Stale* is a memory that was said more than sixty days ago and answers none of the questions about facts. *Bounded*
compares the most live memories in the second half of the year with those in the first half. Each seed is a year of its
own; recall must reach its bar in the worst of them.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from evals._fading import draw
from evals._figures import Figure, Sense, finish
from remegraph import AgentMemorySettings, LifecyclePolicy, MemoryKit, Message, Scope, Settings, SlicingPolicy
from remegraph.models import Explanation, Hit
from remegraph.testing import FrozenClock, InMemoryVectorIndex

__all__ = ["Ran", "Year", "lived", "main", "year"]

KEPT, STALE, BOUNDED = 0.95, 0.5, 1.1
"""The bars: recall of what was asked for, and stale hits, as shares of the run that never forgets; growth."""

_SEEDS = (7, 8, 9)
_DAYS_ARE_BLOCKS = SlicingPolicy(max_messages=100, max_tokens=10_000)
_KEEPS_THE_ARCHIVE = AgentMemorySettings(lifecycle=LifecyclePolicy(purge_after=None))
"""So that all that was archived can be asked at the end."""

_START = datetime(2025, 1, 1, 9, tzinfo=UTC)
_DAY = timedelta(days=1)
_ANN = Scope(user="ann", agent="remy")
_K = 10
_OLD = 60 * _DAY
_PAUSE = 14
_THINGS = "lamp kettle scarf carpet printer jacket blender mirror bicycle tent drill pillow radio vase backpack".split()
_COLOURS = "green grey white yellow purple orange brown silver black pink".split()
_PLACES = "the market,the harbour,the station,a small shop,the mall,the fair,a garage sale,the old town".split(",")
_TALK = (
    "Thanks, that helps.", "Good morning!", "Can you say that again?", "What else could I try?", "Okay.",
    "How long does rice have to boil?", "Is it going to rain?", "Please make it shorter.", "Haha, good one.",
)  # fmt: skip
_TELLING = 0.2
"""Share of the chat that tells something."""
_WHO = (
    "Tom Mia Oskar Lena Paul Ida Hugo Nora Emil Clara Felix Greta Anton Julia Karl Marta Otto Paula Rita Sven".split()
)
_WHAT = (
    (
        "{who} is allergic to {value}.",
        "What is {who} allergic to?",
        "walnuts shellfish pollen penicillin celery".split(),
    ),
    ("{who}'s birthday is on {value}.", "When is {who}'s birthday?", "May 3,June 14,July 22,March 9".split(",")),
)


@dataclass(frozen=True, slots=True)
class Day:
    """What is said, and what is asked afterwards."""

    messages: Sequence[Message]
    questions: Sequence[str]


@dataclass(frozen=True, slots=True)
class Year:
    """All days, and the facts that were asked for: question and message."""

    days: Sequence[Day]
    facts: dict[str, str]
    """The message that answers, by question."""


@dataclass(slots=True)
class Ran:
    """What became of a year."""

    live: list[int] = field(default_factory=list)
    """Live memories, week by week."""
    found: list[bool] = field(default_factory=list)
    stale: list[int] = field(default_factory=list)
    """Stale hits in the top ten, question by question."""
    archived: int = 0
    explained: int = 0
    curve: Explanation | None = None
    """Of the memory that was reviewed most."""


def year(messages: int, days: int, seed: int) -> Year:
    """Return what is said and asked, the same for the same seed.

    Args:
        messages: In all, about.
        days: How many.
        seed: Of the random choices.
    """
    rng = random.Random(seed)
    facts = [(line, who) for line in _WHAT for who in _WHO]
    rng.shuffle(facts)
    told: dict[int, list[tuple[str, str]]] = {}
    asked: dict[int, list[str]] = {}
    gold: dict[str, str] = {}
    for number, ((statement, question, values), who) in enumerate(facts):
        at = rng.randrange(min(60, days))
        said = statement.format(who=who, value=rng.choice(values))
        told.setdefault(at, []).append((f"fact {number}", said))
        if number % 2 == 0:
            gold[question.format(who=who)] = f"fact {number}"
            time = at + rng.expovariate(1 / _PAUSE)
            while time < days:
                asked.setdefault(int(time), []).append(question.format(who=who))
                time += rng.expovariate(1 / _PAUSE)
    chat = [_chatter(rng, day, messages // days // 2) for day in range(days)]
    return Year([_day(rng, day, chat, told.get(day, []), asked.get(day, [])) for day in range(days)], gold)


def _chatter(rng: random.Random, day: int, count: int) -> list[tuple[str, str]]:
    frames = (
        "I bought a {colour} {thing} at {place} for {price} euros.",
        "I saw {who} with a {colour} {thing} at {place}.",
        "I lent {who} my {colour} {thing} for {price} days.",
        "I went to {place} with {who} to look at a {thing}.",
    )
    return [
        (
            f"chat {day} {number}",
            rng.choice(frames if rng.random() < _TELLING else _TALK).format(
                colour=rng.choice(_COLOURS),
                thing=rng.choice(_THINGS),
                place=rng.choice(_PLACES),
                who=rng.choice(_WHO),
                price=rng.randint(3, 99),
            ),
        )
        for number in range(count)
    ]


def _day(
    rng: random.Random,
    day: int,
    chat: Sequence[Sequence[tuple[str, str]]],
    facts: Sequence[tuple[str, str]],
    asked: Sequence[str],
) -> Day:
    lines = [*chat[day], *facts]
    rng.shuffle(lines)
    time, messages = _START + day * _DAY, []
    for at, (message_id, said) in enumerate(lines):
        now = time + timedelta(minutes=2 * at)
        messages.append(Message(message_id=message_id, role="user", name="Ann", content=said, time=now))
        messages.append(Message(message_id=f"{message_id} answered", role="assistant", content="I see.", time=now))
    recent = [said for earlier in chat[max(0, day - 6) : day + 1] for _, said in earlier if said not in _TALK]
    return Day(messages, [*asked, *(f"What was that: {said}" for said in rng.sample(recent, min(2, len(recent))))])


def lived(told: Year, *, forgets: bool) -> Ran:
    """Live through a year, and ask for the facts at its end.

    Args:
        told: What is said and asked.
        forgets: Whether maintenance runs every week.
    """
    ran, clock = Ran(), FrozenClock(_START)
    with (
        tempfile.TemporaryDirectory() as home,
        MemoryKit.open(
            settings=Settings(home=Path(home), slicing=_DAYS_ARE_BLOCKS, agent=_KEEPS_THE_ARCHIVE),
            model=None,
            embedder=None,
            index=InMemoryVectorIndex(),
            clock=clock,
        ) as kit,
    ):
        for number, day in enumerate(told.days):
            kit.add_messages(day.messages, scope=_ANN)
            clock.move(_DAY / 2)
            ends = number % 7 == 6 or day is told.days[-1]
            if forgets or ends:
                kit.summarize(scope=_ANN, close=True)
            if forgets:
                _ask(kit, told, day.questions)
            clock.move(_DAY / 2)
            if number % 7 == 6:
                if forgets:
                    kit.retention.maintain(scope=_ANN)
                ran.live.append(len(kit.memories(scope=_ANN, statuses=("active", "low_priority", "disputed"))))
        _examine(kit, told, clock(), ran)
    return ran


def _ask(kit: MemoryKit, told: Year, questions: Sequence[str]) -> None:
    """Ask; the agent answers with the fact where it finds it."""
    for question in questions:
        found = kit.recall(question, scope=_ANN, k=_K)
        fact = told.facts.get(question)
        for hit in found.memories:
            if fact in _sources(hit):
                kit.retention.answered(hit.text, context=found.context, question=question, scope=_ANN)


def _examine(kit: MemoryKit, told: Year, now: datetime, ran: Ran) -> None:
    facts = set(told.facts.values())
    for question, gold in told.facts.items():
        hits = kit.recall(question, scope=_ANN, k=_K).memories
        ran.found.append(any(gold in _sources(hit) for hit in hits))
        ran.stale.append(sum(now - hit.time > _OLD and facts.isdisjoint(_sources(hit)) for hit in hits))
    for memory in kit.memories(scope=_ANN, statuses=("archived",)):
        told_why = kit.explain(memory.memory_id, scope=_ANN)
        last = told_why.trace.events[-1]
        due = told_why.forget_at is not None and told_why.forget_at <= last.time
        ran.archived += 1
        ran.explained += last.action == "archive" and last.reason.startswith("under forget_threshold") and due
    for memory in kit.memories(scope=_ANN, statuses=("active",)):
        if facts & {item.message_id for item in memory.evidence}:
            explained = kit.explain(memory.memory_id, scope=_ANN)
            if ran.curve is None or len(explained.reviews) > len(ran.curve.reviews):
                ran.curve = explained


def _sources(hit: Hit) -> set[str]:
    return {item.message_id for item in hit.evidence}


def _figures(years: Sequence[tuple[Ran, Ran]]) -> Iterator[Figure]:
    """Yield the figures of some years, each as it was with maintenance and without."""
    fading, whole = zip(*years, strict=True)
    note = f"mean of {len(years)}, worst" if len(years) > 1 else ""

    def mean(
        name: str, values: Sequence[float], bar: float | None = None, sense: Sense = "at most"
    ) -> Iterator[Figure]:
        worst = min(values) if sense == "at least" else max(values)
        yield Figure(name, sum(values) / len(values), note=f"{note} {worst:.3g}" if note else "")
        if bar is not None:
            yield Figure(f"{name}, in the worst year", worst, bar, sense)

    yield from mean("live memories, second half over first", [_growth(ran) for ran in fading], BOUNDED)
    yield from mean("live memories, never forgetting: the same", [_growth(ran) for ran in whole])
    yield from mean("live memories at the end", [ran.live[-1] for ran in fading])
    yield from mean("live memories at the end, never forgetting", [ran.live[-1] for ran in whole])
    archived = sum(ran.archived for ran in fading)
    yield Figure("archived", archived)
    yield Figure("archived and explained", sum(ran.explained for ran in fading), archived, "exactly")
    yield from mean(f"recall of what was asked for (R@{_K})", [_share(ran.found) for ran in fading], sense="at least")
    yield from mean("recall, never forgetting", [_share(ran.found) for ran in whole], sense="at least")
    kept = [_share(one.found) / _share(other.found) for one, other in years]
    yield from mean("recall as a share of it", kept, KEPT, "at least")
    yield from mean("stale in the top ten", [_share(ran.stale) for ran in fading])
    yield from mean("stale in the top ten, never forgetting", [_share(ran.stale) for ran in whole])
    stale = [_share(one.stale) / _share(other.stale) if any(other.stale) else 0.0 for one, other in years]
    yield from mean("stale as a share of it", stale, STALE)


def _growth(ran: Ran) -> float:
    half = len(ran.live) // 2
    return max(ran.live[half:]) / max(ran.live[:half])


def _share(counts: Sequence[int]) -> float:
    return sum(counts) / len(counts)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m evals retention", description="A year of memories that fade.")
    parser.add_argument("--messages", type=int, default=10_000, help="In all, about.")
    parser.add_argument("--days", type=int, default=365, help="How long.")
    parser.add_argument("--seed", type=int, action="append", help=f"Of the random choices; unless given, {_SEEDS}.")
    parser.add_argument("--figure", type=Path, help="Draw curve and counts into FIGURE.svg.")
    options = parser.parse_args(argv)
    tales = [year(options.messages, options.days, seed) for seed in options.seed or _SEEDS]
    years = [(lived(told, forgets=True), lived(told, forgets=False)) for told in tales]
    fading, whole = years[0]
    if options.figure and fading.curve:
        draw(options.figure, fading.curve, fading.live, whole.live)
    finish(list(_figures(years)))


if __name__ == "__main__":
    main()
