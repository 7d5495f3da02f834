"""Packs that somebody made to do harm."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from conftest import Figure
from remegraph import MemoryKit
from remegraph.errors import PackError
from remegraph.ledger.schema import metadata
from remegraph.mek.items import SigningKey
from remegraph.models import PackKind
from remegraph.packs.format import MEMBERS
from tests.packs.hostile_packs import CASES, Case, Forge, zipped
from tests.talk import ANN, open_kit, replied, said


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """A kit with memories of its own, which no pack may touch."""
    with open_kit(tmp_path_factory.mktemp("victim")) as opened:
        opened.add_messages(
            [said("I like black tea."), replied("Noted."), said("I live in Oslo.", minutes=1)], scope=ANN
        )
        opened.summarize(scope=ANN, close=True)
        yield opened


@pytest.fixture(scope="module")
def forge(kit: MemoryKit, tmp_path_factory: pytest.TempPathFactory) -> Forge:
    """What hostile packs are made of: good ones."""
    folder = tmp_path_factory.mktemp("good")
    trusted, revoked = SigningKey.generate(), SigningKey.generate()
    kit.packs.trust_key("ann", trusted.public)
    kit.packs.trust_key("mallory", revoked.public)
    kit.packs.revoke_key(revoked.key_id)
    with open_kit(folder / "home") as source:
        source.add_messages(
            [said("I like green tea."), replied("Noted."), said("I live in Rome.", minutes=1)], scope=ANN
        )
        source.summarize(scope=ANN, close=True)
        lines: dict[PackKind, dict[str, list[bytes]]] = {}
        for kind in ("export", "preset"):
            source.packs.build(folder / kind, scope=ANN, kind=kind)
            with source.packs._opened(folder / kind) as pack:
                lines[kind] = {
                    name: [json.dumps(found).encode() + b"\n" for _, found in pack.records(name)]
                    for name in MEMBERS[kind]
                }
    return Forge(lines["export"], lines["preset"], trusted, revoked)


def _state(kit: MemoryKit) -> dict[str, str]:
    """The digest of every table."""
    with kit.context.parts().archive.database.read() as connection:
        return {
            name: hashlib.sha256(repr(connection.execute(select(table)).all()).encode()).hexdigest()
            for name, table in metadata.tables.items()
        }


@pytest.mark.requirement("K9")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_hostile_pack_is_refused_for_its_reason_and_changes_nothing(
    kit: MemoryKit, forge: Forge, case: Case, tmp_path: Path, figure: Figure
) -> None:
    """A pack comes from anywhere: one that is half taken in, or crashes the agent, is an attack that worked."""
    path = tmp_path / "hostile.pack"
    path.write_bytes(case.make(forge))
    before = _state(kit)
    with pytest.raises(PackError) as caught:
        kit.packs.install(path, scope=ANN, trust=case.trust, require_signature=case.required or None)
    assert (caught.value.reason, bool(caught.value.cure)) == (case.reason, True), str(caught.value)
    assert _state(kit) == before
    figure("hostile packs refused, nothing changed", case.reason)


def test_there_are_sixty_hostile_packs_at_least_and_good_ones_pass(
    kit: MemoryKit, forge: Forge, tmp_path: Path
) -> None:
    """A reader that refuses everything would pass the test above."""
    assert len({case.name for case in CASES}) >= 60
    for kind in ("export", "preset"):
        (tmp_path / kind).write_bytes(zipped(forge.pack(kind)))
        assert kit.packs.verify(tmp_path / kind).kind == kind
    (tmp_path / "signed").write_bytes(forge.signed(forge.trusted))
    assert kit.packs.verify(tmp_path / "signed", require_signature=True).signer == "ann"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a bomb", "a bomb whose header lies", "a bomb in the manifest", "a record too large"])
def test_a_bomb_costs_no_memory(kit: MemoryKit, forge: Forge, name: str, tmp_path: Path, figure: Figure) -> None:
    """It would expand to hundreds of times its size, and take the agent's process with it."""
    path = tmp_path / "bomb.pack"
    (case,) = (case for case in CASES if case.name == name)
    path.write_bytes(case.make(forge))
    tracemalloc.start()
    try:
        with pytest.raises(PackError):
            kit.packs.install(path, scope=ANN, trust=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000
    figure("most memory that a bomb took, in MB", peak / 1e6)
