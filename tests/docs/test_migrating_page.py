"""The page about moving is copied by people who have memories to lose."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_PAGE = Path(__file__).parents[2] / "docs" / "migrating.md"
_SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PRINTED = {
    "mem0": ["2 ('arjun', 'carl')", "Prefers morning meetings"],
    "LangMem": ["1"],
    "Zep": [],
    "LangChain's classic memories": [],
}


def test_the_examples_of_moving_run_as_they_stand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A reader copies them; they must work at the first try, and bring what they say."""
    sections = dict(_SECTION.findall(_PAGE.read_text(encoding="utf-8")))
    printed = {}
    for number, (name, text) in enumerate(sections.items()):
        (code,) = _CODE.findall(text)
        home = f'"{tmp_path / str(number)}", model=None, embedder=None'
        exec(compile(code.replace('"~/.my-agent"', home), str(_PAGE), "exec"), {})
        printed[name] = capsys.readouterr().out.splitlines()
    assert printed == _PRINTED
