"""Whether two statements stay two, without a model and with one: 240 pairs of a later statement and an earlier one.

    python -m evals pairs [--data FILE] [--shown]       at every door, without a model
    python -m evals pairs --model [--shown]             with recorded answers; no model is called
    python -m evals pairs --model --ask FOLDER [--wait] hands new prompts over by files
    python -m evals pairs --model --only en01           some batches alone

Half of the pairs are Chinese. They say the same, more of the same, something else of the same thing, something new, or the
contrary (`relation` in pairs.jsonl; both, unrelated_words and conflict are those that may never be taken for one). The
later statement comes months after the earlier, by saving, by extraction from two conversations, then by maintenance of what
those left; from another agent's shared knowledge; as corroboration of a proposal; and in a pack. A pair is *taken for one*
where one of the two is merged, dropped, superseded or corroborated by the other.

With a model (`--model`), a person tells the earlier statements of twelve pairs in one conversation, and the later ones in
another, 120 days after. Then what changed has to be superseded, what is the same joined, and the other pairs still stay
two. What becomes of a pair is read from the messages that its memories rest on. Somebody who has seen neither pairs nor
project answers for the model (`_handoff.py`); a batch with a prompt that has no answer is *not answered yet*, and in no
figure.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from langchain_core.language_models import BaseChatModel

from evals._figures import Figure, finish
from evals._handoff import Answers, HandedModel, Unanswered
from remegraph import (
    AgentMemorySettings,
    CapturePolicy,
    ExtractionPolicy,
    MemoryKit,
    Message,
    Scope,
    Settings,
    SharingPolicy,
    SummaryPolicy,
)
from remegraph.errors import ConsensusError
from remegraph.kit import OpenOptions
from remegraph.mek.items import knowledge_id
from remegraph.models import KnowledgeItem, Memory
from remegraph.models.supersession import content_digest
from remegraph.testing import FrozenClock, InMemoryVectorIndex, SequentialIds

__all__ = [
    "DATA",
    "DOORS",
    "NEVER_ONE",
    "Batch",
    "Door",
    "Fate",
    "Pair",
    "batches",
    "main",
    "measured",
    "pairs",
    "told",
]

DATA = Path(__file__).parent / "pairs.jsonl"
NEVER_ONE = frozenset({"both", "unrelated_words", "conflict"})
"""The relations of pairs that are two statements, whatever a model would say."""

_MONTHS = timedelta(days=120)
_START = datetime(2025, 3, 4, 12, tzinfo=UTC)
_KNOWS = "scout"
_ANSWERS = Path(__file__).parent / "pairs_recorded"
_BATCH = 12
_PATIENT = 10_000_000.0
"""Seconds that an answer may take which somebody writes into a file."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two statements, and what the later is to the earlier."""

    number: int
    relation: str
    earlier: str
    later: str
    language: str = "en"
    attribute: str = ""
    """What they are about, in a word or two."""

    @property
    def scope(self) -> Scope:
        """A person who tells nothing else."""
        return Scope(user=f"ann{self.number}", agent="remy")


def pairs(path: Path = DATA) -> list[Pair]:
    """Return the pairs of a file of JSON lines.

    Args:
        path: The file.
    """
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    names = ("id", "relation", "earlier", "later", "lang", "attribute")
    return [Pair(*(row[name] for name in names)) for row in rows]


@dataclass(frozen=True, slots=True)
class House:
    """A kit without a model, another one to bring packs from, and their clock."""

    kit: MemoryKit
    other: MemoryKit
    clock: FrozenClock
    folder: Path

    def lost(self, pair: Pair, scope: Scope) -> str:
        """Return which of two statements is no memory of its own any more, or loses to the other; nothing where both live.

        Args:
            pair: The statements.
            scope: Who told them.
        """
        live = [each for each in self.kit.memories(scope=scope) if each.live]
        earlier, later = _of(live, pair.earlier), _of(live, pair.later)
        if earlier is None or earlier.merges or earlier.supersedes:
            return "earlier"
        if later is None or later.merges or later.supersedes:
            return "later"
        if earlier == later or any(each.status != "active" for each in live):
            return "both"
        return "later" if later.said_at <= earlier.said_at else ""


