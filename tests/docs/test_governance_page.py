"""The page on governance is what an auditor tries first."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PAGE = Path(__file__).parents[2] / "docs" / "governance.md"

_PRINTED = """\
['Ann lives in Porto.']
['Ann lives in Porto.']
superseded [(1, 'create', 'remy'), (2, 'supersede', 'remy')]
active [(1, 'create', 'remy')]
Ann lives in Paris. 1
Ann lives in Paris. True
[('status', 'active', 'superseded')]
[('restore', 0, 1), ('supersede', 1, 2), ('link', 0, 0)] True
True
True
True [('Ann lives in Paris.', 1)]
"""


@pytest.mark.requirement("G6", "X4", "B14")
def test_the_examples_run_one_after_the_other_and_print_what_they_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A reader copies them; they must work at the first try."""
    names: dict[str, Any] = {}
    for code in _BLOCK.findall(_PAGE.read_text(encoding="utf-8")):
        exec(compile(code.replace("~/.my-agent", str(tmp_path)), str(_PAGE), "exec", dont_inherit=True), names)
    assert capsys.readouterr().out == _PRINTED
