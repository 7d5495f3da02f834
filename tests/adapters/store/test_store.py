"""`MemoryStore`: LangGraph's store over the ledger."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from remegraph import InputError, MemoryKit, Scope, ScopeError, Settings
from remegraph.adapters import MemoryStore
from remegraph.adapters import store as store_module
from remegraph.adapters.store import encode_label
from remegraph.errors import ModelUnavailableError
from remegraph.kit import OpenOptions
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.ledger.schema import item_namespaces, item_texts, items
from remegraph.settings import RecallPolicy
from remegraph.testing import FrozenClock, InMemoryVectorIndex, ScriptedChatModel

ANN = Scope(user="ann")
BEN = Scope(user="ben")
MINUTE = timedelta(minutes=1)
TASTES = ("tastes",)


@pytest.fixture
def store(kit: MemoryKit, ann: Scope) -> MemoryStore:
    """Ann's store."""
    return MemoryStore(kit, scope=ann)


def keys(found: Sequence[SearchItem]) -> list[str]:
    return [item.key for item in found]


# --------------------------------------------------------------------------------- ways of its own


def test_an_item_is_found_by_its_current_value_only(store: MemoryStore) -> None:
    """Who corrected a memory must not be told the old one again by a search."""
    store.put(TASTES, "drink", {"text": "green tea"}, index=["text"])
    store.put(TASTES, "drink", {"text": "rye bread"}, index=["text"])
    (hit,) = store.search(TASTES, query="green tea")
    assert hit.score is not None
    assert hit.score < 0.5
    store.put(TASTES, "drink", {"text": "rye bread"}, index=False)
    (hit,) = store.search(TASTES, query="green tea")
    assert hit.score is None


def test_items_of_one_batch_may_have_the_same_text(store: MemoryStore) -> None:
    """Two users say the same; LangGraph's store in memory refuses them."""
    store.batch([PutOp(TASTES, name, {"text": "tea"}) for name in ("one", "two")])
    assert [(hit.key, round(hit.score or 0, 3)) for hit in store.search(TASTES, query='{"text": "tea"}')] == [
        ("one", 1.0),
        ("two", 1.0),
    ]


def test_a_namespace_is_there_while_it_holds_items(store: MemoryStore) -> None:
    """Reading makes nothing, and a deleted user leaves no trace of her name."""
    assert store.get(("read", "only"), "key") is None
    store.put(TASTES, "drink", {"text": "tea"})
    assert store.list_namespaces() == [TASTES]
    store.delete(TASTES, "drink")
    assert store.list_namespaces() == []


def test_values_are_json_and_copied(store: MemoryStore) -> None:
    """What a caller does to her own dict afterwards must not reach the store, nor another reader."""
    value: dict[str, Any] = {"tags": ("a", "b"), "inner": {"n": 1}}
    store.put(TASTES, "drink", value)
    value["inner"]["n"] = 2
    (found,) = store.search(TASTES)
    assert found.value == {"tags": ["a", "b"], "inner": {"n": 1}}
    found.value["inner"]["n"] = 3
    again = store.get(TASTES, "drink")
    assert again is not None
    assert again.value["inner"] == {"n": 1}


@pytest.mark.parametrize("bad", [{"x": object()}, {"x": {1, 2}}, {"x": float("nan")}, {"x": b"bytes"}])
def test_what_is_no_json_is_refused_with_its_whole_batch(store: MemoryStore, bad: dict[str, Any]) -> None:
    """Half a batch would be worse than none."""
    with pytest.raises(InputError, match="no JSON"):
        store.batch([PutOp(TASTES, "good", {"x": 1}), PutOp(TASTES, "bad", bad)])
    assert store.search(()) == []


def test_any_text_can_be_stored_and_found(store: MemoryStore) -> None:
    """NUL, lone surrogates, long keys, all scripts: they come back to the letter."""
    odd = {"\x00": "\ud800 茶 \U0001f375", "": None, "n": 2**70}
    for key in ("", "\x00", "\ud800", "茶" * 5000, "a\nb"):
        store.put(("小林", "\ud800", "a\nb"), key, odd)
        found = store.get(("小林", "\ud800", "a\nb"), key)
        assert found is not None
        assert (found.key, found.value, found.namespace) == (key, odd, ("小林", "\ud800", "a\nb"))
    assert len(store.search((), query="茶")) == 5


