"""Public data is read as its authors mean it: a parser that loses evidence would change every figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evals import recall
from evals._stores import stores

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
        {"question": "What happened to the kite?", "evidence": ["D1:1; D10:1"], "category": 1},
        {"question": "When did Bob move?", "evidence": ["D1:2", "D9:9"], "category": 2},
        {"question": "Who is Zoe?", "evidence": ["D"], "category": 5},
    ],
}

LONGMEMEVAL = {
    "question_id": "q1",
    "question_type": "multi-session",
    "question": "Which kite?",
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
    ]


def test_longmemeval_is_read_from_its_own_file(tmp_path: Path) -> None:
    """One history for each question, judged by sessions; what has no answer is no question of retrieval."""
    unanswered = {**LONGMEMEVAL, "question_id": "q2_abs"}
    (store,) = stores(written(tmp_path / "longmemeval_s.json", LONGMEMEVAL, unanswered))
    assert store["gold_unit"] == "thread"
    assert [(each["id"], each["thread"]) for each in store["messages"]] == [("0:0", "s1"), ("1:0", "s2"), ("1:1", "s2")]
    assert store["messages"][1]["time"] == "2023-05-21T23:40:00+00:00"
    assert store["questions"] == [{"text": "Which kite?", "gold": ["s2"], "category": "multi-session"}]


def test_both_are_asked_as_our_own_form_is(tmp_path: Path) -> None:
    """Whoever has the public files needs no converter to check our figures."""
    for name, sample in (("locomo10.json", LOCOMO), ("longmemeval_s.json", LONGMEMEVAL)):
        assert recall.evaluate(written(tmp_path / name, sample), recall.blend_ranker, ks=[5]).all()
