"""What memory costs an agent, through the middleware as it comes: model calls, tokens, prompt cache, waiting, recall.

    python -m evals turns [--page docs/benchmarks.md] [--only calls prompt waiting learned fair recall]

Models are scripted, answer as a careful one would, and have no latency unless it is named. Tokens are estimated, four
characters each, tools and schemas included. *Cached* is what of a prompt an earlier call of the last five minutes began
with, where that is at least 1,024 tokens, as providers have it; minutes are those of the kit's own clock, which goes on
by one minute a turn.

- calls: a person and an agent say 100 messages, in one session or in ten on ten days; every memory is made in the end.
- prompt: the host calls two tools a turn, each of which returns 6,000 characters, for eight turns. Its input is compared
  with that of the same agent without memory. A note is whatever stands in a prompt that nobody said. What is more than
  all notes and tools of memory, each once, is what moving them costs.
- waiting: by wall clock, how much longer such a turn takes with memory than without, where ten people have said 200
  messages each before; both in turn, conversations of eight turns, the model answers at once. What memory does after the
  turn is not part of it.
- learned: seconds from the end of a turn until a memory of it is there, with a model that takes .5 s a call. Each turn is
  cut at once: nobody waits for a pause here. Once more for twenty users from when their words are cut, while another one
  recalls: its p95 stands beside that of a quiet kit.
- fair: two users have sixty blocks each that wait, and two jobs are done at once; then a third user says one thing.
- recall: by wall clock, one user alone and sixteen at once, beside the queries that it stands on (full text and Chroma,
  with nothing around them) under the same load, in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import tempfile
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import numpy as np
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from evals._figures import Figure, block, finish
from evals._limits import RawBucket, raw_ledger
from evals._pages import how, place
from evals._talk import PER_MEMORY, Talk, learn
from evals._timing import Ask, loaded
from remegraph import AgentMemorySettings, CapturePolicy, ExtractionPolicy, MemoryKit, Scope, Settings
from remegraph.adapters import MemoryMiddleware
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.models import ChangeSet
from remegraph.testing import FrozenClock, ModelCall, ScriptedChatModel

__all__ = ["Meter", "Prompt", "Session", "beyond", "delays", "main", "prompt", "session"]

ANN = Scope(user="Ann", agent="remy")
_CACHE_LEAST, _CACHE_KEPT = 1024, timedelta(minutes=5)
_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)
_COLOURS = "red green blue white black".split()
_THINGS = "bicycle teapot kite lamp rug violin tent clock chair kettle".split()
_PLACES = "Cardiff Lisbon Oslo Kyoto Quito Perth Tunis Turin Split Bergen".split()
_FACTS = [
    f"{colour} {thing} in {_PLACES[(at * 3 + number) % 10]}"
    for at, colour in enumerate(_COLOURS)
    for number, thing in enumerate(_THINGS)
]
_SMALL_TALK = "How would you spend a rainy afternoon such as this one, if nobody wanted anything of you?"
_ANSWER = "That sounds like a good choice, and I hope that it serves you well. Tell me more about it whenever you like."
_SYSTEM = (
    "You are a careful assistant who answers in plain words. " + "Weigh what you are told, and say what you do. " * 100
)
_FRAME = 4
"""Tokens of a message beside its text."""
_TOOL_OUTPUT = 6_000
_PATIENCE = 600.0
_WAITING = 60
"""Blocks of each of two who talk much."""
_EACH_TURN = AgentMemorySettings(extraction=ExtractionPolicy(trigger="per-turn"))


def estimated(text: str) -> int:
    """Return how many tokens a text has, by the estimate."""
    return len(text) // 4


@dataclass
class Meter:
    """Books what a model is sent and what it answers, as a provider would.

    Args:
        clock: Tells when.
    """

    clock: Callable[[], datetime]
    sent: list[tuple[datetime, str]] = field(default_factory=list)
    written: int = 0
    """Tokens of all answers."""

    def steps(self, **steps: Callable[[ModelCall], Any]) -> dict[str, Any]:
        """Return the steps of a script by schema (`host`: where none is asked for), each booked."""
        return {name.replace("host", ""): partial(self._book, step) for name, step in steps.items()}

    def _book(self, step: Callable[[ModelCall], Any], call: ModelCall) -> Any:
        self.sent.append((self.clock(), rendered(call)))
        answer = step(call)
        self.written += estimated(answer.text if isinstance(answer, AIMessage) else json.dumps(answer))
        return answer

    @property
    def tokens(self) -> int:
        """All that was sent."""
        return sum(estimated(text) for _, text in self.sent)

    @property
    def cached(self) -> int:
        """What of it a provider had in its cache."""
        found = 0
        for at, (now, text) in enumerate(self.sent):
            recent = (other for then, other in self.sent[:at] if now - then <= _CACHE_KEPT)
            shared = estimated(text[: max((_shared(text, other) for other in recent), default=0)])
            found += shared if shared >= _CACHE_LEAST else 0
        return found


def rendered(call: ModelCall) -> str:
    """Return a call as one text, in the order in which providers cache: tools, then what was said."""
    said = (f"{each.type}: {each.text}{json.dumps(getattr(each, 'tool_calls', []))}" for each in call.messages)
    return "\n".join((json.dumps(call.instructions), *said))


def _shared(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    return bisect_right(range(1, min(len(one), len(other)) + 1), 0, key=lambda end: one[:end] != other[:end])


def _digest(call: ModelCall) -> Mapping[str, Any]:
    topics = re.findall(r"^(personal:.+?) - ", call.text, re.MULTILINE)[:1] if _facts_in(call.text) else []
    return {"summary": "Ann tells what she bought.", "entities": [], "topics": topics}


def _propose(call: ModelCall) -> Mapping[str, Any]:
    found = _facts_in(call.text)
    return {
        "operations": [
            {
                "action": "CREATE",
                "content": f"Ann bought a {fact}.",
                "evidence": [{"n": number, "quote": f"I bought a {fact}"}],
                "importance": 0.5,
            }
            for fact, number in found.items()
        ]
    }


def _facts_in(text: str) -> dict[str, int]:
    """Return the facts that a block tells, with the numbers of their messages; what was said before it has others."""
    lines = re.findall(r"^(\d+) .*I bought a (\w+ \w+ in \w+)", text.rpartition("\nBlock:\n")[2], re.MULTILINE)
    return {fact: int(number) for number, fact in lines}


def _memory_model(meter: Meter, latency: float = 0.0) -> ScriptedChatModel:
    steps = meter.steps(DigestAnswer=_digest, ProposalAnswer=_propose, VerdictAnswer=lambda _: {"objections": []})
    return ScriptedChatModel(script=steps, latency=latency)


def _known(kit: MemoryKit, count: int) -> None:
    """Let so many memories of Ann be there."""
    kept = (f"Ann keeps the {' '.join(each)} on a shelf in the hall." for each in product(_COLOURS, _THINGS, _PLACES))
    if count:
        learn(kit, Talk().memories(ANN.partition(), count, "known", kept))


def settle(kit: MemoryKit) -> None:
    """Wait until nothing is under way in the background; what sleeps until later may."""
    ends = time.monotonic() + _PATIENCE
    while any(
        job.state in {"waiting", "running"} or (job.state == "later" and job.attempts) for job in kit.admin.jobs()
    ):
        if time.monotonic() > ends:
            raise TimeoutError("What a turn left to do is not done.")
        time.sleep(0.005)


@dataclass(frozen=True)
class Session:
    """What a hundred messages cost."""

    calls: int
    sent: int
    cached: int
    written: int
    learned: float
    """Share of the facts told that a memory holds in the end."""


def session(
    sessions: int, known: int, *, turns: int = 50, middleware: Callable[..., Any] = MemoryMiddleware
) -> Session:
    """Talk for so many turns in all, and let everything be learned.

    Args:
        sessions: On as many days.
        known: Memories that are there before.
        turns: A message of a person and an answer each.
        middleware: Made with a kit and a scope.
    """
    clock = FrozenClock()
    meter = Meter(clock)
    host = ScriptedChatModel(script={"": lambda _: AIMessage(_ANSWER)})
    told = [fact for number, fact in enumerate(_FACTS[:turns]) if number % 5 < 3]
    with (
        tempfile.TemporaryDirectory() as home,
        MemoryKit.open(home, model=_memory_model(meter), embedder=None, clock=clock) as kit,
    ):
        _known(kit, known)
        agent: Any = create_agent(host, middleware=[middleware(kit, ANN)], checkpointer=InMemorySaver())
        for number in range(turns):
            fact = f"I bought a {_FACTS[number]} and brought it home at last. What do you say to that?"
            here = number * sessions // turns
            clock.move(_DAY if here != (number - 1) * sessions // turns else _MINUTE)
            words = fact if number % 5 < 3 else f"{_SMALL_TALK} That is question {number}."
            agent.invoke({"messages": [("user", words)]}, {"configurable": {"thread_id": f"session {here}"}})
            settle(kit)
        clock.move(_DAY)
        kit.drain()
        held = {memory.content for memory in kit.memories(scope=ANN)}
    learned = sum(f"Ann bought a {fact}." in held for fact in told) / len(told)
    return Session(len(meter.sent), meter.tokens, meter.cached, meter.written, learned)


def _calls(turns: int) -> list[Figure]:
    figures: list[Figure] = []
    for sessions, known in product((1, 10), (0, 50, 200)):
        cost = session(sessions, known, turns=turns)
        name = f"{'one session' if sessions == 1 else f'{sessions} sessions'}, {known} known"
        note = f"tokens: {cost.sent:,} sent, {cost.cached:,} of them cached, {cost.written:,} written"
        figures += [
            Figure(f"{name}: model calls", cost.calls * 50 / turns, 25, note=note),
            Figure(f"{name}: facts learned", cost.learned, 0.95, "at least"),
        ]
    return figures


@tool
def look_up(what: str) -> str:
    """Look something up."""
    row = f"{what}: " + " ".join(_PLACES) + ". "
    return (row * (_TOOL_OUTPUT // len(row) + 1))[:_TOOL_OUTPUT]


@dataclass(frozen=True)
class Prompt:
    """What a host's model was sent."""

    uncached: int
    tokens: int
    tools: int
    """Tokens of the tools that it was offered."""
    texts: tuple[tuple[str, ...], ...]
    """What stood in each call, by message."""