def test_a_key_is_text(store: MemoryStore) -> None:
    """`put` says so already; a batch does too."""
    store.batch([PutOp(TASTES, 7, {})])  # type: ignore[arg-type]
    assert keys(store.search(TASTES)) == ["7"]


def test_items_know_when_they_were_first_and_last_written(store: MemoryStore, clock: FrozenClock) -> None:
    """The kit's clock tells the times, and an update is no new item."""
    first = clock()
    store.put(TASTES, "drink", {"text": "tea"})
    clock.move(MINUTE)
    store.put(TASTES, "drink", {"text": "coffee"})
    found = store.get(TASTES, "drink")
    assert found is not None
    assert (found.created_at, found.updated_at) == (first, first + MINUTE)


def test_an_order_does_not_hold_for_what_is_no_number(store: MemoryStore) -> None:
    """One item without the field must not break every search of its namespace."""
    values: dict[str, dict[str, Any]] = {
        "none": {},
        "text": {"n": "many"},
        "list": {"n": [1]},
        "two": {"n": 2},
        "said": {"n": "3"},
    }
    for key, value in values.items():
        store.put(TASTES, key, value)
    assert keys(store.search(TASTES, filter={"n": {"$gt": 1}})) == ["two", "said"]
    assert keys(store.search(TASTES, filter={"n": {"$lte": 2}})) == ["two"]


IMPOSSIBLE: list[Op] = [
    SearchOp(TASTES, filter={"n": {"$in": [1]}}),
    SearchOp(TASTES, filter={"inner": {"n": [{"$regex": "x"}]}}),
    SearchOp(TASTES, limit=-1),
    SearchOp(TASTES, offset=-1),
    ListNamespacesOp(limit=-1),
    ListNamespacesOp(max_depth=-1),
    PutOp(TASTES, "drink", {}, ttl=-1),
    PutOp(TASTES, "drink", {}, ttl=float("nan")),
    PutOp(TASTES, "drink", {}, ttl=float("inf")),
    cast("Op", "an operation"),
]


@pytest.mark.parametrize("op", IMPOSSIBLE)
def test_what_cannot_be_done_is_refused_before_anything_is_written(store: MemoryStore, op: Op) -> None:
    """A mistake is told at the first call, also by an empty store."""
    with pytest.raises(InputError):
        store.batch([PutOp(TASTES, "food", {}), op])
    assert store.search(()) == []


def test_the_whole_value_is_indexed_where_put_says_so(store: MemoryStore, kit: MemoryKit, ann: Scope) -> None:
    """`$` means the same in both places where paths are given."""
    by_title = MemoryStore(kit, scope=ann, index=["title"])
    by_title.put(TASTES, "drink", {"text": "green tea"}, index=["$"])
    (hit,) = store.search(TASTES, query='{"text": "green tea"}')
    assert hit.score == pytest.approx(1)


# -------------------------------------------------------------------------------------- namespaces


@pytest.mark.requirement("C5", "X5")
def test_namespaces_are_matched_label_by_label(store: MemoryStore) -> None:
    """One user's id may begin like another's, or hold what SQL takes for a wildcard."""
    names = [("foo",), ("foobar",), ("foo", "bar"), ("f_o",), ("f%",), ('foo"',), ("foo\n",), ("FOO",), ('"foo"\n',)]
    for name in names:
        store.put(name, "key", {"name": name[-1]})
    assert [hit.namespace for hit in store.search(("foo",))] == [("foo",), ("foo", "bar")]
    for name in names[1:]:
        assert [hit.namespace for hit in store.search(name)] == [name]
        assert [hit.namespace for hit in store.search(name, query="key")] == [name]
    assert store.list_namespaces(prefix=("*", "bar")) == [("foo", "bar")]
    assert store.list_namespaces(suffix=("bar",)) == [("foo", "bar")]
    assert store.list_namespaces(prefix=("f%",)) == [("f%",)]


