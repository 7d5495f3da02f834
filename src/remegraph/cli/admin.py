"""Commands that keep a home in order: doctor, verification, erasure, the journal, backups and keys."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, TypedDict

import typer
from pydantic import BaseModel
from rich.text import Text
from typer import Argument, Option

from remegraph import models
from remegraph.cli.command import (
    FIRST,
    SHORT_ID,
    Session,
    Views,
    counted,
    grid,
    group,
    lines,
    minute,
    more,
    nothing,
    of_home,
    of_person,
    of_scope,
    plain,
    read_time,
    read_zone,
    refuse,
    table,
)
from remegraph.cli.options import Heads, Reason, Tenant, Timezone
from remegraph.errors import SetupError
from remegraph.kit.admin import Admin
from remegraph.kit.admin.doctor import diagnose, inspect_backup, restore_backup
from remegraph.kit.admin.doctor import migrate as brought_up_to_date
from remegraph.ledger.journal import KEY_FILE, add_key, keys_in, new_key
from remegraph.models import Scope
from remegraph.settings import Settings

__all__ = ["admin", "backup", "doctor", "export_check", "migrate", "verification"]

admin = group()


def _show_health(session: Session, found: BaseModel, views: Views, *, healthy: bool) -> None:
    """Show a report; exit code 1 where something is wrong."""
    session.show({**found.model_dump(mode="json"), "healthy": healthy}, *views)
    if not healthy:
        raise typer.Exit(1)


@of_home()
def doctor(
    session: Session,
    *,
    fix: Annotated[
        bool,
        Option(
            "--fix",
            help="Repair what can be repaired without loss and without a model: permissions, the schema, the index and what "
            "waits for it, jobs that gave up.",
        ),
    ] = False,
) -> None:
    """Find what is wrong with a home, how bad it is, and what to do. Exit code 1 where anything is wrong.

    It opens what can be opened, in a child process where that could do harm, and changes nothing without `--fix`.
    """
    settings = Settings.from_env()
    found = diagnose(settings if session.home is None else settings.evolve(home=session.home), fix=fix)
    _show_health(session, found, _diagnosis(found, session.home), healthy=found.healthy)


@of_home()
def migrate(
    session: Session,
    *,
    apply: Annotated[bool, Option("--apply", help="Do it; otherwise it is only shown.")] = False,
    change_index: Annotated[
        bool,
        Option(
            "--change-index",
            help="Also where the settings name another index than the ledger has; the old one is emptied.",
        ),
    ] = False,
) -> None:
    """Show what the ledger lacks of the schema of this release, and migrate it with `--apply`.

    For an account that may change tables; services and workers need none with $REMEGRAPH_MIGRATE=never.
    """
    settings = Settings.from_env()
    settings = settings if session.home is None else settings.evolve(home=session.home)
    found = brought_up_to_date(settings, apply=apply, change_index=change_index)
    judged = {"rolling": found.rolling, "changes_index": found.changes_index}
    session.show({**found.model_dump(mode="json"), **judged}, *_migration(found))


@of_home(admin)
def verify(session: Session, *, heads: Heads = None) -> None:
    """Compare the ledger with its index and its journal, and every memory with its words. Exit code 1 where anything differs."""
    kit = session.kit()
    found = kit.admin.verify(progress=session.bars(), heads=heads or ())
    _show_health(session, found, verification(found), healthy=found.healthy)


@of_home(admin)
def rebuild(session: Session) -> None:
    """Rebuild the vector index from the ledger. Nothing is embedded again."""
    count = session.kit().admin.rebuild(progress=session.bars())
    session.show({"vectors": count}, f"The index holds {count} vectors again.")


@of_home(admin)
def stats(session: Session) -> None:
    """Count what the memory holds."""
    found = session.kit().admin.stats()
    shown = {name: f"{value:,}" if isinstance(value, int) else value for name, value in found.items()}
    session.show(
        found,
        grid(
            (Text(name.replace("_", " "), style="dim"), Text(plain(value), overflow="fold"))
            for name, value in shown.items()
        ),
    )


AllUsers = Annotated[bool, Option("--all-users", help="All of the tenant, with all its users and agents.")]


def _whom(scope: Scope, *, all_users: bool) -> models.Subject | models.Tenant:
    tenant = models.Tenant(tenant=scope.tenant)
    return tenant if all_users else models.Subject(tenant=scope.tenant, user=scope.user)


@of_scope(admin)
def erase(
    session: Session,
    scope: Scope,
    context: typer.Context,
    *,
    thread: Annotated[str | None, Option("--thread", help="Only this thread, of this scope.")] = None,
    message: Annotated[list[str] | None, Option("--message", help="Only this message; repeat.")] = None,
    memory: Annotated[list[str] | None, Option("--memory", help="Only this memory; repeat.")] = None,
    person: Annotated[bool, Option("--person", help="All of the user, whatever agent and project.")] = False,
    all_users: AllUsers = False,
    resume: Annotated[bool, Option("--resume", help="Finish what was stopped, and erase no more.")] = False,
    full: Annotated[
        bool,
        Option("--full", help="PostgreSQL: VACUUM FULL, which locks the tables; with --resume of earlier ones, too."),
    ] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Erase a person, a tenant, a thread, messages or memories for good, from every place, and show the receipt.

    Exit code 1 where anything is left, or, with `--full`, where tables were not rewritten. Backups, packs and the host's own
    records are not reached: the receipt says so.
    """
    _refuse_idle(context, resume=resume, all_users=all_users, person=person)
    eraser = session.kit().admin
    if resume:
        found = eraser.resume(full=full)
    else:
        whom = _whom(scope, all_users=all_users) if person or all_users else scope
        part: _Part = {
            "thread": thread,
            "message_ids": message or (),
            "memory_ids": [session.memory_id(scope, each) for each in memory or ()],
        }
        at_stake = _some(eraser, whom, **part) if isinstance(whom, Scope) else _whole(eraser, whom)
        if at_stake and not yes:  # else it is refused
            typer.confirm(f"{plain(at_stake)} This cannot be undone. Erase?", abort=True, err=True)
        found = (eraser.erase(whom, **part, full=full),)
    shown, views = _receipts(found, "Nothing is unfinished.")
    session.show(shown, *views)
    if not all(each.complete and (each.rewritten or not full) for each in found):
        raise typer.Exit(1)


