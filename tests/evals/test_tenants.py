"""The eval of a noisy tenant tells one that is refused from one that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from evals import tenants

pytestmark = pytest.mark.slow


def test_calls_over_a_limit_are_refused_without_the_ledger_and_others_are_not(
    postgres_url: str, tmp_path: Path
) -> None:
    """A figure of a limit that never bit would say nothing."""
    found, statements = tenants.rounds(postgres_url, str(tmp_path), 9)
    quiet, limited, unlimited = found.values()
    assert len(quiet.turns) == len(limited.turns) == len(unlimited.turns) == 24
    assert (quiet.refused, quiet.admitted, unlimited.refused) == (0, 0, 0)
    assert limited.admitted in {60, 120}  # a minute may begin
    assert limited.refused + limited.admitted == unlimited.admitted == 150
    assert statements == 0
