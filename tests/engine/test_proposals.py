"""A model's proposal is taken operation by operation; what models answered once is answered again."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from conftest import Figure
from remegraph import MemoryKit
from remegraph.engine.chat.model_call import Asker
from remegraph.engine.chat.modelled import ModelThinker
from remegraph.engine.summary_tasks import Meter, Proposal, ProposeTask
from remegraph.models import Block, Memory, RecallFilter, Shelf, StoredMessage, ToolCall, Topic
from remegraph.testing import ModelCall, ScriptedChatModel
from tests.talk import ANN, NOON, change, clock_of, create, digest, model_of, open_kit, proposal, said

RECORDED = Path(__file__).with_name("answers.jsonl")
"""Blocks and what a strong and a weak model answered to them, with a prompt that is no longer used. The dialogue with the
airline's agent is tau-bench's (MIT), two sentences longer."""


@cache
def recorded() -> tuple[dict[str, Any], ...]:
    return tuple(map(json.loads, RECORDED.read_text(encoding="utf-8").splitlines()))


def message(number: int, *, text: str, role: Any = "user", time: datetime = NOON, **fields: Any) -> StoredMessage:
    calls = tuple(ToolCall(name=call["name"], args=call["args"]) for call in fields.pop("calls", ()))
    name = fields.pop("name", "")
    return StoredMessage(
        message_id=f"w{number}",
        role=role,
        name=name,
        content=text,
        time=time + timedelta(seconds=number),
        tool_calls=calls,
        partition=ANN.partition(),
        seq=number,
        recorded_at=time,
        **fields,
    )


def known(content: str, *, memory_id: str = "k1", topic: str = "personal:ann", **fields: Any) -> Memory:
    kind, _, name = topic.partition(":")
    return Memory.model_validate(
        {
            "memory_id": memory_id,
            "partition": ANN.partition(),
            "topic": Topic.model_validate({"type": kind, "target_name": name}),
            "content": content,
            "said_at": NOON - timedelta(days=90),
            "recorded_at": NOON - timedelta(days=90),
            **fields,
        }
    )


def task(*messages: StoredMessage, topic: str = "personal:ann", similar: Any = (), **fields: Any) -> ProposeTask:
    kind, _, name = topic.partition(":")
    where = ANN.partition()
    block = Block(
        block_id="20250304_01",
        partition=where,
        thread="main",
        first_seq=1,
        last_seq=len(messages),
        start_time=messages[0].time,
        end_time=messages[-1].time,
    )
    shelf = Shelf(partition=where, topic=Topic.model_validate({"type": kind, "target_name": name}))
    given: dict[str, Any] = {"attempt": 1, "reasons": (), "language": "en", "now": NOON, "recipe": "1"}
    return ProposeTask(
        scope=ANN, shelf=shelf, block=block, messages=messages, similar=tuple(similar), **(given | fields)
    )


def proposed(asked: ProposeTask, *answers: Any, repairs: int = 1) -> tuple[Proposal, ScriptedChatModel]:
    """What comes of answers to a task, and the model that gave them."""
    model = ScriptedChatModel(script={"ProposalAnswer": list(answers)})
    thinker = ModelThinker(Asker(model, repairs=repairs, retries=0, backoff=0), similar_tokens=2000)
    return thinker.propose(asked, Meter()), model


def replayed(row: dict[str, Any]) -> ProposeTask:
    block = next(each["messages"] for each in recorded() if each["block"] == row["block"])
    messages: list[StoredMessage] = []
    asked = ""
    for number, each in enumerate(block, start=1):
        told = {**each, "time": datetime.fromisoformat(each["time"])}
        if told["role"] == "tool":
            told["tool_call_id"] = asked
        messages.append(message(number, **told))
        if messages[-1].tool_calls:
            asked = messages[-1].tool_calls[0].call_id
    similar = [known(each["content"], memory_id=each["id"], topic=row["topic"]) for each in row["memories"]]
    return task(*messages, topic=row["topic"], similar=similar, language=row["language"])


def given(row: dict[str, Any]) -> Any:
    answer = row["answer"]
    return answer["args"] if "args" in answer else AIMessage(answer["text"])


@pytest.mark.requirement("C9", "X6")
def test_no_sound_operation_of_a_strong_model_is_refused(figure: Figure) -> None:
    """Four of seventeen good answers were bounced once: over a year without a month, and over words of a tool call."""
    answers = operations = 0
    for row in recorded():
        if row.get("model") != "strong" or row["repairs"]:
            continue
        proposal, _ = proposed(replayed(row), given(row), repairs=0)
        assert proposal.failure == "", (row["run"], row["n"])
        assert len(proposal.operations) == len(given(row)["operations"])
        answers, operations = answers + 1, operations + len(proposal.operations)

    figure(f"recorded answers, strong model: {operations} operations in {answers} answers", "0 refused")
    assert (answers, operations) == (12, 88)


@pytest.mark.requirement("C9", "X5", "X6", "X12")
def test_of_a_weak_models_answers_what_is_sound_is_kept(figure: Figure) -> None:
    """Fourteen operations, most of them good, once became nothing, because in each answer one was not."""
    rows = {row["n"]: row for row in recorded() if row.get("run") == "ew"}
    kept = offered = 0
    for first, again in ((2, 3), (6, 7)):
        proposal, model = proposed(replayed(rows[first]), given(rows[first]), given(rows[again]))
        offered += {2: 9, 6: 5}[first]
        kept += len(proposal.changes)
        assert "do not stand" in proposal.failure or "unknown memory id" in proposal.failure
        assert len(model.calls) == 2

    figure(f"recorded answers, weak model: kept of {offered} operations", kept)
    assert (offered, kept) == (14, 12)


TALK = (
    message(1, text="I live in Braga now, I moved on 1 June. I'm allergic to nuts."),
    message(2, role="assistant", text="Noted: you live in Braga."),
    message(
        3, text="My tutor comes on Thursdays now. The keto diet is over. I never drank black coffee, that was wrong."
    ),
)
BRAGA: dict[str, Any] = {
    "action": "CREATE",
    "content": "Ann lives in Braga.",
    "category": "fact",
    "importance": 0.8,
    "slot": "lives_in",
    "value": "Braga",
    "evidence": [{"n": 1, "quote": "I live in Braga now"}],
}
NUTS: dict[str, Any] = {
    "action": "CREATE",
    "content": "Ann is allergic to nuts.",
    "evidence": [{"n": 1, "quote": "I'm allergic to nuts"}],
}
SPY: dict[str, Any] = {
    "action": "CREATE",
    "content": "Ann is a spy.",
    "evidence": [{"n": 1, "quote": "I am a spy"}],
}


def operations(*each: dict[str, Any]) -> dict[str, Any]:
    return {"operations": list(each)}


def contents(proposal: Proposal) -> list[str]:
    return [change.memory.content for change in proposal.changes]


def called_with(*args: dict[str, Any]) -> AIMessage:
    return AIMessage(
        "", tool_calls=[{"name": "ProposalAnswer", "args": each, "id": str(at)} for at, each in enumerate(args)]
    )


TEXT = json.dumps(operations(BRAGA, NUTS))


@pytest.mark.requirement("C9", "X8")
@pytest.mark.parametrize(
    "answer",
    [
        operations(BRAGA | {"id": None, "valid_from": None, "when_to_use": None, "many": None}, NUTS),
        operations(BRAGA | {"action": "create", "category": "Fact"}, NUTS | {"category": None, "importance": None}),
        operations(BRAGA | {"importance": 8}, NUTS | {"importance": "50 %"}),
        operations(BRAGA | {"importance": "8 of 10"}, NUTS | {"importance": "5/10"}),
        operations(BRAGA | {"importance": "high"}, NUTS),
        operations(BRAGA | {"evidence": BRAGA["evidence"][0]}, NUTS | {"evidence": "I'm allergic to nuts"}),
        operations(BRAGA | {"evidence": [{"n": "message 1", "quote": "I live in Braga now"}]}, NUTS),
        {"operations": json.dumps([BRAGA, NUTS])},
        {"operations": [json.dumps(BRAGA), NUTS]},
        AIMessage(json.dumps([BRAGA, NUTS])),
        {"ProposalAnswer": operations(BRAGA, NUTS)},
        {"name": "ProposalAnswer", "arguments": TEXT},
        {"Operations": [{key.upper(): value for key, value in BRAGA.items()}, NUTS]},
        called_with(operations(BRAGA), operations(NUTS)),
        called_with(BRAGA, NUTS),
        AIMessage(f'<think>{{"operations": []}} or rather</think>Here you are:\n```json\n{TEXT}\n```\nAnything else?'),
        AIMessage(f'I first thought {{"operations": []}} </think> {TEXT}'),
        AIMessage(
            f"<think>{json.dumps(operations(BRAGA, NUTS, BRAGA | {'content': 'Ann lives in Porto.'}))}</think>{TEXT}"
        ),
        AIMessage(f'No change would be {{"operations": []}}. But: {TEXT}'),
        AIMessage(
            TEXT.replace('}]}, {"action"', '},],}, {"action"').replace('"action": "CREATE"', "'action': 'CREATE'")
        ),
        AIMessage(TEXT[:-1] + ", // that is all\n}"),
        AIMessage(
            "", invalid_tool_calls=[{"name": "ProposalAnswer", "args": TEXT[:-2] + ",]}", "id": "1", "error": None}]
        ),
    ],
)
def test_an_answer_says_the_same_in_whatever_form(answer: Any) -> None:
    """Each of these forms, all of them common, once cost the whole answer."""
    proposal, model = proposed(task(*TALK), answer)

    assert contents(proposal) == ["Ann lives in Braga.", "Ann is allergic to nuts."]
    first, second = (change.memory for change in proposal.changes)
    assert (first.importance, second.importance) == (0.8, 0.5)
    assert (first.canonical_topic, first.slot_value, first.category) == ("ann:lives_in", "Braga", "fact")
    assert (proposal.failure, proposal.notes, len(model.calls)) == ("", (), 1)


@pytest.mark.requirement("C9")
def test_any_number_of_operations_and_of_parallel_calls_counts_in_order() -> None:
    """Of five calls at once, one was kept; of 41 operations, none."""
    many = [BRAGA | {"content": f"Ann lives in Braga{' indeed' * number}.", "slot": ""} for number in range(41)]

    one, _ = proposed(task(*TALK), operations(*many))
    five, _ = proposed(task(*TALK), called_with(*(operations(each) for each in many[:5])))

    assert contents(one) == [each["content"] for each in many]
    assert contents(five) == [each["content"] for each in many[:5]]


@pytest.mark.requirement("C9", "X3")
@pytest.mark.parametrize(
    ("field", "value", "note"),
    [
        ("category", "plan", "category 'plan' read as 'decision'"),
        ("category", "whatever", "category 'whatever' read as 'fact'"),
        ("importance", "a lot", "dropped importance"),
        ("importance", 800, "dropped importance"),
        ("valid_from", "last spring", "'last spring' is no ISO date; dropped"),
        ("valid_from", "2025-03-04" * 9, "dropped valid_from"),
        ("many", "perhaps", "dropped many"),
        ("slot", "x" * 99, "dropped slot"),
        ("slot", "tea\x00", "dropped slot"),
        ("id", ["m7"], "a new memory has none"),
    ],
)
def test_an_optional_field_that_cannot_be_read_is_dropped_and_told(field: str, value: Any, note: str) -> None:
    """A slip in a detail must not cost the statement, nor vanish."""
    proposal, model = proposed(task(*TALK), operations(BRAGA | {field: value}))

    assert contents(proposal) == ["Ann lives in Braga."]
    assert len(model.calls) == 1
    assert any(note in each for each in proposal.notes)


@pytest.mark.requirement("C9")
@pytest.mark.parametrize(
    ("written", "begins"),
    [("2020", (2020, 1, 1)), ("2026-04", (2026, 4, 1)), ("2026/04", (2026, 4, 1)), ("2026-04-05", (2026, 4, 5))],
)
def test_a_reduced_iso_date_is_a_date(written: str, begins: tuple[int, int, int]) -> None:
    """ISO 8601 has years and months; a model that knows no day should not make one up."""
    proposal, _ = proposed(task(*TALK), operations(BRAGA | {"valid_from": written}))

    assert proposal.changes[0].memory.valid_from == datetime(*begins, tzinfo=UTC)
    assert proposal.notes == ()


@pytest.mark.requirement("C9", "X5", "X6")
def test_all_faults_are_told_at_once_and_the_repair_amends_what_is_sound() -> None:
    """A model that hears of one fault at a time gives up on the second; one that answers again whole loses what was good."""
    unknown = {"action": "DELETE", "id": "m9", "evidence": BRAGA["evidence"]}
    unread = {"action": "MERGE", "content": "x", "evidence": BRAGA["evidence"]}
    mended = SPY | {"content": "Ann moved on 1 June.", "evidence": [{"n": 1, "quote": "I moved on 1 June"}]}

    proposal, model = proposed(task(*TALK), operations(BRAGA, SPY, unknown, unread, NUTS), operations(mended))

    told = model.calls[1].messages[-1].text
    assert "the words 'I am a spy' do not stand in message 1" in told
    assert "unknown memory id 'm9'" in told
    assert "MERGE" in told
    assert "Ann lives in Braga" not in told
    assert contents(proposal) == ["Ann lives in Braga.", "Ann is allergic to nuts.", "Ann moved on 1 June."]
    assert proposal.failure == ""
    assert len([note for note in proposal.notes if "not given again" in note]) == 3  # two of them were left out


@pytest.mark.requirement("X3", "X5", "X6")
@pytest.mark.parametrize("second", [operations(SPY), AIMessage("I cannot."), RuntimeError("503")])
def test_what_never_becomes_valid_fails_alone(second: Any) -> None:
    """The sound ones are kept; what is wrong with the rest is seen, whatever comes of the repair."""
    proposal, _ = proposed(task(*TALK), operations(BRAGA, SPY), second)

    assert contents(proposal) == ["Ann lives in Braga."]
    assert proposal.failure


@pytest.mark.requirement("C9")
def test_a_repair_shows_the_last_answer_whole_and_readable() -> None:
    """Escapes and a cut at 4,000 characters hid twelve of fifteen Chinese operations from the model that should mend them."""
    many = [NUTS | {"content": f"阿静第{number}次说她对坚果过敏，任何坚果都不能吃。"} for number in range(200)]

    _, model = proposed(task(*TALK, language="zh"), operations(*many, SPY), operations())

    shown = model.calls[1].messages[-2].text
    assert all(each["content"] in shown for each in many)
    assert "Ann is a spy." in shown
    assert "没有出现" in model.calls[1].messages[-1].text


@pytest.mark.requirement("C9", "X3")
def test_an_answer_that_breaks_off_counts_as_far_as_it_goes() -> None:
    """The last operation was cut within its words: those it does not take for a statement; the rest is asked for."""
    cut = TEXT[: TEXT.index("nuts") + 2]

    proposal, model = proposed(task(*TALK), AIMessage(cut), operations(NUTS))

    assert "broke off" in model.calls[1].messages[-1].text
    assert contents(proposal) == ["Ann lives in Braga.", "Ann is allergic to nuts."]


@pytest.mark.requirement("C9")
def test_what_is_repeated_in_a_repair_is_one_memory() -> None:
    """Weak models answer whole however they are asked."""
    proposal, _ = proposed(task(*TALK), operations(BRAGA, SPY), operations(BRAGA, NUTS, BRAGA))

    assert contents(proposal) == ["Ann lives in Braga.", "Ann is allergic to nuts."]


PORTO = known("Ann lives in Porto.", canonical_topic="ann:lives_in", slot_value="Porto")
HOUSE = known("Ann's house is in Porto.", memory_id="k2")
COFFEE = known("Ann drinks black coffee.", memory_id="k3", valid_from=NOON - timedelta(days=200))
KETO = known("Ann keeps to a keto diet.", memory_id="k4")


def after(proposal: Proposal) -> dict[str, Memory]:
    return {change.memory.memory_id: change.memory for change in proposal.changes}


@pytest.mark.requirement("R8", "K4")
def test_one_operation_replaces_several_and_several_replace_one() -> None:
    """Two that say the same merge into the new one; a compound one is parted."""
    both = BRAGA | {"action": "SUPERSEDE", "id": ["m1", "m2"]}
    parted = NUTS | {"action": "SUPERSEDE", "id": "m1, m2", "content": "Ann has no house in Porto."}

    proposal, _ = proposed(task(*TALK, similar=[PORTO, HOUSE]), operations(both, parted))

    memories = after(proposal)
    first, second = (each for each in memories.values() if each.version == 1)
    assert (memories["k1"].status, memories["k2"].status) == ("superseded", "superseded")
    assert memories["k1"].valid_to == first.said_at
    assert (first.supersedes, second.supersedes) == (("k1", "k2"), ("k1", "k2"))
    assert [change.action for change in proposal.changes] == ["create", "supersede", "supersede", "create"]


@pytest.mark.requirement("R8", "K4", "G7")
@pytest.mark.parametrize("content", ["Ann drinks tea.", ""])
def test_what_is_corrected_never_was_true(content: str) -> None:
    """To say that it held until now would be a second error; the journal tells the correction from a change."""
    correct = {
        "action": "CORRECT",
        "id": "m1",
        "content": content,
        "evidence": [{"n": 3, "quote": "I never drank black coffee"}],
    }
    proposal, _ = proposed(task(*TALK, similar=[COFFEE]), operations(correct))

    old = after(proposal)["k3"]
    assert old.status == "superseded"
    assert [change.action for change in proposal.changes if change.memory.memory_id == "k3"] == ["correct"]
    assert not any(old.held_at(NOON + timedelta(days=days)) for days in (-250, -200, -100, 0, 10))
    assert contents(proposal)[:1] == ([content] if content else [old.content])


@pytest.mark.requirement("R8", "K4")
def test_what_is_over_held_until_then() -> None:
    """An end has no successor: it stays, as history, and says until when."""
    end = {"action": "END", "id": "m1", "evidence": [{"n": 3, "quote": "The keto diet is over"}]}

    (now,) = after(proposed(task(*TALK, similar=[KETO]), operations(end))[0]).values()
    (told,) = after(proposed(task(*TALK, similar=[KETO]), operations(end | {"valid_to": "2025-02"}))[0]).values()

    assert (now.status, now.content, now.valid_to) == ("active", KETO.content, NOON + timedelta(seconds=3))
    assert now.held_at(NOON - timedelta(days=30))
    assert not now.held_at(NOON + timedelta(days=1))
    assert (told.content, told.valid_to) == (KETO.content, datetime(2025, 2, 1, tzinfo=UTC))


@pytest.mark.requirement("R8")
def test_each_memory_is_shown_with_its_slot_and_its_end() -> None:
    """An attribute that gets another name each month is another slot each month."""
    ended = KETO.evolve(valid_to=NOON - timedelta(days=3), canonical_topic="ann:diet")

    _, model = proposed(task(*TALK, similar=[PORTO, ended]), operations())

    assert 'm1 [2024-12-04, ann:lives_in = Porto] "Ann lives in Porto."' in model.calls[0].text
    assert 'm2 [2024-12-04, until 2025-03-01, ann:diet] "Ann keeps to a keto diet."' in model.calls[0].text


@pytest.mark.requirement("R8")
@pytest.mark.parametrize(
    ("fields", "slot"),
    [
        ({"slot": "lives in"}, "ann:lives_in"),
        ({"slot": "Lives-In", "whose": "Bob"}, "bob:lives_in"),
        ({"slot": "Bob:lives_in"}, "bob:lives_in"),
        ({"slot": "lives_in", "whose": "user"}, "ann:lives_in"),
        ({"slot": "", "whose": "Bob"}, ""),
        ({"slot": "bob:"}, ""),
    ],
)
def test_a_slot_is_whose_it_says_else_the_topics(fields: dict[str, str], slot: str) -> None:
    """Code reads the form of a slot, and never its words."""
    proposal, _ = proposed(task(*TALK), operations(BRAGA | fields | {"many": True}))

    memory = proposal.changes[0].memory
    assert (memory.canonical_topic, memory.slot_many) == (slot, True)


@pytest.mark.requirement("R8")
@pytest.mark.parametrize("name", ["m1", "M1", 1, "1", ["m1"], "m1: Ann lives in Porto.", "lives_in"], ids=repr)
def test_a_memory_is_named_in_any_way_that_means_it_alone(name: Any) -> None:
    """Some models write the number, some the slot."""
    supersede = BRAGA | {"action": "SUPERSEDE", "id": name, "slot": ""}

    proposal, _ = proposed(task(*TALK, similar=[PORTO, HOUSE]), operations(supersede), repairs=0)

    new = next(each for each in after(proposal).values() if each.version == 1)
    assert new.supersedes == ("k1",)
    assert (new.canonical_topic, new.slot_value) == ("ann:lives_in", "Braga")  # it takes its place, slot and all


@pytest.mark.requirement("R8", "X6")
def test_two_decisions_about_one_memory_are_sent_back() -> None:
    """Which of them is meant, code cannot know; a mere "said again" beside a change is no second decision."""
    end = {"action": "END", "id": "m1", "evidence": BRAGA["evidence"]}
    supersede = BRAGA | {"action": "SUPERSEDE", "id": "m1"}
    again = {"action": "CORROBORATE", "id": ["m1", "m2"], "evidence": BRAGA["evidence"]}
    asked = task(*TALK, similar=[PORTO, HOUSE])

    proposal, _ = proposed(asked, operations(supersede, end), repairs=0)
    mild, _ = proposed(asked, operations(again, supersede), repairs=0)
    meek, _ = proposed(asked, operations(supersede, again), repairs=0)

    assert "has an operation already" in proposal.failure
    assert [change.action for change in proposal.changes] == ["create", "supersede"]
    for each in (mild, meek):
        assert each.failure == ""
        assert {(memory.memory_id, memory.status) for memory in after(each).values() if memory.version > 1} == {
            ("k1", "superseded"),
            ("k2", "active"),
        }


@pytest.mark.requirement("R8", "X3")
def test_what_the_agent_alone_said_again_is_not_corroborated_and_that_is_told() -> None:
    """It may be repeating what it recalled; that nothing came of the operation was seen nowhere."""
    again = {"action": "CORROBORATE", "id": "m1", "evidence": [{"n": 2, "quote": "you live in Braga"}]}

    proposal, _ = proposed(task(*TALK, similar=[PORTO]), operations(again))

    assert proposal.changes == ()
    assert proposal.notes == ("not corroborated, nobody but the agent said it again: 'Ann lives in Porto.'",)


@pytest.mark.requirement("R8")
def test_a_new_memory_in_the_words_of_a_listed_one_corroborates_it() -> None:
    """The same words are the same statement, whatever the model calls it; on a retry, they stand there already."""
    proposal, _ = proposed(task(*TALK, similar=[PORTO]), operations(BRAGA | {"content": "ann lives in porto"}))

    assert [(change.action, change.memory.memory_id) for change in proposal.changes] == [("corroborate", "k1")]


@pytest.mark.requirement("C9", "X6")
def test_a_quote_under_a_wrong_number_counts_where_it_stands_alone() -> None:
    """The words decide; a few that stand in several messages decide nothing."""
    wrong = NUTS | {"evidence": [{"n": 2, "quote": "I'm allergic to nuts"}]}
    vague = BRAGA | {"evidence": [{"n": 3, "quote": "live in Braga"}]}

    proposal, _ = proposed(task(*TALK), operations(wrong, vague), repairs=0)

    (memory,) = after(proposal).values()
    assert memory.evidence[0].message_id == "w1"
    assert "do not stand in message 3" in proposal.failure
    assert any("stand in message 1, not 2" in note for note in proposal.notes)


WITH_TOOL = (
    message(1, text="What is it in **June**? Say it\nshortly, on 12 May", name="Ann"),
    message(2, role="assistant", text="", calls=[{"name": "fare", "args": {"day": "2025-06-01"}}]),
    message(3, role="tool", name="fare", text='{"fare": 114}\nok', tool_call_id=""),
)


@pytest.mark.requirement("C9", "X6")
@pytest.mark.parametrize(
    ("n", "quote", "words"),
    [
        (1, '1 Ann (user): "What is it in June?', "What is it in **June"),
        (1, "Ann (user): What is it", "What is it"),
        (1, 'Say it\\nshortly, on 12 May" (on 12 May = 2025-05-12)', "Say it\nshortly, on 12 May"),
        (2, 'fare({"day": "2025-06-01"})', '{"fare": 114}'),
        (3, '3 fare (tool): "{"fare": 114}', '{"fare": 114'),
    ],
)
def test_what_our_own_rendering_puts_around_the_words_may_be_copied_along(n: int, quote: str, words: str) -> None:
    """The prompt prints number, speaker, dates and calls; a model cannot know which of it is a message's own."""
    proposal, _ = proposed(task(*WITH_TOOL), operations(NUTS | {"evidence": [{"n": n, "quote": quote}]}), repairs=0)

    assert proposal.failure == ""
    assert proposal.changes[0].memory.evidence[0].quote == words


