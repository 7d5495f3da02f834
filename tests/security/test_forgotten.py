"""Forgotten is forgotten: planted words are said by no door at no depth, nothing else is lost, and all of it comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from conftest import Figure
from remegraph import Memory, MemoryKit, Message, Scope
from remegraph.models import ToolCall
from remegraph.testing import ModelCall
from remegraph.text.sentences import sentences
from remegraph.text.tokens import tokenize
from tests.security import doors
from tests.talk import NOON, create, digest, open_kit, proposal

CASES: list[dict[str, Any]] = [
    case
    for name in ("forgotten_own.json", "forgotten_others.json")
    if (Path(__file__).parent / name).exists()
    for case in json.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))
]
"""Talks with words planted in them; those of others were written by somebody who had not seen the code.

`planted` is what the statement itself says, wherever and however often; `related` what other statements of the same matter
say, an ex-husband after a divorce, which nothing but a person or a model can tie to it: it is counted, not promised.
"""


def _scope(case: Mapping[str, Any]) -> Scope:
    return Scope(user=case["user"], agent="remy")


def _message(at: int, given: Mapping[str, Any], case: Mapping[str, Any], thread: str) -> Message:
    calls = tuple(
        ToolCall(name=call["name"], args=call["args"], call_id=call["id"]) for call in given.get("tool_calls", ())
    )
    return Message(
        message_id=f"{case['id']}-{at}",
        role=given["role"],
        name={"user": case["user"], "assistant": "remy"}.get(given["role"], ""),
        content=given["content"],
        thread=thread,
        time=NOON - timedelta(days=30) + timedelta(minutes=at),
        tool_calls=calls,
        tool_call_id=given.get("tool_call_id", ""),
    )


def _script(case: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a model would say of each session; none where the talk is learned without a model."""
    sessions = [session for session in case["sessions"] if "model" in session]
    if not sessions:
        return None

    def of(call: ModelCall) -> Mapping[str, Any]:
        return next(each["model"] for each in sessions if each["messages"][0]["content"][:40] in call.text)

    def told(call: ModelCall) -> Any:
        return digest(f"personal:{case['user']}", summary=of(call)["summary"])

    def proposed(call: ModelCall) -> Any:
        return proposal(*(create(each["content"], each["n"], each["quote"]) for each in of(call)["memories"]))

    return {"DigestAnswer": told, "ProposalAnswer": proposed, "NamesAnswer": {"names": []}}


def _told(kit: MemoryKit, case: Mapping[str, Any]) -> Scope:
    """Let a kit hear and learn the whole talk."""
    scope, at = _scope(case), 0
    for session in case["sessions"]:
        given = []
        for message in session["messages"]:
            given.append(_message(at, message, case, session["thread"]))
            at += 1
        kit.add_messages(given, scope=scope)
        kit.summarize(scope=scope, close=True)
    for statement in case.get("saved", ()):
        kit.save("", statement, scope=scope)
    for thought in case.get("in_mind", ()):
        kit.working.sense(thought, scope=scope, attention=1.0)
    return scope


def _chosen(kit: MemoryKit, case: Mapping[str, Any], scope: Scope) -> Memory:
    """The memory that shall be forgotten; a person who finds none that says this alone saves it, in the words it was said.

    Without a model, a memory is a whole turn, which may say much that shall stay.
    """
    if not (found := _saying(kit, case, scope)):
        kit.save("", next(iter(_words(case)), case["statement"]), scope=scope)
        found = _saying(kit, case, scope)
    wanted = set(tokenize(case["statement"]))
    return max(found, key=lambda memory: len(wanted.intersection(tokenize(memory.content))))


def _words(case: Mapping[str, Any]) -> Iterator[str]:
    """The sentences in which a person said it, and nothing that is kept."""
    for message in (each for session in case["sessions"] for each in session["messages"] if each["role"] == "user"):
        for span in sentences(message["content"]):
            said = span.text.casefold()
            planted = any(word.casefold() in said for word in case["planted"])
            if planted and not any(word.casefold() in said for word in case["kept"]):
                yield span.text


