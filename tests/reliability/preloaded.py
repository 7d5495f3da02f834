"""A service whose master opens its memory and then forks its workers, as `gunicorn --preload` does.

Run as a program: with the settings of a kit, as JSON. Each child says, as a line of JSON, what became of the kit that it
inherited and of one that it opened itself; the parent says at last what it knows, and that all is well with it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from threading import Event
from typing import Any

from remegraph import MemoryKit, Scope, Settings
from remegraph.errors import RemegraphError

ANN = Scope(user="ann")
CHILDREN = 3


def opened(given: dict[str, Any]) -> MemoryKit:
    """Open the kit."""
    return MemoryKit.open(settings=Settings(**given, journal_key="of a preloaded service"), model=None, embedder=None)


def outcome(call: Callable[[], object]) -> dict[str, Any]:
    """Say what a call returned, or how it was refused, and how long that took."""
    began = time.perf_counter()
    try:
        told = {"returned": call()}
    except RemegraphError as error:
        told = {"refused": type(error).__name__, "what": error.what, "cure": error.cure}
    return told | {"seconds": time.perf_counter() - began}


def use(kit: MemoryKit, name: str) -> int:
    """Write and recall; return how much is found."""
    kit.add_messages([f"I am {name} and I love tea."], scope=ANN)
    kit.save("tea", f"{name} loves tea number {len(name)}.", scope=ANN)
    return len(kit.recall(f"Who is {name}?", scope=ANN, depth="messages").messages)


def child(kit: MemoryKit, given: dict[str, Any], number: int) -> None:
    """Try the kit that was inherited, then one of its own."""

    def own() -> int:
        with opened(given) as mine:
            return use(mine, f"child{number}")

    told = {"inherited": outcome(lambda: use(kit, f"heir{number}")), "own": outcome(own)}
    os.write(sys.stdout.fileno(), f"{json.dumps(told)}\n".encode())  # in one piece: its siblings write there, too
    kit.close()


def main(given: dict[str, Any], *, busy: bool) -> None:
    """Be the master."""
    stop, numbers = Event(), count()

    def work() -> None:
        while not stop.is_set():
            number = next(numbers)
            ben = Scope(user=f"ben {number % 8}")  # of eight, who are learned from side by side
            said = {"role": "user", "content": f"I like number {number}."}
            kit.capture([said, {"role": "assistant", "content": "Noted."}], scope=ben)
            kit.end_session(scope=ben)
            kit.recall("What do I like?", scope=ben)

    with ExitStack() as closing:
        kit = closing.enter_context(opened(given))
        pool = closing.enter_context(ThreadPoolExecutor(2))
        use(kit, "master")
        working = [pool.submit(work) for _ in range(2 if busy else 0)]
        children = []
        for number in range(CHILDREN):
            pid = os.fork()
            if not pid:
                child(kit, given, number)
                sys.stdout.flush()
                closing.pop_all()
                sys.exit(0)  # with all that is done at the end of a process
            children.append(pid)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
        stop.set()
        for each in working:
            each.result()
        found = use(kit, "again")
        said = [message.text for message in kit.messages(scope=ANN)]
    with opened(given) as kit:
        index = kit.admin.stats()["index"]
    print(json.dumps({"codes": codes, "found": found, "said": said, "index": index}), flush=True)  # noqa: T201 - likewise


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), busy=sys.argv[2] == "busy")
