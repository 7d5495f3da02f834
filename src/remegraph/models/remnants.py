"""Remnants of removed words: stubs of erased memories, messages without what is withheld, memories that lose sources."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from remegraph.models import REVISES, Abstraction, Evidence, Memory, Message
from remegraph.models.quotes import find_quote
from remegraph.models.standing import QUARANTINE_BELOW, recounted
from remegraph.models.tools import is_guideline
from remegraph.text.sentences import summary_of
from remegraph.text.tokens import token_counts

__all__ = [
    "MARK",
    "NAMELESS",
    "Loss",
    "buried",
    "leaves",
    "overlap",
    "remade",
    "silenced",
    "unsaid",
    "veiled",
    "without",
]


NAMELESS = "(erased)"
"""The topic of erased memories: the name of their own topic may be a person's."""


def buried(memory: Memory) -> Memory:
    """Return the stub of a memory: its kind, place and times, and no word of its content."""
    return memory.evolve(
        content=f"({memory.status})",
        summary=f"({memory.status})",
        when_to_use="",
        payload={},
        slot_value="",
        canonical_topic="",
        evidence=(),
        tags=(),
    )


MARK = "[withheld]"
"""The mark in place of withheld words."""


def without(text: str, phrases: Sequence[str], mark: str = MARK) -> str:
    """Return a text with each of these phrases replaced, the longest first."""
    for phrase in sorted(phrases, key=len, reverse=True):
        text = text.replace(phrase, mark) if phrase else text
    return text


def veiled(body: Mapping[str, Any], phrases: Sequence[str | None], mark: str = MARK) -> dict[str, Any]:
    """Return a message as plain JSON without what is withheld of it.

    None among the phrases is the whole message. The speaker, and the calls made and answered, stay, so that a
    conversation keeps its structure.
    """
    if None in phrases:
        extra = body.get("extra")
        kept = {REVISES: extra[REVISES]} if isinstance(extra, Mapping) and REVISES in extra else {}
        calls = [{**call, "args": {}} for call in body.get("tool_calls", ())]
        return {**body, "content": mark, "tool_calls": calls, "extra": kept, "task": ""}
    some = [phrase for phrase in phrases if phrase is not None]

    def masked(text: str) -> str:
        return without(text, some, mark)

    parts = {name: _changed(body[name], masked) for name in ("content", "extra", "task") if name in body}
    calls = [{**call, "args": _changed(call["args"], masked)} for call in body.get("tool_calls", ())]
    return {**body, **parts, "tool_calls": calls}


def leaves(message: Message) -> list[str]:
    """Return the texts of a message besides its content: arguments of calls, and what a host attached."""
    found: list[str] = []

    def note(text: str) -> str:
        found.append(text)
        return text

    for part in (*(call.args for call in message.tool_calls), message.extra):
        _changed(part, note)
    return found


def silenced(memory: Memory) -> Memory:
    """Return a memory without a word of what it says; its topic, and the messages that it came from, stay."""
    return memory.evolve(
        content=MARK,
        summary=MARK,
        when_to_use="",
        payload={},
        slot_value="",
        canonical_topic="",
        evidence=tuple(item.evolve(quote=MARK) for item in memory.evidence),
        tags=(),
    )


def unsaid(memory: Memory, gone: Sequence[bool]) -> Memory:
    """Return a memory without the lines that quote some of its evidence, if it is made of its quotes, line by line.

    `gone` says for each piece of its evidence whether its message is withheld as a whole.
    """
    quotes = [item.quote for item in memory.evidence]
    said = "\n".join(quote for quote in quotes if quote != MARK)
    left = "\n".join(quote for quote, goes in zip(quotes, gone, strict=True) if quote != MARK and not goes)
    if said == left or not left or said not in memory.content:
        return memory
    content = memory.content.replace(said, left, 1)
    return memory.evolve(content=content, summary=summary_of(content))


def overlap(quote: str, phrases: Sequence[str | None], text: str) -> bool:
    """Return whether words that were quoted from a text are withheld, in part or whole.

    None among the phrases is all of the text.
    """
    if None in phrases:
        return True
    place = find_quote(quote, text)
    for phrase in phrases:
        if phrase and (phrase in quote or quote in phrase):
            return True
        if phrase and place and any(start < place[1] and place[0] < end for start, end in _places(phrase, text)):
            return True
    return False


