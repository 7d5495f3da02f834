"""Names are compared, never parsed: whatever tenants, users, agents and projects are called, none reads another's."""

from __future__ import annotations

import itertools
import random
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import pytest
from langchain_core.messages import HumanMessage
from pydantic import ValidationError
from typer.testing import CliRunner

from conftest import Figure
from remegraph import MemoryKit, RecallPolicy, Scope, Settings
from remegraph.adapters import MemoryRetriever, MemoryStore, MessageHistory, memory_tools, recall_node
from remegraph.adapters.services import MemoryService, RetrievalOptions, RetrievalType
from remegraph.cli.app import app
from remegraph.errors import NotFoundError, SetupError
from remegraph.kit import OpenOptions
from remegraph.models import Depth, Hit, Memory
from remegraph.testing import FrozenClock, InMemoryVectorIndex, SequentialIds
from tests.talk import NOON, SHARED_KEY, said

pytestmark = pytest.mark.requirement("X5")

Field = Literal["tenant", "user", "agent", "project"]

_LONG = "".join(random.Random(7).choices("0123456789abcdef", k=10_000))  # nothing that compresses well

NAMES = (
    # one begins with the other, or is a pattern for it
    "foo", "foobar", "foo%", "foo_", "fo", "a_b", "aXb", "%", "_", "*", "?", "foo*",
    # paths
    ".", "..", "/", "foo/bar", "\\", "foo\\", "~",
    # quotes, SQL, JSON
    "'", '"', "`", "''", "foo'; DROP TABLE messages; --", "' OR '1'='1", '["foo", null]', "{}", "$1", ":name",
    # operators of full text search, and names of our own records
    "NEAR(a b)", "OR", "AND NOT", "foo OR bar", "^foo", "p1message", "p17message", "1:memory", "1:memory:id-0001",
    # letters that look alike, or are written in two ways
    unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é"), "Foo", "FOO", "ﬁ", "fi", "foo\u200b",
    "\u202efoo", "İ", "i", "ß", "ss",
    # no value, in many languages
    "None", "null", "0", "-1", " ", "foo ", "\n", "foo\nbar", "\t",
    # other scripts, and length
    "用户", "用戶", "👩‍🚀", "👩", _LONG, _LONG + "0", "用户" * 150,
)  # fmt: skip
"""Hostile names, 66 of them."""

FEW = ("foo", "foobar", "foo%", "'", "NEAR(a b)")

_CANARY = re.compile(r"canary\d+")


@dataclass(frozen=True)
class Home:
    """A kit with one scope for each name in each field; each has said and learned a word of its own."""

    kit: MemoryKit
    canaries: dict[Scope, str]
    memories: dict[Scope, Memory]

    def of(self, field: Field) -> dict[Scope, str]:
        """The scopes whose names are hostile in one field, with their words."""
        return {scope: word for scope, word in self.canaries.items() if scope in scopes_of(field, NAMES)}


def scopes_of(field: Field, names: Sequence[str]) -> list[Scope]:
    """A scope for each name in this field; the other fields are the same for all."""
    same = {"tenant": "t", "user": "u", "agent": "a", "project": "p"}
    inner = {
        "tenant": ("user",),
        "user": ("tenant",),
        "agent": ("tenant", "user"),
        "project": ("tenant", "user", "agent"),
    }
    return [Scope(**{each: same[each] for each in inner[field]}, **{field: name}) for name in names]


def open_home(
    home: Path, names: Sequence[str], *, chroma: bool, ledger_url: str | None = None, chroma_url: str | None = None
) -> Home:
    """Fill a home; its index is asked for every search."""
    kit = MemoryKit.open(
        settings=Settings(
            home=home,
            ledger_url=ledger_url,
            journal_key=SHARED_KEY,
            chroma_url=chroma_url,
            recall=RecallPolicy(exact_limit=0, index_timeout=60),
        ),
        model=None,
        embedder=None,
        index=None if chroma else InMemoryVectorIndex(),
        clock=FrozenClock(NOON),
        options=OpenOptions(new_id=SequentialIds()),
    )
    scopes = [scope for field in get_args(Field) for scope in scopes_of(field, names)]
    canaries = {scope: f"canary{number}" for number, scope in enumerate(scopes, start=1)}
    assert len(canaries) == 4 * len(names)
    memories: dict[Scope, Memory] = {}
    for scope, word in canaries.items():
        kit.add_messages([said(f"I like {word} watermelon.", name="", message_id="same")], scope=scope)
        kit.summarize(scope=scope, close=True)
        (memories[scope],) = kit.memories(scope=scope)
    kit.remember_self("I know canary0 watermelon.", scope=Scope(tenant="t", user="u", agent="a"))
    return Home(kit, canaries, memories)


def seen_by(scope: Scope, word: str) -> set[str]:
    """The words that a scope may find: its own, and what agent `a` of tenant `t` told all its users."""
    return {word, "canary0"} if (scope.tenant, scope.agent) == ("t", "a") else {word}


