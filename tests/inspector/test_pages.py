"""What the pages show: all of it, to whom it belongs, as words and nothing else."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest

from remegraph import MemoryKit, Scope
from remegraph.models import LIVE
from tests.inspector.conftest import BOB, HOSTILE, MALLORY, Visit, Visiting, links

_ALL = (
    "/",
    "/memories",
    "/timeline",
    "/recall",
    "/conflicts",
    "/proposals",
    "/quarantine",
    "/forecast",
    "/audit",
    "/health",
)


class Elements(HTMLParser):
    """Collects what a browser would make of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def _crawl(visit: Visit, most: int = 3) -> dict[str, str]:
    """Every page that links lead to, of those that differ in their query only the first ones."""
    pages: dict[str, str] = {}
    waiting = ["/"]
    while waiting:
        address = waiting.pop(0)
        path = address.partition("?")[0]
        same = sum(known.partition("?")[0] == path for known in pages)
        if address in pages or same >= most or path.startswith("/static"):
            continue
        pages[address] = visit.page(address)
        waiting += sorted(links(pages[address]) - set(pages))
    return pages


def test_every_link_leads_to_a_page(visiting: Visiting) -> None:
    """From the first page a person reaches everything, and nothing that is broken."""
    pages = _crawl(visiting())
    assert set(_ALL) | {"/memory", "/block"} <= {address.partition("?")[0] for address in pages}


def test_chinese_pages_are_whole(visiting: Visiting) -> None:
    """A text that lacks a value fails where it is shown."""
    visit = visiting()
    visit.send("/look", language="zh")
    assert all('lang="zh-CN"' in page for page in _crawl(visit, most=1).values())


def test_a_memory_leads_down_to_the_highlighted_words(visiting: Visiting, kit: MemoryKit, scope: Scope) -> None:
    """What cannot be traced cannot be trusted."""
    (porto,) = [memory for memory in kit.memories(scope=scope) if "Porto" in memory.content]
    visit = visiting()
    page = visit.page(f"/memory?id={porto.memory_id}")
    assert "<mark>I live in Porto now.</mark>" in page
    assert "<polyline" in page
    blocks = [address for address in links(page) if address.startswith("/block")]
    assert len(blocks) == len(porto.evidence)  # one for each message that it stands on
    assert all("My favourite tea is sencha." in visit.page(block) for block in blocks)
    (oboe,) = [memory for memory in kit.memories(scope=scope) if "oboe" in memory.content]
    assert "Ann plays the cello." in visit.page(f"/memory?id={oboe.memory_id}")  # what it replaced


def test_the_playground_shows_what_is_found_and_given_and_strengthens_nothing(
    visiting: Visiting, kit: MemoryKit, scope: Scope
) -> None:
    """Who looks at a memory must not keep it from fading."""
    page = visiting().page("/recall?q=Where+does+Ann+live&depth=messages")
    assert "I live in Porto now." in page
    assert "of 2,000 tokens" in page
    assert all(not kit.explain(memory.memory_id, scope=scope).reviews for memory in kit.memories(scope=scope))


def test_a_clean_up_is_tried_out_and_changes_nothing(visiting: Visiting, kit: MemoryKit, scope: Scope) -> None:
    """Who is afraid of what it does never runs it."""
    before = list(kit.governance.audit(scope=scope))
    page = visiting().page("/forecast?cleanup=1")
    own = [each for each in kit.memories(scope=scope, statuses=sorted(LIVE)) if each.partition == scope.partition()]
    assert f"Looked at: {len(own)}." in page
    assert list(kit.governance.audit(scope=scope)) == before


def test_nothing_of_others_is_shown(visiting: Visiting, kit: MemoryKit) -> None:
    """The scope is chosen at the start; no address leads out of it."""
    (memory,) = [each for each in kit.memories(scope=BOB) if "PIN" in each.content]
    (block,) = [each for each in kit.sources.blocks(scope=BOB) if each.partition.user == BOB.user]
    visit = visiting()
    assert all("PIN" not in page for page in _crawl(visit).values())
    assert visit.client.get(f"/memory?id={memory.memory_id}").status_code == 404
    for of in ("", "user-agent", "user", "agent", "bob", "user-agent-project"):
        answer = visit.client.get("/block", params={"id": block.block_id, "of": of})
        assert "PIN" not in answer.text
    assert "PIN" not in visit.page("/recall?q=What+is+secret%3F&depth=messages")
    assert "PIN" not in visit.page("/graph/topic?topic=personal:Bob")


def test_hostile_words_stay_words(visiting: Visiting, hostile: MemoryKit) -> None:
    """A memory is written by strangers; a page that believes it hands them the memory of the person who looks."""
    visit = visiting(of=hostile, whose=MALLORY, write=True)
    pages = _crawl(visit, most=12)
    for text in HOSTILE:
        address = f"/recall?{urlencode({'q': text, 'depth': 'messages'})}"
        pages[address] = visit.page(address)
        pages |= {
            each: visit.client.get(each).text
            for each in (f"/memory?{urlencode({'id': text})}", f"/audit?{urlencode({'q': text})}")
        }
    assert sum("alert(1)" in page for page in pages.values()) > 5
    for address, page in pages.items():
        elements = Elements()
        elements.feed(page)
        for tag, attributes in elements.found:
            assert tag not in {"img", "iframe", "object", "style", "base", "i", "u"}, (address, tag)
            assert not [name for name in attributes if name.startswith("on") or name == "style"], (address, attributes)
            assert tag != "script" or (attributes.get("src") or "").startswith("/static/"), address
            assert all((attributes.get(name) or "/").startswith(("/", "#")) for name in ("href", "src", "action")), (
                attributes
            )


def test_long_lists_come_page_by_page(
    visiting: Visiting, kit: MemoryKit, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser chokes on what a store of years holds."""
    monkeypatch.setattr("remegraph.servers.inspector.views.PAGE", 2)
    monkeypatch.setattr("remegraph.servers.inspector.pages.PAGE", 2)
    visit, seen, address = visiting(), [], "/memories?status=any"
    while address:
        page = visit.page(address)
        shown = [each for each in links(page) if each.startswith("/memory?")]
        assert 0 < len(shown) <= 2
        seen += shown
        further = [each for each in links(page) if f"page={len(seen) // 2 + 1}" in each]
        address = further[0] if further and len(shown) == 2 else ""
    assert len(seen) == len(set(seen)) == len(kit.memories(scope=scope))


@pytest.mark.parametrize(
    "address",
    ["/memories?page=0", "/memories?page=-1", "/memories?page=99999999999", "/memories?status=odd&topic=none:at all",
     "/recall?q=x&k=abc&depth=odd&mode=odd", "/forecast?days=1e9", "/audit?since=odd&until=2025-99-99", "/timeline?page=x",
     f"/memories?page={'9' * 5000}", "/audit?until=9999-12-31", "/audit?since=0001-01-01"],
)  # fmt: skip
def test_an_odd_address_still_gives_a_page(visiting: Visiting, address: str) -> None:
    """Addresses are typed, cut and pasted by hand."""
    visiting().page(address)


def test_what_is_not_there_says_so_with_a_cure(visiting: Visiting) -> None:
    """A stack trace helps nobody who looks for a memory."""
    visit = visiting()
    answer = visit.client.get("/memory?id=nothing")
    assert (answer.status_code, "There is no memory" in answer.text) == (404, True)
    assert visit.client.get("/nowhere").status_code == 404