class _Part(TypedDict):
    thread: str | None
    message_ids: Sequence[str]
    memory_ids: Sequence[str]


def _refuse_idle(context: typer.Context, *, resume: bool, all_users: bool, person: bool) -> None:
    """Refuse what an erasure would not heed: whoever names a part must not lose the rest."""
    part = ("agent", "project")
    if resume:
        idle = ("thread", "message", "memory", "person", "all_users", "user", *part, "tenant")
        refuse(context, idle, "beside --resume", "Give --resume alone: it finishes what was stopped, whosever it is.")
    elif all_users:
        cure = "Leave it out to erase the whole tenant; or leave out --all-users."
        refuse(context, ("person", "user", *part), "beside --all-users", cure)
    elif person:
        cure = (
            "Leave it out to erase all of the user; or leave out --person, and name a --thread, --message or --memory."
        )
        refuse(context, part, "beside --person", cure)


def _whole(eraser: Admin, whom: models.Subject | models.Tenant) -> str:
    """Return in words whom an erasure is about, and how much is held of them."""
    held: models.TenantHoldings | models.UserHoldings | None
    if isinstance(whom, models.Tenant):
        held = next((each for each in eraser.tenants() if each.tenant == whom.tenant), None)
        who = f"tenant {whom.tenant}, {counted(held.users if held else 0, 'user')}"
    else:
        held = next((each for each in eraser.users(whom.tenant) if each.user == whom.user), None)
        who = f"user {whom.user} of tenant {whom.tenant}, with any agent and project"
    if held is None:
        return f"All of {who}: no messages and no memories."
    messages, memories = counted(held.messages, "message"), counted(held.memories, "memory", "memories")
    return f"All of {who}: {counted(held.threads, 'thread')}, {messages} and {memories}."