@pytest.mark.parametrize("namespace", [("a.b",), ("",), ("a", "\x00"), (7,)])
def test_labels_that_langgraph_refuses_are_refused_in_batches_too(store: MemoryStore, namespace: Any) -> None:
    """A batch goes around the checks of `put` and `get`; the store has to make them."""
    condition = MatchCondition("prefix", namespace)
    ops: list[Op] = [
        GetOp(namespace, "key"),
        PutOp(namespace, "key", {}),
        SearchOp(namespace),
        ListNamespacesOp((condition,)),
    ]
    for op in ops:
        with pytest.raises(InvalidNamespaceError):
            store.batch([op])


@pytest.mark.requirement("C5")
@pytest.mark.parametrize("user", ["ann@example.org", "a.b.c", "小林", "100%", "*", "langgraph", "", "\ud800", "a/b\\c"])
def test_any_user_id_names_a_namespace(store: MemoryStore, user: str) -> None:
    """Most user ids are e-mail addresses, and LangGraph refuses their period."""
    mine = ("users", encode_label(user))
    store.put(mine, "drink", {"text": "tea"})
    store.put((encode_label(user),), "drink", {"text": "tea"})
    store.put(("users", encode_label(user + "x")), "drink", {"text": "coffee"})
    assert [hit.namespace for hit in store.search(mine)] == [mine]
    assert store.list_namespaces(prefix=mine) == [mine]


# ------------------------------------------------------------------------------------------ scopes


@pytest.mark.requirement("X5")
@pytest.mark.parametrize(
    "changes",
    [
        {"user": "ann "},
        {"user": "Ann"},
        {"tenant": "ann"},
        {"agent": "ann"},
        {"project": "tastes"},
        {"user": "%"},
        {"user": "a_n"},
        {"user": "' OR 1=1 --"},
        {"user": 'ann"]'},
        {"user": "*"},
    ],
    ids=repr,
)
def test_two_scopes_of_one_home_never_see_each_others_items(
    kit: MemoryKit, ann: Scope, changes: dict[str, str]
) -> None:
    """A name chosen with care must open nobody else's store: to read, to search, to list or to delete."""
    mine, theirs = MemoryStore(kit, scope=ann), MemoryStore(kit, scope=ann.evolve(**changes))
    mine.put(TASTES, "drink", {"text": "green tea"}, ttl=1)
    assert theirs.get(TASTES, "drink") is None
    assert theirs.search(()) == []
    assert theirs.search((), query="green tea") == []
    assert theirs.search(TASTES, filter={"text": "green tea"}) == []
    assert theirs.list_namespaces() == []
    theirs.put(TASTES, "drink", {"text": "coffee"})
    theirs.delete(TASTES, "drink")
    theirs.sweep_ttl()
    assert [hit.value for hit in mine.search((), query="green tea")] == [{"text": "green tea"}]


def test_a_store_without_a_scope_is_refused(kit: MemoryKit) -> None:
    """There is no store of nobody."""
    with pytest.raises(ScopeError):
        MemoryStore(kit, scope=None)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------ time to live


@pytest.mark.requirement("C5")
def test_expired_items_are_never_returned(store: MemoryStore, clock: FrozenClock) -> None:
    """A one-time code must be gone when its time is over, whoever asks and however."""
    store.put(("codes",), "door", {"text": "1234"}, ttl=5)
    store.put(TASTES, "drink", {"text": "tea"})
    clock.move(5 * MINUTE)
    assert store.get(("codes",), "door") is None
    assert keys(store.search(())) == ["drink"]
    assert keys(store.search((), query="1234")) == ["drink"]
    assert keys(store.search((), filter={"text": "1234"})) == []
    assert store.list_namespaces() == [TASTES]


@pytest.mark.requirement("C5")
@pytest.mark.parametrize("read", ["get", "search", "query"])
def test_reading_an_item_lets_it_live_on(store: MemoryStore, clock: FrozenClock, read: str) -> None:
    """What is used stays; what nobody asks for goes."""

    def look(*, refresh_ttl: bool | None) -> list[SearchItem]:
        if read == "get":
            store.get(TASTES, "drink", refresh_ttl=refresh_ttl)
            return []
        return store.search(TASTES, query="tea" if read == "query" else None, refresh_ttl=refresh_ttl)

    store.put(TASTES, "drink", {"text": "tea"}, ttl=5)
    clock.move(4 * MINUTE)
    look(refresh_ttl=None)
    clock.move(4 * MINUTE)
    look(refresh_ttl=False)
    clock.move(MINUTE - timedelta(microseconds=1))
    assert store.get(TASTES, "drink", refresh_ttl=False) is not None
    clock.move(timedelta(microseconds=1))
    assert store.get(TASTES, "drink") is None