def _of(memories: Sequence[Memory], text: str) -> Memory | None:
    told = (each for each in memories if content_digest(each.content.partition(": ")[2]) == content_digest(text))
    exact = (each for each in memories if content_digest(each.content) == content_digest(text))
    held = (each for each in memories if text in each.content)
    return next(exact, None) or next(told, None) or next(held, None)


Door = Callable[[House, Pair], str]
"""Lets both statements in; returns which one is lost, if one is."""


def _save(house: House, pair: Pair) -> str:
    house.kit.save("note", pair.earlier, scope=pair.scope)
    house.clock.move(_MONTHS)
    house.kit.save("note", pair.later, scope=pair.scope)
    return house.lost(pair, pair.scope)


def _extract(house: House, pair: Pair) -> str:
    for text in (pair.earlier, pair.later):
        house.clock.move(_MONTHS)
        thread = f"{pair.number} {house.clock().isoformat()}"
        message = Message(role="user", name=pair.scope.user, content=text, time=house.clock(), thread=thread)
        house.kit.add_messages([message], scope=pair.scope)
        house.kit.summarize(scope=pair.scope, close=True)
    return house.lost(pair, pair.scope)


def _maintain(house: House, pair: Pair) -> str:
    for text in (pair.earlier, pair.later):
        house.clock.move(timedelta(minutes=1))  # nothing fades meanwhile
        house.kit.save("note", text, scope=pair.scope, importance=0.8)
    house.kit.retention.maintain(scope=pair.scope)
    house.kit.retention.consolidate(scope=pair.scope)
    return house.lost(pair, pair.scope)


def _absorb(house: House, pair: Pair) -> str:
    for text, agent in ((pair.earlier, _KNOWS), (pair.later, "clerk")):
        house.clock.move(_MONTHS)
        content = {"event_pattern": text, "generalized_learnings": ""}
        item = KnowledgeItem.model_validate(
            {
                "knowledge_id": knowledge_id("episode", content),
                "title": "",
                "content": content,
                "source_memory_type": "episode",
                "source_agent": agent,
                "created_at": house.clock(),
                "metadata": {},
            }
        )
        (done,) = house.kit.knowledge.absorb([item], scope=pair.scope).items
        if done.outcome not in {"created", "quarantined"}:  # nothing proves who shares it, so a person lets it in
            return "later"
        if done.outcome == "quarantined":
            house.kit.knowledge.decide(done.memory_id, approve=True, scope=pair.scope, by="Dana")
    return house.lost(pair, pair.scope)


def _agree(house: House, pair: Pair) -> str:
    scout, clerk = (pair.scope.evolve(agent=agent) for agent in (_KNOWS, "clerk"))
    first = house.kit.save("note", pair.earlier, scope=scout).memory
    house.clock.move(_MONTHS)
    second = house.kit.save("note", pair.later, scope=clerk).memory
    if first is None or second is None:
        return "both"
    proposal = house.kit.sharing.propose(first.memory_id, scope=scout, reason="all need it")
    try:
        house.kit.sharing.corroborate(proposal.proposal_id, scope=clerk, memory_id=second.memory_id)
    except ConsensusError:
        return ""
    return "later"


def _install(house: House, pair: Pair) -> str:
    path = house.folder / f"{pair.number}.pack"
    house.kit.save("note", pair.earlier, scope=pair.scope)
    house.clock.move(_MONTHS)
    house.other.save("note", pair.later, scope=pair.scope)
    house.other.packs.build(path, scope=pair.scope)
    house.kit.packs.install(path, scope=pair.scope, trust=1)
    return house.lost(pair, pair.scope)


DOORS: Mapping[str, Door] = {
    "save": _save,
    "extraction": _extract,
    "maintenance": _maintain,
    "absorb": _absorb,
    "consensus": _agree,
    "pack": _install,
}
"""What lets statements in, by name."""


