"""An operator sees what each tenant holds and uses, bounds it, gives it out, and erases it."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy import event

from remegraph import MemoryKit, Scope, Settings, SummaryPolicy
from remegraph.deadlines import Probe
from remegraph.errors import (
    CancelledError,
    FileFormatError,
    InputError,
    LedgerUnavailableError,
    LimitError,
    NotFoundError,
    RateLimitError,
)
from remegraph.failpoints import listen
from remegraph.kit import OpenOptions
from remegraph.ledger.rows import counts
from remegraph.models import ChangeSet, MemoryChange, Progress, Subject, Tenant
from remegraph.settings import CapturePolicy, LimitPolicy, Limits
from remegraph.testing import FrozenClock, InMemoryVectorIndex, ModelCall, ScriptedChatModel, SequentialIds
from tests.governance.test_erasing import everything, healthy
from tests.pictures import PNG
from tests.talk import ANN, EACH_TURN, NOON, SHARED_KEY, clock_of, create, digest, proposal, said, statements

EVA = Scope(tenant="acme", user="eva", agent="remy")
TOM = Scope(tenant="acme", user="tom", agent="rosa")
FISH = "I keep goldfish in Oslo."

Open = Callable[..., MemoryKit]


@pytest.fixture
def opened(ledger_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Open:
    """Opens a kit on one ledger, on SQLite and PostgreSQL; again and again, as other processes would."""

    def open_one(script: dict[str, Any] | None = None, **limits: Any) -> MemoryKit:
        kit = MemoryKit.open(
            settings=Settings(
                home=tmp_path / "home",
                ledger_url=ledger_url,
                journal_key=SHARED_KEY,
                agent=EACH_TURN,
                capture=CapturePolicy(background=False),
                summary=SummaryPolicy(backoff=0),
                limits=LimitPolicy(**limits),
            ),
            model=None if script is None else ScriptedChatModel(script=script),
            embedder=None,
            index=InMemoryVectorIndex(),
            clock=FrozenClock(NOON),
            options=OpenOptions(new_id=SequentialIds()),
        )
        request.addfinalizer(kit.close)
        return kit

    return open_one


def tell(kit: MemoryKit, text: str = FISH, scope: Scope = EVA, **fields: Any) -> None:
    kit.add_messages([said(text, name=scope.user, **fields)], scope=scope)


def places(kit: MemoryKit) -> int:
    with kit.context.parts().archive.database.read() as connection:
        return counts(connection)["partitions"]


SCRIPT = {
    "DigestAnswer": digest("personal:eva", summary="Eva keeps goldfish."),
    "ProposalAnswer": proposal(create("Eva keeps goldfish in Oslo.", 1, FISH)),
}
PATIENCE = 60
PER_CALL = Limits(tokens_per_day=1)
TURN = [{"id": "1", "role": "user", "content": FISH}, {"id": "2", "role": "assistant", "content": "Noted."}]


def until(true: Callable[[], object]) -> None:
    """Wait until this is so; the test's own patience is all that ends it."""
    end, pause = time.monotonic() + PATIENCE, Event()
    while not true():
        assert time.monotonic() < end, "it takes too long"
        pause.wait(0.05)


# ------------------------------------------------------------------------------------------ what is held


def test_an_operator_sees_all_tenants_with_what_they_hold(opened: Open) -> None:
    """Whoever runs a memory for many must know for whom, and who fills it."""
    kit = opened()
    tell(kit)
    tell(kit, "I like chess.", thread="games")
    tell(kit, "I row.", TOM)
    tell(kit, "I live in Paris.", ANN)
    kit.summarize(scope=EVA, close=True)
    acme, default = kit.admin.tenants()
    assert (acme.tenant, acme.users, acme.agents, acme.threads, acme.messages) == ("acme", 2, 2, 3, 3)
    assert acme.memories == len(kit.memories(scope=EVA)) > 0
    assert (default.tenant, default.users, default.messages, default.memories) == ("default", 1, 1, 0)
    assert [(each.user, each.agents, each.threads, each.messages) for each in kit.admin.users("acme")] == [
        ("eva", 1, 2, 2),
        ("tom", 1, 1, 1),
    ]
    assert [(each.agent, each.users, each.messages) for each in kit.admin.agents("acme")] == [
        ("remy", 1, 2),
        ("rosa", 1, 1),
    ]
    held = {(each.thread, each.agent, each.messages) for each in kit.admin.threads(Subject(tenant="acme", user="eva"))}
    assert held == {("main", "remy", 1), ("games", "remy", 1)}
    assert kit.admin.users("nobody") == ()
    assert kit.admin.threads(Subject(tenant="acme", user="ann")) == ()


