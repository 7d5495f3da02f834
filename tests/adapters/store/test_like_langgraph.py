"""`MemoryStore` gives what LangGraph's own store gives."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import IndexConfig, Op

from remegraph import MemoryKit, Scope
from remegraph.adapters import MemoryStore
from tests.adapters.store.reference import BATCHES, Reference, TableEmbeddings, plain

_USERS = (f"user{number}" for number in itertools.count())


@pytest.mark.slow
@pytest.mark.requirement("C5")
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=BATCHES, index=st.sampled_from([None, ["text", "tags[*]"], False]))
def test_random_operations_give_what_the_store_in_memory_gives(
    table_kit: MemoryKit, batches: Sequence[Sequence[Op]], index: list[str] | Literal[False] | None
) -> None:
    """An application that moves over from LangGraph's own store behaves as before: order, scores and all."""
    store = MemoryStore(table_kit, scope=Scope(user=next(_USERS)), index=index)
    config = IndexConfig(dims=3, embed=TableEmbeddings(), fields=index or ["$"])
    reference = Reference(None if index is False else config)
    for ops in batches:
        assert plain(store.batch(ops)) == plain(reference.batch(ops))
