"""Chinese words for times, in simplified characters (`times` maps the traditional ones)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from remegraph.text import time_words
from remegraph.text.scripts import CHINESE_NUMERAL, number
from remegraph.text.time_words import (
    UNSETTLED,
    Clock,
    Meaning,
    Means,
    Period,
    Unit,
    Word,
    day_from,
    day_of_month,
    find,
    yearly,
)

__all__ = ["words"]

_DAYS = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3, "琴": -1, "寻": -1, "听": 1}
_YEARS = {"大前": -3, "前": -2, "去": -1, "旧": -1, "今": 0, "本": 0, "明": 1, "出": 1, "后": 2}
_STEPS = {"上上": -2, "上": -1, "这": 0, "本": 0, "呢": 0, "今": 0, "下": 1, "下下": 2}
_WEEKDAYS = {name: at for at, name in enumerate("一二三四五六日")} | {"天": 6}
_SEASONS = {name: at for at, name in enumerate("春夏秋冬")}
_THIRDS = {"初": 0, "上旬": 0, "中旬": 1, "中": 1, "下旬": 2, "底": 3, "末": 3}
_PARTS = {"凌晨": (0, 6), "清晨": (5, 9), "上午": (6, 12), "中午": (11, 14), "下午": (12, 18), "傍晚": (17, 20)}
_PARTS |= dict.fromkeys(("早上", "早晨", "早", "晨"), (5, 12))  # one character only after a day, as in 今早
_PARTS |= dict.fromkeys(("晚上", "夜里", "晚", "夜"), (18, 30)) | {"深夜": (21, 30), "半夜": (22, 30)}
_UNITS: dict[str, Unit] = {"分钟": "minute", "小时": "hour", "钟头": "hour", "天": "day", "个月": "month", "年": "year"}
_UNITS |= {"周": "week", "星期": "week", "礼拜": "week"}
_HOLIDAYS = {"元旦": (1, 1), "情人节": (2, 14), "妇女节": (3, 8), "劳动节": (5, 1), "五一": (5, 1), "六一": (6, 1)}
_HOLIDAYS |= {"儿童节": (6, 1), "教师节": (9, 10), "国庆节": (10, 1), "国庆": (10, 1), "双十节": (10, 10)}
_HOLIDAYS |= {"双十一": (11, 11), "双11": (11, 11), "平安夜": (12, 24), "圣诞节": (12, 25), "圣诞": (12, 25)}
_HOLIDAYS |= {"跨年夜": (12, 31), "跨年": (12, 31), "二二八": (2, 28), "七一": (7, 1)}
_HALVES: dict[str, tuple[Unit, int]] = {"年": ("month", 6), "月": ("day", 15)}
_HALVES |= {"小时": ("minute", 30), "钟头": ("minute", 30)}
_QUARTER = 15
_ERA = 1911
"""The year before the first of the Republic, by which Taiwan counts."""


def words(text: str, said_at: datetime) -> Iterator[Word]:
    """Yield the Chinese words for times in `text`, as meant at `said_at`; they may overlap."""
    return find(_RULES, text, said_at)


def _number(match: re.Match[str], group: str) -> int | None:
    told = match.groupdict().get(group)
    return number(told) if told else None


def _day(match: re.Match[str], said: datetime) -> Meaning:
    return day_from(said, _DAYS[match["step"]], _PARTS[match["part"]] if match["part"] else None)


def _week(match: re.Match[str], said: datetime) -> Period:
    step, name = _STEPS[match["step"]], match["weekday"]
    if not name:
        return time_words.week(said, step)
    return time_words.weekend(said, step) if name == "末" else time_words.weekday(said, _WEEKDAYS[name], step)


def _bare_weekday(match: re.Match[str], said: datetime) -> Meaning:
    """Return the day of this week and its neighbours; where no tense decides, it is the one of this week to come."""
    name = match["weekday"]
    if name == "末":
        return Meaning(tuple(time_words.weekend(said, weeks) for weeks in (-1, 0, 1)))
    near = [time_words.weekday(said, _WEEKDAYS[name], weeks) for weeks in (-1, 0, 1)]
    ahead = near[1].begins > said
    # Of today and another week, neither is certain.
    return Meaning(tuple(near), weekday=_WEEKDAYS[name], usual=near[1] if ahead else None)


def _month_and_day(match: re.Match[str], said: datetime) -> Period:
    first = time_words.month(said, _STEPS[match["step"]])
    day = _number(match, "day")
    return time_words.on(said, first.begins.year, first.begins.month, day) if day else first


def _yearly(match: re.Match[str], said: datetime, period: Callable[[int], Period]) -> Meaning:
    """Return the period of the year that is named, by its number, by the era, or by its distance."""
    step, era = match.groupdict().get("step"), _number(match, "era")
    if step:
        return replace(yearly(said, said.year + _YEARS[step], period), dated=False)
    return yearly(said, _ERA + era if era else _number(match, "year"), period)


def _date(match: re.Match[str], said: datetime) -> Meaning:
    month, day = _number(match, "month"), _number(match, "day")
    return _yearly(match, said, lambda year: time_words.on(said, year, month, day))


def _date_range(match: re.Match[str], said: datetime) -> Meaning | None:
    month, first, last = number(match["month"]), number(match["day"]), number(match["last"])
    if match["to"] == "、" and last > first + 1:
        return None
    return _yearly(match, said, lambda year: time_words.days(said, year, month, first, last))


def _amount(match: re.Match[str]) -> int:
    amount = number(match["amount"])
    if amount > _MOST or _ROUGH.match(match["amount"]):  # 2019年前 is before 2019, 两三天前 some days ago
        raise ValueError("no certain number")
    return amount


def _shifted(match: re.Match[str], said: datetime) -> Meaning:
    unit = match["unit"].removeprefix("个")
    step, amount = _HALVES[unit] if match["amount"] == "半" else (_UNITS[match["unit"]], _amount(match))
    ago = match["side"] == "前"
    return Meaning((time_words.shifted(said, step, -amount if ago else amount),), story=not ago)


def _stretch(match: re.Match[str], said: datetime) -> Period:
    amount = _amount(match)
    return time_words.stretch(
        said, _UNITS[match["unit"]], *((-amount, 0) if "近" in match[0] or "过" in match[0] else (0, amount))
    )


def _season(match: re.Match[str], said: datetime) -> Meaning:
    return _yearly(match, said, lambda year: time_words.months(said, year, 3 * _SEASONS[match["season"]] + 3))


def _quarter(match: re.Match[str], said: datetime) -> Meaning:
    first = 3 * number(match["quarter"]) - 2
    return _yearly(match, said, lambda year: time_words.months(said, year, first))


def _step_quarter(match: re.Match[str], said: datetime) -> Period:
    return time_words.months(said, said.year, said.month - (said.month - 1) % 3 + 3 * _STEPS[match["step"]])


def _half_year(match: re.Match[str], said: datetime) -> Meaning:
    return _yearly(match, said, lambda year: time_words.months(said, year, 1 if match["half"] == "上" else 7, 6))


def _holiday(match: re.Match[str], said: datetime) -> Meaning:
    return _yearly(match, said, lambda year: time_words.on(said, year, *_HOLIDAYS[match["name"]]))


def _clock(match: re.Match[str], said: datetime) -> Meaning:  # noqa: ARG001 - a rule
    hour, minute = number(match["hour"]), _number(match, "minute") or 0
    more = match["more"] or ""
    if more == "半":
        minute = 30
    elif more.endswith("刻"):
        minute = _QUARTER * number(more[0])
    if hour > 24 or minute > 59:
        raise ValueError("no time of the day")
    return Meaning(clock=Clock(hour, minute, exact=hour > 12))


def _third_of(match: re.Match[str], said: datetime) -> Meaning:  # noqa: ARG001 - a rule
    return Meaning(third=_THIRDS[match["third"]])


def _third(match: re.Match[str], said: datetime) -> Meaning:
    whole = time_words.year(said) if match["unit"] == "年" else time_words.month(said)
    return Meaning((whole,), third=_THIRDS[match["third"]])


def _any_of(names: Iterable[str]) -> str:
    return "|".join(sorted(names, key=len, reverse=True))


_N = CHINESE_NUMERAL
_MOST = 200
_ROUGH = re.compile("[一二两三四五六七八九]{2}")
_STEP = f"(?<![日基成资根原])(?P<step>{_any_of(_STEPS)})"
_WEEK = "(?:周|星期|礼拜)"
# What turns 周一 into a week and "one": 上周一直, 上周三次.
_WEEKDAY = "(?P<weekday>[一二三四五六日天末])(?![直些般样共定家边切旦次个手场节天名位条部种遍趟程])"
_YEAR_STEP = f"(?<!以)(?P<step>{_any_of(_YEARS)})年"  # 旧年, 出年: Cantonese
_MONTH = f"(?P<month>{_N})月份?"
# What a number with 号 may be part of, other than a day: a line, a building, a door, a table, ...
_DATE_DAY = f"(?P<day>{_N})[日号號]"
_DAY = f"(?P<day>{_N})(?:日|[号號](?![线線楼门店院馆桌机车位房厅台码床座舱仓库柜井站坑选球员衣技电箱铺屋路口街]))"
_YEAR = rf"(?:(?P<year>(?:19|20)\d\d|[一二][〇零九一二三四五六七八]{{3}})年(?!代)|民[国國](?P<era>{_N})年)"
_AMOUNT = rf"(?<![第满\d])(?<!不到)(?P<amount>{_N})\s?"  # 满一个月之前: not a month ago, but until one is over
_UNIT = f"个?(?P<unit>{_any_of(_UNITS)})"
_SIDE = "(?:以|之)?(?P<side>前|后)"
_DOES = "[早晚上下]|[寄发到去来回买订开出交截收约见](?!的?人)"  # 12/28寄的, but 9/15题
_SMALL = r"\d\d?|十[一二]?|[一二三四五六七八九]"
_DIGITS = "一二三四五六七八九"
_LUNAR = f"十廿卅{_DIGITS}"

_RELATIVE: tuple[tuple[str, Means], ...] = (
    ("(?P<step>大前|前|昨|今|明|大后|后|琴|寻|听)(?:天|日(?!期)|[儿兒]个?)(?P<part>)(?![性然气])", _day),
    ("(?P<step>前|昨|今|明|琴|寻)(?P<part>早|晨|晚|夜)上?(?!会)", _day),
    (f"{_STEP}个?{_WEEK}{_WEEKDAY}", _week),
    (f"{_STEP}个?{_WEEK}(?P<weekday>)(?!一起)", _week),
    (f"(?:[上下去前今明]个?[年月周]|{_N}个?[年月周]前)的?(?:这个?时候|此时|同期|今[天日])", lambda *_: UNSETTLED),
    (rf"(?<![每个隔双单半色小〇零一二两三四五六七八九十几\d]){_WEEK}{_WEEKDAY}(?![年愉快])", _bare_weekday),
    (f"{_STEP}个?月(?![球亮饼])(?:的?{_DATE_DAY})?", _month_and_day),
    (f"{_YEAR_STEP}(?:的?(?:{_MONTH}(?:{_DAY})?))?", _date),
    (f"{_AMOUNT}{_UNIT}{_SIDE}", _shifted),
    (f"(?P<amount>半)(?P<unit>年|个月|个?小时|个?钟头){_SIDE}", _shifted),
    (f"(?:过去|最近|近|未来|接下来的?|今后)(?P<amount>{_N}){_UNIT}", _stretch),
    (f"(?:{_YEAR_STEP}|{_YEAR})的?(?P<season>[春夏秋冬])[天季]", _season),
    (f"(?:{_YEAR_STEP}的?|{_YEAR})?第?(?P<quarter>[一二三四1-4])季度", _quarter),
    (f"(?:{_YEAR_STEP}的?|{_YEAR})第?(?P<quarter>[一二三四1-4])季", _quarter),
    (f"{_STEP}[一个]?季(?:度|(?!的?(?:剧|节目|播|集|大结局|比?赛|番|综艺)))", _step_quarter),
    (f"(?:{_YEAR_STEP}的?|{_YEAR})?(?P<half>[上下])半年", _half_year),
    (rf"(?:{_YEAR_STEP}的?)?(?<![\d第{_DIGITS}])(?P<name>{_any_of(_HOLIDAYS)})(?![\d号点路班{_DIGITS}])", _holiday),
)

_ABSOLUTE: tuple[tuple[str, Means], ...] = (
    (f"{_YEAR}(?:{_MONTH}(?:{_DATE_DAY})?)?", _date),
    (f"(?<!年){_MONTH}{_DATE_DAY}", _date),
    (r"(?<![\d年])(?P<month>\d\d?)月(?P<day>\d\d?)(?![\d日号號月点:~—–-])", _date),
    (r"(?<![\d/.])(?P<era>1[01]\d)/(?P<month>\d\d?)/(?P<day>\d\d?)(?![\d/])", _date),
    (r"(?<![\d/.])(?P<month>\d\d?)/(?P<day>\d\d?)(?=\s*[（(](?:周|星期|礼拜)?[一二三四五六日]\s*[)）])", _date),
    (rf"(?<![\d/.])(?P<month>1[0-2]|0?[1-9])/(?P<day>1[3-9]|2\d|3[01])(?={_DOES})", _date),
    (r"(?<=[\d日号號])[（(](?P<weekday>[一二三四五六日])[)）]", _bare_weekday),
    (rf"{_YEAR}?{_MONTH}(?P<day>{_N})[日号號]?\s*(?P<to>[到至~—–、-])\s*(?P<last>{_N})[日号號]", _date_range),
    (
        rf"(?<![\d个第〇零一二三四五六七八九十年腊正冬闰])(?P<month>{_SMALL})月份?(?P<day>)(?![\d球亮饼子天{_LUNAR}]|初[{_LUNAR}]|{_N}[日号號])",
        _date,
    ),
    (
        rf"(?<![\d第月{_LUNAR}年])(?=(?:\d\d?|[一二三]?十[一二三四五六七八九]?|[一二三四五六七八九])[号號]){_DAY}",
        lambda match, said: day_of_month(said, number(match["day"])),
    ),
)

_PARTIAL: tuple[tuple[str, Means], ...] = (
    (f"(?<=[年月份])[年月]?(?P<third>{_any_of(_THIRDS)})(?![中级步次{_LUNAR}])", _third_of),
    (rf"(?<![年月个上下本这腊正冬闰\d{_LUNAR}])(?P<unit>[年月])(?P<third>初|底|末)(?![次{_LUNAR}])", _third),
    (_any_of(name for name in _PARTS if len(name) > 1), lambda match, _: Meaning(part=_PARTS[match[0]])),
    (
        rf"(?<![\d第])(?P<hour>{_SMALL}|两)(?:点|时(?![候间代常期]))(?P<more>半|[一三]刻|钟|整|(?P<minute>[0-5]\d|\d(?=分)|[二三四五]?十[一二三四五六七八九]?|零[一二三四五六七八九])分?)?",
        _clock,
    ),
)

_RULES = [(re.compile(pattern), means) for pattern, means in (*_RELATIVE, *_ABSOLUTE, *_PARTIAL)]
