"""The eval of conflicts: as many pairs as it says, none twice, and figures that tell noticed from false alarms."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from evals import conflicts
from evals.conflicts import KINDS, Half, Pair
from remegraph import MemoryKit, Scope
from remegraph.testing import InMemoryVectorIndex


def test_there_are_a_hundred_pairs_of_each_label_and_language_half_of_them_unseen() -> None:
    """A share of few pairs is a matter of luck."""
    asked = conflicts.pairs()
    each = Counter((pair.language, pair.kind, pair.half, pair.contrary) for pair in asked)
    assert set(each.values()) == {10}
    assert len(each) == 2 * len(KINDS) * 2 * 2
    assert len({(pair.first, pair.second) for pair in asked}) == len(asked) == 400


@pytest.mark.requirement("K4")
def test_the_figures_tell_what_is_noticed_from_false_alarms(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of two contradictions missed is a half, and a bar that is missed is a failure."""
    clear, hard, fine = (
        ("The hall seats 9.", "The hall seats 8."),
        ("I sing.", "Music bores me."),
        ("I sing.", "I act."),
    )
    halves: list[Half] = ["unseen", "unseen", "seen", "seen", "unseen"]
    some = [
        Pair(language, kind, half, contrary, *said)
        for language, kind, half in zip(("en", "zh", "en", "zh", "en"), KINDS, halves, strict=True)
        for contrary, said in ((True, clear if half == "seen" else hard), (False, fine))
    ]
    monkeypatch.setattr(conflicts, "pairs", lambda: some)
    monkeypatch.setattr("sys.argv", ["conflicts", "--missed"])
    with pytest.raises(SystemExit):
        conflicts.main()
    shown = capsys.readouterr().out
    assert "missed: status: I sing. | Music bores me." in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["zh:", "noticed", "0.500", "at", "least", "0.800", "FAIL", "of", "2", "pairs"] in rows
    assert ["written", "with", "the", "rules", "1", "of", "1", "pairs"] in rows
    assert "false alarm:" not in shown


def test_a_pair_is_noticed_by_what_the_kit_says_of_the_second(tmp_path: Path) -> None:
    """Replaced or in dispute: either way nobody is told both as true."""
    with MemoryKit.open(tmp_path, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        for number, (first, second, expected) in enumerate(
            [
                ("I live in Oslo.", "I live in Turin.", True),
                ("The hall seats 9.", "The hall seats 8.", True),
                ("I sing.", "I paint.", False),
            ]
        ):
            pair = Pair("en", "status", "seen", expected, first, second)
            assert conflicts.noticed(kit, pair, Scope(user=str(number))) is expected
