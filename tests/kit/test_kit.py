"""The life of a kit: from messages to memories, with progress, cancel and resume, to the close."""

from __future__ import annotations

import gc
import inspect
import weakref
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel

from remegraph import (
    Budget,
    BudgetExceededError,
    CancelledError,
    ClosedError,
    MemoryKit,
    Scope,
    Settings,
    SummaryReport,
)
from remegraph.errors import MessageChangedError, ModelUnavailableError
from remegraph.kit import OpenOptions
from remegraph.kit.admin import Admin
from remegraph.models import Progress, Subject
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.talk import ANN, NOON, called, create, digest, model_of, open_kit, proposal, replied, returned, said

pytestmark = [pytest.mark.usefixtures("setup"), pytest.mark.requirement("X9")]

DAYS = [
    said("I love hiking in the hills."),
    said("I live in Lisbon by the river.", minutes=600),
    said("I hate mushrooms in my soup.", minutes=1200),
]
"""Three blocks: long silences lie between."""

LABELS = ("20250304_01", "20250304_02", "20250305_01")


def learning() -> dict[str, Any]:
    """A model that learns one thing."""
    return {
        "DigestAnswer": digest("personal:Ann"),
        "ProposalAnswer": proposal(create("Ann loves hiking.", 1, "I love hiking")),
        "VerdictAnswer": {"objections": []},
    }


@pytest.mark.requirement("R1", "R3", "R4", "X1")
@pytest.mark.parametrize("mode", ["extractive", "scripted"])
def test_a_message_becomes_a_memory_that_leads_back_to_its_words(tmp_path: Path, mode: str) -> None:
    """The whole promise in one run: what was said is found, and shown to the letter."""
    with open_kit(tmp_path, learning() if mode == "scripted" else None, reviser="rules") as kit:
        receipt = kit.add_messages([DAYS[0], replied("Which hills?", minutes=1)], scope=ANN)
        report = kit.summarize(scope=ANN, close=True)
        (hit,) = kit.recall("What does Ann love?", scope=ANN).memories
        trace = kit.trace(hit.record_id, scope=ANN)

        assert report.created == 1
        assert "hiking" in hit.text
        assert hit.block_ids == LABELS[:1]
        assert trace.missing == ()
        assert [quote.words.rstrip(".") for quote in trace.quotes] == [
            "I love hiking in the hills" if mode == "extractive" else "I love hiking"
        ]
        assert [message.text for message in trace.messages] == ["I love hiking in the hills.", "Which hills?"]
        assert tuple(message.message_id for message in trace.messages) == receipt.message_ids
        assert [version.version for version in trace.versions] == [1]
        assert [event.action for event in trace.events][:1] == ["create"]


UNTIMED: dict[str, Any] = {
    "openai": {"id": "m1", "role": "user", "content": "I live in Lisbon."},
    "ours": {"message_id": "m1", "role": "user", "content": "I live in Lisbon.", "extra": {"place": "Lisbon"}},
    "langchain": HumanMessage("I live in Lisbon.", id="m1"),
}


@pytest.mark.requirement("X3")
@pytest.mark.parametrize("form", UNTIMED)
def test_a_message_without_a_time_is_known_by_its_id_whatever_the_clock_says(tmp_path: Path, form: str) -> None:
    """A host that is not sure whether it was heard says it again, later; that must not be refused."""
    with open_kit(tmp_path) as kit:
        first = kit.add_messages([UNTIMED[form]], scope=ANN)
        moving(kit).move(timedelta(hours=1))
        again = kit.add_messages([UNTIMED[form], UNTIMED[form]], scope=ANN)
        assert (first.added, again.added, again.known) == (1, 0, 2)
        assert [message.time for message in kit.sources.retrieve_message(scope=ANN)] == [NOON]


@pytest.mark.requirement("X3")
def test_a_message_with_a_time_is_another_where_the_time_is(tmp_path: Path) -> None:
    """What is said of the time is content; only what nobody said is none."""
    told = {"id": "m1", "role": "user", "content": "I live in Lisbon."}
    with open_kit(tmp_path) as kit:
        kit.add_messages([told], scope=ANN)
        moving(kit).move(timedelta(hours=1))
        with pytest.raises(MessageChangedError):
            kit.add_messages([{**told, "time": kit.context.clock()}], scope=ANN)
        with pytest.raises(MessageChangedError):
            kit.add_messages([{**told, "content": "I live in Porto."}], scope=ANN)


def moving(kit: MemoryKit) -> FrozenClock:
    """The clock of a kit that `open_kit` opened."""
    assert isinstance(kit.context.clock, FrozenClock)
    return kit.context.clock


