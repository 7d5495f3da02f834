"""What a block costs: model calls, wall time, overlap, and instruction tokens, with a model that takes 0.5 s a call.

    python -m evals calls [--runs 5]

The ledger, the Chroma index and the graphs are real; only the model is scripted. Wall time is that of
`kit.summarize` on a warm kit: one block of another user went before, so imports and files are done. Each figure is
the median of the runs; calls are the most of any run.

Beside them stand figures of others, as measured on the same task with a stub of 0.5 s a call: ReMe 0.3.1.10
(calls serial), and what mem0 sends with one `add`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evals._figures import Figure, finish
from remegraph import MemoryKit, Message, Recall, Scope, Settings, SummaryPolicy, SummaryReport, ToolCall
from remegraph.engine.rendering import block_lines
from remegraph.language.tokens import estimate_tokens
from remegraph.testing import ModelCall, ScriptedChatModel

__all__ = ["CASES", "Case", "instruction_tokens", "main", "measure", "overlap"]

LATENCY = 0.5
_NOON = datetime(2025, 3, 4, 12, tzinfo=UTC)
_AGENT = "remy"


def _message(number: int, content: str, **fields: Any) -> Message:
    return Message(content=content, time=_NOON + timedelta(minutes=number), **fields)


def _said(number: int, content: str, name: str, **fields: Any) -> Message:
    return _message(number, content, role="user", name=name, **fields)


@dataclass(frozen=True)
class Case:
    """A block, what a model would say of each of its topics, and what must hold."""

    name: str
    block: Sequence[Message]
    learned: Mapping[str, tuple[str, int, str]]
    """By topic key: the memory, and the message number and the words that it rests on."""
    calls: int
    seconds: float
    at_once: int
    others: str
    """Calls and seconds of ReMe."""

    def model(self, latency: float = LATENCY) -> ScriptedChatModel:
        """Return the model that answers for this block."""
        digest = {"summary": "They talk about what they do and like.", "entities": [], "topics": list(self.learned)}
        steps = {"DigestAnswer": digest, "ProposalAnswer": self._propose, "VerdictAnswer": {"objections": []}}
        return ScriptedChatModel(script=steps, latency=latency)

    def _propose(self, call: ModelCall) -> dict[str, Any]:
        asked = call.text.partition("one topic: ")[2]
        content, number, quote = next(said for key, said in self.learned.items() if asked.startswith(key))
        evidence = [{"n": number, "quote": quote}]
        return {"operations": [{"action": "CREATE", "content": content, "when_to_use": content, "evidence": evidence}]}


CASES = (
    Case(
        name="one topic",
        block=[
            _said(0, "I love hiking in the hills of Wales.", "Ann"),
            _message(1, "That sounds lovely!", role="assistant", name=_AGENT),
        ],
        learned={"personal:Ann": ("Ann loves hiking in the hills of Wales.", 1, "I love hiking in the hills of Wales")},
        calls=2,
        seconds=1.2,
        at_once=1,
        others="ReMe: 6 calls, 3.2 s",
    ),
    Case(
        name="user + task + tool",
        block=[
            _said(0, "I always check the cash flow of Acme first.", "Ann", task="finance"),
            _message(
                1,
                "",
                role="assistant",
                name=_AGENT,
                task="finance",
                tool_calls=(ToolCall(name="web_search", args={"q": "Acme cash flow"}, call_id="call"),),
            ),
            _message(2, "The cash flow of Acme is fine.", role="tool", tool_call_id="call", ok=True, task="finance"),
        ],
        learned={
            "personal:Ann": ("Ann always checks the cash flow of Acme first.", 1, "I always check the cash flow"),
            "task:finance": ("Always check the cash flow of Acme first.", 1, "check the cash flow of Acme first"),
            "tool:web_search": ("web_search says that the cash flow of Acme is fine.", 3, "cash flow of Acme is fine"),
        },
        calls=4,
        seconds=1.3,
        at_once=3,
        others="ReMe: 12 calls, 6.1 s",
    ),
    Case(
        name="three users",
        block=[
            _said(0, "I love hiking in the hills of Wales.", "Ann"),
            _said(1, "I play chess on Sundays.", "Bob"),
            _said(2, "I drink green tea in the morning.", "Cleo"),
        ],
        learned={
            "personal:Ann": ("Ann loves hiking in the hills of Wales.", 1, "I love hiking in the hills of Wales"),
            "personal:Bob": ("Bob plays chess on Sundays.", 2, "I play chess on Sundays"),
            "personal:Cleo": ("Cleo drinks green tea in the morning.", 3, "I drink green tea in the morning"),
        },
        calls=4,
        seconds=1.3,
        at_once=3,
        others="ReMe: 16 calls, 8.2 s",
    ),
)


@dataclass(frozen=True)
class _Run:
    """What one block cost."""

    calls: tuple[ModelCall, ...]
    seconds: float
    recall_calls: int
    tokens: int


class _Verbs:
    """The verbs under measurement, sync or async, called alike."""

    def __init__(self, kit: MemoryKit, runner: asyncio.Runner | None) -> None:
        self._kit = kit
        self._runner = runner

    def summarize(self, scope: Scope) -> SummaryReport:
        if self._runner is None:
            return self._kit.summarize(scope=scope, close=True)
        coroutine: Coroutine[Any, Any, SummaryReport] = self._kit.asummarize(scope=scope, close=True)
        return self._runner.run(coroutine)

    def recall(self, scope: Scope) -> Recall:
        question = "What does Ann love?"
        if self._runner is None:
            return self._kit.recall(question, scope=scope, depth="messages")
        return self._runner.run(self._kit.arecall(question, scope=scope, depth="messages"))


def overlap(calls: Sequence[ModelCall]) -> int:
    """Return how many calls were under way at the same time, at most."""
    return max(sum(other.began <= call.began < other.ended for other in calls) for call in calls)


def instruction_tokens(calls: Sequence[ModelCall], block: Sequence[Message]) -> int:
    """Return what was sent, schemas included, less the block itself; estimated, since no vocabulary comes with us.

    The estimate is one token per four characters, by which ReMe's figure (17,500 characters) was made, too.
    """
    sent = sum(
        estimate_tokens(call.text) + sum(estimate_tokens(json.dumps(schema)) for schema in call.instructions)
        for call in calls
    )
    return sent - len(calls) * estimate_tokens(block_lines(block, "en"))


def measure(case: Case, home: Path, *, runs: int, use_async: bool = False, latency: float = LATENCY) -> list[_Run]:
    """Summarise the case's block for one new user after the other; the first one warms up and is not returned.

    Args:
        case: The block.
        home: An empty folder.
        runs: How many are measured.
        use_async: Whether the async twins are called.
        latency: Seconds that a call takes.
    """
    model = case.model(latency)
    settings = Settings(home=home, summary=SummaryPolicy(allowed_topics=("finance",)))
    found: list[_Run] = []
    with (
        asyncio.Runner() as runner,
        MemoryKit.open(settings=settings, model=model, embedder=None) as kit,
    ):
        verbs = _Verbs(kit, runner if use_async else None)
        for number in range(runs + 1):
            scope = Scope(user=f"user {number}", agent=_AGENT)
            kit.add_messages(case.block, scope=scope)
            before = len(model.calls)
            began = time.perf_counter()
            report = verbs.summarize(scope)
            seconds = time.perf_counter() - began
            calls = model.calls[before:]
            assert report.created == len(case.learned), report
            assert verbs.recall(scope).memories
            found.append(
                _Run(calls, seconds, len(model.calls) - before - len(calls), instruction_tokens(calls, case.block))
            )
    return found[1:]


def _figures(case: Case, mode: str, runs: Sequence[_Run]) -> list[Figure]:
    name = f"{case.name}, {mode}"
    serial = LATENCY * (2 if case.calls > 1 else 1)
    seconds = statistics.median(run.seconds for run in runs)
    return [
        Figure(f"{name}: calls", max(len(run.calls) for run in runs), case.calls, "exactly", note=case.others),
        Figure(f"{name}: at once", min(overlap(run.calls) for run in runs), case.at_once, "at least"),
        Figure(
            f"{name}: wall time", seconds, case.seconds, unit="s", note=f"ours beside the model: {seconds - serial:.3f}"
        ),
        Figure(f"{name}: calls of recall", max(run.recall_calls for run in runs), 0, "exactly", note="ReMe: 5, 2.7 s"),
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="python -m evals calls", description="What a block costs.")
    parser.add_argument("--runs", type=int, default=5, help="Blocks per case, beside the one that warms up.")
    options = parser.parse_args(argv)
    figures: list[Figure] = []
    modes: dict[str, bool] = {"sync": False, "async": True}
    for case in CASES:
        for mode, use_async in modes.items():
            with tempfile.TemporaryDirectory() as home:
                runs = measure(case, Path(home), runs=options.runs, use_async=use_async)
            figures += _figures(case, mode, runs)
            if case is CASES[0]:
                tokens = max(run.tokens for run in runs)
                note = "estimated, 4 characters each; ReMe about 4,400, mem0 about 8,000"
                figures.append(Figure(f"{case.name}, {mode}: instruction tokens", tokens, 1500, note=note))
    finish(figures)


if __name__ == "__main__":
    main()