def _some(
    eraser: Admin, scope: Scope, *, thread: str | None, message_ids: Sequence[str], memory_ids: Sequence[str]
) -> str:
    """Return in words which part of a scope is to be erased; nothing where none is named."""
    named = [counted(len(message_ids), "message")] if message_ids else []
    named += [counted(len(memory_ids), "memory", "memories")] if memory_ids else []
    if thread is not None:
        place = (thread, scope.agent, scope.project)
        threads = eraser.threads(models.Subject(tenant=scope.tenant, user=scope.user))
        held = sum(each.messages for each in threads if (each.thread, each.agent, each.project) == place)
        named.insert(0, f"thread {thread} with {counted(held, 'message')}")
    within = [f", {kind} {name}" for kind, name in (("agent", scope.agent), ("project", scope.project)) if name]
    return f"Of user {scope.user} of tenant {scope.tenant}{''.join(within)}: {' and '.join(named)}." if named else ""


@of_home(admin)
def receipts(
    session: Session,
    receipt: Annotated[
        str, Argument(help="Its number, or the beginning of it; all unless given.", show_default=False)
    ] = "",
) -> None:
    """Show the receipts of erasures again, the newest first: the ledger keeps them, without a name."""
    found = session.kit().admin.receipts(receipt)
    shown, views = _receipts(found, "Nothing was erased.")
    session.show(shown, *views)


def _receipts(found: Sequence[models.Erasure], none: str) -> tuple[object, Views]:
    shown = [each.model_dump(mode="json") | {"complete": each.complete, "rewritten": each.rewritten} for each in found]
    return shown, tuple(part for each in found for part in _receipt(each)) or nothing(none)


_HELD = (">threads", ">messages", ">memories", ">bytes")


def _held(each: models.Holdings) -> tuple[str, ...]:
    return tuple(f"{count:,}" for count in (each.threads, each.messages, each.memories, each.stored_bytes))


@of_home(admin)
def tenants(session: Session) -> None:
    """List the tenants, and how much the ledger holds of each."""
    found = session.kit().admin.tenants()
    headers = ("tenant", ">users", ">agents", *_HELD)
    rows = table(found, headers, lambda each: (each.tenant, each.users, each.agents, *_held(each)), whole=True)
    session.show(found, *(rows or nothing("Nothing is recorded.")))


@of_home(admin)
def users(session: Session, *, tenant: Tenant = "default") -> None:
    """List the users of a tenant, and how much the ledger holds of each."""
    found = session.kit().admin.users(tenant)
    headers = ("user", ">agents", *_HELD)
    rows = table(found, headers, lambda each: (each.user or "(no user)", each.agents, *_held(each)), whole=True)
    session.show(found, *(rows or nothing("Nothing is recorded of this tenant.")))


@of_home(admin)
def agents(session: Session, *, tenant: Tenant = "default") -> None:
    """List the agents of a tenant, and how much the ledger holds of what each remembers."""
    found = session.kit().admin.agents(tenant)
    headers = ("agent", ">users", *_HELD)
    rows = table(found, headers, lambda each: (each.agent or "(no name)", each.users, *_held(each)), whole=True)
    session.show(found, *(rows or nothing("Nothing is recorded of this tenant.")))


@of_scope(admin)
def threads(session: Session, scope: Scope) -> None:
    """List the conversations of a user, the newest first: with all agents and in all projects, or those that are named."""
    found = [
        each
        for each in session.kit().admin.threads(models.Subject(tenant=scope.tenant, user=scope.user))
        if scope.agent in (None, each.agent) and scope.project in (None, each.project)
    ]
    rows = table(
        found,
        ("thread", "agent", "project", ">messages", "!newest"),
        lambda each: (each.thread, each.agent or "", each.project or "", f"{each.messages:,}", minute(each.last_at)),
    )
    session.show(found, *(rows or nothing("Nothing is recorded of this user here.")))


@of_home(admin)
def usage(
    session: Session,
    *,
    tenant: Tenant = "default",
    since: Annotated[
        str | None, Option("--since", help="From this time on, e.g. 2026-03-01T00:00Z; the last 30 days unless given.")
    ] = None,
    timezone: Timezone = None,
) -> None:
    """Show what each user of a tenant has used: messages, bytes, calls and tokens of models, and what limits refused."""
    kit = session.kit()
    begin = read_time(since, read_zone(timezone)) or kit.context.clock() - timedelta(days=30)
    found = kit.admin.usage(tenant, since=begin)
    total = found.total
    session.show(
        {**found.model_dump(mode="json"), "total": total.model_dump(mode="json")},
        Text(f"Since {begin:%Y-%m-%d %H:%M}:"),
        *table(
            (*found.users, total),
            ("user", ">messages", ">bytes", ">calls", ">tokens in", ">tokens out", ">refused"),
            lambda each: (
                "all" if each is total else each.user or "(no user)",
                *(f"{getattr(each, name):,}" for name in models.UserUsage.model_fields if name != "user"),
            ),
            whole=True,
        ),
    )


