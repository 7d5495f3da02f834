"""English words for times."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import get_args

from remegraph.language import periods
from remegraph.language.numerals import ENGLISH_NUMERAL, number
from remegraph.language.periods import Period, Unit
from remegraph.language.timewords import Clock, Meaning, Rule, Word, find

__all__ = ["words"]

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = ("january february march april may june july august september october november december").split()
_SEASONS = {"spring": 0, "summer": 1, "autumn": 2, "fall": 2, "winter": 3}
_PARTS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 30)}
_THIRDS = {"early": 0, "beginning": 0, "start": 0, "mid": 1, "middle": 1, "late": 2, "end": 2}
_STEPS = {"last": -1, "previous": -1, "past": -1, "this past": -1, "this": 0, "next": 1, "coming": 1, "following": 1}
_HOLIDAYS = {
    "christmas eve": (12, 24),
    "christmas day": (12, 25),
    "christmas": (12, 25),
    "new year's eve": (12, 31),
    "new year's day": (1, 1),
    "halloween": (10, 31),
    "valentine's day": (2, 14),
}
_FEW = (2, 5)

_FLAGS = re.ASCII | re.IGNORECASE  # ASCII: a date may touch Chinese characters

_WEEKDAY = rf"(?P<weekday>{'|'.join(_WEEKDAYS)}|(?:mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)\b\.?)"
_FULL_WEEKDAY = rf"(?P<weekday>{'|'.join(_WEEKDAYS)})"
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)}|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
_FULL_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_UNIT = r"(?P<unit>minute|min|hour|hr|day|night|weekend|week|month|year)s?"
_AMOUNT = rf"(?P<amount>{ENGLISH_NUMERAL}|an?\s+few|few|several)"
_DAY_PART = r"(?P<part>morning|afternoon|evening|night)"

_FUTURE = re.compile(
    r"\b(?:will|won't|shall|going to|gonna|let's|let us|see you|meet(?:ing)?|plan(?:s|ned|ning)?|due|deadline|until|next"
    r"|upcoming|appointment|schedul\w+|remind|need to|have to|want to|can we|can you|could you|tomorrow|soon|book(?:ed)?"
    r"|by)\b|'ll\b",
    _FLAGS,
)
_PAST = re.compile(
    r"\b(?:was|were|had|did|lost|won|got|went|took|made|read|wrote|ran|learnt|built|grew|\w{2,}ed)\b", _FLAGS
)
_NEAR = 60


def words(text: str, said_at: datetime) -> Iterator[Word]:
    """Yield the English words for times in `text`, as meant at `said_at`; they may overlap."""
    return find(_RULES, text, said_at)


def _around(match: re.Match[str]) -> str:
    return match.string[max(0, match.start() - _NEAR) : match.end() + _NEAR // 2]


def _month_number(match: re.Match[str]) -> int:
    return next(at for at, name in enumerate(_MONTHS, 1) if name.startswith(match["month"].lower().rstrip(".")[:3]))


def _weekday_number(match: re.Match[str]) -> int:
    return next(at for at, name in enumerate(_WEEKDAYS) if name.startswith(match["weekday"].lower()[:3]))


def _step(match: re.Match[str]) -> int:
    return _STEPS[" ".join(match["step"].lower().split())]


def _unit(match: re.Match[str]) -> Unit:
    name = match["unit"].lower()
    name = {"min": "minute", "hr": "hour", "night": "day"}.get(name, name)
    return next(unit for unit in get_args(Unit) if unit == name)


def _amount(match: re.Match[str]) -> tuple[int, int]:
    """Return least and most: "a few" is no certain number."""
    word = " ".join(match["amount"].lower().split())
    if word.removeprefix("a ") in ("few", "several"):
        return _FEW
    return number(word), number(word)


def _named_day(match: re.Match[str], said: datetime) -> Meaning:
    name = match["name"].lower()
    name = " ".join(name.split()).removeprefix("the ")
    days = {"day before yesterday": -2, "yesterday": -1, "last night": -1, "tomorrow": 1, "day after tomorrow": 2}
    part = _PARTS["night"] if name in ("tonight", "last night") else None
    return Meaning(periods.day(said, days.get(name, 0)), part)


def _this_part(match: re.Match[str], said: datetime) -> Meaning:
    return Meaning(periods.day(said), _PARTS[match["part"].lower()])


def _step_unit(match: re.Match[str], said: datetime) -> Period:
    step = _step(match)
    unit = match["unit"].lower()
    if unit == "week":
        return periods.week(said, step)
    if unit == "weekend":
        return periods.weekend(said, step)
    return periods.month(said, step) if unit == "month" else periods.year(said, step)


def _two_steps(match: re.Match[str], said: datetime) -> Period:
    steps = -2 if match["relation"].lower() == "before last" else 2
    unit = match["unit"].lower()
    return periods.week(said, steps) if unit == "week" else periods.shifted(said, _unit(match), steps)


def _step_weekday(match: re.Match[str], said: datetime) -> Period:
    wanted, step = _weekday_number(match), _step(match)
    if step < 0:
        return periods.day(said, -((said.weekday() - wanted - 1) % 7 + 1))
    return periods.weekday(said, wanted, step)


def _weekday_of_week(match: re.Match[str], said: datetime) -> Period:
    return periods.weekday(said, _weekday_number(match), _step(match))


def _bare_weekday(match: re.Match[str], said: datetime) -> Period:
    wanted = _weekday_number(match)
    if _FUTURE.search(_around(match)):
        return periods.day(said, (wanted - said.weekday() - 1) % 7 + 1)
    return periods.day(said, -((said.weekday() - wanted - 1) % 7 + 1))


def _ago(match: re.Match[str], said: datetime) -> Period:
    least, most = _amount(match)
    if least != most:
        return periods.around(said, _unit(match), -most, -least)
    return periods.shifted(said, _unit(match), -most)


def _from_now(match: re.Match[str], said: datetime) -> Period:
    least, most = _amount(match)
    if least != most:
        return periods.around(said, _unit(match), least, most)
    return periods.shifted(said, _unit(match), most)


def _in_amount(match: re.Match[str], said: datetime) -> Period | None:
    """Three days from now; but "finished in three days" says how long it took."""
    before = match.string[max(0, match.start() - _NEAR) : match.start()]
    return None if _PAST.search(before) else _from_now(match, said)


def _stretch(match: re.Match[str], said: datetime) -> Period:
    most = _amount(match)[1] if match["amount"] else 1
    forward = _step(match) > 0
    return periods.around(said, _unit(match), 0, most) if forward else periods.around(said, _unit(match), -most, 0)


def _date(match: re.Match[str], said: datetime) -> Period:
    month, day = _month_number(match), int(match["day"])
    return periods.on(said, int(match["year"]), month, day) if match["year"] else periods.nearest(said, month, day)


def _date_range(match: re.Match[str], said: datetime) -> Period:
    first, last = _date(match, said), int(match["last"])
    ends = periods.on(said, first.begins.year, first.begins.month, last).ends
    if ends <= first.ends:
        raise ValueError("ends before it begins")
    return Period(first.begins, ends, "range")


def _iso(match: re.Match[str], said: datetime) -> Period:
    return periods.on(said, int(match["year"]), int(match["month"]), int(match["day"]))


def _numeric(match: re.Match[str], said: datetime) -> Period | None:
    first, second, year = int(match["first"]), int(match["second"]), int(match["year"])
    if first == second or second > 12:
        return periods.on(said, year, first, second)
    return periods.on(said, year, second, first) if first > 12 else None  # 03/04/2023 is March or April


def _bare_month(match: re.Match[str], said: datetime) -> Period | None:
    # "may" and "march" are verbs too.
    return periods.nearest(said, _month_number(match), None) if match["month"][0].isupper() else None


def _step_month(match: re.Match[str], said: datetime) -> Period | None:
    if not match["month"][0].isupper():
        return None
    wanted, step = _month_number(match), _step(match)
    past, coming = wanted >= said.month, wanted <= said.month
    return periods.on(said, said.year + (-past if step < 0 else coming if step > 0 else 0), wanted)


def _step_season(match: re.Match[str], said: datetime) -> Period:
    index, step = _SEASONS[match["season"].lower()], _step(match)
    near = [periods.season(said, index, years) for years in (-2, -1, 0, 1)]
    if step < 0:
        return [period for period in near if period.ends <= said][-1]
    if step > 0:
        return next(period for period in near if period.begins > said)
    return next(period for period in near if period.ends > said)


def _holiday(match: re.Match[str], said: datetime) -> Period:
    name = " ".join(match["name"].lower().replace("\u2019", "'").split())
    near = [periods.on(said, said.year + years, *_HOLIDAYS[name]) for years in (-1, 0, 1)]
    step = _step(match) if match["step"] else None
    if step == -1:
        return [period for period in near if period.ends <= said][-1]
    if step == 1:
        return next(period for period in near if period.begins > said)
    return near[1] if step == 0 else periods.nearest(said, *_HOLIDAYS[name])


def _third(match: re.Match[str], said: datetime) -> Meaning:  # noqa: ARG001 - a rule
    return Meaning(third=_THIRDS[match["third"].lower()])


def _clock(match: re.Match[str], said: datetime) -> Meaning:  # noqa: ARG001 - a rule
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    half = (match["half"] or "").lower()[:1]
    if half in ("a", "p"):
        hour = hour % 12 + (12 if half == "p" else 0)
    if hour > 23 or minute > 59:
        raise ValueError("no time of the day")
    exact = half in ("a", "p")
    return Meaning(clock=Clock(hour, minute, exact), alone=exact or bool(match["at"]))


def _named_clock(match: re.Match[str], said: datetime) -> Meaning:  # noqa: ARG001 - a rule
    return Meaning(clock=Clock(12 if match["name"].lower() == "noon" else 0, exact=True), alone=bool(match["at"]))


def _rule(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of whole words, in which one space stands for any white space."""
    return re.compile(rf"(?<![\w-])(?:{pattern})(?!\w)".replace(" ", r"\s+"), _FLAGS)


