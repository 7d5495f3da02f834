"""What becomes of a memory that loses some of its sources: it says only what the rest bears out, or it goes.

A word is lost where only what was erased said it. A memory without lost words keeps its text; else it quotes the words
that remain. A conclusion that holds a lost word goes: no model is asked for another.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from remegraph.language.tokens import token_counts
from remegraph.models import Abstraction, Evidence, Memory
from remegraph.rules.standing import QUARANTINE_BELOW, recounted
from remegraph.rules.summarising import summary_of
from remegraph.rules.tool_guidelines import is_guideline

__all__ = ["Loss", "remade"]

_FEWEST_SOURCES = 2
"""A conclusion from one source would be that source."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What an erasure takes from one memory, and what it leaves."""

    cited: Mapping[tuple[str, str], str | None]
    """What of its evidence is touched, by block and message: the block that holds the message now; none: it is gone."""
    blocks: Mapping[str, str | None]
    """Likewise of its blocks."""
    lost: str
    """All that the erased sources said."""
    said: Mapping[str, str] = field(default_factory=dict)
    """What each message that bears it out still says, by id."""
    speakers: Mapping[str, str] = field(default_factory=dict)
    """Who said that."""
    trust: Mapping[str, float] = field(default_factory=dict)
    """How far they are believed."""
    sources: tuple[Memory, ...] = ()
    """What remains of the memories that it was abstracted from."""


def remade(memory: Memory, loss: Loss) -> Memory | None:
    """Return a memory without what is erased; none where nothing bears it out any more.

    Args:
        memory: Its head.
        loss: What is erased.
    """
    abstraction = Abstraction.of(memory)
    if abstraction is not None and loss.sources:
        return _concluded(memory, abstraction, loss)
    evidence = _kept(memory.evidence, loss)
    if not evidence:
        return None
    kept = memory.evolve(evidence=evidence, block_ids=_blocks(memory.block_ids, loss))
    lost = _lost_words(memory, loss)
    if not _tells(_text(memory), lost):
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
    payload = json.dumps(memory.payload, ensure_ascii=False) if memory.payload else ""
    slot = (memory.canonical_topic, memory.slot_value)
    return " ".join((memory.content, memory.summary, memory.when_to_use, *slot, payload, *memory.tags))


def _tells(text: str, lost: frozenset[str]) -> bool:
    return not lost.isdisjoint(token_counts(text))


def _slot(memory: Memory, lost: frozenset[str]) -> dict[str, str]:
    """Return a memory's slot as far as nothing of it is lost."""
    slot = "" if _tells(memory.canonical_topic, lost) else memory.canonical_topic
    return {
        "canonical_topic": slot,
        "slot_value": "" if not slot or _tells(memory.slot_value, lost) else memory.slot_value,
    }


def _quoted(memory: Memory, loss: Loss, lost: frozenset[str]) -> Memory:
    """Return a memory that says what the rest of its evidence says, to the letter."""
    lines = [_line(loss.speakers.get(item.message_id, ""), item.quote) for item in memory.evidence]
    content = "\n".join(dict.fromkeys(lines))
    trust = min(memory.trust, *(loss.trust.get(item.message_id, 1.0) for item in memory.evidence))
    return memory.evolve(
        content=content,
        summary=summary_of(content),
        when_to_use="" if _tells(memory.when_to_use, lost) else memory.when_to_use,
        payload={},
        **_slot(memory, lost),
        tags=tuple(tag for tag in memory.tags if not _tells(tag, lost)),
        merges=min(memory.merges, max(len(lines) - 1, 0)),
        trust=trust,
        status="quarantined" if memory.live and trust < QUARANTINE_BELOW else memory.status,
        extractor="extractive",
        prompt="",
    )


def _uncounted(memory: Memory) -> Memory:
    """Return the guideline of a tool without what was counted: it is counted anew, and the tool's own words never speak."""
    name = memory.topic.target_name
    payload = {"tool": memory.payload["tool"]}
    return memory.evolve(content=name, summary=summary_of(name), when_to_use=name, payload=payload)


def _line(speaker: str, quote: str) -> str:
    return f"{speaker}: {quote}" if speaker else quote


def _concluded(memory: Memory, before: Abstraction, loss: Loss) -> Memory | None:
    """Return a conclusion counted over the sources that remain; none where it says what they do not."""
    sources = loss.sources
    lost = _lost_words(memory, loss)
    terms = tuple(term for term in before.terms if not _tells(term, lost))
    if len(sources) < _FEWEST_SOURCES or _tells(memory.content, lost):
        return None
    said = sum(source.merges + 1 for source in sources)
    trust = min(source.trust for source in sources)
    conditions = tuple(each for each in before.conditions if not _tells(each, lost))
    kept = before.evolve(terms=terms, conditions=conditions)
    kept = recounted(kept, said=said, against=before.contradictions, trust=trust)
    return memory.evolve(
        payload=kept.within({}),
        **_slot(memory, lost),
        when_to_use="" if _tells(memory.when_to_use, lost) else memory.when_to_use,
        tags=tuple(tag for tag in memory.tags if not _tells(tag, lost)),
        evidence=_borne_out(memory, sources),
        block_ids=tuple(dict.fromkeys(block_id for source in sources for block_id in source.block_ids)),
        merges=said - 1,
    )


def _borne_out(memory: Memory, sources: Sequence[Memory]) -> tuple[Evidence, ...]:
    """Return the evidence of the sources that the memory cited, or their first words, where they cite others by now."""
    cited = {(item.message_id, item.quote) for item in memory.evidence}
    every = [item for source in sources for item in source.evidence]
    found = [item for item in every if (item.message_id, item.quote) in cited]
    return tuple(dict.fromkeys(found or [source.evidence[0] for source in sources if source.evidence]))
