"""What is said of a tool without a model, and what a model may say."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remegraph.models import ToolWindow, TypicalError
from remegraph.rules.summarising import length
from remegraph.rules.tool_guidelines import MOST_WORDS, changed, facts_of, guideline, objection, situation

pytestmark = pytest.mark.requirement("R12")

_TEXT = st.text(max_size=400) | st.text("错误[] \n词", max_size=400)
_ERROR = st.builds(TypicalError, kind=_TEXT, count=st.integers(1, 50), error=_TEXT, call_id=st.text(max_size=80))
_WINDOW = st.builds(
    ToolWindow,
    calls=st.integers(0, 50),
    succeeded=st.integers(0, 50),
    failed=st.integers(0, 50),
    median_seconds=st.none() | st.floats(0, 1e6),
    p95_seconds=st.none() | st.floats(0, 1e6),
    errors=st.lists(_ERROR, max_size=5).map(tuple),
)
_NAMES = st.lists(st.lists(_TEXT, max_size=12), max_size=3)


@given(_TEXT, _WINDOW, st.lists(st.text(max_size=80), max_size=5), _NAMES, _NAMES, st.sampled_from(["en", "zh"]))
@settings(max_examples=25)
def test_what_code_says_keeps_the_rules_that_a_model_has_to_keep(
    tool: str,
    window: ToolWindow,
    worked: list[str],
    passed: list[list[str]],
    lacked: list[list[str]],
    language: Literal["en", "zh"],
) -> None:
    """At most 200 words, and no call that there is not, whatever tools, arguments and errors are called."""
    facts = facts_of(tool, window, worked, passed=passed, lacked=lacked)
    text = guideline(facts, language)
    assert length(text) <= MOST_WORDS
    assert set(re.findall(r"\[([^\[\]]*)\]", text)) <= facts.citable
    assert facts.citable <= {*worked, *(error.call_id for error in window.errors)}


def test_a_guideline_says_when_it_works_what_fails_and_what_to_pass() -> None:
    """An agent that reads it avoids the errors of the one before."""
    error = TypicalError(kind="payment method <id> not found", count=2, error="e", call_id="c2", message_id="m")
    window = ToolWindow(
        calls=5, succeeded=3, failed=2, low=0.2, high=0.9, median_seconds=1.5, p95_seconds=4, errors=(error,)
    )
    facts = facts_of("book", window, ["c5", "c4", "c1"], passed=[["user", "payment"]] * 3, lacked=[["user"]] * 2)
    assert guideline(facts, "en") == (
        "book: 3 of the last 5 calls with a known outcome succeeded (20% to 90% are likely). It worked in [c5] [c4]. "
        "Pass payment, user. Where it failed, payment was missing. "
        'It failed 2 times with "payment method <id> not found" [c2]. It takes 1.5 s, in 19 of 20 calls at most 4 s.'
    )
    assert guideline(facts, "zh") == (
        "book：最近 5 次已知结果的调用中成功 3 次（成功率大致在 20% 到 90% 之间）。成功的调用：[c5] [c4]。传入 payment、user。"
        "失败的调用缺少 payment。失败 2 次：“payment method <id> not found” [c2]。耗时中位数 1.5 秒，95% 的调用不超过 4 秒。"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Use it with care [c1].", ""),
        ("Use it [c1] and [c2].", ""),
        ("Use it [c9].", r"no calls \['c9'\]"),
        ("Use it with care.", "cites no call"),
        (" ".join(["word"] * 201) + " [c1]", "202 words"),
        ("词" * 200 + "[c1]", "201 words"),
    ],
    ids=range(6),
)
def test_what_a_model_says_is_refused_with_the_reason(text: str, problem: str) -> None:
    """A call that never happened is worse than no evidence; the model is told, and may try again."""
    found = objection(text, {"c1", "c2"})
    assert re.search(problem, found) if problem else not found


def test_without_calls_that_can_be_cited_none_need_be() -> None:
    """A host's ids may be anything; a guideline is worth having all the same."""
    assert objection("Use it.", set()) == ""


@pytest.mark.parametrize(
    ("window", "calls", "due"),
    [
        (ToolWindow(calls=10, succeeded=8, failed=2), 11, False),
        (ToolWindow(calls=10, succeeded=8, failed=2), 20, True),
        (ToolWindow(calls=10, succeeded=3, failed=7), 11, True),
        (ToolWindow(calls=10, succeeded=8, failed=2, errors=(TypicalError(kind="new", count=1, error="", call_id=""),)), 11, True),
        (ToolWindow(calls=10, succeeded=8, failed=2, errors=(TypicalError(kind="old", count=2, error="", call_id=""),)), 11, False),
        (ToolWindow(calls=10), 11, False),
    ],
    ids=["much the same", "twice as many", "worse than was likely", "a new error", "an old error", "unknown"],
)  # fmt: skip
def test_a_guideline_is_out_of_date_when_what_it_told_is(window: ToolWindow, calls: int, due: bool) -> None:
    """Each rewriting may cost a model call, and a version."""
    before = {"calls": 10, "low": 0.5, "high": 0.94, "errors": ["old"]}
    assert changed(before, window, calls) is due


def test_a_situation_is_told_in_words() -> None:
    """Nobody asks for `getUserDetails`."""
    told = situation("getUserDetails", ["user_id"], ["email"], ["Where does Ann live?"])
    assert told == "get user details; getUserDetails; user id; email; Where does Ann live?"
