"""A process of one of two releases, by an account that may change no table: a service, or a worker; or the job that migrates.

Run as `python -m tests.reliability.rolling RELEASE ROLE URL HOME`. A service records a turn for each line, a JSON object, and
ends when there are no more; a worker works until SIGTERM.
"""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from remegraph import MemoryKit, Scope, Settings
from remegraph.errors import RemegraphError
from remegraph.kit.admin.doctor import migrate
from remegraph.kit.background import until_signalled
from remegraph.settings import CapturePolicy
from remegraph.testing import InMemoryVectorIndex
from tests.reliability.released import wider
from tests.talk import EACH_TURN, SHARED_KEY

__all__ = ["settings_of"]


def settings_of(url: str, home: str) -> Settings:
    """Return the settings of every process."""
    return Settings(
        home=Path(home),
        ledger_url=url,
        journal_key=SHARED_KEY,
        migrate="never",
        agent=EACH_TURN,
        capture=CapturePolicy(background=False, poll=0.05),
    )


def _tell(**what: object) -> None:
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


def _record(kit: MemoryKit, turn: dict[str, Any]) -> None:
    said = [
        {"id": f"{turn['id']} {role}", "role": role, "content": f"I have {turn['number']} dogs."}
        for role in ("user", "assistant")
    ]
    try:
        added = kit.capture(said, scope=Scope(user=turn["user"], agent="remy")).added
    except RemegraphError as error:
        _tell(refused=str(error))
    else:
        _tell(added=added)


def _main(role: str, settings: Settings) -> None:
    if role == "migrate":
        _tell(steps=[each.revision for each in migrate(settings, apply=True).steps])
        return
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        if role == "worker":
            with until_signalled() as stop:
                _tell(ready=True)
                kit.work.serve(stop)
            return
        _tell(ready=kit.admin.ready())
        for line in sys.stdin:
            _record(kit, json.loads(line))


if __name__ == "__main__":
    release, role, url, home = sys.argv[1:]
    with wider() if release == "new" else nullcontext():
        _main(role, settings_of(url, home))
