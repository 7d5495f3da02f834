"""Requests in talk: from the moment they are said until a writer has decided, and what becomes of the words."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from remegraph import MemoryKit, NotFoundError
from remegraph.testing import ModelCall, refusal
from tests.talk import ANN, by_topic, change, clock_of, create, digest, model_of, open_kit, proposal, replied, said

BUDGET = "My grocery budget is 200 euros a month."
KNOWN = create("Ann's grocery budget is 200 euros a month.", 1, BUDGET[:-1])
ASKED = "Please forget my grocery budget."
NOTHING_WRONG: dict[str, Any] = {"objections": []}


def script(*proposals: Any) -> dict[str, Any]:
    """Answers of a model that writes under one topic."""
    return {"VerdictAnswer": NOTHING_WRONG, "DigestAnswer": digest("personal:Ann"), "ProposalAnswer": list(proposals)}


def readable(kit: MemoryKit) -> str:
    """All that a recall shows, at every depth, and the live memories."""
    found = kit.recall("grocery budget euros biopsy mother 4711", scope=ANN, depth="messages")
    live = [memory.content for memory in kit.memories(scope=ANN) if memory.live]
    shown = [message.text for message in kit.messages(scope=ANN)]
    entries = [entry.entry for entry in kit.sources.blocks(scope=ANN)]
    return "\n".join((found.context, *live, *shown, *entries))


def learned(home: Path, *proposals: Any, **policy: Any) -> MemoryKit:
    """A kit that knows of Ann's budget."""
    kit = open_kit(home, script(proposal(KNOWN), *proposals), reviser="rules", **policy)
    kit.add_messages([said(BUDGET)], scope=ANN)
    kit.summarize(scope=ANN, close=True)
    return kit


