"""One kit in which each test meets a person of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from remegraph import MemoryKit, Settings, SharingPolicy
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.mek.sharers import TRUST, Household


@pytest.fixture(scope="session")
def sharing_kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """A kit that believes some agents more than others."""
    settings = Settings(home=tmp_path_factory.mktemp("sharing"), sharing=SharingPolicy(trust=TRUST))
    with MemoryKit.open(
        settings=settings, model=None, embedder=None, index=InMemoryVectorIndex(), clock=FrozenClock()
    ) as kit:
        yield kit


@pytest.fixture
def home(sharing_kit: MemoryKit) -> Household:
    """A person whom nobody has met before, with an agent that learns from others."""
    return Household(sharing_kit)
