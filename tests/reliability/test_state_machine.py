"""Whatever order things happen in, and wherever the power goes: the ledger holds what a simple model says."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from conftest import Figure
from remegraph import MemoryKit
from tests import talk
from tests.reliability.machine import KitMachine
from tests.reliability.power import Home, ServerHome


def _run(machine: type[KitMachine], folder: Path, examples: int, steps: int) -> str:
    """Run a machine; return its seed and how far it went."""
    MemoryKit.open(folder / "template", model=None, embedder=None).close()
    machine.template = folder / "template" / "ledger.sqlite"
    machine.steps = 0
    number = random.randrange(2**32)  # pytest-randomly prints the seed of this
    run_state_machine_as_test(
        seed(number)(machine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
    return f"{machine.__name__}: {examples} examples, {machine.steps} steps, seed {number}, no difference"


class FastMachine(KitMachine):
    """For every run of the tests."""


class LongMachine(KitMachine):
    """For the whole measure."""


class ChromaMachine(KitMachine):
    """With Chroma's files in the home."""

    chroma = True


class ServerMachine(KitMachine):
    """With the ledger on PostgreSQL."""

    def open_home(self, folder: Path) -> Home:
        return ServerHome(folder, talk.urls_of(folder)["ledger_url"])


@pytest.mark.requirement("X2", "X3", "X5")
def test_the_ledger_equals_a_simple_model_whatever_happens(tmp_path: Path) -> None:
    """A user need not know in which order her agents write, or when the machine was switched off."""
    _run(FastMachine, tmp_path, examples=3, steps=20)


@pytest.mark.slow
@pytest.mark.requirement("X2", "X3", "X5")
@pytest.mark.parametrize(  # in parts, as a test that takes minutes counts as one that hangs
    "machine", [LongMachine] * 8 + [ChromaMachine], ids=[*(f"part {part} of 8" for part in range(1, 9)), "chroma"]
)
def test_the_ledger_equals_a_simple_model_for_thousands_of_steps(
    machine: type[KitMachine], tmp_path: Path, figure: Figure
) -> None:
    """The same for 200 examples of 30 steps, and for 10 with the real index."""
    figure("bar 03: state machine", _run(machine, tmp_path, examples=10 if machine.chroma else 25, steps=30))


@pytest.mark.slow
@pytest.mark.requirement("X2", "X3", "X9")
@pytest.mark.parametrize("setup", ["servers"], indirect=True)
def test_the_ledger_on_a_server_equals_a_simple_model(setup: str, tmp_path: Path, figure: Figure) -> None:
    """There a power cut leaves a server that has to hear of it, and locks that somebody dead may hold."""
    figure("bar 03: state machine", f"{setup}: {_run(ServerMachine, tmp_path, examples=8, steps=20)}")
