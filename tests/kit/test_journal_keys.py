"""The key of the journal: whoever lacks it reads and does not write, and a new one takes over while agents go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from sqlalchemy import delete, select, update

from remegraph import MemoryKit, Scope, Settings, SetupError
from remegraph.errors import JournalKeyError
from remegraph.kit.admin.doctor import diagnose
from remegraph.ledger.journal import Journal, add_key, keys_in
from remegraph.ledger.schema import events, partitions, seals
from remegraph.models import AuditHead, Mismatch, Subject
from remegraph.testing import InMemoryVectorIndex

pytestmark = pytest.mark.requirement("B14")

ANN = Scope(user="ann", agent="remy")
OLD, NEW = "the old key of these tests", "the new key of these tests"

Open = Callable[..., MemoryKit]


@pytest.fixture
def opened(ledger_url: str, tmp_path: Path) -> Open:
    """Opens a kit on one ledger with some keys, each from a home of its own."""

    def opened(*keys: str, home: str = "home", **more: object) -> MemoryKit:
        given = {"journal_key": keys[0], "former_journal_keys": keys[1:]} if keys else {}
        settings = Settings.model_validate({"home": tmp_path / home, "ledger_url": ledger_url, **given, **more})
        return MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex())

    return opened


def contents(kit: MemoryKit) -> set[str]:
    return {memory.content for memory in kit.memories(scope=ANN)}


def forged(kit: MemoryKit, *heads: AuditHead) -> list[Mismatch]:
    """What does not fit in the journal; the index is that of the kit alone."""
    return [each for each in kit.admin.verify(heads=heads).differences if each.where == "journal"]


def noted(kit: MemoryKit) -> list[tuple[str, str]]:
    """What the doctor says of the journal."""
    return [(each.severity, each.what) for each in kit.admin.examine().findings if each.check == "journal"]


WRITES: Mapping[str, Callable[[MemoryKit], object]] = {
    "add_messages": lambda kit: kit.add_messages(["I live in Lisbon."], scope=ANN),
    "capture": lambda kit: kit.capture(["I live in Lisbon."], scope=ANN),
    "save": lambda kit: kit.save("city", "Ann lives in Lisbon.", scope=ANN),
    "forget": lambda kit: kit.forget(kit.memories(scope=ANN)[0].memory_id, scope=ANN),
    "summarize": lambda kit: kit.summarize(scope=ANN, close=True),
    "drain": lambda kit: kit.drain(),
}


@pytest.mark.parametrize("verb", WRITES)
def test_a_process_with_another_key_reads_and_refuses_to_write(opened: Open, verb: str) -> None:
    """What it wrote would look like forgery to all others; what is remembered is there all the same."""
    with opened(OLD) as kit:
        kit.save("drink", "Ann likes tea.", scope=ANN)
        kit.add_messages(["I like tea."], scope=ANN)
        before = kit.admin.stats()
    with opened(NEW) as other:
        assert contents(other) == {"Ann likes tea."}
        assert other.recall("tea", scope=ANN).memories
        with pytest.raises(JournalKeyError, match=r"another key than those at hand.*Put the key back") as caught:
            WRITES[verb](other)
        assert not caught.value.retryable
    with opened(OLD) as kit:
        assert {**kit.admin.stats()} == {**before, "reviews": 0}
        assert forged(kit) == []


def test_two_homes_with_keys_of_their_own_do_not_both_write_one_ledger(opened: Open) -> None:
    """Each would call what the other wrote forged, for ever."""
    with (
        opened(OLD) as first,
        opened(NEW, home="other") as second,
    ):  # nothing is sealed yet: the last one to open decides
        with pytest.raises(JournalKeyError):
            first.save("drink", "Ann likes tea.", scope=ANN)
        second.save("drink", "Ann likes cake.", scope=ANN)
        assert forged(second) == []


def test_on_a_shared_ledger_no_key_is_made_in_silence(postgres_url: str, tmp_path: Path) -> None:
    """A key that one process invents is missing in all others."""
    settings = Settings(home=tmp_path, ledger_url=postgres_url)
    with pytest.raises(JournalKeyError, match="remegraph admin key make"):
        MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex())
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_is_lost_is_not_replaced_in_silence(opened: Open, tmp_path: Path) -> None:
    """A fresh key would look like the old one, until somebody wants to prove something."""
    with opened(OLD) as kit:
        kit.save("drink", "Ann likes tea.", scope=ANN)
    with opened() as kit:
        assert contents(kit) == {"Ann likes tea."}
        with pytest.raises(JournalKeyError):
            kit.save("drink", "Ann likes cake.", scope=ANN)
    assert not (tmp_path / "home" / "journal.key").exists()


def test_a_key_in_the_home_takes_over_while_processes_run_that_have_not_read_it(opened: Open, tmp_path: Path) -> None:
    """A file that a cluster exchanges under its processes, and none is started again for it."""
    home = tmp_path / "home"
    add_key(home)
    with opened() as service:
        service.save("drink", "Ann likes tea.", scope=ANN)
        add_key(home)
        with opened() as job:
            assert job.admin.seal_journal("every spring") == ()
        service.save("cake", "Ann likes cake.", scope=ANN)
        assert forged(service) == []
        first, *_ = keys_in(home)
    with opened(first.decode(), *(each.decode() for each in keys_in(home)[1:2])) as later:
        assert forged(later) == []


def test_a_new_key_takes_over_while_others_go_on(opened: Open, tmp_path: Path) -> None:
    """Keys must be changed now and then; a service of many processes cannot stop for it."""
    with opened(OLD) as kit:
        kit.save("drink", "Ann likes tea.", scope=ANN)
        *_, head = kit.governance.audit(scope=ANN)
        kit.governance.export_audit(tmp_path / "before", scope=ANN)
    with opened(NEW, OLD) as one, opened(NEW, OLD, home="other") as other, opened(OLD, home="late") as late:
        one.save("cake", "Ann likes cake.", scope=ANN)  # with the old key, as the ledger says
        late.save("city", "Ann lives in Lisbon.", scope=ANN)
        assert one.admin.seal_journal("every spring") == ()
        other.save("pet", "Ann has a dog.", scope=ANN)
        with pytest.raises(JournalKeyError):
            late.save("car", "Ann has a car.", scope=ANN)
        assert isinstance(head, AuditHead)
        for kit in (one, other):
            assert forged(kit, head) == []
            assert kit.governance.verify_export(tmp_path / "before") == ()
            actions = [
                entry.event.action for entry in kit.governance.audit(scope=ANN) if not isinstance(entry, AuditHead)
            ]
            assert actions.count("seal_journal") == 1
    with opened(NEW) as alone:
        alone.save("car", "Ann has a car.", scope=ANN)
        assert forged(alone), "what the old key has sealed needs it"


def test_the_file_of_a_home_has_the_newer_keys_and_the_settings_those_before_them(opened: Open, tmp_path: Path) -> None:
    """An operator who moves the new key into the home and keeps the old one where it is has lost neither."""
    with opened(OLD) as kit:
        kit.save("drink", "Ann likes tea.", scope=ANN)
    with opened(NEW, OLD) as kit:
        kit.admin.seal_journal()
    file = tmp_path / "home" / "journal.key"
    file.parent.mkdir(exist_ok=True)
    file.write_text(NEW, encoding="ascii")
    file.chmod(0o600)
    with opened(former_journal_keys=(OLD,)) as kit:
        kit.save("cake", "Ann likes cake.", scope=ANN)
        assert forged(kit) == []
        add_key(tmp_path / "home")
        with opened(former_journal_keys=(OLD,)) as job:
            job.admin.seal_journal("every spring")
        kit.save("pet", "Ann has a dog.", scope=ANN)
        assert forged(kit) == []


def test_a_former_key_that_is_missing_is_told_as_that(opened: Open) -> None:
    """An operator who drops it from the settings reads of 1,225 forged events, and rebuilds the index in vain."""
    third = "the third key of these tests"
    with opened(OLD) as kit:
        kit.save("drink", "Ann likes tea.", scope=ANN)
        kit.save("cake", "Ann likes cake.", scope=ANN)
    with opened(NEW, OLD) as kit:
        kit.admin.seal_journal()
        kit.save("pet", "Ann has a dog.", scope=ANN)
    with opened(third, NEW, OLD) as kit:
        kit.admin.seal_journal()
        kit.save("city", "Ann lives in Lisbon.", scope=ANN)
        assert forged(kit) == []
    for keys, lost in (((third, NEW), 1), ((third, OLD), 1), ((third,), 2)):
        with opened(*keys) as kit:
            told = [each.problem.partition(" fit no key at hand: ") for each in forged(kit)]
            assert [cause for _, _, cause in told] == ["a former key is missing, or they were changed"] * lost
            assert "former_journal_keys" in next(
                each.cure for each in kit.admin.examine().findings if each.check == "journal"
            )


def test_a_key_that_seals_already_takes_over_from_nobody(opened: Open) -> None:
    """Who forgot to give the new one would believe that it is done."""
    with opened(OLD) as kit:
        kit.save("drink", "Ann likes tea.", scope=ANN)
        with pytest.raises(SetupError, match=r"seals the journal already.*remegraph admin key make"):
            kit.admin.seal_journal("every spring")
        assert "seal_journal" not in [
            each.event.action for each in kit.governance.audit(scope=ANN) if not isinstance(each, AuditHead)
        ]


def test_an_old_key_that_leaked_changes_nothing_beneath_the_new_one(opened: Open) -> None:
    """Else nobody could be rid of it: what it sealed lies under a seal that it cannot make."""
    with opened(OLD) as kit:
        kit.save("drink", "Ann likes tea.", scope=ANN)
    with opened(NEW, OLD) as kit:
        kit.admin.seal_journal()
        database, journal = kit.context.parts().archive.database, kit.context.parts().archive.journal
        forger = Journal([OLD.encode()], journal._salt.decode())
        with database.write() as connection:
            connection.execute(update(events).where(events.c.action == "create").values(actor="mallory"))
            *before, sealed = connection.execute(select(events).order_by(events.c.id)).all()
            forger._chain_anew(connection, sealed.partition_id, salted=True, key=forger._sealing)
            connection.execute(update(events).where(events.c.id == sealed.id).values(chain=sealed.chain))
            connection.execute(update(partitions).values(journal_head=sealed.chain))
        assert before
        (mismatch,) = forged(kit)
        assert mismatch.record_id == str(sealed.id)


def test_a_seal_covers_no_tampering_in_silence(opened: Open) -> None:
    """To put the alarm out is not to put the fire out: what did not fit is said for ever."""
    with opened(OLD) as kit:
        kit.save("drink", "Ann likes tea.", scope=ANN)
    with opened(NEW, OLD) as kit:
        with kit.context.parts().archive.database.write() as connection:
            connection.execute(update(events).values(actor="mallory"))
        with pytest.raises(SetupError, match=r"is inconsistent in 4 places.*former_journal_keys.*despite"):
            kit.admin.seal_journal()
        assert forged(kit)
        assert len(kit.admin.seal_journal("looked at it", despite=True)) == 4
        assert forged(kit) == []
        ((severity, what),) = noted(kit)
        assert severity == "note"
        assert "looked at it (did not fit: 4 places" in what


def test_a_lost_key_is_replaced_on_demand_and_the_journal_says_so(opened: Open) -> None:
    """Memory goes on; what was there before is not proven, and never said to be."""
    with opened(OLD) as kit:
        kit.save("drink", "Ann likes tea.", scope=ANN)
    with opened(NEW) as kit:
        with pytest.raises(SetupError, match="cannot be checked"):
            kit.admin.seal_journal()
        kit.admin.seal_journal("the disk was lost", despite=True)
        kit.save("cake", "Ann likes cake.", scope=ANN)
        assert forged(kit) == []
        assert "the disk was lost" in noted(kit)[0][1]


def test_a_journal_whose_seal_is_gone_is_not_taken_for_an_old_one(opened: Open) -> None:
    """Whoever deletes one row would have all of the past vouched for."""
    with opened(OLD) as kit:
        kit.save("drink", "Ann likes tea.", scope=ANN)
        with kit.context.parts().archive.database.write() as connection:
            connection.execute(update(events).values(actor="mallory"))
            connection.execute(delete(seals))
    with opened(OLD) as kit:
        with pytest.raises(JournalKeyError):
            kit.save("cake", "Ann likes cake.", scope=ANN)
        assert forged(kit)


def test_what_was_erased_stays_known_under_a_new_key(opened: Open) -> None:
    """An import that is repeated must not bring back whom nobody may remember."""
    told = {"id": "m1", "role": "user", "content": "I live in Lisbon."}
    with opened(OLD) as kit:
        kit.add_messages([told, "Hello."], scope=ANN)
        kit.admin.erase(Subject(user="ann"))
    with opened(NEW, OLD) as kit:
        assert kit.add_messages([told], scope=ANN).erased == 1
        kit.admin.seal_journal()
        assert kit.add_messages([told], scope=ANN).erased == 1


def test_a_new_key_changes_no_placeholder(opened: Open) -> None:
    """The same value gets the same placeholder wherever it comes in, this year and next."""
    told = {"id": "m1", "role": "user", "content": "Write to ann@example.org."}
    with opened(OLD, redact={"email"}) as kit:
        kit.add_messages([told], scope=ANN)
    with opened(NEW, OLD, redact={"email"}) as kit:
        kit.admin.seal_journal()
        assert kit.add_messages([told], scope=ANN).known == 1


def test_a_key_file_that_was_written_by_hand_is_read_as_before(tmp_path: Path) -> None:
    """`echo secret > journal.key` ends with a line feed, and earlier releases took all of it."""
    (tmp_path / "journal.key").write_text("a secret by hand\n", encoding="ascii")
    settings = Settings(home=tmp_path)
    for _ in range(2):
        with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
            kit.save("drink", "Ann likes tea.", scope=ANN)
            assert forged(kit) == []
    assert diagnose(settings, embedder=None, index=InMemoryVectorIndex()).checks
