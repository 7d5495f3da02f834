"""Commands about what agents share: what one lets another read, what all agents of a user know, and memories in a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, cast

from rich.text import Text
from typer import Argument, Option

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
    of_home,
    of_scope,
    plain,
    read_time,
    state_of,
    table,
)
from remegraph.cli.options import By, MemoryId, Reason, Topic
from remegraph.mek.items import SigningKey
from remegraph.models import Grant, Layer, PackInfo, Proposal, ProposalState, Scope, Status, TrustedKey

__all__ = ["pack", "share"]

share, pack = group(), group()

_ProposalId = Annotated[
    str, Argument(help="The proposal: its id, or the beginning of it.", metavar="ID", show_default=False)
]


@of_scope(share)
def grants(session: Session, scope: Scope) -> None:
    """List what an agent (--agent) lets others read, and what it may read; expired ones, too."""
    found = session.kit().sharing.grants(scope=scope)
    session.show(found, *_grants(found))


@of_scope(share)
def grant(
    session: Session,
    scope: Scope,
    to_agent: Annotated[str, Argument(help="The agent that may read.", metavar="AGENT", show_default=False)],
    *,
    reason: Reason,
    memory: Annotated[list[str] | None, Option("--memory", help="Only this memory, by id.", metavar="ID")] = None,
    topic: Topic = None,
    layer: Annotated[list[str] | None, Option("--layer", help="Only these layers; episodic unless given.")] = None,
    until: Annotated[str | None, Option("--until", help="When it ends.")] = None,
    by: By = "",
) -> None:
    """Let another agent read memories of an agent (--agent) of the same user and project."""
    found = session.kit().sharing.grant(
        to_agent,
        scope=scope,
        memory_ids=[session.memory_id(scope, each) for each in memory or ()],
        topic=topic,
        layers=cast("list[Layer]", layer) or ("episodic",),  # the kit refuses what is none
        expires_at=read_time(until, None),
        reason=reason,
        actor=by or scope.user,
    )
    session.show(found, *_grants([found]))


@of_scope(share)
def revoke(
    session: Session,
    scope: Scope,
    grant_id: Annotated[str, Argument(help="The grant.", metavar="ID", show_default=False)],
    *,
    reason: Reason,
    by: By = "",
) -> None:
    """Revoke a grant of an agent (--agent)."""
    found = session.kit().sharing.revoke(grant_id, scope=scope, reason=reason, actor=by or scope.user)
    session.show(found, *_grants([found]))


def _grants(found: Sequence[Grant]) -> Views:
    """Show grants, each with what it opens, to whom, and until when."""

    def row(each: Grant) -> tuple[str, ...]:
        what = ", ".join((*each.layers, *filter(None, [each.topic]), *(name[:SHORT_ID] for name in each.memory_ids)))
        ends = [end for end in (each.revoked_at, each.expires_at) if end is not None]
        until = minute(min(ends)) if ends else "until revoked"
        return each.grant_id, each.giver.agent or "", each.to_agent, what, until, each.reason

    return table(found, ("!id", "from", "to", "what", "until", "why"), row, empty="No grants.", whole=True)


@of_scope(share)
def proposals(
    session: Session,
    scope: Scope,
    *,
    state: Annotated[
        ProposalState | None, Option("--state", help="Only these; stale: its author says otherwise by now.")
    ] = None,
) -> None:
    """List what agents proposed for all agents of the user, and which agents support it."""
    found = session.kit().sharing.proposals(scope=scope, state=state)
    session.show(found, *_proposals(found))


@of_scope(share)
def propose(
    session: Session,
    scope: Scope,
    memory_id: MemoryId,
    *,
    reason: Reason,
    replaces: Annotated[
        str, Option("--replaces", help="Id of the shared memory that it replaces.", show_default=False)
    ] = "",
    expected_version: Annotated[
        int | None, Option("--expected-version", min=1, help="The version of that memory that was read.")
    ] = None,
) -> None:
    """Propose a memory of an agent (--agent) for all agents of the user. It is not recalled until they agree."""
    found = session.kit().sharing.propose(
        session.memory_id(scope, memory_id),
        scope=scope,
        reason=reason,
        replaces=session.memory_id(scope, replaces),
        expected_version=expected_version,
    )
    session.show(found, *_proposals([found]))


@of_scope(share)
def corroborate(
    session: Session,
    scope: Scope,
    proposal_id: _ProposalId,
    *,
    memory: Annotated[
        str, Option("--memory", help="The agent's own memory that says so.", metavar="ID", show_default=False)
    ],
) -> None:
    """Support a proposal with a memory of another agent (--agent), on evidence of its own."""
    name, own = session.memory_id(scope, proposal_id), session.memory_id(scope, memory)
    found = session.kit().sharing.corroborate(name, scope=scope, memory_id=own)
    session.show(found, *_proposals([found]))


@of_scope(share)
def approve(session: Session, scope: Scope, proposal_id: _ProposalId, *, by: By = "", reason: Reason = "") -> None:
    """Make a proposal a memory of all agents of the user, on a person's word."""
    name = session.memory_id(scope, proposal_id)
    found = session.kit().sharing.decide(name, approve=True, scope=scope, actor=by or scope.user, reason=reason)
    session.show(found, *_proposals([found]))


