"""Whether recall tells what holds now from what held before: 300 facts that change, inside 10,000 other messages.

    python -m evals updates [--messages 10000] [--seed 7]

Fifty people, half of them English, half Chinese, each tell six facts (a preference, a number, a date, a place, a
status, a todo item), talk of other things, and later say what became of each. Half of the wordings in `updates.toml`
were written by hand before their author had read the rules or their word lists; the other half are plain frames.
Afterwards one question asks what holds now, another what held before.

Of the ten best hits those *bear on* a pair that carry one of its two messages: a message is one, a memory that quotes
it carries it (the later one, where it quotes both). `current first`: the first hit that bears on the pair carries the
later message. `old found`: a hit that bears on it carries the earlier message.

Everything runs offline, through `add_messages`, `summarize(close=True)` and `recall(depth="messages")`.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np

from evals._figures import Figure, finish
from evals._metrics import interval
from remegraph import MemoryKit, Scope, Settings
from remegraph.models import Hit

__all__ = ["KINDS", "SCOPE", "Outcome", "Pair", "Talk", "main", "outcomes", "talk"]

KINDS = ("preference", "number", "date", "place", "status", "todo")
CURRENT_FIRST, OLD_FOUND = 0.90, 0.85
"""The bars."""

_DIALOGUES = 10
"""Of each person; facts are told in the first ones, and what became of them in the last ones."""

_START = datetime(2025, 1, 6, 9, 0, tzinfo=UTC)
_K = 10
SCOPE = Scope(user="everyone", agent="remy")
"""All of them talk to one memory."""


class _Wording(TypedDict):
    old: str
    new: str
    now: str
    past: str


class _ByHand(_Wording):
    fill: list[list[str]]


class _Frames(TypedDict):
    old: list[str]
    new: list[str]
    now: list[str]
    past: list[str]
    values: list[str]


class _Language(TypedDict):
    names: list[str]
    hand: dict[str, list[_ByHand]]
    made: dict[str, _Frames]
    talk: dict[str, list[str]]


@dataclass(frozen=True)
class Pair:
    """A fact and what became of it, with the questions about both."""

    pair_id: str
    language: str
    kind: str
    by_hand: bool
    name: str
    said: _Wording


@dataclass(frozen=True)
class Talk:
    """Everything said, in the order of time, and the pairs that are in it."""

    messages: Sequence[Mapping[str, str]]
    pairs: Sequence[Pair]


def talk(count: int, seed: int) -> Talk:
    """Return what people say, the same for the same seed.

    Args:
        count: Messages besides the facts.
        seed: Of the random choices.
    """
    rng = random.Random(seed)
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    languages = cast("dict[str, _Language]", tomllib.loads(text))
    pairs = [pair for language, data in languages.items() for pair in _pairs(language, data, rng)]
    of_person: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        of_person[pair.language, pair.name].append(pair)
    turns = max(1, count // (2 * _DIALOGUES * len(of_person)))
    dialogues = [
        dialogue
        for (language, name), known in of_person.items()
        for dialogue in _dialogues(name, known, languages[language]["talk"], turns, rng)
    ]
    dialogues.sort(key=lambda dialogue: dialogue[0]["time"])
    return Talk([message for dialogue in dialogues for message in dialogue], pairs)


def _pairs(language: str, data: _Language, rng: random.Random) -> Iterator[Pair]:
    """Yield six pairs of each person; every other person's are written by hand."""
    for number, name in enumerate(data["names"]):
        for kind in KINDS:
            by_hand = number % 2 == 0
            if by_hand:
                wordings = data["hand"][kind]
                wording = wordings[number // 2 % len(wordings)]
                said = _filled(wording, wording["fill"][number // 2 // len(wordings)], name)
            else:
                said = _made(data["made"][kind], name, rng)
            yield Pair(f"{language}-{kind}-{number:02d}", language, kind, by_hand, name, said)


def _made(frames: _Frames, name: str, rng: random.Random) -> _Wording:
    at = rng.randrange(len(frames["old"]))
    wording: _Wording = {
        "old": frames["old"][at], "new": frames["new"][at], "now": frames["now"][at], "past": frames["past"][at],
    }  # fmt: skip
    return _filled(wording, rng.sample(frames["values"], 2), name)


def _filled(wording: _Wording, values: Sequence[str], name: str) -> _Wording:
    slots = {"a": values[0], "b": values[1], "name": name}
    return {
        "old": wording["old"].format(**slots),
        "new": wording["new"].format(**slots),
        "now": wording["now"].format(**slots),
        "past": wording["past"].format(**slots),
    }


def _dialogues(
    name: str, pairs: Sequence[Pair], words: Mapping[str, list[str]], turns: int, rng: random.Random
) -> Iterator[list[dict[str, str]]]:
    """Yield a person's dialogues, a few days apart."""
    told: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for pair in pairs:
        told[rng.randrange(_DIALOGUES // 2 - 1)].append((f"{pair.pair_id}-old", pair.said["old"]))
        told[rng.randrange(_DIALOGUES // 2, _DIALOGUES)].append((f"{pair.pair_id}-new", pair.said["new"]))
    time = _START + timedelta(minutes=rng.randrange(5000))
    for number in range(_DIALOGUES):
        lines = [("", _chat(words, rng)) for _ in range(turns)]
        for fact in told[number]:
            lines.insert(rng.randrange(len(lines) + 1), fact)
        time += timedelta(days=rng.randint(4, 9))
        yield list(_spoken(name, f"{name} {number}", [(said, rng.choice(words["answers"])) for said in lines], time))


def _chat(words: Mapping[str, list[str]], rng: random.Random) -> str:
    slots = {slot: rng.choice(values) for slot, values in words.items()}
    return rng.choice(words["says"]).format(**slots)


def _spoken(
    name: str, thread: str, lines: Sequence[tuple[tuple[str, str], str]], time: datetime
) -> Iterator[dict[str, str]]:
    for at, ((message_id, words), answer) in enumerate(lines):
        said = {"role": "user", "name": name, "content": words, "id": message_id or f"{thread} {at} said"}
        reply = {"role": "assistant", "name": "", "content": answer, "id": f"{thread} {at} answered"}
        for seconds, turn in ((0, said), (40, reply)):
            moment = time + timedelta(minutes=2 * at, seconds=seconds)
            yield {**turn, "thread": thread, "time": moment.isoformat()}


@dataclass(frozen=True)
class Outcome:
    """What came back for both questions about a pair."""

    pair: Pair
    what: str
    """memories or messages."""
    current_first: bool
    old_found: bool


def outcomes(kit: MemoryKit, said: Talk) -> Iterator[Outcome]:
    """Ask both questions about every pair, and yield what came back.

    Args:
        kit: Knows what was said.
        said: What was said.
    """
    for pair in said.pairs:
        now = kit.recall(pair.said["now"], scope=SCOPE, depth="messages", k=_K)
        past = kit.recall(pair.said["past"], scope=SCOPE, depth="messages", k=_K)
        for what, hits, earlier in (
            ("memories", now.memories, past.memories),
            ("messages", now.messages, past.messages),
        ):
            found, before = _bearing(pair, hits), _bearing(pair, earlier)
            yield Outcome(pair, what, found[:1] == ["new"], "old" in before)


def _bearing(pair: Pair, hits: Sequence[Hit]) -> list[str]:
    """Return, for each hit that bears on a pair, which of its messages it carries."""
    found = []
    for hit in hits:
        ids = {hit.record_id} | {evidence.message_id for evidence in hit.evidence}
        found += [age for age in ("new", "old") if f"{pair.pair_id}-{age}" in ids][:1]
    return found


def _figures(rows: Sequence[Outcome]) -> Iterator[Figure]:
    for what in ("memories", "messages"):
        here = [row for row in rows if row.what == what]
        yield from _pair_of_figures(what, here, bars=True)
        for name, part in _parts(here).items():
            yield from _pair_of_figures(f"{what}, {name}", part)


def _parts(rows: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    parts: dict[str, list[Outcome]] = defaultdict(list)
    for row in rows:
        for name in (row.pair.language, "by hand" if row.pair.by_hand else "made", row.pair.kind):
            parts[name].append(row)
    return parts


def _pair_of_figures(name: str, rows: Sequence[Outcome], *, bars: bool = False) -> Iterator[Figure]:
    measured: tuple[tuple[str, list[bool], float], ...] = (
        ("current first", [row.current_first for row in rows], CURRENT_FIRST),
        ("old found", [row.old_found for row in rows], OLD_FOUND),
    )
    for what, held, bar in measured:
        values = np.array(held, dtype=np.float64)
        low, high = interval(values)
        note = f"[{low:.3f}, {high:.3f}] of {len(values)}"
        yield Figure(f"{name}: {what}", float(values.mean()), bar if bars else None, "at least", note=note)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m evals updates", description="What holds now, and what held.")
    parser.add_argument("--messages", type=int, default=10_000, help="Other messages.")
    parser.add_argument("--seed", type=int, default=7, help="Of the random choices.")
    parser.add_argument("--missed", action="store_true", help="Print the pairs that were missed.")
    options = parser.parse_args(argv)
    said = talk(options.messages, options.seed)
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home) / "memory")
        with MemoryKit.open(settings=settings, model=None, embedder=None) as kit:
            kit.add_messages(cast("Any", said.messages), scope=SCOPE)
            kit.summarize(scope=SCOPE, close=True)
            rows = list(outcomes(kit, said))
    if options.missed:
        for row in rows:
            missed = [name for name in ("current_first", "old_found") if not getattr(row, name)]
            if missed:
                print(row.what, row.pair.pair_id, *missed, row.pair.said, sep=" | ")
    finish(list(_figures(rows)))


if __name__ == "__main__":
    main()
