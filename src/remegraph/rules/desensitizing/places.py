"""Where files and people are: paths, and street addresses as far as their form tells (best effort)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from remegraph.language.scripts import HAN
from remegraph.rules.desensitizing.finding import Finding
from remegraph.rules.desensitizing.tables import table

__all__ = ["paths", "streets"]

_PART = r"[^\s/\\:*?\"'<>|,;()，。；、！？）》]"
_DOS_PART = r"[^\\/:*?\"'<>|\r\n\x1f，。；、！？]"
_WINDOWS = re.compile(
    rf"(?<![A-Za-z0-9])[A-Za-z]:[\\/](?:{_DOS_PART}{{1,80}}(?<! )[\\/])*+(?:{_PART}++)?|\\\\{_PART}++(?:\\(?:{_DOS_PART}{{1,80}}\\)*+(?:{_PART}++)?)+"
)
_HOME = re.compile(rf"(?<![A-Za-z0-9/~])~[\w-]{{0,32}}(?:/{_PART}++)+/?")
_ENDING = re.compile(rf"(?<![A-Za-z0-9/.:~<])(?:/{_PART}++)+\.[A-Za-z0-9]{{1,8}}(?![A-Za-z0-9/])")
_NUMBER = r"(?<![A-Za-z0-9.,-])(?:(?:Flat|Studio|Unit)[ ][A-Za-z0-9]{1,5},?[ \n])?\d{1,5}[A-Za-z]?,?[ ]"
_NOT_IN_STREETS = "在住于到去至从来往址是为的了和与跟给"
_CHINESE_STREET = re.compile(
    rf"(?:(?![{_NOT_IN_STREETS}])[{HAN}]){{1,12}}(?:路|街|大道|巷|弄|胡同|里|道)(?:[ ]?\d{{1,5}}[ ]?(?:号|弄)|[ ]?[A-Za-z0-9]{{1,3}}[座栋幢])"
    rf"(?:[ ]?[{HAN}A-Za-z0-9-]{{0,10}}(?:室|楼|单元|栋|幢|座|层|号))*(?:\d{{3,4}}(?![\d年月日]))?"
)


def paths(text: str) -> Iterator[Finding]:
    """Yield paths of files and folders: Windows, UNC, home, below a usual root, or with an ending."""
    for pattern in (_WINDOWS, _HOME, _rooted(), _ENDING):
        for found in pattern.finditer(text):
            yield Finding(found.start(), found.start() + len(found.group().rstrip(".")), "path")


def streets(text: str) -> Iterator[Finding]:
    """Yield street addresses: a number and a street, in English or Chinese."""
    for pattern in (_english_street(), _CHINESE_STREET):
        yield from (Finding(*found.span(), "address") for found in pattern.finditer(text))


@cache
def _rooted() -> re.Pattern[str]:
    roots = "|".join(table("hosts")["roots"])
    return re.compile(rf"(?<![A-Za-z0-9/.:~<])/(?:{roots})(?:/{_PART}++)+/?")


@cache
def _english_street() -> re.Pattern[str]:
    words = r"(?:[A-Z][A-Za-z'.-]{0,20}[ ]){1,4}?"
    unit = r"(?:Apt|Apartment|Suite|Ste|Flat|Unit|Room)\.?[ ]?[A-Za-z0-9-]{1,6}"
    ends = rf"(?:{'|'.join(table('streets')['ends'].split())})(?![A-Za-z])\.?(?:,?[ ]{unit})?"
    town = r"(?:,?\s(?:[A-Z][a-z]{1,20},?\s){1,3}(?:[A-Z]{2}\s\d{5}(?:-\d{4})?(?!\d)|[A-Z]{1,2}\d[A-Z\d]?\s\d[A-Z]{2}(?![A-Za-z])))?"
    return re.compile(rf"{_NUMBER}{words}(?:{ends}|{unit}){town}")
