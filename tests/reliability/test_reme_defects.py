"""Six defects that were reproduced in ReMe 0.3 and 0.4, and must not happen here; each test is named after its defect."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from remegraph import MemoryKit, Scope, Settings, SetupError, SummaryPolicy
from remegraph.errors import ConflictError, InputError, ModelUnavailableError, NotFoundError
from remegraph.kit import OpenOptions
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.models import ChangeSet, Memory, MemoryChange
from remegraph.testing import FrozenClock, ModelCall, ScriptedChatModel, SequentialIds
from tests.talk import NOON, change, create, digest, proposal, said

if TYPE_CHECKING:
    from remegraph.ports import Vectors

ALICE = Scope(tenant="alice-corp", user="alice", agent="remy")
BOB = Scope(tenant="bob-corp", user="bob", agent="remy")


class MoodyEmbedder:
    """Hashed n-grams that can be taken away."""

    semantic = False

    def __init__(self) -> None:
        self._inner = HashedEmbedder(64)
        self.name, self.dimension = "moody", 64
        self.down = False

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed, or fail."""
        if self.down:
            raise ModelUnavailableError("The embedder does not answer.")
        return self._inner.embed(texts)


def open_home(home: Path, script: dict[str, Any] | None = None, embedder: MoodyEmbedder | None = None) -> MemoryKit:
    """A kit with its real index, Chroma's."""
    return MemoryKit.open(
        settings=Settings(home=home, summary=SummaryPolicy(backoff=0, reviser="rules")),
        model=None if script is None else ScriptedChatModel(script=script),
        embedder=embedder,
        clock=FrozenClock(NOON),
        options=OpenOptions(new_id=SequentialIds()),
    )


def live(kit: MemoryKit, scope: Scope) -> dict[str, Memory]:
    """The live memories of a scope, by content."""
    return {memory.content: memory for memory in kit.memories(scope=scope) if memory.live}


def change_of(memory: Memory, expected_version: int) -> ChangeSet:
    """A set with one change."""
    step = MemoryChange(memory=memory, expected_version=expected_version, action="change")
    return ChangeSet(
        operation_id=f"change {memory.to_json()}", actor="test", recorded_at=NOON, at_home=True, changes=(step,)
    )


@pytest.mark.requirement("X5")
@pytest.mark.slow
def test_defect_1_the_identical_fact_of_two_tenants_is_two_memories(tmp_path: Path) -> None:
    """There, ids were made of the content alone: storing Bob's fact lost Alice's, or Bob's was dropped in silence."""
    roommate = ALICE.evolve(user="carol")
    with open_home(tmp_path) as kit:
        for scope in (ALICE, BOB, roommate):
            kit.add_messages([said("I like watermelon.", name="Sam", message_id="same-id")], scope=scope)
            assert kit.summarize(scope=scope, close=True).created == 1
        held = [memory for scope in (ALICE, BOB, roommate) for memory in kit.memories(scope=scope)]
        assert len({memory.memory_id for memory in held}) == len(held) == 3
        kit.context.parts().archive.commit(change_of(held[0].evolve(status="deleted"), 1))
        kit.context.parts().projection.sync()
        assert kit.recall("watermelon", scope=ALICE).memories == ()
        for scope in (BOB, roommate):
            (hit,) = kit.recall("watermelon", scope=scope).memories
            assert hit.partition == scope.partition()
        verification = kit.admin.verify()
        assert verification.healthy
        assert verification.vectors == 2 + 3  # memories that live, and blocks


@pytest.mark.requirement("X5")
def test_defect_2_an_id_opens_nothing_across_tenants(tmp_path: Path) -> None:
    """There, whoever knew an id could read, move and delete another tenant's memory."""
    with open_home(tmp_path) as kit:
        kit.add_messages([said("I like watermelon.", name="Alice")], scope=ALICE)
        kit.add_messages([said("I like tea.", name="Bob")], scope=BOB)
        for scope in (ALICE, BOB):
            kit.summarize(scope=scope, close=True)
        (hers,), (his,) = kit.memories(scope=ALICE), kit.memories(scope=BOB)
        archive, bobs = kit.context.parts().archive, [BOB.partition()]
        with pytest.raises(NotFoundError):
            kit.trace(hers.memory_id, scope=BOB)
        assert archive.memories(bobs, ids=[hers.memory_id]) == ()
        assert archive.versions(bobs, hers.memory_id) == ()
        assert archive.events(bobs, record_id=hers.memory_id) == ()
        with pytest.raises(NotFoundError):
            archive.commit(change_of(hers.evolve(partition=BOB.partition()), 1))
        with pytest.raises((ConflictError, NotFoundError)):
            archive.commit(change_of(his.evolve(memory_id=hers.memory_id), 0))
        with pytest.raises(NotFoundError):
            archive.commit(change_of(his.evolve(supersedes=(hers.memory_id,)), 1))
        assert kit.memories(scope=ALICE) == (hers,)
        assert kit.memories(scope=BOB) == (his,)


