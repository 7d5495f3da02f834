"""Names, numbers and terms in a text: its subject, by form alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal

from remegraph.text import word_list
from remegraph.text.scripts import CHINESE_NUMERAL, HAN, has_cjk
from remegraph.text.times import resolve
from remegraph.text.tokens import stop_words

__all__ = ["Entity", "EntityKind", "entities", "whole_word"]

EntityKind = Literal["name", "number", "date", "quoted", "term"]


@dataclass(frozen=True, slots=True)
class Entity:
    """Something that a text names: `text` is `original[start:end]`."""

    text: str
    start: int
    end: int
    kind: EntityKind


def entities(text: str, known: Collection[str] = ()) -> list[Entity]:
    """Find what `text` names, in order and without overlaps. Where the form does not decide, nothing is found.

    `known` are names known from elsewhere, such as the speakers; found in any place, whole words only.
    """
    kept: list[Entity] = []
    taken = bytearray(len(text))
    for start, end, _, kind in sorted(_candidates(text, known), key=lambda found: (found[2], found[0], -found[1])):
        if start < end and taken.find(1, start, end) < 0:
            taken[start:end] = b"\1" * (end - start)
            kept.append(Entity(text[start:end], start, end, kind))
    return sorted(kept, key=lambda entity: entity.start)


_Found = tuple[int, int, int, EntityKind]
"""Start, end, rank (lower wins where two overlap) and kind."""

_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)  # the place of a date does not depend on when it was said

_EMAIL = r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"
_URL = r"https?://[^\s<>\"'，。！？；、）」》]*[^\s<>\"'，。！？；、）」》.,!?;:)]"
_CODE = r"[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+(?:\(\))?|[A-Za-z_]\w*\(\)|[a-z]+[A-Z][A-Za-z0-9]*|v\d+(?:\.\d+)+"
_TERM = re.compile(rf"{_URL}|{_EMAIL}|(?<![\w@.-])(?:{_CODE})(?![\w@-])|`(?P<inner>[^`\n]+)`", re.ASCII)
_QUOTED = re.compile(r'"([^"\n]{1,80})"|“([^”\n]{1,80})”|「([^」\n]{1,80})」|『([^』\n]{1,80})』|《([^》\n]{1,80})》')

_ENGLISH_UNITS = (
    r"%|°[CF]?|(?:percent|dollars?|euros?|pounds?|bucks?|k|m|bn|million|billion|thousand|kg|g|mg|lbs?|km|cm|mm|miles?|meters?"
    r"|metres?|feet|ft|inch(?:es)?|hours?|hrs?|minutes?|mins?|seconds?|days?|weeks?|months?|years?|times|people|gb|mb|tb)\b"
)
_CHINESE_UNITS = (
    "万元|亿元|元|块钱|块|美元|欧元|人民币|人|个人|个月|个小时|小时|分钟|秒|天|周|年|岁|次|公里|千米|米|厘米|平方米|公斤|千克|斤|克|度"
    "|摄氏度|层|楼|台|辆|本|张|杯|份|位|名|家|件|套|口|篇|首|部|间|只|条|个|种|页|倍|%|％"
)
_NUMBER = re.compile(
    rf"(?<![\w.,])[$€£¥]?\s?\d+(?:[.,]\d+)*(?:\s?(?:{_ENGLISH_UNITS}))?(?![\w-])", re.ASCII | re.IGNORECASE
)
_CHINESE_NUMBER = re.compile(
    rf"(?<![\d.第])(?:\d+(?:\.\d+)?[万亿]?|{CHINESE_NUMERAL})(?:多|余|几)?(?:{_CHINESE_UNITS})"
)
# 一个 is an article, 一次 and 一天 hardly more.
_NO_NUMBER = re.compile("一(?:个|次|天|种|份|些|件|位|条|家|名|部|本|张)")

_CAPITAL = r"[A-Z][A-Za-z0-9'’&-]*[A-Za-z0-9]|[A-Z]"
_NAME = re.compile(
    rf"(?<![\w@'’.-])(?:{_CAPITAL})(?:(?: | of (?:the )?| de | van | von | & |(?<=\b[A-Z])\. )(?:{_CAPITAL}))*(?![\w@])"
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:;…。！？：；\n\"“(]|\.\.\.)\s*\Z|^[\s\-*\"“(]*\Z")
_POSSESSIVE = re.compile("['’]s?$")
_CALENDAR = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september"
    " october november december".split()
)

_TITLES = "先生|女士|小姐|老师|医生|大夫|经理|教授|同学|主任|律师|师傅|阿姨|叔叔|博士|护士|工程师|警官|老板|总监|院长|校长|局长|部长|董事长|总"
_NOT_IN_NAMES = (
    "的了是在我你他她它们这那有不没很都也和就还说要会去来上下个年月日天时家公学生人为以到得着过看想做给吃喝买跟与把被将"
)
_GIVEN = f"(?:(?![{_NOT_IN_NAMES}])[{HAN}])"
_BEFORE_NAME = f"(?<![{HAN}])|(?<=[和跟与叫找问请约给对向是])|(?<=朋友|同事|同学|哥哥|姐姐|弟弟|妹妹|老婆|妻子|丈夫|女儿|儿子|名字)"
_AFTER_NAME = f"(?=[的是在和跟与说去来也都了今昨明有给把被将会要想喜打]|$|[^{HAN}])"
_NOT_IN_PLACES = (
    "的了是我你他她它们这那有没很都也和就还说要会去来着过看想做给吃喝买跟与把被将叫又能既比一几某每各个在到从"
)
_IN_PLACE = f"(?:(?![{_NOT_IN_PLACES}])[{HAN}])"
_PLACE = re.compile(
    f"(?<=[在去到从于来往了]){_IN_PLACE}{{2,3}}?[省市县](?![{HAN}]?[场民长])|"
    f"(?:(?<=[在去到从于来往了])|(?<![{HAN}])){_IN_PLACE}{{2,8}}?"
    "(?:大学|学院|公司|医院|银行|集团|中学|小学|机场|博物馆|图书馆)"
)


@lru_cache(maxsize=1)
def _chinese_names() -> re.Pattern[str]:
    sure = "|".join(sorted(word_list("surnames_zh.txt"), key=len, reverse=True))
    words = "|".join(word_list("surnames_also_words_zh.txt"))
    return re.compile(
        rf"(?:{sure}|{words}){_GIVEN}{{0,2}}?(?:{_TITLES})|"
        rf"(?<=叫)(?:{sure}|{words}){_GIVEN}{{1,2}}{_AFTER_NAME}|"
        rf"(?:{_BEFORE_NAME})(?:{sure}){_GIVEN}{{2}}{_AFTER_NAME}"
    )


def _candidates(text: str, known: Collection[str]) -> Iterator[_Found]:
    for name in known:
        if name.strip():
            for match in re.finditer(whole_word(name), text, re.IGNORECASE):
                yield *match.span(), 0, "name"
    for match in _TERM.finditer(text):
        yield *match.span("inner" if match["inner"] else 0), 1, "term"
    for match in _QUOTED.finditer(text):
        yield *match.span(match.lastindex or 0), 2, "quoted"
    for mention in resolve(text, _ANY_TIME):
        yield mention.start, mention.end, 3, "date"
    for match in _NUMBER.finditer(text):
        yield _stripped(match), match.end(), 4, "number"
    yield from _english_names(text)
    if has_cjk(text):
        yield from _chinese_candidates(text)


def whole_word(name: str) -> str:
    """Return a pattern of `name` as a whole word; Chinese has no word ends to look for."""
    return re.escape(name) if has_cjk(name) else rf"(?<!\w){re.escape(name)}(?!\w)"


def _stripped(match: re.Match[str]) -> int:
    return match.end() - len(match.group().lstrip())


def _english_names(text: str) -> Iterator[_Found]:
    if text.isupper():
        return
    for match in _NAME.finditer(text):
        start, end = match.span()
        at_start = _SENTENCE_START.search(text[max(0, start - 8) : start]) if start else True
        words = match.group().split(" ")
        while words and _is_common(words[0]):
            start += len(words.pop(0)) + 1
            at_start = False
        while words and (_is_common(words[-1]) or words[-1].islower()):
            end -= len(words.pop()) + 1
        if not words or (len(words) == 1 and at_start and not _shows_itself(words[0])):
            continue
        yield start, end - len((_POSSESSIVE.search(text[start:end]) or [""])[0]), 5, "name"


def _is_common(word: str) -> bool:
    lower = _POSSESSIVE.sub("", word.lower().replace("’", "'").rstrip("."))
    known = lower in stop_words() or lower in word_list("openers_en.txt") or lower in _CALENDAR
    return known or word.lower().replace("’", "'") in stop_words() or len(word) == 1


def _shows_itself(word: str) -> bool:
    """Return whether a word at the start of a sentence is a name all the same: NASA, McDonald."""
    return len(word) > 1 and any(character.isupper() for character in word[1:])


def _chinese_candidates(text: str) -> Iterator[_Found]:
    for match in _CHINESE_NUMBER.finditer(text):
        if not _NO_NUMBER.match(match.group()):
            yield *match.span(), 4, "number"
    for match in _chinese_names().finditer(text):
        yield *match.span(), 5, "name"
    for match in _PLACE.finditer(text):
        yield *match.span(), 6, "name"
