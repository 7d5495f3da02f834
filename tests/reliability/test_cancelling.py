"""Stopped in the middle, from outside: nothing half written, nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import threading
from pathlib import Path
from typing import Any

import pytest

from remegraph import CancelledError, MemoryKit, Settings, SummaryPolicy
from remegraph.testing import FaultyChatModel, FrozenClock, InMemoryVectorIndex, ModelCall, ScriptedChatModel
from tests.talk import ANN, NOON, create, digest, proposal, said

SCHEMAS = ("DigestAnswer", "ProposalAnswer", "VerdictAnswer")
BLOCKS = 3


def script() -> dict[str, Any]:
    def propose(call: ModelCall) -> dict[str, Any]:
        number = call.text.rsplit("on mountain ", 1)[1][0]  # the block; what was said before it stands above
        return proposal(create(f"Ann loves mountain {number}.", 1, f"I love hiking on mountain {number}"))

    return {
        "DigestAnswer": digest("personal:Ann"),
        "ProposalAnswer": propose,
        "VerdictAnswer": {"objections": []},
    }


def open_kit(home: Path, model: ScriptedChatModel) -> MemoryKit:
    return MemoryKit.open(
        settings=Settings(home=home, summary=SummaryPolicy(backoff=0, reviser="always")),
        model=model,
        embedder=None,
        index=InMemoryVectorIndex(),
        clock=FrozenClock(NOON),
    )


def fill(kit: MemoryKit) -> None:
    """Three blocks, ten hours apart."""
    kit.add_messages(
        [said(f"I love hiking on mountain {number}.", minutes=600 * number) for number in range(BLOCKS)], scope=ANN
    )


def whole_blocks(kit: MemoryKit) -> int:
    """Check that each block is done altogether or not at all; return how many are."""
    done = {work.block_id for work in kit.work.list(scope=ANN, states=["done"])}
    assert {entry.block_id for entry in kit.sources.blocks(scope=ANN)} == done
    assert {block_id for memory in kit.memories(scope=ANN) for block_id in memory.block_ids} == done
    assert len(kit.memories(scope=ANN)) == len(done)
    return len(done)


async def _until_it_hangs(model: FaultyChatModel) -> None:
    while not model.injected:  # noqa: ASYNC110 - a model knows of no event loop
        await asyncio.sleep(0.005)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.requirement("X3")
@pytest.mark.parametrize("schema", SCHEMAS)
async def test_a_cancelled_task_leaves_whole_blocks_and_goes_on_later(tmp_path: Path, schema: str) -> None:
    """Web servers cancel the tasks of clients that hang up."""
    model = FaultyChatModel(script=script(), faults=("hang",), schemas=(schema,), holding="mountain 1")
    async with open_kit(tmp_path, model) as kit:
        fill(kit)
        task = asyncio.create_task(kit.asummarize(scope=ANN, close=True))
        await _until_it_hangs(model)  # the first block is done by then
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert whole_blocks(kit) == 1

        model.heal()
        report = await kit.asummarize(scope=ANN)

        assert len(report.blocks) == BLOCKS - 1
        assert whole_blocks(kit) == BLOCKS
        assert kit.admin.verify().healthy


@pytest.mark.requirement("X3")
@pytest.mark.parametrize("after", range(BLOCKS))
def test_a_cancelled_run_leaves_whole_blocks_and_goes_on_later(tmp_path: Path, after: int) -> None:
    """A user presses stop; what is done is done, and nothing is paid for twice."""
    model = ScriptedChatModel(script=script())
    with open_kit(tmp_path, model) as kit:
        fill(kit)
        with pytest.raises(CancelledError):
            kit.summarize(scope=ANN, close=True, cancel=lambda: len(kit.sources.blocks(scope=ANN)) == after)

        assert whole_blocks(kit) == after
        kit.summarize(scope=ANN, close=True)

        assert whole_blocks(kit) == BLOCKS
        assert len([call for call in model.calls if call.schema == "DigestAnswer"]) == BLOCKS


@pytest.mark.requirement("X3")
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files in /proc")
@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.slow)])
async def test_a_closed_kit_leaves_no_thread_and_no_open_file(tmp_path: Path, times: int) -> None:
    """Long-lived servers open and close kits; what leaks there ends in 'too many open files'."""
    await _use(tmp_path / "warm")
    gc.collect()
    threads, files = _own_threads(), open_files()

    for number in range(times):
        await _use(tmp_path / str(number))

    gc.collect()
    assert _own_threads() == threads
    assert open_files() == files


async def _use(home: Path) -> None:
    """Everything that opens connections or starts threads, a cancelled run and a hanging call among it."""
    model = FaultyChatModel(script=script(), faults=("hang",), times=1, schemas=("ProposalAnswer",))
    async with open_kit(home, model) as kit:
        fill(kit)
        task = asyncio.create_task(kit.asummarize(scope=ANN, close=True))
        await _until_it_hangs(model)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        kit.summarize(scope=ANN)
        await kit.arecall("Which mountain?", scope=ANN, depth="messages")


def _own_threads() -> list[str]:
    """Names of the threads alive, those of asyncio's shared pool aside: they are kept for reuse."""
    return sorted(thread.name for thread in threading.enumerate() if not thread.name.startswith("asyncio_"))
