"""How many omissions the reviser's rules find, and how often they object to what is right.

    python -m evals.reviser

Cases are JSON lines in `reviser_cases`, written by hand by people who did not know the rules. Of `en.jsonl` and
`zh.jsonl` the rules were developed on the first 25 of each label only ("seen"), the rest is "unseen"; `en2.jsonl` and
`zh2.jsonl` are all seen. All rates come with 95 % Wilson intervals. The bar
holds for all cases together; the unseen ones alone tell how the rules do on cases that nobody fitted them to.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from evals._cases import Case
from remegraph.engine.change_set import review
from remegraph.models import Memory, Message, Partition, Topic
from remegraph.text.terms import wording

__all__ = ["judge", "main", "messages_of", "wilson"]

CASES = Path(__file__).parent / "reviser_cases"
LEAST_FOUND = 0.9
MOST_FALSE_ALARMS = 0.1
BAR = ("omission found", "false alarm")
EVERY_SOURCE = "every"
PARTLY_UNSEEN = ("en", "zh")
SEEN = 25
"""So many cases of each label of these files were open to the authors of the rules; of the others, all."""


def messages_of(case: Case) -> list[Message]:
    """Return the block of a case."""
    return [
        Message(
            message_id=f"m{number}",
            role=turn["role"],
            name=turn["name"],
            content=turn["content"],
            time=datetime.fromisoformat(turn["time"]),
        )
        for number, turn in enumerate(case["messages"])
    ]


def judge(case: Case, lenience: float = 0.0) -> set[str]:
    """Return the kinds of objections that the rules raise.

    An omission counts where the statement shares a word with what is missing, names aside; else it is "stray".
    """
    messages = messages_of(case)
    speaker = next(message.speaker for message in messages if message.role == "user")
    topic = Topic(type="personal", target_name=speaker)
    memories = {
        text: Memory(
            memory_id=f"{number}",
            partition=Partition(tenant="evals"),
            topic=topic,
            content=text,
            said_at=messages[-1].time,
            recorded_at=messages[-1].time,
        )
        for number, text in enumerate(dict.fromkeys([*case["before"], *case["after"]]))
    }
    before, after = ([memories[text] for text in texts] for texts in (case["before"], case["after"]))
    objections = review(messages, before, after, lenience=lenience)
    missing = wording(case["missing"]).words - {
        word for turn in case["messages"] for word in wording(turn["name"]).words
    }
    return {
        "stray"
        if objection.kind == "omission" and missing and not missing & wording(objection.statement).words
        else objection.kind
        for objection in objections
    }


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a rate (E. B. Wilson, J. Am. Stat. Assoc. 22, 1927)."""
    if not total:
        return 0.0, 1.0
    z = 1.96
    rate = hits / total
    centre = rate + z * z / (2 * total)
    margin = z * math.sqrt(rate * (1 - rate) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return (centre - margin) / scale, (centre + margin) / scale


def _written() -> Iterator[tuple[str, Case]]:
    for path in sorted(CASES.glob("*.jsonl")):
        seen = SEEN if path.stem in PARTLY_UNSEEN else sys.maxsize
        met: dict[str, int] = defaultdict(int)
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                case: Case = json.loads(line)
                met[case["label"]] += 1
                yield ("seen" if met[case["label"]] <= seen else "unseen"), case


def _rates(case: Case, kinds: set[str]) -> Iterable[tuple[str, bool]]:
    if case["label"] == "omission":
        yield "omission found", "omission" in kinds
        yield "omission found, or another flagged", bool(kinds & {"omission", "stray"})
        yield f"omission found, {'plain' if case['plain'] else 'with name, number or date'}", "omission" in kinds
    elif case["label"] != "duplicate":
        yield "false alarm", bool(kinds)


def main(argv: Sequence[str] | None = None) -> int:
    """Print all rates; return 0 where they reach the bar."""
    parser = argparse.ArgumentParser(prog="python -m evals.reviser", description="Rates of the reviser's rules.")
    parser.add_argument(
        "--lenience", type=float, default=0.0, help="How readily omissions are reported; .75 with a model."
    )
    options = parser.parse_args(argv)
    table: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for source, case in _written():
        kinds = judge(case, options.lenience)
        for rate, hit in _rates(case, kinds):
            for group in (source, EVERY_SOURCE):
                table[rate, group, case["language"]].append(hit)
                table[rate, group, "all"].append(hit)
    met = {EVERY_SOURCE: True, "unseen": True}
    for rate, source, language in sorted(table):
        hits = table[rate, source, language]
        if language == "all" and source in met and rate in BAR:
            share = sum(hits) / len(hits)
            met[source] &= share <= MOST_FALSE_ALARMS if rate == "false alarm" else share >= LEAST_FOUND
        low, high = wilson(sum(hits), len(hits))
        print(
            f"{rate:42s} {source:10s} {language:4s} {sum(hits):3d}/{len(hits):<3d} {sum(hits) / len(hits):.2f} [{low:.2f}, {high:.2f}]"
        )
    for source, reached in met.items():
        print(
            f"Bar, {source} cases: {LEAST_FOUND:.0%} found, {MOST_FALSE_ALARMS:.0%} false alarms: "
            f"{'met' if reached else 'not met'}."
        )
    return 0 if met[EVERY_SOURCE] else 1


if __name__ == "__main__":
    sys.exit(main())
