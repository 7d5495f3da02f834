from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from remegraph import MemoryKit, Scope
from remegraph.ledger.connections import LEDGER
from remegraph.testing import InMemoryVectorIndex
from tests.cli.conftest import Run
from tests.reliability.released import FIRST, WIDER, later, make, wider
from tests.talk import SHARED_KEY

ME = Scope(user="me")


def test_a_backup_is_made_checked_and_restored_on_the_command_line(run: Run, tmp_path: Path) -> None:
    """A line of a cron job, and one that is typed on a bad day, with the manual out of reach."""
    with MemoryKit.open(tmp_path / "home", model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        kit.add_messages(["I live in Lisbon."], scope=ME)
    backup, other = str(tmp_path / "backup"), str(tmp_path / "other")
    assert "1 message," in run("backup", "make", backup).stdout
    taken = json.loads(run("backup", "check", backup, "--json").stdout)
    assert taken["counts"]["messages"] == 1
    assert "remegraph admin rebuild" in run("backup", "restore", backup, "--home", other).stdout
    assert "I live in Lisbon." in run("--home", other, "memory", "messages").stdout
    again = run("backup", "restore", backup, "--home", other)
    assert again.exit_code == 1
    assert "not empty" in again.stderr


def test_the_doctor_tells_a_script_by_its_exit_code(run: Run) -> None:
    """A monitor reads codes and JSON, not sentences."""
    found = run("doctor", "--json")
    assert found.exit_code == 1
    told = json.loads(found.stdout)
    assert told["healthy"] is False
    assert [each["check"] for each in told["findings"]] == ["home"]
    assert "There is no memory" in run("doctor").stdout


@pytest.mark.slow
@pytest.mark.requirement("X2")
def test_the_doctor_finds_a_damaged_index_and_mends_it(run: Run, chat: Path, tmp_path: Path) -> None:
    """Files of the index that were torn kill whoever opens them: the doctor must not die of the disease."""
    run("ingest", str(chat))
    healthy = run("doctor")
    assert healthy.exit_code == 0
    assert "nothing is wrong" in healthy.stdout
    (tmp_path / "home" / "journal.key").chmod(0o644)
    for file in (tmp_path / "home" / "index" / "chroma").rglob("*.bin"):
        file.write_bytes(b"\xff" * file.stat().st_size)
    (tmp_path / "home" / "index" / "state.json").write_text("torn", encoding="utf-8")
    ill = run("doctor")
    assert ill.exit_code == 1
    assert "repairs 2 of them" in ill.stdout
    mended = json.loads(run("doctor", "--fix", "--json").stdout)
    assert mended["healthy"] is True
    assert [(each["check"], bool(each["done"])) for each in mended["findings"]] == [("key", True), ("index", True)]
    shutil.rmtree(tmp_path / "home" / "index")
    assert run("doctor", "--fix").exit_code == 0
    assert "nothing is wrong" in run("doctor").stdout


@pytest.mark.requirement("X7")
def test_erase_asks_first_then_shows_what_went_and_what_is_not_covered(run: Run, chat: Path) -> None:
    """Whoever has to answer for an erasure needs its receipt on paper, and no slip of the hand."""
    assert run("ingest", str(chat), "--user", "ann").exit_code == 0
    assert run("admin", "erase", "--user", "ann", "--person").exit_code == 1, "nobody said yes"
    assert "Lisbon" in run("memory", "messages", "--user", "ann").output
    shown = run("admin", "erase", "--user", "ann", "--person", "--yes")
    assert shown.exit_code == 0, shown.output
    assert "Erased; 0 left." in shown.output
    assert "Not covered: backups" in shown.output
    assert "The files were rewritten" in shown.output
    assert "Lisbon" not in run("memory", "messages", "--user", "ann").output
    again = run("admin", "erase", "--user", "ann", "--person", "--yes", "--json")
    assert again.exit_code == 1
    assert json.loads(again.stdout)["error"]["type"] == "NotFoundError"
    (kept,) = json.loads(run("admin", "receipts", "--json").stdout)
    number = kept["erasure_id"]
    assert number in shown.output
    assert kept["complete"]
    assert json.loads(run("admin", "receipts", number, "--json").stdout) == [kept]
    assert f"Receipt {number}, of 20" in run("admin", "receipts", number[:8]).stdout
    assert run("admin", "receipts", "no-such").exit_code == 1
    resumed = run("admin", "erase", "--resume", "--json")
    assert json.loads(resumed.stdout) == []


@pytest.mark.requirement("X7")
def test_an_erasure_says_whether_tables_were_written_anew_and_a_later_command_does_it(
    run: Run, chat: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has to prove it must not find out from PostgreSQL's own catalogue, nor erase somebody else to have it done."""
    monkeypatch.setenv("REMEGRAPH_LEDGER_URL", postgres_url)
    monkeypatch.setenv("REMEGRAPH_JOURNAL_KEY", SHARED_KEY)
    monkeypatch.setenv("REMEGRAPH_INDEX", "pgvector")
    assert run("ingest", str(chat), "--user", "ann").exit_code == 0
    (told,) = json.loads(run("admin", "erase", "--user", "ann", "--person", "--yes", "--json").stdout)
    assert (told["complete"], told["rewritten"]) == (True, False)
    assert "--resume --full" in told["not_rewritten"]
    shown = run("admin", "erase", "--resume", "--full")
    assert (shown.exit_code, "The files were rewritten" in shown.output) == (0, True)
    assert json.loads(run("admin", "erase", "--resume", "--full", "--json").stdout) == []


@pytest.mark.requirement("X7")
def test_a_person_with_a_part_named_beside_is_refused_and_nothing_goes(run: Run, chat: Path) -> None:
    """Whoever names a thread means the thread: one word too many must not cost everything that a person ever said."""
    assert run("ingest", str(chat), "--user", "ann").exit_code == 0
    for part in (["--thread", "main"], ["--message", "m1"], ["--memory", "m1"]):
        refused = run("admin", "erase", "--user", "ann", "--person", *part, "--yes")
        assert refused.exit_code == 1, refused.output
    assert "Lisbon" in run("memory", "messages", "--user", "ann").output


@pytest.mark.requirement("X7")
def test_a_memory_is_erased_by_the_beginning_of_its_id_as_lists_show_it(run: Run, chat: Path) -> None:
    """Lists show eight characters of an id: what is seen there can be typed."""
    assert run("ingest", str(chat), "--user", "ann").exit_code == 0
    found = json.loads(run("memory", "list", "--user", "ann", "--json").stdout)
    erased = run("admin", "erase", "--user", "ann", "--memory", found[0]["memory_id"][:8], "--yes")
    assert erased.exit_code == 0, erased.output
    left = json.loads(run("memory", "list", "--user", "ann", "--json").stdout)
    assert found[0]["memory_id"] not in {each["memory_id"] for each in left}


@pytest.mark.requirement("B14")
def test_the_first_key_of_a_shared_ledger_is_made_by_a_command(
    run: Run, chat: Path, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody finds out a year later that each machine had made a key of its own."""
    monkeypatch.setenv("REMEGRAPH_LEDGER_URL", postgres_url)
    refused = run("ingest", str(chat))
    assert refused.exit_code == 1
    assert "remegraph admin key make" in refused.stderr
    made = json.loads(run("admin", "key", "make", "--json").stdout)
    assert made == {"file": str(tmp_path / "home" / "journal.key")}
    assert run("ingest", str(chat)).exit_code == 0


@pytest.mark.requirement("B14")
def test_a_key_is_changed_by_two_commands(run: Run, chat: Path, tmp_path: Path) -> None:
    """The next key is there everywhere before it seals anything."""
    run("ingest", str(chat))
    assert "remegraph admin key rotate" in " ".join(run("admin", "key", "make").stdout.split())
    assert len((tmp_path / "home" / "journal.key").read_text(encoding="ascii").splitlines()) == 2
    assert "verify what they have sealed" in " ".join(run("admin", "key", "rotate").stdout.split())
    assert run("admin", "verify").exit_code == 0


@pytest.mark.requirement("B14")
def test_a_key_for_the_environment_is_printed_and_kept_nowhere(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store of secrets keeps it; a file beside it would be one more to guard."""
    key = run("admin", "key", "make", "--print").stdout.strip()
    assert re.fullmatch("[0-9a-f]{64}", key)
    monkeypatch.setenv("REMEGRAPH_JOURNAL_KEY", key)
    assert "--print" in run("admin", "key", "make").stderr
    assert not (tmp_path / "home").exists()


@pytest.mark.slow
@pytest.mark.requirement("B14")
def test_a_seal_over_what_does_not_fit_must_be_asked_for(run: Run, chat: Path, tmp_path: Path) -> None:
    """A command that is typed in a hurry must not put out the alarm."""
    run("ingest", str(chat))
    (tmp_path / "home" / "journal.key").unlink()
    run("admin", "key", "make")
    assert "Put the key back" in run("ingest", str(chat)).stderr
    refused = run("admin", "key", "rotate")
    assert (refused.exit_code, "key rotate --despite" in " ".join(refused.stderr.split())) == (1, True)
    told = json.loads(run("admin", "key", "rotate", "--despite", "--reason", "the disk was lost", "--json").stdout)
    assert "another key" in told["did_not_fit"][0]["problem"]
    assert "the disk was lost" in run("doctor").stdout
    assert run("admin", "verify").exit_code == 0


@pytest.mark.requirement("X9")
def test_a_release_job_says_what_it_will_do_to_a_ledger_and_does_it_once_when_told(run: Run, tmp_path: Path) -> None:
    """It runs before the new processes start, by an account of its own; a person reads the plan first."""
    with later():
        make(f"sqlite:///{tmp_path / 'ledger.sqlite'}", FIRST)
    (tmp_path / "home").mkdir()
    (tmp_path / "ledger.sqlite").rename(tmp_path / "home" / LEDGER)
    assert "nothing to do" in run("migrate").stdout
    with later():
        plan = run("migrate")
        assert plan.exit_code == 0
        assert "this release needs 0022" in plan.stdout
        assert "Stop all processes of earlier releases first." in plan.stdout
        assert [each["revision"] for each in json.loads(run("migrate", "--json").stdout)["steps"]] == [
            "0021",
            "0022",
        ]
        assert "It is done." in run("migrate", "--apply").stdout
        assert "nothing to do" in run("migrate", "--apply").stdout
    late = run("migrate")
    assert late.exit_code == 1
    assert "Upgrade remegraph" in late.stderr


@pytest.mark.requirement("X9")
def test_what_only_adds_is_told_apart_from_what_others_must_be_stopped_for(run: Run, tmp_path: Path) -> None:
    """Somebody decides by it whether the service goes on meanwhile."""
    with wider():
        fresh = json.loads(run("migrate", "--json").stdout)
        assert (fresh["found"], fresh["rolling"], (tmp_path / "home").exists()) == (None, True, False)
        assert "Its tables will be made; there is nothing to stop." in run("migrate").stdout
        assert json.loads(run("migrate", "--apply", "--json").stdout)["applied"]
    (tmp_path / "home" / LEDGER).unlink()
    run("migrate", "--apply")
    with wider():
        found = json.loads(run("migrate", "--json").stdout)
    assert (found["found"], found["rolling"], [each["revision"] for each in found["steps"]]) == (FIRST, True, [WIDER])


@pytest.mark.requirement("X9")
def test_no_command_changes_the_schema_where_the_settings_forbid_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Services and workers run by an account that may not, and must not try."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("REMEGRAPH_MIGRATE", "never")
    refused = run("admin", "stats")
    assert refused.exit_code == 1
    assert "remegraph migrate --apply" in " ".join(refused.stderr.split())
    assert run("migrate", "--apply").exit_code == 0
    assert run("admin", "stats").exit_code == 0


def test_tenants_users_and_what_they_use_are_listed_and_exported(run: Run, chat: Path, tmp_path: Path) -> None:
    """Who has a request of a customer to answer has a shell, and no time to write Python."""
    assert run("ingest", str(chat), "--user", "ann", "--tenant", "acme").exit_code == 0
    assert "Nothing is recorded" in run("admin", "users", "--tenant", "other").output
    (tenant,) = json.loads(run("admin", "tenants", "--json").stdout)
    assert (tenant["tenant"], tenant["users"]) == ("acme", 1)
    for command in (
        ("tenants",),
        ("users", "--tenant", "acme"),
        ("usage", "--tenant", "acme", "--since", "2020-01-01T00:00Z"),
    ):
        assert f" {tenant['messages']} " in run("admin", *command).output
    assert str(tenant["stored_bytes"]) in run("admin", "agents", "--tenant", "acme").output.replace(",", "")
    (thread, *_) = json.loads(run("admin", "threads", "--user", "ann", "--tenant", "acme", "--json").stdout)
    assert thread["messages"] > 0
    file, stream = tmp_path / "ann.json", tmp_path / "acme.jsonl"
    assert (
        f"{tenant['messages']} messages"
        in run("admin", "export", str(file), "--user", "ann", "--tenant", "acme").output
    )
    assert "Lisbon" in file.read_text(encoding="utf-8")
    assert run("admin", "export", str(stream), "--all-users", "--tenant", "acme").exit_code == 0
    assert json.loads(stream.read_text(encoding="utf-8").splitlines()[-1])["kind"] == "end"
    assert "Erased; 0 left." in run("admin", "erase", "--all-users", "--tenant", "acme", "--yes").output
    assert json.loads(run("admin", "tenants", "--json").stdout) == []


def test_an_export_is_of_a_whole_person_or_tenant_and_takes_no_option_that_it_would_not_heed(
    run: Run, chat: Path, tmp_path: Path
) -> None:
    """Who names an agent to hand out what it knows must not hand out what all others know."""
    for agent in ("otto", "remy"):
        assert run("ingest", str(chat), "--user", "ann", "--agent", agent).exit_code == 0
    file = tmp_path / "out.json"
    for wrong in (
        ["--user", "ann", "--agent", "otto"],
        ["--user", "ann", "--project", "x"],
        ["--all-users", "--user", "ann"],
    ):
        assert run("admin", "export", str(file), *wrong).exit_code != 0, wrong
        assert not file.exists()
    refused = run("admin", "export", str(file), "--all-users", "--user", "ann")
    assert "--user would do nothing beside --all-users." in " ".join(refused.stderr.split())
    assert run("admin", "export", str(file), "--user", "ann").exit_code == 0
    assert {each["agent"] for each in json.loads(file.read_text(encoding="utf-8"))["places"]} == {"otto", "remy"}


def test_conversations_are_listed_of_the_agent_and_the_project_that_are_named(run: Run, chat: Path) -> None:
    """One agent's list that shows what is said to another is a leak."""
    for agent, project in (("otto", "x"), ("remy", "x"), ("remy", "y")):
        who = ("--user", "ann", "--agent", agent, "--project", project)
        assert run("ingest", str(chat), *who).exit_code == 0

    def listed(*named: str) -> list[tuple[str, str]]:
        found = json.loads(run("admin", "threads", "--user", "ann", *named, "--json").stdout)
        return sorted((each["agent"], each["project"]) for each in found)

    assert listed() == [("otto", "x"), ("remy", "x"), ("remy", "y")]
    assert listed("--agent", "remy") == [("remy", "x"), ("remy", "y")]
    assert listed("--project", "x") == [("otto", "x"), ("remy", "x")]
    assert listed("--agent", "remy", "--project", "y") == [("remy", "y")]
    assert listed("--agent", "nosuch") == []


@pytest.mark.requirement("X7")
@pytest.mark.parametrize(
    ("given", "named", "beside"),
    [
        (["--person", "--user", "ann", "--agent", "otto"], "--agent", "--person"),
        (["--person", "--user", "ann", "--project", "x"], "--project", "--person"),
        (["--all-users", "--user", "ann"], "--user", "--all-users"),
        (["--all-users", "--person"], "--person", "--all-users"),
        (["--all-users", "--agent", "otto"], "--agent", "--all-users"),
        (["--resume", "--person", "--user", "ann"], "--person, --user", "--resume"),
        (["--resume", "--thread", "main"], "--thread", "--resume"),
    ],
)
def test_an_erasure_refuses_an_option_that_would_do_nothing_and_nothing_goes(
    run: Run, chat: Path, given: list[str], named: str, beside: str
) -> None:
    """Who names an agent means its part: to erase the rest as well cannot be undone."""
    assert run("ingest", str(chat), "--user", "ann", "--agent", "otto").exit_code == 0
    refused = run("admin", "erase", *given, "--yes", "--json")
    assert refused.exit_code == 1
    told = json.loads(refused.stdout)["error"]
    assert (told["type"], told["what"]) == ("InputError", f"{named} would do nothing beside {beside}.")
    assert told["cure"]
    assert "Lisbon" in run("memory", "messages", "--user", "ann", "--agent", "otto").output


def test_who_the_environment_says_asks_is_no_option_of_an_erasure(
    run: Run, chat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell of one agent erases a person all the same: nobody named a part."""
    monkeypatch.setenv("REMEGRAPH_AGENT", "otto")
    assert run("ingest", str(chat), "--user", "ann").exit_code == 0
    assert run("admin", "erase", "--user", "ann", "--person", "--yes").exit_code == 0


def test_a_check_of_an_exported_journal_takes_no_option_that_it_would_not_heed(
    run: Run, chat: Path, tmp_path: Path
) -> None:
    """A file that was checked whole is not one that was checked for March, or for Ann."""
    assert run("ingest", str(chat), "--user", "ann").exit_code == 0
    file = tmp_path / "journal.jsonl"
    assert run("admin", "audit", "--user", "ann", "--export", str(file)).exit_code == 0
    assert run("admin", "audit", "--check", str(file)).exit_code == 0
    beside = [["--user", "ann"], ["--since", "2026-03-01T00:00Z"], ["--export", str(tmp_path / "other")]]
    for wrong in beside:
        refused = run("admin", "audit", "--check", str(file), *wrong)
        assert (refused.exit_code, "would do nothing beside --check" in " ".join(refused.stderr.split())) == (1, True)
    refused = run("admin", "audit", "--user", "ann", "--heads", str(file))
    assert (refused.exit_code, "--heads would do nothing without --check" in refused.stderr) == (1, True)


@pytest.mark.requirement("X7")
def test_an_erasure_shows_whose_it_is_and_how_much_before_it_asks(
    run: Run, chat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tenant and user may come from the environment: who answers yes must have seen them."""
    monkeypatch.setenv("REMEGRAPH_USER", "yan")
    monkeypatch.setenv("REMEGRAPH_TENANT", "beta")
    assert run("ingest", str(chat)).exit_code == 0
    (held,) = json.loads(run("admin", "users", "--json").stdout)
    counts = f"1 thread, 3 messages and {held['memories']} memories"
    for given, whom in (
        (["--person"], f"All of user yan of tenant beta, with any agent and project: {counts}."),
        (["--all-users"], f"All of tenant beta, 1 user: {counts}."),
        (["--thread", "chat"], "Of user yan of tenant beta: thread chat with 3 messages."),
        (
            ["--agent", "otto", "--message", "m1", "--message", "m2"],
            "Of user yan of tenant beta, agent otto: 2 messages.",
        ),
        (["--memory", "abc"], "Of user yan of tenant beta: 1 memory."),
    ):
        asked = run("admin", "erase", *given)
        assert asked.exit_code == 1, "nobody said yes"
        assert f"{whom} This cannot be undone. Erase?" in " ".join(asked.stderr.split())
    assert run("admin", "users", "--json").exit_code == 0
    assert json.loads(run("admin", "users", "--json").stdout) == [held]