_STEP = r"(?P<step>this past|last|previous|this|next|coming|following)"
_STRETCH = r"(?P<step>last|past|previous|next|coming|following)"
_TO = r"\s?(?:-|–|to|until)\s?"
_ON = rf"(?:on )?(?:the )?(?:(?:{'|'.join(_WEEKDAYS)}),? )?"
_LAST_DAY = r"(?P<last>\d{1,2})(?:st|nd|rd|th)?"
_OF_YEAR = rf"(?:,?\s?{_YEAR})?(?![:\d])"
_IN = r"(?:in|of|by|during|until|from|to|since|between|and|through) "
_EARLY = r"(?:early|mid|late)[-\s]"
_AT = r"(?P<at>(?:at|around|by|until) )?"

_RELATIVE: tuple[Rule, ...] = (
    (_rule(r"(?P<name>(?:the )?day before yesterday|(?:the )?day after tomorrow)"), _named_day),
    (_rule(r"(?P<name>yesterday|today|tomorrow|tonight|last night)"), _named_day),
    (_rule(rf"this {_DAY_PART}"), _this_part),
    (_rule(rf"(?:the )?{_STEP} (?P<unit>week|weekend|month|year)"), _step_unit),
    (_rule(r"the (?P<unit>week|weekend|month|year) (?P<relation>before last|after next)"), _two_steps),
    (_rule(rf"(?:on )?{_STEP} {_WEEKDAY}"), _step_weekday),
    (_rule(rf"(?:on )?{_WEEKDAY} (?:of )?(?P<step>last|this|next) week"), _weekday_of_week),
    (_rule(rf"on {_WEEKDAY}"), _bare_weekday),
    (_rule(rf"(?P<time>{_FULL_WEEKDAY}) {_DAY_PART}"), _bare_weekday),
    (_rule(rf"{_AMOUNT} {_UNIT} (?:ago|back)"), _ago),
    (_rule(r"half an hour ago"), lambda _, said: periods.shifted(said, "minute", -30)),
    (_rule(r"in half an hour"), lambda _, said: periods.shifted(said, "minute", 30)),
    (_rule(rf"{_AMOUNT} {_UNIT} from (?:now|today)"), _from_now),
    (_rule(rf"in {_AMOUNT} {_UNIT}(?:' time)?"), _in_amount),
    (_rule(rf"(?:the )?{_STRETCH} {_AMOUNT} {_UNIT}"), _stretch),
    (_rule(rf"the (?P<step>past) (?P<amount>){_UNIT}"), _stretch),
    (_rule(rf"{_STEP} {_FULL_MONTH}"), _step_month),
    (_rule(rf"{_STEP} (?P<season>{'|'.join(_SEASONS)})"), _step_season),
)

