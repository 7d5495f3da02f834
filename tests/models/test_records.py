"""What every record of the vocabulary promises."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from remegraph import RecallPolicy, Settings, SlicingPolicy, SummaryPolicy
from remegraph.models import Evidence, Memory, Message, Partition, Record, Scope, Topic
from tests.models.records import OPEN, RECORDS, instances
from tests.talk import NOON

CLOSED = pytest.mark.parametrize(
    "record", [record for record in RECORDS if record not in OPEN], ids=lambda record: record.__name__
)
EVERY = pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
MEMORY = Memory(
    memory_id="m",
    partition=Partition(tenant="t"),
    topic=Topic(type="personal", target_name="Ann"),
    content="Ann hikes.",
    said_at=NOON,
    recorded_at=NOON,
)


@EVERY
@given(st.data())
@settings(max_examples=10)
def test_every_record_survives_json(record: type[Record], data: st.DataObject) -> None:
    """What the ledger writes it reads back, to the letter, whatever the text is."""
    value = data.draw(instances(record))
    assert isinstance(value, Record)
    text = value.to_json()

    assert text.isascii()
    assert record.from_json(text) == value
    assert record.from_json(text).to_json() == text


@EVERY
def test_no_record_can_be_changed(record: type[Record]) -> None:
    """A record that one holder changes is another holder's surprise."""
    value = record.model_construct()
    for name in record.model_fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(value, name, None)


@CLOSED
def test_a_field_that_no_record_has_is_refused(record: type[Record]) -> None:
    """A mistyped field must not be dropped without a word."""
    with pytest.raises(ValidationError) as refused:
        record.model_validate({"contnet": 1})
    assert ("contnet",) in [error["loc"] for error in refused.value.errors() if error["type"] == "extra_forbidden"]


@pytest.mark.parametrize("record", OPEN, ids=lambda record: record.__name__)
@given(st.data())
@settings(max_examples=2)
def test_only_contents_of_items_keep_what_others_put_there(record: type[Record], data: st.DataObject) -> None:
    """What another system adds to a content must come back from us as it was: losing it would change what was said."""
    assert record.__module__ == "remegraph.models.exchange"
    value = data.draw(instances(record))
    assert isinstance(value, Record)
    further = {"备注": ["\ud800\x00", {"deep": None}]}
    kept = record.from_json(json.dumps(json.loads(value.to_json()) | further))

    assert (kept.model_extra or {})["备注"] == further["备注"]
    assert record.from_json(kept.to_json()) == kept


@pytest.mark.parametrize(
    "model",
    [*RECORDS, Settings, SlicingPolicy, SummaryPolicy, RecallPolicy],
    ids=lambda model: model.__name__,
)
def test_every_field_is_described(model: type[BaseModel]) -> None:
    """Tools, inspectors and readers take the meaning of a field from its description."""
    assert {name for name, field in model.model_fields.items() if not field.description} == set()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"importance": 1.5}, "importance"),
        ({"trust": float("nan")}, "trust"),
        ({"content": ""}, "content"),
        ({"status": "forgotten"}, "status"),
        ({"version": 0}, "version"),
        ({"said_at": NOON.replace(tzinfo=None)}, "must say its time zone"),
        ({"memory_id": "a\x00b"}, "must not contain NUL"),
        ({"payload": {1: object()}}, "must be JSON"),
        ({"evidence": [Evidence(message_id="1", quote="x", block_id="b"), "words"]}, "evidence"),
        ({"enforcement_level": "hard"}, "enforcement_level is for policies"),
        ({"applies_to": "project:atlas"}, "it lives in 'global'"),
    ],
)
def test_a_changed_copy_is_validated_again(fields: dict[str, object], problem: str) -> None:
    """Pydantic's own model_copy checks nothing: a bad value would reach the ledger."""
    with pytest.raises(ValidationError, match=problem):
        MEMORY.evolve(**fields)


@pytest.mark.requirement("G3")
@pytest.mark.parametrize(("project", "applies_to"), [(None, "global"), ("atlas: v2", "project:atlas: v2")])
def test_a_memory_written_before_it_had_a_class_reads_back_with_defaults(project: str | None, applies_to: str) -> None:
    """An upgrade must not make a year of memories unreadable, nor let those of one project out."""
    memory = MEMORY.evolve(partition=Partition(tenant="t", project=project), applies_to="")
    fields = json.loads(memory.to_json())
    for new in ("summary", "memory_class", "enforcement_level", "applies_to"):
        del fields[new]
    old = Memory.from_json(json.dumps(fields))
    assert old == memory
    assert (old.applies_to, old.memory_class, old.enforcement_level, old.summary) == (applies_to, "episodic", None, "")
    assert (old.user_weight, old.is_core, old.firm) == (5.0, False, False)


def test_a_record_shares_nothing_with_what_it_was_made_of() -> None:
    """Who goes on using a list must not change the past."""
    content: list[object] = [{"type": "text", "text": "hello"}]
    message = Message(role="user", content=content, time=NOON)

    content.append("later")

    assert message.text == "hello"


@pytest.mark.requirement("X5")
@pytest.mark.parametrize("value", ["", "a\x00b", "\ud800", 7, None])
def test_a_scope_names_its_user_in_text_that_can_be_stored(value: object) -> None:
    """A scope that two databases write differently would be two users, or one."""
    with pytest.raises(ValidationError):
        Scope.model_validate({"user": value})


@pytest.mark.requirement("R1")
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", ""),
        ("hello", "hello"),
        ([], ""),
        (["one", "two"], "one\ntwo"),
        (
            [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": "https://example.org"}, "two"],
            "one\ntwo",
        ),
        ([{"type": "text", "text": None}, {"type": "text"}, {"text": 7}, 7, None, [["deep"]]], ""),
        ([{"type": "text", "text": ""}, {"type": "text", "text": "\x00\ud800"}], "\x00\ud800"),
        ([{"type": "reasoning", "text": "hm"}], "hm"),
    ],
)
def test_the_words_of_a_message_are_the_texts_of_its_content_blocks(content: object, text: str) -> None:
    """Search, quotes and prompts read `text`; a block without words must not break it."""
    assert Message(role="user", content=content, time=NOON).text == text


@pytest.mark.parametrize("content", [None, 7, {"type": "text", "text": "hello"}])
def test_content_is_text_or_a_list(content: object) -> None:
    """One content block alone is a mistake that would lose its words."""
    with pytest.raises(ValidationError, match="content must be text or a list"):
        Message(role="user", content=content, time=NOON)
