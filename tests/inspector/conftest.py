"""What the tests of the inspector share: a kit with the bundled conversation, and somebody who was let in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from remegraph import MemoryKit, Scope
from remegraph.kit import SaveOptions
from remegraph.servers.inspector import Session, inspector
from remegraph.testing import FrozenClock
from tests.talk import ANN, NOON, called, create, digest, open_kit, proposal, replied, returned, said

BOB = Scope(user="bob", agent="remy")
HOST = "127.0.0.1:8765"


@dataclass(frozen=True, slots=True)
class Visit:
    """An inspector and a browser of sorts before it."""

    client: Any
    session: Session

    def page(self, address: str) -> str:
        """The page of an address, which must be there."""
        answer = self.client.get(address)
        assert answer.status_code == 200, (address, answer.status_code)
        return str(answer.text)

    def send(self, address: str, **fields: str) -> Any:
        """Send a form as our pages do."""
        return self.client.post(address, data={"csrf": self.session.csrf, **fields}, follow_redirects=False)


Visiting = Callable[..., Visit]


@pytest.fixture(scope="session")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """A home in which Ann moved and changed her instrument, has two birthdays, and in which somebody else is, too."""
    with open_kit(tmp_path_factory.mktemp("inspected")) as kit:
        clock = kit.context.clock
        assert isinstance(clock, FrozenClock)
        kit.save("instrument", "Ann plays the cello.", scope=ANN, slot="ann:plays", value="cello")
        clock.move(timedelta(minutes=1))
        kit.save("instrument", "Ann took up the oboe.", scope=ANN, slot="ann:plays", value="oboe")
        for day in ("the first of May", "the second of May"):
            kit.save("birthday", f"Ann was born on {day}.", scope=ANN, slot="ann:birthday", value=day)
        kit.remember_self("I am Remy.", scope=ANN)
        kit.add_messages(
            [said("I live in Lisbon. I hate mushrooms.", name="Ann"), replied("Noted.", minutes=1)], scope=ANN
        )
        kit.summarize(scope=ANN, close=True)
        kit.add_messages(
            [
                said("I live in Porto now.", name="Ann", minutes=600),
                said("My favourite tea is sencha.", minutes=601),
                said("My favourite tea is jasmine.", minutes=602),
            ],
            scope=ANN,
        )
        kit.summarize(scope=ANN, close=True)
        kit.add_messages([said("My PIN is a secret of Bob.", name="Bob")], scope=BOB)
        kit.summarize(scope=BOB, close=True)
        yield kit


@pytest.fixture
def scope() -> Scope:
    """Ann's."""
    return ANN


@pytest.fixture
def visiting(kit: MemoryKit, scope: Scope) -> Iterator[Visiting]:
    """Make an inspector and, unless told otherwise, enter."""
    clients = []

    def visit(*, entered: bool = True, write: bool = False, whose: Scope = scope, of: MemoryKit = kit) -> Visit:
        session = Session()
        client = TestClient(
            inspector(of, whose, session=session, hosts=[HOST], write=write, clock=lambda: NOON + timedelta(days=2)),
            base_url=f"http://{HOST}",
        )
        clients.append(client)
        if entered:
            assert client.get(f"/login?token={session.token}").status_code == 200
        return Visit(client, session)

    yield visit
    for client in clients:
        client.close()


def links(page: str) -> set[str]:
    """The addresses on a page."""
    return {found.replace("&amp;", "&") for found in re.findall(r'href="(/[^"]*)"', page)}


# ------------------------------------------------------------------------------------------- hostile words

HOSTILE = (
    "<script>alert(1)</script> is what I love.",
    'I like "><img src=x onerror=alert(2)> very much.',
    "</p></mark></title><svg onload=alert(3)> is my favourite picture.",
    "My favourite link is javascript:alert(4) and {{ 7 * 7 }} {% raw %}.",
    "I love '\"`\u202egnp.exe &lt;b&gt; and ' onmouseover='alert(5).",
)
MALLORY = Scope(user='<img src=x onerror="alert(6)">', agent="<b>remy</b>", project='"><script>alert(7)</script>')


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """A home in which every name, message, memory, note and reason tries to be more than words."""
    steps = {
        "DigestAnswer": digest("personal:<script>alert(8)</script>", summary=HOSTILE[0]),
        "ProposalAnswer": proposal(*(create(text, at, text) for at, text in enumerate(HOSTILE[:2], start=3))),
    }
    with open_kit(tmp_path_factory.mktemp("hostile"), steps, reviser="rules") as kit:
        kit.add_messages(
            [
                said(HOSTILE[0], name=HOSTILE[1], message_id="<i>1</i>", task=HOSTILE[2]),
                called("<u>tool</u>", "c1", minutes=1, argument=HOSTILE[3]),
                returned("c1", " ".join(HOSTILE[:2]), minutes=2),
                replied(HOSTILE[1], minutes=3),
            ],
            scope=MALLORY,
        )
        kit.summarize(scope=MALLORY, close=True)
        saved = [
            kit.save(text, text, scope=MALLORY, tags=["<i>tag</i>"], options=SaveOptions(summary=text[:30]))
            for text in HOSTILE
        ]
        memory = saved[-1].memory
        assert memory is not None
        kit.sharing.propose(memory.memory_id, scope=MALLORY, reason=HOSTILE[2])
        yield kit
