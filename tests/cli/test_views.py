from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console, RenderableType

from remegraph.cli.admin import export_check, verification
from remegraph.cli.lifecycle import maintenance_tables
from remegraph.cli.recall import (
    block_grid,
    memory_list,
    message_list,
    recall_list,
    skill_table,
    tool_table,
    topic_table,
    topic_tree,
    trace_tree,
)
from remegraph.cli.work import work_table
from remegraph.models import (
    Block,
    BlockSummary,
    Evidence,
    Hit,
    Maintenance,
    Memory,
    Merge,
    Mismatch,
    Partition,
    Quote,
    Recall,
    SkillFigures,
    StoredMessage,
    ToolCall,
    ToolStats,
    Topic,
    TopicEdge,
    TopicGraph,
    TopicNode,
    Trace,
    Verification,
)

SAID = datetime(2026, 3, 9, 19, 30, tzinfo=UTC)
PLACE = Partition(tenant="default", user="Ann")
MEMORY = Memory(
    memory_id="3f2a91bc-0000",
    partition=PLACE,
    topic=Topic(type="personal", target_name="Ann"),
    content="Ann lives in Porto.",
    evidence=(Evidence(message_id="m1", quote="I live in Porto", block_id="20260309_01"),),
    block_ids=("20260309_01",),
    said_at=SAID,
    recorded_at=SAID,
)
OLD = MEMORY.evolve(memory_id="77aa0000", content="Ann lives in Lisbon.", status="superseded")
MESSAGE = StoredMessage(
    message_id="m1",
    role="user",
    name="Ann",
    content="Big news: I live in Porto now.",
    time=SAID,
    partition=PLACE,
    seq=1,
    recorded_at=SAID,
)
HIT = Hit(
    kind="memory",
    record_id="3f2a91bc-0000",
    partition=PLACE,
    text="Ann lives in Porto.",
    score=0.8,
    contributions={"words": 0.5, "recency": 0.3},
    topic="personal:Ann",
    time=SAID,
)
WHOLE = Trace(
    memory=MEMORY,
    quotes=(Quote(message=MESSAGE, start=10, end=25),),
    blocks=(
        Block(
            block_id="20260309_01",
            partition=PLACE,
            thread="main",
            first_seq=1,
            last_seq=1,
            start_time=SAID,
            end_time=SAID,
        ),
    ),
    summaries=(
        BlockSummary(block_id="20260309_01", partition=PLACE, start_time=SAID, end_time=SAID, summary="Ann moved."),
    ),
    messages=(MESSAGE,),
)


def shown(*parts: RenderableType, width: int = 100) -> str:
    """What a terminal without colours shows."""
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False)
    for part in parts:
        console.print(part)
    return out.getvalue()


def test_a_trace_shows_the_exact_words_in_their_message_also_without_colour() -> None:
    """The promise of the product on one screen: memory, block, message, words."""
    text = shown(trace_tree(WHOLE))
    assert "Ann lives in Porto." in text
    assert "block 20260309_01" in text
    assert "Ann moved." in text
    assert "Big news: [I live in Porto] now." in text


def test_a_replaced_memory_says_so_in_words() -> None:
    """Colour and strokes do not reach every terminal, nor every eye."""
    lines = shown(*memory_list([OLD, MEMORY])).splitlines()
    assert any("superseded" in line and "Lisbon" in line for line in lines)
    assert any("active" in line and "Porto" in line and "3f2a91bc" in line for line in lines)


def test_a_recall_shows_scores_and_reasons() -> None:
    """Why a memory was found is never a secret."""
    text = shown(*recall_list(Recall(query="?", memories=(HIT,), topics=("personal:Ann",), degraded=("Chroma",))))
    assert "0.80" in text
    assert "words 0.50 + recency 0.30" in text
    assert "Without Chroma" in text


@pytest.mark.requirement("K5")
def test_a_recall_shows_how_old_and_how_sure_each_memory_is_and_what_is_over() -> None:
    """A person who reads an old address must see that it is one."""
    over = HIT.evolve(standing="expired", confidence=0.5, age=timedelta(days=12, hours=5))
    text = shown(*recall_list(Recall(query="?", memories=(over, HIT))))
    assert "(expired)" in text
    assert "12 days ago" in text
    assert "sure 0.50" in text


