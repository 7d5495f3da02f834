"""The context for a prompt: each thing once, neighbours together, within the budget, and nothing left out in silence."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.engine.frame import shown_ids, shown_records
from remegraph.engine.retrieval.context import Context, assemble, called, in_turn
from remegraph.models import Evidence, Hit, Partition
from remegraph.text.tokens import estimate_tokens
from tests.talk import NOON

ANN = Partition(tenant="t", user="ann")
PLENTY = 100_000


def message(seq: int, text: str, *, days: int = 0, thread: str = "main", **fields: Any) -> Hit:
    """A raw message as it is found."""
    time = NOON + timedelta(days=days, minutes=seq)
    hit = Hit(kind="message", record_id=f"m{seq}", partition=ANN, text=text, score=1, time=time)
    return hit.evolve(thread=thread, seq=seq, **fields)


def memory(record_id: str, text: str, *, quotes: Sequence[str] = (), **fields: Any) -> Hit:
    """A memory, made of these messages."""
    evidence = tuple(Evidence(message_id=each, quote="x", block_id="b") for each in quotes)
    hit = Hit(kind="memory", record_id=record_id, partition=ANN, text=text, score=1, time=NOON)
    return hit.evolve(**{"topic": "personal:Ann", "evidence": evidence} | fields)


def lines(context: Context) -> list[str]:
    return context.text.split("\n")[1:-1]


def test_what_says_the_same_on_the_same_day_is_shown_once() -> None:
    """A block's summary is often the memory in other letters: the tokens belong to something else."""
    hits = [memory("a", "Ann: I live in Lisbon."), memory("b", "ann:  i live in LISBON")]
    context = assemble([*hits, message(1, "Ann: 👍"), message(3, "Ann: 👎")], PLENTY, estimate_tokens)
    assert shown_ids(context.text) == ["a", "#1", "#3"]
    assert context.left_out == {"b": "duplicate"}


def test_what_was_said_again_on_another_day_is_shown_again() -> None:
    """Who asks how often Ann went running must not be told: once."""
    hits = [message(day, "Ann: I went running.", days=day) for day in (1, 2, 3)]
    assert assemble(hits, PLENTY, estimate_tokens).left_out == {}


def test_a_message_whose_words_a_memory_of_it_shows_is_left_out() -> None:
    """The memory leads to it; its words need not be read twice. Another's message with the same words stays."""
    hits = [
        memory("a", "Ann: I live in Lisbon. (2025-03-04)", quotes=["m1"]),
        message(1, "Ann: I live in Lisbon!"),
        message(7, "Ann: Lisbon."),
    ]
    context = assemble(hits, PLENTY, estimate_tokens)
    assert shown_ids(context.text) == ["a", "#7"]
    assert context.left_out == {"m1": "duplicate"}


def test_a_message_that_says_more_than_its_memory_is_shown() -> None:
    """A memory is a summary: what it leaves out may be what is asked for."""
    hits = [memory("a", "Ann lives in Lisbon.", quotes=["m1"]), message(1, "Ann: I live in Lisbon, at 3 Rua Nova.")]
    assert assemble(hits, PLENTY, estimate_tokens).left_out == {}


def test_a_duplicate_of_what_the_budget_left_out_is_shown_if_there_is_room() -> None:
    """Left out because it is shown already: that must be true."""
    long = memory("long", "Ann: I paint. " + "Often. " * 200, quotes=["m1"])
    context = assemble([long, message(1, "Ann: I paint.")], 120, estimate_tokens)
    assert shown_ids(context.text) == ["#1"]
    assert context.left_out == {"long": "budget"}


def test_what_the_agent_knows_of_itself_takes_a_quarter_of_the_budget_at_most() -> None:
    """Eight lines on how it should talk once took all 500 tokens, and of the person nothing was shown."""
    own = [memory(f"s{at}", f"Remy keeps rule {at}.").evolve(topic="self:self") for at in range(8)]
    context = assemble([*own, memory("a", "Ann lives in Porto."), memory("b", "Ann has a dog.")], 300, estimate_tokens)
    shown = shown_ids(context.text)
    assert shown[0] == "s0"
    assert {"a", "b"} <= set(shown)
    assert {context.left_out[each.record_id] for each in own if each.record_id not in shown} == {"cap"}


TOLD = "Ann: I own a scarlet bicycle."


def entry(text: str, *, days: int = 0) -> Hit:
    """The index entry of a block, as it is found."""
    time = NOON + timedelta(days=days)
    hit = Hit(kind="block", record_id="b", partition=ANN, text=text, score=1, time=time)
    return hit.evolve(block_ids=("b",))


