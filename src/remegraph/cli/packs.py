"""Commands about packs: memories in a file, signed, checked and taken in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from remegraph.cli import views
from remegraph.cli.asking import Asked, asked, full_id
from remegraph.cli.options import AsJson, Home, group
from remegraph.cli.session import guarded, open_kit
from remegraph.models import PackKind, Status

__all__ = ["app"]

app = group("Memories in a file: for another home, or for other agents.")

_File = Annotated[Path, typer.Argument(help="The pack, or a JSON document of one.", show_default=False)]
_Trust = Annotated[
    float | None,
    typer.Option(
        "--trust", min=0, max=1, help="How far it is believed; 1 for what is yours. Unless given: as its signer is."
    ),
]
_Signed = Annotated[
    bool, typer.Option("--require-signature", help="Refuse it unless a trusted key has signed it.", show_default=False)
]


@app.command()
@asked
def build(
    ask: Asked,
    file: Annotated[Path, typer.Argument(help="Where to write it.", show_default=False)],
    *,
    preset: Annotated[
        bool, typer.Option("--preset", help="Items for any agent, instead of the memories whole.")
    ] = False,
    topic: Annotated[str | None, typer.Option("--topic", help="Only this topic, type:name.")] = None,
    memory: Annotated[list[str] | None, typer.Option("--memory", help="Only this memory; may be repeated.")] = None,
    include: Annotated[
        list[str] | None, typer.Option("--include", help="Also quarantined or proposed memories.")
    ] = None,
    pack_id: Annotated[str, typer.Option("--id", help="Its id. Unless given: made of its content.")] = "",
    domain: Annotated[list[str] | None, typer.Option("--domain", help="A field that it is for.")] = None,
    activate: Annotated[
        list[str] | None, typer.Option("--activate", help="Id or tag of items that shall stand ready.")
    ] = None,
    desensitize: Annotated[
        bool, typer.Option("--desensitize", help="Take personal data, secrets and names out of a preset.")
    ] = False,
    key: Annotated[Path | None, typer.Option("--key", help="File of the private key that signs it.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write memories to a pack."""
    kind: PackKind = "preset" if preset else "export"
    asked_for: list[Status] = [*(include or ())]
    with ask.out.bars() as report, ask.kit() as kit:
        done = kit.packs.build(
            file,
            scope=ask.scope,
            kind=kind,
            topic=topic,
            memory_ids=None if memory is None else [full_id(kit, each, ask.scope) for each in memory],
            include=asked_for,
            pack_id=pack_id,
            domain=domain or (),
            activate=activate or (),
            desensitize=desensitize,
            key=key,
            overwrite=force,
            progress=report,
        )
    ask.out.show(done, *views.built(done))


@app.command()
def inspect(file: _File, *, home: Home = None, as_json: AsJson = False) -> None:
    """Say what a pack holds, once its size and checksums are in order."""
    with guarded(as_json=as_json) as out:
        with open_kit(home) as kit:
            found = kit.packs.inspect(file)
        out.show(found, *views.pack(found))


@app.command()
def verify(file: _File, *, require_signature: _Signed = False, home: Home = None, as_json: AsJson = False) -> None:
    """Check a pack whole: size, checksums, signature, every record."""
    with guarded(as_json=as_json) as out:
        with open_kit(home) as kit:
            found = kit.packs.verify(file, require_signature=require_signature or None)
        out.show(found, *views.pack(found), "Every record holds.")


@app.command()
@asked
def diff(ask: Asked, file: _File, *, trust: _Trust = None) -> None:
    """Say what installing a pack would do. Nothing is changed."""
    with ask.kit() as kit:
        found = kit.packs.diff(file, scope=ask.scope, trust=trust)
    ask.out.show(found, *views.pack_difference(found))


@app.command()
@asked
def install(
    ask: Asked,
    file: _File,
    *,
    trust: _Trust = None,
    require_signature: _Signed = False,
    activate: Annotated[
        list[str] | None,
        typer.Option("--activate", help="Id or tag of items that shall stand ready; 'manifest': as the pack says."),
    ] = None,
) -> None:
    """Take a pack in: all of it, or nothing. The same pack again changes nothing."""
    with ask.out.bars() as report, open_kit(ask.home, create=True) as kit:
        done = kit.packs.install(
            file,
            scope=ask.scope,
            trust=trust,
            require_signature=require_signature or None,
            activate=activate or (),
            progress=report,
        )
    ask.out.show(done, *views.installed(done))


@app.command()
def keygen(
    file: Annotated[Path, typer.Argument(help="Where to write the private key; a new file.", show_default=False)],
    *,
    as_json: AsJson = False,
) -> None:
    """Make a key that signs packs. Give others the public key that is printed; show nobody the file."""
    from remegraph.exchange.signing import SigningKey  # noqa: PLC0415 - needs the extra `sharing`

    with guarded(as_json=as_json) as out:
        key = SigningKey.generate()
        key.save(file)
        out.show(
            {"file": str(file), "key_id": key.key_id, "public": key.public}, *views.new_key(key.key_id, key.public)
        )


@app.command()
def trust(
    name: Annotated[str, typer.Argument(help="Whose key it is.", show_default=False)],
    public: Annotated[str, typer.Argument(help="The public key, as `keygen` printed it.", show_default=False)],
    *,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Believe a key: what it signs is of its owner. How far that one is believed, the settings say."""
    with guarded(as_json=as_json) as out:
        with open_kit(home, create=True) as kit:
            key = kit.packs.trust_key(name, public)
        out.show({"key_id": key.key_id, **key.model_dump()}, *views.keys([key]))


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(help="The key.", show_default=False)],
    *,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Believe a key no more, for good."""
    with guarded(as_json=as_json) as out:
        with open_kit(home) as kit:
            key = kit.packs.revoke_key(key_id)
        out.show({"key_id": key.key_id, **key.model_dump()}, *views.keys([key]))