def test_the_time_to_live_can_be_configured(kit: MemoryKit, ann: Scope, clock: FrozenClock) -> None:
    """Reads need not lengthen it, and `put` may set it aside."""
    config = TTLConfig(default_ttl=2, refresh_on_read=False)
    store = MemoryStore(kit, scope=ann, ttl=config)
    store.put(TASTES, "drink", {"text": "tea"})
    store.put(TASTES, "food", {"text": "soup"}, ttl=None)
    clock.move(MINUTE)
    assert len(store.search(TASTES)) == 2
    clock.move(MINUTE)
    assert keys(store.search(TASTES)) == ["food"]


def test_writing_an_item_begins_its_life_anew(store: MemoryStore, clock: FrozenClock) -> None:
    """An item that expired and is written again is a new one; one that lives gets its new time."""
    store.put(TASTES, "drink", {"text": "tea"}, ttl=1)
    store.put(TASTES, "food", {"text": "soup"}, ttl=1)
    store.put(TASTES, "drink", {"text": "tea"})
    clock.move(MINUTE)
    store.put(TASTES, "food", {"text": "soup"}, ttl=0.5)
    assert [(hit.key, hit.created_at) for hit in store.search(TASTES)] == [
        ("drink", clock() - MINUTE),
        ("food", clock()),
    ]


@pytest.mark.requirement("C5")
@pytest.mark.parametrize("by", ["sweep", "asweep", "write"])
async def test_what_expired_is_deleted(kit: MemoryKit, ann: Scope, clock: FrozenClock, by: str) -> None:
    """Gone means gone from the disk too, vectors and names included: by the next write, or when asked to."""
    store = MemoryStore(kit, scope=ann)
    store.put(("codes", "ann"), "door", {"text": "1234"}, ttl=1)
    clock.move(MINUTE)
    if by == "write":
        store.put(TASTES, "drink", {"text": "tea"}, index=False)
        store.delete(TASTES, "drink")
    else:
        assert await store.asweep_ttl() == 1 if by == "asweep" else store.sweep_ttl() == 1
    counts = kit.context.parts().archive.counts([ann.partition()])
    tables = (items.name, item_texts.name, item_namespaces.name, "vectors", "dirty")
    assert {name: counts[name] for name in tables} == dict.fromkeys(tables, 0)
    assert kit.admin.verify().differences == ()


# ------------------------------------------------------------------------------------------ search


@pytest.mark.requirement("C5")
@pytest.mark.slow
def test_items_are_found_in_chroma_above_a_limit_as_they_are_below_it(tmp_path: Path) -> None:
    """A namespace that grows must not change what is found, nor how well."""
    words = ("green tea", "black tea", "coffee", "soup", "green soup", "bread", "rice", "green rice")
    found: list[list[tuple[str, float | None]]] = []
    for limit in (5_000, 0):
        settings = Settings(home=tmp_path, recall=RecallPolicy(exact_limit=limit, index_timeout=60))
        with MemoryKit.open(settings=settings, model=None, embedder=None) as kit:
            store, other = MemoryStore(kit, scope=ANN, index=["text"]), MemoryStore(kit, scope=BEN, index=["text"])
            for number, word in enumerate(words):
                store.put(TASTES, str(number), {"text": word, "green": "green" in word})
                other.put(TASTES, str(number), {"text": word})
            store.put(TASTES, "0", {"text": "red wine", "green": False})
            store.put(TASTES, "later", {"text": "green tea"}, index=False)
            _, state = kit.context.parts().projection.nearest(
                [ANN.partition()], "item", HashedEmbedder().embed(["tea"])[0], 1
            )
            assert state == ("chroma" if limit == 0 else "exact")
            hits = store.search(TASTES, query="green tea", filter={"green": {"$ne": None}}, limit=4)
            hits += store.search((), query="green tea", limit=20)
            found.append([(hit.key, hit.score and round(hit.score, 5)) for hit in hits])
            assert kit.admin.verify().differences == ()
    assert found[0] == found[1]
    assert [key for key, _ in found[0][:2]] == ["1", "4"]
    assert found[0][-1] == ("later", None)