@of_person(admin)
def export(
    session: Session,
    scope: Scope,
    context: typer.Context,
    file: Annotated[Path, Argument(help="The file to write; it must not exist yet.", show_default=False)],
    *,
    all_users: AllUsers = False,
) -> None:
    """Write what is recorded of a user with any agent and project, for them to read (JSON), or of a whole tenant (JSON lines)."""
    if all_users:
        refuse(context, ("user",), "beside --all-users", "Leave it out for the whole tenant; or leave out --all-users.")
    done = session.kit().admin.export(_whom(scope, all_users=all_users), file, progress=session.bars())
    held = ", ".join(f"{count:,} {kind}" for kind, count in done.counts.items())
    session.show(done, f"Written to {file.name}: {held}.", Text(f"SHA-256 {done.sha256}", style="dim"))


@of_scope(admin)
def audit(
    session: Session,
    scope: Scope,
    context: typer.Context,
    *,
    export: Annotated[
        Path | None,
        Option("--export", help="Write it as JSON lines to this file, which must not exist yet.", metavar="FILE"),
    ] = None,
    check: Annotated[
        Path | None,
        Option("--check", help="Only check whether an exported file is complete and unchanged.", metavar="FILE"),
    ] = None,
    heads: Heads = None,
    since: Annotated[str | None, Option("--since", help="From this time on, e.g. 2026-03-01T00:00Z.")] = None,
    until: Annotated[str | None, Option("--until", help="To this time.")] = None,
    timezone: Timezone = None,
) -> None:
    """Show who changed what, when and why, without any word of a memory. Exit code 1 where a checked file is not whole."""
    if check is None:
        refuse(context, ("heads",), "without --check", "Name the exported file with --check.")
    else:
        idle = ("export", "since", "until", "timezone", "user", "agent", "project", "tenant")
        refuse(context, idle, "beside --check", "Leave it out: a file is checked whole.")
    zone = read_zone(timezone)
    times = {"since": read_time(since, zone), "until": read_time(until, zone)}
    journal = session.kit().governance
    if check is not None:
        wrong = journal.verify_export(check, heads or ())
        session.show({"whole": not wrong, "differences": wrong}, *export_check(check.name, wrong))
        if wrong:
            raise typer.Exit(1)
    elif export is not None:
        ended = journal.export_audit(export, scope=scope, **times)
        total = counted(sum(head.events for head in ended), "event")
        keep = (
            "Keep the last lines of it where they cannot be changed: they show later whether anything was taken away."
        )
        session.show(ended, *lines([f"{total} written to {export.name}."], ""), *_heads(ended), *lines([keep], "dim"))
    else:
        found = list(journal.audit(scope=scope, **times))
        events = [each for each in found if isinstance(each, models.AuditEntry)]
        earlier = [f"{len(events) - FIRST:,} earlier ones: see --export or --json."] if len(events) > FIRST else []
        newest = table(events[-FIRST:], ("!time", "event", "!record", "!versions", "by", "reason"), _event)
        ends = _heads(each for each in found if isinstance(each, models.AuditHead))
        session.show(found, *((*lines(earlier, ""), *newest, *ends) if events else nothing("Nothing happened.")))


def _event(entry: models.AuditEntry) -> tuple[str, ...]:
    event, versions = entry.event, f"{entry.before} → {entry.after}" if entry.after else ""
    return minute(event.time), event.action, event.record_id[:SHORT_ID], versions, event.actor, event.reason


# --------------------------------------------------------------------------------------------------- backups

backup = group()

_Folder = Annotated[Path, Argument(help="The folder of the backup.", show_default=False)]


@of_home(backup)
def make(session: Session, folder: _Folder) -> None:
    """Copy the ledger, the attachments and the journal's key to a new folder, as of now. Others can write meanwhile."""
    taken = session.kit().admin.backup(folder, progress=session.bars())
    session.show(taken, *_backup(taken))


