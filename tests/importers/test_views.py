"""What a list tells of what is recorded, and what it must not be taken for: as little as is certain."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from remegraph.engine.frame import RECALLED
from remegraph.importers.turns import Turns
from remegraph.importers.views import Judge, Recent, View, placed
from remegraph.models import Partition
from remegraph.models.messages import WithheldReason, revised
from remegraph.ports import Recorded
from tests.talk import NOON

pytestmark = pytest.mark.requirement("C7", "C8", "X1")

Ids = Sequence[str]


class Ledger:
    """One partition in memory, and a host of it whose checkpoints are numbers."""

    def __init__(self) -> None:
        self.rows: dict[str, Recorded] = {}
        self.mine = True
        self.now = NOON
        self.moment = 0
        self.left: list[str] = []
        self.gone: list[str] = []

    def recorded(
        self,
        ids: Sequence[str] | None = None,
        *,
        revising: Collection[str] = (),
        thread: str | None = None,
        after: int = 0,
        dropped: bool | None = None,
    ) -> Mapping[str, Recorded]:
        return {
            name: row
            for name, row in self.rows.items()
            if (ids is None or name in ids)
            and (not revising or revised(row.body) in revising)
            and (thread is None or row.body["thread"] == thread)
            and row.seq > after
            and dropped in {None, bool(row.dropped)}
        }

    def see(self, messages: Sequence[AnyMessage], *, thread: str = "t", **view: Any) -> list[str]:
        """What a capture does; returns what is shown of the thread then."""
        self.moment += 1
        moment = f"{view.pop('moment', self.moment):06}"
        seen = View(**{"whole": True, "channel": "messages", "moment": moment, **view})
        turns = Turns(thread, None, self.now, None)
        course = turns.read(messages)
        known = self.recorded([each.message_id for each in course.heard])
        judge = Judge(course, seen, thread, known, self.recorded, self.now, lambda _: self.mine)
        news = turns.news(course.heard, known, self.recorded)
        self.left, self.gone = list(judge.left), list(judge.gone)
        self._mark(news.outdated, "edited")
        self._mark(judge.left, "rewound")
        if not seen.due:
            for message in placed(news.messages, course, seen):
                self.rows[message.message_id] = Recorded(message.model_dump(mode="json"), len(self.rows) + 1, self.now)
        self._release(news.current, {"edited"})
        self._release(judge.back, {"rewound", "removed"})
        return self.shown(thread)

    def turn(self, before: Sequence[AnyMessage], text: str, **view: Any) -> list[AnyMessage]:
        """A question, its answer, and what a host does around them; returns the new list."""
        asked = [*before, human(text)]
        self.see(asked, due=True, **view)
        answered = [*asked, ai(f"re {text}")]
        self.see(answered, **view)
        return answered

    def shown(self, thread: str = "t") -> list[str]:
        return list(self.recorded(thread=thread, dropped=False))

    def _mark(self, names: Ids, reason: WithheldReason) -> None:
        for name in names:
            self.rows[name] = replace(self.rows[name], dropped=self.rows[name].dropped | {reason})

    def _release(self, names: Ids, reasons: set[WithheldReason]) -> None:
        for name in names:
            self.rows[name] = replace(self.rows[name], dropped=self.rows[name].dropped - reasons)


def human(text: str) -> HumanMessage:
    return HumanMessage(text, id=text)


def ai(text: str) -> AIMessage:
    return AIMessage(text, id=text)


def turns(*texts: str) -> list[str]:
    return [each for text in texts for each in (text, f"re {text}")]


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def talk(ledger: Ledger) -> list[AnyMessage]:
    """Three turns."""
    said: list[AnyMessage] = []
    for text in ("one", "two", "three"):
        said = ledger.turn(said, text)
    return said


# ----------------------------------------------------------------------------------------------- rewinds


@pytest.mark.parametrize("kept", [2, 4])
def test_what_came_after_a_message_that_is_still_there_is_left_out_once_something_else_stands_there(
    ledger: Ledger, talk: list[AnyMessage], kept: int
) -> None:
    """A fork, or a tail that was removed and replaced, look the same."""
    ledger.turn(talk[:kept], "other")
    assert ledger.shown() == [*turns("one", "two", "three")[:kept], *turns("other")]


def test_it_is_left_out_before_the_answer_to_what_stands_there(ledger: Ledger, talk: list[AnyMessage]) -> None:
    """The answer must not be made from what was taken back."""
    assert ledger.see([*talk[:4], human("other")], due=True) == turns("one", "two")


def test_an_answer_that_is_due_again_is_left_out(ledger: Ledger, talk: list[AnyMessage]) -> None:
    """It is made anew."""
    ledger.see(talk[:5], due=True)
    assert ledger.shown() == [*turns("one", "two"), "three"]
    assert ledger.see([*talk[:5], ai("better")]) == [*turns("one", "two"), "three", "better"]


def test_a_branch_that_is_gone_back_to_returns_and_the_other_goes(ledger: Ledger, talk: list[AnyMessage]) -> None:
    """Hosts offer arrows between the versions of a message."""
    other = ledger.turn(talk[:2], "other")
    ledger.turn(talk, "four")
    assert ledger.shown() == turns("one", "two", "three", "four")
    ledger.turn(other, "five")
    assert ledger.shown() == turns("one", "other", "five")
    ledger.turn(talk[:4], "six")
    assert ledger.shown() == turns("one", "two", "six")


def test_a_branch_that_was_trimmed_meanwhile_returns_whole(ledger: Ledger, talk: list[AnyMessage]) -> None:
    """What comes before a message that is back belongs to its branch."""
    ledger.turn(talk[:2], "other")
    ledger.see([talk[5], human("four")], due=True)
    assert ledger.shown() == turns("one", "two", "three")


def test_a_thread_that_begins_anew_from_the_checkpoint_before_its_first_message_leaves_all_out(
    ledger: Ledger, talk: list[AnyMessage]
) -> None:
    """The first message is edited, and has another id then; what came before that checkpoint stays."""
    ledger.see([], due=True, moment=50)
    ledger.moment = 60
    again = ledger.turn([], "anew")
    ledger.turn([], "other", addressed="000055")
    assert ledger.shown() == turns("one", "two", "three", "other")
    ledger.turn(again, "back", addressed="000062")
    assert ledger.shown() == turns("one", "two", "three", "anew", "back")
    assert ledger.turn(talk, "four")
    ledger.turn([], "nothing named")
    assert set(turns("one", "two", "three", "four", "nothing named")) <= set(ledger.shown())


def test_an_edited_message_of_a_branch_that_was_left_is_left_in_all_its_forms(
    ledger: Ledger, talk: list[AnyMessage]
) -> None:
    """Its newer form is another row."""
    edited = [*talk[:2], HumanMessage("two, or so", id="two"), *talk[3:]]
    ledger.see(edited)
    ledger.turn(talk[:2], "other")
    assert ledger.shown() == turns("one", "other")
    ledger.see([*edited, human("four")], due=True)
    texts = [ledger.rows[name].body["content"] for name in ledger.shown()]
    assert sorted(texts) == sorted(["one", "re one", "two, or so", "re two", "three", "re three"])


# ------------------------------------------------------------------------------------ what is no rewind


def test_lists_of_new_messages_only_tell_nothing(ledger: Ledger) -> None:
    """A host without a checkpointer hands over what is new, or what it likes."""
    for text in ("one", "two"):
        ledger.turn([], text, whole=False)
    ledger.see([human("one"), human("three")], due=True, whole=False)
    ledger.see([human("one"), human("three"), ai("re three")], whole=False)
    assert ledger.shown() == turns("one", "two", "three")


def test_a_host_that_keeps_no_answers_goes_back_on_none(ledger: Ledger) -> None:
    """Each question stands where the answer before it was."""
    said: list[AnyMessage] = []
    for text in ("one", "two", "three"):
        said = [*said, human(text)]
        ledger.see(said, due=True)
        ledger.see([*said, ai(f"re {text}")])
    assert ledger.shown() == turns("one", "two", "three")


@pytest.mark.parametrize("first", [0, 1, 2, 3])
@pytest.mark.parametrize("last", [1, 2, 3])
def test_trimming_within_a_run_tells_nothing(ledger: Ledger, first: int, last: int) -> None:
    """At the start of the run all was there; what the host drops for its model it has not taken back."""
    said: list[AnyMessage] = []
    for number in range(8):
        asked = [*said, human(str(number))]
        ledger.see(asked, due=True)
        said = asked if len(asked) <= first + last else [*asked[:first], *asked[-last:]]
        said = [*said, ai(f"re {number}")]
        ledger.see(said)
    assert ledger.shown() == turns(*map(str, range(8)))


@pytest.mark.parametrize(
    "stands",
    [SystemMessage("They talked."), HumanMessage("They talked.", additional_kwargs={"lc_source": "summarization"})],
)
def test_a_summary_in_the_place_of_messages_tells_nothing(
    ledger: Ledger, talk: list[AnyMessage], stands: AnyMessage
) -> None:
    """Whatever comes after it."""
    ledger.turn([*talk[:2], stands], "four")
    assert ledger.shown() == turns("one", "two", "three", "four")
    ledger.turn([stands, *talk[4:]], "five")
    assert ledger.shown() == turns("one", "two", "three", "four", "five")


def test_memory_and_instructions_among_the_words_hide_no_rewind(ledger: Ledger, talk: list[AnyMessage]) -> None:
    """What was recalled may stand anywhere; instructions stand first."""
    note = HumanMessage("<memory>", additional_kwargs={RECALLED: ["m1"]})
    ledger.turn([SystemMessage("Be kind."), *talk[:2], note], "other")
    assert ledger.shown() == turns("one", "other")


def test_a_message_that_is_taken_out_of_the_middle_tells_nothing(ledger: Ledger, talk: list[AnyMessage]) -> None:
    """Nothing stands in its place but what came after it."""
    for hole in range(5):
        ledger.see([*talk[:hole], *talk[hole + 1 :], human(f"after {hole}")], due=True)
    ledger.see([*talk[:1], *talk[-1:], human("again")], due=True)
    assert ledger.shown() == turns("one", "two", "three")


def test_tools_that_are_stripped_once_they_were_answered_tell_nothing(ledger: Ledger) -> None:
    """Many hosts keep questions and answers only."""
    call = AIMessage("", id="call", tool_calls=[{"name": "f", "args": {}, "id": "c"}])
    result = ToolMessage("12", id="result", tool_call_id="c")
    ledger.see([human("one"), call, result, ai("re one")])
    ledger.turn([human("one"), ai("re one")], "two")
    assert ledger.shown() == ["one", "call", "result", *turns("one")[1:], *turns("two")]


def test_messages_without_ids_tell_nothing(ledger: Ledger) -> None:
    """Their ids follow from their places, and shift with each message that comes or goes."""
    said: list[AnyMessage] = [HumanMessage("one"), AIMessage("re one"), HumanMessage("two"), AIMessage("re two")]
    ledger.see(said)
    before = ledger.shown()
    for other in ([*said[:2], HumanMessage("three")], [*said[:1], *said[2:]], [HumanMessage("zero"), *said]):
        ledger.see(other, due=True)
        assert ledger.shown() == before
        assert ledger.left == []


def test_a_worker_with_a_view_of_its_own_tells_nothing_and_is_told_nothing(ledger: Ledger) -> None:
    """A supervisor sees the question and the outcome; the worker, what lies between."""
    ledger.see([human("one"), ai("step"), ai("re one")], whole=False)
    ledger.turn([human("one"), ai("outcome")], "two")
    ledger.see([human("one"), human("sub-task")], due=True, whole=False)
    assert ledger.shown() == ["one", "step", "re one", "outcome", *turns("two")]


def test_another_list_of_the_same_graph_tells_nothing(ledger: Ledger, talk: list[AnyMessage]) -> None:
    """A scratchpad that begins with the question takes a course of its own."""
    ledger.see([talk[0], human("look it up")], due=True, channel="scratch")
    ledger.see([talk[0], human("look it up"), ai("found")], channel="scratch")
    ledger.turn(talk, "four")
    ledger.see([talk[2], human("look further")], due=True, channel="scratch")
    assert ledger.shown() == [*turns("one", "two", "three"), "look it up", "found", *turns("four")]


def test_branches_of_a_graph_that_answer_at_the_same_time_tell_nothing(ledger: Ledger) -> None:
    """Each sees the question, and not what the other said in the same step."""
    ledger.see([human("one")], due=True)
    ledger.see([human("one"), ai("this")], moment=5)
    ledger.see([human("one")], due=True, moment=5)
    assert ledger.see([human("one"), ai("that")], moment=5) == ["one", "this", "that"]


def test_two_processes_in_one_thread_tell_nothing_of_each_other(ledger: Ledger, talk: list[AnyMessage]) -> None:
    """Their checkpoints overwrite each other; what the one has just recorded, the other may never have seen."""
    ledger.mine = False
    ledger.see([*talk, human("here")], due=True)
    ledger.see([*talk, human("here"), ai("re here")])
    ledger.see([*talk, human("there")], due=True)
    ledger.see([*talk, human("there"), ai("re there")])
    assert ledger.shown() == turns("one", "two", "three", "here", "there")


def test_a_question_that_another_run_has_not_answered_yet_tells_nothing(ledger: Ledger, talk: list[AnyMessage]) -> None:
    """Two processes talk in one thread: the newest checkpoint is that of the other, and mine is overwritten."""
    ledger.turn(talk, "mine")
    ledger.see([*talk, human("of the other"), human("mine again")], due=True)
    assert ledger.shown() == turns("one", "two", "three", "mine")


def test_another_process_tells_a_rewind_once_words_are_settled_or_the_host_names_the_checkpoint(
    ledger: Ledger, talk: list[AnyMessage]
) -> None:
    """A service has many workers; a person takes a moment to go back."""
    ledger.mine = False
    ledger.turn(talk[:4], "other", addressed="000004")
    assert ledger.shown() == turns("one", "two", "other")
    ledger.now += timedelta(minutes=5, seconds=1)
    ledger.turn(talk[:2], "another")
    assert ledger.shown() == turns("one", "another")


def test_a_thread_that_begins_with_a_copy_of_another_leaves_that_alone(ledger: Ledger, talk: list[AnyMessage]) -> None:
    """Hosts copy threads, with their ids, and go on in both."""
    ledger.see([*talk[:2], human("other")], due=True, thread="copy")
    ledger.see([*talk[:2], human("other"), ai("re other")], thread="copy")
    ledger.turn(talk, "four")
    assert ledger.shown() == turns("one", "two", "three", "four")
    assert ledger.shown("copy") == turns("other")


def test_a_list_that_is_empty_or_all_new_tells_nothing(ledger: Ledger) -> None:
    """A chat that was cleared: there is nothing that something else came after."""
    ledger.turn([], "one")
    ledger.see([], due=True)
    ledger.turn([], "two")
    assert ledger.shown() == turns("one", "two")


def test_a_question_that_is_sent_again_under_another_id_is_heard_once(ledger: Ledger, talk: list[AnyMessage]) -> None:
    """A button that makes an answer again by sending the question once more."""
    again = [*talk[:4], HumanMessage("three", id="three again")]
    ledger.see(again, due=True)
    ledger.see([*again, ai("better")])
    assert ledger.shown() == [*turns("one", "two"), "three again", "better"]


def test_an_answer_that_comes_again_under_another_id_is_heard_once(ledger: Ledger, talk: list[AnyMessage]) -> None:
    """Hosts that write their list anew give what they copy new ids."""
    ledger.turn([*talk[:5], AIMessage("re three", id="copied")], "four")
    assert [str(ledger.rows[name].body["content"]) for name in ledger.shown()] == turns("one", "two", "three", "four")


# ----------------------------------------------------------------------------------------------- removed


def test_what_is_gone_is_what_the_list_had_and_has_no_more(ledger: Ledger, talk: list[AnyMessage]) -> None:
    """Whether that counts is for the settings to say."""
    ledger.see([*talk[2:], human("four")], due=True)
    assert ledger.gone == turns("one")
    ledger.see([*talk[4:], human("four"), ai("re four")], began="000000")
    assert ledger.gone == []
    ledger.see([*talk[4:], human("four"), ai("re four")], began="000099")
    assert ledger.gone == turns("one", "two")
    ledger.see([human("five")], due=True)
    assert ledger.gone == []


# ------------------------------------------------------------------------------------------------- at random


@settings(max_examples=200, deadline=None, database=None)
@given(steps=st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=12))
def test_what_is_shown_is_what_the_host_has_wherever_it_goes(steps: list[tuple[int, bool]]) -> None:
    """Any walk through a tree of turns that does not go back behind its first: what is shown is the branch at hand."""
    ledger = Ledger()
    branches: list[list[AnyMessage]] = [ledger.turn([], "root")]
    for number, (at, end) in enumerate(steps):
        from_branch = branches[at % len(branches)]
        kept = from_branch if end else from_branch[: 2 * (1 + at % (len(from_branch) // 2))]
        branches.append(ledger.turn(kept, str(number)))
        assert set(ledger.shown()) == {str(message.id) for message in branches[-1]}


@settings(max_examples=200, deadline=None, database=None)
@given(steps=st.lists(st.sets(st.integers(0, 30)), max_size=10))
def test_no_sieve_that_leaves_the_newest_message_in_is_taken_for_a_rewind(steps: list[set[int]]) -> None:
    """Whatever a host drops between turns, as long as it keeps what was said last."""
    ledger = Ledger()
    said: list[AnyMessage] = []
    for number, drop in enumerate(steps):
        said = ledger.turn(said, str(number))
        said = [message for place, message in enumerate(said[:-1]) if place not in drop] + said[-1:]
    assert ledger.shown() == turns(*map(str, range(len(steps))))


def test_a_process_remembers_only_so_much_of_what_it_recorded() -> None:
    """A service runs for years."""
    recent, place = Recent(), Partition(tenant="default", user="ann")
    recent.note(place, (str(number) for number in range(10_001)))
    assert not recent.holds(place, "0")
    assert recent.holds(place, "1")
    assert not recent.holds(Partition(tenant="default", user="bob"), "1")
