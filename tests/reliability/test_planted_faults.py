"""Tests that cannot fail prove nothing: each planted fault turns a named test red."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import remegraph
from tests.reliability.plant_faults import FAULTS, Fault, Patch, plant


def test_every_patch_fits(tmp_path: Path) -> None:
    """Code moves on; a patch that fits no more would plant nothing."""
    sources = Path(remegraph.__file__).parent
    for fault in FAULTS:
        for file in {patch.file for patch in fault.patches}:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(sources / file, tmp_path / file)
        for patch in fault.patches:
            patch.apply(tmp_path)
            compile((tmp_path / patch.file).read_text(encoding="utf-8"), patch.file, "exec")
    with pytest.raises(LookupError):
        Patch(FAULTS[0].patches[0].file, "no such code", "").apply(tmp_path)


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
