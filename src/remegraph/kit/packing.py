"""What the verbs of packs check and name: files, topics, progress, conflicts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from remegraph.errors import CancelledError, InputError, PackError
from remegraph.kit.calling import check_text
from remegraph.models import PackKind, Progress, Signature, Status, Topic, TopicType

if TYPE_CHECKING:
    from remegraph.kit.draining import Cancel
    from remegraph.kit.summarizing import OnProgress

__all__ = ["File", "check_choice", "conflict_of", "path_of", "signing", "steps", "topic_of", "wanted"]

File = str | PathLike[str]
"""The path of a file."""

_ASKED_FOR: frozenset[Status] = frozenset({"quarantined", "proposed"})
_NAMED = 5
"""Records that an error names."""


def path_of(path: object) -> Path:
    """Return a path.

    Raises:
        InputError: It is none.
    """
    if not isinstance(path, str | PathLike):
        raise InputError(f"The path is of type {type(path).__name__}.", "Give the path of a file.")
    text = fspath(cast("File", path))
    check_text(path=text)
    return Path(text)


def topic_of(key: object) -> Topic:
    """Return the topic of a key `type:name`.

    Raises:
        InputError: It is no such key.
    """
    kind, _, name = key.partition(":") if isinstance(key, str) else ("", "", "")
    if kind not in get_args(TopicType) or not name.strip():
        raise InputError(f"The topic is {key!r}.", f"Give type:name, of type {', '.join(get_args(TopicType))}.")
    check_text(topic=name)
    return Topic(type=cast("TopicType", kind), target_name=name)


def check_choice(
    kind: object, include: Collection[str], *, desensitize: bool, activate: Sequence[str], **lists: object
) -> None:
    """Refuse choices that cannot be used, or do not go together; of other lists, whatever is one text.

    Raises:
        InputError: They are such.
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


def wanted(activate: Sequence[str], by_pack: Sequence[str]) -> tuple[str, ...]:
    """Return the ids and tags of what shall be active.

    Args:
        activate: As it was asked for; "manifest" stands for what the pack names.
        by_pack: What the pack names.

    Raises:
        InputError: It is one text.
    """
    if isinstance(activate, str):
        raise InputError("activate is one text.", "Give a list of ids and tags.")
    return tuple(name for each in activate for name in (by_pack if each == "manifest" else (each,)))


def steps(stage: str, progress: OnProgress | None, cancel: Cancel | None) -> Callable[[int, int], None]:
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


def signing(path: Path) -> Callable[[bytes], Signature]:
    """Return what signs manifests with the key in a file.

    Raises:
        InputError: The file holds no key.
    """
    from remegraph.exchange.packs.layout import PURPOSE
    from remegraph.exchange.signing import SigningKey

    key = SigningKey.open(path)
    return lambda manifest: key.sign(manifest, purpose=PURPOSE)


def conflict_of(
    records: Sequence[str], cure: str = "Install it into another scope, or into an empty home."
) -> PackError:
    """Return the error that names the records that are here with other content."""
    more = f" and {len(records) - _NAMED} more" if len(records) > _NAMED else ""
    named = f"{', '.join(records[:_NAMED])}{more}"
    return PackError("conflict", f"What the pack holds is here already, with other content: {named}.", cure)