@pytest.mark.requirement("C9")
def test_without_a_model_every_memory_says_so(tmp_path: Path) -> None:
    """Rules are no mind; whoever reads a memory must know which wrote it."""
    with open_kit(tmp_path) as kit:
        kit.add_messages(DAYS, scope=ANN)
        report = kit.summarize(scope=ANN, close=True)

        assert report.usage.calls == ()
        assert {(memory.source, memory.extractor) for memory in kit.memories(scope=ANN)} == {("factual", "extractive")}


ODD = "\x00\ud800 {{block}}\n9 user: \u2028"


@pytest.mark.requirement("R1", "X3")
@pytest.mark.parametrize("mode", ["extractive", "scripted"])
def test_no_character_in_a_message_stops_the_summariser(tmp_path: Path, mode: str) -> None:
    """One odd message must not block a user's memory for ever; it is kept to the letter all the same."""
    talk = [
        said(f"I love {ODD} hiking in the hills.", name=f"Ann{ODD}", task=f"trip{ODD}"),
        called(f"search{ODD}", f"1{ODD}", q=ODD),
        returned(f"1{ODD}", f"failed {ODD}", ok=False, minutes=1),
        called(f"search{ODD}", "2", q=ODD),
        returned("2", f"failed {ODD}", ok=False, minutes=1),
        said("I hate mushrooms.", name=" ", minutes=600),
    ]
    with open_kit(tmp_path, learning() if mode == "scripted" else None, reviser="rules") as kit:
        kit.add_messages(talk, scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert [message.content for message in kit.sources.retrieve_message(scope=ANN)] == [
            message.content for message in talk
        ]
        assert kit.work.list(scope=ANN, states=["pending"]) == ()
        assert kit.admin.verify().healthy
        assert kit.recall("hiking mushrooms", scope=ANN, depth="messages").context
        if mode == "scripted":
            blocks = [call.text for call in model_of(kit).calls]
            assert not any("\n9 user" in text or "\ud800" in text or "\x00" in text for text in blocks)


@pytest.mark.slow
@pytest.mark.requirement("C3", "C9", "X1", "X2")
def test_a_home_holds_everything_over_a_restart(tmp_path: Path) -> None:
    """With Chroma in the home, as installed: closed and opened again, it answers as before and proves itself whole."""
    settings = Settings(home=tmp_path)
    with MemoryKit.open(settings=settings, model=None, embedder=None, clock=FrozenClock(NOON)) as kit:
        kit.add_messages(DAYS, scope=ANN)
        kit.summarize(scope=ANN, close=True)
        before = kit.recall("Where does Ann live?", scope=ANN)
        assert kit.admin.stats()["index"] == "chroma"
    with MemoryKit.open(settings=settings, model=None, embedder=None, clock=FrozenClock(NOON)) as kit:
        after = kit.recall("Where does Ann live?", scope=ANN)
        verification = kit.admin.verify()

        assert after.memories == before.memories
        assert after.memories[0].text == "Ann: I live in Lisbon by the river."
        assert (verification.messages, verification.blocks, verification.memories) == (3, 3, 3)
        assert verification.healthy
        assert kit.admin.rebuild() == verification.vectors
        assert kit.admin.verify().healthy


@pytest.mark.requirement("C3")
def test_a_chroma_server_serves_by_a_setting(tmp_path: Path, chroma_url: str) -> None:
    """Several processes share one index, and nothing else changes."""
    options: dict[str, Any] = {"chroma_url": chroma_url, "model": None, "embedder": None}
    options["options"] = OpenOptions(require_index=True)
    with MemoryKit.open(tmp_path, **options) as kit, MemoryKit.open(tmp_path, **options) as other:
        kit.add_messages(DAYS, scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert other.recall("Where does Ann live?", scope=ANN).memories[0].text == "Ann: I live in Lisbon by the river."
        assert other.admin.verify().healthy
        assert other.admin.stats()["index"] == "chroma"


@pytest.mark.requirement("R13")
def test_progress_counts_up_block_by_block(tmp_path: Path) -> None:
    """A long run that says nothing looks like one that hangs."""
    seen: list[Progress] = []
    with open_kit(tmp_path) as kit:
        kit.add_messages(DAYS, scope=ANN)
        kit.summarize(scope=ANN, close=True, progress=seen.append)

    assert [(each.stage, each.done, each.total) for each in seen] == [("summarize", n, 3) for n in (1, 2, 3)]
    assert tuple(each.detail for each in seen) == LABELS


def asynchronous(verb: Callable[..., SummaryReport]) -> Callable[..., Awaitable[SummaryReport]]:
    """A sync verb in the form of an async one, in the same thread."""

    async def run(**arguments: Any) -> SummaryReport:  # noqa: RUF029
        return verb(**arguments)

    return run


@pytest.mark.requirement("R13", "X3")
@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_a_cancelled_run_keeps_what_is_done_and_the_next_goes_on(tmp_path: Path, mode: str) -> None:
    """Stopping must cost nothing: no block is lost, none is paid for twice."""
    asked = iter([False, True])
    with open_kit(tmp_path, learning(), reviser="rules") as kit:
        kit.add_messages(DAYS, scope=ANN)
        run = kit.asummarize if mode == "async" else asynchronous(kit.summarize)
        with pytest.raises(CancelledError):
            await run(scope=ANN, close=True, cancel=lambda: next(asked))
        assert tuple(entry.block_id for entry in kit.sources.blocks(scope=ANN)) == LABELS[:1]
        assert len(model_of(kit).calls) == 2

        report = kit.summarize(scope=ANN)

        assert report.blocks == LABELS[1:]
        assert report.pending == 0


@pytest.mark.requirement("X8")
def test_a_budget_stops_between_blocks_and_the_rest_waits(tmp_path: Path) -> None:
    """A hard budget over many blocks: what it paid for is kept, the rest is pending and says so."""
    with open_kit(tmp_path, {"DigestAnswer": digest()}) as kit:
        kit.add_messages(DAYS, scope=ANN)
        with pytest.raises(BudgetExceededError, match="continues where it stopped"):
            kit.summarize(scope=ANN, close=True, budget=Budget(max_calls=2))

        assert len(model_of(kit).calls) == 2
        assert [work.block_id for work in kit.work.list(scope=ANN)] == [LABELS[2]]
        assert kit.summarize(scope=ANN).blocks == LABELS[2:]


@pytest.mark.requirement("R13")
def test_an_open_tail_waits_until_it_is_closed(tmp_path: Path) -> None:
    """A conversation that goes on is not cut in the middle."""
    with open_kit(tmp_path) as kit:
        kit.add_messages(DAYS[:2], scope=ANN)
        assert kit.summarize(scope=ANN).blocks == LABELS[:1]
        assert kit.summarize(scope=ANN).blocks == ()
        assert kit.summarize(scope=ANN, close=True).blocks == LABELS[1:2]


def test_draining_summarises_every_scope_that_waits(tmp_path: Path) -> None:
    """A background worker knows no users; what waits is in the ledger."""
    scopes = [ANN, Scope(user="bob", agent="remy"), Scope(user="ann", tenant="other"), Scope(user="eve", project="p")]
    with open_kit(tmp_path) as kit:
        for scope in scopes:
            kit.add_messages(DAYS, scope=scope)
        report = kit.drain()

        assert report.blocks == LABELS[:2] * len(scopes)
        assert all(len(kit.memories(scope=scope)) == 2 for scope in scopes)
        assert kit.drain() == SummaryReport()
        kit.add_messages([said("Good night, everybody.", minutes=6000)], scope=scopes[1])
        assert kit.drain().blocks == LABELS[2:]


def test_a_job_whose_model_is_down_waits_with_its_reason(tmp_path: Path) -> None:
    """An outage in the background is told to who drains, and the work is done later."""
    clock = FrozenClock(NOON)
    answers = [TimeoutError("down")] * 3 + [digest()]
    with open_kit(tmp_path, {"DigestAnswer": answers}) as kit:
        kit.context.parts().jobs._clock = clock
        kit.add_messages(DAYS[:2], scope=ANN)
        with pytest.raises(ModelUnavailableError):
            kit.drain()
        assert kit.drain().blocks == ()  # not at once: the provider would be hammered
        clock.move(DAYS[1].time - DAYS[0].time)

        assert kit.drain().blocks == LABELS[:1]


@pytest.mark.requirement("R12")
def test_tool_statistics_are_kept_by_scope(tmp_path: Path) -> None:
    """How reliable a tool is for one user tells nothing of another's account."""
    bob = Scope(user="bob", agent="remy")
    with open_kit(tmp_path) as kit:
        kit.add_messages([called("mail", "1"), returned("1", "sent", minutes=1)], scope=ANN)
        kit.add_messages([called("mail", "1"), returned("1", "no such account", ok=False, minutes=1)], scope=bob)
        for scope in (ANN, bob):
            kit.summarize(scope=scope, close=True)

        assert [(stats.tool, stats.success_rate) for stats in kit.tools.stats(scope=ANN)] == [("mail", 1.0)]
        assert [(stats.tool, stats.success_rate) for stats in kit.tools.stats(scope=bob)] == [("mail", 0.0)]


# ------------------------------------------------------------------------------------------------ closing


def arguments(verb: Callable[..., Any]) -> dict[str, Any]:
    """Something valid for each parameter that a verb requires."""
    known: dict[str, Any] = {
        "scope": ANN,
        "whom": ANN,
        "messages": DAYS,
        "sha256": "0" * 64,
        "folder": "nowhere",
        "query": "Lisbon",
        "memory_id": "m",
        "memory_ids": ["m"],
        "answer": "She lives in Lisbon.",
        "context": "",
        "chunk_id": "c",
        "event": "The door opened.",
        "source_id": "m",
        "target_id": "n",
        "type": "causes",
        "block_id": LABELS[0],
        "time_range": (NOON, NOON),
        "times": [NOON],
        "content": "I am Remy.",
        "topic": "personal:Ann",
        "key": "personal",
        "text": "Hello.",
        "reason": "It holds everywhere.",
        "stop": Event(),
        "agent": lambda _search, _topic: (),
        "message": "m",
        "schema": BaseModel,
        "path": "nowhere.json",
        "worker": "w",
        "person": Subject(user="ann"),
        "since": NOON,
    }
    needed = [each for each in inspect.signature(verb).parameters.values() if each.default is each.empty]
    return {each.name: known[each.name] for each in needed}


def public(holder: object) -> list[str]:
    names = {name for name, _ in inspect.getmembers(holder, inspect.isroutine) if not name.startswith("_")}
    return sorted(names - {"open", "aopen", "close", "aclose"})


async def test_a_closed_kit_refuses_every_verb(tmp_path: Path) -> None:
    """A handle that was kept too long must say so, not fail somewhere inside."""
    kit = open_kit(tmp_path)
    kit.close()
    kit.close()
    await kit.aclose()

    assert len(public(kit)) >= 2 * 15
    assert not kit.admin.ready()  # a probe asks, and is told no
    assert not await kit.admin.aready()
    for holder in (kit, kit.admin):
        for name in {*public(holder)} - {"ready", "aready"}:
            verb = getattr(holder, name)
            with pytest.raises(ClosedError, match="Open a new one"):
                await verb(**arguments(verb)) if inspect.iscoroutinefunction(verb) else verb(**arguments(verb))


async def test_kits_close_at_the_end_of_their_block_also_after_an_error(tmp_path: Path) -> None:
    """An index that stays locked after an error needs a restart."""
    with pytest.raises(LookupError), MemoryKit.open(tmp_path, model=None, embedder=None) as kit:
        raise LookupError
    with pytest.raises(ClosedError):
        kit.topics.list(scope=ANN)
    async with await MemoryKit.aopen(
        tmp_path, model=None, embedder=None, options=OpenOptions(require_index=True)
    ) as again:
        assert await again.topics.alist(scope=ANN) == ()
    with pytest.raises(ClosedError):
        await again.topics.alist(scope=ANN)


def test_a_notebook_shows_where_a_kit_is_and_what_it_holds_and_no_password(tmp_path: Path) -> None:
    """A cell that ends with a kit is the first look that many take; a screenshot of it must give nothing away."""
    with open_kit(tmp_path) as kit:
        kit.add_messages([said("I live in Lisbon.")], scope=ANN)
        assert repr(kit).startswith("<MemoryKit ")
        assert repr(kit.topics) == "<Topics>"
        assert "<td>messages</td><td>1</td>" in kit._repr_html_()
    assert kit._repr_html_().endswith(", closed")
    kit.context.settings = kit.settings.evolve(ledger_url="postgresql://ann:hush@localhost/<home>")
    assert "hush" not in repr(kit) + kit._repr_html_()
    assert "<home>" not in kit._repr_html_()


def test_an_index_that_is_given_serves_even_if_it_counts_as_empty(tmp_path: Path) -> None:
    """Many a store of vectors knows its length; a fresh one must not be taken for none and be left aside unseen."""

    class Counting(InMemoryVectorIndex):
        def __len__(self) -> int:
            return 0

    with MemoryKit.open(tmp_path, settings=Settings(), model=None, embedder=None, index=Counting()):
        assert not (tmp_path / "index").exists()


def test_closing_closes_the_index_that_was_given() -> None:
    """What a kit is given to work with it gives back."""
    closed: list[bool] = []

    class Index(InMemoryVectorIndex):
        def close(self) -> None:
            closed.append(True)

    MemoryKit.open(ledger_url="sqlite://", model=None, embedder=None, index=Index()).close()

    assert closed == [True]


def test_admin_can_be_reached_from_its_kit_only(tmp_path: Path) -> None:
    """The operator's view crosses all scopes, so it stands apart."""
    with open_kit(tmp_path) as kit:
        assert isinstance(kit.admin, Admin)
        assert not any("scope" in inspect.signature(getattr(kit.admin, name)).parameters for name in public(kit.admin))


def test_a_closed_kit_is_let_go(tmp_path: Path) -> None:
    """A host that opens homes by turns must not hold all it ever opened, with their statements and caches."""
    kit = open_kit(tmp_path)
    kit.add_messages([said("I love tea.")], scope=ANN)
    kit.summarize(scope=ANN, close=True)
    kit.recall("tea", scope=ANN)
    archive = weakref.ref(kit.context.parts().archive)
    kit.close()
    del kit
    gc.collect()
    assert archive() is None
