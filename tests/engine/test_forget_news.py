"""What else a person tells in the message that asks to forget: it stays, and is learned; what was to be gone is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from remegraph.engine.forget_phrases import asking_parts, requests
from tests.engine.test_forget_requests import readable
from tests.talk import ANN, create, digest, open_kit, proposal, replied, said

SECRET = "My locker combination is 4711."
ASKED = "Please forget that. By the way, I'm allergic to peanuts and I moved to Lyon."


def left(text: str, *before: str) -> str:
    """What of a message is still read once its request is withheld."""
    phrases = asking_parts(text, before)
    for phrase in phrases:
        assert phrase in text
        text = text.replace(phrase, "")
    return text.strip() if phrases else ""


@pytest.mark.parametrize("forget", [True, False])
def test_news_beside_a_request_is_learned_while_it_waits_and_after_it_is_decided(
    tmp_path: Path, *, forget: bool
) -> None:
    """An allergy that goes with somebody's locker combination may cost a life."""
    with open_kit(tmp_path) as kit:
        kit.add_messages([said(SECRET), said(ASKED, minutes=1, message_id="ask")], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        assert "4711" not in readable(kit)
        assert ["peanuts" in memory.content for memory in kit.memories(scope=ANN) if memory.live] == [True]

        kit.governance.decide("ask", forget=forget, scope=ANN)

        assert ("4711" in readable(kit)) is not forget
        assert "Lyon" in kit.recall("Where does Ann live?", scope=ANN).context
        assert ("Please forget that" in readable(kit)) is not forget


def test_a_model_that_learns_the_news_beside_a_request_has_not_said_that_it_was_none(tmp_path: Path) -> None:
    """It was asked to forget and to note at once: what it noted does not show again what it was to forget."""
    steps = {
        "VerdictAnswer": {"objections": []},
        "DigestAnswer": digest("personal:Ann"),
        "ProposalAnswer": proposal(create("Ann is allergic to peanuts.", 2, "I'm allergic to peanuts")),
    }
    with open_kit(tmp_path, steps, reviser="rules") as kit:
        kit.add_messages([said(SECRET), said(ASKED, minutes=1)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert "4711" not in readable(kit)
        assert [memory.content for memory in kit.memories(scope=ANN)] == ["Ann is allergic to peanuts."]
        assert "I moved to Lyon" in readable(kit)
        assert "forget that" not in readable(kit)


def test_what_the_agent_answers_to_request_and_news_stays_withheld(tmp_path: Path) -> None:
    """An answer to both may repeat either."""
    with open_kit(tmp_path) as kit:
        kit.add_messages([said(SECRET), said(ASKED, minutes=1), replied("4711 is gone.", minutes=2)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert "4711" not in readable(kit)
        assert "peanuts" in readable(kit)


@pytest.mark.parametrize(
    ("text", "news"),
    [
        ("Please forget that. By the way, I'm allergic to nuts.", "By the way, I'm allergic to nuts."),
        ("Forget what I just said. My daughter plays chess on Mondays.", "My daughter plays chess on Mondays."),
        ("Don't remember that, and note that I am vegan.", ", and note that I am vegan."),
        ("Never store that I have gout. I live in Graz.", "I live in Graz."),
        ("I live in Graz. Never store that I have gout.", "I live in Graz."),
        ("别记这个。另外，我下个月搬到成都。", "另外，我下个月搬到成都。"),
        ("请忘掉刚才那个，对了，我对花生过敏。", "，对了，我对花生过敏。"),
        ("別記這個。順便一提，我下週搬去台南。", "順便一提，我下週搬去台南。"),
        ("别记这个。还有，我女儿今年上小学了。", "还有，我女儿今年上小学了。"),
    ],
)
def test_sentences_and_marked_clauses_that_say_something_else_stay(text: str, news: str) -> None:
    """Around the request, of which the words before may be what it means, and those after rarely are."""
    assert left(text, "Greta is ill.") == news


@pytest.mark.parametrize(
    "text",
    [
        "The password is Steinpilz, it lies in the drawer. Forget that word.",
        "My SSN is on the card, forget that.",
        "Please forget that. It was my brother's idea.",
        "Please forget that. I mean the thing with Louise.",
        "Forget my PIN. And my affair with Tom.",
        "Please forget that and also that I hate Rolf.",
        "Forget that, please. My boss must not know.",
        "I lost the baby in March. Please forget about the pregnancy.",
        "Please forget that. Nobody should hear of my divorce.",
        "Don't save this. I steal from my boss.",
        "Oh dear! Please don't store this. I steal from my boss.",
        "Please forget that. I was drunk.",
        "Please forget that. We meet at the Ibis on Fridays.",
        "Forget my address. I live in Rose Lane.",
        "Forget everything about my health. I have asthma.",
        "忘掉我的地址。我住在玫瑰路。",
        "不要记录这些。我妈陪我去的。",
        "别记这个，还有我的工资。",
        "请忘掉刚才那个。我不想让别人知道。",
        "别记这个。他会生气的。",
        "别记这个，还有我出轨的事。",
    ],
)
def test_what_may_belong_to_the_request_goes_with_it(text: str) -> None:
    """In doubt it is withheld: a news item is told again, a secret is not taken back."""
    assert requests(text)
    assert left(text) == ""


def test_news_that_repeats_a_word_of_what_is_meant_goes_with_it() -> None:
    """Whatever is said of the same thing may say it."""
    assert left("Please forget that. I keep my locker at the pool.", SECRET) == ""
    assert left("Please forget that. My new number is 4812.", SECRET) == ""
    assert left("请忘掉刚才那个。我爸在医院。", "我跟爸爸打架。") == ""
    assert left("别记这个。我银行卡在抽屉里。", "我的银行卡密码是482913。") == ""


def test_words_before_a_request_stay_where_what_it_means_was_said_elsewhere() -> None:
    """They are not what it means, as that is known."""
    asked = "I work from Leeds on Tuesdays. Please forget the router password."
    assert left(asked, "Our router password is hunterGreen.") == "I work from Leeds on Tuesdays."
    assert left(asked) == ""


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("don't save that I beg you", True),
        ("please don't remember that i'm begging you", True),
        ("Never remember that Tom works nights.", False),
        ("Don't store that my brother gambles.", False),
        ("Please forget that Tom is ill.", False),
        ("please forget that token", True),
        ("forget that thing I said about Tom", True),
    ],
)
def test_what_a_request_points_at_is_told_from_a_clause_that_it_names(text: str, *, back: bool) -> None:
    """A "that" before a plea is what was said before; before a clause it only leads to it."""
    (found,) = requests(text)
    assert found.back is back


@pytest.mark.parametrize(
    ("told", "asked", "secret"),
    [
        ("My alarm PIN is 4711.", "Please forget my alarm PIN.", "4711"),
        ("My passport is X4471920.", "Please forget my passport X4471920.", "X4471920"),
        ("我的保险箱密码是482913。", "请把保险箱密码忘掉。", "482913"),
        ("我的護照號碼是310582244。", "請忘掉我的護照號碼。", "310582244"),
    ],
)
@pytest.mark.parametrize("learned", [True, False])
def test_what_a_request_names_is_forgotten_as_a_person_decides(
    tmp_path: Path, told: str, asked: str, secret: str, *, learned: bool
) -> None:
    """Settled without it, the request is over, and what was to be gone is shown for ever."""
    with open_kit(tmp_path) as kit:
        kit.add_messages([said(told), replied(f"{secret}, noted.", minutes=1)], scope=ANN)
        if learned:
            kit.summarize(scope=ANN, close=True)
        kit.add_messages([said("I like tea.", minutes=800), said(asked, minutes=801, message_id="ask")], scope=ANN)

        done = kit.governance.decide("ask", forget=True, scope=ANN)
        kit.add_messages([said("Hello again.", minutes=900, thread="later")], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert (done.found, len(done.memories)) == (True, int(learned))
        assert secret not in readable(kit)
        assert "tea" in readable(kit)


@pytest.mark.parametrize("asked", ["Please forget my divorce.", "Please forget my shoe size."])
def test_a_decision_says_that_nothing_was_found(tmp_path: Path, asked: str) -> None:
    """One word names too much, and what is worded otherwise is not found: whoever decides must know to look."""
    with open_kit(tmp_path) as kit:
        kit.add_messages([said("The divorce is over, and my shoes are big.")], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        kit.add_messages([said(asked, minutes=800, message_id="ask")], scope=ANN)

        done = kit.governance.decide("ask", forget=True, scope=ANN)

        assert (done.found, done.memories, done.messages) == (False, (), ("ask",))
        assert "divorce" in readable(kit)
        assert kit.governance.requests(scope=ANN) == ()


def test_what_is_firm_is_not_forgotten_for_a_request(tmp_path: Path) -> None:
    """An owner's rule outlives what is said in talk."""
    with open_kit(tmp_path) as kit:
        kit.save("rule", "Ask Ann for the alarm PIN before every shift.", scope=ANN, memory_class="policy")
        kit.add_messages([said("Please forget my alarm PIN.", message_id="ask")], scope=ANN)

        assert kit.governance.decide("ask", forget=True, scope=ANN).memories == ()
        assert [memory.status for memory in kit.memories(scope=ANN)] == ["active"]


def test_news_in_the_sentence_that_asks_is_no_name_of_what_it_means(tmp_path: Path) -> None:
    """Taken for one, what was just learned was forgotten as the request was decided."""
    with open_kit(tmp_path) as kit:
        asked = "Remove that from your notes; separately, I now drive a blue Skoda."
        kit.add_messages([said("I owe Viktor money."), said(asked, minutes=1, message_id="ask")], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert kit.governance.decide("ask", forget=True, scope=ANN).memories == ()
        assert "Skoda" in readable(kit)
        assert "Viktor" not in readable(kit)


def test_only_what_can_be_decided_is_listed(tmp_path: Path) -> None:
    """Answers and what is meant wait with their request, and have no decision of their own."""
    with open_kit(tmp_path) as kit:
        kit.add_messages([said(SECRET), said(ASKED, minutes=1), replied("It is gone.", minutes=2)], scope=ANN)

        (waiting,) = kit.governance.requests(scope=ANN)
        assert (waiting.message.text, len(waiting.words)) == (ASKED, 3)
        kit.governance.decide(waiting.message.message_id, forget=True, scope=ANN)
