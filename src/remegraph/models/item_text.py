"""The content of an item in words, in the language that most of it is in: the text that is searched and shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from remegraph.models import EpisodeContent, MemoryContent, ProfileContent, SemanticContent, WorkflowContent
from remegraph.text import table
from remegraph.text.scripts import language_of, plain

__all__ = ["STATEMENTS", "likings", "sentence"]

_PARTS = re.compile("[:_]")
_STOPS = ".。 "

STATEMENTS = "statements"
"""The attribute of a profile that holds what was said about a person, word for word."""


def sentence(content: MemoryContent) -> str:
    """Return a content as a sentence, the same one for any order of its fields. Empty: it says nothing."""
    language = language_of(" ".join(_texts(content)))
    texts = table("forms")[language]
    if isinstance(content, ProfileContent):
        said = _profile(content, texts, table("forms")["verbs"][language])
    elif isinstance(content, SemanticContent):
        said = _semantic(content, texts)
    elif isinstance(content, EpisodeContent):
        said = _episode(content, texts)
    else:
        said = _workflow(content, texts)
    return plain(texts["space"].join(each for each in said if each.strip()))


def _texts(content: MemoryContent) -> Iterator[str]:
    """Yield the words that show the language of a content: no names of types, no times, no ids."""
    if isinstance(content, ProfileContent):
        yield from (content.entity_name, *content.attributes, *_words(content.attributes))
    elif isinstance(content, SemanticContent):
        yield from (content.concept_name, content.definition, *_words(content.properties))
    elif isinstance(content, EpisodeContent):
        yield from (content.event_summary, content.learnings)
    else:
        yield from (content.task_description, content.workflow_name)
        yield from (text for step in content.steps for text in (step.name, step.description))


def _words(value: Any) -> Iterator[str]:
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _words(each)
    if isinstance(value, str):
        yield value


def _profile(content: ProfileContent, texts: Mapping[str, str], verbs: Mapping[str, str]) -> Iterator[str]:
    statements = [_value(each, texts) for each in _listed(content.attributes.get(STATEMENTS, ()))]
    yield from statements
    said, told = "\n".join(statements).casefold(), bool(statements)
    for what, value in sorted(content.attributes.items()):
        values = [
            text for each in _listed(value) if (text := _value(each, texts)).strip() and text.casefold() not in said
        ]
        if what == STATEMENTS or not values:
            continue
        told = True
        liking = likings().get(what.casefold())
        if liking:
            yield from (verbs[liking].format(name=content.entity_name, value=each) for each in values)
        else:
            yield _of(content.entity_name, what, values, texts)
    for relation in content.relations:
        told = True
        yield _of(content.entity_name, relation.relation_type, [relation.target_entity], texts)
    if not told and content.entity_name.strip():
        yield texts["type"].format(name=content.entity_name, type=content.entity_type)


def _semantic(content: SemanticContent, texts: Mapping[str, str]) -> Iterator[str]:
    name, definition = content.concept_name, content.definition
    properties = [
        (what, [_value(each, texts) for each in _listed(value)]) for what, value in sorted(content.properties.items())
    ]
    relations = [(relation.relation_type, [relation.target_concept]) for relation in content.relations]
    facts = texts["semicolon"].join(_fact(what, values, texts) for what, values in (*properties, *relations))
    known = _PARTS.sub(" ", name).casefold() in definition.casefold()
    said = definition if known and definition.strip() else _colon(name, definition, texts)
    if not facts:
        yield said
    elif definition.strip():
        yield f"{said.rstrip(_STOPS)}{texts['semicolon']}{facts}{texts['stop']}"
    else:
        yield _colon(name, facts, texts) + texts["stop"]


def _episode(content: EpisodeContent, texts: Mapping[str, str]) -> Iterator[str]:
    said = content.event_summary
    yield said
    if content.learnings.strip():
        yield texts["learned"].format(text=content.learnings)
    if content.location.strip() and content.location.casefold() not in said.casefold():
        yield texts["where"].format(text=content.location)
    if others := [each for each in content.participants if each.casefold() not in said.casefold()]:
        yield texts["who"].format(text=texts["comma"].join(others))


def _workflow(content: WorkflowContent, texts: Mapping[str, str]) -> Iterator[str]:
    task, name = content.task_description, content.workflow_name
    if not content.steps:
        yield task if task.strip() else name
        return
    head = name if task in name else task if name in task else texts["head"].format(task=task, name=name)
    steps = (
        f"{number}. {_colon(step.name, step.description, texts)}" for number, step in enumerate(content.steps, start=1)
    )
    yield _colon(head, " ".join(steps), texts)


def _of(name: str, what: str, values: Sequence[str], texts: Mapping[str, str]) -> str:
    return _colon(name, _fact(what, values, texts), texts) + texts["stop"]


def _fact(what: str, values: Sequence[str], texts: Mapping[str, str]) -> str:
    return _colon(what.replace("_", " "), texts["comma"].join(values), texts)


def _colon(name: str, text: str, texts: Mapping[str, str]) -> str:
    return texts["colon"].format(name=name, text=text) if name.strip() and text.strip() else name or text


def _listed(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _value(value: Any, texts: Mapping[str, str]) -> str:
    """Return a value of JSON in words: text unchanged, a compound value by its parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return texts["comma"].join(f"{name} {_value(each, texts)}" for name, each in sorted(value.items()))
    if isinstance(value, list):
        return texts["comma"].join(_value(each, texts) for each in value)
    return "" if value is None else json.dumps(value)


def likings() -> Mapping[str, str]:
    """Return the names of attributes that hold likes, or dislikes."""
    named: Mapping[str, str] = table("forms")["likings"]
    return named
