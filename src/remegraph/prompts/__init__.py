"""Every prompt is a file here, in English and Chinese; this is their strict loader.

A file holds a front matter line `variables: a, b`, the system part, a line `=====`, and the user part; a file without
the divider has a user part only. A variable is written in the text as `{{name}}`. Files whose variables differ from the
declared ones, unknown variables and missing ones are errors. What a model is told of a part that is not taken stands in
`reasons.toml`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Literal

from remegraph.errors import SetupError

__all__ = ["LANGUAGES", "Language", "Prompt", "load", "names", "reason", "template"]

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")

_VARIABLE = re.compile(r"\{\{(\w+)\}\}")
_DIVIDER = "\n=====\n"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt of two parts: instructions and data."""

    name: str
    variables: frozenset[str]
    system: str
    user: str

    @property
    def digest(self) -> str:
        """Identifies its wording: the beginning of its SHA-256."""
        return sha256(f"{self.system}{_DIVIDER}{self.user}".encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def render(self, **values: str) -> tuple[str, str]:
        """Return the system and the user part with the variables filled in.

        Raises:
            ValueError: A variable is missing or unknown.
        """
        if set(values) != self.variables:
            raise ValueError(f"Prompt {self.name} takes {sorted(self.variables)}, not {sorted(values)}.")
        return _fill(self.system, values), _fill(self.user, values)


def _fill(text: str, values: dict[str, str]) -> str:
    return _VARIABLE.sub(lambda match: values[match[1]], text)


@cache
def load(name: str, language: Language, package: str = __name__) -> Prompt:
    """Return a prompt; its name is that of the file without language and ending.

    Raises:
        ValueError: The file does not keep to the form.
    """
    text = resources.files(package).joinpath(f"{name}.{language}.md").read_text(encoding="utf-8")
    head, _, body = text.partition("\n")
    if not head.startswith("variables:"):
        raise ValueError(f"Prompt {name}.{language} lacks its variables line.")
    declared = frozenset(part.strip() for part in head.removeprefix("variables:").split(",") if part.strip())
    if declared != frozenset(_VARIABLE.findall(body)):
        raise ValueError(f"Prompt {name}.{language} declares other variables than it uses.")
    return _prompt(name, body)


def reason(why: str, language: Language, **values: str) -> str:
    """Return why a part of an answer is not taken, for the model that gave it; `why` is its name in `reasons.toml`."""
    return _fill(_reasons()[why][language], values)


@cache
def _reasons() -> dict[str, dict[Language, str]]:
    return tomllib.loads(resources.files(__name__).joinpath("reasons.toml").read_text(encoding="utf-8"))


def template(text: str, name: str) -> Prompt:
    """Return a host's own text in place of one of our prompts.

    The text holds instructions, a line `=====`, and data, with the variables of that prompt.

    Raises:
        SetupError: Its variables are others, or data is among the instructions.
    """
    ours = load(name, "en")
    own = _prompt(name, text.replace("\r\n", "\n"))
    if own.variables != ours.variables:
        missing, unknown = sorted(ours.variables - own.variables), sorted(own.variables - ours.variables)
        raise SetupError(
            f"The template for {name} lacks the variables {missing} and has the unknown ones {unknown}.",
            f"Use each of {sorted(ours.variables)}, as in {{{{block}}}}.",
        )
    data = sorted(set(_VARIABLE.findall(ours.user)) & set(_VARIABLE.findall(own.system)))
    if data:
        raise SetupError(f"The template for {name} has the data {data} among the instructions.", "Put it after =====.")
    return own


def _prompt(name: str, body: str) -> Prompt:
    system, _, user = body.rpartition(_DIVIDER)
    return Prompt(name, frozenset(_VARIABLE.findall(body)), system=system.strip(), user=user.strip())


def names(package: str = __name__) -> tuple[str, ...]:
    """Return the names of all prompts, sorted."""
    files = resources.files(package).iterdir()
    return tuple(sorted({file.name.split(".", 1)[0] for file in files if file.name.endswith(".md")}))
