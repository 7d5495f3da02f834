"""The simulated tasks are the same for everybody, and their figures tell a choice from chance."""

from __future__ import annotations

import pytest

from evals import skills
from evals.skills import World


@pytest.mark.requirement("B10")
def test_the_choice_loses_a_third_of_what_chance_loses_at_most() -> None:
    """The bar of the eval, on two worlds: without it agents would go on trying what does not work."""
    worlds = [World.drawn(5, seed, 0.05) for seed in range(2)]
    assert worlds[0] == World.drawn(5, 0, 0.05) != worlds[1]
    assert max(skills._shares(worlds, 100)) <= skills.SHARE


@pytest.mark.slow
def test_a_kit_chooses_as_the_counts_say() -> None:
    """The figures over many seeds are of counts: they are worth something only if the kit does the same."""
    world, order = World.drawn(2, 3, 0.05), [run % 2 for run in range(16)]
    assert skills.kept(world, order).chosen == skills.counted(world, order).chosen
