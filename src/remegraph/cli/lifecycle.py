"""Commands about the life of memories, and for what a person decides.

State one, how one came about, what changed, what fades, what is made of many; which of two that contradict each other holds,
and what waits for approval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, cast, get_args

from rich.text import Text
from rich.tree import Tree
from typer import Argument, Option

from remegraph import models
from remegraph.cli.command import (
    FIRST,
    SHORT_ID,
    Session,
    Views,
    counted,
    first_match,
    group,
    lines,
    minute,
    nothing,
    of_scope,
    plain,
    read_time,
    read_zone,
    shortened,
    state_of,
    table,
)
from remegraph.cli.options import By, DryRun, MemoryId, Model, Note, Timezone
from remegraph.cli.recall import memory, memory_list, skill_table, trace_tree
from remegraph.kit import SaveOptions
from remegraph.models import Conflict, ConflictKind, ConflictState, Decision, ForgetRequest, Memory, Scope

__all__ = ["maintenance_tables", "memory", "review"]

_Number = Annotated[int, Argument(min=1, help="Number of a version.", show_default=False)]

_CHANGES = {"same": ("{}", ""), "removed": ("[-{}-]", "red strike"), "added": ("[+{}+]", "green")}
"""Sign and style of words in a difference, which is readable without colour, too."""


@of_scope(memory)
def save(
    session: Session,
    scope: Scope,
    content: Annotated[str, Argument(help="The statement, understandable by itself.", show_default=False)],
    *,
    about: Annotated[str, Option("--about", help="What it is about, in a few words.", show_default=False)] = "",
    topic: Annotated[
        str | None, Option("--topic", help="type:name; that of the user unless given.", show_default=False)
    ] = None,
    tag: Annotated[list[str] | None, Option("--tag", help="A label; repeatable.", show_default=False)] = None,
    importance: Annotated[float, Option("--importance", min=0, max=1, help="From .9 on: a core rule.")] = 0.5,
    memory_class: Annotated[str, Option("--class", help="policy, episodic or mixed.")] = "episodic",
    enforcement: Annotated[
        str | None, Option("--enforcement", help="Of a policy: soft, or hard.", show_default=False)
    ] = None,
    applies_to: Annotated[
        str, Option("--applies-to", help="global, project:<name> or lang:<name>.", show_default=False)
    ] = "",
    canonical_topic: Annotated[
        str, Option("--canonical-topic", help="The slot, e.g. database:choice.", show_default=False)
    ] = "",
    value: Annotated[str, Option("--value", help="The slot's value.", show_default=False)] = "",
    supersedes: Annotated[
        list[str] | None, Option("--supersedes", help="Id of what it replaces; repeatable.", show_default=False)
    ] = None,
) -> None:
    """State one memory: a fact, or a rule with its class, where it applies, how binding it is, and its slot."""
    found = session.kit().save(
        about,
        content,
        scope=scope,
        topic=topic,
        tags=tag or (),
        importance=importance,
        memory_class=cast("models.MemoryClass", memory_class),
        value=value,
        supersedes=[session.memory_id(scope, each) for each in supersedes or ()],
        options=SaveOptions(
            enforcement_level=cast("models.EnforcementLevel | None", enforcement),
            applies_to=applies_to,
            canonical_topic=canonical_topic,
        ),
    )
    outcome = f"{found.outcome}: {found.reason}" if found.reason else found.outcome
    session.show(found, *lines([outcome], ""), *(() if found.memory is None else memory_list([found.memory])))


@of_scope(memory)
def explain(session: Session, scope: Scope, memory_id: MemoryId) -> None:
    """Show the layer of a memory, when it will be forgotten and why, what it came from, and its history."""
    found = session.kit().explain(session.memory_id(scope, memory_id), scope=scope)
    ends = "never" if found.forget_at is None else f"from {minute(found.forget_at)} on, unless it is reviewed before"
    last = f", last {minute(found.reviews[-1])}" if found.reviews else ""
    session.show(
        found,
        trace_tree(found.trace),
        Text(f"{found.layer}, {found.tier} tier, {found.status}. Forgotten: {ends}.", style="bold"),
        Text(plain(found.weight.reason)),
        Text(f"{counted(len(found.reviews), 'review')}{last}", style="dim"),
        *(skill_table([found.skill]) if found.skill else ()),
        *table(
            found.trace.events,
            ("!time", "event", "by", "reason"),
            lambda event: (minute(event.time), event.action, event.actor, event.reason),
            whole=True,
        ),
    )


@of_scope(memory)
def archaeology(
    session: Session,
    scope: Scope,
    memory_id: MemoryId,
    *,
    known_at: Annotated[str | None, Option("--known-at", help="As it was recorded by this time.")] = None,
    true_at: Annotated[str | None, Option("--true-at", help="Show what of it was true at this time.")] = None,
    timezone: Timezone = None,
) -> None:
    """Show the chain of a memory: what it replaced and what replaced it, with versions, times, actors, reasons, words."""
    zone = read_zone(timezone)
    times = {"known_at": read_time(known_at, zone), "true_at": read_time(true_at, zone)}
    found = session.kit().governance.archaeology(session.memory_id(scope, memory_id), scope=scope, **times)
    tree = Tree("", guide_style="dim")
    _add_versions(tree, found.memory)
    for name, older in (("replaced by", False), ("replaced", True)):
        if finds := found.beyond(found.memory, older=older):
            _add_finds(tree.add(Text(name, style="cyan")), found, finds, older=older)
    holds = "; ".join(f"{each.memory_id[:SHORT_ID]}  {plain(each.content)}" for each in found.held)
    session.show(found, tree, Text("Holds: " + (holds or "none of it"), style="bold"))


@of_scope(memory)
def diff(session: Session, scope: Scope, memory_id: MemoryId, a: _Number, b: _Number) -> None:
    """Show what differs between two versions of a memory, field by field and word by word."""
    found = session.kit().governance.diff(session.memory_id(scope, memory_id), a, b, scope=scope)
    if not found.fields:
        session.show(found, *nothing(f"Versions {a} and {b} say the same."))
        return
    words = Text()
    for run in found.words:
        kept, (sign, style) = run.words.rstrip(), _CHANGES[run.change]
        words.append(sign.format(plain(kept)), style=style).append(run.words[len(kept) :])
    headers = ("!field", f"version {a}", f"version {b}")
    fields = [(each.name, shortened(each.before), shortened(each.after)) for each in found.fields]
    session.show(found, words, *table(fields, headers, lambda row: row, whole=True))


@of_scope(memory)
def forecast(
    session: Session,
    scope: Scope,
    *,
    days: Annotated[float, Option("--days", min=0, help="How many days ahead.")] = 30,
) -> None:
    """List what will be forgotten soon unless it is recalled before. Nothing is changed."""
    found = session.kit().retention.forecast(days, scope=scope)

    def row(each: models.Fading) -> tuple[str, ...]:
        return minute(each.forget_at), f"{each.weight:.2f}", each.memory.memory_id[:SHORT_ID], each.memory.content

    empty = f"Nothing will be forgotten in the next {days:g} days."
    session.show(found, *table(found, ("!forgotten from", ">weight", "!id", "memory"), row, empty=empty))


@of_scope(memory)
def consolidate(session: Session, scope: Scope, *, dry_run: DryRun = False, model: Model = None) -> None:
    """Make long-term memories of similar episodes, each with its sources. The episodes stay as they are."""
    found = session.kit(model).retention.consolidate(scope=scope, dry_run=dry_run, progress=session.bars())
    session.show(found, *_consolidation(found))


def _maintain(session: Session, scope: Scope, *, dry_run: DryRun = False) -> None:
    """Archive what faded, merge what says the same, abstract what is alike, and say why.

    `restore` brings back what was archived; what is archived for 60 days is purged, but for the messages it came from.
    """
    found = session.kit().retention.maintain(scope=scope, dry_run=dry_run, progress=session.bars())
    session.show(found, *maintenance_tables(found))


memory.command("maintain")(of_scope()(_maintain))
memory.command("cleanup", hidden=True)(of_scope()(_maintain))  # as governance protocols call it


@of_scope(memory)
def restore(
    session: Session,
    scope: Scope,
    memory_id: MemoryId,
    *,
    version: Annotated[
        int | None, Option("--version", min=1, help="Make this version valid again, as a new one.", metavar="N")
    ] = None,
) -> None:
    """Restore an archived memory, or an old version of any: what replaced it since is replaced in turn."""
    kit, whole = session.kit(), session.memory_id(scope, memory_id)
    found = kit.restore(whole, scope=scope, version=version)
    session.show(found, *memory_list([found]))


# ------------------------------------------------------------------------------------------- what is shown


def maintenance_tables(found: models.Maintenance) -> Views:
    """Show what was moved and merged, or would be, with reasons."""
    verb = "would be moved" if found.dry_run else "moved"
    looked = counted(found.examined, "live memory", "live memories")
    late = len(found.skipped)
    return (
        Text(f"{len(found.moves):,} of {looked} {verb}.", style="bold"),
        *table(
            found.moves,
            ("from", "to", "!id", "memory", "reason"),
            lambda move: (move.memory.status, move.to, *_named(move.memory), move.reason),
        ),
        *table(
            found.merges,
            ("!kept", "memory", "merged into it"),
            lambda merge: (*_named(merge.kept), "\n".join(other.content for other in merge.merged)),
        ),
        *table((*found.abstracted, *found.guidelines), ("!id", "abstracted or written"), _named),
        *lines(found.lines[:FIRST], "dim"),
        *lines([f"{late} left alone: changed meanwhile."] if late else []),
        *lines(f"Without {reason}" for reason in found.degraded),
    )


def _named(found: models.Memory) -> tuple[str, str]:
    return found.memory_id[:SHORT_ID], found.content


def _consolidation(found: models.Consolidation) -> Views:
    """Show which long-term memories were made or grew, or would, with how sure they are and when they apply."""
    would = "would be " if found.dry_run else ""
    looked = counted(found.examined, "live memory", "live memories")
    head = (
        f"Of {looked}, {counted(len(found.made), 'long-term memory', 'long-term memories')} {would}made; "
        f"{len(found.grown):,} grown, {len(found.proposed):,} only proposed, {counted(found.linked, 'link')}."
    )

    def conclusion(each: models.Memory) -> tuple[object, ...]:
        abstraction = models.Abstraction.of(each)
        when = ", ".join(abstraction.conditions) if abstraction else ""
        sure = f"{abstraction.confidence:.2f}" if abstraction else ""
        return (*_named(each), when, sure, each.merges + 1)

    notes = {
        f"{len(found.waiting)} wait for something to be linked with.": found.waiting,
        f"{len(found.skipped)} left alone: changed meanwhile.": found.skipped,
        f"{len(found.offline)} not concluded: the model's answers could not be used.": found.offline,
    }
    return (
        Text(head, style="bold"),
        *table((*found.made, *found.grown), ("!id", "conclusion", "when", ">sure", ">said"), conclusion),
        *table(
            found.proposed,
            ("!alike, for a model or a person to conclude from",),
            lambda ids: ("  ".join(each[:SHORT_ID] for each in ids),),
        ),
        *lines(found.lines[:FIRST], "dim"),
        *lines(note for note, applies in notes.items() if applies),
        *lines(f"Without {reason}" for reason in found.degraded),
    )


def _add_finds(branch: Tree, found: models.Archaeology, finds: Sequence[models.Find], *, older: bool) -> None:
    for find in finds:
        below = branch.add("")
        _add_versions(below, find)
        _add_finds(below, found, found.beyond(find, older=older), older=older)


def _add_versions(tree: Tree, find: models.Find) -> None:
    """Make a memory the head of a branch, and add its versions, each with the words that are new in it."""
    tree.label = Text.assemble(
        plain(find.head.content), "  ", state_of(find.status), (f"  {find.memory_id[:SHORT_ID]}", "dim")
    )
    quoted: list[models.Quote] = []
    for note in find.versions:
        tree.add(_version(note, [quote for quote in note.quotes if quote not in quoted]))
        quoted += note.quotes


def _version(note: models.VersionNote, quotes: Sequence[models.Quote]) -> Text:
    version = note.memory
    begins = minute(version.valid_from or version.said_at)
    ends = f" to {minute(version.valid_to)}" if version.valid_to and not version.corrected else ""
    false = version.corrected and note.action != "supersede"  # what another memory says since its block was read again
    times = "never true" if false else f"true from {begins}{ends}"
    done = f"{version.version}  {minute(version.recorded_at)}  {note.action} by {plain(note.actor)}"
    shown = Text(done + (f": {plain(note.reason)}" if note.reason else ""))
    shown.append(f"\n   {times}, said {minute(version.said_at)}", style="dim")
    for quote in quotes:
        shown.append(f"\n   “{shortened(quote.words)}”", style="italic")
    return shown


# ------------------------------------------------------------------------------------------- what a person decides


review = group()

_ALL: Sequence[ConflictKind] = get_args(ConflictKind)
_SHORT = 6
"""Characters of a conflict's id that are shown; `resolve` takes them."""