@pytest.mark.requirement("X6")
@pytest.mark.parametrize(
    ("n", "quote"),
    [
        (1, "(on 12 May = 2025-05-12)"),
        (1, "Bob (user): What is it"),
        (1, "Ann (user):"),
        (1, "12 May = 2025-05-13"),
        (2, 'fare({"day": "2025-06-02"})'),
    ],
)
def test_what_our_rendering_says_alone_is_nobodys_words(n: int, quote: str) -> None:
    """A date that we worked out, a speaker, a call that was never made: none of it bears anything out."""
    proposal, _ = proposed(task(*WITH_TOOL), operations(NUTS | {"evidence": [{"n": n, "quote": quote}]}), repairs=0)

    assert proposal.changes == ()
    assert "do not stand" in proposal.failure
    assert "fare" not in proposal.failure or n == 2


@pytest.mark.requirement("R8", "R11", "X12")
def test_a_second_attempt_sees_the_first_and_amends_it() -> None:
    """An objection once cost what was good: the first attempt was hidden, and the second took its place."""
    first, _ = proposed(task(*TALK, similar=[KETO]), operations(BRAGA, NUTS, SPY | {"evidence": BRAGA["evidence"]}))
    again = task(*TALK, similar=[KETO], attempt=2, reasons=("omission: the diet is over",), last=first.operations)
    end = {"action": "END", "id": "m1", "evidence": [{"n": 3, "quote": "The keto diet is over"}]}
    nuts = {"action": "REFINE", "id": "o2", "content": "Ann is allergic to all nuts.", "evidence": NUTS["evidence"]}

    second, model = proposed(again, operations({"action": "DELETE", "id": "o3"}, nuts, end))
    broken, _ = proposed(again, AIMessage("no"), repairs=0)

    assert 'o1 CREATE "Ann lives in Braga."' in model.calls[0].text
    assert contents(second) == ["Ann lives in Braga.", "Ann is allergic to all nuts.", KETO.content]
    assert second.failure == ""
    assert contents(broken) == contents(first)
    assert broken.failure


