"""Who comes in, and what they may do: a memory is the most private thing on a machine."""

from __future__ import annotations

import socket
from typing import cast

import pytest
from starlette.routing import Route

from remegraph import MemoryKit, Scope, SetupError
from remegraph.servers.inspector import Session, inspector
from remegraph.servers.inspector.access import listen
from remegraph.servers.watch import PROBES
from tests.inspector.conftest import HOST, Visit, Visiting
from tests.talk import NOON

pytestmark = pytest.mark.requirement("X10")


def _routes(method: str) -> list[str]:
    app = inspector(cast("MemoryKit", None), Scope(user="Ann"), session=Session(), hosts=[], clock=lambda: NOON)
    return [each.path for each in app.routes if isinstance(each, Route) and method in (each.methods or ())]


_PAGES = [path for path in _routes("GET") if path not in {"/login", *PROBES}]
_FORMS = _routes("POST")
_DEEDS = [path for path in _FORMS if path != "/look"]


def test_there_are_pages_and_forms_to_test() -> None:
    """Tests over an empty list pass."""
    assert len(_PAGES) >= 14
    assert len(_DEEDS) >= 4


def test_nobody_sees_a_page_without_the_token(visiting: Visiting) -> None:
    """Every user of the machine can reach a port of it."""
    visit = visiting(entered=False)
    for path in _PAGES:
        answer = visit.client.get(path, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"], answer.content) == (303, "/login", b"")
    for path in _FORMS:
        assert visit.send(path).headers["location"] == "/login"


@pytest.mark.parametrize("token", ["", "wrong", "\N{SNOWMAN}", "a" * 5000])
def test_a_wrong_token_opens_nothing(visiting: Visiting, token: str) -> None:
    """It must not fall over strange ones, either."""
    visit = visiting(entered=False)
    answer = visit.client.get("/login", params={"token": token})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert visit.client.get("/", follow_redirects=False).status_code == 303


def test_the_token_lets_one_browser_in_and_nobody_after_it(visiting: Visiting) -> None:
    """The address stays in the terminal's scrollback and in the browser's history."""
    visit = visiting()
    again = f"/login?token={visit.session.token}"
    assert visit.client.get(again, follow_redirects=False).headers["location"] == "/"  # the same browser
    visit.client.cookies.clear()
    assert visit.client.get(again).status_code == 401


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(visiting: Visiting) -> None:
    """A cookie that another page can use is a key under the mat; other ports of this machine have other names."""
    visit = visiting(entered=False)
    cookie = visit.client.get(f"/login?token={visit.session.token}", follow_redirects=False).headers["set-cookie"]
    assert cookie.startswith("remegraph-inspector-8765=")
    assert {"HttpOnly", "SameSite=strict"} <= {part.strip() for part in cookie.split(";")}
    assert visit.session.token not in cookie


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:8766", f"{HOST}.evil.example", ""])
def test_only_our_own_name_is_answered(visiting: Visiting, host: str) -> None:
    """A page elsewhere may let its name point at this machine, and read what comes back as its own."""
    assert visiting().client.get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:8765", "http://127.0.0.1:1"])
def test_forms_of_other_sites_are_refused(visiting: Visiting, origin: str) -> None:
    """Before the token is even looked at."""
    visit = visiting(write=True)
    answer = visit.client.post("/look", data={"csrf": visit.session.csrf}, headers={"origin": origin})
    assert answer.status_code == 403


def test_every_form_needs_our_token(visiting: Visiting) -> None:
    """A page elsewhere can send a form here with our cookie, where a browser lets it; it cannot know the token."""
    visit = visiting(write=True)
    for path in _FORMS:
        for sent in ({}, {"csrf": ""}, {"csrf": "guess"}):
            assert visit.client.post(path, data=sent).status_code == 403, path


def test_who_may_only_look_decides_nothing(visiting: Visiting, kit: MemoryKit, scope: Scope) -> None:
    """Read-only is the default, whatever a browser sends."""
    visit = visiting()
    before = list(kit.governance.audit(scope=scope))
    (conflict, *_) = [*kit.conflicts.list(scope=scope), *kit.conflicts.list(scope=scope, state="resolved")]
    for path in _DEEDS:
        answer = visit.send(path, id=conflict.conflict_id, decision="dismiss")
        assert (answer.status_code, "--write" in answer.text) == (403, True), path
    assert list(kit.governance.audit(scope=scope)) == before
    assert all('<form class="acts"' not in visit.page(path) for path in ("/conflicts", "/quarantine", "/proposals"))


@pytest.mark.parametrize("path", ["/", "/login", "/nothing-here", "/static/inspector.js", "/graph", "/memory?id=none"])
def test_no_answer_lets_foreign_code_run_or_is_kept(visiting: Visiting, path: str) -> None:
    """Should a hostile text ever get out of its quotes, the browser still runs nothing that is not our file."""
    headers = visiting().client.get(path, follow_redirects=False).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("target", "where"),
    [("/audit?q=x", "/audit?q=x"), ("//evil.example", "/"), ("https://evil.example", "/"), ("/\\evil.example", "/")],
)
def test_a_form_leads_nowhere_else(visiting: Visiting, target: str, where: str) -> None:
    """An open redirect lends our name to others."""
    assert visiting().send("/look", theme="dark", next=target).headers["location"] == where


def test_looks_are_kept_where_they_are_known_and_nothing_else_is(visiting: Visiting) -> None:
    """A cookie takes no values of the visitor's own making."""
    visit = visiting()
    visit.send("/look", theme="dark")
    visit.send("/look", language="zh")
    page = visit.page("/")
    assert '<html lang="zh-CN" data-theme="dark">' in page
    assert "set-cookie" not in visit.send("/look", theme="pink", language="xx; Path=/").headers


def test_a_form_that_is_too_long_is_refused(visiting: Visiting) -> None:
    """Nobody fills our memory through the door."""
    visit: Visit = visiting(write=True)
    assert visit.send("/conflicts/resolve", note="x" * 30_000).status_code == 413


def test_who_is_faster_than_the_server_is_not_turned_away() -> None:
    """The address is printed, and clicked, before the first page can be served."""
    with listen(0) as door, socket.create_connection(door.getsockname(), timeout=10) as early:
        assert early.getpeername() == door.getsockname()


def test_it_listens_on_this_machine_alone_and_says_when_the_port_is_taken() -> None:
    """The address of the network card would show the memory to the house."""
    with listen(0) as door:
        address, port = door.getsockname()
        assert address == "127.0.0.1"
        with pytest.raises(SetupError, match=f"Port {port} cannot be used"):
            listen(port)
