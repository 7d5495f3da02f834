"""`remegraph inspect`: a local web page over the memory."""

from __future__ import annotations

from typing import Annotated

import typer

from remegraph.cli.asking import Asked, asked
from remegraph.errors import MissingExtraError

__all__ = ["inspect"]


@asked
def inspect(
    ask: Asked,
    *,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port of the page; 0: any that is free.")
    ] = 8770,
    write: Annotated[bool, typer.Option("--write", help="Let the visitor decide what waits, and restore.")] = False,
) -> None:
    """Look at the memory in a browser: topics, sources, forgetting, recall, what waits. Ctrl-C ends it.

    It listens on this machine only, and lets in whoever opens the printed address first. It shows what the given user,
    agent and project may see, and changes nothing unless --write is given.
    """
    try:
        from remegraph.integrations.inspector.serving import listen, serve
    except ModuleNotFoundError as error:
        needed = str(error.name).partition(".")[0]
        if needed not in {"jinja2", "starlette", "uvicorn"}:
            raise
        raise MissingExtraError(
            f"The inspector needs {needed}.", "Install it: pip install 'remegraph[inspector]'"
        ) from error
    with listen(port) as door, ask.kit() as kit:
        serve(kit, ask.scope, door, write=write, tell=lambda address: ask.out.show({"address": address}, address))
