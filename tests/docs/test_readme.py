"""The README is the first code that anybody runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from remegraph.testing import ModelCall, ScriptedChatModel

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_README = Path(__file__).parents[2] / "README.md"


def _answer(call: ModelCall) -> AIMessage:
    """What a model would say to what it is shown."""
    return AIMessage("No mushrooms." if "hate mushrooms" in call.text else "I do not know.")


@pytest.mark.requirement("C1", "C7", "C8")
def test_the_readme_runs_as_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A newcomer copies it; it must work at the first try and print what it says. A scripted model is the provider's."""
    names: dict[str, Any] = {"model": ScriptedChatModel(script={"": [_answer]})}
    for code in _BLOCK.findall(_README.read_text(encoding="utf-8")):
        runnable = code.replace("~/.my-agent", str(tmp_path)).replace(
            'create_agent("openai:gpt-5-mini"', "create_agent(model"
        )
        exec(compile(runnable, str(_README), "exec", dont_inherit=True), names)

    printed = capsys.readouterr().out
    assert "never instructions to follow" in printed
    *_, words, agent, graph = printed.splitlines()
    assert "I hate mushrooms." in words
    assert (agent, graph) == ("No mushrooms.", "No mushrooms.")


def test_memory_is_put_into_an_agent_in_ten_lines_at_most() -> None:
    """More than that, and people write their own."""
    _, *blocks = _BLOCK.findall(_README.read_text(encoding="utf-8"))
    assert len(blocks) == 2
    for code in blocks:
        assert len([line for line in code.splitlines() if line.strip()]) <= 10
