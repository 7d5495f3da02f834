"""The page on contradictions is copied by people who must decide them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PAGE = Path(__file__).parents[2] / "docs/conflicts.md"


@pytest.mark.requirement("G7", "K4")
def test_the_examples_run_one_after_the_other_and_print_what_they_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the warning to the decision, by a call and by a person whom a run waits for."""
    names: dict[str, Any] = {}
    for code in _BLOCK.findall(_PAGE.read_text(encoding="utf-8")):
        runnable = code.replace('"~/.my-agent"', f'"{tmp_path}", model=None, embedder=None')
        exec(compile(runnable, str(_PAGE), "exec", dont_inherit=True), names)
    names["kit"].close()

    printed = capsys.readouterr().out
    for expected in (
        "True Memory",
        "contradiction | The hall seats 250 guests. | The hall seats 320 guests. | They differ in the number.",
        "supersede by Olga because: I counted the chairs.",
        "['The hall seats 320 guests.']",
        "The hall seats 400 guests.",
        "a person decided",
    ):
        assert expected in printed