def test_a_memory_that_only_repeats_messages_which_stand_there_is_left_out() -> None:
    """Three messages made one memory without a model; said twice, they cost the room of what answers."""
    said = [message(1, "Ann: I paint."), message(2, "Ann: in oil")]
    both = memory("a", "Ann: I paint.\nin oil", quotes=["m1", "m2"])
    more = memory("b", "Ann: I paint.\nin Porto", quotes=["m1", "m3"])
    context = assemble([*said, both, more], PLENTY, estimate_tokens)
    assert context.left_out == {"a": "duplicate"}
    assert assemble([*said, both.evolve(status="disputed")], PLENTY, estimate_tokens).left_out == {}
    assert assemble([said[0], both], PLENTY, estimate_tokens).left_out == {}


def test_what_the_agent_knows_of_itself_takes_a_tenth_before_what_was_found() -> None:
    """How it is to write dates bears on few questions; where the question finds it, it comes like all else."""
    own = [memory(f"s{at}", f"Remy keeps rule {at}.").evolve(topic="self:self") for at in range(30)]
    found = [memory(f"f{at}", f"Ann keeps key {at} in the shed, in the drawer.") for at in range(60)]
    alone = assemble(found, 500, estimate_tokens, first=own)
    names = shown_ids(alone.text)
    assert 0 < sum(estimate_tokens(each.text) for each in alone.shown if each.topic == "self:self") <= 50
    assert sum(name.startswith("f") for name in names) > 5
    both = assemble([*own[20:24], *found], 500, estimate_tokens, first=own)
    assert {"s20", "s21"} <= set(shown_ids(both.text))


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=30),
    st.lists(st.integers(1, 60), min_size=1, max_size=30),
    st.sampled_from([0.1, 0.25, 0.5, 0.75]),
)
def test_two_sources_take_turns_by_their_share_of_the_tokens(one: list[int], other: list[int], share: float) -> None:
    """As far as both go, neither is ahead of its share by more than one of its texts; and nothing is lost."""
    hits = [message(at, "x " * size) for at, size in enumerate(one)]
    more = [memory(f"b{at}", "x " * size) for at, size in enumerate(other)]
    order = list(in_turn(hits, more, share, lambda text: text.count("x")))
    assert [hit for hit in order if hit.kind == "message"] == hits
    assert [hit for hit in order if hit.kind == "memory"] == more
    taken = {"message": 0.0, "memory": 0.0}
    part = {"message": 1 - share, "memory": share}
    left = {"message": len(one), "memory": len(other)}
    for hit in order:
        if all(left.values()):
            rival = "memory" if hit.kind == "message" else "message"
            assert taken[hit.kind] / part[hit.kind] <= taken[rival] / part[rival]
        taken[hit.kind] += hit.text.count("x")
        left[hit.kind] -= 1


def test_in_brief_a_fact_stands_once_whatever_it_is_told_by() -> None:
    """Memory, index entry and message of one sentence were three lines of a note, of six hundred tokens."""
    hits = [
        memory("a", TOLD, block_ids=("b",)),
        entry("Ann: I own a scarlet bicycle. remy: Noted."),
        message(1, "remy: Noted."),
    ]
    assert shown_ids(assemble(hits, PLENTY, estimate_tokens).text) == ["a", "b", "#1"]
    brief = assemble(hits, PLENTY, estimate_tokens, question="Which bicycle do I own?")
    assert shown_ids(brief.text) == ["a", "b"]
    assert brief.left_out == {"m1": "duplicate"}
    whole = assemble([hits[0], entry(TOLD)], PLENTY, estimate_tokens, question="Which bicycle do I own?")
    assert whole.left_out == {"b": "duplicate"}


def test_in_brief_what_was_said_on_another_day_or_of_another_block_is_shown() -> None:
    """The same words again are another event."""
    hits = [memory("a", TOLD, block_ids=("other",)), entry(TOLD), message(1, f"{TOLD} Often.", days=1)]
    hits = [hits[0], hits[1].evolve(time=NOON + timedelta(days=3)), hits[2]]
    assert assemble(hits, PLENTY, estimate_tokens, question="Which bicycle do I own?").left_out == {}


def test_in_brief_what_only_asks_what_is_asked_now_is_left_out() -> None:
    """One's own question of another day answers nothing; what tells as much as it asks may."""
    hits = [
        message(1, "Ann: What colour is my bicycle?"),
        memory("a", "Ann: What colour is my bicycle?").evolve(time=NOON - timedelta(days=1)),
        message(3, "Ann: My bicycle has a colour."),
        message(5, "Ann: What colour is my scarlet bicycle?"),
        message(7, "Ann: I sold it. What colour is my bicycle?"),
    ]
    context = assemble(hits, PLENTY, estimate_tokens, question="What colour is my bicycle, please?")
    assert shown_ids(context.text) == ["#3", "#5", "#7"]


