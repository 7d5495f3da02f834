"""The raw layer: to the letter, once, and never edited."""

from __future__ import annotations

import gc
import itertools
import json
import weakref
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remegraph.errors import MessageChangedError, MessageError
from remegraph.models import Message, Partition, StoredMessage, ToolCall
from tests.ledger.conftest import ANN, BOB, NOON, Ledger

pytestmark = pytest.mark.requirement("R1")

_numbers = itertools.count(1)
_any_text = st.text(st.characters(exclude_categories=()), max_size=30).map(lambda text: json.loads(json.dumps(text)))
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_any_text, inner, max_size=3),
    max_leaves=8,
)
_zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
_messages = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "system", "tool"]),
    name=_any_text,
    content=_any_text | st.lists(_any_text | st.dictionaries(_any_text, _json, max_size=3), max_size=3),
    time=st.datetimes(datetime(1800, 1, 1), datetime(2300, 1, 1), timezones=_zones),  # noqa: DTZ001 - zones follow
    tool_calls=st.lists(st.builds(ToolCall, name=_any_text, args=_json, call_id=_any_text), max_size=2),
    tool_call_id=_any_text,
    ok=st.none() | st.booleans(),
    task=_any_text,
    extra=_json,
)


def raw(message: StoredMessage) -> str:
    """What was given to be recorded, without what the ledger adds."""
    return Message(**{name: getattr(message, name) for name in Message.model_fields}).to_json()


@pytest.mark.requirement("X1")
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_messages=st.lists(_messages, min_size=1, max_size=4))
def test_every_message_comes_back_to_the_byte(ledger: Ledger, given_messages: list[Message]) -> None:
    """Content blocks, NUL, lone surrogates, tool calls and offsets: whatever was said can be quoted for ever."""
    home = Partition(tenant="t", user=f"user{next(_numbers)}")
    named = [message.evolve(message_id=f"m{place}") for place, message in enumerate(given_messages)]
    ledger.archive.add_messages(home, named, NOON)
    back = ledger.archive.messages([home])
    assert [raw(message) for message in back] == [message.to_json() for message in named]
    assert [message.time.utcoffset() for message in back] == [message.time.utcoffset() for message in named]
    assert [message.seq for message in back] == list(range(1, len(named) + 1))


def test_an_offset_with_seconds_keeps_its_instant(ledger: Ledger) -> None:
    """Times before the railways have offsets that ISO 8601 cannot write; the moment must survive."""
    said = datetime(1890, 1, 1, tzinfo=timezone(timedelta(minutes=9, seconds=21)))
    ledger.archive.add_messages(ANN, [Message(message_id="m", role="user", content="hi", time=said)], NOON)
    assert ledger.archive.messages([ANN])[0].time == said


def test_a_message_recorded_again_changes_nothing(ledger: Ledger) -> None:
    """A host that is not sure whether it was heard may simply say it again."""
    messages = ledger.say(ANN, "one", "two")
    receipt = ledger.archive.add_messages(ANN, [*messages, *messages], NOON)
    assert (receipt.added, receipt.known) == (0, 4)
    assert receipt.message_ids == tuple(message.message_id for message in [*messages, *messages])
    assert len(ledger.archive.messages([ANN])) == 2


def test_the_same_message_twice_in_one_call_is_recorded_once(ledger: Ledger) -> None:
    """A batch with a repeat must neither fail nor leave a gap."""
    message = Message(message_id="m", role="user", content="hi", time=NOON)
    receipt = ledger.archive.add_messages(ANN, [message, message], NOON)
    assert (receipt.added, receipt.known) == (1, 1)
    assert len(ledger.say(ANN, "next")) == 1
    assert [one.seq for one in ledger.archive.messages([ANN])] == [1, 2]


@pytest.mark.requirement("X3")
def test_an_id_with_other_content_is_refused_and_nothing_is_written(ledger: Ledger) -> None:
    """History is never edited behind the user's back, and half a batch is worse than none."""
    (old,) = ledger.say(ANN, "old")
    before = ledger.archive.counts()
    batch = [Message(message_id="new", role="user", content="new", time=NOON), old.evolve(content="edited")]
    with pytest.raises(MessageChangedError, match=old.message_id):
        ledger.archive.add_messages(ANN, batch, NOON)
    with pytest.raises(MessageChangedError, match="new"):
        ledger.archive.add_messages(BOB, [batch[0], batch[0].evolve(content="other")], NOON)
    assert ledger.archive.counts() == before
    assert [message.text for message in ledger.archive.messages([ANN])] == ["old"]


def test_a_message_without_an_id_is_refused(ledger: Ledger) -> None:
    """An empty id would make every nameless message the same one."""
    with pytest.raises(MessageError, match="message_id"):
        ledger.archive.add_messages(ANN, [Message(role="user", content="hi", time=NOON)], NOON)


def test_nothing_to_record_leaves_no_trace(ledger: Ledger) -> None:
    """A partition exists from its first message on, not from a question."""
    receipt = ledger.archive.add_messages(ANN, [], NOON)
    assert (receipt.added, receipt.known, ledger.archive.messages([ANN])) == (0, 0, ())
    assert ledger.archive.tails(ANN) == ()
    assert ledger.archive.layout(ANN).seqs.size == 0
    assert ledger.archive.partitions() == ()


