from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from remegraph.errors import MessageError, NaiveTimeError
from remegraph.importers.messages import parse_time

SHANGHAI = ZoneInfo("Asia/Shanghai")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2024-04-01T08:25:00Z", "2024-04-01T08:25:00+00:00"),
        ("2024-04-01T08:25:00+02:00", "2024-04-01T06:25:00+00:00"),
        ("2024-04-01T08:25:00", "2024-04-01T00:25:00+00:00"),
        ("2024-04-01 08:25", "2024-04-01T00:25:00+00:00"),
        ("2024-04-01", "2024-04-01T04:00:00+00:00"),
        ("20240401", "2024-04-01T04:00:00+00:00"),
        ("2024年04月01日 周一 08:25", "2024-04-01T00:25:00+00:00"),
        ("2024年4月1日 星期一 8:25:30", "2024-04-01T00:25:30+00:00"),
        ("2024年4月1日", "2024-04-01T04:00:00+00:00"),
        (1711959900, "2024-04-01T08:25:00+00:00"),
        (1711959900.5, "2024-04-01T08:25:00.500000+00:00"),
        (date(2024, 4, 1), "2024-04-01T04:00:00+00:00"),
        (datetime(2024, 4, 1, 8, 25, tzinfo=UTC), "2024-04-01T08:25:00+00:00"),
        (datetime(2024, 4, 1, 8, 25), "2024-04-01T00:25:00+00:00"),  # noqa: DTZ001 - the naive case
    ],
)
@pytest.mark.requirement("R1")
def test_a_time_is_read_in_every_form_that_sources_use(written: object, meant: str) -> None:
    """Conversations come from many systems; each writes times its own way."""
    assert parse_time(written, timezone=SHANGHAI) == datetime.fromisoformat(meant)


@pytest.mark.parametrize(
    "written", ["2024-04-01T08:25:00", "2024-04-01", "2024年04月01日 周一 08:25", date(2024, 4, 1)]
)
def test_a_time_without_a_zone_is_refused_with_the_cure(written: object) -> None:
    """A guessed zone would shift memories by hours; the message says how to give one."""
    with pytest.raises(NaiveTimeError, match="timezone="):
        parse_time(written, timezone=None)


def test_an_aware_time_keeps_the_zone_it_was_written_in() -> None:
    """The offset says what time of day it was where the words were said."""
    found = parse_time("2024-04-01T08:25:00+02:00", timezone=SHANGHAI)
    assert found.isoformat() == "2024-04-01T08:25:00+02:00"


@pytest.mark.parametrize(
    "written", ["yesterday", "2024-13-01", "2024年13月01日 08:25", "", True, None, [], float("nan"), float("inf")]
)
def test_what_is_no_time_is_refused_with_the_forms_that_are(written: object) -> None:
    """A time that was silently replaced by now would be a false memory."""
    with pytest.raises(MessageError):
        parse_time(written, timezone=UTC)


def test_milliseconds_are_not_taken_for_seconds() -> None:
    """Many exports count milliseconds; read as seconds they would lie in the year 56,000."""
    with pytest.raises(MessageError, match="not milliseconds"):
        parse_time(1711959900000, timezone=None)
