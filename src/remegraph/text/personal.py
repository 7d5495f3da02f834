"""Recognise what identifies a person: names, contacts, addresses, identity numbers, cards and accounts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
from importlib import import_module
from itertools import pairwise
from types import ModuleType

from remegraph.errors import MissingExtraError
from remegraph.text import table
from remegraph.text.findings import BLANK, Finding, Kind, announced, either, folded
from remegraph.text.scripts import CJK, HAN, has_cjk
from remegraph.text.tokens import stop_words

__all__ = ["accounts", "birth_dates", "cards", "emails", "ibans", "names", "numbers", "phones", "streets"]

_WORD = re.compile(rf"[^\W_{CJK}]+")
_GAP = 3
"""Characters between two words of one name at most."""


def names(text: str, known: Collection[str]) -> Iterator[Finding]:
    """Yield known names: Latin ones as whole words, Chinese ones anywhere, as no space divides words.

    Parts of a name count from three letters, or two Chinese characters; an ordinary word, such as "will", only as it is
    written in the name. An id such as "thread-12" has no parts.
    """
    sought = _sought(frozenset(known))
    yield from _latin_names(text, sought)
    yield from _chinese_names(text, sought)


@dataclass(frozen=True, slots=True)
class _Sought:
    """Names as they are looked for."""

    latin: Mapping[str, set[tuple[str, ...]]]
    """The words of each name and part, by the first one."""
    as_written: frozenset[str]
    chinese: Mapping[str, set[str]]
    """Each name whole and without its surname, by the first character."""


@lru_cache(maxsize=8)
def _sought(known: frozenset[str]) -> _Sought:
    """Return names as they are looked for: a share looks for the same ones in text after text."""
    plain = {folded(name).text.strip() for name in known}
    spaced = {name for name in plain if not has_cjk(name)}
    wanted = {name for name in spaced if len(name) > 1} | {part for name in spaced for part in _name_parts(name)}
    latin: dict[str, set[tuple[str, ...]]] = {}
    for name in wanted:
        if words := tuple(word.casefold() for word in _WORD.findall(name)):
            latin.setdefault(words[0], set()).add(words)
    chinese: dict[str, set[str]] = {}
    for name in plain - spaced:
        given = {3: name[1:], 4: name[2:]}.get(len(name))  # after a surname of one character, or of two
        for each in (name, given or ""):
            if len(each) > 1:
                chinese.setdefault(each[0].casefold(), set()).add(each.casefold())
    return _Sought(latin, frozenset(wanted), chinese)


def _latin_names(text: str, sought: _Sought) -> Iterator[Finding]:
    found = list(_WORD.finditer(text)) if sought.latin else []
    for at, word in enumerate(found):
        for words in sought.latin.get(word.group().casefold(), ()):
            last = _followed(found, at, words)
            ordinary = len(words) == 1 and words[0] in stop_words() and word.group() not in sought.as_written
            if last is not None and not ordinary:
                yield Finding(word.start(), last.end(), "name")


def _name_parts(name: str) -> list[str]:
    words = _WORD.findall(name)
    is_name = " " in name and not any(map(str.isdigit, name))
    return [word for word in words if len(word) > 2] if is_name else []


def _followed(found: list[re.Match[str]], at: int, words: tuple[str, ...]) -> re.Match[str] | None:
    """Return the last word of a name that begins at a word, or None if the rest does not follow."""
    here = found[at : at + len(words)]
    close = all(right.start() - left.end() <= _GAP for left, right in pairwise(here))
    same = tuple(word.group().casefold() for word in here) == words
    return here[-1] if same and close else None


def _chinese_names(text: str, sought: _Sought) -> Iterator[Finding]:
    for at, character in enumerate(text) if sought.chinese else ():
        for name in sought.chinese.get(character.casefold(), ()):
            if text[at : at + len(name)].casefold() == name:
                yield Finding(at, at + len(name), "name")


_LOCAL = r"(?<![A-Za-z0-9.+_-])(?!git@)[A-Za-z0-9.+_-]++"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})"
_EMAIL = re.compile(rf"{_LOCAL}@{_LABEL}(?:\.{_LABEL}){{0,8}}\.[A-Za-z]{{2,24}}(?![A-Za-z0-9])")
_AT = r"(?:[ ]?[(\[{<][ ]?at[ ]?[)\]}>][ ]?|[ ]?艾特[ ]?|[ ]?@[ ]?|[ ]at[ ])"
_DOT = r"(?:[ ]?[(\[{<][ ]?dot[ ]?[)\]}>][ ]?|[ ]dot[ ]|[ ]?点[ ]?)"

_SHAPES = {
    "anywhere": r"(?:\+|(?<!\d)00[ -]?)[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,5}(?:[ .-]?\d{2,5}){1,4}",
    "america": r"(?:(?:\+|00)?1[ .-])?(?:\([2-9]\d{2}\)[ .-]?|[2-9]\d{2}[ .-])[2-9]\d{2}[ .-]\d{4}",
    "area": r"\(?0\d{1,5}\)?[ -]?\d{3,4}[ -]?\d{3,4}",
    "mobile": r"(?:(?:\+|00)?86[ -]?)?1[3-9](?:[ -]?\d){9}",
    "bracketed": r"\(0\d{1,5}\)[ -]?\d{3,4}[ -]?\d{3,5}",
    "service": r"[48]00[ -]\d{3}[ -]\d{4}|[48]00[ -]?\d{4}[ -]\d{3}",
}
_EXTENSION = r"(?:[ ]?(?:x|ext\.?|extension|转|-)[ ]?\d{1,6})?"
_PHONES = {
    name: re.compile(rf"(?<![A-Za-z0-9_])(?<![\d][-.])(?:{shape}){_EXTENSION}(?![A-Za-z0-9_]|[-.]\d)", re.IGNORECASE)
    for name, shape in _SHAPES.items()
}
_SURE = frozenset({"america", "mobile", "bracketed", "service"})
"""Shapes that are enough by themselves; other numbers count only if they are in use somewhere."""


def emails(text: str) -> Iterator[Finding]:
    """Yield e-mail addresses, and those that are spelled out: `ann (at) example dot com`."""
    for pattern in (_EMAIL, _spelled()):
        yield from (Finding(*found.span(), "email") for found in pattern.finditer(text))


def phones(text: str) -> Iterator[Finding]:
    """Yield telephone numbers: of a form that nothing else has, valid in a country, or announced."""
    numbered = table("numbers")["phones"]
    regions = (*numbered["zh"], *numbered["en"]) if has_cjk(text) else tuple(numbered["en"])
    for name, pattern in _PHONES.items():
        for found in pattern.finditer(text):
            if name in _SURE or _valid(found.group(), regions):
                yield Finding(*found.span(), "phone")
    for found in _announced_phone().finditer(text):
        if 7 <= sum(character.isdigit() for character in found["value"]) <= 20:
            yield Finding(*found.span("value"), "phone")


def _valid(number: str, regions: tuple[str, ...]) -> bool:
    library = _phonenumbers()
    whole = re.sub(r"^00[ -]?", "+", number)
    for region in (None,) if whole.startswith("+") else regions:
        try:
            parsed = library.parse(whole, region)
            if library.is_valid_number(parsed) or (region is None and library.is_possible_number(parsed)):
                return True
        except library.NumberParseException:
            continue
    return False


@cache
def _phonenumbers() -> ModuleType:
    try:
        return import_module("phonenumbers")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "The package phonenumbers is not installed.", "Run: pip install 'remegraph[sharing]'."
        ) from error


@cache
def _spelled() -> re.Pattern[str]:
    ends = "|".join(table("hosts")["ends"])
    return re.compile(
        rf"{_LOCAL}{_AT}{_LABEL}(?:(?:{_DOT}|\.){_LABEL}){{0,3}}{_DOT}(?:{ends})(?![A-Za-z0-9])"
        rf"|{_LOCAL}(?:[ ]?[(\[{{][ ]?at[ ]?[)\]}}][ ]?|[ ]?艾特[ ]?|[ ]?@[ ]?){_LABEL}(?:\.{_LABEL}){{0,3}}\.(?:{ends})(?![A-Za-z0-9])",
        re.IGNORECASE,
    )


@cache
def _announced_phone() -> re.Pattern[str]:
    value = rf"\+?\(?\d(?:[ ().-]{{0,2}}\d){{6,18}}{_EXTENSION}(?![A-Za-z0-9_]|[-.]\d)"
    return announced(table("cues")["phone"], value, openly=False)


_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_CHECKS = "10X98765432"
_CHINESE_ID = re.compile(r"(?<![A-Za-z0-9])(?:\d{6}[ -]?\d{8}[ -]?\d{3}[\dXx]|\d{15})(?![A-Za-z0-9])")
_SSN = re.compile(r"(?<![\w-])(?!000|666|9)\d{3}([ -])(?!00)\d{2}\1(?!0000)\d{4}(?!-?\w)", re.ASCII)
_INSURED = re.compile(
    r"(?<![A-Za-z0-9])(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]( ?)(?:\d{2}\1){3}[A-D](?![A-Za-z0-9])"
)
_MONTHS = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    "|Nov(?:ember)?|Dec(?:ember)?"
)
_NUMERAL = "[〇零一二三四五六七八九十廿]"
_DATE = (
    rf"(?:{_NUMERAL}{{4}}年)?{_NUMERAL}{{1,2}}月(?:份的?)?{_NUMERAL}{{1,3}}[日号]|"
    r"\d{4}[-/.年]\s?\d{1,2}[-/.月]\s?\d{1,2}日?|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})|\d{1,2}月(?:份的?)?\d{1,2}[日号]|\d{4}年\d{1,2}月|(?:19|20)\d{6}"
    rf"|(?:{_MONTHS})\.?\s\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s\d{{4}})?|(?:the\s)?\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?(?:{_MONTHS})\.?(?:,?\s\d{{4}})?"
)


def numbers(text: str) -> Iterator[Finding]:
    """Yield Chinese identity numbers, American and British social security numbers, Chinese licence plates, and passports announced."""
    for found in _CHINESE_ID.finditer(text):
        if _is_chinese_id(re.sub("[ -]", "", found.group()).upper()):
            yield Finding(*found.span(), "cn-id")
    for pattern in (_SSN, _INSURED):
        yield from (Finding(*found.span(), "ssn") for found in pattern.finditer(text))
    for found in _plate().finditer(text):
        if sum(map(str.isdigit, found.group())) > 1:
            yield Finding(*found.span(), "plate")
    for kind, announcement in _announced_numbers().items():
        yield from (Finding(*found.span("value"), kind) for found in announcement.finditer(text))


def birth_dates(text: str) -> Iterator[Finding]:
    """Yield dates that are said to be a date of birth. Other dates are not secret."""
    for pattern in _births():
        yield from (Finding(*found.span("value"), "birth-date") for found in pattern.finditer(text))


def _is_chinese_id(number: str) -> bool:
    """Return whether a number is valid by GB 11643: province, a real date, and checksum, which old numbers lack."""
    born = number[6:14] if len(number) == 18 else "19" + number[6:12]
    if number[:2] not in table("numbers")["chinese"]["provinces"].split() or not _was(born):
        return False
    total = sum(weight * int(digit) for weight, digit in zip(_WEIGHTS, number[:17], strict=False))
    return len(number) == 15 or _CHECKS[total % 11] == number[17]


def _was(day: str) -> bool:
    try:
        date(int(day[:4]), int(day[4:6]), int(day[6:]))
    except ValueError:
        return False
    return "1850" <= day[:4] < "2100"


@cache
def _plate() -> re.Pattern[str]:
    provinces = table("numbers")["chinese"]["plates"]
    body = "[A-HJ-NP-Z0-9]{4,5}[A-HJ-NP-Z0-9挂学警港澳使领]"
    return re.compile(rf"[{provinces}][A-Z][ ·•・.-]?{body}(?![A-Za-z0-9])", re.IGNORECASE)


@cache
def _announced_numbers() -> dict[Kind, re.Pattern[str]]:
    cues = table("cues")
    return {
        "ssn": announced(cues["ssn"], r"\d{3}[ -]?\d{2}[ -]?\d{4}(?!\d)", openly=False),
        "passport": announced(cues["passport"], r"[A-Z]{0,2}\d{6,9}(?![A-Za-z0-9])", openly=False),
        "cn-id": announced(cues["cn_id"], r"(?:\d[ -]?){14,17}[\dX](?![A-Za-z0-9])", openly=False),
    }


@cache
def _births() -> tuple[re.Pattern[str], re.Pattern[str]]:
    cues = table("cues")
    after = rf"(?<!\d)(?P<value>{_DATE})[ ]?{either(cues['birth_after'])}"
    return announced(cues["birth_before"], rf"(?:{_DATE})(?!\d)", openly=False), re.compile(after, re.IGNORECASE)


_GROUPS = re.compile(r"(?<![A-Za-z0-9])\d++(?:[ -]\d++)*+(?![A-Za-z])")
_DOTTED = re.compile(r"(?<![A-Za-z0-9.])[2-6]\d{3}([._]|[ ]{2}|[ ]-[ ])\d{4}\1\d{4}\1\d{4}(?![A-Za-z0-9]|\.\d)")
_GROUP = re.compile(r"\d+")
_IBAN_START = re.compile(r"(?<![A-Za-z0-9])([A-Za-z]{2})\d{2}")
_LONGEST = 19


def cards(text: str) -> Iterator[Finding]:
    """Yield card numbers, in one piece or in groups: first digits and length of an issuer, and Luhn's checksum."""
    yield from (
        Finding(*found.span(), "card") for found in _DOTTED.finditer(text) if _luhn(re.sub(r"\D", "", found.group()))
    )
    for run in _GROUPS.finditer(text):
        groups = [group.span() for group in _GROUP.finditer(text, *run.span())]
        for first, (start, _) in enumerate(groups):
            digits = ""
            for group in groups[first : first + _LONGEST]:
                digits += text[slice(*group)] if group[1] - group[0] <= _LONGEST else "0" * _LONGEST
                if len(digits) > _LONGEST:
                    break
                ranges = _issuers().get(len(digits), ())
                if any(low <= digits[: len(low)] <= high for low, high in ranges) and _luhn(digits):
                    yield Finding(start, group[1], "card")