@pytest.mark.requirement("R10")
@pytest.mark.parametrize(
    ("key_word", "found"),
    [
        ("PERCENT", ["100% a_b percent"]),
        ("100%", ["100% a_b percent"]),
        ("a_b", ["100% a_b percent"]),
        ("a%b", []),
        ("axb", ["axb"]),
        ("/", ['a/b \\ "quoted"']),
        ("\\", ['a/b \\ "quoted"']),
        ('"quoted"', ['a/b \\ "quoted"']),
        ("\u5317\u4eac", ["\u5317\u4eac\u5f88\u51b7"]),
        ("\U0001f600", ["smile \U0001f600"]),
        ("\ud83d", []),
        ("nul\x00", ["nul\x00byte"]),
        ("first\nsecond", ["first\nsecond"]),
        ("user", []),
        ("\u00c9", []),
        ("\u00e9", ["caf\u00e9"]),
        ("x" * 60_000, []),
    ],
)
def test_a_key_word_is_literal(ledger: Ledger, key_word: str, found: list[str]) -> None:
    """Wildcards, quotes and field names of the stored form mean themselves, or nothing is found that was not said."""
    content = [
        "100% a_b percent",
        "axb",
        'a/b \\ "quoted"',
        "\u5317\u4eac\u5f88\u51b7",
        "smile \U0001f600",
        "nul\x00byte",
        "caf\u00e9",
    ]
    ledger.say(ANN, *content)
    parts = [{"type": "text", "text": "first"}, {"type": "text", "text": "second"}]
    ledger.archive.add_messages(ANN, [Message(message_id="p", role="user", content=parts, time=NOON)], NOON)
    assert [message.text for message in ledger.archive.messages([ANN], key_word=key_word)] == found


def test_conditions_are_met_together(ledger: Ledger) -> None:
    """Thread, place, time, ids and limit narrow one another."""
    for minute in range(6):
        ledger.say(ANN, f"a{minute}", thread="a")
        ledger.say(ANN, f"b{minute}", thread="b")
        ledger.wait(60)
    read = ledger.archive.messages
    assert [one.text for one in read([ANN], thread="a", first_seq=3, last_seq=7)] == ["a1", "a2", "a3"]
    start, end = NOON + timedelta(minutes=2), NOON + timedelta(minutes=3)
    assert [one.text for one in read([ANN], time_start=start, time_end=end)] == ["a2", "b2", "a3", "b3"]
    assert [one.text for one in read([ANN], key_word="B", limit=2)] == ["b0", "b1"]
    ids = [one.message_id for one in read([ANN])]
    assert [one.text for one in read([ANN], ids=[ids[4], ids[0], "unknown"] * 400, thread="a")] == ["a0", "a2"]
    assert read([ANN], ids=[]) == ()
    assert read([], ids=ids) == ()
    assert read([ANN], limit=0) == ()


def test_recorded_at_is_the_time_given(ledger: Ledger) -> None:
    """When a thing was recorded is one of the three times, to the microsecond."""
    recorded = datetime(2024, 5, 1, 1, 2, 3, 456789, tzinfo=UTC)
    ledger.archive.add_messages(ANN, [Message(message_id="m", role="user", content="x", time=NOON)], recorded)
    assert ledger.archive.messages([ANN])[0].recorded_at == recorded


def test_more_places_than_a_statement_takes_are_read(ledger: Ledger) -> None:
    """A recall that asks for everything reads as many messages as there are: PostgreSQL takes 65,535 values at once."""
    ledger.say(ANN, "one", "two", "three")
    assert [one.seq for one in ledger.archive.messages([ANN], seqs=range(70_000, 1, -1))] == [2, 3]
    assert ledger.archive.messages([ANN], seqs=[]) == ()


def test_the_layout_follows_the_messages(ledger: Ledger) -> None:
    """Windows are composed from columns that are kept in memory: they must see what another process added."""
    ledger.say(ANN, "one two three", thread="a")
    assert list(ledger.archive.layout(ANN).seqs) == [1]
    ledger.say(BOB, "not mine")
    other = ledger.another()
    message = Message(message_id="late", role="user", content="four five", time=NOON, thread="b")
    other.add_messages(ANN, [message], NOON)
    other.close()
    ledger.say(ANN, "six", thread="a")
    layout = ledger.archive.layout(ANN)
    assert list(layout.seqs) == [1, 2, 3]
    assert list(layout.threads) == [0, 1, 0]
    assert list(layout.lengths) == [4, 3, 2]  # with the speaker's name


def test_a_closed_ledger_gives_its_memory_back_at_once(ledger: Ledger) -> None:
    """A server that opens and closes homes all day grew with each: what was kept stayed until cycles were looked for."""
    ledger.say(ANN, *map(str, range(500)))
    columns = ledger.archive.layout(ANN).seqs
    kept = weakref.ref(columns)
    del columns
    assert kept() is not None
    gc.disable()
    try:
        ledger.archive.close()
        assert kept() is None
    finally:
        gc.enable()
