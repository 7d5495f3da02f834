"""From the single case to the rule, without a model."""

from __future__ import annotations

from typing import Any

import pytest

from remegraph.mek.extraction import invented
from remegraph.mek.generalization import as_slots, generalized, has_substance, prose, reworded, title_of
from remegraph.mek.items import knowledge_id, short
from remegraph.models import KNOWLEDGE_FORMS, Kind

CONTENTS: dict[Kind, dict[str, Any]] = {
    "profile": {
        "entity_name": "<name-1>",
        "entity_type": "user",
        "attributes": {"likes": ["strong coffee"], "lives_in": ["Bergen"], "statements": ["<name-1>: I skip lunch."]},
        "relations": [{"target_entity": "<name-2>", "relation_type": "married_to"}],
    },
    "semantic": {
        "concept_name": "cache",
        "definition": "A cold cache slows <host-1> down. Its password is <password-1>.",
        "properties": {"size": 3, "misses": 0, "shared": False, "owner": "<email-1>"},
        "relations": [],
    },
    "episode": {
        "event_summary": "On 3 May 2024 <name-1> restarted the queue twice before it drained.",
        "timestamp": "2024-05-03T10:00:00+00:00",
        "location": "Bergen",
        "participants": ["<name-1>"],
        "causal_chain": {"precedent": "m1", "consequence": ""},
        "learnings": "Drain a queue before a restart.",
    },
    "workflow": {
        "task_description": "Deploy for <name-1>",
        "workflow_name": "careful",
        "steps": [{"name": "push", "description": "Tell <name-1>.", "details": {"to": "<email-1>"}}],
        "result_status": "success",
        "domain": "deploying",
        "source_info": {"source_type": "stated", "session_id": "s", "source_agent": "remy"},
        "version": 3,
    },
}


@pytest.mark.requirement("K7")
def test_each_kind_becomes_the_knowledge_of_its_form() -> None:
    """The forms of the protocol, and nothing in them of who, when and where."""
    made = {kind: generalized(kind, content, "en") for kind, content in CONTENTS.items()}
    assert made["profile"] == {
        "entity_type": "user",
        "generalized_attributes": {"likes": ["strong coffee"], "statements": ["I skip lunch."]},
        "source_domain": "general",
    }
    assert made["semantic"] == {
        "concept_name": "cache",
        "generalized_properties": {
            "size": 3,
            "misses": 0,
            "shared": False,
            "definition": "A cold cache slows a host down.",
        },
        "domain": "general",
    }
    assert made["episode"] == {
        "event_pattern": "At some point someone restarted the queue twice before it drained.",
        "generalized_causal_chain": {"precedent_pattern": "", "consequence_pattern": ""},
        "generalized_learnings": "Drain a queue before a restart.",
        "domain": "general",
    }
    assert made["workflow"]["task_description"] == "Deploy for someone"
    assert not {"source_info", "version"} & made["workflow"].keys()
    for kind, content in made.items():
        KNOWLEDGE_FORMS[kind].model_validate(content)


def test_what_concerns_nobody_else_stays_behind_however_deep_it_stands() -> None:
    """Attributes have parts: an employer's name is no less private inside of "job"."""
    attributes = {"job": {"employer": "Hafen AG", "hours": "long"}, "pets": [{"name": "Rex", "kind": "dog"}], "age": 41}
    made = generalized("profile", CONTENTS["profile"] | {"attributes": attributes}, "en")
    assert made["generalized_attributes"] == {"job": {"hours": "long"}, "pets": [{"kind": "dog"}]}


def test_chinese_is_generalised_in_chinese() -> None:
    """What stands for a name must read on in the language around it."""
    told = CONTENTS["episode"] | {
        "event_summary": "2024年5月3日<name-1>重启了队列。密码是<password-1>。",
        "learnings": "",
    }
    assert generalized("episode", told, "zh")["event_pattern"] == "某时某人重启了队列。"


def test_what_says_nothing_in_general_is_told() -> None:
    """A sentence that was all about somebody leaves only stand-ins, which nobody can use."""
    assert has_substance("episode", generalized("episode", CONTENTS["episode"], "en"), "en")
    hollow = generalized(
        "profile", CONTENTS["profile"] | {"attributes": {"statements": ["<name-1> called <name-2>."]}}, "en"
    )
    assert not has_substance("profile", hollow, "en")


def test_only_sentences_are_reworded() -> None:
    """A model may say things in other words, and changes no name, step, figure or condition."""
    made = generalized("workflow", CONTENTS["workflow"], "en")
    assert prose("workflow", made) == {"task_description": "Deploy for someone"}
    changed = reworded(made, {"task_description": "Deploy", "workflow_name": "mine"})
    assert changed == made | {"task_description": "Deploy", "workflow_name": "mine"}
    profile = generalized("profile", CONTENTS["profile"], "en")
    fields = prose("profile", profile)
    assert set(fields) == {"generalized_attributes.likes[0]", "generalized_attributes.statements[0]"}
    assert reworded(profile, dict.fromkeys(fields, "x"))["generalized_attributes"] == {
        "likes": ["x"],
        "statements": ["x"],
    }


def test_what_was_taken_out_of_arguments_is_a_slot() -> None:
    """The next agent fills in its own path or address; a text that is no placeholder stays."""
    assert as_slots({"to": ["<email-1>", "a <b>"], "n": 3, "born": "<birth-date-2>"}) == {
        "to": ["{email_1}", "a <b>"],
        "n": 3,
        "born": "{birth_date_2}",
    }


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("Warm the cache with 3 requests.", ""),
        ("Warm the cache with 4 requests.", "4"),
        ("Warm the cache as Zoe does.", "Zoe"),
        ("Warm the cache, see https://evil.example/x.", "https://evil.example/x."),
        ("Mail a@b.example.", "a@b.example."),
        ("先预热缓存，请联系张伟先生。", "张伟先生"),
    ],
)
def test_what_is_new_in_a_models_words_is_seen(text: str, new: str) -> None:
    """A rule with an invented figure, name or address would be believed by every agent that absorbs it."""
    assert invented([text], ["Warm the cache with 3 requests before traffic.", "先预热缓存。"]) == new


def test_the_same_knowledge_has_the_same_id_and_a_short_title() -> None:
    """Whoever shares it again, it is known again; a title fits on a line."""
    assert knowledge_id("semantic", {"a": 1, "b": 2}) == knowledge_id("semantic", {"b": 2, "a": 1})
    assert knowledge_id("semantic", {"a": 1}) != knowledge_id("profile", {"a": 1})
    assert title_of("semantic", {"concept_name": "cache"}) == "cache"
    assert short("word " * 40).endswith("word…")
    assert len(short("字" * 200)) == 80
