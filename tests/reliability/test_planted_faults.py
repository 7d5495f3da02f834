"""Tests that cannot fail prove nothing: each of twenty planted faults turns a named test red."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import remegraph
from tests.reliability.plant_faults import FAULTS, Fault, Patch, plant


def test_every_patch_fits(tmp_path: Path) -> None:
    """Code moves on; a patch that fits no more would plant nothing."""
    assert len(FAULTS) == 20
    for number, fault in enumerate(FAULTS):
        package = tmp_path / str(number)
        shutil.copytree(Path(remegraph.__file__).parent, package)
        for patch in fault.patches:
            patch.apply(package)
            compile((package / patch.file).read_text(encoding="utf-8"), patch.file, "exec")
    with pytest.raises(LookupError):
        Patch("errors.py", "no such code", "").apply(tmp_path / "0")


@pytest.mark.slow
@pytest.mark.requirement("X2", "X3", "X5", "X6")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_noticed(fault: Fault) -> None:
    """Whoever breaks one of these by accident is told by name."""
    assert plant(fault)


@pytest.mark.slow
def test_without_a_fault_the_same_tests_are_green() -> None:
    """Else red would mean nothing."""
    assert plant(Fault("none", (), tuple({test for fault in FAULTS for test in fault.tests}))) == []
