"""The page on agents is copied by people who build one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolCall

from remegraph.testing import ModelCall, ScriptedChatModel

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PAGE = Path(__file__).parents[2] / "docs/agents.md"


def _answer(call: ModelCall) -> AIMessage:
    """Save what was said; answer with what was recalled or found."""
    last = call.messages[-1].text
    if "colour" in last:
        return AIMessage("It is scarlet." if "scarlet" in call.text else "I do not know.")
    if "Remember" in last:
        return _calling("save_memory", key="home", content="Ann lives in Lisbon.")
    if last.endswith("?"):
        return _calling("search_memory", query="Where does Ann live?")
    return AIMessage(last)


def _calling(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name=name, args=args, id="1")])


@pytest.mark.requirement("B10", "C4", "C5", "C6", "C7", "C8")
def test_the_examples_run_one_after_the_other_and_print_what_they_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a scripted model in place of the provider's."""
    names: dict[str, Any] = {"model": ScriptedChatModel(script={"": _answer})}
    for code in _BLOCK.findall(_PAGE.read_text(encoding="utf-8")):
        runnable = code.replace("~/.my-agent", str(tmp_path)).replace('"openai:gpt-5-mini"', "model")
        exec(compile(runnable, str(_PAGE), "exec", dont_inherit=True), names)
    names["kit"].close()

    printed = capsys.readouterr().out
    for expected in (
        "Ann lives in Lisbon.",
        "Saved as new memory",
        "Bob is vegan. Bob is vegan.",
        "I moved to Porto.",
        'refund(invoice="{find_order.invoice}")',
        "find_order {'number': '77'}",
        "1.0 'Refund an order: find_order, refund' (version 1) is the only one",
        'pay_back(invoice="{find.invoice}", amount="{amount}")',
        "get_forecast: 2 of the last 3 calls",
    ):
        assert expected in printed
    assert printed.splitlines()[:3] == ["It is scarlet."] * 3  # by middleware, around a node, by a node


def test_adding_memory_takes_ten_lines_at_most() -> None:
    """More than that, and people write their own."""
    for code in _BLOCK.findall(_PAGE.read_text(encoding="utf-8")):
        assert len([line for line in code.splitlines() if line.strip()]) <= 10