def test_skills_show_their_rates_with_bounds_and_candidates_as_such() -> None:
    """Two successes in two runs are no certainty, and the table does not pretend it."""
    tried = SkillFigures(memory_id="abcdefghij", name="fast", version=2, runs=4, successes=3, lower=0.5, upper=0.9)
    text = shown(*skill_table([tried, SkillFigures(memory_id="b", name="slow", version=1)]))
    assert "75%" in text
    assert "0.50 to 0.90" in text
    assert "candidate" in text


def test_tools_show_their_failures() -> None:
    """A flaky tool stands out by its figures."""
    stats = ToolStats(tool="web_search", calls=4, succeeded=1, failed=3, mean_seconds=8.5, last_error="timed out")
    text = shown(*tool_table([stats, ToolStats(tool="other", calls=1, succeeded=0, failed=0)]))
    assert "25%" in text
    assert "8.5 s" in text
    assert "unknown" in text


@pytest.mark.parametrize("width", [40, 80])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    """Half of a split screen is enough."""
    long = MEMORY.evolve(content="Ann " + "lives in a very long place " * 10)
    text = shown(
        *memory_list([long]),
        *recall_list(Recall(query="?", memories=(HIT.evolve(text=long.content),)), width=width),
        *message_list([MESSAGE.evolve(content="我" * 60, tool_calls=(ToolCall(name="f", args={"a": "b" * 90}),))]),
        trace_tree(WHOLE),
        width=width,
    )
    assert max(map(len, text.splitlines())) <= width


def test_text_of_others_cannot_steer_the_terminal() -> None:
    """A raw message may hold escape sequences, markup of the printer, half a character, and letters turned round."""
    evil = MESSAGE.evolve(content="\x1b[31m\x9b2J[bold]x[/bold]\ud800\r\x07\u202egnp.exe")
    text = shown(*message_list([evil]))
    assert not {"\x1b", "\x9b", "\r", "\x07", "\ud800", "\u202e"} & set(text)
    assert "[bold]x[/bold]" in text


def test_empty_lists_say_so() -> None:
    """An empty screen would leave one wondering."""
    for view in (memory_list, block_grid, message_list, skill_table, tool_table, topic_table, work_table):
        assert shown(*view([])).strip()
    assert "Nothing found" in shown(*recall_list(Recall(query="?")))


def test_the_topic_graph_shows_what_ties_topics() -> None:
    """One look tells what the agent knows about, and what hangs together."""
    ann, tax = (Topic(type="personal", target_name="Ann"), Topic(type="task", target_name="tax"))
    graph = TopicGraph(
        centre=TopicNode(topic=Topic(type="self", target_name="self"), memories=1),
        topics=(TopicNode(topic=ann, memories=2, block_ids=("b1", "b2")), TopicNode(topic=tax)),
        edges=(
            TopicEdge(source="self:self", target="personal:Ann"),
            TopicEdge(source="self:self", target="task:tax"),
            TopicEdge(source="personal:Ann", target="task:tax", block_ids=("b2",), links=2),
        ),
    )
    text = shown(topic_tree(graph))
    assert "self:self · 1 memory · 0 blocks" in text
    assert "personal:Ann · 2 memories · 2 blocks" in text
    assert "1 block and 2 links with task:tax" in text
    assert "1 block and 2 links with personal:Ann" in text


def test_what_merely_waits_for_the_index_is_told_from_what_differs() -> None:
    """An agent that was closed before it indexed its last turn has lost nothing: its owner must not rebuild an index."""
    waits = Mismatch(where="dirty set", record_id="a", problem="pending")
    unmade = Mismatch(where="vectors", record_id="a", problem="missing")
    lost = Mismatch(where="vectors", record_id="b", problem="missing")

    def told(*differences: Mismatch) -> str:
        found = Verification(messages=2, blocks=1, memories=1, vectors=3, differences=differences)
        return shown(*verification(found))

    assert "Waiting for the index, and found by SQL until then: 1 record." in told(waits, unmade)
    assert "remegraph admin rebuild" in told(waits, unmade, lost)


def test_a_list_that_is_cut_says_how_much_is_not_shown() -> None:
    """Whoever decides by a list must know that it goes on."""
    merges = tuple(Merge(kept=MEMORY, merged=(OLD,)) for _ in range(23))
    text = shown(*maintenance_tables(Maintenance(dry_run=True, merges=merges, abstracted=(MEMORY,) * 25)))
    assert ("… and 3 more" in text, "… and 5 more" in text) == (True, True)

    wrong = [Mismatch(where="line", record_id=str(line), problem="changed") for line in range(24)]
    assert "… and 4 more" in shown(*export_check("journal.jsonl", wrong))
