"""Packs that friends make: built, signed, compared, taken in, and all or nothing of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from remegraph import (
    CancelledError,
    ConflictError,
    InputError,
    MemoryKit,
    NotFoundError,
    Scope,
    Settings,
    SharingPolicy,
)
from remegraph.demo import ANN as PERSON
from remegraph.demo import XIAOLIN, play
from remegraph.errors import PackError
from remegraph.failpoints import listen
from remegraph.files import alone
from remegraph.kit import OpenOptions
from remegraph.mek.items import SigningKey
from remegraph.models import Memory, PackKind, Progress
from remegraph.packs import contents
from remegraph.packs.format import LIMITS
from remegraph.testing import FrozenClock, InMemoryVectorIndex, SequentialIds
from tests.talk import NOON, open_kit, said

ANN = PERSON.scope

TEA: dict[str, Any] = {
    "包标识": "tea-1",
    "领域标签": "drinks",
    "内容列表": [
        {
            "memory_type": "语义",
            "content": {"concept_name": "绿茶", "definition": "绿茶应该用八十度的水冲泡。"},
            "importance": "高",
        },
        {
            "memory_type": "semantic",
            "content": {"concept_name": "green tea", "definition": "Green tea keeps for a year."},
        },
        {
            "memory_type": "workflow",
            "content": {
                "task_description": "Brew green tea",
                "workflow_name": "brewing",
                "steps": [{"name": "heat water"}],
            },
            "importance": "低",
        },
    ],
}
"""A pack as the protocol's section 3.1.1 has it."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """The memories of the demo, and a few that were superseded, disputed and taken back."""
    with open_kit(tmp_path_factory.mktemp("source")) as kit:
        play(kit)
        kit.save("city", "Ann lives in Paris.", scope=ANN)
        kit.save("city", "Ann lives in Rome.", scope=ANN)
        kit.save("tea", "Ann likes green tea.", scope=ANN, tags=["drinks"])
        gone = kit.save("gone", "Ann likes coffee.", scope=ANN).memory
        assert gone is not None
        kit.forget(gone.memory_id, scope=ANN)
        kit.save("secret", "Bob likes black tea.", scope=Scope(user="bob", agent="remy"))
        yield kit


@pytest.fixture
def target(tmp_path: Path) -> Iterator[MemoryKit]:
    """Another home, which is empty."""
    settings = Settings(home=tmp_path / "target", sharing=SharingPolicy(trust={"ann": 0.9, "me": 1.0}))
    with MemoryKit.open(
        settings=settings,
        model=None,
        embedder=None,
        index=InMemoryVectorIndex(),
        clock=FrozenClock(NOON),
        options=OpenOptions(new_id=SequentialIds()),
    ) as kit:
        yield kit


def _document(tmp_path: Path, given: Mapping[str, Any] = TEA) -> Path:
    path = tmp_path / "tea.json"
    path.write_text(json.dumps(given, ensure_ascii=False), encoding="utf-8")
    return path


def _whole(kit: MemoryKit, memory_ids: list[str], scope: Scope = ANN) -> dict[str, tuple[Memory, ...]]:
    archive = kit.context.parts().archive
    return {each: archive.versions([scope.partition()], each) for each in memory_ids}


# ------------------------------------------------------------------------------------------- exports


@pytest.mark.requirement("K9")
@pytest.mark.parametrize("scope", [ANN, XIAOLIN.scope], ids=["en", "zh"])
def test_an_export_brings_memories_links_versions_and_words_home(
    source: MemoryKit, target: MemoryKit, tmp_path: Path, scope: Scope
) -> None:
    """Moving house must lose nothing: not what was once believed, nor the words that bear it out."""
    path = tmp_path / "ann.pack"
    source.packs.build(path, scope=scope)
    done = target.packs.install(path, scope=scope, trust=1)
    ids = list(done.memory_ids)
    assert len(ids) == done.pack.counts["memories.jsonl"] - sum(
        len(each) - 1 for each in _whole(source, ids, scope).values()
    )
    assert _whole(source, ids, scope) == _whole(target, ids, scope)
    here, there = (kit.context.parts().archive for kit in (source, target))
    place = [scope.partition()]
    links = [link for link in here.links(place, ids) if {link.source_id, link.target_id} <= {*ids}]
    assert list(there.links(place, ids)) == links
    for memory_id in ids:
        mine, theirs = source.trace(memory_id, scope=scope), target.trace(memory_id, scope=scope)
        assert [quote.message.text for quote in mine.quotes] == [quote.message.text for quote in theirs.quotes]
        assert [entry.entry for entry in mine.summaries] == [entry.entry for entry in theirs.summaries]
        assert not theirs.missing
    assert target.admin.verify().healthy
    assert target.summarize(scope=scope, close=True).blocks == ()