def ibans(text: str) -> Iterator[Finding]:
    """Yield international bank account numbers: the country's length, and 1 modulo 97."""
    lengths = table("numbers")["iban"]
    for start in _IBAN_START.finditer(text):
        characters, end = _taken(text, start.start(), lengths.get(start[1].upper(), 0))
        rearranged = "".join(str(int(character, 36)) for character in characters[4:] + characters[:4])
        if characters and int(rearranged) % 97 == 1:
            yield Finding(start.start(), end, "iban")


def _taken(text: str, start: int, length: int) -> tuple[str, int]:
    """Return as many letters and digits as an IBAN has, and where they end; empty if it ends elsewhere."""
    characters = ""
    at = start
    while at < len(text) and len(characters) < length:
        if text[at].isascii() and text[at].isalnum():
            characters += text[at].upper()
        elif text[at] not in " -" or text[at - 1] in " -":
            return "", at
        at += 1
    whole = len(characters) == length and not (at < len(text) and text[at].isascii() and text[at].isalnum())
    return (characters if whole else ""), at


def _luhn(digits: str) -> bool:
    doubled = [int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(digits))]
    return sum(value - 9 * (value > 9) for value in doubled) % 10 == 0 and len(set(digits)) > 1


@cache
def _issuers() -> dict[int, list[tuple[str, str]]]:
    """Return ranges of first digits by length."""
    known: dict[int, list[tuple[str, str]]] = {}
    for issuer in table("numbers")["cards"]:
        for digits in issuer["first"]:
            low, _, high = digits.partition("-")
            for length in issuer["lengths"]:
                known.setdefault(length, []).append((low, high or low))
    return known