def measured(asked: Sequence[Pair], door: Door) -> dict[Pair, str]:
    """Return which pairs are not two statements any more behind a door, and what is lost.

    Args:
        asked: The pairs.
        door: What lets them in.
    """
    clock = FrozenClock(_START)
    sharing = SharingPolicy(trust={_KNOWS: 0.9, "clerk": 0.9})
    with (
        TemporaryDirectory() as folder,
        _opened(Settings(home=Path(folder) / "home", ledger_url="sqlite://", sharing=sharing), clock) as kit,
        _opened(Settings(home=Path(folder) / "other", ledger_url="sqlite://"), clock) as other,
    ):
        house = House(kit, other, clock, Path(folder))
        return {pair: lost for pair in asked if (lost := door(house, pair))}


def _opened(settings: Settings, clock: FrozenClock) -> MemoryKit:
    return MemoryKit.open(settings=settings, model=None, index=InMemoryVectorIndex(), clock=clock)


# ---------------------------------------------------------------------------------------------- with a model

_SPEAKERS = {"en": ("Ann", "Noted."), "zh": ("小林", "好的。")}
"""Who tells statements, and what the assistant says to each, by language."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Pairs of one language, each about something else, that one person tells in two conversations."""

    name: str
    pairs: tuple[Pair, ...]

    @property
    def language(self) -> str:
        """Its language."""
        return self.pairs[0].language

    def session(self, which: str) -> list[Pair]:
        """Return the pairs in the order in which one of their statements is told.

        Args:
            which: earlier or later.
        """
        return random.Random(f"{self.name} {which}").sample(self.pairs, len(self.pairs))


def batches(asked: Iterable[Pair]) -> list[Batch]:
    """Return pairs in batches of twelve, the same ones each time, so that no two of a batch are about one thing.

    Args:
        asked: The pairs.
    """
    by_language: dict[str, list[Pair]] = {}
    for pair in asked:
        by_language.setdefault(pair.language, []).append(pair)
    return [
        Batch(f"{language}{at:02}", tuple(batch))
        for language, of in sorted(by_language.items())
        for at, batch in enumerate(_filled(of), start=1)
    ]