@pytest.mark.requirement("R8")
def test_what_is_said_of_an_end_takes_the_place_of_what_ended() -> None:
    """Written over the old words, "no longer keeps to keto, until March" would say that she keeps to it again."""
    told = {"content": "Ann no longer keeps to keto.", "valid_to": "2025-03-04"}
    end = {"action": "END", "id": "m1", "evidence": [{"n": 3, "quote": "The keto diet is over"}]}
    proposal, _ = proposed(task(*TALK, similar=[KETO]), operations(end | told))

    now, old = (change.memory for change in proposal.changes)
    assert (now.content, now.valid_to, now.live) == ("Ann no longer keeps to keto.", None, True)
    assert (old.content, old.status, old.valid_to) == (KETO.content, "superseded", now.valid_from)


def kit_with(home: Path, *answers: Any, **policy: Any) -> MemoryKit:
    return open_kit(
        home, {"DigestAnswer": digest("personal:Ann"), "ProposalAnswer": list(answers)}, reviser="rules", **policy
    )


HIKES = create("Ann loves hiking.", 1, "I love hiking")
SPIES = create("Ann is a spy.", 1, "I am a spy")


@pytest.mark.requirement("X3", "X5", "X6", "R8")
def test_a_topic_that_failed_in_part_keeps_its_good_part_and_a_retry_is_shown_the_failure(tmp_path: Path) -> None:
    """What is sound is committed at once; the rest waits, visibly, and the model is told what was wrong with it."""
    sailed = create("Ann went sailing.", 1, "I went sailing")
    with kit_with(tmp_path, proposal(HIKES, SPIES), proposal(SPIES), proposal(HIKES, sailed)) as kit:
        kit.add_messages([said("I love hiking. I went sailing.")], scope=ANN)
        report = kit.summarize(scope=ANN, close=True)
        (work,) = report.work
        before = [memory.content for memory in kit.memories(scope=ANN)]

        again = kit.work.retry(scope=ANN)

        assert before == ["Ann loves hiking."]
        assert (work.topic, work.state) == ("personal:Ann", "failed")
        assert "the words 'I am a spy' do not stand in message 1" in work.reason
        assert "the words 'I am a spy' do not stand in message 1" in model_of(kit).calls[-1].text
        assert sorted(memory.content for memory in kit.memories(scope=ANN)) == [
            "Ann loves hiking.",
            "Ann went sailing.",
        ]
        assert again.work == ()