@of_scope(share)
def reject(session: Session, scope: Scope, proposal_id: _ProposalId, *, by: By = "", reason: Reason = "") -> None:
    """Refuse a proposal, on a person's word. It stays in the ledger, and is never recalled."""
    name = session.memory_id(scope, proposal_id)
    found = session.kit().sharing.decide(name, approve=False, scope=scope, actor=by or scope.user, reason=reason)
    session.show(found, *_proposals([found]))


@of_scope(share)
def withdraw(session: Session, scope: Scope, proposal_id: _ProposalId, *, reason: Reason = "") -> None:
    """Take back what an agent (--agent) proposed."""
    found = session.kit().sharing.withdraw(session.memory_id(scope, proposal_id), scope=scope, reason=reason)
    session.show(found, *_proposals([found]))


def _proposals(found: Sequence[Proposal]) -> Views:
    """Show proposals, each with its state, the agents that support it, and the latest comment."""

    def row(each: Proposal) -> tuple[object, ...]:
        last = each.endorsements[-1]
        words = f"{last.act} by {last.by}" + (f": {last.reason}" if last.reason else "")
        content, agents = each.memory.content, ", ".join(each.agents)
        return each.proposal_id[:SHORT_ID], state_of(each.state), content, agents, words

    return table(found, ("!id", "state", "what", "agents", "last said"), row, empty="No proposals.")


# ------------------------------------------------------------------------------------------- packs


_File = Annotated[Path, Argument(help="The pack, or a JSON document of one.", show_default=False)]
_Trust = Annotated[
    float | None,
    Option("--trust", min=0, max=1, help="How far it is trusted; 1 for your own. Unless given: as its signer."),
]
_Signed = Annotated[
    bool, Option("--require-signature", help="Refuse it unless a trusted key has signed it.", show_default=False)
]


