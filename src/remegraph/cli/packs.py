"""Commands about packs: memories in a file, signed, checked and taken in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, cast

from rich.text import Text
from typer import Argument, Option

from remegraph.cli.command import FIRST, Session, Views, counted, grid, group, lines, of_home, of_scope, plain, table
from remegraph.cli.options import Topic
from remegraph.mek.items import SigningKey
from remegraph.models import PackInfo, Scope, Status, TrustedKey

__all__ = ["app"]

app = group()

_File = Annotated[Path, Argument(help="The pack, or a JSON document of one.", show_default=False)]
_Trust = Annotated[
    float | None,
    Option(
        "--trust", min=0, max=1, help="How far it is believed; 1 for what is yours. Unless given: as its signer is."
    ),
]
_Signed = Annotated[
    bool, Option("--require-signature", help="Refuse it unless a trusted key has signed it.", show_default=False)
]


@of_scope(app)
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
    activate: Annotated[
        list[str] | None, Option("--activate", help="Id or tag of items that shall stand ready.")
    ] = None,
    desensitize: Annotated[
        bool, Option("--desensitize", help="Take personal data, secrets and names out of a preset.")
    ] = False,
    key: Annotated[Path | None, Option("--key", help="File of the private key that signs it.")] = None,
    force: Annotated[bool, Option("--force", help="Replace a file that is there.")] = False,
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


@of_home(app)
def inspect(session: Session, file: _File) -> None:
    """Say what a pack holds, once its size and checksums are in order."""
    found = session.kit().packs.inspect(file)
    session.show(found, *_info(found))


@of_home(app)
def verify(session: Session, file: _File, *, require_signature: _Signed = False) -> None:
    """Check a pack whole: size, checksums, signature, every record."""
    found = session.kit().packs.verify(file, require_signature=require_signature or None)
    session.show(found, *_info(found), "Every record holds.")


@of_scope(app)
def diff(session: Session, scope: Scope, file: _File, *, trust: _Trust = None) -> None:
    """Say what installing a pack would do. Nothing is changed."""
    found = session.kit().packs.diff(file, scope=scope, trust=trust)
    parts = [
        ("new", found.new),
        ("known", found.known),
        ("conflicting", found.conflicting),
        ("waiting for approval", found.quarantined),
        ("refused", found.refused),
    ]
    believed = Text(f"Believed {found.trust:g} of 1.", style="dim")
    session.show(found, *_info(found.pack), believed, *table(parts, ("what", ">how many", "which"), _row))


def _row(part: tuple[str, tuple[str, ...]]) -> tuple[str, int, str]:
    name, ids = part
    return name, len(ids), ", ".join(ids[:FIRST]) + (", …" if len(ids) > FIRST else "")


@of_scope(app)
def install(
    session: Session,
    scope: Scope,
    file: _File,
    *,
    trust: _Trust = None,
    require_signature: _Signed = False,
    activate: Annotated[
        list[str] | None,
        Option("--activate", help="Id or tag of items that shall stand ready; 'manifest': as the pack says."),
    ] = None,
) -> None:
    """Take a pack in: all of it, or nothing. The same pack again changes nothing."""
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
        Text(f"{counted(len(done.memory_ids), 'memory', 'memories')} taken in.", style="green"),
        *lines([", ".join(f"{count} {name}" for name, count in outcomes)] if outcomes else [], "dim"),
        *lines(f"Not up to date: {each}" for each in done.degraded),
    )


@of_home(app)
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
        Text(f"remegraph pack trust NAME {key.public}", style="bold"),
    )


@of_home(app)
def trust(
    session: Session,
    name: Annotated[str, Argument(help="Whose key it is.", show_default=False)],
    public: Annotated[str, Argument(help="The public key, as `keygen` printed it.", show_default=False)],
) -> None:
    """Believe a key: what it signs is of its owner. How far that one is believed, the settings say."""
    _show_key(session, session.kit(create=True).packs.trust_key(name, public))


@of_home(app)
def revoke(session: Session, key_id: Annotated[str, Argument(help="The key.", show_default=False)]) -> None:
    """Believe a key no more, for good."""
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