def test_a_list_costs_one_statement_however_many_tenants_there_are(opened: Open) -> None:
    """One statement for each of ten thousand users would take minutes."""
    kit = opened()
    for number in range(5):
        tell(kit, scope=EVA.evolve(user=f"user {number}"))
    lists = (kit.admin.tenants, lambda: kit.admin.users("acme"), lambda: kit.admin.agents("acme"))
    for look in (*lists, lambda: kit.admin.usage("acme", since=NOON)):
        with statements(kit) as run:
            look()
        assert len([each for each in run if each.startswith("SELECT")]) == 1


def test_what_is_stored_is_counted_with_attachments_and_less_after_an_erasure(opened: Open) -> None:
    """A figure that only grows would refuse whoever has cleaned up."""
    kit = opened()
    tell(kit, message_id="first")
    (first,) = kit.admin.users("acme")
    picture = {"type": "image", "base64": base64.b64encode(PNG).decode(), "mime_type": "image/png"}
    kit.add_messages([{"id": "second", "role": "user", "content": [picture]}], scope=EVA)
    (both,) = kit.admin.users("acme")
    assert both.stored_bytes > first.stored_bytes + len(PNG) > len(FISH)
    assert both.stored_bytes == kit.admin.usage("acme", since=NOON).total.message_bytes
    kit.admin.erase(EVA, message_ids=["second"])
    assert kit.admin.users("acme")[0].stored_bytes == first.stored_bytes
    kit.admin.erase(Subject(tenant="acme", user="eva"))
    assert kit.admin.tenants() == ()


# ------------------------------------------------------------------------------------------------ limits


def test_messages_over_the_limit_of_a_minute_are_refused_until_it_is_over(opened: Open) -> None:
    """One user's loop must not fill the ledger of all."""
    kit = opened(user=Limits(messages_per_minute=2))
    tell(kit)
    tell(kit)
    with pytest.raises(RateLimitError, match="This user has used up its 2 messages a minute") as refused:
        tell(kit)
    assert (refused.value.retryable, refused.value.retry_at) == (True, NOON + timedelta(minutes=1))
    assert (refused.value.whose, refused.value.limit) == ("user", "messages_per_minute")
    for door in (
        lambda: kit.capture([{"id": "1", "role": "user", "content": FISH}], scope=EVA),
        lambda: kit.save("fish", FISH, scope=EVA),
    ):
        with pytest.raises(RateLimitError):
            door()
    tell(kit, scope=TOM)
    clock_of(kit).move(timedelta(minutes=1))
    tell(kit)
    assert len(kit.messages("main", scope=EVA)) == 3


def test_a_limit_holds_over_all_processes_and_all_users_of_a_tenant(opened: Open) -> None:
    """A limit for each process would be as many limits as there are processes."""
    one, other = opened(tenant=Limits(messages_per_minute=2)), opened(tenant=Limits(messages_per_minute=2))
    tell(one)
    tell(other, scope=TOM)
    for kit in (one, other):
        with pytest.raises(RateLimitError, match="This tenant has used up its 2 messages"):
            tell(kit)
        tell(kit, scope=ANN.evolve(user=f"ann {kit is one}"))


def test_a_tenant_may_have_limits_of_its_own(opened: Open) -> None:
    """Not everybody pays for the same."""
    kit = opened(tenant=Limits(messages_per_minute=1), tenants={"acme": Limits(messages_per_minute=2)})
    tell(kit)
    tell(kit)
    with pytest.raises(RateLimitError, match="2 messages"):
        tell(kit)
    tell(kit, scope=ANN)
    with pytest.raises(RateLimitError, match="1 messages"):
        tell(kit, scope=ANN)


def test_who_stores_too_much_is_refused_until_something_is_erased(opened: Open) -> None:
    """Disk is what a tenant costs when it is silent."""
    kit = opened(tenant=Limits(stored_bytes=100))
    tell(kit, message_id="first")
    with pytest.raises(LimitError, match=r"100 stored bytes\..Erase") as refused:
        tell(kit)
    assert not refused.value.retryable
    kit.admin.erase(EVA, message_ids=["first"])
    clock_of(kit).move(timedelta(minutes=1))
    tell(kit)