def _host(call: ModelCall, looks: int = 2) -> AIMessage:
    """Call tools, then answer."""
    calls = 0
    for message in reversed(call.messages):
        if isinstance(message, AIMessage) and not message.tool_calls:
            break
        calls += message.type == "tool"
    turn = sum(isinstance(message, AIMessage) and not message.tool_calls for message in call.messages)
    if calls == looks:
        return AIMessage(f"{_ANSWER} That was answer {turn}.")
    args = {"what": f"question {turn}, part {calls}"}
    return AIMessage("", tool_calls=[{"name": look_up.name, "args": args, "id": f"{turn} {calls}"}])


def prompt(
    middleware: Callable[[MemoryKit, Scope], Any] | None,
    *,
    turns: int = 8,
    looks: int = 2,
    known: int = 50,
    waits: bool = True,
) -> Prompt:
    """Let an agent work for so many turns.

    Args:
        middleware: Made with a kit and a scope; none: the agent has no memory.
        turns: How often it is spoken to.
        looks: Tool calls of a turn.
        known: Memories that are there before.
        waits: Whether it is called by `invoke`, else by `ainvoke`.
    """
    clock = FrozenClock()
    meter = Meter(clock)
    model = ScriptedChatModel(script=meter.steps(host=partial(_host, looks=looks)))
    with (
        tempfile.TemporaryDirectory() as home,
        MemoryKit.open(home, model=_memory_model(Meter(clock)), embedder=None, clock=clock) as kit,
    ):
        _known(kit, known)
        agent: Any = create_agent(
            model,
            [look_up],
            system_prompt=_SYSTEM,
            middleware=[middleware(kit, ANN)] if middleware else [],
            checkpointer=InMemorySaver(),
        )
        for number in range(turns):
            clock.move(_MINUTE)
            words = f"I bought a {_FACTS[number]}. Which {_THINGS[number]} do I keep, and where did I get it?"
            asked = {"messages": [("user", words)]}, {"configurable": {"thread_id": "work"}}
            agent.invoke(*asked) if waits else asyncio.run(agent.ainvoke(*asked))
            settle(kit)
    texts = tuple(tuple(message.text for message in call.messages) for call in model.calls)
    tools = estimated(json.dumps(model.calls[0].instructions))
    return Prompt(meter.tokens - meter.cached, meter.tokens, tools, texts)