FACTS = {"A": "Sam lives in Bergen.", "B": "Sam plays the cello.", "C": "Sam works as a nurse."}
SAID = {"A": "I live in Bergen", "B": "I play the cello", "C": "I work as a nurse"}
NEWS = {"C": "I work as a nurse on the night shift", "A": "I live in Bergen by the harbour"}


def _first(_: ModelCall) -> dict[str, Any]:
    return proposal(*(create(FACTS[name], n, SAID[name]) for n, name in enumerate("ABC", start=1)))


def _names(call: ModelCall) -> dict[str, str]:
    """The short names under which the model was shown the memories."""
    found: dict[str, str] = {}
    for line in call.text.splitlines():
        short, _, rest = line.partition(" [")
        for name, content in FACTS.items():
            if short.startswith("m") and content in rest:
                found[name] = short
    return found


def _refine_a(names: dict[str, str]) -> dict[str, Any]:
    return change("REFINE", names["A"], 2, NEWS["A"], content="Sam lives in Bergen by the harbour.")


def _refine(names: dict[str, str]) -> list[dict[str, Any]]:
    first = change("REFINE", names["C"], 1, NEWS["C"], content="Sam works as a nurse on the night shift.")
    return [first, _refine_a(names)]


def _hallucinate(call: ModelCall) -> dict[str, Any]:
    return proposal(change("REFINE", "m77", 2, NEWS["A"], content="HALLUCINATED"), *_refine(_names(call)))


@pytest.mark.requirement("X2", "X5")
@pytest.mark.slow
def test_defect_3_provenance_holds_when_updates_come_in_another_order_with_a_made_up_id(tmp_path: Path) -> None:
    """There, the store's order of return was taken for that of the request: A cited C's words, and C cited A's."""
    answers = [_first, _hallucinate, _hallucinate, proposal()]
    script = {"DigestAnswer": digest("personal:Sam"), "ProposalAnswer": answers, "VerdictAnswer": {"objections": []}}
    with open_home(tmp_path, script) as kit:
        kit.add_messages([said(f"{SAID[name]}.", name="Sam", minutes=n) for n, name in enumerate("ABC")], scope=ALICE)
        kit.summarize(scope=ALICE, close=True)
        before = {memory.memory_id: memory for memory in kit.memories(scope=ALICE)}
        kit.add_messages(
            [said(f"{NEWS[name]}.", name="Sam", minutes=600 + n) for n, name in enumerate("CA")], scope=ALICE
        )

        report = kit.summarize(scope=ALICE, close=True)

        assert not any(memory.content == "HALLUCINATED" for memory in kit.memories(scope=ALICE))
        (work,) = report.work
        assert work.state == "failed"
        assert "unknown memory id 'm77'" in work.reason
        assert kit.work.retry(scope=ALICE).work == ()
        after = {old.content: kit.trace(memory_id, scope=ALICE) for memory_id, old in before.items()}
        assert [quote.words for quote in after[FACTS["A"]].quotes] == [SAID["A"], NEWS["A"]]
        assert [quote.words for quote in after[FACTS["C"]].quotes] == [SAID["C"], NEWS["C"]]
        assert after[FACTS["B"]].memory == next(old for old in before.values() if old.content == FACTS["B"])
        for query, content in (("harbour", "Sam lives in Bergen by the harbour."), ("cello", FACTS["B"])):
            assert kit.recall(query, scope=ALICE).memories[0].text == content
        assert kit.admin.verify().healthy


@pytest.mark.requirement("X2", "X3")
@pytest.mark.slow
def test_defect_4_a_failure_in_the_middle_of_an_update_loses_nothing(tmp_path: Path) -> None:
    """There, an update was a delete and an insert: when embedding failed in between, the memory was gone."""
    embedder = MoodyEmbedder()

    def refine(call: ModelCall) -> dict[str, Any]:
        return proposal(_refine_a(_names(call)))

    news = [create(FACTS["A"], 1, SAID["A"]), create(FACTS["C"], 2, SAID["C"])]
    script = {
        "DigestAnswer": digest("personal:Sam"),
        "ProposalAnswer": [proposal(*news), refine],
        "VerdictAnswer": {"objections": []},
    }
    with open_home(tmp_path, script, embedder) as kit:
        kit.add_messages([said(f"{SAID[name]}.", name="Sam") for name in "AC"], scope=ALICE)
        kit.summarize(scope=ALICE, close=True)
        before = live(kit, ALICE)[FACTS["A"]]
        said_now = [said("Good morning.", name="Sam", minutes=600), said(f"{NEWS['A']}.", name="Sam", minutes=601)]
        kit.add_messages(said_now, scope=ALICE)
        embedder.down = True

        report = kit.summarize(scope=ALICE, close=True)

        assert "embedder does not answer" in report.degraded[0]
        trace = kit.trace(before.memory_id, scope=ALICE)
        assert [version.content for version in trace.versions] == [FACTS["A"], "Sam lives in Bergen by the harbour."]
        assert kit.recall("harbour", scope=ALICE).memories[0].record_id == before.memory_id
        assert not kit.admin.verify().healthy
    embedder.down = False
    with open_home(tmp_path, script, embedder) as kit:
        kit.context.parts().projection.sync()
        assert kit.admin.verify().healthy
        assert kit.recall("harbour", scope=ALICE).memories[0].record_id == before.memory_id


