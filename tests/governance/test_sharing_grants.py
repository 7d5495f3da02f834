"""Grants: what an agent lets another read is read, told as the giver's, and nothing around it ever is."""

from __future__ import annotations

from pathlib import Path

import pytest

from remegraph import MemoryKit, Settings, SharingPolicy
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.governance.sharing_machine import SCOPES, SharingMachine
from tests.talk import NOON


def run(home: Path, *, seed: int, steps: int, thorough: int) -> None:
    """Let random agents share, and compare with the model after each step, now and then through every surface."""
    clock = FrozenClock(NOON)
    settings = Settings(sharing=SharingPolicy(source_share=1.0), home=home)
    with MemoryKit.open(
        settings=settings, ledger_url="sqlite://", model=None, embedder=None, index=InMemoryVectorIndex(), clock=clock
    ) as kit:
        machine = SharingMachine(kit, clock, seed)
        for number in range(steps):
            machine.step()
            machine.check(machine.chance.choice(SCOPES))
            if number % thorough == 0:
                machine.check_surfaces(machine.chance.choice(SCOPES))
                for scope in SCOPES:
                    machine.check(scope)
        assert machine.revoked
        assert not [each for each in kit.admin.verify().differences if each.where == "journal"]


@pytest.mark.requirement("B11", "X5")
def test_whatever_agents_grant_revoke_and_change_each_reads_exactly_what_it_may(tmp_path: Path) -> None:
    """No order of grants, revocations, expiries and changes opens more, or less, than the rules say."""
    run(tmp_path, seed=1, steps=100, thorough=5)


@pytest.mark.slow
@pytest.mark.requirement("B11", "X5")
@pytest.mark.parametrize("seed", range(5))
def test_ten_thousand_steps_of_sharing_never_leave_the_rules(tmp_path: Path, seed: int) -> None:
    """What sixty steps do not meet, ten thousand may."""
    run(tmp_path, seed=seed, steps=2_000, thorough=20)