@pytest.mark.requirement("C5")
def test_an_item_is_scored_by_the_best_of_its_texts(store: MemoryStore) -> None:
    """A long note about many things is found by each of them, and returned once."""
    store.put(TASTES, "many", {"notes": ["soup", "green tea", "bread"]}, index=["notes[*]"])
    store.put(TASTES, "one", {"notes": ["green tea leaves"]}, index=["notes[*]"])
    hits = store.search(TASTES, query="green tea")
    assert keys(hits) == ["many", "one"]
    assert hits[0].score == pytest.approx(1)


def test_a_search_looks_on_where_many_texts_belong_to_few_items(store: MemoryStore) -> None:
    """Pages stay full, whatever the number of texts of each item."""
    notes = [f"green tea {number}" for number in range(250)]
    store.put(TASTES, "many", {"notes": notes}, index=["notes[*]"])
    store.put(TASTES, "none", {"notes": ["bread"]}, index=False)
    store.put(TASTES, "far", {"notes": ["bread"]}, index=["notes[*]"])
    assert keys(store.search(TASTES, query="green tea 1", limit=3)) == ["many", "far", "none"]
    assert keys(store.search(TASTES, query="green tea 1", limit=1)) == ["many"]
    assert keys(store.search(TASTES, query="green tea 1", limit=1, offset=1)) == ["far"]


class Moody:
    """Hashed n-grams, when in the mood."""

    name = "moody"
    dimension = 64
    semantic = False
    down = False

    def embed(self, texts: Sequence[str]) -> Any:
        if self.down:
            raise ModelUnavailableError("The embedder does not answer.")
        return HashedEmbedder(self.dimension).embed(texts)


def test_items_are_kept_and_listed_while_the_embedder_is_down(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An agent's run must not end because a provider has a bad day; the failure is logged, and made good later."""
    moody, settings = Moody(), Settings(home=tmp_path, recall=RecallPolicy(index_timeout=60))
    with MemoryKit.open(settings=settings, model=None, embedder=moody, index=InMemoryVectorIndex()) as kit:
        store = MemoryStore(kit, scope=ANN)
        store.put(TASTES, "food", {"text": "soup"})
        moody.down = True
        store.put(TASTES, "drink", {"text": "tea"})
        with caplog.at_level(logging.WARNING):
            assert [(hit.key, hit.score) for hit in store.search(TASTES, query="tea")] == [
                ("food", None),
                ("drink", None),
            ]
        assert "does not answer" in caplog.text
        moody.down = False
        assert [(hit.key, hit.score is None) for hit in store.search(TASTES, query="tea")] == [
            ("food", False),
            ("drink", True),
        ]
        store.put(TASTES, "bread", {"text": "rye"}, index=False)
        assert keys(store.search(TASTES, query='{"text": "tea"}')) == ["drink", "food", "bread"]


@pytest.mark.requirement("C5")
@pytest.mark.slow
def test_items_survive_closing_and_a_change_of_the_embedder(tmp_path: Path) -> None:
    """The next process, and the next embedder, find what was stored."""
    with MemoryKit.open(tmp_path, model=None, embedder=None) as kit:
        MemoryStore(kit, scope=ANN).put(TASTES, "drink", {"text": "green tea"}, index=["text"])
    with MemoryKit.open(tmp_path, model=None, embedder=None) as kit:
        (hit,) = MemoryStore(kit, scope=ANN).search(TASTES, query="green tea")
        assert (hit.value, round(hit.score or 0, 3)) == ({"text": "green tea"}, 1.0)
    with MemoryKit.open(tmp_path, model=None, embedder=Moody(), options=OpenOptions(reindex=True)) as kit:
        store = MemoryStore(kit, scope=ANN)
        store.put(TASTES, "food", {"text": "soup"}, index=["text"])
        assert {hit.score for hit in store.search(TASTES, query="green tea")} == {None}
        kit.admin.reindex()
        assert keys(store.search(TASTES, query="soup")) == ["food", "drink"]
        assert kit.admin.rebuild() == 2
        assert kit.admin.verify().differences == ()


# ----------------------------------------------------------------------------------- async, threads


@pytest.mark.requirement("C5")
async def test_the_async_twins_keep_the_order_of_a_batch(store: MemoryStore) -> None:
    """Reads see what was there before the batch, results come in the order of operations, the last write counts."""
    put = [PutOp(TASTES, "drink", {"text": text}) for text in ("tea", "coffee")]
    results = await store.abatch([GetOp(TASTES, "drink"), *put, SearchOp(TASTES), ListNamespacesOp()])
    assert results == [None, None, None, [], []]
    found = await store.aget(TASTES, "drink")
    assert found is not None
    assert found.value == {"text": "coffee"}
    assert keys(await store.asearch(TASTES, query="coffee")) == ["drink"]
    assert await store.alist_namespaces() == [TASTES]
    await store.adelete(TASTES, "drink")
    assert await store.asearch(TASTES) == []


async def test_the_event_loop_never_waits_for_the_store(tmp_path: Path) -> None:
    """One slow embedder must not stop all users of a server."""
    going, may_go = threading.Event(), threading.Event()

    class Slow(Moody):
        def embed(self, texts: Sequence[str]) -> Any:
            going.set()
            assert may_go.wait(10)
            return super().embed(texts)

    with MemoryKit.open(tmp_path, model=None, embedder=Slow(), index=InMemoryVectorIndex()) as kit:
        store = MemoryStore(kit, scope=ANN)
        putting = asyncio.create_task(store.aput(TASTES, "drink", {"text": "tea"}))
        assert await asyncio.to_thread(going.wait, 10)
        may_go.set()  # the loop gets here only if it did not wait
        await putting
        assert keys(await store.asearch(TASTES)) == ["drink"]


def test_parallel_writers_lose_nothing(store: MemoryStore) -> None:
    """Agents share a store; each of their items must be there, and one of two for the same key."""

    def write(number: int) -> None:
        store.batch([PutOp(TASTES, str(number), {"n": number}, False), PutOp(("shared",), "key", {"n": number})])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(20)))
    assert sorted(keys(store.search(TASTES, limit=100)), key=int) == [str(number) for number in range(20)]
    assert len(store.search(("shared",))) == 1


