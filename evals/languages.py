"""Short talks in seven languages: in which words they are remembered, and what becomes of a request to forget or correct.

    python -m evals languages                        figures from what is recorded; no model is called
    python -m evals languages --ask FOLDER           hands new prompts of the model over by files, as `evals talks` does
    python -m evals languages --show                 prints what is remembered of each talk

Twenty talks in German, Spanish, French, Japanese, Korean, Hindi and Arabic (languages.jsonl), written by somebody who knew
nothing of the code, are told in two sittings, so that what is asked in the second may be about what was learned in the
first. Then is read what is remembered: whether it is in the language of the talk; whether what was to be forgotten stands
nowhere that recall reaches; whether what was put right is remembered so, and no more as it was.

The words that tell (`gone`, `was`, `now`, `told`) were chosen when all answers were recorded.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from evals._figures import Figure, finish
from evals._handoff import Answers, HandedModel, Unanswered
from remegraph import AgentMemorySettings, ExtractionPolicy, MemoryKit, Message, Scope, Settings, SummaryPolicy
from remegraph.kit import OpenOptions
from remegraph.testing import FrozenClock, SequentialIds

__all__ = ["DATA", "RECORDED", "Outcome", "Talk", "figures", "languages", "main", "talks", "tell"]

DATA = Path(__file__).with_suffix(".jsonl")
RECORDED = DATA.with_name("languages_recorded.jsonl")

_LATER = timedelta(days=1)
_PATIENT = 10_000_000.0
"""Seconds that an answer may take which somebody writes into a file."""

_SCRIPTS = {"ja": "HIRAGANA KATAKANA", "ko": "HANGUL", "hi": "DEVANAGARI", "ar": "ARABIC"}
"""By which characters a language is told from the others here, as Unicode names them."""

_WORDS = {
    "de": "der die das den dem des ein eine einen einer und ist sind nicht mit für von zu zum zur im am auf seit hat "
    "wird sich ihr sie er weil aus bei nach als noch kein keine wohnt lebt arbeitet mag",
    "es": "el la los las le un una y es son no con para de del en que se su sus a al desde ha por tiene como más lo muy está",
    "fr": "le la les l un une et est sont ne pas avec pour de du des en d qui que s se sa son depuis a au aux elle il dans y",
    "en": "the a an and is are not with for of to on at that has have his her since was will who they it by from be lives works wants likes",
}
"""Small words of the languages of one script."""


@dataclass(frozen=True, slots=True)
class Talk:
    """What two say, and what must be so afterwards."""

    name: str
    language: str
    messages: Sequence[Message]
    gone: Sequence[str]
    """Patterns of words that nobody may be shown any more; one for each request to forget."""
    put_right: Sequence[tuple[str, str]]
    """Patterns of what is remembered no more as true, and of what is; a pair for each request to correct."""
    told: Sequence[str]
    """Patterns of facts that a memory holds afterwards."""

    @property
    def scope(self) -> Scope:
        """Whose memory it is told to."""
        return Scope(user="person", agent="remy")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is left of a talk."""

    talk: Talk
    memories: Sequence[str] = field(default_factory=list)
    """What its live memories say."""
    summaries: Sequence[str] = field(default_factory=list)
    shown: Sequence[str] = field(default_factory=list)
    """What recall shows of messages, summaries and memories where it is asked with the words of each message."""
    withheld: Sequence[str] = field(default_factory=list)
    """Words that wait for a decision."""

    @property
    def other_tongue(self) -> list[str]:
        """Memories and summaries that are written in another language."""
        return [text for text in (*self.memories, *self.summaries) if self.talk.language not in languages(text)]

    @property
    def forgotten(self) -> list[bool]:
        """Whether each thing that was to be forgotten is."""
        told = "\n".join((*self.memories, *self.summaries, *self.shown))
        return [re.search(words, told) is None for words in self.talk.gone]

    @property
    def held(self) -> list[bool]:
        """Whether each fact is held by a memory."""
        return [any(re.search(words, each) for each in self.memories) for words in self.talk.told]

    @property
    def corrected(self) -> list[bool]:
        """Whether each thing that was put right is remembered as it is."""
        told = "\n".join(self.memories)
        return [bool(re.search(now, told)) and not re.search(was, told) for was, now in self.talk.put_right]


def languages(text: str) -> set[str]:
    """Return the language of a text, of those that are measured here, and English; several where none can tell.

    Args:
        text: A memory, or a summary.
    """
    scripts = Counter(unicodedata.name(sign, "").partition(" ")[0] for sign in text if sign.isalpha())
    most = {name: sum(scripts[each] for each in kinds.split()) for name, kinds in _SCRIPTS.items()}
    name = max(most, key=lambda each: most[each])
    if most[name] > scripts.total() / (6 if name == "ja" else 2):  # Japanese is written with Han characters, too
        return {name}
    words = re.findall(r"[^\W\d_]+", text.casefold())
    counts = {name: sum(word in small.split() for word in words) for name, small in _WORDS.items()}
    return {name for name, count in counts.items() if count == max(counts.values())}


