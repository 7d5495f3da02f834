"""recall_similar_memory: what a writer is shown of its topic, and what it may settle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from remegraph import MemoryKit, Settings, SummaryPolicy
from remegraph.engine.retrieval.search import Similar
from remegraph.errors import VectorIndexError
from remegraph.kit import OpenOptions
from remegraph.models import ChangeSet, Memory, MemoryChange, Message, Shelf, Topic
from remegraph.testing import FrozenClock, InMemoryVectorIndex, ModelCall, SequentialIds
from tests.talk import ANN, NOON, create, digest, model_of, open_kit, proposal, said

pytestmark = pytest.mark.requirement("R8")

HERE = Shelf(partition=ANN.partition(), topic=Topic(type="personal", target_name="Ann"))
NOTHING_WRONG: dict[str, Any] = {"objections": []}
SUBJECTS = "kettle ladder violin garden window carpet bottle ticket mirror pencil blanket helmet basket".split()
VERBS = ("painted the", "sold a", "borrowed the", "repaired her", "lost a", "found the", "washed her", "hid the")
MOODS = ("on a rainy morning", "with great care", "after a long walk", "before her lunch", "without any help")


CHAT = said(
    "Today it was all about the " + ", the ".join(SUBJECTS) + " on a rainy morning, and a long walk.", minutes=9
)
"""What shares some word with every filler: to match is nothing, to match well is all."""


def filler(count: int) -> list[str]:
    """Statements that share next to nothing with each other."""
    return [
        f"Ann {VERBS[n % len(VERBS)]} {SUBJECTS[n % len(SUBJECTS)]} {MOODS[n % len(MOODS)]}, item {n}."
        for n in range(count)
    ]


def store(
    kit: MemoryKit,
    statements: Sequence[str],
    fields: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    shelf: Shelf = HERE,
) -> None:
    """Write memories that were learned one after another, a minute apart; fields by statement."""
    made = [
        Memory(
            memory_id=f"{len(statements) - number:04}-{shelf.topic.key}",  # the order of ids is not that of learning
            partition=shelf.partition,
            topic=shelf.topic,
            content=content,
            kind="profile",
            said_at=NOON + timedelta(days=number),
            recorded_at=NOON,
            extractor="test",
            **(fields or {}).get(content, {}),
        )
        for number, content in enumerate(statements)
    ]
    kit.context.parts().archive.commit(
        ChangeSet(
            operation_id=shelf.topic.key,
            actor="test",
            recorded_at=NOON,
            changes=tuple(MemoryChange(memory=memory, expected_version=0, action="create") for memory in made),
        )
    )


def shown(kit: MemoryKit, *messages: Message, tokens: int = 4000) -> Similar:
    """What a writer of Ann's topic is shown for some messages."""
    return kit.context.parts().searcher.similar(HERE, messages, tokens)


def contents(found: Similar) -> list[str]:
    return [memory.content for memory in found.memories]


@pytest.mark.requirement("X12")
def test_a_topic_within_the_budget_is_shown_whole_in_the_order_of_learning(tmp_path: Path) -> None:
    """A writer changes what it sees; in an order that holds, a provider's prompt cache holds too."""
    told = filler(40)
    with open_kit(tmp_path) as kit:
        store(kit, told)

        assert contents(shown(kit, said("I moved to Braga."))) == told
        assert contents(shown(kit, said("Something about the violin and the kettle."))) == told


@pytest.mark.requirement("X12")
def test_of_163_memories_those_that_a_block_changes_are_shown(tmp_path: Path) -> None:
    """Eight of 163 hid three homes, three jobs and two classes; an update needs the id of what it updates."""
    old = [
        "Ann lives in Porto.",
        "Ann teaches chess every Tuesday evening.",
        "Ann spends 200 euros a month on groceries.",
    ]
    told = [*old[:1], *filler(80), *old[1:2], *filler(160)[80:], *old[2:]]
    told = told[:-1][:162] + told[-1:]
    fields = {
        old[0]: {"canonical_topic": "ann:lives_in", "slot_value": "Porto"},
        old[1]: {"canonical_topic": "ann:chess_class", "slot_value": "Tuesday"},
    }
    block = (
        said("Have I told you where I live? In Braga now, since June."),
        said("The chess is on Thursdays from now on.", minutes=1),
        said("And groceries are 250 euros these days.", minutes=2),
        CHAT,
    )
    with open_kit(tmp_path) as kit:
        store(kit, told, fields)
        found = shown(kit, *block, tokens=1000)

        assert len(told) == 163 > 4 * len(found.memories)
        assert {*old} <= {*contents(found)}


def test_likeness_decides_what_is_shown_of_a_large_topic(tmp_path: Path) -> None:
    """Neither the order of ids nor age alone finds what a block is about, wherever it stands."""
    needles = ["Ann keeps bees.", "Ann plays the oboe.", "Ann owns a sailing boat."]
    told = filler(300)
    for place, needle in zip((20, 150, 230), needles, strict=True):
        told.insert(place, needle)
    with open_kit(tmp_path) as kit:
        store(kit, told)
        for needle in needles:
            found = contents(shown(kit, said(needle.replace("Ann", "I")), CHAT, tokens=500))
            assert needle in found
            assert {*needles} & {*found} == {needle}
            assert told[-1] in found  # the newest come along


