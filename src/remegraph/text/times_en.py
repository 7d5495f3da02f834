"""English words for times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import get_args

from remegraph.text import time_words
from remegraph.text.scripts import ENGLISH_NUMERAL, number
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

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = ("january february march april may june july august september october november december").split()
_SEASONS = {"spring": 0, "summer": 1, "autumn": 2, "fall": 2, "winter": 3}
_PARTS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 30)}
_THIRDS = {"early": 0, "beginning": 0, "start": 0, "mid": 1, "middle": 1, "late": 2, "end": 3}
_STEPS = {"last": -1, "previous": -1, "past": -1, "this past": -1, "this": 0, "this coming": 1, "next": 1, "coming": 1}
_DAYS = {"day before yesterday": -2, "yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1, "day after tomorrow": 2}
_DAYS |= {"last night": -1, "night before last": -2}
_HOLIDAYS = {"christmas eve": (12, 24), "christmas day": (12, 25), "christmas": (12, 25), "boxing day": (12, 26)}
_HOLIDAYS |= {"new year's eve": (12, 31), "new year's day": (1, 1), "halloween": (10, 31), "valentine's day": (2, 14)}
_HOLIDAYS |= {"st patrick's day": (3, 17), "april fools' day": (4, 1)}

_CENTURY, _TURN = 2000, 50
"""'98 is 1998, '12 is 2012."""

_EARLY_DAYS = 2
"""On a Monday or Tuesday, "this weekend" may be the one that is over."""

_FLAGS = re.ASCII | re.IGNORECASE  # ASCII: a date may touch Chinese characters

_WEEKDAY = rf"(?P<weekday>{'|'.join(_WEEKDAYS)}|(?:mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)\b\.?)"
_FULL_WEEKDAY = rf"(?P<weekday>{'|'.join(_WEEKDAYS)})"
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)}|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
_FULL_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})"
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
    " sixteenth seventeenth eighteenth nineteenth twentieth twenty-first twenty-second twenty-third twenty-fourth"
    " twenty-fifth twenty-sixth twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first"
).split()
_ORDINAL = rf"\d\d?(?:st|nd|rd|th)|{'|'.join(reversed(_ORDINALS))}"
_DAY = rf"(?P<day>{_ORDINAL}|\d{{1,2}})"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_SHORT_YEAR = r"(?P<year>(?:(?:19|20)|')\d\d)"
_UNIT = r"(?P<unit>minute|min|hour|hr|day|night|weekend|week|fortnight|month|year)s?"
_AMOUNT = rf"(?P<amount>{ENGLISH_NUMERAL})"
_HALF = rf"(?P<amount>half an?(?= (?:hour|year))|{ENGLISH_NUMERAL})"
_DAY_PART = r"(?P<part>morning|afternoon|evening|night)"

_ABLE = re.compile(
    r"\b(?:can|could|able|ever|takes?|once|twice|times|every|most|first time|best|worst)\b[^.!?]*\Z", _FLAGS
)
_NEAR = 60

_ENGLISH = re.compile(
    r"\b(?:the|i'm|my|you|your|he|she|it|they|is|are|was|to|and|of|for|with|on|at|this|that|our|have|had|were|will|not)\b",
    _FLAGS,
)
_ANY_TIME = re.compile(
    r"\d|day|night|week|month|year|minute|hour|morning|afternoon|evening|noon|tomorrow|spring|summer|autumn|fall|winter|quarter"
    r"|fools|christmas|halloween|\b(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
    _FLAGS,
)
"""Without any of these a text holds no time, and most hold none."""

_OTHER = re.compile(
    r"\b(?:und|ich|ist|nicht|wir|haben|hat|der|das|den|ein|eine|für|auf|mit|zu|im|het|een|van|naar|ik|niet|zijn|bij"
    r"|que|los|las|el|la|una|un|por|para|con|del|de|es|en|mi|est|les|des|une|et|je|nous|dans|pour|le|du|och|att|jag|är|på"
    r"|vi|il|di|che|non|ho|um|uma|não|em|eu|się|nie|jest)\b",
    re.IGNORECASE,
)


def words(text: str, said_at: datetime) -> Iterator[Word]:
    """Yield the English words for times in `text`, as meant at `said_at`; they may overlap.

    Other languages in Latin letters share some of these words; in them, only dates that need no tense are read.
    """
    if not _ANY_TIME.search(text):
        return iter(())
    other = len(_OTHER.findall(text)) > max(1, len(_ENGLISH.findall(text)))
    return (word for word in find(_RULES, text, said_at) if word.says.dated or not other)


def _month_number(match: re.Match[str]) -> int:
    month = match["month"].lower()
    return int(month) if month.isdecimal() else next(at for at, name in enumerate(_MONTHS, 1) if name[:3] == month[:3])


def _weekday_number(match: re.Match[str]) -> int:
    return next(at for at, name in enumerate(_WEEKDAYS) if name.startswith(match["weekday"].lower()[:3]))


def _day_number(match: re.Match[str]) -> int:
    word = match["day"].lower()
    return _ORDINALS.index(word) + 1 if word in _ORDINALS else int(re.sub(r"\D", "", word))


def _step(match: re.Match[str]) -> int:
    return _STEPS[" ".join(match["step"].lower().split())]


def _unit(match: re.Match[str]) -> Unit:
    name = match["unit"].lower()
    name = {"min": "minute", "hr": "hour", "night": "day", "fortnight": "week"}.get(name, name)
    return next(unit for unit in get_args(Unit) if unit == name)


def _amount(match: re.Match[str]) -> int:
    return number(match["amount"] or "1") * (2 if match["unit"].lower() == "fortnight" else 1)


def _named_day(match: re.Match[str], said: datetime) -> Meaning:
    name = " ".join(match["name"].lower().split())
    return day_from(said, _DAYS[name], _PARTS["night"] if "night" in name else None)


def _whole(said: datetime, unit: str, steps: int) -> Period:
    named = {"week": time_words.week, "weekend": time_words.weekend, "month": time_words.month, "year": time_words.year}
    return named[unit.lower()](said, steps)


def _step_unit(match: re.Match[str], said: datetime) -> Meaning | Period | Sequence[Period] | None:
    step, unit = _step(match), match["unit"].lower()
    if unit != "weekend":
        # "The next week" may belong to a story.
        return Meaning((_whole(said, unit, step),), story=step > 0 and bool(match["the"]))
    last, this, following = (time_words.weekend(said, weeks) for weeks in (-1, 0, 1))
    if match["step"].lower() == "this":
        return (last, this) if said.weekday() < _EARLY_DAYS else this
    return time_words.agreed((last, this, following), step, said)


def _same_time(match: re.Match[str], said: datetime) -> Meaning | Period:
    """This time next week is a day; this time last year is none, and not the whole year either."""
    return time_words.day(said, 7 * _step(match)) if match["unit"].lower() == "week" else UNSETTLED


def _two_steps(match: re.Match[str], said: datetime) -> Period:
    return _whole(said, match["unit"], -2 if match["relation"].lower() == "before last" else 2)


def _step_weekday(match: re.Match[str], said: datetime) -> Meaning | Period:
    wanted, step = _weekday_number(match), _step(match)
    past, coming = _beside(said, wanted)
    if " " in match["step"] or match["step"].lower() == "coming":
        return past if step < 0 else coming
    last, this, following = (time_words.weekday(said, wanted, weeks) for weeks in (-1, 0, 1))
    if step == 0:
        return this if this.ends > said else UNSETTLED
    if step > 0 and said.weekday() == len(_WEEKDAYS) - 1:  # for some a new week has begun
        return UNSETTLED
    return time_words.agreed((last, this, following), step, said) or UNSETTLED


def _beside(said: datetime, wanted: int) -> tuple[Period, Period]:
    """Return the last and the coming day of that name, neither of them today."""
    ahead = (wanted - said.weekday() - 1) % 7 + 1
    return time_words.day(said, ahead - 7 if ahead < 7 else -7), time_words.day(said, ahead)


def _bare_weekday(match: re.Match[str], said: datetime) -> Meaning:
    wanted = _weekday_number(match)
    past, coming = _beside(said, wanted)
    return Meaning((past, coming), weekday=wanted, usual=None if wanted == said.weekday() else coming)


def _weeks_from(match: re.Match[str], said: datetime) -> Period:
    return time_words.day(_beside(said, _weekday_number(match))[1].begins, 7 * _amount(match))


def _weeks_from_day(match: re.Match[str], said: datetime) -> Meaning:
    return day_from(said, 7 * _amount(match) + _DAYS[match["name"].lower()])


def _shifted(match: re.Match[str], said: datetime, sign: int) -> Period:
    if match["amount"].lower().startswith("half"):
        hour = match["unit"].lower() == "hour"
        return time_words.shifted(said, "minute", 30 * sign) if hour else time_words.shifted(said, "month", 6 * sign)
    return time_words.shifted(said, _unit(match), sign * _amount(match))


def _in_amount(match: re.Match[str], said: datetime) -> Meaning | None:
    """Three days from now; but "finished in three days" says how long it took, and "can be done" how long it takes."""
    if _ABLE.search(match.string, max(0, match.start() - _NEAR), match.start()):
        return None
    return Meaning((_shifted(match, said, 1),), story=True)


def _stretch(match: re.Match[str], said: datetime) -> Period:
    most = _amount(match)
    return time_words.stretch(said, _unit(match), *((0, most) if _step(match) > 0 else (-most, 0)))


def _given_year(match: re.Match[str]) -> int | None:
    year = match.groupdict().get("year")
    if year and year[0] == "'":
        return int(year[1:]) + (_CENTURY if int(year[1:]) < _TURN else _CENTURY - 100)
    return int(year) if year else None


def _date(match: re.Match[str], said: datetime) -> Meaning:
    month, day = _month_number(match), _day_number(match) if "day" in match.re.groupindex else None
    return yearly(said, _given_year(match), lambda year: time_words.on(said, year, month, day))


def _date_range(match: re.Match[str], said: datetime) -> Meaning:
    month, first, last = _month_number(match), _day_number(match), int(match["last"])
    return yearly(said, _given_year(match), lambda year: time_words.days(said, year, month, first, last))


def _numeric(match: re.Match[str], said: datetime) -> Meaning | None:
    first, second, year = int(match["first"]), int(match["second"]), int(match["year"])
    if first != second and max(first, second) <= 12:
        return None  # 03/04/2023 is March or April
    return Meaning((time_words.on(said, year, min(first, second), max(first, second)),), dated=True)


def _years(match: re.Match[str], said: datetime) -> Meaning:
    first = time_words.on(said, int(match["year"]))
    last = time_words.on(said, int(match["last"])) if "last" in match.re.groupindex else first
    return Meaning((first if last == first else Period(first.begins, last.ends, "range"),), dated=True)


def _step_month(match: re.Match[str], said: datetime) -> Period | None:
    # "may" and "march" are verbs too.
    return time_words.agreed(_date(match, said).choices, _step(match), said) if match["month"][0].isupper() else None


def _season(said: datetime, match: re.Match[str], year: int) -> Period:
    return time_words.months(said, year, 3 * _SEASONS[match["season"].lower()] + 3)


def _step_season(match: re.Match[str], said: datetime) -> Meaning | Period | None:
    step = _step(match)
    near = [_season(said, match, said.year + years) for years in (-2, -1, 0, 1)]
    if step < 0:
        return [period for period in near if period.ends <= said][-1]
    if step > 0:
        return time_words.agreed(near[1:], step, said)
    return Meaning(tuple(near), usual=next((each for each in near[1:3] if each.ends > said), None))


def _quarter(match: re.Match[str], said: datetime) -> Meaning:
    return yearly(said, _given_year(match), lambda year: time_words.months(said, year, 3 * int(match["quarter"]) - 2))


def _half_year(match: re.Match[str], said: datetime) -> Meaning:
    year = _given_year(match) or said.year + (_step(match) if match["step"] else 0)
    half = time_words.months(said, year, 1 if match["half"].lower() == "first" else 7, 6)
    return Meaning((half,), dated=bool(match["year"]))


def _step_quarter(match: re.Match[str], said: datetime) -> Period:
    return time_words.months(said, said.year, said.month - (said.month - 1) % 3 + 3 * _step(match))


def _season_of_year(match: re.Match[str], said: datetime) -> Meaning:
    return yearly(said, _given_year(match), lambda year: _season(said, match, year))


def _holiday(match: re.Match[str], said: datetime) -> Meaning | Period | None:
    if match[0].lower() in ("christmas", "halloween") and not _CLOSES.match(match.string, match.end()):
        return None  # cookies
    near = yearly(
        said, None, lambda year: time_words.on(said, year, *_HOLIDAYS[" ".join(match["name"].lower().split())])
    )
    return time_words.agreed(near.choices, _step(match), said) if match["step"] else near


def _third(match: re.Match[str], said: datetime) -> Meaning:  # noqa: ARG001 - a rule
    return Meaning(third=_THIRDS[match["third"].lower()])


def _third_of_this(match: re.Match[str], said: datetime) -> Meaning:
    return Meaning((_whole(said, match["unit"], 0),), third=_THIRDS[match["third"].lower()])


def _clock(match: re.Match[str], said: datetime) -> Meaning:  # noqa: ARG001 - a rule
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    half = (match["half"] or "").lower()[:1]
    if half in ("a", "p"):
        hour = hour % 12 + (12 if half == "p" else 0)
    if hour > 23 or minute > 59:
        raise ValueError("no time of the day")
    exact = half in ("a", "p") or hour > 12 or match["hour"][0] == "0"
    return Meaning(clock=Clock(hour, minute, exact))


def _rule(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of whole words, in which one space means any white space."""
    return re.compile(rf"(?<![\w-])(?:{pattern})(?!\w)".replace(" ", r"\s+"), _FLAGS)


