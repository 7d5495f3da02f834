"""Generalisation by rules: knowledge without names, times, places and sessions (K7).

Texts are clean already: a placeholder `<kind-n>` takes the place of each thing that was taken out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from remegraph.models import Kind, Memory, Scope
from remegraph.text import table, word_list
from remegraph.text.entities import entities
from remegraph.text.findings import PLACEHOLDER
from remegraph.text.scripts import HAN, texts
from remegraph.text.sentences import sentences
from remegraph.text.times import time_words
from remegraph.text.tokens import query_tokens, stop_words

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = [
    "Known",
    "as_slots",
    "common_words",
    "generalized",
    "has_substance",
    "known",
    "listed",
    "persons",
    "prose",
    "reworded",
    "stand_ins",
    "title_of",
]


_LEAST = 3
"""Words of meaning that a statement needs."""
_SPEAKER = re.compile(r"^(?:someone|某人)\s*[:：]\s*", re.IGNORECASE)

_FORMS: Mapping[Kind, str] = {
    "workflow": "workflow_name",
    "profile": "entity_type",
    "semantic": "concept_name",
    "episode": "event_pattern",
}
"""Material of a title."""


def generalized(kind: Kind, content: Mapping[str, Any], language: str) -> dict[str, Any]:
    """Return the content of knowledge in the form of its kind.

    Of an episode only the pattern remains: participants, time, place and the ids of other events are left out.
    """
    say = partial(_general, language=language)
    domain = say(str(content.get("domain", ""))) or "general"
    if kind == "profile":
        return {
            "entity_type": say(content["entity_type"]),
            "generalized_attributes": _in_general(_public(content["attributes"]), say),
            "source_domain": domain,
        }
    if kind == "semantic":
        definition = say(content["definition"])
        return {
            "concept_name": say(content["concept_name"]),
            "generalized_properties": _in_general(content["properties"], say)
            | ({"definition": definition} if definition else {}),
            "domain": domain,
        }
    if kind == "episode":
        return {
            "event_pattern": say(content["event_summary"]),
            "generalized_causal_chain": {"precedent_pattern": "", "consequence_pattern": ""},
            "generalized_learnings": say(content["learnings"]),
            "domain": domain,
        }
    when = {"when_to_use": say(content["when_to_use"])} if content.get("when_to_use") else {}
    return {
        "task_description": say(content["task_description"]),
        "workflow_name": say(content["workflow_name"]),
        "steps": [{**step, "description": say(step["description"])} for step in content["steps"]],
        "result_status": content["result_status"],
        "domain": domain,
        **when,
        **{name: content[name] for name in ("preconditions", "postconditions", "avoid") if name in content},
    }


def prose(kind: Kind, content: Mapping[str, Any]) -> dict[str, str]:
    """Return the sentences of knowledge that a model may reword, by their paths."""
    roots = {
        "workflow": ("task_description", "when_to_use"),
        "profile": ("generalized_attributes",),
        "semantic": ("generalized_properties",),
        "episode": ("event_pattern", "generalized_causal_chain", "generalized_learnings"),
    }[kind]
    return {path: text for root in roots if root in content for path, text in _leaves(root, content[root])}


def reworded(content: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """Return knowledge with other sentences."""

    def at(path: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: at(f"{path}.{key}" if path else key, each) for key, each in value.items()}
        if isinstance(value, list):
            return [at(f"{path}[{number}]", each) for number, each in enumerate(value)]
        return fields.get(path, value)

    changed: dict[str, Any] = at("", content)
    return changed


def has_substance(kind: Kind, content: Mapping[str, Any], language: str) -> bool:
    """Return whether anything of general value is left."""
    if kind == "workflow" and content.get("steps"):
        return True
    hollow = {token for word in _table(language)["words"].values() for token in query_tokens(word)}
    told = texts([content[root] for root in content if root not in _LABELS])
    return sum(token not in hollow for text in told for token in query_tokens(text)) >= _LEAST


_LABELS = frozenset({"domain", "source_domain", "entity_type", "result_status", "version"})


def title_of(kind: Kind, content: Mapping[str, Any]) -> str:
    """Return the title of knowledge: its name, or its first sentence."""
    said = prose(kind, content).values() if kind == "profile" else ()
    return next(iter(said), "") or str(content[_FORMS[kind]])


def as_slots(value: Any) -> Any:
    """Return arguments with a slot for the next caller in place of each placeholder."""
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda found: f"{{{found[1].replace('-', '_')}_{found[2]}}}", value)
    if isinstance(value, list):
        return [as_slots(each) for each in value]
    return {key: as_slots(each) for key, each in value.items()} if isinstance(value, dict) else value


@cache
def common_words() -> frozenset[str]:
    """Return names that identify no one or that are widely known, in the form in which they are compared."""
    return frozenset((*listed("common"), *listed("public")))


def listed(name: str) -> tuple[str, ...]:
    """Return the words of a list in `data/generalizing.toml`, as they are compared."""
    return tuple(table("generalization")[name].casefold().split())


@cache
def stand_ins() -> frozenset[str]:
    """Return the words that replace what was taken out, in the form in which they are compared."""
    said = [
        word for language in ("en", "zh") for word in (*_table(language)["words"].values(), _table(language)["time"])
    ]
    return frozenset(part for text in said for part in text.casefold().split())


def _public(value: Any) -> Any:
    """Return attributes without those that are private, at any depth."""
    if isinstance(value, list):
        return [_public(each) for each in value]
    if isinstance(value, Mapping):
        return {name: _public(each) for name, each in value.items() if name.casefold() not in listed("private")}
    return value


_NOTHING: tuple[Any, ...] = ("", [], {}, None)


def _in_general(value: Any, say: Callable[[str], str]) -> Any:
    """Return a value in general words; None if nothing is left."""
    if isinstance(value, str):
        return say(value)
    if isinstance(value, list):
        return [said for each in value if (said := _in_general(each, say)) not in _NOTHING]
    if isinstance(value, Mapping):
        return {key: said for key, each in value.items() if (said := _in_general(each, say)) not in _NOTHING}
    return value


def _general(text: str, language: str) -> str:
    """Return the sentences that still make sense, with words in place of names and times."""
    told = _table(language)
    kept = [said for span in sentences(text) if (said := _sentence(span.text, told))]
    return ("" if language == "zh" else " ").join(kept)


def _sentence(text: str, table: Mapping[str, Any]) -> str:
    words: Mapping[str, str] = table["words"]
    if any(found[1] not in words for found in PLACEHOLDER.finditer(text)):
        return ""
    begins = text[:1].isupper() or text[:1] == "<"
    for start, end in reversed(time_words(text)):
        text = f"{text[:start]}{table['time']}{text[end:]}"
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
    told: Mapping[str, Any] = table("generalization")["zh" if language == "zh" else "en"]
    return told


def persons(text: str) -> Iterator[str]:
    """Yield the names of those who say, think or want something."""
    english, chinese = _patterns()
    for match in english.finditer(text):
        if match["name"].casefold() not in stop_words() | common_words():
            yield match["name"]
    yield from (match["name"] for match in chinese.finditer(text))


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    surname = "|".join(sorted(word_list("surnames_zh.txt"), key=len, reverse=True))
    english, chinese = "|".join(listed("says_en")), "|".join(listed("says_zh"))
    return (
        re.compile(rf"\b(?P<name>[A-Z][\w-]+)(?=\s+(?:{english})\b)"),
        re.compile(
            rf"(?<![{HAN}])(?P<name>(?:{surname})[{HAN}]{{1,2}}?|[小老阿][{HAN}])"
            rf"(?=(?:也|都|常|曾|一直)?(?:{chinese}))"
        ),
    )


_CAPITAL = re.compile(r"[A-Z][^\W_]*(?:[ '’.-]+[^\W_]+)*")
_WORD = re.compile(r"[^\W\d_]+")
_OF = re.compile(r" of (?:the )?")
_ID = re.compile(r"(?=.*\d).{6,}", re.DOTALL)
"""Long and unusual enough not to be a word."""

Known = frozenset[str]


def known(
    archive: Archive,
    scope: Scope,
    agent: str,
    memories: Sequence[Memory],
    *,
    said: Iterable[str],
    public: Collection[str],
) -> Known:
    """Return the names that may not leave with these memories."""
    places = archive.visible(scope)
    people = (s.topic.target_name for s in archive.topics(places) if s.topic.type in {"self", "personal"})
    callers = (scope.user, scope.tenant, scope.project or "", agent)
    allowed = common_words() | {name.casefold() for name in public}
    slots = (each.canonical_topic.partition(":") for each in memories if each.topic.type == "personal")
    owners = (whose for whose, _, attribute in slots if attribute)
    blocks = list(dict.fromkeys(block_id for memory in memories for block_id in memory.block_ids))
    indexed = (name for entry in archive.summaries(places, ids=blocks) for name in entry.entities)
    spoken = (*people, *callers, *_shown(said), *owners, *filter(_CAPITAL.fullmatch, indexed))
    names = (name for name in spoken if len(name) > 1 and name.casefold() not in allowed)
    threads = (block.thread for block in archive.blocks(places, ids=blocks))
    cited = (item.message_id for memory in memories for item in memory.evidence)
    ids = (*blocks, *threads, *cited, *(memory.memory_id for memory in memories))
    return frozenset((*names, *filter(_ID.fullmatch, ids)))


def _shown(said: Iterable[str]) -> Iterator[str]:
    """Yield names by their form; in "Rules of the Ritz", "Rules" is not a name if the word is common here."""
    texts = tuple(said)
    ordinary = {word for text in texts for word in _WORD.findall(text) if word.islower()}
    for text in texts:
        yield from persons(text)
        for each in entities(text):
            if each.kind == "name":
                first, *rest = _OF.split(each.text)
                yield from rest
                if not rest or first.casefold() not in ordinary:
                    yield first
