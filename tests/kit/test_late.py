"""What arrives late and is earlier by its time: it never takes the place of what is newer, by whichever door it comes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from remegraph import MemoryKit
from remegraph.models import Memory
from tests.talk import ANN, NOON, change, clock_of, create, digest, open_kit, proposal, said

pytestmark = pytest.mark.requirement("F4", "X11")

SLOT = {"slot": "lives_in", "value": "Porto"}


def homes(kit: MemoryKit) -> dict[str, Memory]:
    """What is known of where Ann lives, by the place."""
    memories = kit.memories(scope=ANN)
    return {place: memory for memory in memories for place in ("Porto", "Lisbon") if place in memory.content}


def holds_the_newer(kit: MemoryKit) -> None:
    """Porto holds since June, and Lisbon is history that ends there."""
    known = homes(kit)
    assert (known["Porto"].status, known["Lisbon"].status) == ("active", "superseded")
    assert known["Porto"].supersedes == (known["Lisbon"].memory_id,)
    assert known["Lisbon"].valid_to == known["Porto"].said_at
    assert [hit.text for hit in kit.recall("Where does Ann live?", scope=ANN).memories] == [known["Porto"].content]
    assert kit.admin.verify().healthy


def test_what_is_saved_late_loses_to_what_was_stated_after_it(tmp_path: Path) -> None:
    """A process whose turn was held up saves what was stated before."""
    with open_kit(tmp_path) as kit:
        clock = clock_of(kit)
        clock.move(timedelta(days=90))
        kit.save("home", "Ann lives in Porto.", scope=ANN, slot="ann:lives_in", value="Porto")
        clock.move(-timedelta(days=90))
        late = kit.save("home", "Ann lives in Lisbon.", scope=ANN, slot="ann:lives_in", value="Lisbon")
        assert late.superseded == ()
        clock.move(timedelta(days=90))
        holds_the_newer(kit)


@pytest.mark.parametrize("action", ["CREATE", "SUPERSEDE"])
def test_what_is_learned_late_loses_to_what_was_said_after_it(tmp_path: Path, action: str) -> None:
    """Logs come in any order; whatever a model calls it, what was said in March did not follow on June."""
    lisbon: dict[str, Any] = {"content": "Ann lives in Lisbon.", "slot": "lives_in", "value": "Lisbon"}
    quote = "I live in Lisbon"
    older = create(n=1, quote=quote, **lisbon) if action == "CREATE" else change(action, "m1", 1, quote, **lisbon)
    steps = {
        "DigestAnswer": digest("personal:Ann"),
        "ProposalAnswer": [proposal(create("Ann lives in Porto.", 1, "I live in Porto", **SLOT)), proposal(older)],
        "VerdictAnswer": {"objections": []},
    }
    with open_kit(tmp_path, steps, reviser="rules") as kit:
        kit.add_messages([said("I live in Porto by the bridge.", minutes=90 * 24 * 60)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        kit.add_messages([said("I live in Lisbon by the river.", thread="older")], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        holds_the_newer(kit)


def test_what_is_imported_late_stands_beside_what_was_said_after_it(tmp_path: Path) -> None:
    """An export tells no slots: both stand, each with its own date, and the newer one is shown first."""
    records = [
        {"id": name, "memory": f"Ann lives in {place}.", "created_at": (NOON - timedelta(days=days)).isoformat()}
        for name, place, days in (("m2", "Porto", 10), ("m1", "Lisbon", 100))
    ]
    with open_kit(tmp_path) as kit:
        for record in records:
            kit.imports.mem0([{"results": [record]}], scope=ANN)
        known = homes(kit)
        assert {memory.status for memory in known.values()} == {"active"}
        assert known["Lisbon"].said_at == NOON - timedelta(days=100)
        hits = kit.recall("Where does Ann live?", scope=ANN).memories
        assert hits[0].text == known["Porto"].content