# ------------------------------------------------------------------------------------------ agents


@tool
def note(text: str, runtime: ToolRuntime[Any, Any]) -> str:
    """Write something down."""
    assert runtime.store is not None
    runtime.store.put(("notes",), text, {"text": text})
    return "Noted."


@tool
async def look_up(query: str, runtime: ToolRuntime[Any, Any]) -> str:
    """Look up what was written down."""
    assert runtime.store is not None
    found = await runtime.store.asearch(("notes",), query=query)
    return json.dumps([item.value for item in found])


def calling(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": "1", "type": "tool_call"}])


@pytest.mark.requirement("C5")
async def test_an_agent_of_langchain_finds_in_one_run_what_another_wrote(tmp_path: Path) -> None:
    """`create_agent(store=...)`: told something in one process, it knows it in the next; another user does not."""

    async def run(scope: Scope, *steps: AIMessage) -> str:
        with MemoryKit.open(tmp_path, model=None, embedder=None) as kit:
            model = ScriptedChatModel(script={"": [*steps, AIMessage("Done.")]})
            agent = create_agent(model, [note, look_up], store=MemoryStore(kit, scope=scope))
            answer = await agent.ainvoke({"messages": [HumanMessage("Hello")]})
            assert answer["messages"][-1].text == "Done."
            return str(answer["messages"][-2].text)

    assert await run(ANN, calling("note", text="Ann likes green tea.")) == "Noted."
    assert await run(ANN, calling("look_up", query="tea")) == '[{"text": "Ann likes green tea."}]'
    assert await run(BEN, calling("look_up", query="tea")) == "[]"


def test_it_is_a_store() -> None:
    """Two methods are its own; all others are LangGraph's."""
    own = {name for name in vars(MemoryStore) if not name.startswith("_")}
    assert own == {"abatch", "asweep_ttl", "batch", "supports_ttl", "sweep_ttl"}
    assert issubclass(MemoryStore, BaseStore)
    assert store_module.__all__ == ["MemoryStore", "decode_label", "encode_label"]
