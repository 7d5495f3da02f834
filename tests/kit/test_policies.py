"""Policies are rules: nothing replaces one that does not name it, whoever speaks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remegraph import ConflictError, InputError, Memory, MemoryKit, NotFoundError, Scope
from remegraph.kit import SaveOptions
from remegraph.models import ChangeSet, MemoryChange
from tests.talk import ANN, change, create, digest, open_kit, packed, proposal, said

QUOTE = "live in Porto now"
HOME = "ann:lives_in"


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """One kit; each test is a person of its own."""
    with open_kit(tmp_path_factory.mktemp("policies")) as opened:
        yield opened


@pytest.fixture
def ann(request: pytest.FixtureRequest) -> Scope:
    """Somebody whom nobody has met before."""
    return Scope(user=request.node.name, agent=f"agent of {request.node.name}")


def policy(kit: MemoryKit, scope: Scope, content: str = "Ann lives in Lisbon.", **fields: Any) -> Memory:
    memory = kit.save("home", content, scope=scope, memory_class="policy", **packed(fields)).memory
    assert memory is not None
    return memory


@pytest.mark.requirement("G3")
@pytest.mark.parametrize("by_model", [False, True])
def test_a_statement_replaces_a_policy_only_where_a_person_names_it(
    kit: MemoryKit, ann: Scope, *, by_model: bool
) -> None:
    """Who states something in passing must not do away with a rule that others rely on."""
    rule = policy(kit, ann, slot=HOME, value="Lisbon")
    refused = kit.save(
        "home", "Ann lives in Porto.", scope=ann, slot=HOME, value="Porto", options=SaveOptions(by_model=by_model)
    )
    assert (refused.outcome, refused.memory) == ("refused", None)
    assert f"contradicts memory {rule.memory_id}, a policy" in refused.reason
    assert kit.memories(scope=ann) == (rule,)

    done = kit.save("home", "Ann lives in Porto.", scope=ann, supersedes=[rule.memory_id])
    assert (done.outcome, done.superseded) == ("new", (rule.memory_id,))
    assert {memory.content: memory.status for memory in kit.memories(scope=ann)} == {
        "Ann lives in Porto.": "active",
        "Ann lives in Lisbon.": "superseded",
    }


@pytest.mark.requirement("G3")
def test_what_says_the_same_as_a_policy_in_other_words_is_kept_beside_it(kit: MemoryKit, ann: Scope) -> None:
    """A rule that grows by whatever is said to mean the same says in the end what nobody decided."""
    one = "Deploy on Mondays and Tuesdays only, when all of the tests have passed."
    other = "Deploy on Mondays and Tuesdays only, when all of the old tests have passed."
    elsewhere = Scope(user=f"not {ann.user}")
    days: dict[str, Any] = {"slot": "deploy:days", "value": "Mondays and Tuesdays"}
    assert [kit.save("days", text, scope=elsewhere, **days).outcome for text in (one, other)] == ["new", "merged"]

    rule = policy(kit, ann, one, **days)
    assert kit.save("days", other, scope=ann, **days).outcome == "new"
    assert rule in kit.memories(scope=ann)
    assert kit.save("home", one, scope=ann).outcome == "merged"


@pytest.mark.requirement("G3")
def test_what_is_named_is_replaced_whatever_it_says(kit: MemoryKit, ann: Scope) -> None:
    """Rules rarely parse: the person who replaces one says which."""
    old = [policy(kit, ann, f"Rule {number}: {words}.") for number, words in enumerate(("no meat", "no fish"))]
    names = [memory.memory_id for memory in old]
    done = kit.save("diet", "Everything is fine to eat.", scope=ann, supersedes=names)
    assert done.superseded == tuple(names)
    assert done.memory is not None
    assert done.memory.supersedes == tuple(names)
    with pytest.raises(NotFoundError, match=f"no live memory '{names[0]}'"):
        kit.save("diet", "No sugar.", scope=ann, supersedes=names)
    with pytest.raises(NotFoundError):
        kit.save("diet", "No sugar.", scope=Scope(user="somebody else"), supersedes=[done.memory.memory_id])
    again = kit.save("diet", "No salt.", scope=ann, supersedes=[done.memory.memory_id]).memory
    assert again is not None
    same = kit.save("diet", "No salt", scope=ann, supersedes=[policy(kit, ann, "No pepper.").memory_id])
    assert (same.outcome, same.reason) == (
        "refused",
        f"Memory {again.memory_id} says it already: it replaces nothing.",
    )


@pytest.mark.requirement("G3")
def test_confirming_a_memory_as_a_policy_makes_it_one(kit: MemoryKit, ann: Scope) -> None:
    """An editor who confirms what was learned expects it to stay; a later mention does not weaken it."""
    kit.save("diet", "Ann eats no meat.", scope=ann)
    assert policy(kit, ann, "Ann eats no meat.", enforcement_level="hard").enforcement_level == "hard"
    kit.save("diet", "Ann eats no meat.", scope=ann)
    (rule,) = kit.memories(scope=ann)
    assert (rule.memory_class, rule.enforcement_level, rule.merges) == ("policy", "hard", 2)


@pytest.mark.requirement("G3")
def test_without_a_model_conversations_leave_policies_as_they_are(kit: MemoryKit, ann: Scope) -> None:
    """What a user says otherwise is remembered beside the rule: only who names a rule takes it back."""
    rule = policy(kit, ann)
    kit.add_messages([said("I live in Porto.", name="Ann")], scope=ann)
    kit.summarize(scope=ann, close=True)
    assert rule in kit.memories(scope=ann)
    kit.save("home", "Ann lives in Lisbon.", scope=ann, topic="personal:Ann", memory_class="policy")
    kit.add_messages([said("I live in Faro.", name="Ann", minutes=900)], scope=ann)
    kit.summarize(scope=ann, close=True)
    on_shelf = kit.memories(scope=ann, topic="personal:Ann")
    assert [memory.status for memory in on_shelf if memory.memory_class == "policy"] == ["active"]


@pytest.mark.requirement("G3")
@pytest.mark.parametrize(
    ("operation", "left", "reason"),
    [
        (
            change("SUPERSEDE", "m1", 1, QUOTE, content="Ann lives in Porto.", slot="lives_in"),
            ["Ann lives in Porto."],
            "",
        ),
        (create("Ann lives in Porto.", 1, QUOTE), ["Ann lives in Porto."], ""),
        (create("Ann has Porto as her home.", 1, QUOTE, slot="lives_in"), ["Ann has Porto as her home."], ""),
        (change("REFINE", "m1", 1, QUOTE, content="Ann lives in Porto."), [], "leave it as it is"),
        (change("DELETE", "m1", 1, QUOTE), [], "leave it as it is"),
    ],
    ids=["supersede", "create", "create-in-slot", "refine", "delete"],
)
def test_no_operation_of_a_model_changes_a_policy(
    tmp_path: Path, operation: dict[str, Any], left: list[str], reason: str
) -> None:
    """A model that reads a conversation proposes; rules are not its to dispose of."""
    steps = {
        "DigestAnswer": digest("personal:ann"),
        "ProposalAnswer": proposal(operation),
        "VerdictAnswer": {"objections": []},
    }
    with open_kit(tmp_path, steps) as kit:
        rule = policy(kit, ANN, slot=HOME, value="Lisbon")
        kit.add_messages([said("I live in Porto now, in the old town.", name="ann")], scope=ANN)
        report = kit.summarize(scope=ANN, close=True)
        beside = [memory for memory in kit.memories(scope=ANN) if memory != rule]
        assert rule in kit.memories(scope=ANN)
        assert [memory.content for memory in beside] == left
        assert reason in "".join(work.reason for work in report.work)
        in_its_place = {"slot", "id"} & operation.keys()
        for memory in beside if in_its_place else ():  # that the words alone say otherwise, nothing reads
            (link,) = kit.trace(memory.memory_id, scope=ANN).links
            assert (link.type, link.target_id) == ("may_contradict", rule.memory_id)


@pytest.mark.requirement("G3", "X6")
def test_the_ledger_refuses_it_once_more(kit: MemoryKit, ann: Scope) -> None:
    """Whatever a thinker let slip, the one door for change looks again."""
    rule = policy(kit, ann)
    new = rule.evolve(memory_id="new of it", content="Ann lives in Porto.", supersedes=(rule.memory_id,))
    created = MemoryChange(
        memory=new.evolve(memory_class="episodic", enforcement_level=None), expected_version=0, action="create"
    )
    learned = ChangeSet(operation_id="o", actor="x", recorded_at=rule.recorded_at, extracted=True, changes=(created,))
    with pytest.raises(ConflictError, match="knowledge or a policy"):
        kit.context.parts().archive.commit(learned)
    assert kit.memories(scope=ann) == (rule,)


@pytest.mark.requirement("G3")
def test_every_memory_has_a_class_a_place_and_a_summary(kit: MemoryKit, ann: Scope) -> None:
    """What no surface asked for is filled in, so that no reader has to guess."""
    here = ann.evolve(project="atlas")
    kit.add_messages([said("I hate mushrooms.")], scope=here)
    kit.summarize(scope=here, close=True)
    own = kit.remember_self("I am Remy.", scope=here, memory_class="policy", enforcement_level="hard")
    long = "First we measure twice. " + "Then we cut with care and with a very sharp saw. " * 6
    saved = kit.save(
        "carpentry", long, scope=here, options=SaveOptions(summary="", canonical_topic=" Wood ： Cutting ")
    ).memory
    short = kit.save("tea", "Ann likes tea.", scope=ann, options=SaveOptions(summary="Tea!")).memory
    assert saved is not None
    assert short is not None
    (learned,) = kit.memories(scope=here, topic="personal:Ann")
    assert (learned.summary, learned.memory_class, learned.applies_to) == (
        "Ann: I hate mushrooms.",
        "episodic",
        "project:atlas",
    )
    assert (saved.applies_to, saved.canonical_topic, saved.enforcement_level) == ("project:atlas", "wood:cutting", None)
    assert saved.summary == long[: long.index("saw. ") + 4] + (" Then we cut with care and with a very sharp saw." * 3)
    assert (short.summary, short.applies_to, short.user_weight, short.is_core) == ("Tea!", "global", 5.0, False)
    assert (own.applies_to, own.enforcement_level, own.user_weight, own.is_core) == ("global", "hard", 9.0, True)


@pytest.mark.requirement("G3")
@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"enforcement_level": "hard"}, "enforcement_level is for policies"),
        ({"memory_class": "law"}, "no memory_class 'law'"),
        ({"memory_class": "policy", "enforcement_level": "firm"}, "no enforcement_level 'firm'"),
        ({"applies_to": "everywhere"}, "applies_to is 'everywhere'"),
        ({"applies_to": "lang: "}, "applies_to is 'lang: '"),
        ({"applies_to": "project:zeus"}, "project='zeus'"),
        ({"applies_to": "global", "by_model": True}, "A model speaks for all projects"),
        ({"supersedes": ["x"], "by_model": True}, "A model names what it replaces"),
        ({"supersedes": "x"}, "supersedes is one text"),
        ({"summary": "word " * 51}, "The summary has 51 words"),
        ({"summary": "字" * 51}, "The summary has 51 words"),
    ],
)
def test_what_does_not_go_together_is_refused_at_the_door(
    kit: MemoryKit, ann: Scope, fields: dict[str, Any], problem: str
) -> None:
    """A rule that is not what its author meant is worse than none."""
    with pytest.raises(InputError, match=problem):
        kit.save("tea", "Ann likes tea.", scope=ann.evolve(project="atlas"), **packed(fields))
    assert kit.memories(scope=ann.evolve(project="atlas")) == ()
    if "enforcement_level" in fields:
        with pytest.raises(InputError):
            kit.remember_self("I am strict.", scope=ann, **fields)