def test_no_model_is_called_for_who_has_used_up_the_tokens_of_the_day(opened: Open) -> None:
    """A model bills for each token, and whoever pays wants to know the most that it can be. A block that was begun is finished."""
    calls: list[str] = []

    def answering(answer: Any) -> Callable[[ModelCall], Any]:
        def step(call: ModelCall) -> Any:
            calls.append(call.text)
            return answer

        return step

    script = {name: answering(answer) for name, answer in SCRIPT.items()}
    kit = opened(script, user=PER_CALL)
    tell(kit)
    report = kit.summarize(scope=EVA, close=True)
    assert len(report.usage.calls) == len(calls) >= 2
    tell(kit, "I keep goldfish in Oslo, and a cat.", minutes=1)
    before = len(calls)
    with pytest.raises(RateLimitError, match="tokens a day") as refused:
        kit.summarize(scope=EVA, close=True)
    assert refused.value.retry_at == datetime(2025, 3, 5, tzinfo=UTC)
    assert len(calls) == before
    assert kit.work.list(scope=EVA, states=["pending"]), "it waits"
    clock_of(kit).move(timedelta(days=1))
    kit.summarize(scope=EVA, close=True)
    assert len(calls) > before


async def test_awaited_calls_of_models_are_bounded_likewise(opened: Open) -> None:
    """The async twin is another driver of the same work."""
    kit = opened(SCRIPT, user=PER_CALL)
    tell(kit)
    await kit.asummarize(scope=EVA, close=True)
    tell(kit, minutes=1)
    with pytest.raises(RateLimitError):
        await kit.asummarize(scope=EVA, close=True)


def test_a_job_that_a_limit_stops_is_due_when_the_limit_allows_it(opened: Open) -> None:
    """A worker that tried again every second would burn the machine, and one that gave up would lose the day."""
    kit = opened(SCRIPT, user=PER_CALL)
    tell(kit)
    kit.summarize(scope=EVA, close=True)
    assert kit.capture(TURN, scope=EVA).blocks
    with pytest.raises(RateLimitError):
        kit.drain()
    (job,) = kit.admin.jobs()
    assert (job.due_at, job.attempts) == (datetime(2025, 3, 5, tzinfo=UTC), 0)
    assert "tokens a day" in job.reason
    queue = kit.admin.health().queue
    assert queue.refused
    assert queue.reason == job.reason


def refused(kit: MemoryKit) -> None:
    """Have a job wait until the next day, as a limit of this kit says."""
    tell(kit)
    kit.summarize(scope=EVA, close=True)
    kit.capture(TURN, scope=EVA)
    with pytest.raises(RateLimitError):
        kit.drain()


def test_what_a_limit_refused_is_drained_once_the_limit_is_raised(opened: Open) -> None:
    """Whoever raises a limit means today; and until then, no drain lets one user's limit keep the work of others from it."""
    kit = opened(SCRIPT, user=PER_CALL)
    refused(kit)
    kit.capture(TURN, scope=TOM)
    report = kit.drain()
    assert len(report.blocks) == 1, "Tom's"
    assert (report.pending, "tokens a day" in "".join(report.degraded)) == (1, True)
    raised = opened(SCRIPT, user=Limits(tokens_per_day=10**9))
    assert len(raised.drain().blocks) == 1
    assert (raised.admin.jobs(), raised.admin.health().queue.reason) == ((), "")


def test_a_worker_with_a_raised_limit_takes_what_the_old_one_refused(opened: Open) -> None:
    """A restart is what an operator does, and the message says so; no one knows of other commands."""
    refused(opened(SCRIPT, user=PER_CALL))
    kit, stop = opened(SCRIPT), Event()
    thread = Thread(target=kit.work.serve, args=(stop,), kwargs={"concurrency": 1})
    thread.start()
    try:
        until(lambda: not kit.admin.jobs())
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert kit.work.list(scope=EVA, states=["pending"]) == ()


def test_what_a_limit_refused_says_so_until_it_is_done_and_no_longer(opened: Open) -> None:
    """Health must not name a limit that stops no one any more."""
    refused(opened(SCRIPT, user=PER_CALL))
    kit = opened(SCRIPT)
    assert kit.admin.health().queue.refused
    kit.summarize(scope=EVA, close=True)
    assert kit.admin.jobs() == ()
    kit.capture([*TURN, *({**each, "id": f"{each['id']} later"} for each in TURN)], scope=EVA)
    assert [(job.kind, job.reason) for job in kit.admin.jobs()] == [("summarize", "")]
    assert not kit.admin.health().queue.refused


