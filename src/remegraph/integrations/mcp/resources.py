"""What a client may read by address: topics, memories and blocks, as data with its trust, never as instructions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mcp import UriTemplate
from mcp.types import Resource, ResourceTemplate

from remegraph.adapters.tools import traced
from remegraph.errors import NotFoundError
from remegraph.kit import MemoryKit
from remegraph.models import LIVE, BlockSummary, Memory, Scope, Shelf, StoredMessage
from remegraph.rules.context import framed
from remegraph.rules.disarming import disarmed, vouched
from remegraph.rules.standing import QUARANTINE_BELOW

__all__ = ["RESOURCES", "TEMPLATES", "read"]

_MOST = 200
"""Records that one reading shows, the newest; that there are others is said, and searching finds them."""

_LONGEST = 4000
"""Characters that it shows of one message: a tool may have returned a book."""

_WITHHELD = "words that nobody vouches for; the block has them"

_TYPE = "text/plain"

_TOPICS, _MEMORIES, _BLOCKS = (f"remegraph://{name}" for name in ("topics", "memories", "blocks"))

RESOURCES = [
    Resource(uri=_TOPICS, name="topics", description="The topics that memories stand under.", mime_type=_TYPE),
    Resource(uri=_MEMORIES, name="memories", description="What is remembered, the newest first.", mime_type=_TYPE),
    Resource(uri=_BLOCKS, name="blocks", description="What happened when, the newest first.", mime_type=_TYPE),
]

TEMPLATES = [
    ResourceTemplate(
        uri_template=f"{_TOPICS}/{{key}}",
        name="topic",
        description="The memories of one topic, the newest first.",
        mime_type=_TYPE,
    ),
    ResourceTemplate(
        uri_template=f"{_MEMORIES}/{{memory_id}}",
        name="memory",
        description="One memory, and the exact words that it came from.",
        mime_type=_TYPE,
    ),
    ResourceTemplate(
        uri_template=f"{_BLOCKS}/{{block_id}}",
        name="block",
        description="The raw messages of one block, to the letter.",
        mime_type=_TYPE,
    ),
]


async def read(kit: MemoryKit, scope: Scope, uri: str) -> str:
    """Return what stands at an address.

    Args:
        kit: The memory.
        scope: Who reads.
        uri: The address.

    Raises:
        NotFoundError: There is nothing for this scope.
        InputError: The address holds what no id may hold.
    """
    match _parted(uri):
        case "topics", None:
            return _lines([_topic(shelf) for shelf in await kit.atopics(scope=scope)])
        case "memories", None:
            return _lines([_memory(each) for each in await _newest(kit, scope)])
        case "blocks", None:
            return _lines([_block(each) for each in reversed(await kit.ablocks(scope=scope))])
        case "topic", str(key):
            return _lines([_memory(each) for each in await _on_topic(kit, scope, key)])
        case "memory", str(memory_id):
            return traced(await kit.atrace(memory_id, scope=scope))
        case "block", str(block_id):
            return framed(_message(each) for each in await kit.aretrieve_block(block_id, scope=scope))
    raise NotFoundError(f"There is no resource {uri!r} here.", f"Read one of {', '.join(_addresses())}.")


def _parted(uri: str) -> tuple[str, str | None] | None:
    """Return the name of the resource or template that an address belongs to, with what it is about."""
    for resource in RESOURCES:
        if resource.uri == uri:
            return resource.name, None
    for template in TEMPLATES:
        if found := UriTemplate.parse(template.uri_template).match(uri):
            (value,) = found.values()
            return template.name, str(value)
    return None


def _addresses() -> Iterable[str]:
    return [*(each.uri for each in RESOURCES), *(each.uri_template for each in TEMPLATES)]


async def _on_topic(kit: MemoryKit, scope: Scope, key: str) -> Sequence[Memory]:
    keys = {shelf.topic.key.casefold() for shelf in await kit.atopics(scope=scope)}
    if key.casefold() not in keys:
        raise NotFoundError(f"There is no topic {key!r} here.", f"See {_TOPICS}.")
    return await _newest(kit, scope, key)


async def _newest(kit: MemoryKit, scope: Scope, topic: str | None = None) -> Sequence[Memory]:
    """Return what is shown, and one more where there are others: to count them all would read them all."""
    return await kit.amemories(scope=scope, topic=topic, statuses=sorted(LIVE), limit=_MOST + 1)


def _lines(records: Sequence[Mapping[str, object]]) -> str:
    others = [{"left_out": "all others", "because": "these are the newest; search_memory finds the others"}]
    return framed([*records[:_MOST], *(others if len(records) > _MOST else [])]) or "Nothing is remembered yet."


def _topic(shelf: Shelf) -> dict[str, object]:
    address = UriTemplate.parse(TEMPLATES[0].uri_template).expand({"key": shelf.topic.key})
    return {"topic": disarmed(shelf.topic.key), "about": disarmed(shelf.topic.description), "read": address}


def _memory(memory: Memory) -> dict[str, object]:
    return {
        "id": memory.memory_id,
        "about": disarmed(memory.topic.key),
        "date": f"{memory.said_at:%Y-%m-%d}",
        "status": memory.status,
        "trust": round(memory.trust, 2),
        "text": vouched(memory.content, memory.trust),
    }


def _block(entry: BlockSummary) -> dict[str, object]:
    trusted = entry.trust >= QUARANTINE_BELOW  # what is not stays out unless somebody asks for the block itself
    return {
        "id": entry.block_id,
        "from": f"{entry.start_time:%Y-%m-%d %H:%M}",
        "to": f"{entry.end_time:%Y-%m-%d %H:%M}",
        "trust": round(entry.trust, 2),
    } | ({"text": entry.summary} if trusted else {"withheld": _WITHHELD})


def _message(message: StoredMessage) -> dict[str, object]:
    said = {"id": message.message_id, "by": message.speaker, "at": f"{message.time:%Y-%m-%d %H:%M}"}
    more = len(message.text) - _LONGEST
    text = vouched(message.text[:_LONGEST], message.trust)
    return said | {"trust": round(message.trust, 2), "text": text} | ({"more_characters": more} if more > 0 else {})