@pytest.mark.requirement("X3")
def test_what_was_read_otherwise_stands_in_the_report(tmp_path: Path) -> None:
    """Nothing that a model wrote is dropped in silence."""
    with kit_with(tmp_path, proposal(HIKES | {"category": "hobby", "valid_from": "spring"})) as kit:
        kit.add_messages([said("I love hiking.")], scope=ANN)
        report = kit.summarize(scope=ANN, close=True)

    assert report.notes == (
        "personal:Ann: 'spring' is no ISO date; dropped",
        "personal:Ann: CREATE \"Ann loves hiking.\": category 'hobby' read as 'fact'",
    )


@pytest.mark.requirement("R8", "K4", "K5", "G7")
def test_what_was_corrected_or_is_over_is_no_longer_given_as_current(tmp_path: Path) -> None:
    """History tells both: one held until a day, the other never."""
    first = proposal(create("Ann keeps to keto.", 1, "I do keto"), create("Ann owns a dog.", 1, "I own a dog"))
    end = change("END", "m1", 1, "keto is over", valid_to="2025-03-04T20:00")
    correct = change("CORRECT", "m2", 1, "a cat, not a dog", content="Ann owns a cat.")

    def answer(call: ModelCall) -> dict[str, Any]:
        keto = "m1" if call.text.index("keeps to keto") < call.text.index("owns a dog") else "m2"
        return proposal(end | {"id": keto}, correct | {"id": "m2" if keto == "m1" else "m1"})

    with kit_with(tmp_path, first, answer) as kit:
        kit.add_messages([said("I do keto. I own a dog.")], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        kit.add_messages([said("The keto is over. And it is a cat, not a dog, I own.", minutes=600)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        clock_of(kit).move(timedelta(days=30))

        memories = {memory.content: memory for memory in kit.memories(scope=ANN, statuses=("active", "superseded"))}
        then_true = RecallFilter(true_at=NOON + timedelta(hours=1))
        context = kit.recall("keto dog cat", scope=ANN, depth="memories").context
        then = {hit.text for hit in kit.recall("keto dog", scope=ANN, only=then_true).memories}
        told = kit.trace(memories["Ann owns a dog."].memory_id, scope=ANN)

    assert (memories["Ann owns a dog."].corrected, memories["Ann keeps to keto."].corrected) == (True, False)
    assert ", expired 2025-03-04] Ann keeps to keto." in context
    assert "owns a dog" not in context
    assert "Ann keeps to keto." in then
    assert "Ann owns a dog." not in then
    assert [event.action for event in told.events][-1] == "correct"


@pytest.mark.requirement("F9", "X3")
def test_what_knowledge_says_already_in_its_slot_is_not_learned_again_and_that_is_told() -> None:
    """The same value of the same slot is the same statement, in whatever words."""
    handbook = PORTO.evolve(usage="knowledge")
    home = BRAGA | {"content": "Ann has her home in Porto.", "value": "porto"}

    proposal, _ = proposed(task(*TALK, similar=[handbook]), operations(home))
    other, _ = proposed(task(*TALK, similar=[handbook]), operations(BRAGA))

    assert proposal.changes == ()
    assert "known already" in proposal.notes[0]
    assert [link.type for link in other.links] == ["may_contradict"]