class Meanings:
    """An embedder that knows one thing: what has to do with homes."""

    name, dimension, semantic = "meanings", 2, True

    def embed(self, texts: Sequence[str]) -> Any:
        homes = [any(word in text for word in ("Porto", "Braga", "flat")) for text in texts]
        return np.array([(1.0, 0.0) if home else (0.0, 1.0) for home in homes], dtype=np.float32)


@pytest.fixture
def meaning(tmp_path: Path) -> Any:
    """A kit whose embedder knows meaning."""
    settings = Settings(home=tmp_path, summary=SummaryPolicy(backoff=0))
    with MemoryKit.open(
        settings=settings,
        embedder=Meanings(),
        index=InMemoryVectorIndex(),
        clock=FrozenClock(NOON),
        options=OpenOptions(new_id=SequentialIds()),
    ) as kit:
        yield kit


def test_what_shares_no_word_is_shown_by_its_meaning(meaning: MemoryKit) -> None:
    """A flat in Braga shares no word with "Porto is home"; only vectors bring them together."""
    told = ["Porto is home.", *filler(200)]
    store(meaning, told)
    meaning.context.parts().projection.sync()

    assert told[0] in contents(shown(meaning, said("We took a flat in Braga."), tokens=500))


def test_a_broken_index_costs_meaning_and_no_write(meaning: MemoryKit, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was said can still be learned from; words find the rest."""
    store(meaning, ["Ann keeps bees.", *filler(200)])

    def broken(*_: object, **__: object) -> Any:
        raise VectorIndexError("The index is broken.")

    monkeypatch.setattr(type(meaning.context.parts().projection), "nearest", broken)
    assert "Ann keeps bees." in contents(shown(meaning, said("I have no bees any more."), tokens=500))


def test_a_slot_that_is_named_brings_its_memory(tmp_path: Path) -> None:
    """The value says nothing of the attribute: "Hannah's is 42" is found by the name of its slot."""
    told = ["Ann's is 42.", *filler(200)]
    with open_kit(tmp_path) as kit:
        store(kit, told, {told[0]: {"canonical_topic": "ann:shoe_size", "slot_value": "42"}})

        assert told[0] in contents(shown(kit, said("My shoe size is different now."), tokens=400))


def test_what_other_topics_hold_is_known_beside(tmp_path: Path) -> None:
    """A style of answer stood under the person and under the agent itself, written twice."""
    itself = Shelf(partition=ANN.partition(), topic=Topic(type="self", target_name="self"))
    with open_kit(tmp_path) as kit:
        store(kit, filler(3))
        store(kit, ["Remy answers in three sentences."], shelf=itself)
        found = shown(kit, said("Answer in three sentences, please."))

        assert [memory.content for memory in found.beside] == ["Remy answers in three sentences."]
        assert "Remy answers in three sentences." not in contents(found)


def pair(kit: MemoryKit) -> None:
    """Two homes in one slot, long ago."""
    homes = ["Ann lives in Porto.", "Ann lives in Braga."]
    slot = {"canonical_topic": "ann:lives_in"}
    store(kit, [homes[0], *filler(30), homes[1]], dict.fromkeys(homes, slot))


@pytest.mark.parametrize(
    ("operations", "left"),
    [
        ([{"action": "SUPERSEDE", "id": "Porto"}], {"Braga"}),
        ([{"action": "CORRECT", "id": "Porto"}], {"Braga"}),
        ([{"action": "SUPERSEDE", "id": ["Porto", "Braga"]}], {"Braga"}),
        ([{"action": "CORROBORATE", "id": ["Porto", "Braga"], "many": True}], {"Porto", "Braga"}),
        ([{"action": "END", "id": "Porto"}], {"Porto", "Braga"}),
    ],
)
def test_a_slot_held_twice_is_settled_at_the_next_write_without_todays_words(
    tmp_path: Path, operations: list[dict[str, Any]], left: set[str]
) -> None:
    """A warning that nobody reads settles nothing, and no block of today quotes what was said in spring."""
    asked: list[str] = []

    def settling(call: ModelCall) -> Any:
        asked.append(call.text)
        names = {home: line.split()[0] for line in call.text.split("\n") for home in ("Porto", "Braga") if home in line}
        ids = [[each["id"]] if isinstance(each["id"], str) else each["id"] for each in operations]
        told = [{**each, "id": [names[name] for name in some]} for each, some in zip(operations, ids, strict=True)]
        return proposal(create("Ann loves hiking.", 1, "I love hiking"), *told)

    steps = {"DigestAnswer": digest("personal:Ann"), "ProposalAnswer": settling, "VerdictAnswer": NOTHING_WRONG}
    with open_kit(tmp_path, steps, reviser="rules", similar_tokens=300, repairs=0) as kit:
        pair(kit)
        kit.add_messages([said("I love hiking in the hills.")], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        live = [memory for memory in kit.memories(scope=ANN) if memory.live]
        assert {home for home in ("Porto", "Braga") for memory in live if home in memory.content} == left
        assert "Ann loves hiking." in {memory.content for memory in live}
        assert "stand in one slot" in asked[0]
        assert kit.work.list(scope=ANN, states=["failed", "review", "pending"]) == ()
        assert shown(kit, said("Hello there.")).pairs == ()  # it is asked once


@pytest.mark.parametrize("reviser", ["rules", "auto"])
def test_an_old_pair_keeps_no_block_in_review(tmp_path: Path, reviser: str) -> None:
    """A model that says nothing of it has other things to do; the next write asks again."""
    steps = {
        "DigestAnswer": digest("personal:Ann"),
        "ProposalAnswer": proposal(create("Ann loves hiking.", 1, "I love hiking")),
        "VerdictAnswer": NOTHING_WRONG,
    }
    with open_kit(tmp_path, steps, reviser=reviser) as kit:
        pair(kit)
        kit.add_messages([said("I love hiking in the hills.")], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert kit.work.list(scope=ANN, states=["failed", "review", "pending"]) == ()
        assert len(shown(kit, said("Hello.")).pairs) == 1


def test_nothing_new_is_said_without_words_of_the_block(tmp_path: Path) -> None:
    """Settling a pair is no door for statements that nobody made."""
    told = {"action": "SUPERSEDE", "id": ["m1", "m2"], "content": "Ann lives on the moon."}
    other = {"action": "REFINE", "id": ["m1"], "content": "Ann lives on the moon."}
    steps = {"DigestAnswer": digest("personal:Ann"), "ProposalAnswer": proposal(told, other)}
    with open_kit(tmp_path, steps | {"VerdictAnswer": NOTHING_WRONG}, reviser="rules", repairs=0) as kit:
        homes = ["Ann lives in Porto.", "Ann lives in Braga."]
        store(kit, homes, {home: {"canonical_topic": "ann:lives_in"} for home in homes})
        kit.add_messages([said("I love hiking in the hills.")], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert not any("moon" in memory.content for memory in kit.memories(scope=ANN))


def test_an_answer_is_shown_with_the_question_before_the_block(tmp_path: Path) -> None:
    """What answers ("No, they want me eating it") means nothing where the cut falls before it."""
    steps = {
        "DigestAnswer": digest("personal:Ann"),
        "ProposalAnswer": proposal(),
        "VerdictAnswer": NOTHING_WRONG,
    }
    with open_kit(tmp_path, steps, reviser="rules") as kit:
        kit.add_messages([said("I like walks in the forest. Should I plan around gluten meanwhile?")], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        kit.add_messages([said("No, they want me eating it till the test in spring.", minutes=1)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        first, *_, second = (call.text for call in model_of(kit).calls if call.schema == "ProposalAnswer")
        assert "Said right before" not in first
        assert "Should I plan around gluten meanwhile?" in second.partition("Said right before")[2]


def test_what_stands_before_is_whole_messages_within_its_budget(tmp_path: Path) -> None:
    """Half a message misleads, and a long one costs more than it tells."""
    steps = {"DigestAnswer": digest("personal:Ann"), "ProposalAnswer": proposal(), "VerdictAnswer": NOTHING_WRONG}
    with open_kit(tmp_path, steps, reviser="rules", before_tokens=20) as kit:
        kit.add_messages([said("One thing: " + "words and words " * 20), said("I like tea at noon.")], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        kit.add_messages([said("And I like coffee at nine in the morning.", minutes=1)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        told = model_of(kit).calls[-1].text.partition("Said right before")[2]
        assert "I like tea at noon." in told
        assert "One thing" not in told


def test_two_new_values_of_a_slot_one_of_which_is_known_already_are_committed(tmp_path: Path) -> None:
    """The known one bears its memory out, and is no memory of its own that the other could contradict."""
    words = "I live in Porto, I told you. Well, in Braga on weekdays."
    script = {
        "DigestAnswer": [digest("personal:Ann")] * 2,
        "ProposalAnswer": [
            proposal(create("Ann lives in Porto.", 1, "I live in Porto", slot="lives_in", value="Porto")),
            proposal(
                create("Ann's home is Porto.", 1, "I live in Porto", slot="lives_in", value="Porto"),
                create("Ann lives in Braga on weekdays.", 1, "in Braga on weekdays", slot="lives_in", value="Braga"),
            ),
        ],
    }
    with open_kit(tmp_path, script) as kit:
        for at, text in enumerate(("I live in Porto, not in Lisbon.", words)):
            kit.add_messages([said(text, minutes=60 * at, thread=f"t{at}")], scope=ANN)
            kit.summarize(scope=ANN, close=True)
        assert kit.work.list(scope=ANN, states=["pending", "failed"]) == ()
        held = {memory.slot_value: memory for memory in kit.memories(scope=ANN)}
        assert held.keys() == {"Porto", "Braga"}
        assert held["Porto"].content == "Ann lives in Porto."
        assert held["Porto"].merges == 1
