"""The one catalogue of what the inspector says, in English and in Chinese."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

__all__ = ["LANGUAGES", "Language", "Words", "catalogue"]

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


@cache
def catalogue() -> Mapping[str, Mapping[str, str]]:
    """Return each text by key and language."""
    text = files("remegraph.integrations.inspector").joinpath("words.toml").read_text(encoding="utf-8")
    return {
        f"{section}.{name}": texts
        for section, entries in tomllib.loads(text).items()
        for name, texts in entries.items()
    }


class Words:
    """The texts in one language.

    Args:
        language: The language.
    """

    def __init__(self, language: Language) -> None:
        self.language = language

    def __call__(self, key: str, **values: object) -> str:
        """Return a text, with values in their places.

        Args:
            key: `section.name`.
            values: By the names that stand in braces; whole numbers get separators.
        """
        shown = {name: f"{value:,}" if isinstance(value, int) else value for name, value in values.items()}
        return catalogue()[key][self.language].format(**shown)
