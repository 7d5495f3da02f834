"""Find private data and secrets in a text, and replace them with placeholders (K7).

Street addresses and names are best effort: of names, only those that the caller knows are found.
"""

from __future__ import annotations

import hmac
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address

from remegraph.errors import InputError
from remegraph.settings import without_passwords
from remegraph.text import personal, table
from remegraph.text.findings import (
    BLANK,
    ESCAPE,
    KINDS,
    MOST,
    PLACEHOLDER,
    Finding,
    Folded,
    Kind,
    announced,
    either,
    folded,
    united,
)

__all__ = [
    "LONGEST",
    "Cleaned",
    "Placeholders",
    "Pseudonyms",
    "desensitize",
    "findings",
    "masked",
    "replaced",
]

_QUOTED = r"(?:\"(?P<double>[^\"\n\x1f]{1,200})\"|(?<![A-Za-z])'(?P<single>[^'\n\x1f]{1,200})'(?![A-Za-z])|[`“‘「](?P<curly>[^`”’」\n\x1f]{1,200})[`”’」])"
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
            value = text[start:end]  # long enough, of letters and digits mixed as no word is
            if len(value) >= least and any(map(str.isdigit, value)) and not re.fullmatch(r"[\d.,:/-]+", value[:12]):
                yield Finding(start, end, "key")


def passwords(text: str) -> Iterator[Finding]:
    """Yield passwords and one-time codes that are announced."""
    for start, end, openly in _announced(text, "password"):
        if openly or (
            text[start:end].isascii() and end - start > 3
        ):  # otherwise a word with which the sentence continues
            yield Finding(start, end, "password")
    for found in _directly().finditer(text):
        start, end = found.span("spaced" if found["spaced"] else "joined")
        end = _ended(text, start, end)
        if not _plain().fullmatch(text, start, end):
            yield Finding(start, end, "password")
    yield from (Finding(*found.span("value"), "password") for found in _pins().finditer(text))