KILLED = """
    import os, sys
    from remegraph import MemoryKit, Scope

    kit = MemoryKit.open(sys.argv[1], model=None, embedder=None)
    scope = Scope(user="sam")
    for number in range(5):
        receipt = kit.add_messages([f"I like quark{number}."], scope=scope)
        print(receipt.message_ids[0], flush=True)
        if number == 3:
            print(kit.summarize(scope=scope, close=True).created, flush=True)
    os._exit(9)
"""


@pytest.mark.slow
@pytest.mark.requirement("X3")
def test_defect_5_a_kill_before_close_loses_nothing(tmp_path: Path) -> None:
    """There, five messages were written when the store was closed, that is, never."""
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert run.returncode == 9, run.stderr
    *acknowledged, created, last = run.stdout.split()
    assert created == "1"  # four messages in a row are one turn
    sam = Scope(user="sam")
    with MemoryKit.open(tmp_path, model=None, embedder=None) as kit:
        assert [message.message_id for message in kit.sources.retrieve_message(scope=sam)] == [*acknowledged, last]
        assert len(live(kit, sam)) == 1
        report = kit.summarize(scope=sam, close=True)
        assert report.created == 1
        turn = "\n".join(f"I like quark{number}." for number in range(4))
        assert live(kit, sam).keys() == {f"sam: {turn}", "sam: I like quark4."}
        assert kit.admin.verify().healthy


def _write_on(kit: MemoryKit, words: str) -> None:
    """Write until there is no room left in the pages there are."""
    for number in range(1000):
        kit.add_messages([said(f"{number} {words}", name="Sam", minutes=1)], scope=ALICE)


def _fill_the_disk(kit: MemoryKit) -> None:
    """Let the ledger grow no further, and use up the room that is left in it."""
    with kit.context.parts().archive.database.write() as connection:
        pages = connection.execute(text("PRAGMA page_count")).scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    for size in (5000, 500, 50, 5):
        with pytest.raises(SetupError, match="Free some space"):
            _write_on(kit, " ".join(f"quark{number}" for number in range(size)))


def _free_the_disk(kit: MemoryKit) -> None:
    with kit.context.parts().archive.database.write() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 4294967294")


@pytest.mark.requirement("X3")
@pytest.mark.slow
def test_defect_6_a_write_that_failed_is_never_reported_as_a_success(tmp_path: Path) -> None:
    """There, `success=True` was returned whatever had become of the write."""
    # Letters only: a figure that nobody said is refused before the disk is asked for anything.
    long = [f"Sam likes tea {tea} " + " ".join(tea * n for n in range(1, 40)) for tea in "abcdefgh"]
    script = {
        "DigestAnswer": digest("personal:Sam"),
        "ProposalAnswer": proposal(*(create(content, 1, "I like tea") for content in long)),
        "VerdictAnswer": {"objections": []},
    }
    with open_home(tmp_path, script) as kit:
        kit.add_messages([said("I like tea.", name="Sam", thread="tea")], scope=ALICE)
        _fill_the_disk(kit)
        kept = kit.sources.retrieve_message(limit=10_000, scope=ALICE)
        with pytest.raises(SetupError, match="Free some space"):
            kit.summarize(scope=ALICE, close=True)
        assert kit.memories(scope=ALICE) == ()
        assert kit.recall("tea", scope=ALICE, depth="messages").messages
        _free_the_disk(kit)
        assert kit.sources.retrieve_message(limit=10_000, scope=ALICE) == kept
        kit.summarize(scope=ALICE, close=True)
        assert long[0] in live(kit, ALICE)
        assert kit.admin.verify().healthy


def test_defect_6_what_a_model_got_wrong_is_reported_too(tmp_path: Path) -> None:
    """There, an agent whose tool call was refused still ended with success and nothing written."""
    script = {
        "DigestAnswer": digest("personal:Sam"),
        "ProposalAnswer": proposal(create("Sam likes tea.", 1, "I never said that")),
        "VerdictAnswer": {"objections": []},
    }
    with open_home(tmp_path, script) as kit:
        kit.add_messages([said("I like tea.", name="Sam")], scope=ALICE)
        report = kit.summarize(scope=ALICE, close=True)
        assert (report.created, [work.state for work in report.work]) == (0, ["failed"])
        assert kit.work.list(scope=ALICE, states=["failed"]) == report.work
        with pytest.raises(InputError):
            kit.remember_self(" ", scope=ALICE)