def notes(bare: Prompt, remembering: Prompt) -> list[str]:
    """Return what memory put into the prompts, each note once.

    Args:
        bare: The same agent without memory.
        remembering: With it.
    """
    said = {text for texts in bare.texts for text in texts}
    added = {text for texts in remembering.texts for text in texts} - said
    return [text.replace(max((one for one in said if one in text), key=len, default=""), "", 1) for text in added]


def beyond(bare: Prompt, remembering: Prompt) -> int:
    """Return by how many uncached tokens memory costs more than its notes and tools, each once."""
    once = sum(estimated(note) + _FRAME for note in notes(bare, remembering)) + remembering.tools - bare.tools
    return remembering.uncached - bare.uncached - once


def _prompt() -> list[Figure]:
    bare, remembering = prompt(None), prompt(MemoryMiddleware)
    sizes = [estimated(note) for note in notes(bare, remembering)]
    more = remembering.uncached / bare.uncached
    note = f"{remembering.uncached:,} of {remembering.tokens:,} and {bare.uncached:,} of {bare.tokens:,} tokens"
    return [
        Figure("host's uncached input, with memory / without", more, unit="x", note=note),
        Figure("notes in eight turns", sum(sizes), unit="tokens", note=f"{len(sizes)} notes, largest {max(sizes)}"),
        Figure("tools of memory", remembering.tools - bare.tools, unit="tokens"),
        Figure("uncached beyond notes and tools, each once", beyond(bare, remembering), 0, unit="tokens"),
    ]