def _announced(text: str, cue: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the places of values that a cue announces, and whether they are marked as such by quotes, ":" or "="."""
    for found in _cue(cue).finditer(text):
        group = next(name for name in ("double", "single", "curly", "bare") if found[name] is not None)
        start, end = found.span(group)
        if group == "bare":
            end = _ended(text, start, end)
        if end - start > 2 and not _plain().fullmatch(text, start, end):
            yield start, end, group != "bare" or found["between"] in {":", "=", ":="}


def _ended(text: str, start: int, end: int) -> int:
    """Return where an unquoted value ends: what closes the sentence around it is not part of it."""
    while end > start and (text[end - 1] in _TRAILING or (text[end - 1] in ")]}" and _unopened(text[start:end]))):
        end -= 1
    return end


def _unopened(value: str) -> bool:
    opening = {")": "(", "]": "[", "}": "{"}[value[-1]]
    return value.count(opening) < value.count(value[-1])


@cache
def _plain() -> re.Pattern[str]:
    """Return a pattern of what follows such cues and is not a secret: words of a sentence, stars, variables."""
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


_IPV4 = re.compile(r"(?<![A-Za-z0-9_.])(\d{1,3}(?:\.\d{1,3}){3})(?:/\d{1,2})?(?::\d{1,5})?(?![A-Za-z0-9_]|\.\d)")
_IPV6 = re.compile(
    r"(?<![A-Za-z0-9_:.])([0-9A-Fa-f:]{2,39}(?:(?<=:)\d{1,3}(?:\.\d{1,3}){3})?)(?:%\w{1,16})?(?:/\d{1,3})?(?![A-Za-z0-9_:])"
)
_MAC = re.compile(
    r"(?<![A-Za-z0-9:-])(?:[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}|(?=[0-9.]{0,13}[A-Fa-f])[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4})"
    r"(?![A-Za-z0-9:-]|\.\w)"
)
_URL = re.compile(
    r"(?<![A-Za-z0-9+.-])(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{1,20})://(?:(?P<user>[^\s/?#@\"'<>]{1,200})@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::\d{1,5})?"
    r"(?P<path>/[^\s?#\"'<>，。；、！？）」》]*+)?(?P<more>[?#][^\s\"'<>，。；、！？）」》]++)?"
)
_WEB = frozenset({"http", "https"})
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62})"
_URL_TRAILING = ".,;:!?)]}'"


def addresses(text: str) -> Iterator[Finding]:
    """Yield IP addresses (no version numbers) and MAC addresses."""
    for found in _IPV4.finditer(text):
        if _is_address(found[1]) and not _version().search(text, max(0, found.start() - 16), found.start()):
            yield Finding(*found.span(), "ip")
    for found in _IPV6.finditer(text):
        address = found[1]
        if address.count(":") > 1 and any(map(str.isdigit, address)) and _is_address(address):
            yield Finding(*found.span(), "ip")
    yield from (Finding(*found.span(), "mac") for found in _MAC.finditer(text))


def urls(text: str) -> Iterator[Finding]:
    """Yield what must not be shared of URLs: all of an internal one, the user and the query of a public one."""
    for found in _URL.finditer(text):
        end = found.end() - (len(found.group()) - len(found.group().rstrip(_URL_TRAILING)))
        web = found["scheme"].lower() in _WEB
        if found["user"] and not web:
            yield Finding(found.start(), end, "key")
        elif not _public(found["host"]) or found["scheme"].lower() == "file":
            yield Finding(found.start(), end, "url")
        else:
            if found["user"]:
                yield Finding(*found.span("user"), "key")
            if found["more"] and (found["more"].startswith("?") or "=" in found["more"]):
                yield Finding(found.start("more"), end, "url")


def hosts(text: str) -> Iterator[Finding]:
    """Yield hosts known only inside a private network, and those that are announced and numbered: `server db-02`."""
    for found in _internal().finditer(text):
        yield Finding(*found.span(), "host")
    for found in _announced_hosts().finditer(text):
        yield Finding(*found.span("value"), "host")


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _public(host: str) -> bool:
    labels = host.lower().strip("[]").rstrip(".").split(".")
    return len(labels) > 1 and labels[-1] not in table("hosts")["internal"] and not _is_address(".".join(labels))


@cache
def _version() -> re.Pattern[str]:
    return re.compile(rf"{either(table('cues')['version'])}[ :=]{{0,2}}\Z", re.IGNORECASE)


@cache
def _internal() -> re.Pattern[str]:
    ends = "|".join(table("hosts")["internal"])
    name = rf"(?:{_LABEL}\.){{1,8}}(?:{ends})(?![A-Za-z0-9-]|\.[A-Za-z])"
    return re.compile(rf"(?<![A-Za-z0-9_.@-])(?:{name}(?::\d{{2,5}})?|localhost:\d{{2,5}})", re.IGNORECASE)


@cache
def _announced_hosts() -> re.Pattern[str]:
    parts = r"(?:[a-z][a-z0-9]{0,30}(?:[.-][a-z0-9]{1,30}){1,6}|[a-z]{3,20}\d{1,4})"
    value = rf"(?=[a-z0-9.-]{{0,60}}\d){parts}(?::\d{{2,5}})?(?![A-Za-z0-9_])"
    return announced(table("cues")["host"], value, openly=False)


_PART = r"[^\s/\\:*?\"'<>|,;()，。；、！？）》]"
_DOS_PART = r"[^\\/:*?\"'<>|\r\n\x1f，。；、！？]"
_WINDOWS = re.compile(
    rf"(?<![A-Za-z0-9])[A-Za-z]:[\\/](?:{_DOS_PART}{{1,80}}(?<! )[\\/])*+(?:{_PART}++)?|\\\\{_PART}++(?:\\(?:{_DOS_PART}{{1,80}}\\)*+(?:{_PART}++)?)+"
)
_HOME = re.compile(rf"(?<![A-Za-z0-9/~])~[\w-]{{0,32}}(?:/{_PART}++)+/?")
_ENDING = re.compile(rf"(?<![A-Za-z0-9/.:~<])(?:/{_PART}++)+\.[A-Za-z0-9]{{1,8}}(?![A-Za-z0-9/])")


def paths(text: str) -> Iterator[Finding]:
    """Yield paths of files and folders: Windows, UNC, home, below a usual root, or with an ending."""
    for pattern in (_WINDOWS, _HOME, _rooted(), _ENDING):
        for found in pattern.finditer(text):
            yield Finding(found.start(), found.start() + len(found.group().rstrip(".")), "path")


@cache
def _rooted() -> re.Pattern[str]:
    roots = "|".join(table("hosts")["roots"])
    return re.compile(rf"(?<![A-Za-z0-9/.:~<])/(?:{roots})(?:/{_PART}++)+/?")


_WRITTEN_APART = frozenset({"phone", "card", "iban", "ssn", "cn-id", "plate", "mac"})
_AS_WRITTEN = frozenset({"key", "password", "path", "url"})


class Placeholders:
    """The placeholders of one share: equal values get the same one in all its texts.

    It holds what was removed, so it must never leave; a placeholder itself gives nothing away.
    """

    def __init__(self) -> None:
        self._given: dict[tuple[Kind, str], str] = {}
        self._taken: set[str] = set()
        self._last: dict[Kind, int] = {}

    def __len__(self) -> int:
        return len(self._given)

    def __repr__(self) -> str:
        return f"Placeholders({len(self)})"

    def reserve(self, text: str) -> None:
        """Give no new value a placeholder that this text has already."""
        self._taken.update(found.group() for found in PLACEHOLDER.finditer(text))

    def of(self, kind: Kind, value: str) -> str:
        """Return the placeholder of a value."""
        key = kind, _same(kind, value)
        if key not in self._given:
            self._given[key] = self._new(kind)
        return self._given[key]

    def _new(self, kind: Kind) -> str:
        for number in range(self._last.get(kind, 0) + 1, MOST + 1):
            if (placeholder := f"<{kind}-{number}>") not in self._taken:
                self._last[kind] = number
                return placeholder
        raise InputError(f"There are more than {MOST:,} values of the kind {kind!r}.", "Share less at once.")


class Pseudonyms(Placeholders):
    """Placeholders that follow from the value and a key: the same ones in all texts, processes and years.

    Nothing is kept. Two values share one by chance once in 99,999 pairs, so not even the key leads back to a value.
    """

    def __init__(self, key: bytes) -> None:
        super().__init__()
        self._key = key

    def reserve(self, text: str) -> None:
        """Do nothing: a placeholder in a text is that of the same value."""

    def of(self, kind: Kind, value: str) -> str:
        """Return the placeholder of a value."""
        digest = hmac.digest(self._key, _same(kind, value).encode("utf-8", "surrogatepass"), "sha256")
        return f"<{kind}-{int.from_bytes(digest) % MOST + 1}>"


def _same(kind: Kind, value: str) -> str:
    """Return a value in a form that does not depend on how it is written."""
    if kind in _AS_WRITTEN:
        return value
    folded = value.casefold()
    return re.sub(r"[\W_]+", "", folded) if kind in _WRITTEN_APART else " ".join(folded.split())


LONGEST = 200_000
"""Characters of a text at most, each placeholder in it counted as one."""

_RECOGNISERS: Mapping[Callable[[str], Iterator[Finding]], frozenset[Kind]] = {
    personal.emails: frozenset({"email"}),
    personal.phones: frozenset({"phone"}),
    personal.cards: frozenset({"card"}),
    personal.ibans: frozenset({"iban"}),
    personal.numbers: frozenset({"cn-id", "ssn", "plate", "passport"}),
    personal.birth_dates: frozenset({"birth-date"}),
    addresses: frozenset({"ip", "mac"}),
    urls: frozenset({"key", "url"}),
    hosts: frozenset({"host"}),
    keys: frozenset({"key"}),
    passwords: frozenset({"password"}),
    paths: frozenset({"path"}),
    personal.streets: frozenset({"address"}),
    personal.accounts: frozenset({"account"}),
}
"""The kinds that each recogniser finds."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text after its private data was replaced."""

    text: str
    removed: Mapping[Kind, int]
    """How many of each kind were replaced."""
    table: Placeholders
    """For the other texts of the same share."""


def findings(
    text: str, *, names: Collection[str] = (), kinds: Collection[Kind] = frozenset(KINDS)
) -> tuple[Finding, ...]:
    """Return what is private in a text, in order and without overlaps.

    Known names are also looked for in their parts, such as the first name. Nothing is found within a placeholder.

    Raises:
        InputError: The text is longer than `LONGEST`.
        MissingExtraError: The package `phonenumbers` is not installed.
    """
    plain = folded(text)
    if len(plain.text) > LONGEST:
        raise InputError(f"A text of {len(plain.text):,} characters is too long to be searched.", "Share it in parts.")
    found = list(_found(plain, names, kinds))
    if escapes := {each.start("escaped") for each in ESCAPE.finditer(text)}:  # JSON, or a part of it
        found = [each for each in found if each.start not in escapes or each.kind == "path"]
        found += _found(folded(text, escapes=True), names, kinds)
    return united(found)


def _found(plain: Folded, names: Collection[str], kinds: Collection[Kind]) -> Iterator[Finding]:
    asked = [recognise for recognise, finds in _RECOGNISERS.items() if not finds.isdisjoint(kinds)]
    found = [each for recognise in asked for each in recognise(plain.text) if each.kind in kinds]
    found += personal.names(plain.text, names)
    return (Finding(*plain.span(each.start, each.end), each.kind) for each in found if each.start < each.end)


def desensitize(
    text: str,
    *,
    names: Collection[str] = (),
    kinds: Collection[Kind] = frozenset(KINDS),
    table: Placeholders | None = None,
) -> Cleaned:
    """Replace all that is private in a text with placeholders, those of `table` if given. Idempotent."""
    table = Placeholders() if table is None else table
    table.reserve(text)
    removed: Counter[Kind] = Counter()
    # A gap may expose what was beside it. The loop ends: each round removes characters.
    while found := findings(text, names=names, kinds=kinds):
        removed.update(each.kind for each in found)
        text = replaced(text, found, table)
    return Cleaned(text, dict(removed), table)


def replaced(text: str, found: Sequence[Finding], table: Placeholders) -> str:
    """Return a text with placeholders for what was found in it."""
    parts: list[str] = []
    before = 0
    for each in found:
        parts += text[before : each.start], table.of(each.kind, folded(text[each.start : each.end]).text)
        before = each.end
    return "".join([*parts, text[before:]])


def masked(text: str) -> str:
    """Replace keys, passwords and connection strings in an error message with stars."""
    text = without_passwords(text)
    plain = folded(text)
    found = united(
        Finding(*plain.span(each.start, each.end), each.kind)
        for recognise in (keys, passwords)
        for each in recognise(plain.text)
    )
    for each in reversed(found):
        text = f"{text[: each.start]}***{text[each.end :]}"
    return text