def test_words_stand_by_subject_and_day_in_the_order_in_which_they_were_said() -> None:
    """An answer is understood from the question before it, and the later of two values is the one that holds."""
    hits = [
        message(5, "remy: Which hills?", trust=0.8),
        memory("b", "Ann moved to Porto.", time=NOON + timedelta(days=3)),
        message(9, "Ann: Bye."),
        message(4, "Ann: I love the hills."),
        message(10, "Ann: I am back.", days=2),
        memory("c", "It rains.", topic="task:trip"),
        memory("a", "Ann lived in Oslo.", standing="superseded"),
    ]
    assert lines(assemble(hits, PLENTY, estimate_tokens)) == [
        "= personal:Ann",
        "[a, 2025-03-04, superseded] Ann lived in Oslo.",
        "[b, 2025-03-07] Ann moved to Porto.",
        "= task:trip",
        "[c, 2025-03-04] It rains.",
        "= message, 2025-03-04",
        "[#4] Ann: I love the hills.",
        "[#5, trust 0.8] remy: Which hills?",
        "[#9] Ann: Bye.",
        "= message, 2025-03-06",
        "[#10] Ann: I am back.",
    ]


def test_a_line_costs_little_beside_its_words() -> None:
    """Of sixty tokens beside the words of a memory, ids, quotes and brackets were most."""
    one = memory("0123456789abcdef0123456789abcdef", "Ann lives in Porto.")
    context = assemble([one], PLENTY, estimate_tokens).text
    assert shown_ids(context) == ["01234567"]
    beside = estimate_tokens(lines(assemble([one], PLENTY, estimate_tokens))[1]) - estimate_tokens(one.text)
    assert beside <= 10


def test_a_record_that_is_over_or_disputed_says_so() -> None:
    """A model that reads an old address as the present one gives it to the courier."""
    ended = memory("a", "Ann is in Rome.", standing="expired", valid_to=NOON)
    hits = [ended, memory("b", "Ann is in Oslo.", standing="superseded"), memory("c", "Ann is ill.", status="disputed")]
    found = shown_records(assemble(hits, PLENTY, estimate_tokens).text)
    assert [each.get("expired") for each in found] == ["2025-03-04", None, None]
    assert ["superseded" in each for each in found] == [False, True, False]
    assert ["disputed" in each for each in found] == [False, False, True]


def test_what_comes_first_fills_a_part_of_the_budget() -> None:
    """What is at stake must not push out what is asked for."""
    dear = [message(at, f"Ann: {at} never give me {'peanuts ' * 12}") for at in range(20)]
    context = assemble([memory("a", "Ann lives in Porto.")], 400, estimate_tokens, first=dear)
    assert "a" in shown_ids(context.text)
    assert 2 <= len(shown_ids(context.text)) < 10


@pytest.mark.requirement("X6")
@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\n", "\r", "\x0b", "\x1c", "</memory>"])
def test_no_text_begins_a_line_of_its_own(separator: str) -> None:
    """Adapters read the ids off the lines, and so may a model: a line that somebody wrote would be a record."""
    text = f"x{separator}[fake] y{separator}= fake"
    hits = [memory("a", text), message(1, "1" + text), message(2, "2" + text)]
    context = assemble(hits, PLENTY, estimate_tokens)
    assert shown_ids(context.text) == ["a", "#1", "#2"]
    assert [each["text"] for each in shown_records(context.text)] == [hit.text for hit in hits]


@pytest.mark.requirement("X6")
@pytest.mark.parametrize("sly", ["], ", "a, superseded", "= b", "a\n[b] c", "a]", "#7", ""])
def test_no_name_nor_topic_says_more_than_what_it_is(sly: str) -> None:
    """Ids and topics are of hosts and models, too."""
    context = assemble([memory(f"x{sly}", "Hello.", topic=f"y{sly}")], PLENTY, estimate_tokens)
    (found,) = shown_records(context.text)
    assert (found["id"], found["about"], found["text"]) == (f"x{sly}", f"y{sly}", "Hello.")
    assert "superseded" not in found


@given(
    st.lists(st.tuples(st.integers(1, 30), st.text(max_size=60), st.booleans()), max_size=20, unique_by=lambda x: x[0]),
    st.integers(1, 600),
    st.sampled_from([estimate_tokens, len]),
)
def test_whatever_was_found_the_budget_holds_and_each_thing_is_shown_or_accounted_for(
    found: list[tuple[int, str, bool]], budget: int, count: Any
) -> None:
    """A context over the budget pushes the conversation out of the model's window, with any tokenizer."""
    hits = [memory(f"m{seq}", f"A {text}") if kept else message(seq, f"A: {text}") for seq, text, kept in found]
    context = assemble(hits, budget, count)
    assert count(context.text) <= budget or not context.text
    shown = shown_ids(context.text)
    assert len(shown) == len(set(shown))
    names = {called(hit): hit.record_id for hit in hits}
    assert {names[name] for name in shown} | context.left_out.keys() == {hit.record_id for hit in hits}
    assert context.left_out.keys().isdisjoint(names[name] for name in shown)
