"""Who sees what."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.models import Partition, Scope, visible

HOSTILE = [
    "ann",
    "Ann",
    "ann ",
    "a",
    "%",
    "_",
    "*",
    "None",
    "null",
    "default",
    "ann|bob",
    "ann/../bob",
    "' OR 1=1 --",
    "ａnn",
]
NAMES = st.sampled_from(HOSTILE) | st.text(
    st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=3
)
FEW = st.sampled_from(HOSTILE[:5])
"""Few enough to meet each other often."""


def scopes(names: st.SearchStrategy[str]) -> st.SearchStrategy[Scope]:
    return st.builds(Scope, user=names, tenant=names, agent=st.none() | names, project=st.none() | names)


def partitions(names: st.SearchStrategy[str]) -> st.SearchStrategy[Partition]:
    some = st.none() | names
    return st.builds(Partition, tenant=names, user=some, agent=some, project=some)


def may_see(scope: Scope) -> set[Partition]:
    """By definition: each field as the scope has it, or none; the tenant always the scope's."""
    return {
        Partition(tenant=scope.tenant, user=user, agent=agent, project=project)
        for user, agent, project in product({scope.user, None}, {scope.agent, None}, {scope.project, None})
    }


@pytest.mark.requirement("X5")
@given(scopes(FEW), st.lists(partitions(FEW), unique=True, max_size=40))
def test_a_scope_sees_what_is_its_own_or_explicitly_nobodys(scope: Scope, existing: list[Partition]) -> None:
    """One row too many is a leak between users."""
    found = visible(scope, existing)

    assert set(found) == may_see(scope) & set(existing)
    assert len(found) == len(set(found)) <= 8
    if scope.partition() in existing:
        assert found[0] == scope.partition()


@pytest.mark.requirement("X5")
@given(scopes(NAMES), partitions(NAMES))
def test_no_name_is_a_pattern(scope: Scope, partition: Partition) -> None:
    """A user who is called % or None must see no more than any other."""
    assert (visible(scope, [partition]) == (partition,)) == (partition in may_see(scope))


@pytest.mark.requirement("X5")
@given(scopes(FEW))
def test_none_is_never_a_wildcard(scope: Scope) -> None:
    """Who names no agent and no project sees what belongs to none, not what belongs to any."""
    narrow = scope.evolve(agent=None, project=None)
    others = [
        Partition(tenant=scope.tenant, user=scope.user, agent="other", project=None),
        Partition(tenant=scope.tenant, user=scope.user, agent=None, project="other"),
        Partition(tenant=scope.tenant, user=None, agent="other", project=None),
    ]
    assert visible(narrow, others) == ()
    everything = [Partition(tenant=scope.tenant), narrow.partition()]
    assert visible(narrow, everything) == (narrow.partition(), Partition(tenant=scope.tenant))
