"""The pages of the documentation hold together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_FOLDERS = ("docs", "integrations", "notebooks")
_PAGES = [
    *sorted(_ROOT.glob("*.md")),
    *sorted(page for folder in _FOLDERS for kind in ("md", "ipynb") for page in (_ROOT / folder).rglob(f"*.{kind}")),
]
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.relative_to(_ROOT).as_posix())
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    """A reader who follows a dead link stops reading."""
    targets = _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8")))
    assert [target for target in targets if not (page.parent / target).exists()] == []
