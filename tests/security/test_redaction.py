"""What a host does not want to have comes in as a placeholder: no file, no index, no model ever holds the value."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolCall
from pydantic import ValidationError

from conftest import Figure
from evals.desensitizing import BARS, sentences
from remegraph import MemoryKit, Scope, Settings
from remegraph.adapters.chains import MessageHistory
from remegraph.adapters.store import MemoryStore
from remegraph.engine.redaction import Redactor
from remegraph.errors import MissingExtraError
from remegraph.kit import SaveOptions
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.models import Condition, Message, RecallFilter, Skill, SkillStep, StepPattern
from remegraph.settings import PerceptionPolicy, PrivateKind, RecallPolicy
from remegraph.testing import ScriptedChatModel
from remegraph.text import personal
from remegraph.text.desensitization import LONGEST, findings
from remegraph.text.findings import PLACEHOLDER
from tests.pictures import image
from tests.reliability.erasable import look
from tests.talk import ANN, NOON, called, create, digest, model_of, proposal, replied, returned, said

if TYPE_CHECKING:
    from remegraph.ports import Vectors

pytestmark = pytest.mark.requirement("X6")

MAIL, PHONE, CARD = "zzann.lee@example.org", "+351 912 345 678", "4111 1111 1111 1111"
KEY = "sk-proj-zzKEY1234567890abcdefGHIJ"
PASSWORD = "zzTr0ub4dor"
VALUES = (MAIL, PHONE, CARD, KEY, PASSWORD)
KINDS: frozenset[PrivateKind] = frozenset({"email", "phone", "card", "key", "password"})


class Listening(HashedEmbedder):
    """Keeps what it was given."""

    def __init__(self) -> None:
        super().__init__(64)
        self.heard: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.heard += texts
        return super().embed(texts)


def open_home(home: Path, embedder: Listening | None = None, script: dict[str, Any] | None = None) -> MemoryKit:
    """A home on disk that redacts, with a real index that is searched however little there is."""
    settings = Settings(home=home, redact=KINDS, recall=RecallPolicy(exact_limit=0, index_timeout=60))
    model = None if script is None else ScriptedChatModel(script=script)
    return MemoryKit.open(settings=settings, model=model, embedder=embedder or Listening())


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[MemoryKit]:
    """A kit without a model that redacts."""
    with open_home(tmp_path / "home") as opened:
        yield opened


def texts(kit: MemoryKit) -> list[str]:
    return [message.text for message in kit.sources.retrieve_message(scope=ANN, limit=100)]


def a_conversation(kit: MemoryKit) -> None:
    kit.add_messages(
        [
            said(
                f"My mail is {MAIL}, my phone {PHONE}.", name=f"Ann <{MAIL}>", task=f"call {PHONE}", extra={"to": MAIL}
            ),
            said("", minutes=1).evolve(content=[{"type": "text", "text": f"Pay with {CARD}."}, {"title": KEY}]),
            called("login", "c1", minutes=2, user=MAIL, password=PASSWORD),
            returned("c1", f"error: {MAIL} is not known", ok=False, minutes=3),
        ],
        scope=ANN,
    )


def a_turn(kit: MemoryKit) -> None:
    heard = HumanMessage(f"Call me: {PHONE}", id="h1", additional_kwargs={"from": MAIL})
    kit.capture([heard, AIMessage(f"I noted {PHONE}.", id="h2")], scope=ANN, thread="turns")


def statements(kit: MemoryKit) -> None:
    one = kit.save(
        f"key {KEY}", f"Ann's key is {KEY}.", scope=ANN, tags=[MAIL], options=SaveOptions(summary=f"Her key: {KEY}.")
    ).memory
    two = kit.save(
        "card", f"Ann pays with the card {CARD}.", scope=ANN, options=SaveOptions(canonical_topic=f"card:{CARD}")
    ).memory
    assert one is not None
    assert two is not None
    kit.topics.link(one.memory_id, "related", two.memory_id, scope=ANN, reason=f"both of {MAIL}")
    kit.remember_self(f"Write to {MAIL} in an emergency.", scope=ANN)


def items(kit: MemoryKit) -> None:
    item = {"memory_type": "semantic", "content": {"concept_name": "Ann's office", "properties": {"mail": MAIL}}}
    memory = kit.forms.add(item, scope=ANN).memory
    assert memory is not None
    content = {"concept_name": "Ann's office", "properties": {"phone": PHONE}}
    kit.forms.update({**item, "memory_id": memory.memory_id, "content": content}, scope=ANN)


def a_skill(kit: MemoryKit) -> None:
    step = SkillStep(name="pay", step_pattern=StepPattern(tool="pay", args={"card": CARD}))
    done = (Condition(field="pay.ok"),)
    kit.skills.add(Skill(name=f"paying {MAIL}", task=f"Pay {MAIL}", steps=(step,), postconditions=done), scope=ANN)
    kit.skills.choose(f"Pay {MAIL}", scope=ANN)


def tool_calls(kit: MemoryKit) -> None:
    kit.tools.record("mail", scope=ANN, args={"to": MAIL}, ok=False, result=f"error: no mail to {MAIL}")
    kit.tools.advise(f"write to {MAIL}", scope=ANN)


def what_others_give(kit: MemoryKit) -> None:
    knowledge = {
        "knowledge_id": "k1",
        "title": f"Support, {MAIL}",
        "source_memory_type": "semantic",
        "content": {"concept_name": "support", "generalized_properties": {"phone": PHONE}},
        "source_agent": "ben",
        "created_at": "2025-03-04T12:00:00Z",
        "metadata": {"tags": [MAIL]},
    }
    kit.knowledge.absorb([knowledge], scope=ANN)
    record = {"id": "r1", "memory": f"Ann's mail is {MAIL}.", "metadata": {"phone": PHONE}, "user_id": "ann"}
    kit.imports.mem0([record | {"created_at": "2024-07-20T01:30:36Z"}], scope=ANN)


def a_store(kit: MemoryKit) -> None:
    store = MemoryStore(kit, scope=ANN, index=["text"])
    store.put(("notes",), "one", {"text": f"Ann's mail is {MAIL}.", MAIL: [{"phone": PHONE}]})
    store.search(("notes",), query=f"whose mail is {MAIL}?")


def saved(kit: MemoryKit, content: str, scope: Scope = ANN) -> str:
    memory = kit.save("note", content, scope=scope).memory
    assert memory is not None
    return memory.memory_id


def reasons(kit: MemoryKit) -> None:
    saved(kit, "Ann lives in Lisbon.")
    given = kit.sharing.grant("ben", scope=ANN, layers=["long_term"], reason=f"for {MAIL}", actor="Ann")
    kit.sharing.revoke(given.grant_id, scope=ANN, reason=f"asked by {MAIL}", actor="Ann")
    in_project = ANN.evolve(project="house")
    kit.rules.promote(saved(kit, "Ann likes oolong tea.", in_project), scope=in_project, reason=f"told {MAIL}")
    never = saved(kit, "Ann never eats fish.")
    kit.topics.link(saved(kit, "Ann eats fish every Friday."), "contradicts", never, scope=ANN, reason=f"says {CARD}")
    (conflict, *_) = kit.conflicts.list(scope=ANN)
    kit.conflicts.resolve(conflict.conflict_id, "keep_both", scope=ANN, by="Ann", note=f"says {MAIL}")
    knowledge = {
        "knowledge_id": "k2",
        "title": "Support",
        "source_memory_type": "semantic",
        "content": {"concept_name": "support", "generalized_properties": {"hours": "nine to five"}},
        "source_agent": "ben",
        "created_at": "2025-03-04T12:00:00Z",
    }
    kit.knowledge.absorb([knowledge], scope=ANN)
    (waiting, *_) = kit.knowledge.waiting(scope=ANN)
    kit.knowledge.decide(waiting.memory_id, approve=True, scope=ANN, by="Ann", note=f"asked {PHONE}")


def proposals(kit: MemoryKit) -> None:
    sharing = kit.sharing
    first = sharing.propose(saved(kit, "Ann lives in Lisbon."), scope=ANN, reason=f"asked by {MAIL}")
    sharing.withdraw(first.proposal_id, scope=ANN, reason=f"not of {PHONE}")
    second = sharing.propose(saved(kit, "Ann's sister is Berta."), scope=ANN, reason=f"asked by {MAIL}")
    sharing.decide(second.proposal_id, approve=True, scope=ANN, actor="Ann", reason=f"paid by {CARD}")


def questions(kit: MemoryKit) -> None:
    kit.working.sense(f"Ann's password: {PASSWORD}", scope=ANN, attention=1.0)
    kit.recall("What does Ann type?", scope=ANN, task="main")
    kit.recall(f"Whose mail is {MAIL}?", scope=ANN, depth="messages", previous=f"And {PHONE}?")
    kit.inject(f"Write to {MAIL}", scope=ANN)
    kit.context.parts().embedder.embed([f"what a host's store holds of {MAIL}"])


DOORS: tuple[Callable[[MemoryKit], None], ...] = (
    a_conversation,
    a_turn,
    statements,
    items,
    a_skill,
    tool_calls,
    what_others_give,
    a_store,
    reasons,
    proposals,
    questions,
)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_nothing_private_comes_in_by_any_door(tmp_path: Path, door: Callable[[MemoryKit], None]) -> None:
    """One verb that forgets to look is enough: a card number in a log of the disk is there for years."""
    embedder, home = Listening(), tmp_path / "home"
    with open_home(home, embedder) as kit:
        door(kit)
        kit.summarize(scope=ANN, close=True)
        kit.retention.maintain(scope=ANN)
    assert look(home, VALUES, []) == []
    assert [text for text in embedder.heard if any(value in text for value in VALUES)] == []
    with MemoryKit.open(tmp_path / "plain", model=None, embedder=None) as kit:
        door(kit)
    plain = {found.what for found in look(tmp_path / "plain", VALUES, [])}
    assert plain or door in {questions, tool_calls}, "what looks for the values would find them"


def test_no_model_is_shown_it_and_what_it_says_rests_on_the_words_that_are_kept(tmp_path: Path) -> None:
    """A provider's logs are nobody's to clean; and a quote that is nowhere would make no memory."""
    with open_home(tmp_path, script={}) as kit:
        kit.add_messages([said(f"My mail is {MAIL}.", name="ann"), replied("Thank you.", minutes=1)], scope=ANN)
        kept = texts(kit)[0]
        quote = kept.removesuffix(".")
        model = model_of(kit)
        model.script |= {
            "DigestAnswer": digest("personal:ann"),
            "ProposalAnswer": proposal(create(f"Ann's {quote.removeprefix('My ')}.", 1, quote)),
            "VerdictAnswer": {"objections": []},
        }
        kit.summarize(scope=ANN, close=True)
        (memory,) = kit.memories(scope=ANN)
        assert PLACEHOLDER.search(memory.content)
        (found,) = kit.trace(memory.memory_id, scope=ANN).quotes
        assert found.message.text[found.start : found.end] == quote
        assert model.calls
        assert [call for call in model.calls if MAIL in call.text] == []


def test_a_value_has_one_placeholder_wherever_it_comes_in_and_a_question_finds_it(kit: MemoryKit) -> None:
    """Who has the same address, or changed it, is worth remembering; which address it is need not be."""
    kit.add_messages([said(f"Mail me: {MAIL}", thread="one")], scope=ANN)
    kit.add_messages([said(f"Send it to {MAIL.upper()} please.", thread="two")], scope=ANN)
    kit.add_messages([said("Send it to zzbob@example.org please.", thread="three")], scope=ANN)
    here, there, other = (PLACEHOLDER.findall(text) for text in texts(kit))
    assert here == there != other
    assert [each.thread for each in kit.sources.retrieve_message(scope=ANN, key_word=MAIL)] == ["one", "two"]
    found = kit.recall(f"Who gave {MAIL}?", scope=ANN, depth="messages").messages
    assert {hit.record_id for hit in found if here[0][1] in hit.text} == {
        each.message_id for each in kit.sources.retrieve_message(scope=ANN, limit=10) if here[0][1] in each.text
    }


def test_a_thread_that_is_given_again_is_known(kit: MemoryKit) -> None:
    """Middleware gives the whole thread after each turn: were it held against what is kept, all of it would be new."""
    turn = [HumanMessage(f"My phone is {PHONE}.", id="h1"), AIMessage(f"{PHONE}, noted.", id="h2")]
    assert kit.capture(turn, scope=ANN).added == 2
    again = kit.capture([*turn, HumanMessage("Thanks.", id="h3")], scope=ANN)
    assert (again.added, again.known, again.revised) == (1, 2, 0)
    kit.add_messages([said(f"My card: {CARD}", message_id="m1")], scope=ANN)
    assert kit.add_messages([said(f"My card: {CARD}", message_id="m1")], scope=ANN).known == 1
    kit.remember_self(f"My mail is {MAIL}.", scope=ANN)
    kit.remember_self(f"My mail is {MAIL}.", scope=ANN)
    assert len([each for each in kit.memories(scope=ANN) if each.kind == "profile" and each.importance == 0.9]) == 1


def test_another_home_gives_other_placeholders_and_the_same_home_the_same_ones(tmp_path: Path) -> None:
    """Who has two exports must not see who is who; who opens a home again must not take everybody for new."""
    given = []
    for home in ("one", "two", "one"):
        with open_home(tmp_path / home) as kit:
            kit.add_messages([said(f"My mail is {MAIL}.")], scope=ANN)
            given.append(texts(kit)[-1])
    assert given[0] != given[1]
    assert given[0] == given[2]


def test_an_attachment_keeps_its_bytes_and_what_is_read_of_it_is_clean(kit: MemoryKit) -> None:
    """Bytes cannot be cleaned; the text of a file goes where all text goes."""
    data = f"{'x ' * 9_995}{MAIL}".encode()  # where reading ends, it would be cut in two
    file = {
        "type": "file",
        "base64": base64.b64encode(data).decode(),
        "mime_type": "text/plain",
        "filename": f"{MAIL}.txt",
    }
    kit.add_messages([said("").evolve(content=[file], message_id="m1")], scope=ANN)
    (message,) = kit.sources.retrieve_message(scope=ANN, limit=1)
    (attachment,) = message.attachments
    assert kit.sources.attachment(attachment.sha256, scope=ANN) == data
    assert MAIL not in attachment.name
    assert "zzann" not in message.to_json()
    (reading,) = message.readings
    assert reading.text.startswith("x x")
    assert "zzann" not in reading.text


def test_what_a_model_reads_in_a_picture_is_clean(tmp_path: Path) -> None:
    """It sees the picture, as it must; what it says of it goes where all text goes."""
    script = {
        "DescribeAnswer": {"descriptions": [{"n": 1, "text": f"A business card: {MAIL}, {PHONE}"}]},
        "DigestAnswer": digest(),
    }
    home = tmp_path / "home"
    settings = Settings(home=home, redact=KINDS, perception=PerceptionPolicy(reads=frozenset({"image"})))
    with MemoryKit.open(settings=settings, model=ScriptedChatModel(script=script), embedder=None) as kit:
        kit.add_messages([said("").evolve(content=["Look at this card.", image()])], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        (message,) = kit.sources.retrieve_message(scope=ANN, limit=1)
        assert "A business card: <email-" in message.readings[0].text
    assert look(home, VALUES, []) == []


def test_figures_of_a_model_stay_numbers(kit: MemoryKit) -> None:
    """A count of tokens stands under a key that names tokens: a thread with a placeholder there is no thread any more."""
    usage = {"input_tokens": 1_234_567, "output_tokens": 7, "total_tokens": 1_234_574}
    heard = AIMessage("Yes.", id="h1", usage_metadata=usage, response_metadata={"token_usage": dict(usage)})
    kit.capture([heard], scope=ANN)
    (message,) = kit.sources.retrieve_message(scope=ANN, limit=1)
    assert "1234567" in message.to_json()
    assert not PLACEHOLDER.search(message.to_json())


def test_a_very_long_text_is_searched_to_its_end() -> None:
    """A page that a tool brings may be of any length: it is neither lost nor let through."""
    redactor = Redactor(KINDS, b"a key")
    page = "\n".join(f"{MAIL} wrote line {number}." for number in range(LONGEST // 30))
    assert len(page) > LONGEST
    cleaned = redactor.text(page)
    assert MAIL not in cleaned
    assert cleaned.count("\n") == page.count("\n")
    assert cleaned == redactor.text(cleaned)


def test_a_placeholder_is_never_cut_in_two() -> None:
    """Half of one stands where a value stood; replaced once more, and again, it would never end."""
    redactor = Redactor(KINDS, b"a key")
    cleaned = redactor.text("\n".join(f"password: {PASSWORD}{number}" for number in range(1_500)))
    assert PASSWORD not in cleaned
    for shift in range(0, 40, 3):
        assert redactor.text("." * shift + cleaned) == "." * shift + cleaned


@pytest.mark.parametrize("filler", ["word ", "x", "一"])
def test_wherever_a_long_text_would_be_cut_a_value_is_whole(filler: str) -> None:
    """An end in the midst of a card leaves two numbers that nobody knows for a card."""
    redactor = Redactor(KINDS, b"a key")
    for before in range(9_960, 10_020, 7):
        text = f"{(filler * before)[:before]} {CARD} {filler * 3_000}"
        assert "1111" not in redactor.text(text), before


def test_json_within_a_text_stays_json_and_is_searched_as_what_it_says() -> None:
    """Results of tools are JSON, mostly: after an escape of a line's end, an address begins with a letter too many."""
    redactor = Redactor(KINDS, b"a key")
    said = {"to": [MAIL], "text": f"a\n{MAIL}\n{KEY}\t{PHONE}\n{CARD}", "phone": 351912345678, "password": PASSWORD}
    told = redactor.text(json.dumps(said))
    assert [value for value in (*VALUES, "351912345678") if value in told] == []
    assert json.loads(told)["to"] == [redactor.text(MAIL)]
    assert json.loads(told)["text"].count("\n") == 3
    twice = redactor.text(json.dumps({"inner": json.dumps(said)}))
    assert json.loads(json.loads(twice)["inner"])["to"] == [redactor.text(MAIL)]
    part = json.dumps(said)[:-20]
    assert [value for value in VALUES[:-1] if value in redactor.text(f"It says: {part}")] == []
    assert redactor.text(r"See C:\new\table.txt") == r"See C:\new\table.txt"