_STEP = r"(?P<step>this past|this coming|last|previous|this|next|(?<=the\s)coming)"  # but "he is coming Tuesday week"
_STRETCH = r"(?P<step>last|past|previous|next|(?<=the\s)coming)"
_TO = r"\s?(?:-|–|to|until)\s?"
_LAST_DAY = r"(?P<last>\d{1,2})(?:st|nd|rd|th)?"
_OF_YEAR = rf"(?:,?\s?{_YEAR})?(?!:?\d)"
_IN_MONTH = (
    r"in|during|since|until|till|early|mid|late|end of|start of|beginning of|from(?= \w+ (?:to|until|till|through)\b)"
)
_THIRD = rf"(?P<third>{'|'.join(_THIRDS)})"
_AT = r"(?:(?:at|around|by|until)\s+)?"
_NO_DATE = """
black good palm easter cyber ruby manic casual taco freaky super throwback girl bowl watched the any some a one that which
another first second third fourth last said says
"""
_NO_NAME = "".join(rf"(?<!\b{word}\s)" for word in (*_NO_DATE.split(), r"\dst", r"\dnd", r"\drd", r"\dth"))
_NO_NOUN = r"(?! (?:(?:mornings|afternoons|evenings|nights|times|(?:of )?that (?:same )?week)\b|(?-i:Morning|Night) (?-i:[A-Z])))"
_NAMES = ("april", "may", "june")
_NO_PERSON = "|".join(month for month in _MONTHS if month not in (*_NAMES, "march"))
_ANY_MONTH = f"(?:{'|'.join(month[:3] for month in _MONTHS)})"
_AFTER = (
    r"(?=\s*(?:[,.;:!?)@/]|[-–—]|\Z)|'s\b|,?\s+(?:the\s+)?\d|\s+(?:(?:early |late )?(?:morning|afternoon|evening|night)(?! live)|at"
    r"|last|next|the|of|is|was|if|when|free|works?|and|or|to|for|because|so|but|in the|with|from|after|before|i|we|you|he|she|they"
    rf"|it|that|as|{_ANY_MONTH}\w*)\b)"
)