def delays(users: int, turn: Callable[[int], object], learned: Callable[[int], bool]) -> list[float]:
    """Return the seconds from the end of each user's turn until it is learned; all turns begin at once.

    Args:
        users: How many.
        turn: Takes the turn of a user, by number.
        learned: Whether it is learned.
    """
    together = Barrier(users)

    def take(user: int) -> float:
        together.wait()
        turn(user)
        return time.monotonic()

    with ThreadPoolExecutor(users) as pool:
        ended = dict(enumerate(pool.map(take, range(users))))
    seconds: dict[int, float] = {}
    while waiting := ended.keys() - seconds.keys():
        if time.monotonic() - max(ended.values()) > _PATIENCE:
            raise TimeoutError(f"{len(waiting)} of {users} turns were not learned.")
        seconds |= {user: time.monotonic() - ended[user] for user in waiting if learned(user)}
        time.sleep(0.02)
    return list(seconds.values())


def _learned(latency: float) -> list[Figure]:
    worst: dict[int, float] = {}
    figures: list[Figure] = []
    for users in (1, 6, 20):
        model = _memory_model(Meter(lambda: datetime.now(UTC)), latency)
        scopes = [Scope(user=f"user {number}", agent="remy") for number in range(users)]
        host = ScriptedChatModel(script={"": lambda _: AIMessage(_ANSWER)})
        with (
            tempfile.TemporaryDirectory() as home,
            MemoryKit.open(settings=Settings(home=Path(home), agent=_EACH_TURN), model=model, embedder=None) as kit,
        ):
            kit.summarize(scope=Scope(user="nobody", agent="remy"))  # what is built at first use is there
            agents = [create_agent(host, middleware=[MemoryMiddleware(kit, scope)]) for scope in scopes]

            def turn(user: int, agents: Sequence[Any] = agents) -> None:
                agents[user].invoke({"messages": [("user", f"I bought a {_FACTS[user]} for myself.")]})

            def learned(user: int, kit: MemoryKit = kit, scopes: Sequence[Scope] = scopes) -> bool:
                return bool(kit.memories(scope=scopes[user]))

            seconds = delays(users, turn, learned)
        worst[users] = max(seconds)
        what = f"{users} user{'s' * (users > 1)} at once: last turn learned after"
        note = f"median {statistics.median(seconds):.1f} s; {model.most_at_once} model calls at once"
        figures.append(Figure(what, worst[users], unit="s", note=note))
    return [
        *figures,
        Figure("last of 6 users / of 1", worst[6] / worst[1], 2, unit="x"),
        Figure("last of 20 users / of 1", worst[20] / worst[1], 4, unit="x"),
        *_beside(latency),
    ]


def _say(kit: MemoryKit, scope: Scope, number: int) -> None:
    """Let a user say one thing in a conversation of its own, which is cut at once."""
    words = f"I bought a {_FACTS[number % len(_FACTS)]} for myself."
    talk = [{"role": "user", "content": words}, {"role": "assistant", "content": _ANSWER}]
    kit.capture(talk, scope=scope, thread=f"talk {number}")
    kit.end_session(f"talk {number}", scope=scope)


def _recalled(kit: MemoryKit, until: Callable[[int], bool]) -> list[float]:
    """Return the milliseconds that recalls of one user take, one after the other with pauses."""
    taken: list[float] = []
    while not until(len(taken)):
        began = time.perf_counter()
        kit.recall("Which bicycle did I buy, and where?", scope=ANN)
        taken.append(1000 * (time.perf_counter() - began))
        time.sleep(0.02)
    return taken