@of_scope(review)
def conflicts(
    session: Session,
    scope: Scope,
    *,
    state: Annotated[ConflictState, Option("--state", help="open: to be decided; resolved: decided.")] = "open",
    every: Annotated[bool, Option("--all", help="Also pairs where one says all that the other says.")] = False,
) -> None:
    """List memories that contradict each other, side by side."""
    kinds: Sequence[ConflictKind] = _ALL if every else ["contradiction"]
    found = session.kit().conflicts.list(scope=scope, state=state, kinds=kinds)
    session.show(found, *_conflicts(found))


@of_scope(review)
def resolve(
    session: Session,
    scope: Scope,
    conflict_id: Annotated[str, Argument(help="The conflict: its id, or the beginning of it.", metavar="ID")],
    decision: Annotated[Decision, Argument(help="What becomes of the two.")],
    *,
    by: By = "",
    note: Note = "",
    keep: Annotated[
        str,
        Option(
            "--keep", help="Id of the memory that stays, of supersede and merge; else the newer.", show_default=False
        ),
    ] = "",
) -> None:
    """Decide a conflict. No version is lost, and the journal records who decided what, and why."""
    facade = session.kit().conflicts
    known = (each.conflict_id for each in facade.list(scope=scope, kinds=_ALL))
    name, keep = first_match(known, conflict_id, "conflicts"), session.memory_id(scope, keep)
    found = facade.resolve(name, decision, scope=scope, by=by or scope.user, note=note, keep=keep)
    session.show(found, *_conflicts([found]))


