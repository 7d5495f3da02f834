"""From what was so once to what holds in general, by rules: no names, no times, no places, no session (K7).

What is given is clean already: a placeholder `<kind-n>` stands for each thing that was taken out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from remegraph.language.plain import texts
from remegraph.language.sentences import sentences
from remegraph.language.times import resolve
from remegraph.language.tokens import query_tokens
from remegraph.models import Kind
from remegraph.rules.desensitizing import PLACEHOLDER
from remegraph.rules.tables import table

__all__ = [
    "as_slots",
    "common_words",
    "generalized",
    "listed",
    "prose",
    "reworded",
    "says_something",
    "stand_ins",
    "title_of",
]

_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)
_LEAST = 3
"""Words of meaning that a statement needs."""
_SPEAKER = re.compile(r"^(?:someone|某人)\s*[:：]\s*", re.IGNORECASE)

_FORMS: Mapping[Kind, str] = {
    "workflow": "workflow_name",
    "profile": "entity_type",
    "semantic": "concept_name",
    "episode": "event_pattern",
}
"""What a title is made from."""


def generalized(kind: Kind, content: Mapping[str, Any], language: str) -> dict[str, Any]:
    """Return the content of knowledge in the form of its kind.

    Args:
        kind: Of the memory.
        content: Of the memory, clean.
        language: en or zh.
    """

    def say(text: str) -> str:
        return _general(text, language)

    return _MAKERS[kind](content, say)


def prose(kind: Kind, content: Mapping[str, Any]) -> dict[str, str]:
    """Return the sentences of knowledge, by their paths: what a model may say in other words.

    Args:
        kind: Its kind.
        content: Its content.
    """
    roots = {
        "workflow": ("task_description", "when_to_use"),
        "profile": ("generalized_attributes",),
        "semantic": ("generalized_properties",),
        "episode": ("event_pattern", "generalized_causal_chain", "generalized_learnings"),
    }[kind]
    return {path: text for root in roots if root in content for path, text in _leaves(root, content[root])}


def reworded(content: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """Return knowledge with other sentences.

    Args:
        content: Its content.
        fields: The new sentences, by their paths as `prose` names them.
    """

    def at(path: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: at(f"{path}.{key}" if path else key, each) for key, each in value.items()}
        if isinstance(value, list):
            return [at(f"{path}[{number}]", each) for number, each in enumerate(value)]
        return fields.get(path, value)

    changed: dict[str, Any] = at("", content)
    return changed


def says_something(kind: Kind, content: Mapping[str, Any], language: str) -> bool:
    """Return whether something of general value is left.

    Args:
        kind: Its kind.
        content: Its content.
        language: Whose words stand for what was taken out.
    """
    if kind == "workflow" and content.get("steps"):
        return True
    hollow = {token for word in _table(language)["words"].values() for token in query_tokens(word)}
    told = texts([content[root] for root in content if root not in _LABELS])
    return sum(token not in hollow for text in told for token in query_tokens(text)) >= _LEAST


_LABELS = frozenset({"domain", "source_domain", "entity_type", "result_status", "version"})


def title_of(kind: Kind, content: Mapping[str, Any]) -> str:
    """Return what knowledge is called after: its name, or what it says first."""
    said = prose(kind, content).values() if kind == "profile" else ()
    return next(iter(said), "") or str(content[_FORMS[kind]])


def as_slots(value: Any) -> Any:
    """Return arguments in which a slot for the next caller stands for each placeholder."""
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda found: f"{{{found[1].replace('-', '_')}_{found[2]}}}", value)
    if isinstance(value, list):
        return [as_slots(each) for each in value]
    return {key: as_slots(each) for key, each in value.items()} if isinstance(value, dict) else value


@cache
def common_words() -> frozenset[str]:
    """Return the names that tell nothing of anybody, or that everybody knows, as they are compared."""
    return frozenset((*listed("common"), *listed("public")))


def listed(name: str) -> tuple[str, ...]:
    """Return the words of a list in `data/generalizing.toml`, as they are compared."""
    return tuple(table("generalizing")[name].casefold().split())


@cache
def stand_ins() -> frozenset[str]:
    """Return the words that stand for what was taken out, as they are compared."""
    said = [
        word for language in ("en", "zh") for word in (*_table(language)["words"].values(), _table(language)["time"])
    ]
    return frozenset(part for text in said for part in text.casefold().split())


# ------------------------------------------------------------------------------------------- inside

_Say = Callable[[str], str]


def _workflow(content: Mapping[str, Any], say: _Say) -> dict[str, Any]:
    kept = {name: content[name] for name in ("preconditions", "postconditions", "avoid") if name in content}
    steps = [{**step, "description": say(step["description"])} for step in content["steps"]]
    when = {"when_to_use": say(content["when_to_use"])} if content.get("when_to_use") else {}
    return {
        "task_description": say(content["task_description"]),
        "workflow_name": say(content["workflow_name"]),
        "steps": steps,
        "result_status": content["result_status"],
        "domain": say(content["domain"]) or "general",
        **when,
        **kept,
    }


def _profile(content: Mapping[str, Any], say: _Say) -> dict[str, Any]:
    return {
        "entity_type": say(content["entity_type"]),
        "generalized_attributes": _said(_public(content["attributes"]), say),
        "source_domain": say(str(content.get("domain", ""))) or "general",
    }


def _semantic(content: Mapping[str, Any], say: _Say) -> dict[str, Any]:
    definition = say(content["definition"])
    return {
        "concept_name": say(content["concept_name"]),
        "generalized_properties": _said(content["properties"], say)
        | ({"definition": definition} if definition else {}),
        "domain": say(str(content.get("domain", ""))) or "general",
    }


def _episode(content: Mapping[str, Any], say: _Say) -> dict[str, Any]:
    """Return the pattern alone: who took part, when and where stays behind, and so do the ids of other events."""
    return {
        "event_pattern": say(content["event_summary"]),
        "generalized_causal_chain": {"precedent_pattern": "", "consequence_pattern": ""},
        "generalized_learnings": say(content["learnings"]),
        "domain": say(str(content.get("domain", ""))) or "general",
    }


_MAKERS: Mapping[Kind, Callable[[Mapping[str, Any], _Say], dict[str, Any]]] = {
    "workflow": _workflow,
    "profile": _profile,
    "semantic": _semantic,
    "episode": _episode,
}


def _public(value: Any) -> Any:
    """Return attributes without those that are private, at any depth."""
    if isinstance(value, list):
        return [_public(each) for each in value]
    if isinstance(value, Mapping):
        return {name: _public(each) for name, each in value.items() if name.casefold() not in listed("private")}
    return value


_NOTHING: tuple[Any, ...] = ("", [], {}, None)


def _said(value: Any, say: _Say) -> Any:
    """Return a value said in general; nothing where nothing is left."""
    if isinstance(value, str):
        return say(value)
    if isinstance(value, list):
        return [said for each in value if (said := _said(each, say)) not in _NOTHING]
    if isinstance(value, Mapping):
        return {key: said for key, each in value.items() if (said := _said(each, say)) not in _NOTHING}
    return value


def _general(text: str, language: str) -> str:
    """Return the sentences of a text that hold without what was taken out, with words in place of names and times."""
    told = _table(language)
    kept = [said for span in sentences(text) if (said := _sentence(span.text, told))]
    return ("" if language == "zh" else " ").join(kept)


def _sentence(text: str, table: Mapping[str, Any]) -> str:
    words: Mapping[str, str] = table["words"]
    if any(found[1] not in words for found in PLACEHOLDER.finditer(text)):
        return ""
    begins = text[:1].isupper() or text[:1] == "<"
    for mention in sorted(resolve(text, _ANY_TIME), key=lambda each: -each.start):
        text = f"{text[: mention.start]}{table['time']}{text[mention.end :]}"
    said = _SPEAKER.sub("", PLACEHOLDER.sub(lambda found: words[found[1]], text))
    return said[:1].upper() + said[1:] if begins else said


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str) and value:
        yield path, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(f"{path}.{key}", each)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _leaves(f"{path}[{number}]", each)


def _table(language: str) -> Mapping[str, Any]:
    told: Mapping[str, Any] = table("generalizing")["zh" if language == "zh" else "en"]
    return told