@of_home(backup)
def check(session: Session, folder: _Folder) -> None:
    """Read all of a backup, and compare it with its checksums."""
    found = inspect_backup(folder)
    session.show(found, *_backup(found))


@of_home(backup)
def restore(session: Session, folder: _Folder) -> None:
    """Restore a backup as a home, which must be missing or empty. Its index is built the next time it is opened."""
    found = restore_backup(folder, session.home or Settings.from_env().home, progress=session.bars())
    session.show(
        found, *_backup(found), *lines(["Now run `remegraph admin rebuild`, then `remegraph admin verify`."], "")
    )


# ------------------------------------------------------------------------------------------ keys of the journal

key = group()
admin.add_typer(key, name="key", help="The key that the journal is sealed with.")


@of_home(key, "make")
def make_key(
    session: Session,
    *,
    show: Annotated[
        bool, Option("--print", help="Print it and store it nowhere, for a secret store or $REMEGRAPH_JOURNAL_KEY.")
    ] = False,
) -> None:
    """Make the first key of a home, or the next one. The next one seals nothing yet: see `rotate`."""
    settings = Settings.from_env()
    folder = (session.home or settings.home).expanduser()
    if show:
        made = new_key()
        session.show({"key": made}, made)
        return
    if settings.journal_key:
        raise SetupError(
            f"REMEGRAPH_JOURNAL_KEY is set, so {folder / KEY_FILE} is not read.",
            "Make one with --print, and set it there.",
        )
    then = (
        "Processes with this home read it automatically; give it to all others, then run `remegraph admin key rotate`."
        if keys_in(folder)
        else "Give the same to all processes that share the ledger."
    )
    add_key(folder)
    session.show({"file": str(folder / KEY_FILE)}, *lines([f"{folder / KEY_FILE} has a new key. {then}"], ""))


@of_home(key)
def rotate(
    session: Session,
    *,
    despite: Annotated[
        bool, Option("--despite", help="Seal what does not fit, too. The journal records this.")
    ] = False,
    reason: Reason = "",
) -> None:
    """Seal the journal with the newest key from now on. Keep those before it: they verify what they have sealed."""
    found = session.kit().admin.seal_journal(reason, despite=despite)
    wrong = [f"{len(found)} places did not fit; the journal says so."] if found else []
    sealed = "The newest key seals from now on. Keep those before it: they verify what they have sealed."
    session.show({"did_not_fit": found}, sealed, *wrong)


# ----------------------------------------------------------------------------------------------- what is shown

_SEVERITY = {"error": "red", "warning": "yellow", "note": "cyan"}


def _diagnosis(found: models.Diagnosis, home: Path | None) -> Views:
    """Show what a doctor found, how bad it is, and what to do."""
    looked = Text(f"Looked at: {', '.join(found.checks)}.", style="dim")
    if not found.findings:
        return (Text("Healthy: nothing is wrong.", style="green"), looked)
    shown = [part for each in found.findings for part in _problem(each, home)]
    left = sum(each.fixable and not each.done for each in found.findings)
    return (*shown, looked, *lines([f"`remegraph doctor --fix` repairs {left} of them."] if left else [], ""))


def _problem(found: models.Finding, home: Path | None) -> Views:
    """Show what is wrong, what to do, and the commands for it, none of them wrapped: they are copied."""
    state, style = ("repaired", "green") if found.done else (found.severity, _SEVERITY[found.severity])
    head = Text.assemble((state, style), f"  {found.check}: {' '.join(plain(found.what).split())}", no_wrap=True)
    if found.done:
        return (head, *lines([f"  {found.done[0].upper()}{found.done[1:]}."], "dim"))
    where = "" if home is None else f" --home {shlex.quote(str(home))}"
    typed = [f"    {each}{where if each.startswith('remegraph ') else ''}" for each in found.commands[:FIRST]]
    return (head, *lines([f"  {found.cure}"], "dim"), *lines(typed, ""), *more(len(found.commands)))


