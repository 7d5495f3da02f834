"""The command that other programs start: the memory as a server of the Model Context Protocol."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from pathlib import Path
from typing import Annotated

import typer

from remegraph.cli.asking import Asked, asked
from remegraph.cli.session import Output, open_kit
from remegraph.integrations import mcp as protocol
from remegraph.integrations.mcp.rights import Rights
from remegraph.prompts import Language

__all__ = ["mcp"]

_TOKEN = "REMEGRAPH_MCP_TOKEN"  # noqa: S105 - where it is, not what it is


@asked
def mcp(
    ask: Asked,
    *,
    rights: Annotated[
        Rights,
        typer.Option("--rights", help="read: look up; save: state memories, too; write: forget and decide, too."),
    ] = "save",
    http: Annotated[
        str | None,
        typer.Option(
            "--http",
            help="Serve over HTTP at this address, e.g. 127.0.0.1:8765, instead of standard input and output.",
            metavar="HOST:PORT",
            show_default=False,
        ),
    ] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(
            "--tokens",
            help='JSON file that says whom each token stands for: {"TOKEN": {"user": "ann"}}. Unless given, one token '
            f"stands for the user named here: ${_TOKEN}, else a new one, which is printed.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", help="Host name that clients reach it by, where that is not loopback.", metavar="NAME"),
    ] = None,
    language: Annotated[Language, typer.Option("--language", help="Of the instructions and prompts.")] = "en",
) -> None:
    """Serve the memory to an MCP client, such as Claude: its tools, resources and prompts. No model is called.

    Whose memory it is stands in these options, or with the token; no argument of a tool can change it.
    """
    scope, serve_stdio, serve_http = ask.scope, protocol.serve_stdio, protocol.serve_http  # the extra may be missing
    if http is None:
        if tokens is not None or name:
            raise typer.BadParameter("--tokens and --name are for --http.")
        with open_kit(ask.home, create=True) as kit:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever waits for a line cannot be interrupted, only ended
            asyncio.run(serve_stdio(protocol.memory_server(kit, scope, rights=rights, language=language)))
        return
    host, port = _address(http)
    known = protocol.Tokens.of_file(tokens) if tokens is not None else protocol.Tokens({_token(ask.out): scope})

    def ready(url: str) -> None:
        _say(ask.out, f"Serving {url}")

    with open_kit(ask.home, create=True) as kit:
        server = protocol.memory_server(kit, rights=rights, language=language)
        asyncio.run(serve_http(server, known, host=host, port=port, names=name or (), ready=ready))


def _address(given: str) -> tuple[str, int]:
    """Return host and port.

    Raises:
        typer.BadParameter: They cannot be read.
    """
    host, colon, port = given.rpartition(":")
    if not (colon and host and port.isdecimal() and port.isascii()):
        raise typer.BadParameter(f"{given!r} is no address: give one such as 127.0.0.1:8765.")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _token(out: Output) -> str:
    """Return the token of the environment, else a new one, told on standard error."""
    if given := os.environ.get(_TOKEN):
        return given
    made = secrets.token_hex(32)
    _say(out, f"Token, until this ends: {made}")
    return made


def _say(out: Output, line: str) -> None:
    out.errors.print(line, soft_wrap=True, markup=False)
