"""The page about MCP says what the server does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from mcp import Client

from remegraph import MemoryKit
from remegraph.servers.mcp import Rights, memory_server
from tests.talk import ANN, open_kit

_PAGE = Path(__file__).parents[2] / "docs" / "mcp.md"
_TEXT = _PAGE.read_text(encoding="utf-8")


def table(head: str) -> list[list[str]]:
    """The cells of a table, by its first column's name."""
    rows = re.search(rf"^\| {head} .*\n\|[-|]+\n((?:\|.*\n)+)", _TEXT, re.MULTILINE)
    assert rows
    return [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in rows[1].splitlines()]


async def offered(kit: MemoryKit, rights: Rights) -> Mapping[str, list[str]]:
    """What a client is offered, by kind; arguments beside prompts."""
    async with Client(memory_server(kit, ANN, rights=rights)) as session:
        resources = [each.uri for each in (await session.list_resources()).resources]
        templates = [each.uri_template for each in (await session.list_resource_templates()).resource_templates]
        prompts = (await session.list_prompts()).prompts
        return {
            "tool": sorted(each.name for each in (await session.list_tools()).tools),
            "resource": sorted(resources + templates),
            "prompt": sorted(f"{each.name} {''.join(a.name for a in each.arguments or [])}" for each in prompts),
        }


async def test_the_tables_are_what_the_server_offers(tmp_path: Path) -> None:
    """Who writes rules for a client goes by the names on the page."""
    with open_kit(tmp_path) as kit:
        everything, least = await offered(kit, "write"), await offered(kit, "read")
        usual = await offered(kit, "save")
    tools = table("tool")
    assert sorted(name for name, *_ in tools) == everything["tool"]
    assert sorted(name for name, rights, _ in tools if rights == "read") == least["tool"]
    assert sorted(name for name, rights, _ in tools if rights != "write") == usual["tool"]
    assert sorted(address for address, _ in table("resource")) == everything["resource"]
    assert sorted(f"{name} {argument}" for name, argument, _ in table("prompt")) == everything["prompt"]
