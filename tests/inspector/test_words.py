"""The catalogue and the pages hold together."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from string import Formatter

import remegraph.servers.inspector as package
from remegraph.servers.inspector.pages import LANGUAGES, catalogue

_HOME = Path(package.__file__).parent
_SOURCES = [*_HOME.glob("templates/*.html"), *_HOME.glob("*.py")]
_SECTIONS = set(tomllib.loads((_HOME / "words.toml").read_text(encoding="utf-8")))


def _fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_every_text_is_there_in_both_languages_with_the_same_values() -> None:
    """A page half in English is a page that nobody finished."""
    for key, texts in catalogue().items():
        assert sorted(texts) == sorted(LANGUAGES), key
        assert all(text.strip() for text in texts.values()), key
        assert len({frozenset(_fields(text)) for text in texts.values()}) == 1, key


def test_no_text_is_missing_and_none_is_left_over() -> None:
    """A missing text breaks a page that may be seldom seen; one that nobody shows is translated for nothing."""
    source = "".join(path.read_text(encoding="utf-8") for path in _SOURCES)
    named = set(re.findall(r"""["']([a-z]+\.[a-z_]+)["']""", source))
    named = {key for key in named if key.partition(".")[0] in _SECTIONS and not key.endswith(".html")}
    families = set(re.findall(r"""["']([a-z]+\.)["'] ~""", source))
    by_family = {key for key in catalogue() if key.startswith(tuple(families))}
    assert named - set(catalogue()) == set()
    assert set(catalogue()) - named - by_family == set()


def test_no_template_says_anything_itself() -> None:
    """What is written into a template is never translated."""
    code = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
    said = {
        word
        for path in _HOME.glob("templates/*.html")
        for word in re.findall(r"[^\W\d_]{2,}", re.sub(r"<[^>]*>", " ", code.sub("", path.read_text(encoding="utf-8"))))
    }
    assert said <= {"remegraph", "English", "中文"}  # names, each in its own language
