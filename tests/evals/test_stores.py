"""Public data is read as its authors mean it: a parser that loses evidence would change every figure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evals._measuring import measure
from evals._peers import PEERS, Kit
from evals._stores import stores
from remegraph.importers.messages import to_messages
from remegraph.ledger.index.embedders import HashedEmbedder

LOCOMO = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "Look!", "blip_caption": "a red kite"},
            {"speaker": "Bob", "dia_id": "D1:2", "text": "Lovely. I moved to Lisbon."},
        ],
        "session_10_date_time": "12:05 am on 1 June, 2023",
        "session_10": [{"speaker": "Ann", "dia_id": "D10:1", "text": "I sold the kite."}],
        "session_2_date_time": "9:00 am on 9 May, 2023",
        "session_2": [{"speaker": "Bob", "dia_id": "D2:1", "text": "Hello again."}],
    },
    "qa": [
        {"question": "What happened to the kite?", "evidence": ["D1:1; D10:1"], "category": 1, "answer": "sold"},
        {"question": "When did Bob move?", "evidence": ["D1:2", "D9:9"], "category": 2, "answer": 2023},
        {
            "question": "Why was the kite sold by Bob?",
            "evidence": ["D10:1"],
            "category": 5,
            "adversarial_answer": "money",
        },
        {"question": "Who is Zoe?", "evidence": ["D"], "category": 3, "answer": "a friend"},
    ],
}

LONGMEMEVAL = {
    "question_id": "q1",
    "question_type": "multi-session",
    "question": "Which kite?",
    "question_date": "2023/06/01 (Thu) 08:00",
    "answer": "the red one",
    "answer_session_ids": ["s2"],
    "haystack_session_ids": ["s1", "s2"],
    "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 23:40"],
    "haystack_sessions": [
        [{"role": "user", "content": "Hello."}],
        [{"role": "user", "content": "My kite is red."}, {"role": "assistant", "content": "Nice."}],
    ],
}


def written(path: Path, *samples: Any) -> Path:
    path.write_text(json.dumps(samples), encoding="utf-8")
    return path


def test_locomo_is_read_from_its_own_file(tmp_path: Path) -> None:
    """Sessions in order of their numbers, images by their captions, and all evidence that exists, however written."""
    (store,) = stores(written(tmp_path / "locomo10.json", LOCOMO))
    assert [message["id"] for message in store["messages"]] == ["D1:1", "D1:2", "D2:1", "D10:1"]
    first, *_, last = store["messages"]
    assert (first["name"], first["role"], first["content"]) == ("Ann", "user", "Look! [shares an image: a red kite]")
    assert (first["time"], last["time"]) == ("2023-05-08T13:56:00+00:00", "2023-06-01T00:05:00+00:00")
    assert [(each["gold"], each["category"]) for each in store["questions"]] == [
        (["D1:1", "D10:1"], "multi-hop"),
        (["D1:2"], "temporal"),
        (["D10:1"], "adversarial"),
    ]
    assert [each.get("answer") for each in store["questions"]] == ["sold", "2023", None]


def test_longmemeval_is_read_from_its_own_file(tmp_path: Path) -> None:
    """One history for each question, judged by sessions; what has no answer is no question of retrieval."""
    unanswered = {**LONGMEMEVAL, "question_id": "q2_abs"}
    (store,) = stores(written(tmp_path / "longmemeval_s.json", LONGMEMEVAL, unanswered))
    assert store["gold_unit"] == "thread"
    assert [(each["id"], each["thread"]) for each in store["messages"]] == [("0:0", "s1"), ("1:0", "s2"), ("1:1", "s2")]
    assert store["messages"][1]["time"] == "2023-05-21T23:40:00+00:00"
    time = "2023-06-01T08:00:00+00:00"
    asked = {"text": "Which kite?", "gold": ["s2"], "category": "multi-session", "answer": "the red one", "time": time}
    assert store["questions"] == [asked]


def test_both_are_asked_as_our_own_form_is(tmp_path: Path) -> None:
    """Whoever has the public files needs no converter to check our figures."""
    for name, sample in (("locomo10.json", LOCOMO), ("longmemeval_s.json", LONGMEMEVAL)):
        (store,) = stores(written(tmp_path / name, sample))
        rows = measure(name, store, PEERS["BM25"].make, HashedEmbedder(64), store["questions"])
        assert {row.values["R@5"] for row in rows} == {1}


def called(trial: int, tool: str, args: Mapping[str, Any], result: str, *, ok: bool = True) -> dict[str, Any]:
    return {
        "tool": tool,
        "args": json.dumps(args),
        "result": result,
        "ok": ok,
        "task": 3,
        "trial": trial,
        "reward": 1.0,
    }


def test_tool_calls_are_told_as_calls_and_results_and_asked_about_by_rule(tmp_path: Path) -> None:
    """An agent's own work is recalled as it really is recorded; a rule, not we, says what answers."""
    user = {"name": {"first_name": "Mia"}, "email": "mia@example.com", "reservations": ["R1"]}
    calls = [
        called(0, "get_user_details", {"user_id": "mia_1"}, json.dumps(user)),
        called(0, "get_user_details", {"user_id": "mia_1"}, json.dumps(user)),
        called(
            0, "update_reservation_flights", {"reservation_id": "R1", "cabin": "economy"}, "Error: no seats", ok=False
        ),
        called(1, "cancel_reservation", {"reservation_id": "R2"}, json.dumps({"user_id": "mia_1"})),
    ]
    path = tmp_path / "calls.jsonl"
    path.write_text("\n".join(map(json.dumps, calls)), encoding="utf-8")
    first, second = stores(path)
    rows = [row for each in (first, second) for row in measure("", each, Kit, HashedEmbedder(64), each["questions"])]
    assert {row.values["R@10"] for row in rows} == {1}
    asked, answered, *_ = to_messages(first["messages"], thread="main", default_time=datetime.now(UTC), timezone=None)
    assert (asked.role, asked.tool_calls[0].name, asked.tool_calls[0].args) == (
        "assistant", "get_user_details", {"user_id": "mia_1"},
    )  # fmt: skip
    assert (answered.role, answered.tool_call_id, answered.ok) == ("tool", asked.tool_calls[0].call_id, True)
    assert answered.text == json.dumps(user)
    gold = {each["text"]: (each["gold"], each.get("category")) for each in first["questions"]}
    assert gold == {
        "Where does the user mia_1 live?": (["0 answered", "1 answered"], "argument"),
        "How can mia_1 pay?": (["0 answered", "1 answered"], "argument"),
        "Which account has the email address mia@example.com?": (["0 answered", "1 answered"], "result"),
        "Why could the flights of R1 not be changed?": (["2 answered"], "failure"),
    }
    assert {each["text"] for each in second["questions"]} == {
        "Did we cancel R2?", "Which reservations of mia_1 were cancelled?",
    }  # fmt: skip
