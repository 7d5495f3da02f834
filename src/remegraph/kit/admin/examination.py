"""`kit.admin.examine`: what is wrong in an open home, found and repaired, and whether background work keeps up."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from remegraph.errors import IndexSilentError, RemegraphError, VectorIndexError
from remegraph.files import holder, lives
from remegraph.kit.components import INDEX
from remegraph.kit.worker import FOREIGN, KINDS, OnProgress, held_cure, holders
from remegraph.ledger.index.choice import lacking
from remegraph.ledger.index.chroma import stranded
from remegraph.ledger.rows import newest
from remegraph.models import (
    BackgroundJob,
    Check,
    Finding,
    Memory,
    Mismatch,
    Partition,
    Progress,
    Severity,
    StoredMessage,
    Work,
)
from remegraph.models.quotes import cited_text, find_quote
from remegraph.models.remnants import MARK

if TYPE_CHECKING:
    from remegraph.kit.components import Parts

__all__ = ["CHECKS", "KEYS", "Seen", "compared", "many", "mended", "requeue", "seen"]

Seen = tuple[Finding, Callable[[], str] | None]
"""A finding, and the function that repairs it, which returns what it did."""

CHECKS: tuple[Check, ...] = (
    "owner", "embedder", "index", "backlog", "records", "attachments", "journal", "jobs", "work", "clock",
)  # fmt: skip
_TRIES = 3  # a job that failed this often needs attention
_OVERDUE = timedelta(days=1)
_SKEW = timedelta(minutes=5)

KEYS = (
    "Give the keys that sealed it, former ones too (`former_journal_keys`). If you have them, the ledger was changed "
    "past remegraph: compare it with a backup."
)
"""What to do first where the journal does not hold together."""

_OF_RECORDS: dict[str, tuple[Check, str]] = {
    "blocks": ("records", "Restore a backup that has them: their messages are gone."),
    "memories": ("records", "Restore a backup that has them; until then, mistrust these memories."),
    "partitions": ("records", "The ledger was changed past remegraph: compare it with a backup."),
    "attachments": ("attachments", "Bring the folder back from a backup; messages and memories are whole without it."),
    "journal": ("journal", KEYS),
}


def seen(parts: Parts) -> Iterator[Seen]:
    """Yield each thing that is wrong in an open home, and what repairs it."""
    yield from _owner(parts)
    yield from _index(parts)
    yield from _of_records(compared(parts, Counter()))
    yield from _held_by_none(parts)
    yield from _sealed_despite(parts)
    yield from _queue(parts)
    yield from _work(parts)
    yield from _unread(parts)
    yield from _clock(parts)


def _owner(parts: Parts) -> Iterator[Seen]:
    if not parts.has_index and (error := stranded()):
        yield _finding("owner", "warning", f"{error.what} It recalls from SQL.", error.cure)
    elif not parts.has_index:
        process = holder(parts.settings.home.expanduser() / INDEX)
        who = "Another process" if process is None else f"Process {process}"
        what = f"{who} owns the vector index: this one recalls from SQL, and cannot look at the index."
        yield _finding("owner", "note", what, "Close that process to examine the index, or use a Chroma server.")


def _index(parts: Parts) -> Iterator[Seen]:
    """Compare index and ledger; a damaged index is opened in a child process."""
    if parts.projection.searched == "pgvector" and (due := lacking(parts.settings, parts.archive.database)):
        cure = "Make them as the account that owns the tables; until then all vectors are compared."
        what = f"{due.removesuffix('.')} are due."
        yield _finding("index", "warning", what, cure, commands=["remegraph migrate --apply"])
    if not parts.projection.is_current():
        what = f"The ledger's vectors come from another embedder than {parts.embedder.name}."
        yield _finding("embedder", "error", what, "Open with the recorded one, or change over: kit.admin.reindex().")
        return
    try:
        _, differences = parts.projection.verify()
    except VectorIndexError as error:
        severity: Severity = "warning" if isinstance(error, IndexSilentError) else "error"
        yield _finding("index", severity, error.what, error.cure)
        return
    waiting = [each for each in differences if each.where == "dirty set"]
    wrong = [each for each in differences if each.where != "dirty set"] if parts.has_index else []
    if wrong:
        what = f"The index differs from the ledger in {many(wrong)}."
        rebuild = ["remegraph admin rebuild"]
        yield _finding("index", "warning", what, "Rebuild it.", lambda: _rebuild(parts), commands=rebuild)
    elif waiting and parts.has_index:
        what = f"{len(waiting)} records wait for the index; until then recall searches them in SQL."
        yield _finding(
            "backlog", "warning", what, "Whatever writes next brings them in; so does `fix`.", lambda: _sync(parts)
        )
    elif waiting:
        what = f"{len(waiting)} records wait for the process that owns the index."
        yield _finding("backlog", "note", what, "Nothing, while that process lives.")


def _rebuild(parts: Parts) -> str:
    return f"rebuilt the index, with {parts.projection.rebuild()} vectors"


def _queue(parts: Parts) -> Iterator[Seen]:
    """Look for jobs that gave up, that keep failing, or that no worker takes."""
    now = parts.clock()
    for kind in KINDS:
        waiting = parts.jobs.waiting(kind)
        dead = [job for job in waiting if job.state == "dead"]
        failing = [job for job in waiting if job.state in {"later", "waiting"} and job.attempts >= _TRIES]
        overdue = [job for job in waiting if job.state == "waiting" and job.due_at and job.due_at < now - _OVERDUE]
        foreign = [job for job in waiting if job.foreign and job.state not in {"asleep", "later"}]
        if dead:
            what = f"{len(dead)} jobs ({kind}) gave up: {dead[0].reason}"
            revive = ["remegraph work jobs --revive"]
            yield _finding("jobs", "warning", what, "Retry them.", lambda: _revive(parts), commands=revive)
        if failing:
            what = f"{len(failing)} jobs ({kind}) fail again and again: {failing[0].reason}"
            yield _finding("jobs", "warning", what, "Fix what the reason names; they are retried automatically.")
        if foreign:
            what = f"{len(foreign)} jobs ({kind}) were made with other settings than these."
            yield _finding("jobs", "note", what, FOREIGN)
        yield from _held(parts, [job for job in waiting if job.state == "running"])
        if overdue:
            what = f"{len(overdue)} jobs ({kind}) wait for more than a day."
            cure = "No worker takes them: run one, or the second command as a cron job."
            yield _finding("jobs", "warning", what, cure, commands=["remegraph worker", "remegraph work drain"])


def _held(parts: Parts, running: Sequence[BackgroundJob]) -> Iterator[Seen]:
    """Name the workers whose jobs hold up blocks, unless they are certainly alive."""
    for worker in holders(running):
        held = [job for job in running if holders([job]) == (worker,) and not lives(job.worker)]
        blocks = parts.archive.pending(parts.settings.summary.recipe, [job.partition for job in held])
        if blocks:
            what = f"Worker {worker} holds {len(held)} jobs ({held[0].kind}) for which {blocks} blocks wait."
            cure = held_cure("the command", parts.settings.capture.lease)
            yield _finding("jobs", "note", what, cure, commands=[f"remegraph work release {shlex.quote(worker)}"])


def _revive(parts: Parts) -> str:
    return f"took {requeue(parts, 'dead')} jobs up again"


def requeue(parts: Parts, which: Literal["dead", "foreign"]) -> int:
    """Requeue the jobs that gave up, or those made with other settings; return how many there were."""
    waiting = [job for kind in KINDS for job in parts.jobs.waiting(kind)]
    found = [job for job in waiting if (job.foreign if which == "foreign" else job.state == "dead")]
    for job in found:
        parts.jobs.enqueue(job.kind, job.partition, as_it_is=which == "dead")
    return len(found)


def mended(seen: Iterator[Seen], *, fix: bool) -> Iterator[Finding]:
    """Yield findings, each repaired where `fix` asks for it and it is possible."""
    for finding, mend in seen:
        if not fix or mend is None:
            yield finding
            continue
        try:
            yield finding.evolve(done=mend())
        except (RemegraphError, OSError) as error:
            why, cure = (error.what, error.cure) if isinstance(error, RemegraphError) else (str(error), "")
            yield finding.evolve(cure=f"It could not be repaired ({why}): {cure or finding.cure}", fixable=False)


def _finding(
    check: Check,
    severity: Severity,
    what: str,
    cure: str,
    mend: Callable[[], str] | None = None,
    *,
    commands: Iterable[str] = (),
) -> Seen:
    fixable = mend is not None
    return Finding(
        check=check, severity=severity, what=what, cure=cure, commands=tuple(commands), fixable=fixable
    ), mend


def many(differences: Sequence[Mismatch]) -> str:
    """Return how many there are, and the first."""
    first = differences[0]
    name = f" {first.record_id}" if first.record_id else ""
    places = "1 place" if len(differences) == 1 else f"{len(differences)} places"
    return f"{places}; the first: {first.where}{name}, {first.problem}"


def _sync(parts: Parts) -> str:
    return f"brought {parts.projection.sync()} records into the index"


def _of_records(differences: Sequence[Mismatch]) -> Iterator[Seen]:
    for where, (check, cure) in _OF_RECORDS.items():
        if found := [each for each in differences if each.where == where]:
            yield _finding(check, "error", f"The ledger is inconsistent in {many(found)}.", cure)


def _held_by_none(parts: Parts) -> Iterator[Seen]:
    """Look for files that a crash left behind before their message was recorded."""
    if loose := parts.archive.attachments.unreferenced():
        what = f"{len(loose)} files of attachments belong to no message, as a crash leaves them behind."
        cure, fix = "Remove them; that is safe at any time.", ["remegraph doctor --fix"]
        yield _finding("attachments", "note", what, cure, lambda: _remove_loose(parts), commands=fix)


def _remove_loose(parts: Parts) -> str:
    removed = len(parts.archive.attachments.unreferenced(remove=True))
    return f"removed {removed} {'file' if removed == 1 else 'files'}"


def _sealed_despite(parts: Parts) -> Iterator[Seen]:
    if (last := parts.trail.sealed_despite()) is not None:
        at, reason = last
        what = f"The journal was sealed again on {at:%Y-%m-%d} although it did not fit: {reason}"
        yield _finding("journal", "note", what, "Earlier entries are not proven; nothing else is wrong.")


def _work(parts: Parts) -> Iterator[Seen]:
    """Look for what was not summarised; a retry may call a model, so it is not repaired here."""
    found = parts.archive.work(parts.archive.partitions(), states=["failed", "review"])
    failed = [each for each in found if each.state == "failed"]
    if failed:
        users = sorted({str(each.partition.user) for each in failed})
        what = (
            f"{len(failed)} pieces of work failed ({', '.join(users[:3])}{' …' * (len(users) > 3)}): {failed[0].reason}"
        )
        retry = _of_each("remegraph work retry", failed)
        yield _finding("work", "warning", what, "Try again; this may call the model.", commands=retry)
    if review := [each for each in found if each.state != "failed"]:
        what = f"{len(review)} pieces of work wait for a person."
        yield _finding("work", "note", what, "Look at them.", commands=_of_each("remegraph work list", review))


def _of_each(command: str, found: Iterable[Work]) -> Iterable[str]:
    """Return a command for each place that work is of."""
    return dict.fromkeys(f"{command} {_as_options(each.partition)}" for each in found)


def _as_options(partition: Partition) -> str:
    """Return a partition as options of the command line, all of them, as each names another partition."""
    named: dict[str, str | None] = {
        "tenant": partition.tenant,
        "user": partition.user,
        "agent": partition.agent,
        "project": partition.project,
    }
    return shlex.join(word for name, value in named.items() if value for word in (f"--{name}", value))


def _unread(parts: Parts) -> Iterator[Seen]:
    """Count what was read without a model, where there is one; the doctor opens the kit without that of the settings."""
    if parts.settings.model is None and set(parts.thinkers.names().values()) == {"extractive"}:
        return
    archive, recipe = parts.archive, parts.settings.summary.recipe
    unread = {place: len(archive.read_by([place], "extractive", recipe)) for place in archive.partitions()}
    if blocks := sum(unread.values()):
        what = f"{blocks} blocks were read without a model, and there is one now."
        cure = "See what it would cost to have it read them; without `--dry-run` it is done."
        places = (_as_options(place) for place, count in unread.items() if count)
        costs = (f"remegraph work reread --dry-run {options}" for options in places)
        yield _finding("work", "note", what, cure, commands=costs)


def _clock(parts: Parts) -> Iterator[Seen]:
    """Look whether the ledger knows a later time than this machine does."""
    with parts.archive.database.read() as connection:
        last, now = newest(connection), parts.clock()
    if last is not None and last > now + _SKEW:
        what = (
            f"The newest record is of {last:%Y-%m-%d %H:%M} UTC, which is {last - now} ahead of this machine's clock."
        )
        cure = "Set the clock (NTP). The order of the ledger holds; leases and forgetting go by the clock."
        yield _finding("clock", "warning", what, cure)


# ------------------------------------------------------------------------------------------- the ledger itself


def compared(parts: Parts, counts: Counter[str], progress: OnProgress | None = None) -> list[Mismatch]:
    """Return what differs in the ledger itself; count what was read."""
    partitions = parts.archive.partitions()
    differences = list(parts.trail.renamed())
    for number, partition in enumerate(partitions, start=1):
        differences.extend(_compared(parts, partition, counts))
        if progress:
            progress(Progress(stage="verify", done=number, total=len(partitions)))
    return differences


def _compared(parts: Parts, partition: Partition, counts: Counter[str]) -> list[Mismatch]:
    archive, trail = parts.archive, parts.trail
    messages = {message.message_id: message for message in archive.messages([partition])}
    blocks = archive.blocks([partition])
    memories = archive.memories([partition])
    counts["messages"] += len(messages)
    counts["blocks"] += len(blocks)
    counts["memories"] += len(memories)
    places = {(message.thread, message.seq) for message in messages.values()}
    found = [
        Mismatch(where="blocks", record_id=block.block_id, problem="its messages are missing")
        for block in blocks
        if not {(block.thread, block.first_seq), (block.thread, block.last_seq)} <= places
    ]
    labels = {block.block_id for block in blocks}
    sharers = [other for other in archive.partitions() if other != partition and partition.sees(other)]
    for memory in memories:
        cited = {item.message_id for item in memory.evidence}
        said = {name: messages[name] for name in cited if name in messages}
        if elsewhere := sorted(cited - said.keys()):
            said |= {each.message_id: each for each in archive.messages(sharers, ids=elsewhere)}
        if not _borne_out(memory, said):
            found.append(Mismatch(where="memories", record_id=memory.memory_id, problem="its words are missing"))
        if gone := set(memory.block_ids) - labels:
            gone -= {block.block_id for block in archive.blocks(sharers, ids=sorted(gone))}
        if gone:
            found.append(Mismatch(where="memories", record_id=memory.memory_id, problem="its blocks are missing"))
    lost = [
        Mismatch(where="attachments", record_id=sha256, problem="its bytes are missing")
        for sha256 in archive.attachments.missing(partition)
    ]
    return [*found, *trail.misstated(partition), *lost, *trail.differences(partition)]


def _borne_out(memory: Memory, said: Mapping[str, StoredMessage]) -> bool:
    """Return whether these messages hold all words that a memory cites, as far as they are shown."""
    return all(
        item.message_id in said
        and (item.quote == MARK or find_quote(item.quote, cited_text(item, said[item.message_id])) is not None)
        for item in memory.evidence
    )
