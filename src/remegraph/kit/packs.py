"""`kit.packs`: memories in a file, for another home or for other agents (MEK, 3.1)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from remegraph.errors import ConflictError, InputError, MessageChangedError, PackError
from remegraph.kit.absorbing import absorber
from remegraph.kit.calling import actor_of, check_numbers, twin
from remegraph.kit.pack_building import PackBuilding
from remegraph.kit.packing import File, conflict_of, path_of, steps, wanted
from remegraph.models import (
    PackDiff,
    PackInfo,
    PackInstalled,
    Scope,
)

if TYPE_CHECKING:
    from remegraph.exchange.offers import Offer
    from remegraph.exchange.packs.exporting import Step
    from remegraph.exchange.packs.reading import PackFile
    from remegraph.kit.draining import Cancel
    from remegraph.kit.summarizing import OnProgress

__all__ = ["Packs"]


class Packs(PackBuilding):
    """Builds packs, and takes them in: measured first, then checked, then all of it or nothing."""

    # ------------------------------------------------------------------------------------------- reading

    def inspect(self, path: File) -> PackInfo:
        """Return what a pack says of itself, once its size and checksums are in order. Its signature is told, not required.

        Args:
            path: The pack, or a JSON document in the protocol's form.

        Raises:
            PackError: It is no pack, broken, or too large; `reason` says which.
        """
        with self._opened(path) as pack:
            return pack.info

    ainspect = twin(inspect)

    def verify(self, path: File, *, require_signature: bool | None = None) -> PackInfo:
        """Check a pack whole: size, checksums, signature, every record.

        Args:
            path: The pack.
            require_signature: Whether to refuse it without the signature of a trusted key; as
                `settings.sharing.require_signature` says unless given. A signature that does not hold is always refused.

        Raises:
            PackError: It is refused; `reason` says why.
        """
        from remegraph.exchange.packs.layout import NOWHERE
        from remegraph.exchange.packs.limits import LIMITS
        from remegraph.exchange.packs.records import ExportRecords, items

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
        from remegraph.exchange.packs.installing import arrival

        with self._checked(path, required=require_signature) as pack:
            believed = self._believed(pack, trust)
            said_in, lives_in = self._places(scope)
            if pack.manifest.kind == "export":
                found = arrival(pack, self._parts().archive, lives_in, said_in)
                new = tuple(versions[0].memory_id for versions in found.new)
                return PackDiff(
                    pack=pack.info, trust=believed, new=new, known=found.known, conflicting=found.conflicting
                )
            done = absorber(self._parts(), scope, dry_run=True).absorb(
                self._offers(pack, believed, ()), said_in=said_in, lives_in=lives_in, actor=actor_of(scope)
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
        """Take a pack in: all of it, in one transaction, or nothing. The same pack again changes nothing.

        Items of a preset are weighed like what other agents share: what is known is borne out, what contradicts a memory
        is kept beside it, and under a trust of .5 everything waits for approval (`kit.knowledge.waiting`). An export is
        one's own memories: it comes whole, with its ids, and only from a source that is believed like oneself, with
        trust 1.

        Args:
            path: The pack, or a JSON document in the protocol's form.
            scope: Where it goes.
            trust: How far it is believed, 0 to 1; as `settings.sharing` says of its signer unless given.
            require_signature: As of `verify`.
            activate: Ids or tags of a preset's items that shall stand ready without a query; "manifest": those that the
                pack names.
            progress: Told how far it is.
            cancel: Asked before each item, and before anything is written.

        Raises:
            PackError: It is refused; `reason` says why. Nothing changed.
            CancelledError: `cancel` said so. Nothing changed.
        """
        with self._checked(path, required=require_signature) as pack:
            believed = self._believed(pack, trust)
            step = steps("Install", progress, cancel)
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
        offers = self._offers(pack, trust, wanted(activate, pack.manifest.activate))
        step(0, len(offers))
        found = absorber(self._parts(), scope).absorb(offers, said_in=said_in, lives_in=lives_in, actor=actor_of(scope))
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
        from remegraph.exchange.packs.installing import arrival

        if activate:
            raise InputError("An export keeps what was active.", "Leave activate out, and call kit.activate() later.")
        said_in, lives_in = self._places(scope)
        parts = self._parts()
        found = arrival(pack, parts.archive, lives_in, said_in)
        step(len(found.known), len(found.known) + len(found.new))
        if found.conflicting:
            raise conflict_of(found.conflicting)
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
            raise conflict_of(error.records, error.cure) from error
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
        from remegraph.exchange.packs.limits import LIMITS
        from remegraph.exchange.packs.reading import PackFile

        self._parts()
        return PackFile(path_of(path), LIMITS, self._verify)

    @contextmanager
    def _checked(self, path: File, *, required: bool | None) -> Iterator[PackFile]:
        """Open a pack whose signature will do."""
        by_default = self._settings.sharing.require_signature
        with self._opened(path) as pack:
            pack.check_signature(required=by_default if required is None else required)
            yield pack

    def _believed(self, pack: PackFile, trust: float | None) -> float:
        """Return how far a pack is believed; refuse an export that is believed less than oneself."""
        from remegraph.exchange.packs.installing import believed

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
        from remegraph.exchange.packs.installing import offer
        from remegraph.exchange.packs.limits import LIMITS
        from remegraph.exchange.packs.records import items

        at, found = self._parts().clock(), list(items(pack, LIMITS))
        named = {each for item in found for each in (item.item_id, *item.tags)}
        if strange := sorted(set(active) - named):
            raise InputError(f"No item has the id or the tag {strange[0]!r}.", "Name one of the pack's.")
        return [
            offer(item, pack, trust, at, active=not {item.item_id, *item.tags}.isdisjoint(active)) for item in found
        ]