def words_in(hits: Sequence[Hit], *texts: str) -> set[str]:
    """All canaries in what was found."""
    return {word for text in (*(hit.text for hit in hits), *texts) for word in _CANARY.findall(text)}


def recall_all(home: Home, field: Field, queries: int) -> int:
    """Ask in every scope of a field, with words and names of others; return how many recalls were made."""
    depths: Iterator[Depth] = itertools.cycle(get_args(Depth))
    draw = random.Random(field)
    words = list(home.canaries.values())
    asked = 0
    for scope, word in home.of(field).items():
        seen = seen_by(scope, word)
        for number in range(queries):
            query = f"{draw.choice(NAMES)} {draw.choice(words)} {draw.choice(words)} watermelon" if number else word
            found = home.kit.recall(query, scope=scope, k=100, depth=(depth := next(depths)))
            hits = (*found.memories, *found.blocks, *found.messages)
            told = words_in(hits, found.context, *(memory.content for memory in found.self_memories))
            assert word in told
            assert told <= seen, (scope, query, depth)
            assert all(hit.partition.tenant == scope.tenant for hit in hits)
            asked += 1
    return asked


def read_all(home: Home, field: Field) -> None:
    """Read in every scope of a field by everything but a query, foreign ids included."""
    kit, draw = home.kit, random.Random(field)
    scopes = list(home.canaries)
    for scope, word in home.of(field).items():
        seen, own = seen_by(scope, word), home.memories[scope]
        lists = (
            [message.text for message in kit.sources.retrieve_message(limit=1000, scope=scope)],
            [memory.content for memory in kit.memories(scope=scope)],
            [entry.summary for entry in kit.sources.blocks(scope=scope)],
            [message.text for message in kit.sources.time_match_memories((NOON, NOON), scope=scope)],
        )
        assert [set(_CANARY.findall(" ".join(texts))) for texts in lists] == [seen] * len(lists)
        assert {shelf.partition.tenant for shelf in kit.topics.list(scope=scope)} == {scope.tenant}
        assert own.topic in {shelf.topic.evolve() for shelf in kit.topics.list(scope=scope)}
        assert kit.work.list(scope=scope, states=["pending", "failed", "review"]) == ()
        assert [message.text for message in kit.sources.retrieve_block(own.block_ids[0], scope=scope)] == [
            f"I like {word} watermelon."
        ]
        assert kit.trace(own.memory_id, scope=scope).memory == own
        for other in draw.sample(scopes, min(10, len(scopes))):
            if other != scope:
                assert kit.sources.retrieve_message(f"{home.canaries[other]} ", scope=scope) == ()
                with pytest.raises(NotFoundError):
                    kit.trace(home.memories[other].memory_id, scope=scope)


@pytest.mark.parametrize(
    ("ledger_url", "names"),
    [
        ("sqlite", FEW),
        pytest.param("postgresql", [name for name in NAMES if len(name) < 1000][::3], marks=pytest.mark.slow),
    ],
    indirect=["ledger_url"],
    ids=["sqlite", "postgresql"],
)
def test_no_name_reads_what_another_one_said(
    ledger_url: str, names: Sequence[str], tmp_path: Path, figure: Figure
) -> None:
    """A user who is called `%` must not read everybody, nor `foo` what `foobar` said."""
    home = open_home(tmp_path / "home", names, chroma=False, ledger_url=ledger_url)
    with home.kit:
        for field in get_args(Field):
            assert recall_all(home, field, 2) == 2 * len(names)
            read_all(home, field)
    figure(
        f"bar 18: recalls on {ledger_url.partition(':')[0]}",
        f"{8 * len(names)} with {4 * len(names)} scopes, 0 foreign",
    )


