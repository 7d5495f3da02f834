"""`kit.packs`: memories in a file, for another home or for other agents (MEK, 3.1)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remegraph.engine.redaction import Cleaner
from remegraph.engine.routes import home
from remegraph.errors import CancelledError, ConflictError, InputError, MessageChangedError, NotFoundError, PackError
from remegraph.files import alone
from remegraph.kit.facade import Facade, twin
from remegraph.kit.validation import File, actor_of, check_numbers, check_text, path_of, required, topic_of
from remegraph.mek.generalization import known
from remegraph.mek.items import TrustStore
from remegraph.models import (
    Memory,
    PackBuilt,
    PackDiff,
    PackInfo,
    PackInstalled,
    PackKind,
    Partition,
    Progress,
    Scope,
    Signature,
    Status,
    TrustedKey,
)
from remegraph.packs.contents import (
    CARRIED,
    arrival,
    believed,
    check_choice,
    check_place,
    conflict,
    export,
    offer,
    preset,
    signer,
    write,
)
from remegraph.packs.format import LIMITS, NOWHERE, PURPOSE
from remegraph.packs.reader import ExportRecords, PackFile, items
from remegraph.settings import Settings

if TYPE_CHECKING:
    from remegraph.kit.worker import Cancel, OnProgress
    from remegraph.mek.offers import Offer
    from remegraph.packs.contents import Contents, Step

__all__ = ["Packs", "key_list"]


def _wanted(activate: Sequence[str], by_pack: Sequence[str]) -> tuple[str, ...]:
    """Return the ids and tags of what should be active.

    Args:
        activate: As it was asked for; "manifest" means what the pack names.
        by_pack: What the pack names.

    Raises:
        InputError: It is one text.
    """
    if isinstance(activate, str):
        raise InputError("activate is one text.", "Give a list of ids and tags.")
    return tuple(name for each in activate for name in (by_pack if each == "manifest" else (each,)))


def _steps(stage: str, progress: OnProgress | None, cancel: Cancel | None) -> Callable[[int, int], None]:
    """Return what is called as work goes on.

    Args:
        stage: What is done.
        progress: Told how far it is.
        cancel: Asked whether to stop.
    """

    def step(done: int, total: int) -> None:
        if done < total and cancel is not None and cancel():  # what is done is not taken back
            raise CancelledError(f"{stage}ing the pack was cancelled.", "Nothing changed: do it again.")
        if progress is not None:
            progress(Progress(stage=stage, done=done, total=total))

    return step


def key_list(settings: Settings) -> Path:
    """Return the file of the list, in the home."""
    return settings.home.expanduser() / "trusted_keys.json"


class Packs(Facade):
    """Builds packs, keeps the trusted keys, and installs packs: measured first, then checked, then all of it or nothing."""

    def build(
        self,
        path: File,
        *,
        scope: Scope,
        kind: PackKind = "export",
        topic: str | None = None,
        memory_ids: Sequence[str] | None = None,
        include: Collection[Status] = (),
        pack_id: str = "",
        domain: Sequence[str] = (),
        activate: Sequence[str] = (),
        desensitize: bool = False,
        key: File | None = None,
        overwrite: bool = False,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> PackBuilt:
        """Write memories of a scope to a pack. The same memories make the same file. Nothing of another scope goes in.

        An export holds them whole: all versions, links, and the words that they came from. A preset holds what they say,
        for any agent: without ids, times and words.

        Args:
            path: The file, which must not exist yet.
            scope: Whose memories.
            kind: export or preset.
            topic: Only those of this topic, `type:name`.
            memory_ids: Only these.
            include: Statuses besides those that go in anyway: quarantined or proposed, in an export only.
            pack_id: Its id; made of its content unless given.
            domain: The fields that it is for.
            activate: Ids or tags of a preset's items that are ready without a query.
            desensitize: Whether personal data, secrets and known names are taken out of a preset.
            key: File of the private key that signs it.
            overwrite: Whether an existing file is replaced.
            progress: Told how far it is.
            cancel: Asked before each memory.

        Raises:
            InputError: A choice cannot be used, the file cannot be written or exists already, or the key cannot be read.
            PackError: There is more than one pack may hold; nothing was written.
            NotFoundError: A memory is not of this scope.
            CancelledError: `cancel` said so; nothing was written.
        """
        check_choice(kind, include, desensitize=desensitize, activate=activate, memory_ids=memory_ids, domain=domain)
        check_text(pack_id=pack_id)
        target = path_of(path)
        check_place(target, overwrite=overwrite)
        said_in, lives_in = self._places(scope)
        memories = self._chosen(lives_in, topic, memory_ids, include)
        step = _steps("Build", progress, cancel)
        contents: Contents
        if kind == "preset":
            contents = preset(memories, self._cleaner(scope, memories) if desensitize else None, step)
        else:
            contents = export(self._parts().archive, lives_in, said_in, memories, step)
        info = write(
            target,
            kind,
            contents.members,
            pack_id=pack_id,
            domain=domain,
            activate=activate,
            overwrite=overwrite,
            sign=None if key is None else signer(path_of(key)),
            verify=self._verify,
        )
        return PackBuilt(path=str(target), pack=info, left_out=contents.left_out, dropped=contents.dropped)

    abuild = twin(build)

    def _places(self, scope: Scope) -> tuple[Partition, Partition]:
        """Return where a scope's words are, and where its memories live."""
        library = self._context.library(required(scope))
        return library.partition(), home(library, self._settings.trust_boundary)

    def _chosen(
        self, lives_in: Partition, topic: str | None, memory_ids: Sequence[str] | None, include: Collection[Status]
    ) -> list[Memory]:
        found = self._parts().archive.memories(
            [lives_in],
            ids=None if memory_ids is None else list(dict.fromkeys(memory_ids)),
            topics=None if topic is None else [topic_of(topic)],
            statuses=sorted(CARRIED | set(include)),
        )
        if missing := sorted(set(memory_ids or ()) - {memory.memory_id for memory in found}):
            raise NotFoundError(f"There is no memory {missing[0]!r} here that a pack may hold.")
        return sorted(found, key=lambda memory: memory.memory_id)

    def _cleaner(self, scope: Scope, memories: Sequence[Memory]) -> Callable[[Any], Any]:
        said = [memory.content for memory in memories]
        archive, library = self._parts().archive, self._context.library(scope)
        names = known(archive, library, scope.agent or "", memories, said=said, public=())
        return Cleaner(names).clean

    # ---------------------------------------------------------------------------------------------- keys

    def trust_key(self, name: str, public: str) -> TrustedKey:
        """Trust a key from now on: what it signs is from its owner, and is trusted as far as `settings.sharing` says.

        Args:
            name: Whose it is.
            public: The public key, in base64, as `remegraph pack keygen` prints it.

        Raises:
            InputError: That is no public key, or it was revoked.
            ConflictError: Another process changes the list at this moment.
        """
        check_text(name=name, public=public)
        with self._alone():
            store = self._store().trusting(name, public)
            store.save(self._file())
        return next(key for key in store.keys if key.public == public)

    atrust_key = twin(trust_key)

    def revoke_key(self, key_id: str) -> TrustedKey:
        """Revoke a key, for good. What it brought before stays.

        Args:
            key_id: The key.

        Raises:
            InputError: There is no such key.
            ConflictError: Another process changes the list at this moment.
        """
        check_text(key_id=key_id)
        with self._alone():
            store = self._store().without(key_id)
            store.save(self._file())
        return next(key for key in store.keys if key.key_id == key_id)

    arevoke_key = twin(revoke_key)

    def keys(self) -> tuple[TrustedKey, ...]:
        """Return the trusted keys, and those that were revoked."""
        return self._store().keys

    akeys = twin(keys)

    # ------------------------------------------------------------------------------------------- reading

    def inspect(self, path: File) -> PackInfo:
        """Return what a pack says of itself, once its size and checksums are in order. Its signature is reported, not required.

        Args:
            path: The pack, or a JSON document in the protocol's form.

        Raises:
            PackError: It is no pack, broken, or too large; `reason` says which.
        """
        with self._opened(path) as pack:
            return pack.info

    ainspect = twin(inspect)

    def verify(self, path: File, *, require_signature: bool | None = None) -> PackInfo:
        """Check all of a pack: size, checksums, signature, every record.

        Args:
            path: The pack.
            require_signature: Whether to refuse it without the signature of a trusted key; as
                `settings.sharing.require_signature` says unless given. A signature that does not hold is always refused.

        Raises:
            PackError: It is refused; `reason` says why.
        """
        with self._checked(path, required=require_signature) as pack:
            if pack.manifest.kind == "preset":
                for _ in items(pack, LIMITS):
                    pass
            else:
                ExportRecords(pack, NOWHERE).check()
            return pack.info

    averify = twin(verify)

    def diff(
        self, path: File, *, scope: Scope, trust: float | None = None, require_signature: bool | None = None
    ) -> PackDiff:
        """Return what installing a pack would do. Nothing changes.

        Args:
            path: The pack.
            scope: Where it would go.
            trust: How far it is believed, 0 to 1; as `settings.sharing` says of its signer unless given.
            require_signature: As of `verify`.

        Raises:
            PackError: It is refused.
        """
        with self._checked(path, required=require_signature) as pack:
            believed = self._believed(pack, trust)
            said_in, lives_in = self._places(scope)
            if pack.manifest.kind == "export":
                found = arrival(pack, self._parts().archive, lives_in, said_in)
                new = tuple(versions[0].memory_id for versions in found.new)
                return PackDiff(
                    pack=pack.info, trust=believed, new=new, known=found.known, conflicting=found.conflicting
                )
            done = (
                self._parts()
                .absorber(scope, dry_run=True)
                .absorb(self._offers(pack, believed, ()), said_in=said_in, lives_in=lives_in, actor=actor_of(scope))
            )
            by = {
                outcome: tuple(item.item_id for item in done.items if item.outcome == outcome)
                for outcome in ("created", "known", "corroborated", "quarantined", "refused")
            }
            return PackDiff(
                pack=pack.info,
                trust=believed,
                new=by["created"],
                known=(*by["known"], *by["corroborated"]),
                conflicting=tuple(item.item_id for item in done.items if item.contradicts or item.may_contradict),
                quarantined=by["quarantined"],
                refused=by["refused"],
            )

    adiff = twin(diff)

    # ---------------------------------------------------------------------------------------- installing

    def install(
        self,
        path: File,
        *,
        scope: Scope,
        trust: float | None = None,
        require_signature: bool | None = None,
        activate: Sequence[str] = (),
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> PackInstalled:
        """Install a pack: all of it, in one transaction, or nothing. The same pack again changes nothing.

        Items of a preset are weighed like what other agents share: what is known is confirmed, what contradicts a memory
        is kept beside it, and under a trust of .5 everything waits for approval (`kit.knowledge.waiting`). An export
        holds one's own memories: it is installed whole, with its ids, and only with trust 1, from a source trusted like
        oneself.

        Args:
            path: The pack, or a JSON document in the protocol's form.
            scope: Where it goes.
            trust: How far it is believed, 0 to 1; as `settings.sharing` says of its signer unless given.
            require_signature: As of `verify`.
            activate: Ids or tags of a preset's items that are ready without a query; "manifest": those that the
                pack names.
            progress: Told how far it is.
            cancel: Asked before each item, and before anything is written.

        Raises:
            PackError: It is refused; `reason` says why. Nothing changed.
            CancelledError: `cancel` said so. Nothing changed.
        """
        with self._checked(path, required=require_signature) as pack:
            believed = self._believed(pack, trust)
            step = _steps("Install", progress, cancel)
            if pack.manifest.kind == "export":
                done = self._take_over(pack, scope, believed, activate, step)
            else:
                done = self._take_up(pack, scope, believed, activate, step)
        return done.evolve(degraded=self._follow())

    ainstall = twin(install)

    def _take_up(
        self, pack: PackFile, scope: Scope, trust: float, activate: Sequence[str], step: Step
    ) -> PackInstalled:
        said_in, lives_in = self._places(scope)
        offers = self._offers(pack, trust, _wanted(activate, pack.manifest.activate))
        step(0, len(offers))
        found = self._parts().absorber(scope).absorb(offers, said_in=said_in, lives_in=lives_in, actor=actor_of(scope))
        step(len(offers), len(offers))
        return PackInstalled(
            pack=pack.info,
            trust=trust,
            memory_ids=found.memory_ids,
            items=found.items,
            replayed=not found.memory_ids,
        )

    def _take_over(
        self, pack: PackFile, scope: Scope, trust: float, activate: Sequence[str], step: Step
    ) -> PackInstalled:
        if activate:
            raise InputError(
                "An export keeps what was active.", "Leave activate out, and call kit.retention.pin() later."
            )
        said_in, lives_in = self._places(scope)
        parts = self._parts()
        found = arrival(pack, parts.archive, lives_in, said_in)
        step(len(found.known), len(found.known) + len(found.new))
        if found.conflicting:
            raise conflict(found.conflicting)
        change = found.change(
            pack.digest,
            lives_in,
            said_in,
            actor=actor_of(scope),
            at=parts.clock(),
            recipe=parts.settings.summary.recipe,
            at_home=parts.at_home(scope),
        )
        try:
            receipt = parts.archive.commit(change)
        except ConflictError as error:
            raise conflict(error.records, error.cure) from error
        except MessageChangedError as error:
            raise PackError("conflict", error.what, error.cure) from error
        step(len(found.known) + len(found.new), len(found.known) + len(found.new))
        return PackInstalled(
            pack=pack.info,
            trust=trust,
            memory_ids=() if receipt.replayed else receipt.memory_ids,
            replayed=receipt.replayed,
        )

    # ------------------------------------------------------------------------------------------- inside

    def _opened(self, path: File) -> PackFile:
        self._parts()
        return PackFile(path_of(path), LIMITS, self._verify)

    @contextmanager
    def _checked(self, path: File, *, required: bool | None) -> Iterator[PackFile]:
        """Open a pack whose signature is sufficient."""
        by_default = self._settings.sharing.require_signature
        with self._opened(path) as pack:
            pack.check_signature(required=by_default if required is None else required)
            yield pack

    def _believed(self, pack: PackFile, trust: float | None) -> float:
        """Return how far a pack is trusted; refuse an export that is trusted less than oneself."""
        check_numbers(least=0, whole=False, trust=trust)
        found = believed(pack.signer, self._settings.sharing) if trust is None else trust
        if found > 1:
            raise InputError(f"trust is {found:g}.", "Give a number from 0 to 1.")
        if pack.manifest.kind == "export" and found < 1:
            raise PackError(
                "untrusted",
                f"It is an export, which becomes one's own memories whole, and it is trusted {found:g} only.",
                "If it is yours, pass trust=1, or sign it with a key that settings.sharing.trust gives 1.",
            )
        return found

    def _offers(self, pack: PackFile, trust: float, active: Collection[str]) -> list[Offer]:
        at, found = self._parts().clock(), list(items(pack, LIMITS))
        named = {each for item in found for each in (item.item_id, *item.tags)}
        if strange := sorted(set(active) - named):
            raise InputError(f"No item has the id or the tag {strange[0]!r}.", "Name one of the pack's.")
        return [
            offer(item, pack, trust, at, active=not {item.item_id, *item.tags}.isdisjoint(active)) for item in found
        ]

    def _file(self) -> Path:
        return key_list(self._settings)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock of the list: without it, one of two writers could overwrite a revocation."""
        file = self._file()
        with alone(file.with_suffix(".lock")) as free:
            if not free:
                raise ConflictError([file.name])
            yield

    def _verify(self, manifest: bytes, signature: Signature) -> TrustedKey:
        """Return the trusted key that signed a manifest."""
        return self._store().verify(manifest, signature, purpose=PURPOSE)

    def _store(self) -> TrustStore:
        return TrustStore.open(self._file())
