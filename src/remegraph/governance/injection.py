"""Rule injection: core rules, rules of the workspace, names that memory knows, whether words call for memory, and layers within a budget (G1, G2, G9)."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path, PurePath

from remegraph.engine.retrieval.context import Sheet
from remegraph.errors import BudgetExceededError, InputError
from remegraph.ledger.archive import Archive
from remegraph.models import (
    Chunk,
    Hit,
    Injected,
    InjectionLayer,
    LeftOut,
    Memory,
    Scope,
    Trigger,
    TriggerKind,
    Workspace,
)
from remegraph.ports import TokenCounter
from remegraph.text import table
from remegraph.text.entities import entities
from remegraph.text.scripts import simplified
from remegraph.text.tokens import query_tokens

__all__ = [
    "CAPS",
    "EVERY",
    "Layered",
    "core_rules",
    "known_names",
    "languages_of",
    "layered",
    "read_workspace",
    "scope_rules",
    "triggers",
]


_LOOKED_AT = 4
"""This many times more memories are read for the scope's layer than it shows: the rest is reported as left out."""

_NAMING = frozenset({"name", "term", "quoted"})


def core_rules(archive: Archive, scope: Scope, languages: Collection[str]) -> tuple[Memory, ...]:
    """Return the core rules, the most important first, then the newest."""
    found = archive.rules(archive.visible(scope), core=True)
    return tuple(rule for rule in found if not languages or rule.language_it_applies_to in {"", *languages})


def scope_rules(archive: Archive, scope: Scope, languages: Collection[str]) -> tuple[Memory, ...]:
    """Return what applies to the scope's project or to a language, other than core rules: policies first."""
    places = [f"lang:{name}" for name in languages]
    if scope.project is not None:
        places.append(scope.partition().applies_to)
    if not places:
        return ()
    return archive.rules(archive.visible(scope), places, core=False, limit=_LOOKED_AT * CAPS["scope"])


def known_names(archive: Archive, scope: Scope, text: str) -> tuple[str, ...]:
    """Return the names in a text that memory knows: those of topics, and those that memories contain."""
    partitions = archive.visible(scope)
    said = text.casefold()
    shelves = (shelf.topic for shelf in archive.topics(partitions) if shelf.topic.type != "self")
    targets = [topic.target_name for topic in shelves if topic.target in said]
    found = [each.text for each in entities(text, targets) if each.kind in _NAMING]
    plain = {scope.user.casefold(), (scope.agent or "").casefold()}
    topics = {target.casefold() for target in targets}
    named = {name.casefold(): name for name in found if name.casefold() not in plain}
    others = [name for folded, name in named.items() if folded not in topics]
    held = set(_held(archive, scope, others)) if others else set()
    return tuple(name for folded, name in named.items() if folded in topics or name in held)


def _held(archive: Archive, scope: Scope, names: Sequence[str]) -> Iterator[str]:
    """Yield the names whose words all occur in one memory."""
    words = {name: frozenset(query_tokens(name)) for name in names}
    tokens = sorted(frozenset().union(*words.values()))
    for matches in archive.match(archive.visible(scope), "memory", tokens) if tokens else ():
        for name, wanted in words.items():
            columns = [at for at, token in enumerate(matches.tokens) if token in wanted]
            if wanted and (matches.counts[:, columns] > 0).all(axis=1).any():
                yield name


_SHARE = 0.1
"""Share of source files from which a language without a manifest counts."""