def test_a_limit_costs_one_read_and_none_where_none_is_set(opened: Open) -> None:
    """Whoever is refused and calls again and again must not slow anybody down."""
    limits = {"tenant": Limits(messages_per_minute=9, stored_bytes=10**9), "user": Limits(messages_per_minute=1)}
    free, bounded, costs = opened(), opened(**limits), list[int]()
    for kit, scope in ((free, ANN), (bounded, EVA)):
        tell(kit, "Hello.", scope)  # statements are put together
        with statements(kit) as run:
            tell(kit, "Hello.", scope.evolve(user=f"{scope.user} 2"))
        costs.append(len(run))
    assert costs[1] == costs[0] + 1
    for most in (1, 0):  # the second time, it is remembered
        with statements(bounded) as run, pytest.raises(RateLimitError):
            tell(bounded, "Hello.", EVA)
        assert len(run) == most


def test_a_turn_that_a_limit_refused_is_recorded_by_the_next_one(opened: Open) -> None:
    """The agent has answered all the same; what was said must not be lost for ever."""
    kit = opened(user=Limits(messages_per_minute=1))
    turns = [{"id": f"{n}", "role": "user", "content": f"I have {n} fish."} for n in range(1, 4)]
    kit.capture(turns[:1], scope=EVA)
    with pytest.raises(RateLimitError):
        kit.capture(turns[:2], scope=EVA)
    (missing,) = kit.admin.unrecorded()
    assert (missing.thread, missing.refused) == ("main", True)
    assert kit.context.parts().unrecorded.by_state(Probe(2)) == {"failed": 0, "refused": 1}, "nobody is woken by it"
    clock_of(kit).move(timedelta(minutes=1))
    kit.capture(turns, scope=EVA)
    assert len(kit.messages("main", scope=EVA)) == 3
    assert kit.admin.unrecorded() == ()


# ------------------------------------------------------------------------------------------------- usage


def test_the_usage_report_says_what_each_user_has_used_since(opened: Open) -> None:
    """Whoever writes the bill needs messages, bytes and tokens, by user, and what a limit kept out."""
    kit = opened(SCRIPT, user=Limits(messages_per_minute=1))
    tell(kit)
    report = kit.summarize(scope=EVA, close=True)
    with pytest.raises(RateLimitError):
        tell(kit)
    tell(kit, "I row.", TOM)
    found = kit.admin.usage("acme", since=NOON)
    eva, tom = found.users
    assert (eva.user, eva.messages, eva.refused, eva.calls) == ("eva", 1, 1, len(report.usage.calls))
    assert (eva.input_tokens, eva.output_tokens) == (report.usage.input_tokens, report.usage.output_tokens)
    assert eva.message_bytes == kit.admin.users("acme")[0].stored_bytes
    assert (tom.user, tom.messages, tom.calls, tom.refused) == ("tom", 1, 0, 0)
    assert (found.total.messages, found.total.calls) == (2, eva.calls)
    clock_of(kit).move(timedelta(days=1))
    assert kit.admin.usage("acme", since=NOON + timedelta(days=1)).total.messages == 0
    with pytest.raises(InputError, match="zone"):
        kit.admin.usage("acme", since=datetime(2025, 3, 4))  # noqa: DTZ001 - that is the point


def test_what_a_limit_refuses_in_one_process_another_one_reports_while_both_go_on(opened: Open) -> None:
    """An operator reads the report by a command, and asks why a customer is complaining now."""
    service, command = opened(user=Limits(messages_per_minute=1)), opened()
    tell(service)
    for _ in range(3):
        with pytest.raises(RateLimitError):
            tell(service)
    until(lambda: command.admin.usage("acme", since=NOON).total.refused == 3)


def test_whoever_is_refused_is_counted_and_names_that_were_made_up_fill_no_ledger(opened: Open) -> None:
    """The log has each refusal, so the report must; and who is refused can call themselves anything, a thousand times."""
    kit = opened(tenant=Limits(messages_per_minute=1))
    tell(kit)
    before = places(kit)
    refused = [EVA, EVA.evolve(agent="rosa"), TOM, *(TOM.evolve(user=f"stranger {n}") for n in range(9))]
    for scope in refused:
        with pytest.raises(RateLimitError):
            tell(kit, scope=scope)
    found = kit.admin.usage("acme", since=NOON)
    assert {each.user: each.refused for each in found.users} == {None: 10, "eva": 2}
    assert found.total.refused == len(refused)
    assert places(kit) == before + 1, "one of the tenant"
    clock_of(kit).move(timedelta(minutes=1))
    tell(kit, scope=TOM)
    with pytest.raises(RateLimitError):
        tell(kit, scope=TOM)
    found = kit.admin.usage("acme", since=NOON)
    assert {each.user: each.refused for each in found.users} == {None: 10, "eva": 2, "tom": 1}
    assert healthy(kit)
    kit.admin.erase(Tenant(tenant="acme"))
    with pytest.raises(RateLimitError):
        tell(kit, scope=TOM)  # remembered until the minute is over
    assert kit.admin.usage("acme", since=NOON).users == ()
    assert kit.admin.tenants() == ()