@pytest.mark.requirement("K9")
def test_the_same_memories_make_the_same_file_wherever_they_are(
    source: MemoryKit, target: MemoryKit, tmp_path: Path
) -> None:
    """A digest says which pack it is only if nothing but the content changes it."""
    one, two, three = (tmp_path / name for name in "abc")
    source.packs.build(one, scope=ANN)
    source.packs.build(two, scope=ANN)
    target.packs.install(one, scope=ANN, trust=1)
    target.packs.build(three, scope=ANN)
    assert one.read_bytes() == two.read_bytes() == three.read_bytes()


def test_an_export_holds_nobody_elses_memories_and_none_that_were_taken_back(source: MemoryKit, tmp_path: Path) -> None:
    """What was forgotten, waits for approval or is another user's must not leave by a side door."""
    path = tmp_path / "ann.pack"
    source.packs.build(path, scope=ANN)
    with source.packs._opened(path) as pack:
        told = json.dumps([found for name in pack.info.counts for _, found in pack.records(name)])
    assert "Ann likes green tea." in told
    assert "coffee" not in {each["content"] for each in _memories(source, path)}
    assert "black tea" not in told
    assert not any(word in told for word in ('"partition"', '"tenant"', '"user": "ann"'))
    with pytest.raises(InputError, match="proposed, quarantined"):
        source.packs.build(path, scope=ANN, include=["deleted"], overwrite=True)


def _memories(kit: MemoryKit, path: Path) -> list[dict[str, Any]]:
    with kit.packs._opened(path) as pack:
        return [found for _, found in pack.records("memories.jsonl")]


def test_a_topic_or_single_memories_can_be_exported(source: MemoryKit, tmp_path: Path) -> None:
    """Often only one thing is worth giving away."""
    path = tmp_path / "some.pack"
    (tea,) = (each for each in source.memories(scope=ANN) if each.content == "Ann likes green tea.")
    built = source.packs.build(path, scope=ANN, memory_ids=[tea.memory_id])
    assert (built.pack.counts["memories.jsonl"], built.pack.counts["blocks.jsonl"]) == (1, 1)
    built = source.packs.build(path, scope=ANN, topic=tea.topic.key, overwrite=True)
    assert built.pack.counts["memories.jsonl"] > 1
    assert {each["topic"]["target_name"] for each in _memories(source, path)} == {tea.topic.target_name}
    with pytest.raises(NotFoundError):
        source.packs.build(tmp_path / "bob.pack", scope=Scope(user="bob", agent="remy"), memory_ids=[tea.memory_id])


@pytest.mark.requirement("K9")
def test_the_same_export_again_changes_nothing_and_another_is_known(
    source: MemoryKit, target: MemoryKit, tmp_path: Path
) -> None:
    """Whoever is not sure whether it worked simply does it again."""
    path, again = tmp_path / "ann.pack", tmp_path / "again.pack"
    source.packs.build(path, scope=ANN)
    source.packs.build(again, scope=ANN, pack_id="another")
    first = target.packs.install(path, scope=ANN, trust=1)
    counts = target.context.parts().archive.counts()
    assert target.packs.install(path, scope=ANN, trust=1).replayed
    assert target.context.parts().archive.counts() == counts
    assert set(target.packs.diff(again, scope=ANN, trust=1).known) == set(first.memory_ids)
    assert target.packs.install(again, scope=ANN, trust=1).memory_ids == ()


def test_what_is_here_with_other_content_is_named_and_nothing_is_installed(
    source: MemoryKit, target: MemoryKit, tmp_path: Path
) -> None:
    """Two histories of one id cannot both be true."""
    path = tmp_path / "ann.pack"
    built = source.packs.build(path, scope=ANN, topic="personal:Ann")
    target.packs.install(path, scope=ANN, trust=1)
    (changed, *_) = (each for each in target.memories(scope=ANN) if each.live)
    target.retention.pin(changed.memory_id, scope=ANN)
    other = tmp_path / "whole.pack"
    source.packs.build(other, scope=ANN)
    counts = target.context.parts().archive.counts()
    assert target.packs.diff(other, scope=ANN, trust=1).conflicting == (changed.memory_id,)
    with pytest.raises(PackError, match=changed.memory_id) as caught:
        target.packs.install(other, scope=ANN, trust=1)
    assert (caught.value.reason, built.pack.kind) == ("conflict", "export")
    assert target.context.parts().archive.counts() == counts


