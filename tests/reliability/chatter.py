"""An agent with memory by middleware and a checkpointer on disk, killed between its answer and the capture of the turn.

Run as a program, this is a foreman: for each line of JSON, an `Order`, it forks a chatter, and says how it ended. It has
imported everything and opened nothing, so a chatter costs only its work.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chromadb  # noqa: F401 - the chatters need it
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Durability

from remegraph import MemoryKit, Scope, failpoints
from remegraph.adapters import MemoryMiddleware
from remegraph.kit import components  # noqa: F401 - likewise
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.testing import ModelCall, ScriptedChatModel

ANN = Scope(user="ann")
THREAD: RunnableConfig = {"configurable": {"thread_id": "1"}}
ANSWERED, DONE = "answered", "done"
"""Once the model has answered, and once all hooks of the run are through but that of memory."""


def say(*words: object) -> None:
    print(*words, flush=True)  # noqa: T201 - the answer


class Killer(AgentMiddleware[Any, Any, Any]):
    """Ends the process."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place

    def reached(self, place: str) -> None:
        """Be killed here, if this is the place."""
        if place == self.place:
            os.kill(os.getpid(), signal.SIGKILL)

    def after_model(self, state: Any, runtime: Any) -> None:  # noqa: ARG002
        if isinstance(state["messages"][-1], AIMessage) and not state["messages"][-1].tool_calls:
            self.reached(ANSWERED)

    def after_agent(self, state: Any, runtime: Any) -> None:  # noqa: ARG002
        self.reached(DONE)


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"The {at} is green."


def answer(call: ModelCall) -> AIMessage:
    """Look first, then answer."""
    asked = [message.text for message in call.messages if message.type == "human"][-1]
    if call.messages[-1].type == "tool":
        return AIMessage(f"Heard: {asked}")
    return AIMessage("", tool_calls=[{"name": "look", "args": {"at": "door"}, "id": f"call {asked}"}])


@dataclass(frozen=True)
class Order:
    """What a chatter shall do: one turn, and where it is killed; nowhere for no name."""

    home: str
    text: str
    place: str
    durability: Durability

    def carry_out(self) -> None:
        """Say it."""
        killer = Killer(self.place)
        database = sqlite3.connect(Path(self.home) / "host.sqlite", check_same_thread=False)
        with closing(database), MemoryKit.open(self.home, model=None, embedder=HashedEmbedder(64)) as kit:
            agent: Any = create_agent(
                ScriptedChatModel(script={"": [answer]}),
                [look],
                middleware=[MemoryMiddleware(kit, tools=False), killer],
                context_schema=Scope,
                checkpointer=SqliteSaver(database),
            )
            failpoints.listen(killer.reached)
            asked = {"messages": [HumanMessage(self.text)]}
            agent.invoke(asked, THREAD, context=ANN, durability=self.durability)


def _main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if not child:
            Order(**json.loads(line)).carry_out()
            sys.stdout.flush()
            os._exit(0)  # what the foreman imported is not ours to end
        _, status = os.waitpid(child, 0)
        say(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    _main()
