"""Whether a memory that contradicts another is noticed when it is written, without a model: 400 pairs, half of them Chinese.

    python -m evals conflicts [--seed 7] [--missed]

Each pair is saved as two statements of one person, who has told another thing before. It is *noticed* where the second
replaces the first, or both are kept in dispute. Half of the pairs, `conflicts_unseen.toml`, were written before the rules
were read, and are never tuned on; the other half, `conflicts.toml`, are frames that the rules were written with. There are
preferences, numbers, dates, places and states, as many that contradict each other as that merely sound alike. The two files
have one author, who wrote the rules, too: to strangers' sentences the first half is nearer, and not the same.

Everything runs offline, through `kit.save` and its check against the most similar memories.
"""

from __future__ import annotations

import argparse
import random
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from evals._figures import Figure, finish
from remegraph import MemoryKit, Scope
from remegraph.testing import InMemoryVectorIndex

Half = Literal["unseen", "seen"]

__all__ = ["FALSE_ALARMS", "KINDS", "NOTICED", "Pair", "main", "noticed", "pairs"]

KINDS = ("preference", "number", "date", "location", "status")
NOTICED, FALSE_ALARMS = 0.8, 0.1
"""The bars, on both halves together."""

_TOLD = {"en": "The choir sings in spring.", "zh": "合唱团春天演出。"}
_HALVES: dict[Half, str] = {"unseen": "before the rules", "seen": "with the rules"}
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Pair:
    """Two statements."""

    language: str
    kind: str
    half: Half
    contrary: bool
    """Whether they cannot both hold."""
    first: str
    second: str


def pairs() -> list[Pair]:
    """Return all pairs, those written by hand first."""
    return [*_by_hand(), *_from_frames()]


def _by_hand() -> Iterator[Pair]:
    for group in _read("conflicts_unseen.toml")["group"]:
        for label in ("conflicting", "compatible"):
            for first, second in group[label]:
                yield Pair(group["language"], group["kind"], "unseen", label == "conflicting", first, second)


def _from_frames() -> Iterator[Pair]:
    for frame in _read("conflicts.toml")["frame"]:
        for label in ("conflicting", "compatible"):
            for first, second in frame[label]:
                for fill in frame["fill"]:
                    said = first.format(**fill), second.format(**fill)
                    yield Pair(frame["language"], frame["kind"], "seen", label == "conflicting", *said)


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_HERE / name).read_text(encoding="utf-8"))


def noticed(kit: MemoryKit, pair: Pair, scope: Scope) -> bool:
    """Return whether the kit notices that the second statement contradicts the first.

    Args:
        kit: An open kit.
        pair: The statements.
        scope: A person who has told nothing yet.
    """
    for text in (_TOLD[pair.language], pair.first):
        kit.save("note", text, scope=scope)
    result = kit.save("note", pair.second, scope=scope)
    return bool(result.superseded or result.contradicts)


def main() -> None:
    """Save every pair, and print what was noticed."""
    parser = argparse.ArgumentParser(prog="python -m evals conflicts", description="Contradictions noticed on write.")
    parser.add_argument("--seed", type=int, default=7, help="Of the order in which the pairs are saved.")
    parser.add_argument("--missed", action="store_true", help="Print the pairs that were judged wrongly.")
    options = parser.parse_args()
    asked = pairs()
    random.Random(options.seed).shuffle(asked)
    found: Counter[tuple[str, Half, bool]] = Counter()
    of_kind: Counter[tuple[str, bool]] = Counter()
    with (
        TemporaryDirectory() as home,
        MemoryKit.open(home, ledger_url="sqlite://", model=None, embedder=None, index=InMemoryVectorIndex()) as kit,
    ):
        for number, pair in enumerate(asked):
            hit = noticed(kit, pair, Scope(user=f"ann{number}", agent="remy"))
            found[pair.language, pair.half, pair.contrary] += hit
            of_kind[pair.kind, pair.contrary] += hit
            if options.missed and hit != pair.contrary:
                print(f"{'missed' if pair.contrary else 'false alarm'}: {pair.kind}: {pair.first} | {pair.second}")
    finish(list(_figures(asked, found, of_kind)))


def _figures(
    asked: list[Pair], found: Counter[tuple[str, Half, bool]], of_kind: Counter[tuple[str, bool]]
) -> Iterator[Figure]:
    total = Counter((pair.language, pair.half, pair.contrary) for pair in asked)
    for language in _TOLD:
        for contrary, name in ((True, "noticed"), (False, "false alarms")):
            keys = [(language, half, contrary) for half in _HALVES]
            share = sum(found[key] for key in keys) / sum(total[key] for key in keys)
            note = f"of {sum(total[key] for key in keys)} pairs"
            if contrary:
                yield Figure(f"{language}: {name}", share, NOTICED, "at least", note=note)
            else:
                yield Figure(f"{language}: {name}", share, FALSE_ALARMS, note=note)
            for key in keys:
                half = _HALVES[key[1]]
                yield Figure(f"  written {half}", found[key] / total[key], note=f"of {total[key]} pairs")
    each = Counter((pair.kind, pair.contrary) for pair in asked)
    for kind in KINDS:
        false = of_kind[kind, False] / each[kind, False]
        yield Figure(f"{kind}: noticed", of_kind[kind, True] / each[kind, True], note=f"false alarms {false:.2f}")


if __name__ == "__main__":
    main()
