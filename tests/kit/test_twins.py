"""Sync and async are one kit."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from remegraph import InputError, MemoryKit, Scope
from remegraph.kit.admin import Admin
from remegraph.kit.governance import Conflicts, Governance
from remegraph.kit.knowledge import Knowledge
from remegraph.kit.packs import Packs
from remegraph.kit.sharing import Sharing
from remegraph.kit.skills import Skills
from remegraph.kit.tools import ToolMemory
from remegraph.models import Record
from remegraph.testing import ModelCall
from tests.talk import ANN, create, digest, open_kit, proposal, replied, said

_WITHOUT = {"open", "register_agent", "library", "register", "injected"}
"""`open` is asked about below; the others wait for nothing."""


def verbs(kind: type) -> dict[str, Callable[..., Any]]:
    """The public sync verbs of a class."""
    public = {name: value for name, value in inspect.getmembers(kind, inspect.isroutine) if not name.startswith("_")}
    asynchronous = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return {name: value for name, value in public.items() if not any(is_one(value) for is_one in asynchronous)}


KINDS = (MemoryKit, Admin, Conflicts, Governance, Knowledge, Packs, Sharing, Skills, ToolMemory)
VERBS = [(kind, name) for kind in KINDS for name in verbs(kind) if name not in _WITHOUT]


@pytest.mark.parametrize(("kind", "name"), VERBS, ids=lambda value: getattr(value, "__name__", value))
def test_every_verb_has_an_async_twin_with_the_same_signature(kind: type, name: str) -> None:
    """Who moves from sync to async code puts an `a` and an `await` before each call, and is done."""
    verb, other = getattr(kind, name), getattr(kind, f"a{name}")

    assert inspect.isasyncgenfunction(other) if name == "audit" else inspect.iscoroutinefunction(other)
    assert inspect.signature(other) == inspect.signature(verb)


def test_every_async_verb_is_the_twin_of_a_sync_one() -> None:
    """A verb that only async code can call would split the users in two."""
    for kind in KINDS:
        coroutines = {name for name, _ in inspect.getmembers(kind, inspect.iscoroutinefunction) if name[0] == "a"}
        assert {name[1:] for name in coroutines} <= verbs(kind).keys()


async def test_a_home_is_opened_asynchronously_with_the_same_options(tmp_path: Path) -> None:
    """Opening reads files: an event loop must not wait for it."""
    async with await MemoryKit.aopen(tmp_path, model=None, embedder=None) as kit:
        assert kit.settings.home == tmp_path
        assert (await kit.admin.astats())["model"] == "extractive"
    with pytest.raises(TypeError, match="modle"):
        await MemoryKit.aopen(tmp_path, modle=None)


TALK = [
    said("I love hiking in the hills. I hate mushrooms."),
    replied("Noted!", minutes=1),
    said("I live in Lisbon, by the river.", minutes=600),
    said("I moved: I live in Porto now.", minutes=1200),
]


def decide(call: ModelCall) -> dict[str, Any]:
    """Remember the first sentence of whatever block is asked about."""
    known = {
        "I hate mushrooms": ("Ann hates mushrooms.", 1),
        "I live in Lisbon": ("Ann lives in Lisbon.", 1),
        "I live in Porto now": ("Ann lives in Porto.", 1),
    }
    return proposal(*(create(text, n, words) for words, (text, n) in known.items() if words in call.text))


def script() -> dict[str, Any]:
    return {
        "DigestAnswer": digest("personal:Ann"),
        "ProposalAnswer": decide,
        "VerdictAnswer": {"objections": []},
    }


_OWN = {"seconds", "digest", "chain"}
"""What no two runs have in common: how long it took, and what the ledger's own key and salt make of an event."""


def plain(record: Record) -> object:
    """A record without what is its run's own."""

    def timeless(value: object) -> object:
        if isinstance(value, dict):
            return {name: timeless(item) for name, item in value.items() if name not in _OWN}
        if isinstance(value, list | tuple):
            return [timeless(item) for item in value]
        return value

    return timeless(record.model_dump())