def _saying(kit: MemoryKit, case: Mapping[str, Any], scope: Scope) -> list[Memory]:
    live = [memory for memory in kit.memories(scope=scope) if case["forget"] in memory.content and memory.live]
    more = [word.casefold() for word in case["kept"] if word.casefold() not in case["statement"].casefold()]
    return [memory for memory in live if not any(word in memory.content.casefold() for word in more)]


@pytest.mark.requirement("X14")
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_what_is_forgotten_is_said_by_no_door_and_comes_back_whole(
    case: Mapping[str, Any], tmp_path: Path, figure: Figure
) -> None:
    """Told once or often, in part of a turn, by the agent or in a summary: shown nowhere, until it is restored."""
    planted, kept = case["planted"], case["kept"]
    with open_kit(tmp_path / "home", _script(case)) as kit:
        scope = _told(kit, case)
        memory = _chosen(kit, case, scope)
        before = _everything(kit, scope)
        assert not [word for word in planted if word.casefold() not in before.casefold()], "it was said"

        look = kit.forget(memory.memory_id, scope=scope, dry_run=True)
        assert not look.done
        assert _everything(kit, scope) == before, "looking changes nothing"
        done = kit.forget(memory.memory_id, scope=scope)
        assert (done.done, doors.leaks(iter([("answer", done.to_json())]), planted)) == (True, [])

        kit.retention.maintain(scope=scope)
        kit.admin.rebuild()
        said = doors.told(kit, scope, case["question"], planted[0], tmp_path)
        assert doors.leaks(said, planted) == []
        left = _everything(kit, scope)
        assert [word for word in kept if word.casefold() not in left.casefold()] == [], "nothing else is lost"
        for word in case.get("related", ()):
            figure("forgotten: what other statements of the matter say", "shown" if word in left else "gone along")
        figure("forgotten: talks with planted words", "none shown by any door")
        assert kit.admin.verify().healthy
    with open_kit(tmp_path / "home", _script(case)) as kit:
        said = doors.told(kit, scope, case["question"], planted[0], tmp_path)
        assert doors.leaks(said, planted) == [], "after a restart"
        kit.restore(memory.memory_id, scope=scope)
        assert set(before.splitlines()) <= set(_everything(kit, scope).splitlines())
        assert kit.admin.verify().healthy


def _everything(kit: MemoryKit, scope: Scope) -> str:
    """All that is kept of a scope, as a person would read it."""
    memories = (
        f"{memory.status}: {memory.content} <- {[item.quote for item in memory.evidence]}"
        for memory in kit.memories(scope=scope)
    )
    entries = (f"{entry.block_id}: {entry.summary} {entry.entities}" for entry in kit.sources.blocks(scope=scope))
    messages = (
        f"{each.message_id}: {each.text} {json.dumps([call.args for call in each.tool_calls], ensure_ascii=False)}"
        for each in kit.sources.retrieve_message(scope=scope, limit=10_000)
    )
    return "\n".join(sorted([*memories, *entries, *messages]))


@pytest.mark.requirement("X14")
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES[::6], ids=[case["id"] for case in CASES[::6]])
@pytest.mark.parametrize("setup", ["servers"], indirect=True)
def test_it_is_the_same_on_servers(case: Mapping[str, Any], setup: str, tmp_path: Path) -> None:
    """PostgreSQL and a Chroma server withhold what SQLite withholds."""
    assert setup == "servers"
    with open_kit(tmp_path / "home", _script(case)) as kit:
        scope = _told(kit, case)
        memory = _chosen(kit, case, scope)
        before = _everything(kit, scope)
        kit.forget(memory.memory_id, scope=scope)
        assert (
            doors.leaks(doors.told(kit, scope, case["question"], case["planted"][0], tmp_path), case["planted"]) == []
        )
        kit.restore(memory.memory_id, scope=scope)
        assert set(before.splitlines()) <= set(_everything(kit, scope).splitlines())