_ABSOLUTE: tuple[Rule, ...] = (
    (_rule(rf"{_ON}{_DAY} (?:of )?{_MONTH}{_OF_YEAR}"), _date),
    (_rule(rf"{_ON}{_MONTH} (?:the )?{_DAY}{_OF_YEAR}"), _date),
    (_rule(rf"{_DAY}{_TO}{_LAST_DAY} (?:of )?{_MONTH}{_OF_YEAR}"), _date_range),
    (_rule(rf"{_MONTH} {_DAY}{_TO}{_LAST_DAY}{_OF_YEAR}"), _date_range),
    (re.compile(rf"(?<![\w-]){_YEAR}[-/.](?P<month>\d\d?)[-/.](?P<day>\d\d?)(?![\d-])T?", _FLAGS), _iso),
    (_rule(rf"(?P<first>\d\d?)[/.](?P<second>\d\d?)[/.]{_YEAR}"), _numeric),
    (
        _rule(rf"{_MONTH},?\s(?:of )?{_YEAR}"),
        lambda match, said: periods.on(said, int(match["year"]), _month_number(match)),
    ),
    (_rule(rf"(?:{_IN}|{_EARLY})(?P<time>{_FULL_MONTH})"), _bare_month),
    (
        _rule(rf"(?:{_IN}|{_EARLY})(?P<time>{_YEAR})(?![-/:.,]\d|\s?%)"),
        lambda match, said: periods.on(said, int(match["year"])),
    ),
    (_rule(rf"(?:{_STEP} )?(?P<name>{'|'.join(_HOLIDAYS)})"), _holiday),
)

_PARTIAL: tuple[Rule, ...] = (
    (_rule(rf"(?:the )?(?P<third>{'|'.join(_THIRDS)})(?: of)?-?"), _third),
    (_rule(_DAY_PART), lambda match, _: Meaning(part=_PARTS[match["part"].lower()])),
    (_rule(rf"{_AT}(?P<hour>\d\d?)(?::(?P<minute>\d\d))?\s?(?P<half>[ap]m|[ap]\.m\.|o'clock)"), _clock),
    (
        re.compile(
            rf"(?:(?<=T)|(?<![\w:.]){_AT})(?P<hour>\d\d?):(?P<minute>\d\d)(?P<half>)(?::\d\d(?!\d)|(?!:?\d))", _FLAGS
        ),
        _clock,
    ),
    (_rule(rf"{_AT}(?P<name>noon|midnight)"), _named_clock),
)

_RULES = (*_RELATIVE, *_ABSOLUTE, *_PARTIAL)