def _conflicts(found: Sequence[Conflict]) -> Views:
    """Show conflicts, each with both memories, and what was decided."""

    def side(each: Memory) -> Text:
        return Text.assemble(plain(each.content), " ", state_of(each.status), (f" {each.memory_id[:SHORT_ID]}", "dim"))

    def row(each: Conflict) -> tuple[object, ...]:
        outcome = each.reason if each.state == "open" else "over: one of the two is gone"
        if decided := each.decided:
            note = f": {decided.note}" if decided.note else ""
            outcome = f"{decided.decision} by {decided.by}, {minute(decided.at)}{note}"
        what = each.kind if each.certain else f"{each.kind}?"
        return each.conflict_id[:_SHORT], what, side(each.older), side(each.newer), outcome

    return table(found, ("!id", "what", "older", "newer", "in what, or decided"), row, empty="No conflicts.")


@of_scope(review)
def waiting(session: Session, scope: Scope) -> None:
    """List what waits for approval."""
    found = session.kit().knowledge.waiting(scope=scope)
    session.show(found, *memory_list(found))


@of_scope(review)
def approve(session: Session, scope: Scope, memory_id: MemoryId, *, by: By = "", note: Note = "") -> None:
    """Approve a memory. It is trusted no more than before, and its links stay disarmed."""
    name = session.memory_id(scope, memory_id)
    found = session.kit().knowledge.decide(name, approve=True, scope=scope, by=by or scope.user, note=note)
    session.show(found, *memory_list([found]))