def test_a_call_of_a_model_that_outlives_its_person_is_on_the_bill_of_the_tenant(opened: Open) -> None:
    """The provider bills for it, whoever was erased meanwhile."""

    def erased_meanwhile(_: ModelCall) -> Any:
        kit.admin.erase(Subject(tenant="acme", user="eva"))
        return SCRIPT["DigestAnswer"]

    kit = opened({"DigestAnswer": erased_meanwhile, "ProposalAnswer": SCRIPT["ProposalAnswer"]})
    tell(kit)
    tell(kit, "I row.", TOM)
    with pytest.raises(NotFoundError):
        kit.summarize(scope=EVA, close=True)
    calls = {each.user: each.calls for each in kit.admin.usage("acme", since=NOON).users}
    assert calls == {None: 2, "tom": 0}


def test_refusals_that_cannot_be_written_now_are_written_later(opened: Open) -> None:
    """A ledger that is away for a moment would make a bill too small."""
    kit = opened(user=Limits(messages_per_minute=1))
    tell(kit)
    with pytest.raises(RateLimitError):
        tell(kit)

    def fail(*_: object) -> None:
        raise LedgerUnavailableError("It is away.")

    engine = kit.context.parts().archive.database.engine
    event.listen(engine, "before_cursor_execute", fail)
    with pytest.raises(LedgerUnavailableError):
        kit.admin.usage("acme", since=NOON)
    event.remove(engine, "before_cursor_execute", fail)
    assert kit.admin.usage("acme", since=NOON).total.refused == 1


# ------------------------------------------------------------------------------------------------ export


def test_a_person_can_read_all_that_is_known_of_them_and_where_it_came_from(opened: Open, tmp_path: Path) -> None:
    """The law gives them the right to, and a list of ids would be no answer."""
    kit = opened(SCRIPT)
    tell(kit, message_id="fish")
    tell(kit, "Tom's secret.", TOM)
    kit.summarize(scope=EVA, close=True)
    done = kit.admin.export(Subject(tenant="acme", user="eva"), tmp_path / "eva.json")
    text = (tmp_path / "eva.json").read_text(encoding="utf-8")
    told = json.loads(text)
    assert (told["tenant"], told["user"]) == ("acme", "eva")
    place = next(each for each in told["places"] if "memories" in each)
    (memory,) = place["memories"]
    assert memory["content"] == "Eva keeps goldfish in Oslo."
    assert [(each["message_id"], each["quote"]) for each in memory["evidence"]] == [("fish", FISH)]
    assert place["messages"][0]["content"] == FISH
    assert place["blocks"][0]["summary"]
    assert {each["event"]["record_id"] for each in place["events"]} >= {memory["memory_id"]}
    assert "Tom" not in text
    assert (done.counts["messages"], done.counts["memories"]) == (1, 1)
    assert (tmp_path / "eva.json").stat().st_mode & 0o077 == 0


def test_every_version_of_a_memory_is_exported_and_no_forgotten_word(opened: Open, tmp_path: Path) -> None:
    """What somebody took back is shown by no door, not even this one."""
    kit = opened()
    kept = kit.save("fish", FISH, scope=EVA).memory
    kit.save("fish", FISH, scope=EVA)
    gone = kit.save("code", "The door code is swordfish.", scope=EVA).memory
    assert kept
    assert gone
    kit.forget(gone.memory_id, scope=EVA)
    kit.admin.export(Subject(tenant="acme", user="eva"), tmp_path / "eva.json")
    text = (tmp_path / "eva.json").read_text(encoding="utf-8")
    (place,) = json.loads(text)["places"]
    (memory,) = (each for each in place["memories"] if each["memory_id"] == kept.memory_id)
    assert [each["version"] for each in memory["earlier"]] == [1]
    assert memory["version"] == 2
    assert "swordfish" not in text


