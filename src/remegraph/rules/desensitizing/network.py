"""Where machines are: addresses, internal hosts, and what URLs carry beside the public part."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from ipaddress import ip_address

from remegraph.rules.desensitizing.finding import Finding
from remegraph.rules.desensitizing.tables import announced, either, table

__all__ = ["addresses", "hosts", "urls"]

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
_TRAILING = ".,;:!?)]}'"


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
    """Yield what must not be shared of URLs: an internal one whole; of a public one, its user and its query."""
    for found in _URL.finditer(text):
        end = found.end() - (len(found.group()) - len(found.group().rstrip(_TRAILING)))
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
    """Yield hosts that only an own network knows, and those that are announced and numbered: `server db-02`."""
    for found in _internal().finditer(text):
        yield Finding(*found.span(), "host")
    for found in _announced().finditer(text):
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
def _announced() -> re.Pattern[str]:
    value = r"(?=[a-z0-9.-]{0,60}\d)[a-z][a-z0-9]{0,30}(?:[.-][a-z0-9]{1,30}){1,6}(?::\d{2,5})?(?![A-Za-z0-9_])"
    return announced(table("cues")["host"], value, openly=False)