@pytest.fixture(scope="module")
def full_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with every name in every field, and the real index."""
    home = open_home(tmp_path_factory.mktemp("hostile") / "home", NAMES, chroma=True)
    yield home
    home.kit.close()


@pytest.mark.slow
@pytest.mark.parametrize("field", get_args(Field))
def test_no_name_of_all_reads_what_another_one_said(full_home: Home, field: Field, figure: Figure) -> None:
    """5,280 recalls with 264 scopes in one home: not one foreign record."""
    assert recall_all(full_home, field, 20) == 20 * len(NAMES) == 1320
    read_all(full_home, field)
    figure("bar 18: recalls", f"1320 with hostile names of the {field}, seed {field!r}, 0 foreign")


def surfaces(home: Home, scope: Scope, query: str) -> Iterator[tuple[str, str]]:
    """Ask by each surface that a host may use; give its name and all that it tells."""
    kit = home.kit
    found = MemoryRetriever(kit, scope=scope, mode="messages").invoke(query)
    yield "retriever", " ".join(each.page_content for each in found)
    tools = {tool.name: tool for tool in memory_tools(kit, scope, depth="messages")}
    yield "search_memory", str(tools["search_memory"].invoke({"query": query}))
    yield "node", str(recall_node(kit, scope).invoke({"messages": [HumanMessage(query)]})["memory"])
    service = MemoryService(kit, scope)
    yield (
        "service",
        " ".join(str(each.content) for each in service.retrieve(query, RetrievalType.SEMANTIC, RetrievalOptions())),
    )
    yield "history", " ".join(each.text for each in MessageHistory(kit, scope).messages)
    store = MemoryStore(kit, scope=scope)
    yield "store", str(store.search((), query=query, limit=1000)) + str(store.list_namespaces(limit=1000))
    yield "item", str(store.get(("notes",), "same"))
    yield "inject", kit.inject(query, scope=scope, always=True, depth="messages").context
    yield "rules", str(kit.rules.list(scope=scope))
    yield "waiting", str(kit.knowledge.waiting(scope=scope))
    yield "journal", str(list(kit.governance.audit(scope=scope)))


def ask_all(home: Home, field: Field) -> int:
    """Ask by all surfaces in every scope of a field; return how many answers there were."""
    draw, words, asked = random.Random(field), list(home.canaries.values()), 0
    for scope, word in home.of(field).items():
        MemoryStore(home.kit, scope=scope).put(("notes",), "same", {"text": f"{word} watermelon"})
    for scope, word in home.of(field).items():
        told = dict(surfaces(home, scope, f"{draw.choice(words)} {draw.choice(words)} {word} watermelon"))
        for surface, text in told.items():
            assert set(_CANARY.findall(text)) <= seen_by(scope, word), (scope, surface)
        shown = ("retriever", "search_memory", "node", "service", "history", "store", "item")
        assert all(word in told[surface] for surface in shown)
        asked += len(told)
    return asked


@pytest.mark.slow
@pytest.mark.parametrize("field", get_args(Field))
def test_no_surface_shows_a_name_what_another_one_said(full_home: Home, field: Field, figure: Figure) -> None:
    """Retriever, tools, node, service, history, store, injection, rules, quarantine, journal: no foreign word."""
    asked = ask_all(full_home, field)
    figure("bar 18: surfaces", f"{asked} answers to hostile names of the {field}, seed {field!r}, 0 foreign words")


@pytest.mark.slow
@pytest.mark.requirement("X9")
def test_no_surface_on_servers_shows_a_name_what_another_one_said(
    postgres_url: str, chroma_url: str, tmp_path: Path, figure: Figure
) -> None:
    """What keeps users apart is in the rows, whatever database they are in; another one compares names in its own way."""
    names = [name for name in NAMES if len(name) < 1000][::8]
    home = open_home(tmp_path, names, chroma=True, ledger_url=postgres_url, chroma_url=chroma_url)
    with home.kit:
        asked = sum(ask_all(home, field) for field in get_args(Field))
    figure("bar 18: surfaces on servers", f"{asked} answers to {len(names)} hostile names, 0 foreign words")


@pytest.mark.slow
def test_the_command_line_shows_no_user_what_another_one_said(full_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name on a command line is a name, and no pattern, option or path."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    folder = str(full_home.kit.settings.home)
    for scope, word in full_home.of("user").items():
        if len(scope.user) > 1000 or scope.user not in NAMES[::3]:
            continue
        who = [f"--user={scope.user}", f"--home={folder}", "--json", f"--tenant={scope.tenant}"]
        for command in (
            ["recall", "watermelon", "--depth", "messages"],
            ["memory", "list"],
            ["memory", "messages"],
            ["memory", "blocks"],
        ):
            result = CliRunner().invoke(app, [*command, *who])
            assert result.exit_code == 0, (scope, result.output)
            assert set(_CANARY.findall(result.output)) == {word}, (scope, command)


def test_the_names_are_many_and_different() -> None:
    """Two names that are one would prove nothing."""
    assert len(set(NAMES)) == len(NAMES) == 66


def test_a_name_too_long_for_postgresql_is_refused_with_the_cure(postgres_url: str, tmp_path: Path) -> None:
    """Nothing is cut off, which would make one user of two; the error does not blame the server."""
    with open_home(tmp_path, (), chroma=False, ledger_url=postgres_url).kit as kit:
        with pytest.raises(SetupError, match="Use shorter names"):
            kit.add_messages([said("hello")], scope=Scope(user=_LONG))
        assert kit.admin.stats()["messages"] == 1  # what the home began with


@pytest.mark.parametrize("name", ["", "\x00", "foo\x00", "\ud800"])
def test_names_that_no_database_can_hold_are_refused(name: str) -> None:
    """Rather an error at the door than two users who become one in the database."""
    with pytest.raises(ValidationError):
        Scope(user=name)
    with pytest.raises(ValidationError):
        Scope(tenant=name, user="ann")
