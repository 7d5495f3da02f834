"""Skills as bandits: how much is lost by trying, beside choosing at random, over 20 tasks with 3 variants each.

    python -m evals skills [--tasks 20] [--runs 200] [--seeds 25] [--kit-runs 200] [--close]

Each variant has a success rate drawn from .05 to .95, or with --close from .6 to .95; nobody knows it. A task is done
again and again, with the variant that is chosen; regret is what the best variant would have succeeded more often, in
expectation. Choosing at random loses the mean over the variants each time.

The choice is that of `skills.choice`; over many seeds it is fed with counts, as 100,000 commits would measure the
disk. One seed goes through a kit on disk, `choose` and `record_outcome` for each of --kit-runs runs, over all tasks in turn, and
each choice there must be the one that the counts give.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evals._figures import Figure, finish
from remegraph import MemoryKit, Scope, Settings
from remegraph.models import Condition, Skill, SkillFigures, SkillStep, StepPattern
from remegraph.skills.choice import choose, wilson
from remegraph.testing import InMemoryVectorIndex

__all__ = ["Ran", "World", "counted", "kept", "main"]

SHARE = 1 / 3
"""The bar: regret as a share of that of a uniform choice."""

_ME = Scope(user="me", agent="remy")
_VARIANTS = 3


@dataclass(frozen=True, slots=True)
class World:
    """What nobody knows: the success rates of each task's variants; and chance, the same for everybody."""

    rates: Sequence[Sequence[float]]
    seed: int

    @classmethod
    def drawn(cls, tasks: int, seed: int, least: float) -> World:
        """Return a world.

        Args:
            tasks: How many tasks.
            seed: Of the draw.
            least: The lowest rate that there is.
        """
        rng = random.Random(seed)
        return cls([[rng.uniform(least, 0.95) for _ in range(_VARIANTS)] for _ in range(tasks)], seed)

    def succeeds(self, task: int, variant: int, run: int) -> bool:
        """Return whether a run succeeds."""
        return random.Random(f"{self.seed} {task} {variant} {run}").random() < self.rates[task][variant]

    def regret(self, task: int, variant: int) -> float:
        """Return what a choice loses."""
        return max(self.rates[task]) - self.rates[task][variant]

    def uniform(self, task: int) -> float:
        """Return what a random choice loses."""
        return max(self.rates[task]) - statistics.fmean(self.rates[task])


@dataclass
class Ran:
    """What a run of choices lost."""

    regret: float = 0.0
    uniform: float = 0.0
    chosen: list[int] = field(default_factory=list)

    def book(self, world: World, task: int, variant: int) -> None:
        """Book one choice."""
        self.regret += world.regret(task, variant)
        self.uniform += world.uniform(task)
        self.chosen.append(variant)


def counted(world: World, order: Sequence[int]) -> Ran:
    """Choose by counts alone.

    Args:
        world: What is true.
        order: The tasks, as they come up.
    """
    ran = Ran()
    tallies = [[(0, 0)] * _VARIANTS for _ in world.rates]
    for run, task in enumerate(order):
        variants = [_figures(at, *tally) for at, tally in enumerate(tallies[task])]
        variant = int(choose(variants)[0].memory_id)
        successes, runs = tallies[task][variant]
        tallies[task][variant] = (successes + world.succeeds(task, variant, run), runs + 1)
        ran.book(world, task, variant)
    return ran


def kept(world: World, order: Sequence[int]) -> Ran:
    """Choose through a kit.

    Args:
        world: What is true.
        order: The tasks, as they come up.
    """
    ran = Ran()
    with (
        tempfile.TemporaryDirectory() as home,
        MemoryKit.open(
            settings=Settings(home=Path(home)), model=None, embedder=None, index=InMemoryVectorIndex()
        ) as kit,
    ):
        ids = [_ids(kit, task) for task in range(len(world.rates))]
        for run, task in enumerate(order):
            choice = kit.skills.choose(f"task {task}", scope=_ME)
            variant = ids[task].index(choice.figures.memory_id)
            ok = world.succeeds(task, variant, run)
            kit.skills.record_outcome(choice.figures.memory_id, ok, scope=_ME, version=choice.skill.version)
            ran.book(world, task, variant)
    return ran


def _ids(kit: MemoryKit, task: int) -> list[str]:
    """State the variants of a task; return their ids in order, as ties go by them."""
    found = []
    for variant in range(_VARIANTS):
        step = SkillStep(name="do", step_pattern=StepPattern(tool=f"tool_{variant}"))
        skill = Skill(
            name=f"{task}.{variant}", task=f"task {task}", steps=(step,), postconditions=(Condition(field="do.ok"),)
        )
        found.append(kit.skills.add(skill, scope=_ME).memory_id)
    return sorted(found)


def _figures(variant: int, successes: int, runs: int) -> SkillFigures:
    lower, upper = wilson(successes, runs)
    return SkillFigures(
        memory_id=str(variant), name=str(variant), version=1, runs=runs, successes=successes, lower=lower, upper=upper
    )


def _shares(worlds: Sequence[World], runs: int) -> list[float]:
    """Return the regret of each world as a share of the uniform one, each task done so often."""
    found = []
    for world in worlds:
        ran = counted(world, [task for _ in range(runs) for task in range(len(world.rates))])
        found.append(ran.regret / ran.uniform)
    return found


def _report(worlds: Sequence[World], runs: int, kit_runs: int) -> Iterator[Figure]:
    shares, tasks = _shares(worlds, runs), len(worlds[0].rates)
    yield Figure("regret, share of uniform choice", statistics.fmean(shares), SHARE, note=f"{runs} runs per task")
    yield Figure("the same, worst seed", max(shares), note=f"of {len(worlds)}")
    late = _shares(worlds, max(1, runs // tasks))
    yield Figure("the same", statistics.fmean(late), note=f"{max(1, runs // tasks)} runs per task")
    order = [run % tasks for run in range(kit_runs)]
    ran, paper = kept(worlds[0], order), counted(worlds[0], order)
    yield Figure("through a kit", ran.regret / ran.uniform, note=f"{kit_runs} runs in all")
    yield Figure("choices as counted", sum(map(int.__eq__, ran.chosen, paper.chosen)), kit_runs, "exactly")


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m evals skills", description="Regret of the choice among skills.")
    parser.add_argument("--tasks", type=int, default=20, help="How many.")
    parser.add_argument("--runs", type=int, default=200, help="Of each task.")
    parser.add_argument("--seeds", type=int, default=25, help="How many worlds.")
    parser.add_argument("--kit-runs", type=int, default=200, help="Of all tasks, through a kit.")
    parser.add_argument("--close", action="store_true", help="Rates from .6 on: variants that are hard to tell apart.")
    options = parser.parse_args(argv)
    worlds = [World.drawn(options.tasks, seed, 0.6 if options.close else 0.05) for seed in range(options.seeds)]
    finish(list(_report(worlds, options.runs, options.kit_runs)))


if __name__ == "__main__":
    main()
