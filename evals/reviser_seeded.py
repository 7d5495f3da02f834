"""Generates cases for `evals.reviser` from building blocks, the same ones for the same seed."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

if TYPE_CHECKING:
    from evals._cases import Case, Turn

__all__ = ["generate"]

PER_LABEL = 50
_START = datetime(2024, 2, 20, 18, 30, tzinfo=UTC)


class _Fact(TypedDict):
    plain: bool
    says: list[str]
    memory: str
    again: str


class _Blocks(TypedDict):
    words: dict[str, list[str]]
    openers: list[str]
    asks: list[str]
    answers: list[str]
    closers: list[str]
    facts: list[_Fact]


def generate(seed: int) -> Iterator[Case]:
    """Yield 50 cases of each label in each language.

    Args:
        seed: Of the random choices.
    """
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    languages = cast("dict[str, _Blocks]", tomllib.loads(text))
    rng = random.Random(seed)
    for language, blocks in languages.items():
        for label in ("omission", "duplicate", "clean"):
            for number in range(PER_LABEL):
                yield _case(f"{language}-{label}-{number:02d}", language, label, blocks, rng)


def _case(case_id: str, language: str, label: str, blocks: _Blocks, rng: random.Random) -> Case:
    facts = rng.sample(blocks["facts"], rng.randint(2, 3))
    words = {kind: rng.sample(values, len(values)) for kind, values in blocks["words"].items()}
    name = words["name"][0]
    filled = [{kind: values[number] for kind, values in words.items()} | {"name": name} for number in range(len(facts))]
    said = [rng.choice(fact["says"]).format(**slots) for fact, slots in zip(facts, filled, strict=True)]
    memories = [fact["memory"].format(**slots) for fact, slots in zip(facts, filled, strict=True)]
    before = memories[1:2] if rng.random() < 0.3 else []
    missing = memories[0] if label == "omission" else ""
    after = [*before, *(memory for memory in memories if memory not in (missing, *before))]
    if label == "duplicate":
        after.append(facts[0]["again"].format(**filled[0]))
    return {
        "id": case_id,
        "language": language,
        "label": label,
        "plain": label == "omission" and facts[0]["plain"],
        "messages": _talk(name, said, blocks, rng),
        "before": before,
        "after": after,
        "missing": missing,
    }


def _talk(name: str, said: list[str], blocks: _Blocks, rng: random.Random) -> list[Turn]:
    said = rng.sample(said, len(said))
    lines = [rng.choice(blocks["openers"]), rng.choice(blocks["asks"]), *said, rng.choice(blocks["closers"])]
    time = _START + timedelta(days=rng.randint(0, 9))
    turns: list[Turn] = []
    for line in lines:
        for role, speaker, content in (("user", name, line), ("assistant", "assistant", rng.choice(blocks["answers"]))):
            time += timedelta(seconds=rng.randint(5, 90))
            turn = {"name": speaker, "role": role, "content": content, "time": time.isoformat()}
            turns.append(cast("Turn", turn))
    return turns