_UUID = re.compile(r"(?<![A-Za-z0-9])[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![A-Za-z0-9])")
_ACCOUNT_ID = r"(?=[A-Za-z_.-]{0,40}\d)[A-Za-z0-9][A-Za-z0-9_-]{3,63}(?![A-Za-z0-9_]|[.,]\d)"

_ACCOUNT_NUMBER = r"(?!\d{4}-\d\d?-\d\d?(?!\d))(?=(?:[A-Z-]{0,6}\d){6})[A-Z0-9-]{6,40}(?![A-Za-z0-9_]|[.,]\d)"
_LOGIN = r"(?!(?:required|optional|true|false|none|null|yes|no)\b)[A-Za-z0-9][\w.@-]{2,63}"


def accounts(text: str) -> Iterator[Finding]:
    """Yield ids that are announced, and UUIDs. A number alone, or a hash, identifies no person."""
    yield from (Finding(*found.span(), "account") for found in _UUID.finditer(text))
    for pattern in _announced_accounts():
        yield from (Finding(*found.span("value"), "account") for found in pattern.finditer(text))


@cache
def _announced_accounts() -> tuple[re.Pattern[str], ...]:
    cues = table("cues")
    number = either(cues["number"], first=False)
    between = either(cues["between"])
    named = rf"{either(cues['account'] + cues['account_marked'], last=False)}[ _-]?{number}\.?[\"'`]?{BLANK}{between}?{BLANK}[\"'`#]?(?P<value>{_ACCOUNT_ID})"
    plain = rf"{either(cues['account'])}{BLANK}[:#=]?{BLANK}#?(?P<value>{_ACCOUNT_NUMBER})"
    return (
        re.compile(named, re.IGNORECASE),
        re.compile(plain, re.IGNORECASE),
        announced(cues["account_zh"], _ACCOUNT_ID, openly=False),
        announced(cues["account_marked"], _ACCOUNT_ID),
        announced(cues["login"], _ACCOUNT_ID, openly=False),
        re.compile(rf"{either(cues['login'])}[\"'`]?+{BLANK}[:=]{BLANK}[\"'`]?+(?P<value>{_LOGIN})", re.IGNORECASE),
    )