@pytest.mark.requirement("K9")
@pytest.mark.parametrize("place", ["commit.begin", "commit.half_written", "commit.before_commit"])
@pytest.mark.parametrize("kind", ["export", "preset"])
def test_an_interrupted_install_leaves_nothing_and_is_done_again(
    source: MemoryKit, target: MemoryKit, tmp_path: Path, kind: Any, place: str
) -> None:
    """Half a pack would be memories without their words, or words without their memories."""
    path = tmp_path / "ann.pack"
    source.packs.build(path, scope=ANN, kind=kind, topic="personal:Ann")
    counts = target.context.parts().archive.counts()

    def stop(name: str) -> None:
        if name == place:
            raise KeyboardInterrupt

    listen(stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            target.packs.install(path, scope=ANN, trust=1)
    finally:
        listen(None)
    assert target.context.parts().archive.counts() == counts
    assert target.packs.install(path, scope=ANN, trust=1).memory_ids


_KILLED = """
import os, signal, sys
from remegraph import MemoryKit, Scope
from remegraph.failpoints import listen

home, pack, place, user, agent = sys.argv[1:]
with MemoryKit.open(home, model=None, embedder=None) as kit:
    listen(lambda name: os.kill(os.getpid(), signal.SIGKILL) if name == place else None)
    kit.packs.install(pack, scope=Scope(user=user, agent=agent), trust=1)
"""


@pytest.mark.slow
@pytest.mark.requirement("K9")
@pytest.mark.parametrize(
    ("kind", "place"),
    [("export", "commit.half_written"), ("preset", "commit.before_commit"), ("export", "commit.after_commit")],
)
def test_kill_9_while_a_pack_is_installed_leaves_all_of_it_or_nothing(
    source: MemoryKit, tmp_path: Path, kind: Any, place: str
) -> None:
    """Power goes when it likes; the same command then finishes what it began."""
    path, home = tmp_path / "ann.pack", tmp_path / "home"
    source.packs.build(path, scope=ANN, kind=kind, topic="personal:Ann")
    arguments = [str(home), str(path), place, ANN.user, ANN.agent or ""]
    killed = subprocess.run([sys.executable, "-c", _KILLED, *arguments], check=False, capture_output=True)
    assert killed.returncode == -9, killed.stderr
    with MemoryKit.open(home, model=None, embedder=None) as kit:
        found = {each.memory_id for each in kit.memories(scope=ANN)}
        assert bool(found) == (place == "commit.after_commit")
        done = kit.packs.install(path, scope=ANN, trust=1)
        assert done.replayed == bool(found)
        assert kit.admin.verify().healthy
        assert len(kit.memories(scope=ANN)) >= len(done.memory_ids)


def test_an_export_is_told_step_by_step_and_can_be_stopped(
    source: MemoryKit, target: MemoryKit, tmp_path: Path
) -> None:
    """A large pack takes its time: somebody watches, or changes their mind."""
    path, told = tmp_path / "ann.pack", list[Progress]()
    source.packs.build(path, scope=ANN, progress=told.append)
    assert (told[-1].stage, told[-1].done) == ("Build", told[-1].total)
    counts = target.context.parts().archive.counts()
    with pytest.raises(CancelledError, match="cancelled"):
        target.packs.install(path, scope=ANN, trust=1, cancel=lambda: True)
    assert target.context.parts().archive.counts() == counts
    with pytest.raises(CancelledError):
        source.packs.build(tmp_path / "never", scope=ANN, cancel=lambda: True)
    assert not (tmp_path / "never").exists()


# ------------------------------------------------------------------------------------------- presets


@pytest.mark.requirement("K9")
def test_a_document_of_the_protocol_is_taken_in_through_the_add_path(target: MemoryKit, tmp_path: Path) -> None:
    """Presets in the protocol's own form, Chinese names and all, work as they are."""
    path = _document(tmp_path)
    assert target.packs.verify(path).domain == ("drinks",)
    done = target.packs.install(path, scope=ANN, trust=0.8)
    assert [item.outcome for item in done.items] == ["created"] * 3
    known = {each.memory_id: each for each in target.memories(scope=ANN)}
    for memory_id in done.memory_ids:
        memory = known[memory_id]
        assert memory.origin is not None
        assert (memory.origin.via, memory.origin.pack_id, memory.trust) == ("pack", "tea-1", 0.8)
        assert memory.evidence
        assert not memory.is_core
    assert (
        target.recall("how long does green tea keep", scope=ANN).memories[0].text == known[done.memory_ids[1]].content
    )
    counts = target.context.parts().archive.counts()
    assert target.packs.install(path, scope=ANN, trust=0.8).replayed
    assert target.context.parts().archive.counts() == counts


@pytest.mark.requirement("K9")
def test_a_pack_that_nobody_vouches_for_waits_for_approval(target: MemoryKit, tmp_path: Path) -> None:
    """What a stranger writes must not speak through the agent before somebody looked at it."""
    path = _document(tmp_path)
    assert len(target.packs.diff(path, scope=ANN).quarantined) == 3
    done = target.packs.install(path, scope=ANN)
    assert target.recall("green tea", scope=ANN).memories == ()
    assert {each.memory_id for each in target.knowledge.waiting(scope=ANN)} == set(done.memory_ids)


@pytest.mark.requirement("K9")
def test_part_of_a_pack_is_activated(target: MemoryKit, tmp_path: Path) -> None:
    """An agent that starts with a pack has at once in mind what its task needs."""
    done = target.packs.install(_document(tmp_path), scope=ANN, trust=0.8, activate=["2"])
    assert [each.memory_id for each in target.retention.active(scope=ANN)] == [done.memory_ids[1]]
    with pytest.raises(InputError, match="No item"):
        target.packs.install(_document(tmp_path), scope=ANN, trust=0.8, activate=["nothing"])


def test_a_pack_says_itself_what_should_be_active(source: MemoryKit, target: MemoryKit, tmp_path: Path) -> None:
    """Whoever makes a pack knows best what of it is needed first; whoever installs it decides."""
    path = tmp_path / "p.pack"
    source.packs.build(path, scope=ANN, kind="preset", activate=["drinks"])
    target.packs.install(path, scope=ANN, trust=0.8, activate=["manifest"])
    assert [each.tags for each in target.retention.active(scope=ANN)] == [("drinks",)]


def test_a_preset_that_contradicts_a_memory_is_kept_beside_it(target: MemoryKit, tmp_path: Path) -> None:
    """A pack replaces nothing that the agent knows: somebody decides."""
    likes = {"entity_name": "Ann", "entity_type": "user", "attributes": {"preferences": ["green tea"]}}
    mine = {"memory_id": "tea", "memory_type": "profile", "timestamp": NOON.isoformat(), "importance": "mid"}
    own = target.forms.add(mine | {"content": likes}, scope=ANN).memory
    assert own is not None
    item = {
        "memory_type": "profile",
        "content": {"entity_name": "Ann", "entity_type": "user", "attributes": {"dislikes": ["green tea"]}},
    }
    path = _document(tmp_path, {"pack_id": "p", "items": [item]})
    found = target.packs.diff(path, scope=ANN, trust=0.8)
    assert found.conflicting == ("1",)
    assert target.conflicts.list(scope=ANN) == ()
    target.packs.install(path, scope=ANN, trust=0.8)
    (conflict,) = target.conflicts.list(scope=ANN)
    assert own.memory_id in {conflict.older.memory_id, conflict.newer.memory_id}


@pytest.mark.requirement("K9")
def test_a_signature_says_from_whom_a_pack_is_and_how_far_it_is_believed(
    source: MemoryKit, target: MemoryKit, tmp_path: Path
) -> None:
    """Trust is given to somebody, not to a file."""
    keys = {name: SigningKey.generate() for name in ("ann", "me", "carol")}
    for name, key in keys.items():
        key.save(tmp_path / f"{name}.key")
        target.packs.trust_key(name, key.public)
    for name, outcome, trust in (("carol", "quarantined", 0.4), ("ann", "created", 0.9)):
        path = tmp_path / f"{name}.pack"
        source.packs.build(path, scope=ANN, kind="preset", pack_id=name, key=tmp_path / f"{name}.key")
        assert target.packs.verify(path, require_signature=True).signer == name
        done = target.packs.install(path, scope=Scope(user=name, agent="remy"))
        assert ({item.outcome for item in done.items}, done.trust) == ({outcome}, trust)
    source.packs.build(tmp_path / "own.pack", scope=ANN, key=tmp_path / "me.key")
    assert target.packs.install(tmp_path / "own.pack", scope=ANN).memory_ids
    target.packs.revoke_key(keys["ann"].key_id)
    with pytest.raises(PackError, match="revoked"):
        target.packs.verify(tmp_path / "ann.pack")


def test_keys_are_not_changed_while_another_process_changes_them(tmp_path: Path) -> None:
    """Of two who write what they read, one loses: it may be the revocation of a key that was stolen."""
    with open_kit(tmp_path) as kit:
        key = kit.packs.trust_key("ann", SigningKey.generate().public)
        with alone(tmp_path / "trusted_keys.lock") as free:
            assert free
            with pytest.raises(ConflictError):
                kit.packs.revoke_key(key.key_id)
            with pytest.raises(ConflictError):
                kit.packs.trust_key("bob", SigningKey.generate().public)
        assert kit.packs.keys() == (key,)
        assert kit.packs.revoke_key(key.key_id).revoked


def test_a_preset_leaves_out_whose_it_was_and_what_is_private(tmp_path: Path) -> None:
    """What many shall read must not tell of the one it was learned from."""
    with open_kit(tmp_path / "home") as kit:
        kit.add_messages([said("My e-mail is ann.miller@corp.example.org."), said("I like tea.", minutes=1)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        path = tmp_path / "p.pack"
        kit.packs.build(path, scope=ANN, kind="preset", desensitize=True)
        with kit.packs._opened(path) as pack:
            told = json.dumps([found for _, found in pack.records("items.jsonl")])
    assert "tea" in told
    assert "ann.miller" not in told
    assert "Ann" not in told


@pytest.mark.parametrize(
    ("kind", "limit"),
    [("export", "file"), ("export", "member"), ("export", "total"), ("export", "records"), ("preset", "items")],
)
def test_a_pack_that_nobody_could_read_is_not_built_and_the_one_before_stays(
    source: MemoryKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: PackKind, limit: str
) -> None:
    """Whoever moves finds out when the old home is gone, and then it is too late."""
    path = tmp_path / "ann.pack"
    source.packs.build(path, scope=ANN, kind=kind)
    before = path.read_bytes()
    monkeypatch.setattr(contents, "LIMITS", replace(LIMITS, **{limit: 2}))
    with pytest.raises(PackError) as caught:
        source.packs.build(path, scope=ANN, kind=kind, overwrite=True)
    assert caught.value.reason == "too_large"
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [before]


@pytest.mark.parametrize("name", ["diary.txt", "link", "nowhere", "folder"])
def test_a_pack_takes_no_files_place_unless_told(source: MemoryKit, tmp_path: Path, name: str) -> None:
    """A path that was mistyped, or chosen by a program, must not cost anybody a file."""
    diary, path = tmp_path / "diary.txt", tmp_path / name
    diary.write_text("Monday", encoding="utf-8")
    (tmp_path / "link").symlink_to(diary)
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=r"overwrite=True|--force"):
        source.packs.build(path, scope=ANN)
    assert (sorted(tmp_path.iterdir()), diary.read_text(encoding="utf-8")) == (before, "Monday")
    if name in {"nowhere", "folder"}:
        with pytest.raises(InputError, match="not a file"):
            source.packs.build(path, scope=ANN, overwrite=True)
    else:
        source.packs.build(path, scope=ANN, overwrite=True)
        assert source.packs.inspect(path).kind == "export"


def test_a_file_that_comes_while_a_pack_is_written_stays(
    source: MemoryKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Building takes minutes; what another program saved meanwhile is not for the taking."""
    path = tmp_path / "ann.pack"
    with monkeypatch.context() as patched:
        really = contents._write_zip

        def slowly(draft: Path, files: Mapping[str, bytes]) -> None:
            really(draft, files)
            path.write_text("Monday", encoding="utf-8")

        patched.setattr(contents, "_write_zip", slowly)
        with pytest.raises(InputError, match="there already"):
            source.packs.build(path, scope=ANN)
    assert [each.read_text(encoding="utf-8") for each in tmp_path.iterdir()] == ["Monday"]


@pytest.mark.parametrize(
    "choice",
    [
        {"kind": "script"},
        {"include": ["erased"]},
        {"include": "deleted"},
        {"kind": "preset", "include": ["deleted"]},
        {"topic": "ann"},
        {"desensitize": True},
        {"activate": ["x"]},
        {"pack_id": "a\0b"},
        {"domain": "drinks"},
        {"memory_ids": "abc"},
        {"kind": "preset", "activate": "drinks"},
    ],
    ids=str,
)
def test_choices_that_cannot_be_used_are_refused_at_the_door(
    source: MemoryKit, tmp_path: Path, choice: dict[str, Any]
) -> None:
    """A typing error must not end as a pack that lacks half, or holds too much."""
    with pytest.raises(InputError):
        source.packs.build(tmp_path / "never", scope=ANN, **choice)
    assert not (tmp_path / "never").exists()


def test_a_file_that_is_not_there_is_said_so(target: MemoryKit, tmp_path: Path) -> None:
    """The commonest mistake has the plainest answer."""
    with pytest.raises(PackError, match="cannot be read") as caught:
        target.packs.inspect(tmp_path / "nowhere.pack")
    assert caught.value.reason == "unreadable"