@of_scope(pack)
def build(
    session: Session,
    scope: Scope,
    file: Annotated[Path, Argument(help="Where to write it.", show_default=False)],
    *,
    preset: Annotated[bool, Option("--preset", help="Items for any agent, instead of the memories whole.")] = False,
    topic: Topic = None,
    memory: Annotated[list[str] | None, Option("--memory", help="Only this memory; may be repeated.")] = None,
    include: Annotated[list[str] | None, Option("--include", help="Also quarantined or proposed memories.")] = None,
    pack_id: Annotated[str, Option("--id", help="Its id. Unless given: made of its content.")] = "",
    domain: Annotated[list[str] | None, Option("--domain", help="A field that it is for.")] = None,
    activate: Annotated[list[str] | None, Option("--activate", help="Id or tag of items to keep ready.")] = None,
    desensitize: Annotated[
        bool, Option("--desensitize", help="Take personal data, secrets and names out of a preset.")
    ] = False,
    key: Annotated[Path | None, Option("--key", help="File of the private key that signs it.")] = None,
    force: Annotated[bool, Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write memories to a pack."""
    done = session.kit().packs.build(
        file,
        scope=scope,
        kind="preset" if preset else "export",
        topic=topic,
        memory_ids=None if memory is None else [session.memory_id(scope, each) for each in memory],
        include=cast("list[Status]", include or []),  # the kit refuses what is none
        pack_id=pack_id,
        domain=domain or (),
        activate=activate or (),
        desensitize=desensitize,
        key=key,
        overwrite=force,
        progress=session.bars(),
    )
    dropped = [f"{counted(done.dropped, 'reference')} to memories that stayed behind."] if done.dropped else []
    session.show(
        done,
        *_info(done.pack),
        *lines([f"Written to {done.path}."], "green"),
        *table(list(done.left_out.items()), ("left out", "why"), lambda each: each),
        *lines(dropped, "dim"),
    )


@of_home(pack)
def inspect(session: Session, file: _File) -> None:
    """Show what a pack holds, once its size and checksums are in order."""
    found = session.kit().packs.inspect(file)
    session.show(found, *_info(found))


@of_home(pack)
def verify(session: Session, file: _File, *, require_signature: _Signed = False) -> None:
    """Check all of a pack: size, checksums, signature, every record."""
    found = session.kit().packs.verify(file, require_signature=require_signature or None)
    session.show(found, *_info(found), "Every record is valid.")


@of_scope(pack)
def diff(session: Session, scope: Scope, file: _File, *, trust: _Trust = None) -> None:
    """Show what installing a pack would do. Nothing is changed."""
    found = session.kit().packs.diff(file, scope=scope, trust=trust)
    parts = [
        ("new", found.new),
        ("known", found.known),
        ("conflicting", found.conflicting),
        ("waiting for approval", found.quarantined),
        ("refused", found.refused),
    ]
    believed = Text(f"Trusted {found.trust:g} of 1.", style="dim")
    session.show(found, *_info(found.pack), believed, *table(parts, ("what", ">how many", "which"), _row))


def _row(part: tuple[str, tuple[str, ...]]) -> tuple[str, int, str]:
    name, ids = part
    return name, len(ids), ", ".join(ids[:FIRST]) + (", …" if len(ids) > FIRST else "")


@of_scope(pack)
def install(
    session: Session,
    scope: Scope,
    file: _File,
    *,
    trust: _Trust = None,
    require_signature: _Signed = False,
    activate: Annotated[
        list[str] | None,
        Option("--activate", help="Id or tag of items to keep ready; 'manifest': as the pack says."),
    ] = None,
) -> None:
    """Install a pack: all of it, or nothing. The same pack again changes nothing."""
    done = session.kit(create=True).packs.install(
        file,
        scope=scope,
        trust=trust,
        require_signature=require_signature or None,
        activate=activate or (),
        progress=session.bars(),
    )
    if done.replayed:
        session.show(done, Text("It was installed before: nothing changed.", style="dim"))
        return
    outcomes = sorted(Counter(item.outcome for item in done.items).items())
    session.show(
        done,
        Text(f"{counted(len(done.memory_ids), 'memory', 'memories')} installed.", style="green"),
        *lines([", ".join(f"{count} {name}" for name, count in outcomes)] if outcomes else [], "dim"),
        *lines(f"Not up to date: {each}" for each in done.degraded),
    )


@of_home(pack)
def keygen(
    session: Session,
    file: Annotated[Path, Argument(help="Where to write the private key; a new file.", show_default=False)],
) -> None:
    """Make a key that signs packs. Give others the public key that is printed; keep the file secret."""
    key = SigningKey.generate()
    key.save(file)
    session.show(
        {"file": str(file), "key_id": key.key_id, "public": key.public},
        f"Key {key.key_id}. Others trust it with:",
        *lines([f"remegraph pack trust NAME {key.public}"], "bold"),
    )


@of_home(pack)
def trust(
    session: Session,
    name: Annotated[str, Argument(help="Whose key it is.", show_default=False)],
    public: Annotated[str, Argument(help="The public key, as `keygen` printed it.", show_default=False)],
) -> None:
    """Trust a key: what it signs is from its owner. The settings say how far that owner is trusted."""
    _show_key(session, session.kit(create=True).packs.trust_key(name, public))


@of_home(pack, "revoke")
def revoke_key(session: Session, key_id: Annotated[str, Argument(help="The key.", show_default=False)]) -> None:
    """Revoke a key for good: it is no longer trusted."""
    _show_key(session, session.kit().packs.revoke_key(key_id))


def _show_key(session: Session, key: TrustedKey) -> None:
    state = "revoked" if key.revoked else "trusted"
    shown = table([key], ("name", "!key", "state"), lambda each: (each.name, each.key_id, state))
    session.show({"key_id": key.key_id, **key.model_dump()}, *shown)


def _info(found: PackInfo) -> Views:
    """Show what a pack says of itself."""
    signed = f"signed by {found.signer}" if found.signer else found.problem
    rows = {
        "pack": f"{found.pack_id} ({found.kind})",
        "for": ", ".join(found.domain),
        "holds": ", ".join(f"{count:,} {name.removesuffix('.jsonl')}" for name, count in found.counts.items()),
        "signature": f"{signed} {f'key {found.key_id}' if found.key_id else ''}".strip(),
        "digest": found.digest,
    }
    return (
        grid((Text(name, style="dim"), Text(plain(value), overflow="fold")) for name, value in rows.items() if value),
    )
