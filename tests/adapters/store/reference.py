"""LangGraph's `InMemoryStore`, to compare with, and random operations on both."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

Namespace = tuple[str, ...]

# Whole numbers with whole lengths: cosines that are equal on paper are equal in floating point, in either store.
_VECTORS = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (3, 4, 0), (4, 3, 0), (0, 3, 4), (1, 2, 2), (-1, 0, 0), (2, 0, 0))


class TableEmbeddings(Embeddings):
    """Gives every text one of a few vectors, so that many texts are equally near; a kit embeds no empty text."""

    def embed_query(self, text: str) -> list[float]:
        return [float(number) for number in _VECTORS[zlib.crc32(text.strip().encode()) % len(_VECTORS)]]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


class _Unmade(dict[str, Item]):
    """A namespace that is made once it holds an item."""

    def __init__(self, home: dict[Namespace, dict[str, Item]], name: Namespace) -> None:
        super().__init__()
        self._home = home
        self._name = name

    def __setitem__(self, key: str, item: Item) -> None:
        super().__setitem__(key, item)
        self._home[self._name] = self


class _Namespaces(dict[Namespace, dict[str, Item]]):
    def __missing__(self, name: Namespace) -> dict[str, Item]:
        return _Unmade(self, name)


class Reference(InMemoryStore):
    """LangGraph's store without those of its ways that `MemoryStore` says it does not share."""

    def __init__(self, index: IndexConfig | None) -> None:
        super().__init__(index=index)
        self._data: Any = _Namespaces()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations, and forget empty namespaces."""
        results = super().batch(ops)
        for name in [name for name, held in self._data.items() if not held]:
            del self._data[name]
        return results

    def _extract_texts(self, put_ops: dict[tuple[Namespace, str], PutOp]) -> Any:
        for namespace, key in put_ops:  # texts of earlier values are found no more
            self._vectors[namespace].pop(key, None)
        return super()._extract_texts(put_ops)

    def _insertinmem_store(self, to_embed: dict[str, list[Any]], embeddings: Sequence[list[float]]) -> None:
        for found_by, embedding in zip(to_embed.values(), embeddings, strict=True):  # one text may be of several items
            for namespace, key, path in found_by:
                self._vectors[namespace][key][path] = embedding


def plain(results: Iterable[Result]) -> list[Any]:
    """Return results without times, to compare; scores to six digits."""
    return [_plain(result) for result in results]


def _plain(result: Any) -> Any:
    if isinstance(result, list):
        return [_plain(one) for one in result]
    if isinstance(result, SearchItem):
        score = None if result.score is None else round(result.score, 5) + 0.0
        return result.namespace, result.key, result.value, score
    if isinstance(result, Item):
        return result.namespace, result.key, result.value
    return result


# ------------------------------------------------------------------------------------------ operations

# Prefixes of each other, wildcards of LIKE and of shells, separators, quotes, another script, a lone surrogate.
_LABELS = st.sampled_from(["foo", "foobar", "f_o", "f%", "fo", 'a"b', "a/b", "a\nb", "小林", "\ud800", "x"])
_NAMESPACES = st.sampled_from(
    [("foo",), ("foobar",), ("foo", "bar"), ("foo", "foo", "bar"), ("f_o",), ("f%", "foo"), ("小林", "foo")]
) | st.lists(_LABELS, min_size=1, max_size=3).map(tuple)
_PREFIXES = st.lists(_LABELS, max_size=2).map(tuple)
_PATTERNS = st.lists(_LABELS | st.just("*"), max_size=3).map(tuple)
_KEYS = st.sampled_from(["a", "b", "A", "", "\x00", "ключ"])
_WORDS = st.sampled_from(["tea", "coffee", "", "7", "茶"])
_NUMBERS = st.integers(-2, 2) | st.sampled_from([0.5, -1.5])
_VALUES = st.fixed_dictionaries(
    {"n": _NUMBERS},
    optional={
        "text": _WORDS,
        "tags": st.lists(_WORDS, max_size=3),
        "inner": st.fixed_dictionaries({"x": _NUMBERS}, optional={"y": st.none() | st.booleans()}),
    },
)
_INDEX = st.sampled_from([None, None, False, [], ["text"], ["tags[*]"], ["inner.x", "text"], ["tags[-1]", "missing"]])
_CONDITIONS = st.one_of(
    _WORDS,
    _NUMBERS,
    st.none(),
    st.lists(_WORDS, max_size=2),
    st.dictionaries(st.sampled_from(["$eq", "$ne"]), _WORDS | _NUMBERS, min_size=1),
    st.fixed_dictionaries({}, optional={"x": _NUMBERS, "y": st.none()}),
)
_FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "n": _NUMBERS | st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte", "$ne"]), _NUMBERS, min_size=1),
        "text": _CONDITIONS,
        "tags": _CONDITIONS,
        "inner": _CONDITIONS,
    },
)
_LIMITS = st.integers(0, 5) | st.just(50)
_OFFSETS = st.integers(0, 3)

_MATCHES = st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), _PATTERNS)

OPERATIONS: st.SearchStrategy[Op] = st.one_of(
    st.builds(PutOp, _NAMESPACES, _KEYS, _VALUES, _INDEX, ttl=st.none()),
    st.builds(PutOp, _NAMESPACES, _KEYS, st.none(), ttl=st.none()),
    st.builds(GetOp, _NAMESPACES, _KEYS),
    st.builds(
        SearchOp,
        _PREFIXES,
        filter=st.none() | _FILTERS,
        limit=_LIMITS,
        offset=_OFFSETS,
        query=st.none() | _WORDS,
    ),
    st.builds(
        ListNamespacesOp,
        match_conditions=st.none() | st.lists(_MATCHES, max_size=2).map(tuple),
        max_depth=st.none() | st.integers(0, 3),
        limit=_LIMITS,
        offset=_OFFSETS,
    ),
)

BATCHES = st.lists(st.lists(OPERATIONS, min_size=1, max_size=5), min_size=1, max_size=12)
"""Operations in batches, in sequence."""
