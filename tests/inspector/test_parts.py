"""The small parts that pages are made of."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import remegraph.servers.inspector as package
from remegraph import Partition, Scope
from remegraph.servers.inspector.pages import mask, partition_of
from remegraph.servers.inspector.views import HEIGHT, WIDTH, curve, cut

_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("spans", "marked"),
    [([], []), ([(0, 2)], ["ab"]), ([(4, 6), (0, 2)], ["ab", "ef"]), ([(0, 4), (2, 6)], ["abcd", "ef"]), ([(1, 5), (2, 3)], ["bcde"])],
)  # fmt: skip
def test_words_are_marked_once_and_none_is_lost(spans: list[tuple[int, int]], marked: list[str]) -> None:
    """Two quotes of one message may overlap, and the message still reads as it was said."""
    parts = list(cut("abcdef", spans))
    assert "".join(text for text, _ in parts) == "abcdef"
    assert [text for text, quoted in parts if quoted] == marked


def test_the_curve_falls_from_one_and_jumps_at_each_review() -> None:
    """A drawing with too few points would show a slope where there was a jump."""
    review = _NOON + 10 * _DAY

    def weigh(times: list[datetime]) -> list[float]:
        return [0.5 ** ((time - (review if time >= review else _NOON)) / (10 * _DAY)) for time in times]

    drawn = curve(
        lambda times: weigh(list(times)),
        begins=_NOON,
        ends=_NOON + 40 * _DAY,
        reviews=[review],
        threshold=0.15,
        now=_NOON + 20 * _DAY,
    )
    points = [[float(part) for part in each.split(",")] for each in drawn.points.split()]
    assert (points[0], points[-1][0]) == ([0, 0], WIDTH)
    ((place, _),) = drawn.reviews
    at_review = [height for x, height in points if abs(x - place) < 0.01]
    assert at_review == [pytest.approx(HEIGHT / 2, abs=0.1), 0]
    assert drawn.now == pytest.approx(2 * place, abs=0.1)
    assert drawn.threshold == pytest.approx(0.85 * HEIGHT)


@pytest.mark.parametrize(("user", "agent"), [(None, None), ("Ann", None), ("Ann", "remy"), (None, "remy")])
def test_a_partition_goes_into_an_address_and_comes_back(user: str | None, agent: str | None) -> None:
    """Labels of blocks repeat from partition to partition."""
    scope = Scope(user="Ann", agent="remy", project="x")
    found = Partition(tenant="default", user=user, agent=agent, project=None)
    assert partition_of(scope, mask(found)) == found
    assert partition_of(scope, None) is None


@pytest.mark.parametrize(
    "notice", [Path(package.__file__).parent / "static" / "NOTICE.md", Path(__file__).parent / "axe" / "NOTICE.md"]
)
def test_what_is_from_elsewhere_is_what_the_notice_says(notice: Path) -> None:
    """Nobody reads a minified file: its checksum says that it is the published one."""
    rows = re.findall(r"^\| (\S+\.js) .* ([0-9a-f]{64}) \|$", notice.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows
    for name, digest in rows:
        assert hashlib.sha256((notice.parent / name).read_bytes()).hexdigest() == digest