def test_what_is_nested_or_named_without_end_is_neither_lost_nor_let_through(kit: MemoryKit) -> None:
    """A model writes what it likes into the arguments of a tool; the turn must be recorded all the same."""
    for number, levels in enumerate((60, 800)):
        deep: Any = MAIL
        for _ in range(levels // 2):
            deep = {"a": [deep]}
        call: ToolCall = {"name": "mail", "args": {"to": deep, "k" * 50_000: ["x"] * 50}, "id": "c1"}
        assert kit.capture([AIMessage("", tool_calls=[call], id=f"h{number}")], scope=ANN).added == 1
    some, all_of_it = (message.to_json() for message in kit.sources.retrieve_message(scope=ANN, limit=2))
    assert "<email-" in some
    assert MAIL not in some + all_of_it
    assert Redactor(KINDS, b"a key").json({1: MAIL, ("a",): 2})[1].startswith("<email-")


def test_ids_stay_so_that_a_host_knows_its_messages_again(tmp_path: Path) -> None:
    """LangGraph's ids are UUIDs, which are accounts to a careful eye; by them a history is known, and a call's result."""
    settings = Settings.model_validate({"home": tmp_path, "redact": "all"})
    use = {"type": "tool_use", "id": f"toolu_{uuid4()}", "name": "mail", "input": {"to": MAIL}}
    given = [
        HumanMessage(f"Write to {MAIL}", id=str(uuid4())),
        AIMessage([use], id=f"run--{uuid4()}", tool_calls=[{"name": "mail", "args": {"to": MAIL}, "id": use["id"]}]),
    ]
    with MemoryKit.open(settings=settings, model=None, embedder=None) as kit:
        kit.capture(given, scope=ANN)
        history = MessageHistory(kit, scope=ANN, thread="main").messages
        assert [each.id for each in history] == [each.id for each in given]
        _, answer = history
        assert isinstance(answer, AIMessage)
        assert [call["id"] for call in answer.tool_calls] == [use["id"]]
        assert str(use["id"]) in str(answer.content)
        again = kit.capture([*history, HumanMessage("Thanks.", id="h3")], scope=ANN)
        assert (again.added, again.known, again.revised) == (1, 2, 0)


def test_a_key_announces_its_value_whatever_else_stands_in_it() -> None:
    """A number alone is anybody's; the phone of somebody is not, whether the name of the field is clean or not."""
    redactor = Redactor(KINDS, b"a key")
    cleaned = redactor.json({f"{MAIL}, phone": "912 345 678", "eos_token_id": 128001, "tokenizer": "o200k_base"})
    assert "912" not in str(cleaned)
    assert (cleaned["eos_token_id"], cleaned["tokenizer"]) == (128001, "o200k_base")
    assert redactor.json(cleaned) == cleaned


def test_filters_find_what_was_redacted(kit: MemoryKit) -> None:
    """Who wrote a value looks for it by that value, and need not know what is kept in its place."""
    store = MemoryStore(kit, scope=ANN)
    store.put(("notes",), "one", {"mail": MAIL})
    assert [item.key for item in store.search(("notes",), filter={"mail": MAIL})] == ["one"]
    kit.save("mail", "Ann has a new address.", scope=ANN, tags=[MAIL])
    assert kit.recall("address", scope=ANN, only=RecallFilter(tags=(MAIL,))).memories


def test_a_skill_is_checked_by_what_is_true_of_it(kit: MemoryKit) -> None:
    """Its conditions are kept clean; were facts not, no run of it would ever succeed. Slots are no secrets."""
    step = SkillStep(name="send", step_pattern=StepPattern(tool="mail", args={"token": "Bearer {token}"}))
    sent = Condition(field="send.to", value=MAIL)
    skill = Skill(name="telling", task="Tell Ann", steps=(step,), preconditions=(sent,), postconditions=(sent,))
    memory = kit.skills.add(skill, scope=ANN)
    facts = {"send": {"to": MAIL}}
    assert kit.skills.choose("Tell Ann", scope=ANN, facts=facts).skill.name == "telling"
    assert kit.skills.record_outcome(memory.memory_id, scope=ANN, facts=facts).successes == 1
    assert kit.skills.plan(memory.memory_id, scope=ANN)[0].args == {"token": "Bearer {token}"}


def test_a_call_that_was_heard_is_the_call_that_a_message_asks_for(kit: MemoryKit) -> None:
    """What is expected of a call with these arguments rests on both; they are compared by a digest."""
    kit.tools.record("mail", scope=ANN, args={"to": MAIL}, call_id="c0", ok=False, result="error: no such address")
    sent = [called("mail", "c1", to=MAIL), returned("c1", "error: no such address", ok=False, minutes=1)]
    kit.add_messages(sent, scope=ANN)
    kit.summarize(scope=ANN, close=True)
    assert [each.calls for each in kit.tools.stats(scope=ANN)] == [2]
    calls = kit.context.parts().archive.tool_calls([ANN.partition()], last=10)
    assert len({call.digest for call in calls}) == 1
    assert kit.tools.predict("mail", scope=ANN, args={"to": MAIL}) > kit.tools.predict(
        "mail", scope=ANN, args={"to": 1}
    )


def test_what_an_agent_has_in_mind_is_clean_too(kit: MemoryKit) -> None:
    """It is never stored; but it stands in the context, which goes to a provider."""
    kit.working.sense(f"Ann's password: {PASSWORD}", scope=ANN, attention=1.0)
    context = kit.recall("What does Ann type?", scope=ANN, task="main").context
    assert "password" in context
    assert PASSWORD not in context


def test_only_what_was_asked_for_is_replaced() -> None:
    """A coding agent needs its paths and hosts; a bank's needs no card."""
    text = f"Mail {MAIL} about /srv/data/report.pdf and card {CARD}."
    told = Redactor(frozenset({"card"}), b"a key").text(text)
    assert told.startswith(f"Mail {MAIL} about /srv/data/report.pdf and card <card-")
    assert Redactor(frozenset(), b"a key").text(text) == text


def test_kinds_come_from_the_environment_and_unknown_ones_are_refused() -> None:
    """A kind that is misspelt and silently left out is found out by a regulator."""
    assert Settings.from_env({"REMEGRAPH_REDACT": "email, phone"}).redact == {"email", "phone"}
    assert "card" in Settings.from_env({"REMEGRAPH_REDACT": "all"}).redact
    for wrong in ("e-mail", "name", ""):
        with pytest.raises(ValidationError):
            Settings.model_validate({"redact": wrong})


def test_without_its_package_a_kit_that_looks_for_phones_does_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found out at the first message, it would have cost that message, or the number would have come in."""
    personal._phonenumbers.cache_clear()
    monkeypatch.setitem(sys.modules, "phonenumbers", None)
    with pytest.raises(MissingExtraError, match="phonenumbers"):
        MemoryKit.open(settings=Settings(home=tmp_path, redact=frozenset({"phone"})), model=None, embedder=None)
    with MemoryKit.open(settings=Settings(home=tmp_path, redact=frozenset({"email"})), model=None, embedder=None):
        pass


@given(st.text(st.characters()), st.sampled_from(VALUES))
def test_what_is_clean_is_found_clean_and_stays_as_it_is(text: str, value: str) -> None:
    """A message that goes through twice, by an import or a copy, must not change once more."""
    redactor = Redactor(KINDS, b"a key")
    cleaned = redactor.text(f"{text} {value} {text}")
    assert redactor.message(Message(role="tool", content=[{text: text}], time=NOON, extra={text: value})).extra
    assert redactor.text(cleaned) == cleaned
    assert findings(cleaned, kinds=KINDS) == ()


def test_of_generated_sentences_no_more_is_left_in_a_home_than_the_recognisers_leave(
    tmp_path: Path, figure: Figure
) -> None:
    """The figures of the recognisers hold for what lies on the disk, if nothing goes round them."""
    data = [each for each in sentences(seed=7, n=150) if each.planted]
    messages = [Message(role="user", content=each.text, time=NOON) for each in data]
    settings = Settings.model_validate({"home": tmp_path, "redact": "all"})
    with MemoryKit.open(settings=settings, model=None, embedder=None) as kit:
        kit.add_messages(messages, scope=ANN)
        kit.summarize(scope=ANN, close=True)
    planted = {each.value for sentence in data for each in sentence.planted if each.type in BARS}
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    left = [value for value in planted if any(value.encode() in data for data in files)]
    assert len(left) <= 0.02 * len(planted), left
    figure("bar 24: left in a home that redacts", f"{len(left)} of {len(planted)} values, seed 7")
