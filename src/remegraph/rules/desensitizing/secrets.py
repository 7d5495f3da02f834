"""Keys by the forms that their issuers give them, and passwords by the words that announce them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from remegraph.rules.desensitizing.finding import Finding
from remegraph.rules.desensitizing.tables import BLANK, either, table

__all__ = ["keys", "passwords"]

_QUOTED = r"(?:\"(?P<double>[^\"\n\x1f]{1,200})\"|'(?P<single>[^'\n\x1f]{1,200})'|[`“‘「](?P<curly>[^`”’」\n\x1f]{1,200})[`”’」])"
_ASCII = r"[!#-&(-_a-~][!-~]{2,299}"
_WIDE = r"[^\s\x00-\x7f，。；、！？（）“”‘’「」【】《》][^\s，。；、！？）”’」】》]{1,63}"
_STANDS_FOR_ONE = (
    r"\*+|[xX.•]+|\$\{\w+\}|(?-i:\$[A-Z_]+)|\{+\w+\}+|<[\w -]+>|\[\w+\]|%\w+%|os\.environ.*|process\.env.*"
)
_OF_WHAT = r"(?:[ ](?:for|to|of|on)(?:[ ][\w.'-]{1,20}){1,4}?)?"
_TRAILING = ".,;:?\"'`"


def keys(text: str) -> Iterator[Finding]:
    """Yield keys of a known form, and keys that are announced."""
    yield from (Finding(*found.span(), "key") for found in _shapes().finditer(text))
    for cue, least in (("token", 8), ("key_alone", 16)):
        for start, end, _ in _announced(text, cue):
            if _random(text[start:end], least):
                yield Finding(start, end, "key")


def passwords(text: str) -> Iterator[Finding]:
    """Yield passwords and one-time codes that are announced."""
    for start, end, openly in _announced(text, "password"):
        if openly or _no_word(text[start:end]):
            yield Finding(start, end, "password")
    for found in _directly().finditer(text):
        start, end = found.span("spaced" if found["spaced"] else "joined")
        end = _ended(text, start, end)
        if not _plain().fullmatch(text, start, end):
            yield Finding(start, end, "password")
    yield from (Finding(*found.span("value"), "password") for found in _pins().finditer(text))


def _announced(text: str, cue: str) -> Iterator[tuple[int, int, bool]]:
    """Yield where values stand that a cue announces, and whether they are marked as such by quotes, ":" or "="."""
    for found in _cue(cue).finditer(text):
        group = next(name for name in ("double", "single", "curly", "bare") if found[name] is not None)
        start, end = found.span(group)
        if group == "bare":
            end = _ended(text, start, end)
        if end - start > 2 and not _plain().fullmatch(text, start, end):
            yield start, end, group != "bare" or found["between"] in {":", "=", ":="}


def _ended(text: str, start: int, end: int) -> int:
    """Return where a value without quotes ends: what closes the sentence around it is no part of it."""
    while end > start and (text[end - 1] in _TRAILING or (text[end - 1] in ")]}" and _unopened(text[start:end]))):
        end -= 1
    return end


def _unopened(value: str) -> bool:
    opening = {")": "(", "]": "[", "}": "{"}[value[-1]]
    return value.count(opening) < value.count(value[-1])


def _random(value: str, least: int) -> bool:
    """Return whether a value looks like a key: long enough, of letters and digits mixed as no word is."""
    return len(value) >= least and any(map(str.isdigit, value)) and not re.fullmatch(r"[\d.,:/-]+", value[:12])


def _no_word(value: str) -> bool:
    """Return whether a value after "is" can be one, and no word that the sentence goes on with."""
    return value.isascii() and len(value) > 3


@cache
def _plain() -> re.Pattern[str]:
    """Return a pattern of what stands after such cues and is no secret: words of a sentence, stars, variables."""
    cues = table("cues")
    chinese = "|".join(map(re.escape, cues["no_password_zh"]))
    return re.compile(rf"{either(cues['no_password'])}|(?:{chinese}).*|{_STANDS_FOR_ONE}", re.IGNORECASE)


@cache
def _shapes() -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(table('secrets')['shapes'])})")


@cache
def _cue(name: str) -> re.Pattern[str]:
    words = either(table("cues")[name])
    between = either(table("cues")["between"])
    value = rf"(?:{BLANK}{between}?{BLANK}{_QUOTED}|{BLANK}(?P<between>{between}){BLANK}(?P<bare>{_ASCII}|{_WIDE}))"
    return re.compile(rf"{words}[\"'`]?+{_OF_WHAT}{value}", re.IGNORECASE)


@cache
def _directly() -> re.Pattern[str]:
    cues = table("cues")["password_directly"]
    english = r"[ ]{1,2}(?P<spaced>(?=[A-Z!-/:-@]{0,40}\d)(?=\d{0,40}[A-Z@#$%^&*!])[A-Z0-9@#$%^&*!][!-~]{3,63})"
    chinese = r"(?<=[码碼令])[ ]?(?P<joined>(?=[A-Z!-/:-@]{0,40}\d)[A-Z0-9@#$%^&*!][!-~]{3,63})(?![年月日位个次])"
    return re.compile(rf"{either(cues)}(?:{english}|{chinese})", re.IGNORECASE)


@cache
def _pins() -> re.Pattern[str]:
    words = either(table("cues")["pin"])
    between = either(table("cues")["between"])
    value = r"(?:\d{3}[ -]\d{3}|\d{3,8})(?![A-Za-z0-9])"
    return re.compile(rf"{words}{_OF_WHAT}{BLANK}{between}?{BLANK}(?P<value>{value})", re.IGNORECASE)
