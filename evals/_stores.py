"""The data of the evals: stores of messages with questions, from our own form and from three public ones.

- JSONL: one store per line, as `python -m evals recall` explains; or one tool call per line, see `_tool_calls.py`.
- LoCoMo's own file (`locomo10.json`, https://github.com/snap-research/locomo): a store per conversation; the evidence of
  a question is what answers it.
- LongMemEval's own files (`longmemeval_s.json`, https://github.com/xiaowu0162/LongMemEval): a store per question; the
  sessions that answer it are its gold. Its questions that nothing answers are left out, as its authors do.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evals._measuring import ADVERSARIAL
from evals._records import Message, Question, Store
from evals._tool_calls import tool_call_stores

__all__ = ["QUESTIONS", "ZONES", "answerable", "drawn", "files", "stores"]

ZONES = {"memdaily": "Asia/Shanghai"}
"""Of kinds whose times name none."""

QUESTIONS = 300
"""Of a kind that has more, so many are drawn."""


_PAUSE = timedelta(seconds=20)
"""Between two messages of a session, of which only the beginning is known."""

_EVIDENCE = re.compile(r"D\d+:\d+")
_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_ADVERSARIAL = 5
"""Asks one speaker for what the other one said: nothing answers it."""
_WEEKDAY = re.compile(r"\s*\(\w+\)\s*")


def stores(path: Path) -> Iterator[Store]:
    """Return the stores of a file; a public form is told by its keys.

    Args:
        path: A `.jsonl` file in our form or of tool calls, or a public `.json` file.
    """
    for store in _read(path):
        asked = [each for each in store["questions"] if each["gold"]]
        if asked:
            yield {**store, "questions": asked}


def _read(path: Path) -> Iterator[Store]:
    with path.open(encoding="utf-8") as file:
        if path.suffix == ".json":
            for sample in json.load(file):
                yield _locomo(sample) if "conversation" in sample else _longmemeval(sample)
            return
        lines = (json.loads(line) for line in file)
        first = next(lines)
        if "tool" in first:
            yield from tool_call_stores([first, *lines])
        else:
            yield first
            yield from lines


def _locomo(sample: Mapping[str, Any]) -> Store:
    conversation = sample["conversation"]
    messages: list[Message] = []
    numbers = sorted(int(key[8:]) for key in conversation if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        thread = f"session_{number}"
        began = datetime.strptime(conversation[f"{thread}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for place, turn in enumerate(conversation[thread]):
            image = f" [shares an image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            role = "user" if turn["speaker"] == conversation["speaker_a"] else "assistant"
            time = (began + place * _PAUSE).isoformat()
            content = f"{turn['text']}{image}"
            messages.append(
                Message(id=turn["dia_id"], thread=thread, name=turn["speaker"], role=role, content=content, time=time)
            )
    known = {message["id"] for message in messages}
    questions: list[Question] = []
    for asked in sample["qa"]:
        named = _EVIDENCE.findall(" ".join(asked.get("evidence", ())))
        gold = [each for each in dict.fromkeys(named) if each in known]
        question = Question(text=asked["question"], gold=gold, category=_CATEGORIES[asked["category"]])
        if asked["category"] != _ADVERSARIAL and "answer" in asked:
            question["answer"] = str(asked["answer"])
        questions.append(question)
    return Store(store=sample["sample_id"], messages=messages, questions=questions)


def _longmemeval(sample: Mapping[str, Any]) -> Store:
    sessions: Sequence[tuple[str, str, Sequence[Mapping[str, str]]]] = list(
        zip(sample["haystack_session_ids"], sample["haystack_dates"], sample["haystack_sessions"], strict=True)
    )
    messages: list[Message] = []
    for number, (thread, date, turns) in enumerate(sessions):
        began = _time(date)
        for place, turn in enumerate(turns):
            time = (began + place * _PAUSE).isoformat()
            name = turn["role"].capitalize()
            messages.append(
                Message(
                    id=f"{number}:{place}",
                    thread=thread,
                    name=name,
                    role=turn["role"],
                    content=turn["content"],
                    time=time,
                )
            )
    question = Question(
        text=sample["question"],
        gold=list(sample["answer_session_ids"]),
        category=sample["question_type"],
        answer=str(sample["answer"]),
        time=_time(sample["question_date"]).isoformat(),
    )
    if sample["question_id"].endswith("_abs"):
        question |= {"gold": [], "category": "abstention"}
    return Store(store=sample["question_id"], messages=messages, questions=[question], gold_unit="thread")


def _time(date: str) -> datetime:
    return datetime.strptime(_WEEKDAY.sub(" ", date), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def files(given: Iterable[Path]) -> dict[str, Path]:
    """Return the files of stores that were named, or that lie in a folder, by kind.

    Args:
        given: Files and folders.
    """
    paths = [each for path in given for each in (sorted(path.glob("*_dev.jsonl")) if path.is_dir() else [path])]
    return {path.stem.removesuffix("_dev"): path for path in paths if path.suffix == ".json" or _holds_stores(path)}


def _holds_stores(path: Path) -> bool:
    with path.open(encoding="utf-8") as lines:
        first = json.loads(next(lines)).keys()
    return bool(first >= {"messages", "questions"} or first >= {"tool", "trial"})


def drawn(path: Path, size: int) -> list[Store]:
    """Return the stores of a file with so many of their questions in all, the same in every run; 0 is all of them."""
    whole = list(stores(path))
    asked = [(number, question) for number, store in enumerate(whole) for question in store["questions"]]
    drawn = sorted(random.Random(7).sample(range(len(asked)), min(size or len(asked), len(asked))))
    kept = [asked[at] for at in drawn]
    return [
        {**store, "questions": [question for at, question in kept if at == number]}
        for number, store in enumerate(whole)
    ]


def answerable(data: Iterable[Store]) -> list[Store]:
    """Return stores with the questions that something answers.

    Args:
        data: The stores.
    """
    return [
        {**store, "questions": [each for each in store["questions"] if each.get("category") != ADVERSARIAL]}
        for store in data
    ]
