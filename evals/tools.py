"""What is learned of tools by the first half of their calls, held against the second half.

    python -m evals tools --data tau_tool_calls_dev.jsonl

A file holds one call per line, as `_tool_calls.py` says. The first half is recorded as a conversation and summarised
without a model; then the guidelines are written. The error rate that `kit.tools.predict` expects is compared with how
the calls of the second half went, beside a constant: the error rate of the first half. Over bins of expected rates a constant
is calibrated whenever the two halves fail alike, and tells nothing of any tool; so the bar is for the error by tool. For the guidelines it is counted
whether they keep to their limit, and whether the calls that they cite are there. Which tool is for this? is asked with the
situations of the second half: what a person would ask for, by the templates in `tool_calls.toml`.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evals._figures import Figure, finish
from evals._tool_calls import messages_of, situations
from remegraph import MemoryKit, Scope, Settings
from remegraph.skills.tool_guidelines import MOST_WORDS
from remegraph.testing import InMemoryVectorIndex
from remegraph.text.sentences import length

__all__ = ["calibration", "figures", "main"]

_SCOPE = Scope(user="ann", agent="remy")
_BINS = 10
_CITED = re.compile(r"\[([^\[\]]+)\]")


def calibration(expected: Sequence[float], failed: Sequence[bool]) -> tuple[float, float]:
    """Return the calibration error over ten bins (Guo et al., 2017), and the Brier score.

    Args:
        expected: The error rates.
        failed: Whether each call failed.
    """
    rates, went = np.array(expected), np.array(failed, dtype=float)
    bins = np.minimum((rates * _BINS).astype(int), _BINS - 1)
    error = sum(abs(float(np.sum(went[bins == each] - rates[bins == each]))) for each in set(bins.tolist())) / len(went)
    return error, float(np.mean((rates - went) ** 2))


def figures(calls: Sequence[Mapping[str, Any]]) -> Iterator[Figure]:
    """Yield what was learned of the tools.

    Args:
        calls: As the file has them.
    """
    half = len(calls) // 2
    known, later = calls[:half], calls[half:]
    with (
        tempfile.TemporaryDirectory() as home,
        MemoryKit.open(
            settings=Settings(home=Path(home)), model=None, embedder=None, index=InMemoryVectorIndex()
        ) as kit,
    ):
        messages = [message for number, call in enumerate(known) for message in messages_of(number, call)]
        kit.add_messages(messages, scope=_SCOPE)
        kit.summarize(scope=_SCOPE, close=True)
        report = kit.tools.refresh(scope=_SCOPE)
        rates = {tool: kit.tools.predict(tool, scope=_SCOPE) for tool in {call["tool"] for call in later}}
        yield from _predicted([rates[call["tool"]] for call in later], known, later)
        real = {asked["call_id"] for message in messages for asked in message.get("tool_calls", ())}
        yield from _written([memory.content for memory in report.written], real)
        yield from _advised(kit, situations(later))


def _by_tool(expected: Sequence[float], failed: Sequence[bool], tools: Sequence[str]) -> float:
    """Return by how much the error rate of a call's tool differs from what was expected of it, on average."""
    rates, went, names = np.array(expected), np.array(failed, dtype=float), np.array(tools)
    return sum(abs(float(np.sum(went[names == each] - rates[names == each]))) for each in set(tools)) / len(went)


def _predicted(
    rates: Sequence[float], known: Sequence[Mapping[str, Any]], later: Sequence[Mapping[str, Any]]
) -> Iterator[Figure]:
    failed = [not call["ok"] for call in later]
    constant = sum(not call["ok"] for call in known) / len(known)
    beside_error, beside_brier = calibration([constant] * len(failed), failed)
    error, brier = calibration(rates, failed)
    tools = [call["tool"] for call in later]
    yield Figure("calls of the second half", len(failed), note=f"{sum(failed)} failed")
    beside = _by_tool([constant] * len(failed), failed, tools)
    yield Figure("calibration error by tool, constant guess", beside)
    yield Figure("calibration error by tool", _by_tool(rates, failed, tools), beside, "under")
    yield Figure("calibration error over ten bins, constant guess", beside_error)
    yield Figure("calibration error over ten bins", error)
    yield Figure("Brier score, constant guess", beside_brier)
    yield Figure("Brier score", brier, beside_brier, "under")


def _written(guidelines: Sequence[str], real: set[str]) -> Iterator[Figure]:
    cited = [set(_CITED.findall(text)) for text in guidelines]
    yield Figure("guidelines", len(guidelines))
    yield Figure("longest guideline", max(map(length, guidelines)), MOST_WORDS, "at most", "words")
    share = sum(bool(each) and each <= real for each in cited) / len(cited)
    yield Figure("guidelines that cite real calls", share, 1, "at least")


def _advised(kit: MemoryKit, asked: Sequence[tuple[str, str]]) -> Iterator[Figure]:
    found = [[advice.tool for advice in kit.tools.advise(text, scope=_SCOPE)] for text, _ in asked]
    first = [tools[:1] == [tool] for tools, (_, tool) in zip(found, asked, strict=True)]
    among = [tool in tools for tools, (_, tool) in zip(found, asked, strict=True)]
    yield Figure("which tool: situations", len(asked))
    yield Figure("which tool: top 1", sum(first) / len(first))
    yield Figure("which tool: top 3", sum(among) / len(among))


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m evals tools", description="What is learned of tools.")
    parser.add_argument("--data", type=Path, help="A file of tool calls.")
    options = parser.parse_args(argv)
    if options.data is None:
        print("tools: give --data tau_tool_calls_dev.jsonl, one call per line:")
        print(
            '  {"tool": "book", "args": "{\\"to\\": \\"JFK\\"}", "result": "Error: no seats", "ok": false, "task": 1, "trial": 0}'
        )
        return
    finish(list(figures([json.loads(line) for line in options.data.read_text(encoding="utf-8").splitlines() if line])))


if __name__ == "__main__":
    main()