_HOUSE_NUMBER = r"(?<![A-Za-z0-9.,-])(?:(?:Flat|Studio|Unit)[ ][A-Za-z0-9]{1,5},?[ \n])?\d{1,5}[A-Za-z]?,?[ ]"
_NOT_IN_STREETS = "在住于到去至从来往址是为的了和与跟给"
_CHINESE_STREET = re.compile(
    rf"(?:(?![{_NOT_IN_STREETS}])[{HAN}]){{1,12}}(?:路|街|大道|巷|弄|胡同|里|道)(?:[ ]?\d{{1,5}}[ ]?(?:号|弄)|[ ]?[A-Za-z0-9]{{1,3}}[座栋幢])"
    rf"(?:[ ]?[{HAN}A-Za-z0-9-]{{0,10}}(?:室|楼|单元|栋|幢|座|层|号))*(?:\d{{3,4}}(?![\d年月日]))?"
)


def streets(text: str) -> Iterator[Finding]:
    """Yield street addresses: a number and a street, in English or Chinese."""
    for pattern in (_english_street(), _CHINESE_STREET):
        yield from (Finding(*found.span(), "address") for found in pattern.finditer(text))


@cache
def _english_street() -> re.Pattern[str]:
    words = r"(?:[A-Z][A-Za-z'.-]{0,20}[ ]){1,4}?"
    unit = r"(?:Apt|Apartment|Suite|Ste|Flat|Unit|Room)\.?[ ]?[A-Za-z0-9-]{1,6}"
    ends = rf"(?:{'|'.join(table('streets')['ends'].split())})(?![A-Za-z])\.?(?:,?[ ]{unit})?"
    town = r"(?:,?\s(?:[A-Z][a-z]{1,20},?\s){1,3}(?:[A-Z]{2}\s\d{5}(?:-\d{4})?(?!\d)|[A-Z]{1,2}\d[A-Z\d]?\s\d[A-Z]{2}(?![A-Za-z])))?"
    return re.compile(rf"{_HOUSE_NUMBER}{words}(?:{ends}|{unit}){town}")
