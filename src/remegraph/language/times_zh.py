"""Chinese words for times, in simplified characters (`times` maps the traditional ones)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

from remegraph.language import periods
from remegraph.language.numerals import CHINESE_NUMERAL, number
from remegraph.language.periods import Period, Unit
from remegraph.language.timewords import Clock, Meaning, Rule, Word, find

__all__ = ["words"]

_DAYS = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3}
_YEARS = {"大前": -3, "前": -2, "去": -1, "今": 0, "本": 0, "明": 1, "后": 2}
_STEPS = {"上上": -2, "上": -1, "这": 0, "本": 0, "下": 1, "下下": 2}
_WEEKDAYS = {name: at for at, name in enumerate("一二三四五六日")} | {"天": 6}
_SEASONS = {name: at for at, name in enumerate("春夏秋冬")}
_THIRDS = {"初": 0, "上旬": 0, "中旬": 1, "中": 1, "下旬": 2, "底": 2, "末": 2}
_PARTS = {
    "凌晨": (0, 6),
    "早上": (5, 12),
    "早晨": (5, 12),
    "清晨": (5, 9),
    "上午": (6, 12),
    "中午": (11, 14),
    "下午": (12, 18),
    "傍晚": (17, 20),
    "晚上": (18, 30),
    "夜里": (18, 30),
    "深夜": (21, 30),
    "半夜": (22, 30),
    # Only after a day, as in 昨晚.
    "早": (5, 12),
    "晨": (5, 12),
    "晚": (18, 30),
    "夜": (18, 30),
}
_UNITS: dict[str, Unit] = {
    "分钟": "minute",
    "小时": "hour",
    "钟头": "hour",
    "天": "day",
    "日": "day",
    "周": "week",
    "星期": "week",
    "礼拜": "week",
    "月": "month",
    "年": "year",
}
_HOLIDAYS = {
    "元旦": (1, 1),
    "情人节": (2, 14),
    "劳动节": (5, 1),
    "儿童节": (6, 1),
    "国庆节": (10, 1),
    "国庆": (10, 1),
    "平安夜": (12, 24),
    "圣诞节": (12, 25),
    "圣诞": (12, 25),
}
_HALVES: dict[str, tuple[Unit, int]] = {
    "年": ("month", 6),
    "月": ("day", 15),
    "小时": ("minute", 30),
    "钟头": ("minute", 30),
}
_FEW = (2, 5)
_QUARTER = 15


def words(text: str, said_at: datetime) -> Iterator[Word]:
    """Yield the Chinese words for times in `text`, as meant at `said_at`; they may overlap."""
    return find(_RULES, text, said_at)


def _number(match: re.Match[str], group: str) -> int | None:
    return number(match[group]) if match[group] else None


def _amount(match: re.Match[str]) -> tuple[int, int]:
    """Return least and most: 几 is no certain number."""
    return _FEW if match["amount"] in ("几", "数") else (number(match["amount"]),) * 2


def _day(match: re.Match[str], said: datetime) -> Meaning:
    part = match["part"]
    return Meaning(periods.day(said, _DAYS[match["step"]]), _PARTS[part] if part else None)


def _week(match: re.Match[str], said: datetime) -> Period:
    step = _STEPS[match["step"]] if match["step"] else 0
    name = match["weekday"]
    if not name:
        return periods.week(said, step)
    return periods.weekend(said, step) if name == "末" else periods.weekday(said, _WEEKDAYS[name], step)


def _month_and_day(match: re.Match[str], said: datetime) -> Period:
    first = periods.month(said, _STEPS[match["step"]])
    day = _number(match, "day")
    return periods.on(said, first.begins.year, first.begins.month, day) if day else first


def _year_and_day(match: re.Match[str], said: datetime) -> Period:
    month, day = _number(match, "month"), _number(match, "day")
    return periods.on(said, said.year + _YEARS[match["step"]], month, day)


def _date(match: re.Match[str], said: datetime) -> Period:
    return periods.on(said, number(match["year"]), _number(match, "month"), _number(match, "day"))


def _day_of_any_year(match: re.Match[str], said: datetime) -> Period:
    return periods.nearest(said, _number(match, "month"), _number(match, "day"))


def _date_range(match: re.Match[str], said: datetime) -> Period:
    month, day, year = number(match["month"]), number(match["day"]), _number(match, "year")
    first = periods.on(said, year, month, day) if year else periods.nearest(said, month, day)
    ends = periods.on(said, first.begins.year, month, number(match["last"])).ends
    if ends <= first.ends:
        raise ValueError("ends before it begins")
    return Period(first.begins, ends, "range")


def _shifted(match: re.Match[str], said: datetime) -> Period:
    (least, most), unit = _amount(match), _UNITS[match["unit"]]
    if match["side"] == "前":
        return periods.shifted(said, unit, -most) if least == most else periods.around(said, unit, -most, -least)
    if match["side"] == "内":
        return periods.around(said, unit, 0, most)
    return periods.shifted(said, unit, most) if least == most else periods.around(said, unit, least, most)


def _half(match: re.Match[str], said: datetime) -> Period:
    unit, amount = _HALVES[match["unit"].removeprefix("个")]
    if match["side"] == "内":
        return periods.around(said, unit, 0, amount)
    return periods.shifted(said, unit, -amount if match["side"] == "前" else amount)


def _past(match: re.Match[str], said: datetime) -> Period:
    return periods.around(said, _UNITS[match["unit"]], -_amount(match)[1], 0)


def _coming(match: re.Match[str], said: datetime) -> Period:
    return periods.around(said, _UNITS[match["unit"]], 0, _amount(match)[1])


def _season(match: re.Match[str], said: datetime) -> Period:
    return periods.season(said, _SEASONS[match["season"]], _YEARS[match["step"]])


def _holiday(match: re.Match[str], said: datetime) -> Period:
    day = _HOLIDAYS[match["name"]]
    if match["step"]:
        return periods.on(said, said.year + _YEARS[match["step"]], *day)
    return periods.nearest(said, *day)


def _clock(match: re.Match[str], said: datetime) -> Meaning:  # noqa: ARG001 - a rule
    hour, minute = number(match["hour"]), _number(match, "minute") or 0
    more = match["more"] or ""
    if more == "半":
        minute = 30
    elif more.endswith("刻"):
        minute = _QUARTER * number(more[0])
    if hour > 24 or minute > 59:
        raise ValueError("no time of the day")
    # "三点" alone may be three points; with 钟, 半 or minutes it is a time.
    return Meaning(clock=Clock(hour, minute), alone=bool(more))


def _third_of(match: re.Match[str], said: datetime) -> Meaning:  # noqa: ARG001 - a rule
    return Meaning(third=_THIRDS[match["third"]])


def _third(match: re.Match[str], said: datetime) -> Meaning:
    whole = periods.year(said) if match["unit"] == "年" else periods.month(said)
    return Meaning(whole, third=_THIRDS[match["third"]])


def _any_of(names: Iterable[str]) -> str:
    return "|".join(sorted(names, key=len, reverse=True))


_N = CHINESE_NUMERAL
_STEP = f"(?<![日基成资根原])(?P<step>{_any_of(_STEPS)})"
_WEEK = "个?(?:周|星期|礼拜)"
_YEAR_STEP = f"(?<!以)(?P<step>{_any_of(_YEARS)})年"
_MONTH = f"(?P<month>{_N})月份?"
# What a number with 号 may be part of, other than a day: a line, a building, a door, a table, ...
_DAY = f"(?P<day>{_N})(?:日|号(?![线楼门店院馆桌机车位房厅台码]))"
_YEAR = r"(?P<year>(?:19|20)\d\d|[一二][〇零九一二三四五六七八]{3})年"
_AMOUNT = f"(?<![第\\d])(?P<amount>{_N}|几|数)\\s?个?"
_UNIT = f"(?P<unit>{_any_of(_UNITS)})"
_SIDE = "(?:以|之)?(?P<side>前|后|内)"
_SMALL = r"\d\d?|十[一二]?|[一二三四五六七八九]"

_RELATIVE: tuple[Rule, ...] = (
    (re.compile("(?P<step>大前|前|昨|今|明|大后|后)[天日](?P<part>)"), _day),
    (re.compile("(?P<step>前|昨|今|明)(?P<part>早|晨|晚|夜)上?"), _day),
    (re.compile(f"{_STEP}{_WEEK}(?P<weekday>[一二三四五六日天末]?)"), _week),
    (
        re.compile(
            "(?<![每个〇零一二两三四五六七八九十几\\d])(?P<step>)(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天末])(?!年)"
        ),
        _week,
    ),
    (re.compile(f"{_STEP}个?月(?![球亮饼])(?:的?{_DAY})?"), _month_and_day),
    (re.compile(f"{_YEAR_STEP}(?:的?(?:{_MONTH}(?:{_DAY})?))?"), _year_and_day),
    (re.compile(f"{_AMOUNT}{_UNIT}{_SIDE}"), _shifted),
    (re.compile(f"半(?P<unit>年|个月|个?小时|个?钟头){_SIDE}"), _half),
    (re.compile(f"(?:过去|最近|近|前)(?P<amount>{_N}|几)个?{_UNIT}"), _past),
    (re.compile(f"(?:未来|接下来|今后|接下来的)(?P<amount>{_N}|几)个?{_UNIT}"), _coming),
    (re.compile(f"{_YEAR_STEP}的?(?P<season>[春夏秋冬])[天季]"), _season),
    (re.compile(f"(?:{_YEAR_STEP}的?)?(?P<name>{_any_of(_HOLIDAYS)})"), _holiday),
)

_ABSOLUTE: tuple[Rule, ...] = (
    (re.compile(f"{_YEAR}(?:{_MONTH}(?:{_DAY})?)?"), _date),
    (re.compile(f"{_MONTH}{_DAY}"), _day_of_any_year),
    (re.compile(f"(?:{_YEAR})?{_MONTH}(?P<day>{_N})[日号]?\\s*[到至~—–-]\\s*(?P<last>{_N})[日号]"), _date_range),
    (
        re.compile(
            rf"(?<![\d个第〇零一二三四五六七八九十年])(?P<month>{_SMALL})月份?(?P<day>)(?![\d球亮饼子]|{_N}[日号])"
        ),
        _day_of_any_year,
    ),
    (re.compile(f"(?<![\\d第月])(?P<month>)(?=\\d\\d?号){_DAY}"), _day_of_any_year),
)

_PARTIAL: tuple[Rule, ...] = (
    (re.compile(f"(?<=[年月份])[年月]?(?P<third>{_any_of(_THIRDS)})(?![中级步次])"), _third_of),
    (re.compile("(?<![年月个上下本这\\d一二三四五六七八九十])(?P<unit>[年月])(?P<third>初|底|末)(?!次)"), _third),
    (re.compile(_any_of(name for name in _PARTS if len(name) > 1)), lambda match, _: Meaning(part=_PARTS[match[0]])),
    (
        re.compile(
            r"(?<![\d第])(?P<hour>\d\d?|十[一二]?|[一二三四五六七八九两])(?:点|时(?![候间代常期]))"
            r"(?P<more>半|[一三]刻|钟|整|(?P<minute>[0-5]\d|\d(?=分)|[二三四五]?十[一二三四五六七八九]?|零[一二三四五六七八九])分?)?"
        ),
        _clock,
    ),
)

_RULES = (*_RELATIVE, *_ABSOLUTE, *_PARTIAL)
