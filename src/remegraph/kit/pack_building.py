"""The verb that writes packs, and what goes into one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from remegraph.errors import NotFoundError
from remegraph.kit.calling import check_text, required, twin
from remegraph.kit.pack_keys import PackKeys
from remegraph.kit.packing import File, check_choice, path_of, signing, steps, topic_of
from remegraph.models import Memory, PackBuilt, PackKind, Partition, Scope, Status

if TYPE_CHECKING:
    from remegraph.exchange.packs.exporting import Contents
    from remegraph.kit.draining import Cancel
    from remegraph.kit.summarizing import OnProgress

__all__ = ["PackBuilding"]


class PackBuilding(PackKeys):
    """How memories become a file."""

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
            path: The file, which must not be there yet.
            scope: Whose memories.
            kind: export or preset.
            topic: Only those of this topic, `type:name`.
            memory_ids: Only these.
            include: Statuses beside those that go in anyway: quarantined or proposed, in an export only.
            pack_id: Its id; made of its content unless given.
            domain: The fields that it is for.
            activate: Ids or tags of a preset's items that shall stand ready without a query.
            desensitize: Whether personal data, secrets and known names are taken out of a preset.
            key: File of the private key that signs it.
            overwrite: Whether a file that is there is replaced.
            progress: Told how far it is.
            cancel: Asked before each memory.

        Raises:
            InputError: A choice cannot be used, the file cannot be written or is there already, or the key cannot be read.
            PackError: There is more than one pack may hold; nothing was written.
            NotFoundError: A memory is not of this scope.
            CancelledError: `cancel` said so; nothing was written.
        """
        from remegraph.exchange.packs.exporting import export, preset
        from remegraph.exchange.packs.writing import check_place, write

        check_choice(kind, include, desensitize=desensitize, activate=activate, memory_ids=memory_ids, domain=domain)
        check_text(pack_id=pack_id)
        target = path_of(path)
        check_place(target, overwrite=overwrite)
        said_in, lives_in = self._places(scope)
        memories = self._chosen(lives_in, topic, memory_ids, include)
        step = steps("Build", progress, cancel)
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
            sign=None if key is None else signing(path_of(key)),
            verify=self._verify,
        )
        return PackBuilt(path=str(target), pack=info, left_out=contents.left_out, dropped=contents.dropped)

    abuild = twin(build)

    def _places(self, scope: Scope) -> tuple[Partition, Partition]:
        """Return where a scope's words are, and where its memories live."""
        from remegraph.engine.routing import home

        library = self._library(required(scope))
        return library.partition(), home(library, self._settings.trust_boundary)

    def _chosen(
        self, lives_in: Partition, topic: str | None, memory_ids: Sequence[str] | None, include: Collection[Status]
    ) -> list[Memory]:
        from remegraph.exchange.packs.exporting import CARRIED

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
        from remegraph.exchange.cleaning import Cleaner
        from remegraph.exchange.naming import known

        said = [memory.content for memory in memories]
        archive, library = self._parts().archive, self._library(scope)
        names = known(archive, library, scope.agent or "", memories, said=said, public=())
        return Cleaner(names).clean
