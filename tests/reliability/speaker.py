"""A process of a service: users talk with an agent at once, each in a thread of the host's own checkpoints.

Run as `python -m tests.reliability.speaker URL HOME FIRST COUNT TURNS WAIT`. It says what it does in lines of JSON, begins
when a line comes, lets everybody say the last turn at the second one, and at the third one records from its checkpoints
what it could not record before.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from remegraph import MemoryKit, Scope, Settings
from remegraph.adapters import MemoryMiddleware
from remegraph.settings import PoolPolicy
from remegraph.testing import InMemoryVectorIndex, ModelCall, ScriptedChatModel
from tests.talk import SHARED_KEY


def tell(**what: object) -> None:
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


def answer(call: ModelCall) -> AIMessage:
    return AIMessage(f"Heard: {call.messages[-1].text}")


def config(user: str) -> Any:
    return {"configurable": {"thread_id": user}}


def main(url: str, home: str, first: int, count: int, turns: int, wait: float) -> None:
    """Let users from `first` on talk at once; say how many conversations lack something after each turn."""
    settings = Settings(home=Path(home), ledger_url=url, journal_key=SHARED_KEY, pool=PoolPolicy(wait=wait))
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        agent: Any = create_agent(
            ScriptedChatModel(script={"": [answer]}),
            middleware=[MemoryMiddleware(kit, tools=False)],
            context_schema=Scope,
            checkpointer=InMemorySaver(),
        )
        users, last = [f"user{number}" for number in range(first, first + count)], Event()

        def talk(user: str) -> None:
            for number in range(turns):
                if number == turns - 1:
                    last.wait()
                said = {"messages": [HumanMessage(f"I have {number} dogs.")]}
                agent.invoke(said, config(user), context=Scope(user=user))
                tell(turn=kit.context.health.stats()["threads_unrecorded"])

        tell(ready=True)
        sys.stdin.readline()
        with ThreadPoolExecutor(count) as pool:
            talking = pool.map(talk, users)
            sys.stdin.readline()
            last.set()
            list(talking)
        tell(done=True, unrecorded=len(kit.admin.unrecorded()), failures=kit.context.health.stats()["capture_failures"])
        sys.stdin.readline()
        for each in kit.admin.unrecorded():
            messages = agent.get_state(config(each.thread)).values["messages"]
            kit.capture(messages, scope=Scope(user=each.thread), thread=each.thread)
        tell(left=len(kit.admin.unrecorded()))


if __name__ == "__main__":
    url, home, first, count, turns, wait = sys.argv[1:]
    main(url, home, int(first), int(count), int(turns), float(wait))
