"""The context for a prompt: what was found, each thing once, neighbouring messages together, within a budget (G9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from remegraph.language.plain import folded
from remegraph.models import Chunk, Hit, LeftOut
from remegraph.ports import TokenCounter
from remegraph.rules.context import framed_lines, json_line
from remegraph.rules.disarming import vouched
from remegraph.rules.sharing import source_of

__all__ = ["Context", "Sheet", "assemble"]

_OF_ITSELF = 0.25
"""Most of the budget that what the agent knows of itself may take: with 500 tokens it once took all of them."""


@dataclass(frozen=True, slots=True)
class Context:
    """The text for the prompt, and why it leaves out what it leaves out, by id."""

    text: str
    left_out: Mapping[str, LeftOut]


def assemble(
    hits: Iterable[Hit],
    budget: int,
    count: TokenCounter,
    working: Sequence[Chunk] = (),
    *,
    share: float = 1.0,
    reader: str | None = None,
    notice: str = "",
) -> Context:
    """Return what was found as one JSON object per line, in the order given.

    Left out is what says the words of a record before it, of the same day, and a message whose words a memory made of
    it shows. A line that the budget does not take is left out whole; smaller ones after it may still go in. Messages
    that follow each other in a thread on one day become one passage, in their order, at the place of the first found.

    Args:
        hits: What was found, best first; one that was shown is not shown again.
        budget: Tokens that the text may have; each line counts by itself.
        count: Counts the tokens of a text.
        working: What is in mind for the task at hand: it comes first.
        share: Most of the budget that what one other agent or pack gave may take.
        reader: The agent that reads.
        notice: What the agent should know of memory itself, before all.
    """
    sheet = Sheet(budget, count, share=share, reader=reader)
    left_out: dict[str, LeftOut] = {}
    if notice:
        sheet.add_notice(notice)
    for chunk in working:
        if not sheet.add_chunk(chunk):
            left_out[chunk.chunk_id] = "budget"
    for hit in hits:
        if not sheet.shows(hit) and (reason := sheet.add(hit)):
            left_out[hit.record_id] = reason
    return Context(sheet.text(), left_out)


class Sheet:
    """The lines of a context, as far as a budget goes.

    Args:
        budget: Tokens that the text may have; each line counts by itself.
        count: Counts the tokens of a text.
        share: Most of the budget that what one other agent or pack gave may take; the first line may take more. What the
            agent knows of itself takes at most a quarter.
        reader: The agent that reads.
    """

    def __init__(self, budget: int, count: TokenCounter, *, share: float = 1.0, reader: str | None = None) -> None:
        self._left = budget - count(framed_lines([""]))
        self._each, self._of_itself = share * budget, _OF_ITSELF * budget
        self._reader = reader
        self._given: Counter[str] = Counter()
        self._count = count
        self._shown = _Shown()
        self._lines: list[_Line] = []

    def shows(self, hit: Hit) -> bool:
        """Return whether it stands here already."""
        return self._shown.is_itself(hit)

    def add_notice(self, notice: str) -> None:
        """Write what happened to memory itself, if there is room."""
        text = json_line({"about": "memory", "text": notice})
        self._take(_Line((), text, self._count(text) + 1))

    def add_chunk(self, chunk: Chunk) -> bool:
        """Write what is in mind; return whether there was room."""
        text = json_line({"id": chunk.chunk_id, "about": "working memory", "text": chunk.content})
        return self._take(_Line((), text, self._count(text) + 1))

    def add(self, hit: Hit, *, short: bool = False) -> LeftOut | None:
        """Write a line; return why not, if so.

        Args:
            hit: What was found.
            short: Whether its summary stands for it.
        """
        if self._shown.says_the_same_as(hit):
            return "duplicate"
        line = _Line.of([hit], self._count, short=short)
        of_itself = (hit.topic or "").startswith("self:")
        source, most = ("self", self._of_itself) if of_itself else (source_of(hit.origin, self._reader), self._each)
        if source and self._lines and self._given[source] + line.cost > most:
            return "cap"
        if not self._take(line):
            return "budget"
        self._given[source] += line.cost
        self._shown.add(hit)
        return None

    def text(self) -> str:
        """Return what was written, neighbouring messages as passages; nothing where nothing was."""
        return framed_lines([line.text for line in _with_passages(self._lines, self._count)])

    def _take(self, line: _Line) -> bool:
        if fits := line.cost <= self._left:
            self._left -= line.cost
            self._lines.append(line)
        return fits


@dataclass(slots=True)
class _Shown:
    """What the context shows so far."""

    records: set[tuple[object, ...]] = field(default_factory=set)
    words: set[tuple[object, ...]] = field(default_factory=set)
    told: dict[str, list[str]] = field(default_factory=dict)
    """What memories make of a message, by its id."""

    def add(self, hit: Hit) -> None:
        self.records.add((hit.kind, hit.partition, hit.record_id))
        self.words.add(_words(hit))
        for message_id in {item.message_id for item in hit.evidence}:
            self.told.setdefault(message_id, []).append(folded(hit.text))

    def is_itself(self, hit: Hit) -> bool:
        return (hit.kind, hit.partition, hit.record_id) in self.records

    def says_the_same_as(self, hit: Hit) -> bool:
        if _words(hit) in self.words:
            return True
        said = folded(hit.text.partition(": ")[2]) if hit.kind == "message" else ""
        return bool(said) and any(said in told for told in self.told.get(hit.record_id, ()))


def _words(hit: Hit) -> tuple[object, ...]:
    """Return what two hits have in common that say the same: the day counts, as things are said and done again."""
    return folded(hit.text), hit.time.date(), hit.perspective, hit.standing, hit.enforcement


@dataclass(frozen=True, slots=True)
class _Line:
    hits: Sequence[Hit]
    """What it shows; nothing: it shows what is in mind."""
    text: str
    cost: int

    @classmethod
    def of(cls, hits: Sequence[Hit], count: TokenCounter, *, short: bool = False) -> _Line:
        text = json_line(_record(hits[0], short=short) if len(hits) == 1 else _passage(hits))
        return cls(hits, text, count(text) + 1)


def _with_passages(lines: Sequence[_Line], count: TokenCounter) -> list[_Line]:
    """Return the lines with neighbouring messages as passages, where a passage costs no more than they do."""
    messages = [(at, line.hits[0]) for at, line in enumerate(lines) if line.hits and line.hits[0].kind == "message"]
    messages.sort(key=lambda each: (each[1].partition.to_json(), each[1].thread, each[1].seq))
    runs: list[list[tuple[int, Hit]]] = []
    for at, hit in messages:
        if runs and _follows(hit, runs[-1][-1][1]):
            runs[-1].append((at, hit))
        else:
            runs.append([(at, hit)])
    result = dict(enumerate(lines))
    for run in runs:
        places = sorted(at for at, _ in run)
        passage = _Line.of([hit for _, hit in run], count)
        if passage.cost <= sum(lines[at].cost for at in places):
            for at in places:
                del result[at]
            result[places[0]] = passage
    return [result[at] for at in sorted(result)]


def _follows(hit: Hit, before: Hit) -> bool:
    return (
        (hit.partition, hit.thread, hit.seq) == (before.partition, before.thread, before.seq + 1)
        and hit.time.date() == before.time.date()
    )  # fmt: skip


def _record(hit: Hit, *, short: bool) -> dict[str, object]:
    """Return what a line says of a hit.

    What the agent told itself in the first person is marked as its own: `"by": "you"`; what another agent or a pack
    gave, as theirs: `"from": "agent scout"`; a policy, with its level.
    """
    source = source_of(hit.origin, None)
    given = {"from": source} if source else {}
    own = {"by": "you"} if hit.perspective == "first-person" else {}
    known = {"id": hit.record_id, "about": hit.topic or hit.kind, "date": _day(hit), "trust": round(hit.trust, 2)}
    over: dict[str, object] = {} if hit.standing == "current" else {"status": hit.standing}
    if hit.standing == "expired" and hit.valid_to is not None:
        over["until"] = f"{hit.valid_to:%Y-%m-%d}"
    contrary = {"may_contradict": hit.counterpart_of} if hit.counterpart_of else {}
    rule = {"rule": hit.enforcement} if hit.enforcement else {}
    return (
        known
        | given
        | own
        | rule
        | over
        | contrary
        | ({"summary": vouched(hit.summary, hit.trust)} if short else {"text": vouched(hit.text, hit.trust)})
    )


def _passage(hits: Sequence[Hit]) -> dict[str, object]:
    said = [{"id": hit.record_id, "trust": round(hit.trust, 2), "text": vouched(hit.text, hit.trust)} for hit in hits]
    return {"about": "messages", "date": _day(hits[0]), "passage": said}


def _day(hit: Hit) -> str:
    return hit.time.date().isoformat()
