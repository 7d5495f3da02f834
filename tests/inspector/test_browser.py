"""The inspector in a real browser: Debian's chromium, driven by Playwright.

`SCREENSHOTS=docs/figures` writes the pictures of the docs; `DATA=folder` looks at a part of LoCoMo, too.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import uvicorn

from remegraph import MemoryKit, Scope
from remegraph.demo import PEOPLE, play
from remegraph.servers.inspector import Session, inspector
from remegraph.servers.inspector.access import listen
from remegraph.testing import FrozenClock
from tests.inspector.conftest import HOSTILE, MALLORY
from tests.talk import ANN, open_kit

pytestmark = [pytest.mark.slow, pytest.mark.browser]

_AXE = Path(__file__).parent / "axe" / "axe.min.js"
_LARGEST = 300_000
_PHONE = {"width": 360, "height": 740}
_DESK = {"width": 1280, "height": 820}


@dataclass
class Look:
    """A browser's window on an inspector, and all that went wrong in it."""

    page: Any
    address: str
    wrong: list[str] = field(default_factory=list)

    def at(self, path: str) -> Any:
        """Open a page."""
        self.page.goto(self.address + path)
        if path == "/":
            self.page.wait_for_selector("#graph[data-drawn]")
        return self.page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless chromium."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is missing: pip install 'remegraph[dev]'"
    )
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("chromium is missing: apt-get install chromium")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def served() -> Iterator[Any]:
    """Serve inspectors; the kits are closed after the last test."""
    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def serve(kit: MemoryKit, scope: Scope) -> str:
        door, session = listen(0), Session()
        port = door.getsockname()[1]
        app = inspector(
            kit,
            scope,
            session=session,
            hosts=[f"127.0.0.1:{port}"],
            write=True,
            clock=lambda: datetime(2026, 4, 21, tzinfo=UTC),
        )
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]})
        thread.start()
        running.append((server, thread))
        return f"http://127.0.0.1:{port}/login?token={session.token}"

    yield serve
    for server, thread in running:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """A home with the bundled conversation, some weeks and some questions later."""
    clock = FrozenClock(datetime(2026, 3, 12, 9, tzinfo=UTC))
    with MemoryKit.open(tmp_path_factory.mktemp("demo"), model=None, embedder=None, clock=clock) as kit:
        play(kit)
        for days in (4, 11, 16):
            clock.move(timedelta(days=days))
            kit.recall(PEOPLE[0].question, scope=PEOPLE[0].scope)
        clock.move(timedelta(days=9))
        yield kit


def _look(browser: Any, address: str, **options: Any) -> Look:
    context = browser.new_context(**{"viewport": _DESK, "reduced_motion": "reduce", **options})
    look = Look(context.new_page(), address.partition("/login")[0])

    def console(told: Any) -> None:
        if told.type in {"error", "warning"}:
            look.wrong.append(told.text)

    def dialog(shown: Any) -> None:
        look.wrong.append(shown.message)
        shown.dismiss()

    look.page.on("console", console)
    look.page.on("pageerror", lambda error: look.wrong.append(str(error)))
    look.page.on("dialog", dialog)
    look.page.goto(address)
    return look


def _views(kit: MemoryKit, scope: Scope, question: str) -> dict[str, str]:
    memories = kit.memories(scope=scope)
    replacing = next((each for each in memories if each.supersedes), memories[0])
    block = next(each for each in kit.sources.blocks(scope=scope) if each.partition.user == scope.user)
    return {
        "topics": "/",
        "memories": "/memories?status=any",
        "memory": f"/memory?{urlencode({'id': replacing.memory_id})}",
        "timeline": "/timeline",
        "block": f"/block?{urlencode({'id': block.block_id})}",
        "recall": f"/recall?{urlencode({'q': question, 'depth': 'messages'})}",
        "conflicts": "/conflicts",
        "proposals": "/proposals",
        "quarantine": "/quarantine",
        "forecast": "/forecast?days=365&cleanup=1",
        "audit": "/audit",
        "health": "/health",
    }


def _check(look: Look, name: str) -> None:
    """Nothing is wider than the window, and axe finds nothing serious."""
    wider = look.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wider <= 0, (name, wider)
    look.page.evaluate(_AXE.read_text(encoding="utf-8"))
    found = look.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = {
        each["id"]: [node["html"] for node in each["nodes"]]
        for each in found["violations"]
        if each["impact"] in {"serious", "critical"}
    }
    assert serious == {}, (name, serious)