def _beside(latency: float) -> list[Figure]:
    """Let twenty users speak at once, and another one recall meanwhile."""
    scopes = [Scope(user=f"user {number}", agent="remy") for number in range(20)]
    model = _memory_model(Meter(lambda: datetime.now(UTC)), latency)
    with tempfile.TemporaryDirectory() as home, MemoryKit.open(home, model=model, embedder=None) as kit:
        _say(kit, ANN, 0)
        settle(kit)
        quiet = _recalled(kit, lambda number: number == 200)
        with ThreadPoolExecutor(1) as pool:
            learning = pool.submit(
                delays,
                20,
                lambda user: _say(kit, scopes[user], user),
                lambda user: bool(kit.memories(scope=scopes[user])),
            )
            beside = _recalled(kit, lambda _: learning.done())
        seconds = learning.result()
    before, during, cut = (float(np.percentile(each, 95)) for each in (quiet, beside, seconds))
    note = f"median {statistics.median(seconds):.1f} s; {model.most_at_once} model calls at once"
    return [
        Figure("20 users at once: from cut to learned, p95", cut, 5, unit="s", note=note),
        Figure("recall beside them / on a quiet kit, p95", during / before, 2, unit="x", note=f"{during:.1f} ms"),
    ]


def _fair(latency: float) -> list[Figure]:
    """Let a third user say one thing while two others have much that waits."""
    first, alone, third, *talkers = (Scope(user=f"user {number}", agent="remy") for number in range(5))
    model = _memory_model(Meter(lambda: datetime.now(UTC)), latency)
    with tempfile.TemporaryDirectory() as home, ThreadPoolExecutor(1) as pool:
        settings = Settings(home=Path(home), agent=_EACH_TURN, capture=CapturePolicy(background=False, poll=0.1))
        with MemoryKit.open(settings=settings, model=model, embedder=None) as kit:

            def seconds(scope: Scope) -> float:
                return delays(1, lambda _: _say(kit, scope, 0), lambda _: bool(kit.memories(scope=scope)))[0]

            stop = Event()
            working = pool.submit(kit.work.serve, stop, concurrency=2)
            try:
                seconds(first)  # what is built at first use is there
                own = seconds(alone)
                for number, talker in product(range(_WAITING), talkers):
                    _say(kit, talker, number)
                waited = seconds(third)
            finally:
                stop.set()
            working.result()
    note = f"{waited:.1f} s, alone {own:.1f} s"
    return [Figure("one block beside two users of 60, two jobs at once / alone", waited / own, 3, unit="x", note=note)]