def test_a_tenant_is_exported_line_by_line_and_the_last_line_counts_them(opened: Open, tmp_path: Path) -> None:
    """Whoever leaves takes everything along, however much it is; half a file must not pass for a whole one."""
    kit = opened()
    for scope in (EVA, TOM, ANN):
        tell(kit, f"I am {scope.user}.\ud800", scope)
    seen: list[Progress] = []
    done = kit.admin.export(Tenant(tenant="acme"), tmp_path / "acme.jsonl", progress=seen.append)
    lines = [json.loads(line) for line in (tmp_path / "acme.jsonl").read_text(encoding="utf-8").splitlines()]
    assert (lines[0]["kind"], lines[0]["tenant"], lines[-1]["kind"]) == ("export", "acme", "end")
    assert [line["content"] for line in lines if line["kind"] == "messages"] == ["I am eva.\ud800", "I am tom.\ud800"]
    assert {line["place"]["user"] for line in lines[1:-1]} == {"eva", "tom"}
    assert lines[-1]["counts"] == done.counts
    assert (seen[-1].done, seen[-1].total) == (2, 2)


def test_an_export_that_is_stopped_leaves_nothing_and_none_writes_over_a_file(opened: Open, tmp_path: Path) -> None:
    """A file that looks whole and is not is worse than none."""
    kit = opened()
    tell(kit)
    file = tmp_path / "acme.jsonl"
    with pytest.raises(CancelledError):
        kit.admin.export(Tenant(tenant="acme"), file, cancel=lambda: True)
    assert not [path for path in tmp_path.iterdir() if "acme" in path.name]
    kit.admin.export(Tenant(tenant="acme"), file)
    with pytest.raises(FileFormatError, match="exists already"):
        kit.admin.export(Tenant(tenant="acme"), file)
    with pytest.raises(NotFoundError):
        kit.admin.export(Subject(user="nobody"), tmp_path / "nobody.json")
    assert not (tmp_path / "nobody.json").exists()


# ----------------------------------------------------------------------------------------------- erasure


@pytest.mark.requirement("X7")
def test_a_tenant_goes_whole_with_its_names_and_others_stay(opened: Open) -> None:
    """A customer who leaves leaves nothing, and takes nobody along."""
    kit = opened()
    for scope in (EVA, TOM, ANN):
        tell(kit, f"{scope.user} keeps goldfish in Oslo.", scope)
        kit.save("fish", f"{scope.user} feeds goldfish.", scope=scope)
        kit.summarize(scope=scope, close=True)
    kit.remember_self("I am the agent of acme.", scope=EVA)
    head = kit.memories(scope=TOM)[0]
    change = MemoryChange(memory=head.evolve(version=head.version + 1), expected_version=head.version, action="refine")
    deed = ChangeSet(operation_id="deed", actor="eva", recorded_at=NOON, at_home=True, changes=(change,))
    kit.context.parts().archive.commit(deed)
    kit.admin.erase(Subject(tenant="acme", user="tom"))  # before: nameless rows, in which others may have acted
    receipt = kit.admin.erase(Tenant(tenant="acme"))
    assert receipt.complete
    assert [each.tenant for each in kit.admin.tenants()] == ["default"]
    for name in ("acme", "eva", "tom"):
        assert name not in everything(kit)
    assert kit.recall("goldfish", scope=ANN).memories
    assert healthy(kit)
    with pytest.raises(NotFoundError, match="of tenant 'acme'"):
        kit.admin.erase(Tenant(tenant="acme"))
    with pytest.raises(InputError, match="erased whole"):
        kit.admin.erase(Tenant(tenant="default"), thread="main")


@pytest.mark.requirement("X7")
def test_the_erasure_of_a_tenant_that_was_stopped_anywhere_is_finished_later(opened: Open) -> None:
    """Of ten thousand users half would be left, and nobody would know which half."""

    class StoppedError(Exception):
        """The process ends here."""

    def stop(name: str) -> None:
        if name == "erase.rows_gone":
            raise StoppedError

    kit = opened()
    tell(kit)
    listen(stop)
    try:
        with pytest.raises(StoppedError):
            kit.admin.erase(Tenant(tenant="acme"))
    finally:
        listen(None)
    other = opened()
    assert other.admin.stats()["erasures_unfinished"] == 1
    (receipt,) = other.admin.resume()
    assert receipt.complete
    assert "goldfish" not in everything(other)