def _filled(asked: Sequence[Pair]) -> list[list[Pair]]:
    """Fill one batch after the other, beginning with what many pairs are about: those need the most batches."""
    often = Counter(pair.attribute for pair in asked)
    filled: list[list[Pair]] = []
    for pair in sorted(random.Random(0).sample(asked, len(asked)), key=lambda each: -often[each.attribute]):
        apart = (
            each for each in filled if len(each) < _BATCH and pair.attribute not in {one.attribute for one in each}
        )
        batch = next(apart, None)
        if batch is None:
            filled.append(batch := [])
        batch.append(pair)
    return filled


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of the two statements of a pair."""

    decided: bool
    """Whether both became memories, or a memory of the earlier is gone; else there was nothing to decide between."""
    held: bool
    """Whether a live memory rests on the later."""
    stands: bool
    """Whether a memory of the earlier still says what it said."""
    lost: bool
    """Whether a memory of the earlier is not live any more, or over."""
    shared: bool
    """Whether one live memory rests on both."""
    one: bool
    """Whether it is the only one that rests on either."""

    @property
    def taken_for_one(self) -> bool:
        """Whether they are not two any more."""
        return self.lost or self.shared

    @property
    def superseded(self) -> bool:
        """Whether nothing says the earlier any more as it was, and the later was understood."""
        return self.decided and not self.stands

    @property
    def joined(self) -> bool:
        """Whether one memory that holds rests on both, and no other on either."""
        return self.decided and self.one and not self.lost

    def __str__(self) -> str:
        if not self.decided:
            return "not decided"
        if self.lost:
            return "superseded in part" if self.stands else "superseded"
        if self.shared:
            return ("joined" if self.stands else "refined") if self.one else "joined in part"
        return "both"


def told(batch: Batch, model: BaseChatModel) -> dict[Pair, Fate]:
    """Tell the statements of a batch to a kit, and return what became of each pair.

    Args:
        batch: The pairs.
        model: Reads what is told.

    Raises:
        Unanswered: A prompt waits for its answer.
    """
    clock, scope = FrozenClock(_START), Scope(user=_SPEAKERS[batch.language][0], agent="Remy")
    with TemporaryDirectory() as folder:
        settings = Settings(
            home=Path(folder),
            ledger_url="sqlite://",
            capture=CapturePolicy(background=False),
            summary=SummaryPolicy(max_concurrency=1, timeout=_PATIENT),  # prompts are the same on each run
            agent=AgentMemorySettings(extraction=ExtractionPolicy(trigger="manual")),
        )
        index, ids = InMemoryVectorIndex(), SequentialIds()
        with MemoryKit.open(
            settings=settings, model=model, index=index, clock=clock, options=OpenOptions(new_id=ids)
        ) as kit:
            left = []
            for which in ("earlier", "later"):
                kit.add_messages(list(_said(batch, which, clock)), scope=scope, thread=which)
                kit.summarize(scope=scope, close=True)
                left.append(kit.memories(scope=scope))
                clock.move(_MONTHS)
    return {pair: _fate(pair, *left) for pair in batch.pairs}


def _said(batch: Batch, which: str, clock: FrozenClock) -> Iterator[Message]:
    """Yield one statement of each pair, and between them what the assistant says."""
    name, noted = _SPEAKERS[batch.language]
    for at, pair in enumerate(batch.session(which)):
        clock.move(timedelta(minutes=1))
        if at:
            yield Message(role="assistant", name="Remy", content=noted, time=clock(), thread=which)
        words = getattr(pair, which)
        yield Message(
            message_id=f"{which} {pair.number}", role="user", name=name, content=words, time=clock(), thread=which
        )


def _fate(pair: Pair, before: Sequence[Memory], after: Sequence[Memory]) -> Fate:
    """Return what became of a pair between its conversations, by the messages that memories rest on."""
    first, second = f"earlier {pair.number}", f"later {pair.number}"
    resting = {memory.memory_id: {each.message_id for each in memory.evidence} for memory in after}
    live = {memory.memory_id: memory for memory in after if memory.live}
    olds = [memory for memory in before if memory.live and first in {each.message_id for each in memory.evidence}]
    kept = [(old, live[old.memory_id]) for old in olds if old.memory_id in live]
    going_on = [(old, new) for old, new in kept if new.valid_to == old.valid_to]
    about = [resting[name] & {first, second} for name in live if resting[name] & {first, second}]
    lost = len(going_on) < len(olds)
    return Fate(
        decided=bool(olds) and (lost or any(second in each for each in resting.values())),
        held=any(second in each for each in about),
        stands=any(new.content == old.content or second not in resting[new.memory_id] for old, new in going_on),
        lost=lost,
        shared={first, second} in about,
        one=about == [{first, second}],
    )


def _model_figures(fates: Mapping[Pair, Fate], *, whole: bool) -> Iterator[Figure]:
    """Yield the figures of what was answered; they are held against bars only where that is all of it."""

    def of(*relations: str) -> dict[Pair, Fate]:
        return {pair: fate for pair, fate in fates.items() if pair.relation in relations}

    two, changed, same, more = of(*NEVER_ONE), of("update", "correction"), of("same"), of("refine")
    if two:
        wrong = sum(fate.taken_for_one for fate in two.values())
        yield Figure("two taken for one", wrong, 0 if whole else None, "exactly", note=f"of {len(two)} pairs")
    for name, found, hits, bar in (
        ("updates and corrections superseded", changed, [fate.superseded for fate in changed.values()], 0.9),
        ("the same joined", same, [fate.joined for fate in same.values()], 0.8),
    ):
        if found:
            note = f"{sum(hits)} of {len(hits)} pairs"
            yield Figure(name, sum(hits) / len(hits), bar if whole else None, "at least", note=note)
    for name, number in sorted(Counter(map(str, more.values())).items()):
        yield Figure(f"more of the same: {name}", number, note=f"of {len(more)} pairs")
    for relation in sorted({pair.relation for pair in fates}):
        found = of(relation)
        note = f"of {len(found)} pairs"
        yield Figure(f"{relation}: not decided", sum(not fate.decided for fate in found.values()), note=note)
        yield Figure(f"{relation}: the later not held", sum(not fate.held for fate in found.values()), note=note)


def _missed(pair: Pair, fate: Fate) -> bool:
    if pair.relation in NEVER_ONE:
        return fate.taken_for_one
    if pair.relation == "refine":
        return not fate.held
    return not (fate.joined if pair.relation == "same" else fate.superseded)


def _with_model(options: argparse.Namespace) -> None:
    """Print what became of all pairs whose prompts have answers; hand over those that have none."""
    wanted = [each for each in batches(pairs(options.data)) if each.name in (options.only or [each.name])]
    if not wanted:
        sys.exit("pairs: there is no such batch. Batches are en01, en02 and so on, and zh01.")
    fates: dict[Pair, Fate] = {}
    waiting = []
    for batch in wanted:
        answers = Answers(
            options.recorded / f"{batch.name}.answers.jsonl", options.ask and options.ask / batch.name, options.wait
        )
        try:
            fates |= told(batch, HandedModel(answer=answers.exact))
        except Unanswered:
            waiting.append(batch.name)
            continue
        if options.ask:
            answers.keep_used()
    for pair, fate in fates.items() if options.shown else ():
        if _missed(pair, fate):
            print(
                f"{fate}{'' if fate.held else ', the later not held'}: {pair.relation}: {pair.earlier} | {pair.later}"
            )
    for name in waiting:
        print(f"{name}: not answered yet.")
    finish(list(_model_figures(fates, whole=not waiting)))


# ---------------------------------------------------------------------------------------------- the command


def main() -> None:
    """Send every pair through every door, or to a model, and print how many were taken for one."""
    parser = argparse.ArgumentParser(prog="python -m evals pairs", description="Statements that must stay two.")
    parser.add_argument("--data", type=Path, default=DATA, help="Pairs, as JSON lines.")
    parser.add_argument("--shown", action="store_true", help="Print the pairs that were taken for one, or missed.")
    parser.add_argument("--model", action="store_true", help="Tell them to a model, rather than at the doors.")
    parser.add_argument("--recorded", type=Path, default=_ANSWERS, help="Folder of the model's answers.")
    parser.add_argument("--ask", type=Path, help="Folder where new prompts of the model wait.")
    parser.add_argument("--wait", action="store_true", help="Wait for their answers.")
    parser.add_argument("--only", action="append", help="A batch, as en01; repeatable.")
    options = parser.parse_args()
    if options.model:
        _with_model(options)
    else:
        _at_doors(pairs(options.data), shown=options.shown)


def _at_doors(asked: Sequence[Pair], *, shown: bool) -> None:
    figures: list[Figure] = []
    for name, door in DOORS.items():
        taken = measured(asked, door)
        two = [pair for pair in taken if pair.relation in NEVER_ONE]
        newer = [pair for pair, lost in taken.items() if lost == "later"]
        of = sum(pair.relation in NEVER_ONE for pair in asked)
        figures.append(Figure(f"{name}: two taken for one", len(two), 0, "exactly", note=f"of {of} pairs"))
        figures.append(Figure("  the newer loses", len(newer), 0, "exactly", note=f"of {len(asked)} pairs"))
        figures.append(Figure("  of all pairs taken for one", len(taken), note=f"of {len(asked)} pairs"))
        for pair, lost in taken.items() if shown else ():
            print(f"{name}: {lost}: {pair.relation}: {pair.earlier} | {pair.later}")
    finish(figures)


if __name__ == "__main__":
    main()
