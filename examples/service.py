"""A FastAPI service whose agent remembers: one kit per process, opened in the lifespan, and health probes.

    REMEGRAPH_MODEL=openai:gpt-5-mini uvicorn --factory examples.service:create_app --workers 4 --log-config examples/logging.json

Everything else comes from the environment, too (`REMEGRAPH_*`). On PostgreSQL any number of processes on any number of
machines can serve the same users, and `remegraph worker` turns what they say into memories. A client sends the whole
conversation, as with most chat APIs, so any process can answer the next turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Header, Request, status
from fastapi.responses import JSONResponse
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.types import Scope as Connection

from remegraph import LedgerUnavailableError, MemoryKit, Scope, SetupError
from remegraph.adapters import MemoryMiddleware
from remegraph.servers.watch import AccessLog, probes

__all__ = ["create_app"]


class Said(BaseModel):
    """A message of a conversation."""

    id: str = Field(min_length=1)
    """The same each time it is sent: under another id it would be recorded as another message."""
    role: Literal["user", "assistant"]
    content: str


class Turn(BaseModel):
    """A conversation to be answered."""

    thread: str = Field(min_length=1)
    messages: list[Said] = Field(min_length=1)


class Question(BaseModel):
    """A question to memory, sent in the body because logs and traces contain URLs."""

    question: str = Field(min_length=1)


class Context(BaseModel):
    """What is remembered about a question."""

    context: str


def caller(x_user: Annotated[str, Header(min_length=1)]) -> Scope:
    """Return whose memory to use: the proxy authenticates the user and must be the only one to set this header."""
    return Scope(user=x_user, agent="remy")


def shown(connection: Connection) -> str | None:
    """Return what identifies the caller; the access log contains only a digest of it, as a pseudonym."""
    return Headers(scope=connection).get("x-user")


async def answer(turn: Turn, scope: Annotated[Scope, Depends(caller)], request: Request) -> Said:
    """Answer a conversation, and record the turn once the answer is complete."""
    state = await request.app.state.agent.ainvoke(
        {"messages": [each.model_dump() for each in turn.messages]},
        {"configurable": {"thread_id": turn.thread}},
        context=scope,
    )
    newest = state["messages"][-1]
    return Said(id=newest.id, role="assistant", content=newest.text)


async def context(asked: Question, scope: Annotated[Scope, Depends(caller)], request: Request) -> Context:
    """Return what is known about a question, including messages not yet in memories; no model is called."""
    kit: MemoryKit = request.app.state.kit
    return Context(context=(await kit.arecall(asked.question, scope=scope, depth="messages")).context)


async def unavailable(_: Request, error: Exception) -> JSONResponse:  # noqa: RUF029 - as FastAPI calls it
    """Report that the ledger is unavailable; details of the error stay in the log."""
    assert isinstance(error, LedgerUnavailableError)
    return JSONResponse({"detail": "Try again."}, status.HTTP_503_SERVICE_UNAVAILABLE, {"Retry-After": "1"})


def create_app(model: BaseChatModel | str | None = None) -> FastAPI:
    """Return the service.

    Args:
        model: The agent's chat model; by default the one in the settings.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with await MemoryKit.aopen() as kit:  # here, not at import: a kit belongs to the process that opens it
            app.state.kit = kit
            app.state.agent = await asyncio.to_thread(_agent, kit, model or kit.settings.model)
            app.router.routes.extend(probes(kit))
            yield

    app = FastAPI(lifespan=lifespan)
    app.add_middleware(AccessLog, server="service", shown=shown)
    app.add_api_route("/turns", answer, methods=["POST"])
    app.add_api_route("/context", context, methods=["POST"])
    app.add_exception_handler(LedgerUnavailableError, unavailable)
    return app


def _agent(kit: MemoryKit, model: BaseChatModel | str | None) -> Any:
    if model is None:
        raise SetupError("The agent has no model.", "Set REMEGRAPH_MODEL=provider:model, or OPENAI_API_KEY.")
    return create_agent(model, middleware=[MemoryMiddleware(kit)], context_schema=Scope)
