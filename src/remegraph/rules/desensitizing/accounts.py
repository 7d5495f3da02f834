"""What a system calls somebody or something of theirs: session, account and order ids, where words announce them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from remegraph.rules.desensitizing.finding import Finding
from remegraph.rules.desensitizing.tables import BLANK, announced, either, table

__all__ = ["accounts"]

_UUID = re.compile(r"(?<![A-Za-z0-9])[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![A-Za-z0-9])")
_ID = r"(?=[A-Za-z_.-]{0,40}\d)[A-Za-z0-9][A-Za-z0-9_-]{3,63}(?![A-Za-z0-9_]|[.,]\d)"

_LOGIN = r"(?!(?:required|optional|true|false|none|null|yes|no)\b)[A-Za-z0-9][\w.@-]{2,63}"


def accounts(text: str) -> Iterator[Finding]:
    """Yield ids that are announced, and UUIDs. A number alone, and a hash, is nobody's."""
    yield from (Finding(*found.span(), "account") for found in _UUID.finditer(text))
    for pattern in _announced():
        yield from (Finding(*found.span("value"), "account") for found in pattern.finditer(text))


@cache
def _announced() -> tuple[re.Pattern[str], ...]:
    cues = table("cues")
    number = either(cues["number"], joined=True)
    between = either(cues["between"])
    named = rf"{either(cues['account'] + cues['account_marked'])}[ _-]?{number}\.?[\"'`]?{BLANK}{between}?{BLANK}[\"'`#]?(?P<value>{_ID})"
    plain = (
        rf"{either(cues['account'])}{BLANK}[:#=]?{BLANK}#?(?P<value>[A-Z]{{0,4}}-?\d{{6,24}}(?![A-Za-z0-9_]|[.,]\d))"
    )
    return (
        re.compile(named, re.IGNORECASE),
        re.compile(plain, re.IGNORECASE),
        announced(cues["account_zh"], _ID, openly=False),
        announced(cues["account_marked"], _ID),
        announced(cues["login"], _ID, openly=False),
        re.compile(rf"{either(cues['login'])}[\"'`]?+{BLANK}[:=]{BLANK}[\"'`]?+(?P<value>{_LOGIN})", re.IGNORECASE),
    )