def talks(path: Path = DATA) -> Iterator[Talk]:
    """Yield the talks of a file of JSON lines.

    Args:
        path: The file.
    """
    for line in path.read_text(encoding="utf-8").splitlines():
        raw = json.loads(line)
        messages = [_message(raw["id"], at, each) for at, each in enumerate(raw["messages"])]
        gone, told = [each["gone"] for each in raw["forget"]], [each["told"] for each in raw["facts"]]
        pairs = [(each["was"], each["now"]) for each in raw["correct"]]
        yield Talk(raw["id"], raw["lang"], messages, gone, pairs, told)


def _message(talk: str, at: int, raw: Mapping[str, Any]) -> Message:
    time = datetime.fromisoformat(raw["time"])
    return Message(message_id=f"{talk}-{at:02}", role=raw["role"], content=raw["content"], time=time, thread=talk)


def tell(talk: Talk, answers: Answers | None) -> Outcome:
    """Tell a kit a talk in two sittings, and return what is left of it.

    Args:
        talk: What is said.
        answers: What the model answers; none: there is no model.

    Raises:
        Unanswered: A prompt waits for its answer.
    """
    clock = FrozenClock(talk.messages[0].time)
    summary = SummaryPolicy(max_concurrency=1, timeout=_PATIENT)
    agent = AgentMemorySettings(extraction=ExtractionPolicy(trigger="manual"))
    model = HandedModel(answer=answers.exact) if answers else None
    with tempfile.TemporaryDirectory() as home:
        told = Settings(home=Path(home), summary=summary, agent=agent)
        with MemoryKit.open(
            settings=told, model=model, embedder=None, clock=clock, options=OpenOptions(new_id=SequentialIds())
        ) as kit:
            for sitting in _sittings(talk.messages):
                clock.move(sitting[-1].time - clock())
                kit.add_messages(sitting, scope=talk.scope)
                kit.summarize(scope=talk.scope, close=True)
            clock.move(_LATER)
            return _left(kit, talk)


def _sittings(messages: Sequence[Message]) -> tuple[Sequence[Message], Sequence[Message]]:
    """Return both halves of a talk; the second begins with a person's words."""
    middle = next(at for at in range(len(messages) // 2, len(messages)) if messages[at].role == "user")
    return messages[:middle], messages[middle:]


def _left(kit: MemoryKit, talk: Talk) -> Outcome:
    live = [each for each in kit.memories(scope=talk.scope) if each.live]
    shown: list[str] = []
    summaries: dict[str, str] = {}
    for message in talk.messages:  # to ask with the very words is the hardest
        found = kit.recall(message.text, scope=talk.scope, depth="messages", budget=2000)
        shown.append(found.context)
        summaries.update({each.record_id: each.text for each in found.blocks})
    waiting = [row.text for each in kit.governance.requests(scope=talk.scope) for row in each.words]
    return Outcome(
        talk, [each.content for each in live if each.valid_to is None], [*summaries.values()], shown, waiting
    )


def figures(outcomes: Sequence[Outcome]) -> Iterator[Figure]:
    """Yield the figures, and for each language what is remembered.

    Args:
        outcomes: What is left of the talks.
    """
    own = sum(bool(each.memories) and not each.other_tongue for each in outcomes)
    yield Figure("talks remembered in their own language", own, len(outcomes), "exactly")
    for name, done, bar in (
        ("requests to forget carried out", [each for one in outcomes for each in one.forgotten], 0.9),
        ("requests to correct carried out", [each for one in outcomes for each in one.corrected], 0.9),
        ("facts held by a memory", [each for one in outcomes for each in one.held], 0.93),
    ):
        if done:
            yield Figure(name, sum(done) / len(done), bar, "at least", note=f"{sum(done)} of {len(done)}")
    for tongue in sorted({each.talk.language for each in outcomes}):
        count = sum(len(each.memories) for each in outcomes if each.talk.language == tongue)
        yield Figure(f"{tongue}: memories", count)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures, or hand prompts over."""
    parser = argparse.ArgumentParser(prog="python -m evals languages", description="Short talks in seven languages.")
    parser.add_argument("--data", type=Path, default=DATA, help="A file of talks.")
    parser.add_argument("--recorded", type=Path, default=RECORDED, help="The answers of the model.")
    parser.add_argument("--ask", type=Path, help="Folder where new prompts wait.")
    parser.add_argument("--wait", action="store_true", help="Wait for their answers.")
    parser.add_argument("--show", action="store_true", help="Print what is remembered.")
    options = parser.parse_args(argv)
    answers, outcomes, waiting = Answers(options.recorded, options.ask, options.wait), [], []
    for talk in talks(options.data):
        try:
            outcomes.append(tell(talk, answers))
        except Unanswered:
            waiting.append(talk.name)
    if waiting:
        print(f"A prompt has no recorded answer; not measured yet: {', '.join(waiting)}.")
    elif options.ask:
        answers.keep_used()
    for each in outcomes if options.show else ():
        told = (*each.memories, *(f"[{text}]" for text in each.summaries))
        print(
            "\n    ".join(
                (f"{each.talk.name} {each.forgotten} {each.corrected} {each.held} {each.other_tongue or ''}", *told)
            )
        )
    finish([*figures(outcomes)])


if __name__ == "__main__":
    main()