_CLOSES = re.compile(_AFTER.replace(" ", r"\s+"), _FLAGS)

_RELATIVE: tuple[tuple[str, Means], ...] = (
    (rf"(?:in|over|for|during|within) (?P<time>the (?P<step>last|past) (?P<amount>){_UNIT})(?! of\b)", _stretch),
    (rf"(?:first|second|third|fourth|last) (?:{'|'.join(_WEEKDAYS)}) (?:of|in) {_FULL_MONTH}", lambda *_: UNSETTLED),
    (rf"(?:the )?(?P<name>{'|'.join(_DAYS)})", _named_day),
    (rf"this {_DAY_PART}", lambda match, said: day_from(said, 0, _PARTS[match["part"].lower()])),
    (rf"(?P<the>the )?{_STEP} (?P<unit>week|weekend|month|year)(?! of\b)", _step_unit),
    (r"this time (?P<step>last|next) (?P<unit>week|month|year)", _same_time),
    (r"the (?P<unit>week|weekend|month|year) (?P<relation>before last|after next)", _two_steps),
    (
        r"(?:at|over|on|for) the weekend|(?:my|your|our) weekend",
        lambda _, said: [time_words.weekend(said, weeks) for weeks in (-1, 0)],
    ),
    (rf"(?:on )?{_STEP} {_WEEKDAY}{_NO_NOUN}(?! (?:of|in) (?!last|this|next))", _step_weekday),
    (rf"on {_WEEKDAY}{_NO_NOUN}", _bare_weekday),
    (rf"(?:by|until|till|since|from|to|for|through) (?P<time>{_FULL_WEEKDAY}){_NO_NOUN}", _bare_weekday),
    (rf"{_NO_NAME}{_FULL_WEEKDAY}{_NO_NOUN}{_AFTER}", _bare_weekday),
    (rf"{_AMOUNT} (?P<unit>week|fortnight)s? (?:from|on) {_FULL_WEEKDAY}", _weeks_from),
    (rf"(?:on )?{_FULL_WEEKDAY} (?P<amount>)(?P<unit>week|fortnight)", _weeks_from),
    (rf"(?:on )?{_FULL_WEEKDAY} just (?:gone|past)", lambda match, said: _beside(said, _weekday_number(match))[0]),
    (
        rf"{_AMOUNT} (?P<unit>week|fortnight)s? ago yesterday",
        lambda match, said: time_words.day(said, -7 * _amount(match) - 1),
    ),
    (rf"{_AMOUNT} {_UNIT} (?:yesterday|ago (?:on |last |this )?{_FULL_WEEKDAY})", lambda *_: UNSETTLED),
    (rf"{_AMOUNT} (?P<unit>week|fortnight)s? (?:from )?(?P<name>today|tomorrow)", _weeks_from_day),
    (r"(?P<name>today|tomorrow) (?P<amount>)(?P<unit>week|fortnight)", _weeks_from_day),
    (rf"(?:or|over|under|more than|less than) {_AMOUNT} {_UNIT} (?:ago|back|from now)", lambda *_: UNSETTLED),
    (rf"(?:it's|it is|be|been|for) {_AMOUNT} {_UNIT} (?P<name>today|tomorrow)", lambda *_: UNSETTLED),
    (
        rf"{_HALF} {_UNIT} (?:ago|back(?! (?:and|to|from|in|at|home)\b))(?: today)?",
        lambda match, said: _shifted(match, said, -1),
    ),
    (rf"{_HALF} {_UNIT} from (?:now|today)", lambda match, said: _shifted(match, said, 1)),
    (rf"in {_HALF} {_UNIT}(?:' time)?(?! (?:ago|back)\b)", _in_amount),
    (rf"(?:the )?{_STRETCH} {_AMOUNT} {_UNIT}(?! of\b)", _stretch),
    (rf"{_STEP} {_FULL_MONTH}", _step_month),
    (rf"{_STEP} (?P<season>{'|'.join(_SEASONS)})", _step_season),
    (rf"{_STEP} quarter", _step_quarter),
)