@pytest.mark.parametrize("mode", ["extractive", "scripted"])
async def test_sync_and_async_give_equal_results(tmp_path: Path, mode: str) -> None:
    """Two code paths would drift apart; here every answer on the way from message to trace is the same."""
    answers = script() if mode == "scripted" else None
    asked = "Where does Ann live?"
    with open_kit(tmp_path / "sync", answers) as kit:
        first: list[Record] = [
            kit.remember_self("I am Remy.", scope=ANN),
            kit.add_messages(TALK, scope=ANN),
            kit.summarize(scope=ANN, close=True),
            kit.recall(asked, scope=ANN, depth="messages"),
            *(kit.trace(memory.memory_id, scope=ANN) for memory in kit.memories(scope=ANN)),
            *kit.topics.list(scope=ANN),
            *kit.sources.blocks(scope=ANN),
            *kit.sources.retrieve_block("20250304_02", scope=ANN),
            *kit.sources.retrieve_message("live", scope=ANN),
            *kit.sources.time_match_memories((TALK[0].time, TALK[1].time), scope=ANN),
            *kit.tools.stats(scope=ANN),
            *kit.work.list(scope=ANN, states=["done"]),
            kit.work.retry(scope=ANN),
            kit.drain(),
            kit.admin.verify(),
        ]
    async with open_kit(tmp_path / "async", answers) as kit:
        second: list[Record] = [
            await kit.aremember_self("I am Remy.", scope=ANN),
            await kit.aadd_messages(TALK, scope=ANN),
            await kit.asummarize(scope=ANN, close=True),
            await kit.arecall(asked, scope=ANN, depth="messages"),
            *[await kit.atrace(memory.memory_id, scope=ANN) for memory in await kit.amemories(scope=ANN)],
            *await kit.topics.alist(scope=ANN),
            *await kit.sources.ablocks(scope=ANN),
            *await kit.sources.aretrieve_block("20250304_02", scope=ANN),
            *await kit.sources.aretrieve_message("live", scope=ANN),
            *await kit.sources.atime_match_memories((TALK[0].time, TALK[1].time), scope=ANN),
            *await kit.tools.astats(scope=ANN),
            *await kit.work.alist(scope=ANN, states=["done"]),
            await kit.work.aretry(scope=ANN),
            await kit.adrain(),
            await kit.admin.averify(),
        ]
    assert len(first) > 20
    assert [plain(record) for record in second] == [plain(record) for record in first]


async def test_async_verbs_raise_what_sync_verbs_raise(tmp_path: Path) -> None:
    """An except clause that works here works there."""
    nobody = cast("Scope", None)
    with open_kit(tmp_path) as kit:
        for call, acall in (
            (lambda: kit.recall(" ", scope=ANN), lambda: kit.arecall(" ", scope=ANN)),
            (lambda: kit.trace("nowhere", scope=ANN), lambda: kit.atrace("nowhere", scope=ANN)),
            (lambda: kit.add_messages([], scope=ANN), lambda: kit.aadd_messages([], scope=ANN)),
            (lambda: kit.topics.list(scope=nobody), lambda: kit.topics.alist(scope=nobody)),
            (lambda: kit.summarize(scope=nobody), lambda: kit.asummarize(scope=nobody)),
        ):
            with pytest.raises(InputError) as first:
                call()
            with pytest.raises(type(first.value)) as second:
                await acall()
            assert str(second.value) == str(first.value)


def test_scopes_are_keyword_only() -> None:
    """A scope in the wrong place would be a query."""
    for kind, name in VERBS:
        parameter = inspect.signature(getattr(kind, name)).parameters.get("scope")
        if parameter is not None:
            assert parameter.kind is parameter.KEYWORD_ONLY
            assert parameter.default is parameter.empty
            assert parameter.annotation in ("Scope", Scope)