def _places(phrase: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(phrase)
    while start >= 0:
        yield start, start + len(phrase)
        start = text.find(phrase, start + 1)


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    """Return JSON with each of its texts changed; names of fields stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        told = change(str(value))
        return value if told == str(value) else told
    if isinstance(value, list):
        return [_changed(each, change) for each in value]
    if isinstance(value, dict):
        return {name: _changed(each, change) for name, each in value.items()}
    return value


_FEWEST_SOURCES = 2
"""A conclusion from one source would only repeat it."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The effect of an erasure on one memory: what is removed, and what is left."""

    cited: Mapping[tuple[str, str], str | None]
    """Its affected evidence, by block and message: the block that holds the message now; None if it is gone."""
    blocks: Mapping[str, str | None]
    """The same for its blocks."""
    lost: str
    """Everything that the erased sources said."""
    said: Mapping[str, str] = field(default_factory=dict)
    """The remaining text of each message that supports it, by id."""
    speakers: Mapping[str, str] = field(default_factory=dict)
    """The speakers of those messages."""
    trust: Mapping[str, float] = field(default_factory=dict)
    """How far they are believed."""
    sources: tuple[Memory, ...] = ()
    """Remaining memories that it was abstracted from."""


def remade(memory: Memory, loss: Loss) -> Memory | None:
    """Return a memory without what is erased; None if nothing supports it any more."""
    abstraction = Abstraction.of(memory)
    if abstraction is not None and loss.sources:
        return _concluded(memory, abstraction, loss)
    evidence = _kept(memory.evidence, loss)
    if not evidence:
        return None
    kept = memory.evolve(evidence=evidence, block_ids=_blocks(memory.block_ids, loss))
    lost = _lost_words(memory, loss)
    if not _holds_any(_text(memory), lost):
        return kept
    if is_guideline(memory):
        return _uncounted(kept)
    return None if abstraction is not None or memory.layer == "procedural" else _quoted(kept, loss, lost)


def _kept(evidence: Iterable[Evidence], loss: Loss) -> tuple[Evidence, ...]:
    there = ((item, loss.cited.get((item.block_id, item.message_id), item.block_id)) for item in evidence)
    return tuple(dict.fromkeys(item.evolve(block_id=label) for item, label in there if label))


def _blocks(block_ids: Iterable[str], loss: Loss) -> tuple[str, ...]:
    there = (loss.blocks.get(block_id, block_id) for block_id in block_ids)
    return tuple(dict.fromkeys(block_id for block_id in there if block_id))


def _lost_words(memory: Memory, loss: Loss) -> frozenset[str]:
    """Return the words that only the erased sources said; whom the memory is about is known from its topic."""
    known = [memory.topic.target_name, *loss.said.values(), *loss.speakers.values()]
    known += [source.content for source in loss.sources]
    return frozenset(token_counts(loss.lost)) - frozenset(token_counts(" ".join(known)))


def _text(memory: Memory) -> str:
    payload = memory.payload
    if isinstance(payload, dict):
        payload = {name: value for name, value in payload.items() if name != "session"}  # the name of a thread
    payload = json.dumps(payload, ensure_ascii=False) if payload else ""
    slot = (memory.canonical_topic, memory.slot_value)
    return " ".join((memory.content, memory.summary, memory.when_to_use, *slot, payload, *memory.tags))


def _holds_any(text: str, lost: frozenset[str]) -> bool:
    return not lost.isdisjoint(token_counts(text))


def _slot(memory: Memory, lost: frozenset[str]) -> dict[str, str]:
    """Return a memory's slot as far as nothing of it is lost."""
    slot = "" if _holds_any(memory.canonical_topic, lost) else memory.canonical_topic
    return {
        "canonical_topic": slot,
        "slot_value": "" if not slot or _holds_any(memory.slot_value, lost) else memory.slot_value,
    }


def _quoted(memory: Memory, loss: Loss, lost: frozenset[str]) -> Memory:
    """Return a memory that says what the rest of its evidence says, to the letter."""
    lines = [_line(loss.speakers.get(item.message_id, ""), item.quote) for item in memory.evidence]
    content = "\n".join(dict.fromkeys(lines))
    trust = min(memory.trust, *(loss.trust.get(item.message_id, 1.0) for item in memory.evidence))
    return memory.evolve(
        content=content,
        summary=summary_of(content),
        when_to_use="" if _holds_any(memory.when_to_use, lost) else memory.when_to_use,
        payload={},
        **_slot(memory, lost),
        tags=tuple(tag for tag in memory.tags if not _holds_any(tag, lost)),
        merges=min(memory.merges, max(len(lines) - 1, 0)),
        trust=trust,
        status="quarantined" if memory.live and trust < QUARANTINE_BELOW else memory.status,
        extractor="extractive",
        prompt="",
    )


def _uncounted(memory: Memory) -> Memory:
    """Return the guideline of a tool without its figures: they will be counted again; the tool's own words are never used."""
    name = memory.topic.target_name
    payload = {"tool": memory.payload["tool"]}
    return memory.evolve(content=name, summary=summary_of(name), when_to_use=name, payload=payload)


def _line(speaker: str, quote: str) -> str:
    return f"{speaker}: {quote}" if speaker else quote


def _concluded(memory: Memory, before: Abstraction, loss: Loss) -> Memory | None:
    """Return a conclusion counted over the remaining sources; None if it says what they do not."""
    sources = loss.sources
    lost = _lost_words(memory, loss)
    terms = tuple(term for term in before.terms if not _holds_any(term, lost))
    if len(sources) < _FEWEST_SOURCES or _holds_any(memory.content, lost):
        return None
    said = sum(source.merges + 1 for source in sources)
    trust = min(source.trust for source in sources)
    conditions = tuple(each for each in before.conditions if not _holds_any(each, lost))
    kept = before.evolve(terms=terms, conditions=conditions)
    kept = recounted(kept, said=said, against=before.contradictions, trust=trust)
    return memory.evolve(
        payload=kept.within({}),
        **_slot(memory, lost),
        when_to_use="" if _holds_any(memory.when_to_use, lost) else memory.when_to_use,
        tags=tuple(tag for tag in memory.tags if not _holds_any(tag, lost)),
        evidence=_borne_out(memory, sources),
        block_ids=tuple(dict.fromkeys(block_id for source in sources for block_id in source.block_ids)),
        merges=said - 1,
    )


def _borne_out(memory: Memory, sources: Sequence[Memory]) -> tuple[Evidence, ...]:
    """Return the evidence of the sources that the memory cited, or their first words if they cite others by now."""
    cited = {(item.message_id, item.quote) for item in memory.evidence}
    every = [item for source in sources for item in source.evidence]
    found = [item for item in every if (item.message_id, item.quote) in cited]
    return tuple(dict.fromkeys(found or [source.evidence[0] for source in sources if source.evidence]))