def languages_of(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the programming languages of a project, the most frequent first; manifests count at its root only."""
    data, counted, declared = table("workspaces"), Counter[str](), set[str]()
    for path in map(PurePath, paths):
        if len(path.parts) == 1 and path.name in data["manifests"]:
            declared.add(data["manifests"][path.name])
        if language := data["extensions"].get(path.suffix.removeprefix(".").lower()):
            counted[language] += 1
    enough = _SHARE * counted.total()
    found = declared | {language for language, number in counted.items() if number >= enough}
    return tuple(sorted(found, key=lambda language: (-counted[language], language)))


_FILES = 2000
_DEPTH = 3


def read_workspace(path: str | Path) -> Workspace:
    """Return the workspace of a folder, whose project is the nearest root at or above it (names only: no file is read).

    Without such a root it is not a project, and has the languages of its files.
    """
    data = table("workspaces")
    marks = {*data["roots"], *data["manifests"]}
    try:
        folder = Path(path).expanduser().resolve(strict=True)
        parents = (folder, *folder.parents)
        root = next((each for each in parents if not marks.isdisjoint(inside.name for inside in each.iterdir())), None)
        languages = languages_of(islice(_files(root or folder), _FILES))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a folder ({error}).", "Name a working directory.") from error
    return Workspace(project=root.name or None if root else None, languages=languages)


def _files(root: Path) -> Iterator[str]:
    """Yield the files of a project by their paths from its root, down to a few levels, without generated ones."""
    ignored = table("workspaces")["ignored"]
    for folder, inside, names in os.walk(root):
        here = Path(folder).relative_to(root)
        kept = (name for name in inside if not name.startswith(".") and name not in ignored)
        inside[:] = sorted(kept) if len(here.parts) < _DEPTH else []
        yield from (str(here / name) for name in sorted(names))


EVERY = 5
"""Turns after which memory is searched whatever is said."""

_BY_WORDS: Sequence[TriggerKind] = ("past", "decision", "own")

_QUOTED = re.compile(
    r"\"[^\"\n]*\"|“[^”\n]*”|「[^」\n]*」|『[^』\n]*』|《[^》\n]*》|`[^`\n]*`|(?<!\w)'[^'\n]*'(?!\w)|(?<!\w)‘[^’\n]*’(?!\w)"
)


def triggers(text: str, *, turn: int, known: Collection[str] = (), shown: str = "") -> tuple[Trigger, ...]:
    """Return why memory should be searched for what was said; empty if it need not be.

    Words decide, in English, Chinese, German and Spanish (data/triggers.toml); no model does. Quoted text and titles do
    not count. `turn` says how many messages of the person there were, this one included. A name in `shown`,
    what the agent already sees, needs no search.
    """
    return tuple(_found(text, turn, known, shown.casefold()))


def _found(text: str, turn: int, known: Collection[str], shown: str) -> Iterator[Trigger]:
    said = _QUOTED.sub(" ", text).replace("’", "'").strip()
    for kind in _BY_WORDS:
        if found := _pattern(kind).search(simplified(said)):
            yield Trigger(kind=kind, words=said[found.start() : found.end()].strip(" ,，。、"))
    here = text.casefold()
    unresolved = {name for name in map(str.casefold, known) if name.strip() and name in here and name not in shown}
    if unresolved and (
        named := [each.text for each in entities(text, unresolved) if each.text.casefold() in unresolved]
    ):
        yield Trigger(kind="entity", words=", ".join(dict.fromkeys(named)))
    if turn and turn % EVERY == 0:
        yield Trigger(kind="turn", words=str(turn))


@cache
def _pattern(kind: str) -> re.Pattern[str]:
    told = table("triggers")[kind].values()
    return re.compile("|".join(f"(?:{each})" for some in told for each in some), re.IGNORECASE | re.MULTILINE)


CAPS: Mapping[InjectionLayer, int] = {"core": 10, "scope": 5, "query": 5}
"""How much a layer shows at most."""


@dataclass(slots=True)
class Layered:
    """The text for the prompt, what it shows, and the reasons for what it leaves out."""

    text: str = ""
    shown: list[Injected] = field(default_factory=list)
    left_out: dict[str, LeftOut] = field(default_factory=dict)


def layered(
    layers: Mapping[InjectionLayer, Sequence[Hit]],
    budget: int,
    count: TokenCounter,
    working: Sequence[Chunk] = (),
    *,
    share: float = 1.0,
    reader: str | None = None,
) -> Layered:
    """Return the layers as one text, in their order; what one shows already is not shown again.

    A core rule is never cut or left out for lack of room. If there is no room for an entry of another layer, its
    summary takes its place, or it is left out, and smaller ones after it may still go in. Working memory (`working`)
    comes before what bears on the words. `share` is the most of the budget for what one other agent or pack gave.

    Raises:
        BudgetExceededError: The core rules do not fit.
    """
    sheet, result = Sheet(budget, count, share=share, reader=reader), Layered()
    _lay("core", layers.get("core", ()), sheet, result)
    if "budget" in result.left_out.values():
        raise BudgetExceededError(
            f"The core rules have more than {budget} tokens.",
            "Raise the budget, or lower the importance of some under .9: core rules are never cut.",
        )
    sheet.begin()
    _lay("scope", layers.get("scope", ()), sheet, result)
    sheet.begin()
    result.left_out |= {chunk.chunk_id: "budget" for chunk in working if not sheet.add_chunk(chunk)}
    _lay("query", layers.get("query", ()), sheet, result)
    result.text = sheet.text()
    return result


def _lay(layer: InjectionLayer, hits: Sequence[Hit], sheet: Sheet, result: Layered) -> None:
    room = CAPS[layer]
    for hit in hits:
        if sheet.shows(hit):
            continue
        reason, shortened = (sheet.add(hit), False) if room else ("cap", False)
        if reason == "budget" and layer != "core" and 0 < len(hit.summary) < len(hit.text):
            reason, shortened = sheet.add(hit, short=True), True
        if reason:
            result.left_out[hit.record_id] = reason
        else:
            room -= 1
            result.left_out.pop(hit.record_id, None)
            result.shown.append(Injected(layer=layer, hit=hit, shortened=shortened))