@contextmanager
def _history(home: Path, messages: int, users: int) -> Iterator[tuple[MemoryKit, Talk, list[str]]]:
    """Give a kit over a history of so many messages, and what is learned from it."""
    talk = Talk()
    with MemoryKit.open(settings=Settings(home=home), model=None, embedder=None) as kit:
        made: list[ChangeSet] = []
        for user in range(users):
            scope = talk.scope(user)
            kit.add_messages(talk.messages(messages // users), scope=scope)
            made.append(talk.memories(scope.partition(), messages // users // PER_MEMORY, f"of {user}"))
        learn(kit, *made)
        yield kit, talk, [change.memory.indexed_text for each in made for change in each.changes]


@contextmanager
def _filled(messages: int, users: int) -> Iterator[tuple[Callable[[], AbstractContextManager[Ask]], ...]]:
    """Give recall and the queries below it over a history of so many messages."""
    embedder = HashedEmbedder()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with _history(home, messages, users) as (kit, talk, said):
            bucket = RawBucket(Path(folder), embedder.embed(said), messages // users // PER_MEMORY)
            asked = list(talk.questions(1_000, users))
            vectors = embedder.embed([question for _, question in asked])

            def recall(number: int) -> object:
                scope, question = asked[number % len(asked)]
                return kit.recall(question, scope=scope)

            @contextmanager
            def raw() -> Iterator[Ask]:
                with raw_ledger(home / "ledger.sqlite") as ledger:

                    def ask(number: int) -> object:
                        scope, question = asked[number % len(asked)]
                        found = ledger.full_text(scope.user or "", question)
                        return found + bucket.query(number, vectors[number % len(asked)])

                    yield ask

            yield lambda: nullcontext(recall), raw


def added(messages: int, users: int, *, rounds: int = 50, waits: bool = True) -> list[tuple[float, float]]:
    """Return by how many milliseconds memory makes each turn longer, by wall clock and of the processor for its thread.

    Args:
        messages: History of all users.
        users: How many there are.
        rounds: Turns, with and without memory each.
        waits: Whether the agent is called by `invoke`, else by `ainvoke`.
    """
    found: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder, _history(Path(folder), messages, users) as (kit, talk, _):
        model = ScriptedChatModel(script={"": _host})
        agents: list[Any] = [
            create_agent(model, [look_up], middleware=memory, context_schema=Scope, checkpointer=InMemorySaver())
            for memory in ([], [MemoryMiddleware(kit)])
        ]
        for number, (scope, question) in enumerate(talk.questions(rounds, users)):
            taken: list[tuple[float, float]] = []
            for agent in agents:
                asked = {"messages": [("user", f"{question} I ask for {number}.")]}
                config: Any = {"configurable": {"thread_id": scope.user}}
                began = time.perf_counter(), time.thread_time()
                if waits:
                    agent.invoke(asked, config, context=scope)
                else:
                    asyncio.run(agent.ainvoke(asked, config, context=scope))
                taken.append((time.perf_counter() - began[0], time.thread_time() - began[1]))
            settle(kit)
            (wall, processor), (more_wall, more_processor) = taken
            found.append((1000 * (more_wall - wall), 1000 * (more_processor - processor)))
    return found


def _waiting(turns: int) -> list[Figure]:
    figures: list[Figure] = []
    for waits in (True, False):
        wall, processor = zip(*added(2_000, 10, rounds=turns, waits=waits), strict=True)
        p50, p95 = (float(np.percentile(wall, percentile)) for percentile in (50, 95))
        name = f"memory adds to a turn of three model calls, {'invoke' if waits else 'ainvoke'}, p95"
        note = f"p50 {p50:.1f} ms"
        if waits:  # else others do the work
            note += (
                f"; of the processor {np.percentile(processor, 50):.1f} ms, p95 {np.percentile(processor, 95):.1f} ms"
            )
        figures.append(Figure(name, p95, 60, unit="ms", note=note))
    return figures


def ratios(ours: Mapping[int, Sequence[float]], raw: Mapping[int, Sequence[float]]) -> Iterator[Figure]:
    """Yield p50 and p95 of recall, and how many times the queries below it that is.

    Args:
        ours: Milliseconds, by users at once.
        raw: The same of the queries below.
    """
    for users, percentile in product(ours, (50, 95)):
        taken, least = (float(np.percentile(each[users], percentile)) for each in (ours, raw))
        name = f"recall, {'one user alone' if users == 1 else f'{users} users at once'}, p{percentile}"
        note = f"{taken:.1f} ms, raw queries {least:.1f} ms"
        yield Figure(f"{name} / raw queries", taken / least, 3, unit="x", note=note)


def _recall(messages: int, users: int) -> list[Figure]:
    taken: tuple[dict[int, list[float]], ...] = ({}, {})
    with _filled(messages, users) as both:
        for _ in range(4):
            for at_once, (found, asking) in product((1, 16), zip(taken, both, strict=True)):
                found.setdefault(at_once, []).extend(loaded(at_once, 100 if at_once == 1 else 12, asking))
    return list(ratios(*taken))


def main(argv: Sequence[str] | None = None) -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="python -m evals turns", description="What memory costs an agent.")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=["calls", "prompt", "waiting", "learned", "fair", "recall"],
        help="Only these parts.",
    )
    parser.add_argument("--turns", type=int, default=50, help="Turns of a conversation: 50 have a hundred messages.")
    parser.add_argument("--latency", type=float, default=0.5, help="Seconds of a model call where turns are learned.")
    parser.add_argument("--messages", type=int, default=20_000, help="History where recall is timed.")
    parser.add_argument("--users", type=int, default=100, help="Users whose history that is.")
    parser.add_argument("--page", type=Path, help="A page with places for the tables, as docs/benchmarks.md.")
    options = parser.parse_args(argv)
    parts: dict[str, Callable[[], list[Figure]]] = {
        "calls": lambda: _calls(options.turns),
        "prompt": _prompt,
        "waiting": lambda: _waiting(options.turns),
        "learned": lambda: _learned(options.latency),
        "fair": lambda: _fair(options.latency),
        "recall": lambda: _recall(options.messages, options.users),
    }
    places, found = {"turns how": how("turns", ["remegraph"])}, list[Figure]()
    for name in options.only or parts:
        figures = parts[name]()
        places[f"turns {name}"] = block(figures)
        found += figures
    place(options.page, places)
    finish(found)


if __name__ == "__main__":
    main()