_ABSOLUTE: tuple[tuple[str, Means], ...] = (
    (rf"(?:on )?(?:the )?{_DAY}\.? (?:of )?{_MONTH}{_OF_YEAR}", _date),
    (rf"(?:on )?{_MONTH} (?:the )?{_DAY}{_OF_YEAR}", _date),
    (rf"{_DAY}{_TO}{_LAST_DAY} (?:of )?{_MONTH}{_OF_YEAR}", _date_range),
    (rf"{_MONTH} {_DAY}{_TO}{_LAST_DAY}{_OF_YEAR}", _date_range),
    (
        rf"(?<!day\sis\s)(?:(?:on )?the |(?<=day\s)|(?<=day,\s))(?P<day>\d\d?(?:st|nd|rd|th)){_AFTER}",
        lambda match, said: day_of_month(said, _day_number(match)),
    ),
    (rf"between {_DAY} and {_LAST_DAY} (?:of )?{_MONTH}{_OF_YEAR}", _date_range),
    (rf"(?P<first>\d\d?)[/.](?P<second>\d\d?)[/.]{_YEAR}", _numeric),
    (rf"{_MONTH},?\s(?:of )?{_YEAR}", _date),
    (rf"(?:{_IN_MONTH})[-\s](?P<time>{_FULL_MONTH})", _date),
    (rf"(?<!from\s)(?<!of\s)(?:may|march) (?:to|till|until|through) {_FULL_MONTH}", lambda *_: UNSETTLED),
    (rf"(?:from|by|before|after|between|to|through|and|of) (?P<time>(?P<month>{_NO_PERSON}))", _date),
    (rf"(?:{_IN_MONTH}|before|after|by)[-\s](?P<time>{_YEAR})(?![-/:.,]\d|\s?%)", _years),
    (rf"(?:from|between) (?P<time>{_YEAR} (?:to|until|till|through|and|-|–) (?P<last>(?:19|20)\d\d))", _years),
    (rf"Q(?P<quarter>[1-4])(?: (?:of )?{_YEAR})?", _quarter),
    (rf"(?:the )?(?P<half>first|second) half of (?:the year|{_STEP} year|{_YEAR})", _half_year),
    (rf"(?:(?:{_STEP}|on|at|over|for|during) )?(?P<name>{'|'.join(_HOLIDAYS)})", _holiday),
    (rf"(?P<season>{'|'.join(_SEASONS)})(?: of)? {_SHORT_YEAR}", _season_of_year),
)

