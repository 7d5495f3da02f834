"""What an agent is given unasked, and which names its memory knows (G1, G2)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from remegraph.language.entities import entities
from remegraph.language.tokens import query_tokens
from remegraph.models import Memory, Scope
from remegraph.ports import Archive
from remegraph.rules.layering import CAPS

__all__ = ["core_rules", "known_names", "scope_rules"]

_LOOKED_AT = 4
"""How many times more than it shows are read of the scope's layer: they are reported as left out, the others not."""

_NAMING = frozenset({"name", "term", "quoted"})


def core_rules(archive: Archive, scope: Scope, languages: Collection[str]) -> tuple[Memory, ...]:
    """Return the core rules, the most important first, then the newest.

    Args:
        archive: The ledger.
        scope: Who is served.
        languages: Programming languages at hand; where some are, a rule for another one does not apply.
    """
    found = archive.rules(archive.visible(scope), core=True)
    return tuple(rule for rule in found if not languages or rule.language_it_applies_to in {"", *languages})


def scope_rules(archive: Archive, scope: Scope, languages: Collection[str]) -> tuple[Memory, ...]:
    """Return what applies to the scope's project or to a language, other than core rules: policies first.

    Args:
        archive: The ledger.
        scope: Who is served.
        languages: Programming languages at hand.
    """
    places = [f"lang:{name}" for name in languages]
    if scope.project is not None:
        places.append(scope.partition().applies_to)
    if not places:
        return ()
    return archive.rules(archive.visible(scope), places, core=False, limit=_LOOKED_AT * CAPS["scope"])


def known_names(archive: Archive, scope: Scope, text: str) -> tuple[str, ...]:
    """Return the names in a text that memory knows something about: those of topics, and those that memories hold.

    Args:
        archive: The ledger.
        scope: Who is served; their own name, and the agent's, say nothing.
        text: What was said.
    """
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
    """Yield the names all of whose words stand in one memory."""
    words = {name: frozenset(query_tokens(name)) for name in names}
    tokens = sorted(frozenset().union(*words.values()))
    for matches in archive.match(archive.visible(scope), "memory", tokens) if tokens else ():
        for name, wanted in words.items():
            columns = [at for at, token in enumerate(matches.tokens) if token in wanted]
            if wanted and (matches.counts[:, columns] > 0).all(axis=1).any():
                yield name
