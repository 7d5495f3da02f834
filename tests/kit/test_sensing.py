"""The sensory buffer: what streams in gets attention or is gone, and nothing can ask for it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from remegraph import InputError, MemoryKit, MessageError, Scope, Settings, SetupError
from remegraph.kit import OpenOptions
from remegraph.retention.working_memory import SensoryBuffer
from remegraph.settings import SensoryPolicy
from remegraph.testing import FrozenClock, InMemoryVectorIndex, SequentialIds
from tests.talk import NOON, said, statements

QUIET = "hidden orchard"
"""Two new words are not enough for the threshold of these tests."""

TOLD = "I found the hidden orchard on Friday."


class Home:
    """A kit with its clock and its index in hand."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.clock = FrozenClock(NOON)
        settings = Settings(home=folder, sensory=SensoryPolicy(threshold=0.3))
        self.kit = MemoryKit.open(
            settings=settings,
            model=None,
            embedder=None,
            index=InMemoryVectorIndex(),
            clock=self.clock,
            options=OpenOptions(new_id=SequentialIds(), **options),
        )

    @property
    def buffer(self) -> SensoryBuffer:
        return self.kit.context.sensory

    def bytes(self) -> bytes:
        return b"".join(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    home = Home(tmp_path_factory.mktemp("home"))
    with home.kit:
        yield home


@pytest.fixture
def home(shared: Home) -> Home:
    """One kit for all tests: what is sensed in one is over before the next."""
    shared.clock.move(timedelta(days=1))
    return shared


@pytest.fixture
def ann(request: pytest.FixtureRequest) -> Scope:
    """A person of each test's own."""
    return Scope(user=request.node.name, agent="remy")


@pytest.mark.requirement("B1")
def test_an_event_disappears_by_itself_when_its_time_to_live_is_over(home: Home, ann: Scope) -> None:
    """写入后 TTL 到期是否自动消失: written, waited for, gone; nobody has to clean up after a sensor."""
    home.kit.working.sense(QUIET, scope=ann)
    home.clock.move(SensoryPolicy().ttl - timedelta(milliseconds=1))
    assert len(home.buffer) == 1
    home.clock.move(timedelta(milliseconds=1))
    assert len(home.buffer) == 0
    assert not home.buffer._events


@pytest.mark.requirement("B1")
def test_an_event_makes_the_same_words_less_new_until_its_time_is_over(home: Home, ann: Scope) -> None:
    """That is all the buffer is for; other people's senses play no part in it."""
    first = home.kit.working.sense(QUIET, scope=ann).attention
    assert home.kit.working.sense(QUIET, scope=ann).attention < first
    assert home.kit.working.sense(QUIET, scope=ann.evolve(agent="other")).attention == first
    home.clock.move(SensoryPolicy().ttl)
    assert home.kit.working.sense(QUIET, scope=ann).attention == first


@pytest.mark.requirement("B1")
def test_a_clock_that_was_set_back_keeps_nothing_alive(home: Home, ann: Scope) -> None:
    """An hour back must not mean an hour more to live."""
    home.kit.working.sense(QUIET, scope=ann)
    home.clock.move(-timedelta(hours=1))
    assert len(home.buffer) == 0
    home.clock.move(timedelta(hours=1))


@pytest.mark.requirement("B2")
def test_what_scores_under_the_threshold_does_not_enter_working_memory(home: Home, ann: Scope) -> None:
    """attention_score < threshold 是否不会进入 M2: the threshold is the only door, and it is shut for noise."""
    under, over = home.kit.working.sense(QUIET, scope=ann), home.kit.working.sense(TOLD, scope=ann)
    assert under.attention < 0.3 <= over.attention
    assert (under.attended, under.chunk) == (False, None)
    assert over.attended
    assert [chunk.content for chunk in home.kit.working.chunks(scope=ann)] == [TOLD]


@pytest.mark.requirement("B2")
@pytest.mark.parametrize(("attention", "attended"), [(0.29, False), (0.3, True)])
def test_who_knows_how_much_attention_an_event_deserves_may_say_so(
    home: Home, ann: Scope, attention: float, attended: bool
) -> None:
    """An alarm is an alarm, whatever its words; and what is under the threshold stays out, whoever says so."""
    assert home.kit.working.sense(TOLD, scope=ann, attention=attention).attended is attended
    assert len(home.kit.working.chunks(scope=ann)) == attended


QUERIES: dict[str, Callable[[MemoryKit, Scope], object]] = {
    "recall": lambda kit, scope: kit.recall(QUIET, scope=scope, depth="messages", task="main").evolve(query=""),
    "recall of what is exact": lambda kit, scope: kit.recall(QUIET, scope=scope, mode="exact").evolve(query=""),
    "messages": lambda kit, scope: kit.messages(scope=scope),
    "retrieve_message": lambda kit, scope: kit.sources.retrieve_message("orchard", scope=scope),
    "memories": lambda kit, scope: kit.memories(scope=scope),
    "blocks": lambda kit, scope: kit.sources.blocks(scope=scope),
    "working": lambda kit, scope: kit.working.chunks(scope=scope),
    "topic_graph": lambda kit, scope: kit.topics.graph(scope=scope),
    "sense": lambda kit, scope: kit.working.sense("ok", scope=scope),
}


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("query", QUERIES)
def test_an_agent_can_recall_nothing_of_it_through_any_interface(home: Home, ann: Scope, query: str) -> None:
    """Agent 无法通过任何接口主动回忆 M1, and TTL 后不可检索: neither while it lives nor after; it is a filter."""
    home.kit.working.sense(QUIET, scope=ann)
    assert "orchard" not in str(QUERIES[query](home.kit, ann))
    home.clock.move(SensoryPolicy().ttl)
    assert "orchard" not in str(QUERIES[query](home.kit, ann))


@pytest.mark.requirement("B1")
def test_the_buffer_itself_has_no_way_to_read_it() -> None:
    """不允许被 Agent 主动查询: a method that returned content would be used."""
    public = {name for name, _ in inspect.getmembers(SensoryBuffer, callable) if not name.startswith("_")}
    assert public == {"sense", "clear"}
    assert inspect.signature(SensoryBuffer.sense).return_annotation == "float"


@pytest.mark.requirement("B1", "B3")
def test_nothing_sensed_gets_a_row_or_a_byte(tmp_path: Path, ann: Scope) -> None:
    """零持久语义污染: attended or not, it is in no file, neither while the kit is open nor when it is closed."""
    home = Home(tmp_path)
    with home.kit as kit:
        kit.add_messages([said("I keep a red bicycle.")], scope=ann)
        kit.summarize(scope=ann, close=True)
        stats = kit.admin.stats()
        assert not kit.working.sense(QUIET, scope=ann).attended
        assert kit.working.sense(TOLD, scope=ann).attended
        assert kit.admin.stats() == stats
        assert "orchard" in kit.recall("What did I find?", scope=ann, task="main").context
        assert b"bicycle" in home.bytes()
        assert b"orchard" not in home.bytes()
    assert b"orchard" not in home.bytes()
    assert not home.buffer._events


@pytest.mark.requirement("B1")
def test_nothing_sensed_is_made_a_vector_of(home: Home, ann: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    """不允许向量化: no embedder ever sees it, attended or not."""
    monkeypatch.setattr(type(home.kit.context.parts().embedder), "embed", None)
    assert not home.kit.working.sense(QUIET, scope=ann).attended
    assert home.kit.working.sense(TOLD, scope=ann).attended


@pytest.mark.requirement("B1")
def test_nothing_sensed_enters_the_graph(home: Home, ann: Scope) -> None:
    """不允许进入 Neo4j: no topic, no memory and no link comes of it."""
    home.kit.save("bicycle", "Ann keeps a red bicycle.", scope=ann)
    graph = home.kit.topics.graph(scope=ann)
    home.kit.working.sense(QUIET, scope=ann)
    home.kit.working.sense(TOLD, scope=ann)
    assert home.kit.topics.graph(scope=ann) == graph
    assert graph.edges


@pytest.mark.requirement("B1")
def test_sensing_waits_for_nothing_but_memory(home: Home, ann: Scope) -> None:
    """延迟 < 内存级: no statement is run, so no disk and no server can hold a sensor up."""
    with statements(home.kit) as run:
        home.kit.working.sense(QUIET, scope=ann)
        home.kit.working.sense(TOLD, scope=ann)
    assert run == []


@pytest.mark.requirement("B1")
def test_the_buffer_is_bounded_and_the_oldest_make_way() -> None:
    """A camera that runs wild must not eat the memory of the machine."""
    buffer = SensoryBuffer(SensoryPolicy(capacity=3), FrozenClock(NOON))
    heard: list[Sequence[str]] = []

    def score(before: Sequence[str]) -> float:
        heard.append(before)
        return 0.0

    for number in range(5):
        buffer.sense(Scope(user="ann").partition(), str(number), source="camera", score=score)
    assert len(buffer) == 3
    assert heard[-1] == ["1", "2", "3"]


@pytest.mark.requirement("B1")
def test_a_message_is_sensed_in_any_form_with_its_speaker(home: Home, ann: Scope) -> None:
    """Hosts have their own messages; who spoke is half of what was said."""
    kit = home.kit
    kit.working.sense(said(TOLD), scope=ann)
    kit.working.sense({"role": "user", "content": "I sold my old bicycle on Monday."}, scope=ann, source="mail")
    contents = [chunk.content for chunk in kit.working.chunks(scope=ann)]
    assert contents == [f"Ann: {TOLD}", "mail: I sold my old bicycle on Monday."]
    assert kit.messages(scope=ann) == ()


@pytest.mark.requirement("B1")
def test_a_host_may_score_attention_itself(tmp_path: Path, ann: Scope) -> None:
    """Whoever has a better model plugs it in, and it is told what came before."""
    asked: list[tuple[str, list[str]]] = []

    def attention(text: str, before: Sequence[str], /) -> float:
        asked.append((text, [*before]))
        return {"red": 1.0, "blue": 0.0}.get(text, 7.0)

    with Home(tmp_path, attention=attention).kit as kit:
        assert kit.working.sense("red", scope=ann).attended
        assert not kit.working.sense("blue", scope=ann).attended
        with pytest.raises(InputError, match="Let it return a number from 0 to 1"):
            kit.working.sense("green", scope=ann)
        assert [chunk.content for chunk in kit.working.chunks(scope=ann)] == ["red"]
    assert asked == [("red", []), ("blue", ["red"]), ("green", ["red", "blue"])]
    with pytest.raises(SetupError, match="Give a callable"):
        Home(tmp_path / "other", attention=0.5)


BAD: dict[str, Callable[[MemoryKit, Scope], object]] = {
    "nothing": lambda kit, scope: kit.working.sense(" ", scope=scope),
    "a number": lambda kit, scope: kit.working.sense(7, scope=scope),  # type: ignore[arg-type]  # what a caller may do wrong
    "no attention": lambda kit, scope: kit.working.sense(TOLD, scope=scope, attention=1.5),
    "no task": lambda kit, scope: kit.working.sense(TOLD, scope=scope, task="a\x00b"),
    "no scope": lambda kit, _scope: kit.working.sense(TOLD, scope=None),  # type: ignore[arg-type]  # likewise
}


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_sensed_is_refused_and_leaves_nothing(home: Home, ann: Scope, case: str) -> None:
    """A mistake is told at the door."""
    with pytest.raises(MessageError if case in {"nothing", "a number"} else InputError):
        BAD[case](home.kit, ann)
    assert len(home.buffer) == 0
    assert home.kit.working.chunks(scope=ann) == ()
