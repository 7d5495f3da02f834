"""Whether conversations fill the fields of a person, a project and a tool rightly, each with its words and no wrong type.

    python -m evals schemas [--shown]               with recorded answers; no model is called
    python -m evals schemas --ask FOLDER [--wait]   hands new prompts over by files

Parts of the judged dialogues are told to a kit with the schemas of `examples/profiles.py`; then every field of the profile is
held against what `schemas.toml` says, written by hand from the dialogues: the value that holds now, what it held before, or
that it is unknown. The same is told once more by a model that answers the same, but gives each field a value of another
type, also when it is told so: none of those may enter. Prompts that have no answer are *not answered yet*, and in no figure.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, TypeAdapter

from evals._dialogues import Dialogue, dialogues
from evals._figures import Figure, finish
from evals._handoff import Answers, HandedModel, Prompt, Unanswered
from evals._records import Message
from examples.profiles import SCHEMAS, Person, Project, Tool
from remegraph import (
    AgentMemorySettings,
    CapturePolicy,
    ExtractionPolicy,
    MemoryKit,
    Settings,
    SummaryPolicy,
    ToolPolicy,
)
from remegraph.kit import OpenOptions
from remegraph.models import Profile, ProfileField
from remegraph.testing import FrozenClock, InMemoryVectorIndex, SequentialIds

__all__ = ["Case", "Filled", "cases", "figures", "filled", "main", "right"]

_FOLDER = Path(__file__).parent
_RECORDED = _FOLDER / "schemas_recorded"
_MODELS: Mapping[str, type[BaseModel]] = {each.__name__: each for each in (Person, Project, Tool)}
_PATIENT = 10_000_000.0
"""Seconds that an answer may take which somebody writes into a file."""

_NEVER = "neither here nor there"
"""A text that no field takes but those that take any."""


@dataclass(frozen=True, slots=True)
class Case:
    """Parts of a dialogue, and what is known after them."""

    name: str
    dialogue: Dialogue
    schema: type[BaseModel]
    topic: str
    parts: Sequence[Sequence[Message]]
    expect: Mapping[str, Any]
    before: Mapping[str, Any]


def cases(path: Path = _FOLDER / "schemas.toml") -> Iterator[Case]:
    """Yield what is told, and what is to be known then.

    Args:
        path: Names the parts.
    """
    found = {each.name: each for each in dialogues(_FOLDER / "dialogues")}
    for raw in tomllib.loads(path.read_text(encoding="utf-8"))["case"]:
        dialogue = found[raw["dialogue"]]
        ids = [each["id"] for each in dialogue.messages]
        parts = [
            [
                _told(message, f"part-{at}")
                for first, last in part
                for message in dialogue.messages[ids.index(first) : ids.index(last) + 1]
            ]
            for at, part in enumerate(raw["parts"], start=1)
        ]
        schema = _MODELS[raw["schema"]]
        yield Case(raw["name"], dialogue, schema, raw["topic"], parts, raw["expect"], raw.get("before", {}))


def _told(message: Message, thread: str) -> Message:
    told: Message = {**message, "thread": thread}
    return told


@dataclass(frozen=True, slots=True)
class Filled:
    """A profile, and what the ledger holds, by message id."""

    profile: Profile[BaseModel]
    said: Mapping[str, str]


def filled(case: Case, model: BaseChatModel) -> Filled:
    """Tell a case to a kit, and return the profile.

    Args:
        case: What is told.
        model: Reads it.

    Raises:
        Unanswered: A prompt waits for its answer.
    """
    scope, clock = case.dialogue.scope, FrozenClock(datetime.fromisoformat(case.parts[0][0]["time"]))
    with TemporaryDirectory() as folder:
        settings = Settings(
            home=Path(folder),
            ledger_url="sqlite://",
            capture=CapturePolicy(background=False),
            summary=SummaryPolicy(
                max_concurrency=1, timeout=_PATIENT, allowed_topics=("kassa",) if case.schema is Project else ()
            ),
            tools=ToolPolicy(trusted=frozenset({"shell_run"})),
            agent=AgentMemorySettings(extraction=ExtractionPolicy(trigger="manual", schemas=SCHEMAS)),
        )
        ids, index = SequentialIds(), InMemoryVectorIndex()
        with MemoryKit.open(
            settings=settings, model=model, index=index, clock=clock, options=OpenOptions(new_id=ids)
        ) as kit:
            said: dict[str, str] = {}
            for at, part in enumerate(case.parts, start=1):
                clock.move(datetime.fromisoformat(part[-1]["time"]) + timedelta(minutes=1) - clock())
                kit.add_messages(part, scope=scope, thread=f"part-{at}")
                kit.summarize(scope=scope, close=True)
                said |= {each.message_id: each.text for each in kit.messages(f"part-{at}", scope=scope)}
            return Filled(kit.profile(case.schema, scope=scope, topic=case.topic), said)


def right(case: Case, field: ProfileField) -> bool:
    """Return whether a field holds what it should, and held before what it should; or is unknown.

    Args:
        case: What was told.
        field: Of the profile.
    """
    if field.name not in case.expect:
        return not field.known
    held = [each.value for each in field.history]
    before = case.before.get(field.name)
    return (
        field.known
        and not field.disputed
        and _meets(field.value, case.expect[field.name])
        and (before is None or any(_meets(each, before) for each in held))
    )


def _meets(value: Any, wanted: Any) -> bool:
    if isinstance(value, list):
        left = list(value)
        for each in wanted:
            left = [one for at, one in enumerate(left) if at != _place(left, each)]
        return len(value) == len(wanted) and not left
    if isinstance(wanted, list):
        return isinstance(value, str) and any(each.casefold() in value.casefold() for each in wanted)
    return bool(value == wanted)


def _place(values: Sequence[Any], wanted: Any) -> int | None:
    return next((at for at, value in enumerate(values) if _meets(value, wanted)), None)


def _spoiling(answers: Answers) -> Callable[[Prompt], dict[str, Any]]:
    """Return a model that answers as recorded, but gives each field a value of another type, whatever it is told."""

    def answer(prompt: Prompt) -> dict[str, Any]:
        given: dict[str, Any] = json.loads(json.dumps(answers.nearest(prompt)))
        for operation in given.get("args", {}).get("operations", ()):
            if operation.get("slot"):
                operation["value"] = _NEVER
        return given

    return answer


def figures(told: Mapping[str, tuple[Case, Filled, Filled]], *, whole: bool) -> Iterator[Figure]:
    """Yield the figures of what was answered; they are held against bars only where that is all of it.

    Args:
        told: Each case, with its profile, and the one of the model that gives wrong values.
        whole: Whether that is all.
    """
    pairs = [(case, field) for case, done, _ in told.values() for field in done.profile]
    good = sum(right(case, field) for case, field in pairs)
    yield Figure(
        "fields right", good / max(len(pairs), 1), 0.95 if whole else None, "at least", note=f"{good} of {len(pairs)}"
    )
    known = [(done, field) for _, done, _ in told.values() for field in done.profile if field.known]
    stand = sum(
        bool(field.words) and all(quote.words in done.said[quote.message.message_id] for quote in field.words)
        for done, field in known
    )
    note = f"{stand} of {len(known)}"
    yield Figure(
        "known fields with their words", stand / max(len(known), 1), 1 if whole else None, "exactly", note=note
    )
    wrong = sum(_wrong(case.schema, field) for case, *both in told.values() for done in both for field in done.profile)
    yield Figure("values of a wrong type", wrong, 0, "exactly", note="in profiles and their histories")


def _wrong(schema: type[BaseModel], field: ProfileField) -> int:
    """Return how many values of a field are not of its type, or stand in its slot though they are none."""
    kind: Any = schema.model_fields[field.name].annotation
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    unread = sum(bool(each.problem) for each in (*field.current, *field.history))
    return unread + (field.known and adapter.validate_python(field.value, strict=True) != field.value)


def main() -> None:
    """Tell all cases, and print how well their profiles are filled."""
    parser = argparse.ArgumentParser(prog="python -m evals schemas", description="Profiles filled by conversations.")
    parser.add_argument("--shown", action="store_true", help="Print the profiles, and what is wrong in them.")
    parser.add_argument("--recorded", type=Path, default=_RECORDED, help="Folder of the model's answers.")
    parser.add_argument("--ask", type=Path, help="Folder where new prompts of the model wait.")
    parser.add_argument("--wait", action="store_true", help="Wait for their answers.")
    options = parser.parse_args()
    told: dict[str, tuple[Case, Filled, Filled]] = {}
    waiting = []
    for case in cases():
        name = case.name.replace(",", "").replace(" ", "_")
        answers = Answers(options.recorded / f"{name}.answers.jsonl", options.ask and options.ask / name, options.wait)
        try:
            done = filled(case, HandedModel(answer=answers.exact))
        except Unanswered:
            waiting.append(case.name)
            continue
        if options.ask:
            answers.keep_used()
        told[case.name] = (case, done, filled(case, HandedModel(answer=_spoiling(answers))))
        for field in done.profile if options.shown else ():
            mark = " " if right(case, field) else "!"
            held = field.value if field.known else f"unknown ({field.problem})"
            before = [each.value for each in field.history]
            print(f"{mark} {case.topic} {field.name}: {held}, before: {before}, {[each.words for each in field.words]}")
    for name in waiting:
        print(f"{name}: not answered yet.")
    finish(list(figures(told, whole=not waiting)))


if __name__ == "__main__":
    main()