def _open_largest(page: Any) -> None:
    """Click the topic that holds most, as a person does."""
    page.evaluate(
        "void document.getElementById('graph').cy.nodes('.topic').not('.centre').max((n) => n.data('memories')).ele.emit('tap')"
    )
    page.wait_for_selector("#graph[data-opened]")


@pytest.mark.parametrize(
    ("theme", "size"), [("light", _DESK), ("dark", _DESK), ("light", _PHONE)], ids=["light", "dark", "phone"]
)
def test_every_view_works_for_everybody(browser: Any, served: Any, demo: MemoryKit, theme: str, size: Any) -> None:
    """On a phone, in the dark, with a screen reader: and the console stays empty."""
    person = PEOPLE[0]
    look = _look(browser, served(demo, person.scope), color_scheme=theme, viewport=size)
    pictures = os.environ.get("SCREENSHOTS")
    for name, path in _views(demo, person.scope, person.question).items():
        page = look.at(path)
        if name == "topics":
            _open_largest(page)
        if pictures and name in {"topics", "memory", "recall"}:
            file = Path(pictures) / f"inspector-{name}-{'phone' if size is _PHONE else theme}.png"
            page.screenshot(path=file)
            assert file.stat().st_size < _LARGEST
        _check(look, name)
    assert look.wrong == []


def test_the_inspector_is_used_by_keyboard_alone(browser: Any, served: Any, demo: MemoryKit) -> None:
    """Not everybody has a mouse, and who has one types faster."""
    look = _look(browser, served(demo, PEOPLE[0].scope))
    page = look.at("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("/")
    page.keyboard.type("Where does Ann live?")
    page.keyboard.press("Enter")
    page.wait_for_url("**/recall?q=*")
    page.locator(".hit a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/memory?id=*")
    assert page.locator("mark").count() > 0
    page.get_by_role("button", name="Dark").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("html[data-theme=dark]")
    page.get_by_role("button", name="中文").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("html[lang=zh-CN]")
    assert look.wrong == []


def test_a_conflict_is_decided_by_a_click(browser: Any, served: Any, tmp_path: Path) -> None:
    """Whoever sees at a glance which of two is right should need no more than that."""
    with open_kit(tmp_path) as kit:
        for text in ("The meeting is on Monday.", "The meeting is not on Monday."):
            kit.save("meeting", text, scope=ANN, slot="meeting:day")  # at one moment: neither is the later one
        look = _look(browser, served(kit, ANN))
        page = look.at("/conflicts")
        page.get_by_label("Why (for the journal)").fill("both rooms are booked")
        page.get_by_role("button", name="Keep both, in dispute").click()
        page.get_by_text("No conflicts.").wait_for()
        (conflict,) = kit.conflicts.list(scope=ANN, state="resolved")
        assert conflict.decided is not None
        assert (conflict.decided.decision, conflict.decided.note) == ("keep_both", "both rooms are booked")
        assert look.wrong == []


def test_hostile_words_run_nowhere(browser: Any, served: Any, hostile: MemoryKit) -> None:
    """What the pages quote rightly, the drawing must, too."""
    look = _look(browser, served(hostile, MALLORY))
    for name, path in _views(hostile, MALLORY, HOSTILE[1]).items():
        page = look.at(path)
        if name == "topics":
            _open_largest(page)
            page.evaluate("void document.getElementById('graph').cy.nodes('.memory').first().emit('tap')")
        assert page.locator("img, iframe, object, main script, main style").count() == 0, name
    look.at(f"/memory?id={quote(HOSTILE[0])}")
    look.at(f"/recall?q={quote(HOSTILE[2])}")
    missing = [told for told in look.wrong if "404" in told]  # the memory of a hostile id
    assert look.wrong == missing


def test_a_real_conversation_is_shown(browser: Any, served: Any, tmp_path: Path) -> None:
    """People talk otherwise than those who write demos."""
    data = os.environ.get("DATA")
    if data is None:
        pytest.skip("no data: DATA=folder with locomo_dev.jsonl")
    with (Path(data) / "locomo_dev.jsonl").open(encoding="utf-8") as lines:
        messages = json.loads(next(lines))["messages"][:200]
    scope = Scope(user="Melanie", agent="remy")
    with MemoryKit.open(tmp_path, model=None, embedder=None) as kit:
        kit.add_messages(messages, scope=scope)
        kit.summarize(scope=scope, close=True)
        look = _look(browser, served(kit, scope))
        for name, path in _views(kit, scope, "What did Caroline research?").items():
            page = look.at(path)
            if name == "topics":
                _open_largest(page)
            _check(look, name)
        assert look.wrong == []