def test_a_request_to_forget_is_carried_out_with_the_words_it_stands_on(tmp_path: Path) -> None:
    """A delete that leaves the words readable in the raw rows forgets nothing."""
    with learned(tmp_path, proposal(change("DELETE", "w1", 1, "forget my grocery budget"))) as kit:
        assert "200" in readable(kit)
        kit.add_messages([said(ASKED, minutes=600), replied("I let go of your 200 euros.", minutes=601)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert "200" not in readable(kit)
        assert [memory.status for memory in kit.memories(scope=ANN)] == ["deleted"]
        assert kit.work.list(scope=ANN, states=["failed", "review", "pending"]) == ()
        assert not any(message.asked for message in kit.context.parts().archive.asked([ANN.partition()]))


def test_what_the_agent_saved_in_the_very_turn_that_asks_to_forget_it_goes(tmp_path: Path) -> None:
    """It is said a moment after the request, and is no later word of the person."""
    steps = script(proposal(change("DELETE", "m1", 1, "forget my grocery budget")))
    with open_kit(tmp_path, steps, reviser="rules") as kit:
        kit.save("budget", "Ann's grocery budget is 200 euros a month.", scope=ANN)
        kit.add_messages([said(ASKED, minutes=-1), replied("I did save it.", minutes=1)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert "200" not in readable(kit)


def test_words_are_withheld_from_the_moment_a_request_is_said(tmp_path: Path) -> None:
    """Until a model has read the block, a recall must not show what a person has just asked to be gone."""
    with open_kit(tmp_path, script(proposal())) as kit:
        kit.add_messages([said("My mother has a biopsy on Wednesday.")], scope=ANN)
        assert "biopsy" in readable(kit)
        kit.add_messages([said("Please forget that.", minutes=1)], scope=ANN)
        kit.add_messages([replied("Of course, no word of the biopsy.", minutes=2)], scope=ANN)

        assert "biopsy" not in readable(kit)


def test_a_request_that_nobody_learned_of_before_leaves_its_words_withheld(tmp_path: Path) -> None:
    """Nothing is remembered, nothing can be deleted: shown again, the words would say what was to be forgotten."""
    with open_kit(tmp_path, script(proposal()), reviser="rules") as kit:
        kit.add_messages(
            [
                said("My mother has a biopsy on Wednesday."),
                replied("Noted.", minutes=1),
                said("Forget that.", minutes=2),
            ],
            scope=ANN,
        )
        kit.summarize(scope=ANN, close=True)

        assert "biopsy" not in readable(kit)
        held = [message for message in kit.messages(scope=ANN) if message.hidden]
        assert {note.reason for message in held for note in message.withheld} == {"forgotten"}


def test_what_a_writer_makes_a_memory_of_was_no_request_and_is_shown_again(tmp_path: Path) -> None:
    """A flag of code decides nothing: the writer reads the words and takes them as any others."""
    taken = proposal(create("Ann's mother has a biopsy on Wednesday.", 1, "My mother has a biopsy on Wednesday"))
    with open_kit(tmp_path, script(taken), reviser="rules") as kit:
        kit.add_messages([said("My mother has a biopsy on Wednesday."), said("Forget that.", minutes=2)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert "biopsy" in readable(kit)
        assert not any(message.hidden for message in kit.messages(scope=ANN))


def test_a_request_that_a_model_names_is_one_though_memories_are_made_of_what_was_said_around_it(
    tmp_path: Path,
) -> None:
    """A phrase withholds what was said right before, too: what of it is learned does not show the rest again."""
    steps = {
        "DigestAnswer": {**digest("personal:Ann"), "forget": [2]},
        "ProposalAnswer": proposal(
            create("Ann lives in Porto.", 1, "I live in Porto"),
            create("Ann keeps her mother's savings book.", 2, "I keep my mother's savings book"),
        ),
    }
    with open_kit(tmp_path, steps, reviser="rules") as kit:
        words = "I keep my mother's savings book, the code is 4711, stop. Please forget that."
        kit.add_messages([said("I live in Porto."), said(words, minutes=1)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert {memory.content for memory in kit.memories(scope=ANN)} == {
            "Ann lives in Porto.",
            "Ann keeps her mother's savings book.",
        }
        assert "4711" not in readable(kit)
        assert "I live in Porto." in readable(kit)


def test_what_was_learned_of_the_words_is_out_of_sight_while_it_waits_and_comes_back(tmp_path: Path) -> None:
    """Per turn, the memory is there before the request: hiding the raw words alone would show it still."""
    with learned(tmp_path, proposal()) as kit:
        kit.add_messages([said("Please forget that.", minutes=1)], scope=ANN)
        assert "200" not in readable(kit)

        kit.summarize(scope=ANN, close=True)
        assert [memory.status for memory in kit.memories(scope=ANN)] == ["active"]  # the writer left it
        assert "200" in readable(kit)


def test_what_was_out_of_sight_is_forgotten_by_the_writer(tmp_path: Path) -> None:
    """It is shown to the writer under a name of its own, though nobody else sees it."""
    with learned(tmp_path, proposal(change("DELETE", "w1", 1, "forget that"))) as kit:
        kit.add_messages([said("Please forget that.", minutes=1)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert "200" not in readable(kit)
        assert [memory.status for memory in kit.memories(scope=ANN)] == ["deleted"]


def test_a_request_reaches_memories_of_other_topics(tmp_path: Path) -> None:
    """People do not know on which shelf a thing stands, and an operation needs an id."""
    first = {"task:finance": proposal(create("Ann's grocery budget is 200 euros a month.", 1, BUDGET[:-1]))}
    steps = {
        "VerdictAnswer": NOTHING_WRONG,
        "DigestAnswer": [digest("task:finance"), digest()],
        "ProposalAnswer": by_topic(
            first | {"personal:Ann": proposal(change("DELETE", "w1", 1, "forget my grocery budget"))}
        ),
    }
    with open_kit(tmp_path, steps, reviser="rules", allowed_topics=("finance",)) as kit:
        kit.add_messages([said(BUDGET)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        assert [memory.topic.key for memory in kit.memories(scope=ANN)] == ["task:finance"]
        kit.add_messages([said(ASKED, minutes=600)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert "200" not in readable(kit)
        assert "w1 [2025-03-04" in model_of(kit).calls[-1].text


NAMED = "Já não quero que saibas o meu orçamento, está bem?"
"""No phrase of ours hears it."""


def test_a_request_in_words_that_no_phrase_hears_is_named_by_the_model_and_carried_out(tmp_path: Path) -> None:
    """People ask in their own words and languages; a list of phrases hears about one in four."""
    steps = script(proposal(KNOWN), proposal(change("DELETE", "m1", 1, "Já não quero que saibas o meu orçamento")))
    steps["DigestAnswer"] = [digest("personal:Ann"), digest() | {"forget": [1]}]
    with open_kit(tmp_path, steps, reviser="rules") as kit:
        kit.add_messages([said(BUDGET)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        kit.add_messages([said(NAMED, minutes=600)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert "200" not in readable(kit)
        assert [memory.status for memory in kit.memories(scope=ANN)] == ["deleted"]
        assert "Forgotten" in kit.recall("budget", scope=ANN).context


def test_a_request_that_a_model_names_hides_the_words_of_which_nothing_was_learned(tmp_path: Path) -> None:
    """A secret and the wish to be rid of it come in one block: no memory is made, and the raw words must not stay."""
    steps = script(proposal()) | {"DigestAnswer": digest() | {"forget": [1, 2, 9]}}
    with open_kit(tmp_path, steps, reviser="rules") as kit:
        kit.add_messages([said("O meu PIN é 4711."), said("Não guardes isso.", minutes=1)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert "4711" not in readable(kit)
        assert {note.reason for each in kit.messages(scope=ANN) for note in each.withheld} == {"forgotten"}


def test_a_request_that_a_model_names_waits_where_the_writer_fails(tmp_path: Path) -> None:
    """The digest is not asked twice: what it named must outlast the failure, out of sight, and be decided later."""
    steps = script(refusal(), refusal(), proposal()) | {"DigestAnswer": digest() | {"forget": [1, 2]}}
    with open_kit(tmp_path, steps, reviser="rules") as kit:
        kit.add_messages([said("O meu PIN é 4711."), said("Não guardes isso.", minutes=1)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        assert "4711" not in readable(kit)
        (waiting,) = kit.governance.requests(scope=ANN)
        assert [row.text for row in waiting.words] == ["O meu PIN é 4711.", "Não guardes isso."]

        kit.work.retry(scope=ANN)
        assert "4711" not in readable(kit)
        assert kit.governance.requests(scope=ANN) == ()


def test_what_another_topic_made_of_words_that_wait_waits_with_them(tmp_path: Path) -> None:
    """The person's writer fails, that of the task does not: its memory quotes what nobody may read for now."""
    steps = {
        "VerdictAnswer": NOTHING_WRONG,
        "DigestAnswer": digest("personal:Ann", "task:finance"),
        "ProposalAnswer": by_topic({"personal:Ann": refusal(), "task:finance": proposal(KNOWN)}),
    }
    with open_kit(tmp_path, steps, reviser="rules", allowed_topics=("finance",)) as kit:
        kit.add_messages([said(BUDGET), said("Please forget that.", minutes=1)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert "200" not in readable(kit)
        assert kit.memories(scope=ANN) == ()
        (waiting,) = kit.governance.requests(scope=ANN)
        assert [row.text for row in waiting.words] == [BUDGET, "Please forget that."]


def test_a_correction_that_a_model_names_shows_the_writer_memories_of_other_topics(tmp_path: Path) -> None:
    """What is wrong may stand on any shelf, and an operation needs an id."""
    steps = {
        "VerdictAnswer": NOTHING_WRONG,
        "DigestAnswer": [digest("task:finance"), digest() | {"correct": [1]}],
        "ProposalAnswer": by_topic({"task:finance": proposal(KNOWN), "personal:Ann": proposal()}),
    }
    with open_kit(tmp_path, steps, reviser="rules", allowed_topics=("finance",)) as kit:
        kit.add_messages([said(BUDGET)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        kit.add_messages([said("The grocery budget of 200 euros is not right at all.", minutes=600)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert "w1 [2025-03-04" in model_of(kit).calls[-1].text


def test_what_is_put_right_stays_under_its_topic(tmp_path: Path) -> None:
    """The writer of the person's topic decides; written there, the correction would be found by nobody who looks for it."""
    wrong = create("The budget of the project is 200 euros.", 1, BUDGET[:-1], slot="budget", value="200 euros")
    right = change(
        "CORRECT",
        "w1",
        1,
        "it is 300",
        content="The budget of the project is 300 euros.",
        slot="budget",
        value="300 euros",
    )
    steps = {
        "VerdictAnswer": NOTHING_WRONG,
        "DigestAnswer": [digest("task:finance"), {**digest(), "correct": [1]}],
        "ProposalAnswer": by_topic({"task:finance": proposal(wrong), "personal:Ann": proposal(right)}),
    }
    with open_kit(tmp_path, steps, reviser="rules", allowed_topics=("finance",)) as kit:
        kit.add_messages([said(BUDGET)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        kit.add_messages(
            [said("The grocery budget of 200 euros is wrong, it is 300 euros for the project.", minutes=600)], scope=ANN
        )
        kit.summarize(scope=ANN, close=True)

        (held,) = (memory for memory in kit.memories(scope=ANN) if memory.live)
        assert (held.topic.key, held.canonical_topic, held.slot_value) == (
            "task:finance",
            "finance:budget",
            "300 euros",
        )


def test_words_of_a_block_that_a_later_one_asks_to_forget_are_not_read_before_it_is_decided(tmp_path: Path) -> None:
    """Blocks are cut between them as anywhere; learned first, they stood in every list until the next was read."""

    def learns_all(call: ModelCall) -> Any:
        block = call.text[call.text.index("\nBlock:") :]
        return proposal(create("There is a biopsy.", 1, "has a biopsy")) if "biopsy" in block else proposal()

    with open_kit(tmp_path, script(learns_all), reviser="rules") as kit:
        kit.add_messages([said("My mother has a biopsy on Wednesday."), said("Forget that.", minutes=200)], scope=ANN)
        report = kit.summarize(scope=ANN, close=True)

        assert len(report.blocks) == 2
        assert "biopsy" not in readable(kit)
        assert kit.memories(scope=ANN) == ()
        assert kit.governance.requests(scope=ANN) == ()


def test_without_a_model_a_request_waits_visibly_and_nothing_is_deleted(tmp_path: Path) -> None:
    """Code only flags; a person decides, and finds what waits."""
    with open_kit(tmp_path) as kit:
        kit.add_messages([said("I live in Porto with my dog."), said("Please forget that.", minutes=1)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        (waiting,) = kit.work.list(scope=ANN, states=["review"])
        assert "request to forget" in waiting.reason
        assert "Porto" not in readable(kit)
        assert not any(memory.status == "deleted" for memory in kit.memories(scope=ANN))


def test_a_harmless_word_hides_nothing(tmp_path: Path) -> None:
    """Words of impatience ("Forget it, I'll take the bus") ask for nothing."""
    with open_kit(tmp_path) as kit:
        kit.add_messages(
            [said("The grocery store is far."), said("Forget it, I'll take the bus.", minutes=1)], scope=ANN
        )

        assert not any(message.withheld for message in kit.messages(scope=ANN))


def test_a_message_sent_again_is_not_withheld_again(tmp_path: Path) -> None:
    """Hosts send what is recorded again; what was decided stays decided."""
    taken = proposal(create("Ann has a biopsy.", 1, "I have a biopsy"))
    with open_kit(tmp_path, script(taken), reviser="rules") as kit:
        turn = [said("I have a biopsy.", message_id="a"), said("Forget that.", minutes=1, message_id="b")]
        kit.add_messages(turn, scope=ANN)
        kit.summarize(scope=ANN, close=True)
        kit.add_messages(turn, scope=ANN)

        assert not any(message.hidden for message in kit.messages(scope=ANN))


def test_a_writer_that_fails_leaves_the_words_withheld(tmp_path: Path) -> None:
    """Whatever becomes of the block, nothing is shown again before somebody has decided."""
    with learned(tmp_path, "no JSON at all", "nor now") as kit:
        kit.add_messages([said("Please forget that.", minutes=1)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert "200" not in readable(kit)
        assert [work.state for work in kit.work.list(scope=ANN, states=["failed"])] == ["failed"]


def test_nothing_of_the_request_becomes_a_memory(tmp_path: Path) -> None:
    """A model that notes what it was asked to forget must not bring it back."""
    told = "Please forget my grocery budget of 200 euros a month."
    both = proposal(
        change("DELETE", "m1", 1, "forget my grocery budget"),
        create("Ann wants her grocery budget of 200 euros a month forgotten.", 1, told[:-1]),
    )
    with learned(tmp_path, both) as kit:
        kit.add_messages([said(told, minutes=600)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert "200" not in readable(kit)


def test_a_correction_shows_the_writer_what_it_may_mean_and_hides_nothing(tmp_path: Path) -> None:
    """It replaces: the value before is needed to find it, and nobody asked for it to be gone."""
    asked: list[str] = []

    def step(call: ModelCall) -> Any:
        asked.append(call.text)
        return proposal()

    steps = script(proposal(KNOWN), step)
    steps["DigestAnswer"] = [digest("personal:Ann"), digest() | {"correct": [1]}]
    with open_kit(tmp_path, steps, reviser="rules") as kit:
        kit.add_messages([said(BUDGET)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        kit.add_messages([said("Sorry, that was wrong, I said 200 for the grocery budget.", minutes=600)], scope=ANN)
        assert not any(message.withheld for message in kit.messages(scope=ANN))
        kit.summarize(scope=ANN, close=True)

        assert "Message 1 seems to ask" in asked[0]


def test_the_next_context_says_once_that_a_request_was_carried_out(tmp_path: Path) -> None:
    """The agent can confirm it, and repeats nothing of what is gone; after its answer it is told no more."""
    notice = "Forgotten on 2025-03-04 at the person's request: 1 memory."
    with learned(tmp_path, proposal(change("DELETE", "w1", 1, "forget that"))) as kit:
        kit.add_messages([said("Please forget that.", minutes=1)], scope=ANN)
        assert notice not in kit.recall("What do you know?", scope=ANN).context
        kit.summarize(scope=ANN, close=True)

        context = kit.recall("What do you know?", scope=ANN).context
        assert notice in context
        assert "200" not in context
        clock_of(kit).move(timedelta(minutes=5))
        kit.add_messages([said("Thanks.", minutes=3), replied("It is gone.", minutes=4)], scope=ANN)
        assert notice not in kit.recall("What do you know?", scope=ANN).context


def test_what_was_forgotten_at_a_request_can_be_restored(tmp_path: Path) -> None:
    """A model may have meant another: the way back is the one of all that is forgotten."""
    with learned(tmp_path, proposal(change("DELETE", "w1", 1, "forget that"))) as kit:
        kit.add_messages([said("Please forget that.", minutes=1)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        (memory,) = kit.memories(scope=ANN)
        kit.restore(memory.memory_id, scope=ANN)

        (memory,) = kit.memories(scope=ANN)
        assert (memory.status, memory.content) == ("active", "Ann's grocery budget is 200 euros a month.")
        assert BUDGET in readable(kit)


@pytest.mark.parametrize("forget", [True, False])
def test_a_person_decides_what_no_model_did(tmp_path: Path, *, forget: bool) -> None:
    """What waits is listed with its words, and goes or comes back by one verb."""
    with open_kit(tmp_path) as kit:
        turn = [said("I live in Porto with my dog."), said("Please forget that.", minutes=1, message_id="ask")]
        kit.add_messages(turn, scope=ANN)
        kit.summarize(scope=ANN, close=True)
        (waiting,) = kit.governance.requests(scope=ANN)
        assert waiting.message.message_id == "ask"
        assert [message.text for message in waiting.words] == [each.text for each in turn]

        assert kit.governance.decide("ask", forget=forget, scope=ANN).found is True

        assert ("Porto" in readable(kit)) is not forget
        assert kit.governance.requests(scope=ANN) == ()
        assert kit.work.list(scope=ANN, states=["review"]) == ()
        with pytest.raises(NotFoundError):
            kit.governance.decide("ask", forget=forget, scope=ANN)


@pytest.mark.requirement("X14", "X17")
@pytest.mark.parametrize(
    ("told", "statement", "asked", "quote", "names"),
    [
        (
            "Meine Therapeutin rät mir zur Luftveränderung.",
            "Anns Therapeutin rät ihr zur Luftveränderung.",
            "Super. Und das mit der Therapie eben, streich das.",
            "das mit der Therapie eben, streich das",
            "Therapie",
        ),
        (
            "La banque vient de refuser notre crédit.",
            "La banque a refusé le crédit d'Ann.",
            "Et l'histoire du prêt refusé, faites comme si de rien n'était.",
            "faites comme si de rien n'était",
            "prêt",
        ),
        (
            "अगले महीने नौकरी छोड़ रहा हूँ।",
            "Ann अगले महीने नौकरी छोड़ रहा है।",
            "और वो इस्तीफ़े वाली बात हटा दो।",
            "वो इस्तीफ़े वाली बात हटा दो",
            "इस्तीफ़े",
        ),
    ],
)
def test_the_words_that_ask_to_forget_go_with_what_is_forgotten(
    tmp_path: Path, told: str, statement: str, asked: str, quote: str, names: str
) -> None:
    """They name it in words of their own, in which no likeness finds it; the rest of the message stays."""
    forget = proposal(change("DELETE", "m1", 1, quote))
    with open_kit(tmp_path, script(proposal(create(statement, 1, told[:-1])), forget), reviser="rules") as kit:
        kit.add_messages([said(told)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        kit.add_messages([said(asked, minutes=600)], scope=ANN)
        assert names in kit.recall(asked, scope=ANN, depth="messages").context
        kit.summarize(scope=ANN, close=True)
        shown = kit.recall(asked, scope=ANN, depth="messages").context
        assert names not in shown + readable(kit)
        assert ("Super." in shown) == ("Super." in asked)


@pytest.mark.requirement("X14")
def test_what_else_is_told_in_the_sentence_that_asks_to_forget_is_kept(tmp_path: Path) -> None:
    """Of such a sentence, the clauses that ask go, and what was learned of the others stays."""
    both = "Drop the thing with my spending plan, I bought a kiln."
    second = proposal(
        change("DELETE", "m1", 1, "Drop the thing with my spending plan"),
        create("Ann bought a kiln.", 1, "I bought a kiln"),
    )
    with learned(tmp_path, second) as kit:
        kit.add_messages([said(both, minutes=600)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        live = [memory for memory in kit.memories(scope=ANN) if memory.live]
        assert [(memory.content, memory.evidence[0].quote) for memory in live] == [
            ("Ann bought a kiln.", "I bought a kiln")
        ]
        assert "spending" not in readable(kit)
        assert "I bought a kiln" in readable(kit)