def _migration(found: models.Migration) -> Views:
    """Show what a ledger lacks, or lacked."""
    if not found.steps:
        return lines([f"The ledger has schema {found.found}: nothing to do."], "green")
    has = "no tables yet" if found.found is None else f"schema {found.found}"
    if found.found is None:
        how = "Its tables will be made; there is nothing to stop."
    elif found.rolling:
        how = "Processes of the release before may go on meanwhile."
    else:
        how = "Stop all processes of earlier releases first."
    do = "If these settings are right, do it" if found.changes_index else "Do it"
    options = "--apply --change-index" if found.changes_index else "--apply"
    done = "It is done." if found.applied else f"{how} {do}: `remegraph migrate {options}`."
    kinds = {True: "adds only", False: "this release and later"}
    return (
        *lines([found.problem] if found.changes_index and not found.applied else []),
        Text(f"The ledger {'had' if found.applied else 'has'} {has}; this release needs {found.needed}."),
        *table(
            found.steps,
            ("!schema", "what it does", "for"),
            lambda each: (
                each.revision,
                each.what,
                "changes the index" if found.changes_index and each.revision == "index" else kinds[each.adds_only],
            ),
            whole=True,
        ),
        *lines([done], "bold"),
    )


def verification(found: models.Verification) -> Views:
    """Show what `verify` compared and what differs."""
    read = Text(
        f"{counted(found.messages, 'message')}, {counted(found.blocks, 'block')}, "
        f"{counted(found.memories, 'memory', 'memories')}, {counted(found.events, 'event')}, "
        f"{counted(found.vectors, 'vector')} read.",
        style="dim",
    )
    if found.healthy:
        return (Text("Healthy: nothing differs.", style="green"), read)
    waiting = {each.record_id for each in found.differences if each.where == "dirty set"}
    if all(each.record_id in waiting for each in found.differences):  # the records themselves, and their vectors
        wait = f"Waiting for the index, and found by SQL until then: {counted(len(waiting), 'record')}."
        return (*lines([f"{wait} Run `remegraph doctor --fix`, or continue."]), read)
    total = counted(len(found.differences), "difference")
    cure = "`remegraph doctor` says what to do of each; `remegraph admin rebuild` rebuilds the index."
    return (
        *lines([f"{total}. {cure}"], "red"),
        read,
        *table(
            found.differences,
            ("where", "record", "problem"),
            lambda each: (each.where, each.record_id, each.problem),
        ),
    )


def _receipt(receipt: models.Erasure) -> Views:
    """Show what was removed, what is left, and what is not covered."""
    number = Text(f"Receipt {receipt.erasure_id}, of {minute(receipt.asked_at)}", style="dim")
    if receipt.stage != "done":
        return *lines(["Not done: `remegraph admin erase --resume` continues it."]), number
    kept = f"{counted(receipt.rederived, 'memory', 'memories')} rebuilt from other words."
    return (
        Text(f"Erased; {receipt.left} left.", style="green" if receipt.complete else "red"),
        *table(
            receipt.places,
            ("place", ">removed", ">left"),
            lambda each: (each.place.replace("_", " "), each.removed, each.left),
            whole=True,
        ),
        *lines([] if receipt.rewritten else [f"Not all files were rewritten. {receipt.not_rewritten}"]),
        *lines(["The files were rewritten."] if receipt.rewritten else [], "dim"),
        *lines([kept, *(f"Not covered: {each}." for each in receipt.not_covered)], "dim"),
        number,
    )


def _backup(found: models.Backup) -> Views:
    """Show what a backup holds."""
    rows = ", ".join(
        counted(found.counts.get(name, 0), one, name)
        for name, one in (("messages", "message"), ("memories", "memory"), ("events", "event"))
    )
    size = f"{found.size / 1e6:,.1f} MB in {counted(len(found.files), 'file')}, schema {found.revision}."
    lost = f"{counted(len(found.missing), 'attachment')} could not be copied: the home has lost them."
    return (
        Text(f"As of {found.taken_at:%Y-%m-%d %H:%M:%S} UTC: {rows}."),
        Text(size, style="dim"),
        *lines([lost] if found.missing else []),
    )


def _heads(heads: Iterable[models.AuditHead]) -> Views:
    return lines((f"{counted(head.events, 'event')} up to {head.chain}" for head in heads), "dim")


def export_check(name: str, wrong: Sequence[models.Mismatch]) -> Views:
    """Show whether an exported file is whole."""
    if not wrong:
        return lines([f"{name} is whole."], "green")
    return (
        *lines([f"{name} is not as it was exported."], "red"),
        *table(wrong, ("!line", "problem"), lambda each: (each.record_id, each.problem)),
    )
