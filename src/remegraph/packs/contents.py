"""The contents of packs: memories as they are written to one, whole or as items for any agent, and as they are installed.

The same memories, under the same version of zlib, are always the same file, and one that can be read. Items of a preset
are installed as offers, an export as one change that holds all of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

from remegraph.errors import InputError, PackError
from remegraph.ledger.archive import Archive
from remegraph.mek.items import SigningKey
from remegraph.mek.offers import Offer
from remegraph.models import (
    BlockSummary,
    Brought,
    BroughtBlock,
    CausalChain,
    ChangeSet,
    EpisodeContent,
    Link,
    Memory,
    MemoryChange,
    MemoryContent,
    Message,
    Origin,
    Partition,
    Signature,
    Status,
    TrustedKey,
    WorkflowContent,
)
from remegraph.models.base import operation_id
from remegraph.models.exchange import PackInfo, PackKind
from remegraph.models.forms import content_of, importance_of, level_of
from remegraph.packs.format import (
    FORMAT,
    LIMITS,
    MANIFEST,
    MEMBERS,
    PURPOSE,
    SIGNATURE,
    VERSION,
    BlockEntry,
    BlockLine,
    Item,
    Manifest,
    line_of,
    version_fields,
)
from remegraph.packs.reader import ExportRecords, PackFile, Verify, quotes_hold, record_of
from remegraph.settings import SharingPolicy

__all__ = [
    "CARRIED",
    "Contents",
    "Step",
    "arrival",
    "believed",
    "check_choice",
    "check_place",
    "conflict",
    "export",
    "offer",
    "preset",
    "signer",
    "write",
]

_ASKED_FOR: frozenset[Status] = frozenset({"quarantined", "proposed"})

CARRIED: frozenset[Status] = frozenset({"active", "disputed", "low_priority", "archived", "superseded"})
"""The statuses of memories that an export holds unless others are asked for."""

_Clean = Callable[[Any], Any]
"""Returns JSON without private data."""

Step = Callable[[int, int], None]
"""Called with how many memories of how many are done; raises to stop."""


@dataclass
class Contents:
    """The lines of a pack, and what was left out."""

    members: dict[str, list[bytes]]
    left_out: dict[str, str] = field(default_factory=dict)
    dropped: int = 0


def preset(memories: Sequence[Memory], clean: _Clean | None, step: Step) -> Contents:
    """Return memories as items, without ids, times, sources and owners."""
    found = Contents({"items.jsonl": []})
    lines: set[bytes] = set()
    for done, memory in enumerate(memories, start=1):
        step(done, len(memories))
        if not memory.live:
            found.left_out[memory.memory_id] = f"It is {memory.status}."
            continue
        content = json.loads(_without_sources(content_of(memory)).to_json())
        tags: Any = list(memory.tags)
        if clean is not None:
            content, tags = clean(content), clean(tags)
        fields = {
            "memory_type": memory.kind,
            "content": content,
            "importance": level_of(memory.importance),
            "tags": sorted(set(tags)),
        }
        named = hashlib.sha256(line_of(fields)).hexdigest()[:16]
        lines.add(line_of(Item.model_validate({**fields, "item_id": named})))
    found.members["items.jsonl"] = sorted(lines)
    return found


def _without_sources(content: MemoryContent) -> MemoryContent:
    if isinstance(content, WorkflowContent):
        return content.evolve(source_info=None)
    if isinstance(content, EpisodeContent):
        return content.evolve(causal_chain=CausalChain())
    return content


def export(
    archive: Archive, lives_in: Partition, said_in: Partition, memories: Sequence[Memory], step: Step
) -> Contents:
    """Return memories with all versions, the links between them, and the blocks and messages that they cite."""
    histories: dict[str, tuple[Memory, ...]] = {}
    for done, memory in enumerate(memories, start=1):
        step(done, len(memories))
        histories[memory.memory_id] = archive.versions([lives_in], memory.memory_id)
    words = _Words.of(archive, said_in, histories.values())
    found = Contents({"messages.jsonl": [], "blocks.jsonl": [], "memories.jsonl": [], "links.jsonl": []})
    for memory_id, versions in sorted(histories.items()):
        if why := words.lacking(versions):
            found.left_out[memory_id] = why
    kept = {each: versions for each, versions in sorted(histories.items()) if each not in found.left_out}
    for versions in kept.values():
        for version in versions:
            inside = tuple(other for other in version.supersedes if other in kept)
            found.dropped += len(version.supersedes) - len(inside)
            fields = version_fields(version) | {"supersedes": inside}
            found.members["memories.jsonl"].append(line_of(fields))
    links = archive.links([lives_in], list(kept)) if kept else ()
    inside_links = [link for link in links if {link.source_id, link.target_id} <= kept.keys()]
    found.dropped += len(links) - len(inside_links)
    found.members["links.jsonl"] = [
        line_of(link) for link in sorted(inside_links, key=attrgetter("source_id", "type", "target_id"))
    ]
    cited = {block_id for versions in kept.values() for version in versions for block_id in _blocks(version)}
    found.members |= words.lines(cited)
    return found


def _blocks(version: Memory) -> Collection[str]:
    return {*version.block_ids, *(item.block_id for item in version.evidence)}


@dataclass(frozen=True, slots=True)
class _Words:
    """The blocks that memories cite, with their messages."""

    blocks: Mapping[str, BlockLine]
    messages: Mapping[str, Message]
    """By id, in the order in which they were recorded."""

    @classmethod
    def of(cls, archive: Archive, home: Partition, histories: Collection[Sequence[Memory]]) -> _Words:
        cited = sorted({each for versions in histories for version in versions for each in _blocks(version)})
        if not cited:
            return cls({}, {})
        entries = {entry.block_id: entry for entry in archive.summaries([home], ids=cited)}
        said: dict[int, Message] = {}
        blocks: dict[str, BlockLine] = {}
        for block in archive.blocks([home], ids=cited):
            held = archive.messages([home], thread=block.thread, first_seq=block.first_seq, last_seq=block.last_seq)
            entry = entries.get(block.block_id)
            said |= {message.seq: message for message in held}
            blocks[block.block_id] = BlockLine(
                block_id=block.block_id,
                thread=block.thread,
                message_ids=tuple(message.message_id for message in held),
                entry=BlockEntry(**{name: getattr(entry, name) for name in BlockEntry.model_fields}) if entry else None,
            )
        return cls(blocks, {said[seq].message_id: said[seq] for seq in sorted(said)})

    def lacking(self, versions: Sequence[Memory]) -> str:
        """Return why the evidence of some versions cannot be exported, or an empty text."""
        cited = [item for version in versions for item in version.evidence]
        blocks = {block_id for version in versions for block_id in _blocks(version)}
        if not blocks <= self.blocks.keys() or any(item.message_id not in self.messages for item in cited):
            return "Its evidence lies in another scope."
        if any(item.attachment for item in cited):
            return "It rests on an attachment, and a pack holds none."
        return ""

    def lines(self, cited: Collection[str]) -> dict[str, list[bytes]]:
        """Return the lines of these blocks, and of the messages that they hold."""
        blocks = [block for name, block in self.blocks.items() if name in cited]
        held = {message_id for block in blocks for message_id in block.message_ids}
        said = (each for name, each in self.messages.items() if name in held)
        plain = (Message(**{name: getattr(each, name) for name in Message.model_fields}) for each in said)
        return {
            "messages.jsonl": [line_of(each) for each in plain],
            "blocks.jsonl": [line_of(block) for block in sorted(blocks, key=lambda block: block.block_id)],
        }


_Sign = Callable[[bytes], Signature]

_BEGINNING = (1980, 1, 1, 0, 0, 0)


def check_choice(
    kind: object, include: Collection[str], *, desensitize: bool, activate: Sequence[str], **lists: object
) -> None:
    """Refuse choices that are invalid or do not go together, and a single text in place of a list.

    Raises:
        InputError: A choice is refused.
    """
    if kind not in get_args(PackKind):
        raise InputError(f"There is no kind of pack {kind!r}.", f"Give one of {', '.join(get_args(PackKind))}.")
    for name, several in {"include": include, "activate": activate, **lists}.items():
        if isinstance(several, str):
            raise InputError(f"{name} is one text.", "Give a list.")
    if not set(include) <= _ASKED_FOR:
        raise InputError(f"include is {include!r}.", f"Give a list of {', '.join(sorted(_ASKED_FOR))}.")
    if kind == "preset" and include:
        raise InputError("A preset holds what is live.", "Leave include out, or build an export.")
    if kind == "export" and (desensitize or activate):
        raise InputError("An export holds memories as they are.", "Leave desensitize and activate out.")


def check_place(path: Path, *, overwrite: bool) -> None:
    """Refuse to overwrite, unless asked to replace a plain file."""
    if overwrite and os.path.lexists(path) and not path.is_file():
        raise InputError(f"{path} is not a file.", "Name a file.")
    if not overwrite and os.path.lexists(path):
        raise InputError(f"{path} is there already.", "Name a new file, or replace it: overwrite=True, or --force.")


def signer(path: Path) -> Callable[[bytes], Signature]:
    """Return a function that signs manifests with the key in a file.

    Raises:
        InputError: The file holds no key.
    """
    key = SigningKey.open(path)
    return lambda manifest: key.sign(manifest, purpose=PURPOSE)


def write(
    path: Path,
    kind: PackKind,
    members: Mapping[str, Sequence[bytes]],
    *,
    pack_id: str = "",
    domain: Sequence[str] = (),
    activate: Sequence[str] = (),
    overwrite: bool = False,
    sign: _Sign | None = None,
    verify: Verify,
) -> PackInfo:
    """Write a pack that every reader accepts, completely or not at all; return its description."""
    data = {name: b"".join(members[name]) for name in MEMBERS[kind]}
    for name, lines in members.items():
        most = LIMITS.items if kind == "preset" else LIMITS.records
        if any(len(line) > LIMITS.line for line in lines) or len(lines) > most:
            raise PackError("too_large", f"{name} is too large, or one of its records is.", "Make several packs.")
    content = [
        {"name": name, "sha256": hashlib.sha256(each).hexdigest(), "size": len(each), "count": len(members[name])}
        for name, each in data.items()
    ]
    named = pack_id or hashlib.sha256(repr(content).encode()).hexdigest()[:16]
    fields = {"format": FORMAT, "version": VERSION, "kind": kind, "pack_id": named, "members": content}
    fields |= {"domain": tuple(domain), "activate": tuple(activate)}
    manifest = line_of(record_of(Manifest, fields, MANIFEST))
    files = {MANIFEST: manifest}
    if sign is not None:
        files[SIGNATURE] = line_of(sign(manifest))
    draft = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        _write_zip(draft, files | data)
        with PackFile(draft, LIMITS, verify) as pack:
            info = pack.info
        check_place(path, overwrite=overwrite)
        if not overwrite:
            path.open("xb").close()  # the file is ours from here on, whatever other processes do
        draft.replace(path)
    except OSError as error:
        raise InputError(
            f"The pack {path} cannot be written ({error}).", "Name a file in a folder of yours."
        ) from error
    finally:
        draft.unlink(missing_ok=True)
    return info


def _write_zip(path: Path, files: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as pack:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, _BEGINNING)
            entry.create_system = 3  # as on Unix, whatever the platform
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            pack.writestr(entry, data, compresslevel=6)


# ------------------------------------------------------------------------------------------- taking in


_NAMED = 5
"""Records that an error names."""


def believed(signer: TrustedKey | None, policy: SharingPolicy) -> float:
    """Return the trust in a pack: that in its signer."""
    return policy.default_trust if signer is None else policy.trust.get(signer.name, policy.default_trust)


def offer(item: Item, pack: PackFile, trust: float, at: datetime, *, active: bool) -> Offer:
    """Return an item of a preset as an offer."""
    signer = () if pack.signer is None else (pack.signer.name,)
    return Offer(
        item_id=item.item_id,
        title="",
        content=item.content,
        origin=Origin(via="pack", agents=signer, pack_id=pack.manifest.pack_id, at=at),
        trust=trust,
        raw=json.loads(item.to_json()),
        importance=importance_of(item.importance),
        tags=item.tags,
        resident=True if active else None,
    )


@dataclass(frozen=True, slots=True)
class Arrival:
    """An export, compared with the ledger."""

    messages: tuple[Message, ...]
    blocks: tuple[BlockLine, ...]
    new: tuple[tuple[Memory, ...], ...]
    """Memories that the ledger lacks, each with all its versions."""
    known: tuple[str, ...]
    """Memories that the ledger has, equal in every version."""
    conflicting: tuple[str, ...]
    """Records that the ledger has with different content."""
    links: tuple[Link, ...]
    there: frozenset[str]
    """Blocks that the ledger has."""

    def change(
        self,
        digest: str,
        lives_in: Partition,
        said_in: Partition,
        *,
        actor: str,
        at: datetime,
        recipe: str,
        at_home: bool,
    ) -> ChangeSet:
        """Return one change that installs all of it."""
        fresh = [block for block in self.blocks if block.block_id not in self.there]
        said = {message.message_id: message for message in self.messages}
        return ChangeSet(
            operation_id=operation_id("install", lives_in.to_json(), digest),
            actor=actor,
            recorded_at=at,
            at_home=at_home,
            changes=tuple(
                MemoryChange(memory=versions[-1], expected_version=0, action="install", history=versions[:-1])
                for versions in self.new
            ),
            links=self.links,
            summaries=tuple(_entry(block, said, said_in) for block in fresh if block.entry is not None),
            work=tuple(block.done(said_in, recipe) for block in fresh),
            brought=Brought(
                partition=said_in,
                messages=self.messages,
                blocks=tuple(
                    BroughtBlock(block_id=each.block_id, thread=each.thread, message_ids=each.message_ids)
                    for each in self.blocks
                ),
            ),
        )


def _entry(block: BlockLine, said: dict[str, Message], home: Partition) -> BlockSummary:
    assert block.entry is not None
    times = [said[message_id].time for message_id in block.message_ids]
    return BlockSummary(
        block_id=block.block_id, partition=home, start_time=min(times), end_time=max(times), **dict(block.entry)
    )


def arrival(pack: PackFile, archive: Archive, lives_in: Partition, said_in: Partition) -> Arrival:
    """Read a whole export, and compare it with the ledger."""
    records = ExportRecords(pack, lives_in)
    messages, blocks = tuple(records.messages()), tuple(records.blocks())
    said = {message.message_id: message for message in messages}
    new: list[tuple[Memory, ...]] = []
    known: list[str] = []
    conflicting = _other_words(archive, said_in, said)
    for versions in records.histories():
        if not quotes_hold(versions, said):
            raise PackError("reference", f"Memory {versions[0].memory_id} quotes words that are not in its messages.")
        here = archive.versions([lives_in], versions[0].memory_id)
        if not here:
            new.append(versions)
        else:
            (known if here == versions else conflicting).append(versions[0].memory_id)
    there = archive.blocks([said_in], ids=[block.block_id for block in blocks]) if blocks else ()
    return Arrival(
        messages=messages,
        blocks=blocks,
        new=tuple(new),
        known=tuple(known),
        conflicting=tuple(conflicting),
        links=tuple(records.links()),
        there=frozenset(block.block_id for block in there),
    )


def _other_words(archive: Archive, said_in: Partition, said: dict[str, Message]) -> list[str]:
    """Return the messages that the ledger has with different content."""
    here: Sequence[Message] = archive.messages([said_in], ids=list(said)) if said else ()
    return [
        each.message_id
        for each in here
        if any(getattr(each, name) != getattr(said[each.message_id], name) for name in Message.model_fields)
    ]


def conflict(records: Sequence[str], cure: str = "Install it into another scope, or into an empty home.") -> PackError:
    """Return the error that names the records that exist here with different content."""
    more = f" and {len(records) - _NAMED} more" if len(records) > _NAMED else ""
    named = f"{', '.join(records[:_NAMED])}{more}"
    return PackError("conflict", f"What the pack holds is here already, with other content: {named}.", cure)