_PARTIAL: tuple[tuple[str, Means], ...] = (
    (rf"(?:the )?{_THIRD}(?: of)?-?", _third),
    (rf"(?:the )?{_THIRD} of (?:the|this) (?P<unit>month|week|year)", _third_of_this),
    (_DAY_PART, lambda match, _: Meaning(part=_PARTS[match["part"].lower()])),
    (rf"{_AT}(?P<hour>\d\d?)(?::(?P<minute>\d\d))?\s?(?P<half>[ap]m|[ap]\.m\.|o'clock)", _clock),
    (rf"{_AT}noon", lambda *_: Meaning(clock=Clock(12, exact=True))),
)

# A date and a time may touch: 2023-05-07T15:30.
_TOUCHING = (
    (re.compile(rf"(?<![\w-]){_YEAR}[-/.](?P<month>\d\d?)[-/.](?P<day>\d\d?)(?![\d-])T?", _FLAGS), _date),
    (
        re.compile(
            rf"(?:(?<=T)|(?<![\w:.]){_AT})(?P<hour>\d\d?):(?P<minute>\d\d)(?P<half>)(?::\d\d(?!\d)|(?!:?\d))", _FLAGS
        ),
        _clock,
    ),
)

_RULES = [*_TOUCHING, *((_rule(pattern), means) for pattern, means in (*_RELATIVE, *_ABSOLUTE, *_PARTIAL))]