@of_scope(review)
def reject(session: Session, scope: Scope, memory_id: MemoryId, *, by: By = "", note: Note = "") -> None:
    """Delete a memory that waits."""
    name = session.memory_id(scope, memory_id)
    found = session.kit().knowledge.decide(name, approve=False, scope=scope, by=by or scope.user, note=note)
    session.show(found, *memory_list([found]))


_MessageId = Annotated[str, Argument(help="The message that asks: its id, or the beginning of it.", metavar="ID")]


@of_scope(review)
def requests(session: Session, scope: Scope) -> None:
    """List the requests to forget, made in conversation, that wait for a decision, with the words that are withheld for them."""

    def row(each: ForgetRequest) -> tuple[object, ...]:
        name = each.message.message_id
        beside = "\n".join(plain(shortened(one.text)) for one in each.words if one.message_id != name)
        return name[:SHORT_ID], minute(each.message.time), plain(each.message.text), beside

    found = session.kit().governance.requests(scope=scope)
    session.show(found, *table(found, ("!id", "said", "request", "withheld beside it"), row, empty="No requests."))


@of_scope(review)
def forget(session: Session, scope: Scope, message_id: _MessageId) -> None:
    """Forget what a request means: its words, what it points back to, and what else holds the words that name it."""
    _decide(session, scope, message_id, forget=True)


@of_scope(review)
def keep(session: Session, scope: Scope, message_id: _MessageId) -> None:
    """Show the words again: it was no request to forget."""
    _decide(session, scope, message_id, forget=False)


def _decide(session: Session, scope: Scope, message_id: str, *, forget: bool) -> None:
    governance = session.kit().governance
    known = (each.message.message_id for each in governance.requests(scope=scope))
    done = governance.decide(first_match(known, message_id, "requests"), forget=forget, scope=scope)
    told = f"{counted(len(done.messages), 'message')} shown again."
    if forget:
        memories = f"{len(done.memories)} {'memory' if len(done.memories) == 1 else 'memories'}"
        told = f"Forgotten: {memories}, words of {counted(len(done.messages), 'message')}."
    if forget and not done.found:
        told += " Nothing else was found: what it means may still be remembered. Look with `remegraph recall`."
    session.show(done, *lines([told], ""))
