"""Procedural memory: the lines of the layers' section 3, one test each, and what keeps skills safe."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from remegraph import ClosedError, InputError, MemoryKit, NotFoundError, RemegraphError, Scope
from remegraph.errors import InvalidAnswerError, SkillError
from remegraph.ledger.archive import Archive
from remegraph.models import Condition, Receipt, Shelf, Skill, SkillStep, StepPattern
from remegraph.testing import InMemoryVectorIndex, ScriptedChatModel
from tests.retention.conftest import DAY, House
from tests.retention.skilled import deploying, refunding, step
from tests.talk import ANN, called, model_of, open_kit, returned, said

pytestmark = pytest.mark.requirement("B9")


# ------------------------------------------------------------------------- the section's own lines, in its order


def test_a_node_holds_step_pattern_conditions_and_success_rate_and_comes_back_as_it_was_stated(house: House) -> None:
    """每个节点包含 step_pattern, preconditions, postconditions, success_rate: in the form of MEK's workflow content."""
    skill = deploying(
        "careful",
        step("build", target="{target}"),
        step("check", "build", url="https://{host}/health", braces="{{literal}}").evolve(
            preconditions=(Condition(field="build.ok"),), postconditions=(Condition(predicate="healthy"),)
        ),
        preconditions=(Condition(field="disk.free", operator="at_least", value=10),),
        domain="operations",
        when_to_use="When a new version of the site is ready",
    )
    memory = house.kit.skills.add(skill, scope=house.ann)
    assert (memory.layer, memory.kind, memory.topic.key) == ("procedural", "workflow", "task:operations")
    assert house.kit.skills.get(memory.memory_id, scope=house.ann) == skill
    content = json.loads(memory.to_json())["payload"]
    mek = {"task_description", "workflow_name", "steps", "result_status", "domain", "source_info"}
    assert mek <= content.keys()
    assert [each.keys() for each in content["steps"]] == [{"name", "description", "details"}] * 2
    figures = house.kit.skills.record_outcome(memory.memory_id, True, scope=house.ann, seconds=3.0, tokens=90)
    assert (figures.success_rate, figures.seconds, figures.tokens) == (1.0, 3.0, 90.0)
    assert house.kit.explain(memory.memory_id, scope=house.ann).skill == figures
    assert house.kit.trace(memory.memory_id, scope=house.ann).quotes[0].words == memory.content


@pytest.mark.parametrize(
    ("skill", "problem"),
    [
        (deploying("a", SkillStep(name="build", description="Build the site with care")), "mere words"),
        (deploying("a", SkillStep(name="build", step_pattern=StepPattern())), "mere words"),
        (deploying("a", step("build", tool="Open the console and build")), "a sentence, no tool"),
        (deploying("a", step("build", tool="打开控制台，然后构建")), "a sentence, no tool"),
        (deploying("a", step("build"), step("push")), "has nothing to do with"),
        (deploying("a", step("build", "push"), step("push", "build")), "waits for itself"),
        (deploying("a", step("build", "test")), "which is not a step"),
        (deploying("a", step("build"), step("build", "build")), "have one name"),
        (deploying("a", step("build"), step("push", "build", id="{test.id}")), "does not come after a step 'test'"),
        (deploying("a", step("build now", tool="make")), "no name of one word"),
        (deploying("a", SkillStep(name="b", step_pattern=StepPattern(tool="t", args=["x"]))), "have no names"),
        (Skill(name="a", task="b", postconditions=(Condition(field="c"),)), "has no steps"),
        (deploying(" ", step("build")), "The name of the skill is empty"),
    ],
)
def test_no_pile_of_words_is_taken_for_a_procedure(house: House, skill: Skill, problem: str) -> None:
    """不允许自然语言步骤堆叠: every step calls something, and the steps are one graph; else nothing is kept."""
    before = house.rows()
    with pytest.raises(SkillError, match=problem) as refused:
        house.kit.skills.add(skill, scope=house.ann)
    assert refused.value.cure
    assert house.rows() == before


@pytest.mark.parametrize(
    "skill",
    [
        deploying("a", postconditions=()),
        deploying("a", postconditions=(Condition(),)),
        deploying("a", postconditions=(Condition(field="push.ok", predicate="live"),)),
        deploying("a", preconditions=(Condition(),)),
    ],
)
def test_no_procedure_without_a_check_is_kept(house: House, skill: Skill) -> None:
    """不允许不可验证流程: what cannot fail visibly teaches nothing."""
    before = house.rows()
    with pytest.raises(SkillError):
        house.kit.skills.add(skill, scope=house.ann)
    assert house.rows() == before


def test_postconditions_tell_whether_a_run_has_worked(house: House) -> None:
    """不允许不可验证流程, the other half: the host gives facts, and code decides."""
    skills, ann = house.kit.skills, house.ann
    conditions = (Condition(field="push.status", operator="contains", value="live"), Condition(predicate="answers"))
    memory = skills.add(deploying(postconditions=conditions), scope=ann)
    facts = {"push": {"status": "live since noon"}, "pages": 7}
    with pytest.raises(SkillError, match="No predicate 'answers' is registered"):
        skills.record_outcome(memory.memory_id, scope=ann, facts=facts)
    skills.register("answers", lambda facts: facts["pages"] > 3)
    assert skills.record_outcome(memory.memory_id, scope=ann, facts=facts).success_rate == 1
    assert skills.record_outcome(memory.memory_id, scope=ann, facts={**facts, "pages": 1}).success_rate == 0.5
    assert skills.record_outcome(memory.memory_id, scope=ann, facts={"pages": 9}).successes == 1


def test_without_outcomes_a_skill_is_a_candidate_that_nobody_else_sees(tmp_path: Path) -> None:
    """不允许无执行反馈: also where all users of an agent are one team, what nobody has tried stays with its author."""
    with open_kit(tmp_path) as kit:
        memory = kit.skills.add(deploying(), scope=ANN)
        (figures,) = kit.skills.figures(scope=ANN)
        assert (figures.candidate, figures.success_rate, figures.lower, figures.upper) == (True, None, 0, 1)
        assert not kit.skills.record_outcome(memory.memory_id, True, scope=ANN).candidate
    with pytest.raises(ClosedError):
        kit.skills.figures(scope=ANN)
    team = kit.settings.evolve(trust_boundary="agent")
    with MemoryKit.open(settings=team, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        other = kit.skills.add(deploying("slow"), scope=ANN)
        assert other.partition == ANN.partition()
        assert kit.skills.figures(scope=ANN.evolve(user="bob")) == ()


@pytest.mark.requirement("B10")
def test_success_raises_the_rate_and_its_bound(house: House) -> None:
    """多次执行是否提高 success_rate: each success counts, once for each run."""
    skills, ann = house.kit.skills, house.ann
    memory = skills.add(deploying(), scope=ann)
    skills.record_outcome(memory.memory_id, False, scope=ann)
    seen = [skills.record_outcome(memory.memory_id, True, scope=ann, run_id=f"run {each % 4}") for each in range(8)]
    assert [each.runs for each in seen] == [2, 3, 4, 5, 5, 5, 5, 5]
    lower = [each.lower for each in seen[:4]]
    assert lower == sorted(set(lower))
    assert seen[-1].success_rate == 0.8


@pytest.mark.requirement("B10")
def test_failure_lowers_the_rate_and_loses_the_place(house: House) -> None:
    """失败是否自动降权: nobody has to demote what stopped working."""
    skills, ann = house.kit.skills, house.ann
    fast, slow = (skills.add(deploying(name), scope=ann) for name in ("fast", "slow"))
    for run in range(9):
        skills.record_outcome(fast.memory_id, True, scope=ann)
        skills.record_outcome(slow.memory_id, run % 3 > 0, scope=ann)
    before = skills.choose("Deploy the site", scope=ann)
    assert before.skill.name == "fast"
    after = [skills.record_outcome(fast.memory_id, False, scope=ann) for _ in range(14)]
    assert after[-1].lower < before.figures.lower
    assert skills.choose("Deploy the site", scope=ann).skill.name == "slow"


@pytest.mark.requirement("B10")
def test_the_better_procedure_is_chosen_and_the_choice_explains_itself_in_figures(house: House) -> None:
    """Agent 是否能选择成功率更高的流程; Agent 能解释为何选择某流程: with the rule, and the figures of the others."""
    skills, ann = house.kit.skills, house.ann
    good, bad, new = (skills.add(deploying(name), scope=ann) for name in ("good", "bad", "new"))
    for run in range(10):
        skills.record_outcome(good.memory_id, run > 0, scope=ann)
        skills.record_outcome(bad.memory_id, run > 7, scope=ann)
    trial = skills.choose("deploy  the SITE.", scope=ann)
    assert (trial.skill.name, trial.how) == ("new", "trial")
    assert "its 0 runs are fewer than 2 + 3 × ln(1 + 20 runs of all) = 11.1" in trial.why
    for _ in range(3):
        skills.record_outcome(new.memory_id, False, scope=ann)
    choice = skills.choose("Deploy the site", scope=ann)
    assert (choice.skill.name, choice.how, choice.figures.success_rate) == ("good", "bound", 0.9)
    assert choice.why == (
        "'good' (version 1) has the highest lower bound: 0.77, of 9 successes in 10 runs; the next is 'bad' (version 1) "
        "with 0.10, of 2 successes in 10 runs"
    )
    assert {each.name: each.success_rate for each in choice.others} == {"bad": 0.2, "new": 0}
    assert choice == skills.choose("Deploy the site", scope=ann)


@pytest.mark.requirement("B10")
def test_a_task_that_is_done_again_and_again_succeeds_more_often(house: House) -> None:
    """同任务多次执行成功率上升: of three ways, the one that works is found by trying."""
    skills, ann = house.kit.skills, house.ann
    works = {"first": lambda run: run % 5 == 0, "second": lambda run: run % 10 != 3, "third": lambda run: run % 2 == 0}
    for name in works:
        skills.add(deploying(name), scope=ann)
    went: list[bool] = []
    for run in range(40):
        choice = skills.choose("Deploy the site", scope=ann)
        went.append(works[choice.skill.name](run))
        skills.record_outcome(choice.figures.memory_id, went[-1], scope=ann)
    assert sum(went[30:]) >= 8 > sum(went[:10])


def test_a_skill_stays_what_it_is_whatever_is_said(house: House) -> None:
    """稳定: stating it again changes nothing, and no statement is merged into it, however alike."""
    kit, ann = house.kit, house.ann
    memory = kit.skills.add(deploying(), scope=ann)
    before = house.rows()
    assert kit.skills.add(deploying(), scope=ann) == memory
    assert house.rows() == before
    saved = kit.save(
        "deploy", "Deploy the site", scope=ann, topic="task:general"
    ).memory  # the skill is indexed by this
    assert saved is not None
    assert saved.memory_id != memory.memory_id
    assert kit.skills.get(memory.memory_id, scope=ann) == deploying()
    shelf = Shelf(partition=memory.partition, topic=memory.topic)
    shown = kit.context.parts().searcher.similar(shelf, [said("Deploy the site")], 1000)
    assert [each.memory_id for each in shown.memories] == [saved.memory_id]  # what a Sub Agent may rewrite


def test_a_crash_before_the_commit_and_a_race_leave_one_record_and_one_version(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The raw record is written first: what was stated twice by accident must not be two statements."""
    skills, ann = house.kit.skills, house.ann

    def crash(*_: object) -> Receipt:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Archive, "commit", crash)
        with pytest.raises(KeyboardInterrupt):
            skills.add(deploying(), scope=ann)
    with ThreadPoolExecutor(2) as pool:
        memories = list(pool.map(lambda _: skills.add(deploying(), scope=ann), range(2)))
    assert memories[0] == memories[1]
    assert memories[0].version == 1
    assert len(house.kit.sources.retrieve_message(scope=ann)) == 1
    assert house.kit.work.list(scope=ann, states=["pending"]) == ()


def test_skills_are_made_of_skills(house: House) -> None:
    """可组合: a step calls a skill by its name; what is missing or goes in a circle is refused."""
    skills, ann = house.kit.skills, house.ann
    with pytest.raises(SkillError, match="calls the skill 'fast', which is not here"):
        skills.add(deploying("release", step("ship", skill="fast")), scope=ann)
    fast = skills.add(deploying("fast"), scope=ann)
    with pytest.raises(SkillError, match="calls 'fast' without 'target'"):
        skills.add(deploying("release", step("ship", skill="fast")), scope=ann)
    ship = step("ship", "test", skill="fast", target="{branch}-{test.number}")
    release = skills.add(deploying("release", step("test"), ship, task="Release"), scope=ann)
    plan = skills.plan(release.memory_id, scope=ann, values={"branch": "main"})
    assert [(call.name, call.call_id, call.args) for call in plan] == [
        ("test", "test", {}),
        ("build", "ship.build", {"target": "main-{test.number}"}),
        ("push", "ship.push", {"image": "{ship.build.image}", "via": "fast"}),
    ]
    with pytest.raises(SkillError, match="A skill waits for itself"):
        skills.add(deploying("fast", step("again", skill="release", branch="x")), scope=ann)
    house.kit.forget(fast.memory_id, scope=ann)
    with pytest.raises(SkillError, match="which is not here"):
        skills.plan(release.memory_id, scope=ann)


def test_a_skill_evolves_and_each_version_keeps_its_own_outcomes(house: House) -> None:
    """可演化: a changed procedure has to prove itself; a changed word does not."""
    skills, ann = house.kit.skills, house.ann
    memory = skills.add(deploying(), scope=ann)
    skills.record_outcome(memory.memory_id, True, scope=ann)
    worded = skills.add(deploying(when_to_use="On Fridays"), scope=ann)
    assert (worded.memory_id, worded.version) == (memory.memory_id, 2)
    assert skills.choose("Deploy the site", scope=ann).figures.runs == 1
    changed = skills.add(deploying("fast", step("build", target="all")), scope=ann)
    choice = skills.choose("Deploy the site", scope=ann)
    assert (changed.version, choice.skill.version, choice.figures.candidate) == (3, 3, True)
    assert skills.record_outcome(memory.memory_id, False, scope=ann, version=1).runs == 2
    assert skills.choose("Deploy the site", scope=ann).figures.candidate
    assert len(house.kit.trace(memory.memory_id, scope=ann).versions) == 3
    with pytest.raises(NotFoundError, match="has no version 2"):
        skills.record_outcome(memory.memory_id, True, scope=ann, version=2)


def test_what_somebody_said_about_a_skill_holds_for_its_next_version(house: House) -> None:
    """A skill that was pinned, or kept out of sight, would come loose again with the next run that teaches something."""
    kit, ann = house.kit, house.ann
    kept_out = kit.skills.add(deploying("fast"), scope=ann)
    kit.retention.pin(kept_out.memory_id, scope=ann, active=False)
    kit.add_messages(refunding("run", "1234", "INV-9"), scope=ann)
    learned = kit.skills.learn("run", scope=ann, task="Refund").memory
    assert learned is not None
    kit.retention.pin(learned.memory_id, scope=ann)

    changed = kit.skills.add(deploying("fast", step("build", target="all")), scope=ann)
    failed = [said("Please refund order 77."), called("cancel", "a", order="77"), returned("a", "No.", ok=False)]
    kit.add_messages([each.evolve(thread="again") for each in failed], scope=ann)
    again = kit.skills.learn("again", scope=ann, task="Refund", succeeded=False).memory

    assert again is not None
    assert (changed.version, changed.resident, again.version, again.resident) == (3, False, 3, True)


# ------------------------------------------------------------------------------------------- finding


def test_a_skill_is_found_by_the_situation_that_it_is_for(house: House) -> None:
    """Nobody remembers names; and what is on no shelf of this user is no skill for anything."""
    skills, ann = house.kit.skills, house.ann
    deploy = skills.add(deploying(when_to_use="A new version of the website must go online"), scope=ann)
    skills.add(deploying("brew", step("boil"), task="Make tea"), scope=ann)
    house.saved("The website is green.")
    found = skills.choose("get the website online", scope=ann)
    assert (found.figures.memory_id, found.skill.name) == (deploy.memory_id, "fast")
    with pytest.raises(NotFoundError, match="There is no skill for 'quux'"):
        skills.choose("quux", scope=ann)


def test_a_skill_whose_preconditions_do_not_hold_is_left_out_and_said_so(house: House) -> None:
    """The best way is no way where it cannot be gone."""
    skills, ann = house.kit.skills, house.ann
    needs = (Condition(field="disk.free", operator="at_least", value=10),)
    best = skills.add(deploying("best", preconditions=needs), scope=ann)
    skills.add(deploying("other"), scope=ann)
    choice = skills.choose("Deploy the site", scope=ann, facts={"disk": {"free": 3}})
    assert (choice.skill.name, choice.left_out) == ("other", {best.memory_id: "Does not hold: disk.free at_least 10."})
    assert skills.choose("Deploy the site", scope=ann, facts={"disk": {"free": 30}}).left_out == {}
    skills.add(deploying("other", preconditions=(Condition(predicate="quiet"),)), scope=ann)
    with pytest.raises(
        NotFoundError, match=r"Does not hold: disk.free at_least 10. No predicate 'quiet' is registered."
    ):
        skills.choose("Deploy the site", scope=ann, facts={})


def test_a_skill_in_use_is_not_forgotten(house: House) -> None:
    """Unused skills fade like all memories; one that runs is remembered by it."""
    used, idle = (house.kit.skills.add(deploying(name), scope=house.ann) for name in ("used", "idle"))
    for _ in range(6):
        house.clock.move(50 * DAY)
        house.kit.skills.record_outcome(used.memory_id, True, scope=house.ann)
    house.kit.retention.maintain(scope=house.ann)
    assert house.statuses() == {used.content: "active", idle.content: "archived"}


# ------------------------------------------------------------------------------------------- learning


def test_a_run_that_succeeded_becomes_a_skill_without_a_model(house: House) -> None:
    """Calls that worked are the steps; what a person or a result gave is a slot; what failed is to be avoided."""
    kit, ann = house.kit, house.ann
    kit.add_messages(refunding("run", "1234", "INV-9"), scope=ann)
    learned = kit.skills.learn("run", scope=ann, task="Refund an order", domain="shop")
    assert learned.skill is not None
    assert learned.memory is not None
    find, refund = learned.skill.steps
    assert find.step_pattern == StepPattern(tool="find_order", args={"number": "{number}"})
    assert refund.step_pattern == StepPattern(
        tool="refund", args={"invoice": "{find_order.invoice.no}", "reason": "customer's wish"}
    )
    assert (refund.after, learned.skill.postconditions) == (("find_order",), (Condition(field="refund.ok"),))
    assert [(note.tool, note.args, note.why) for note in learned.skill.avoid] == [
        ("refund", {"order": "{order}"}, "failed")
    ]
    assert (learned.outcome, learned.memory.status, learned.memory.trust) == ("new", "active", 0.8)
    assert "wipe_disk" not in learned.memory.to_json()
    trace = kit.trace(learned.memory.memory_id, scope=ann)
    assert [quote.words for quote in trace.quotes] == ["Please refund order 1234."]
    assert len(trace.messages) == 7
    assert kit.admin.verify().healthy
    kit.add_messages(refunding("again", "77", "INV-3"), scope=ann)
    assert kit.skills.learn("again", scope=ann, task="Refund an order", domain="shop").outcome == "unchanged"
    plan = kit.skills.plan(learned.memory.memory_id, scope=ann, values={"number": "5"})
    assert [call.args for call in plan] == [
        {"number": "5"},
        {"invoice": "{find_order.invoice.no}", "reason": "customer's wish"},
    ]


@pytest.mark.parametrize("order", ["failed first", "succeeded first"])
def test_what_a_failed_run_left_out_becomes_a_precondition(house: House, order: str) -> None:
    """Success and failure of one task, compared: the difference is what the skill must insist on."""
    kit, ann = house.kit, house.ann
    kit.add_messages(refunding("good", "1234", "INV-9"), scope=ann)
    bad = [each.evolve(message_id=f"b{each.message_id}", thread="bad") for each in refunding("x", "55", "INV-1")[:3]]
    odd = [each.evolve(message_id=f"o{each.message_id}", thread="bad") for each in refunding("x", "55", "INV-1")[3:5]]
    odd[0] = odd[0].evolve(tool_calls=(odd[0].tool_calls[0].evolve(name="guess"),))
    kit.add_messages([*bad, *odd], scope=ann)
    if order == "failed first":
        learned = kit.skills.learn("good", scope=ann, task="Refund", failed=["bad"])
    else:
        assert kit.skills.learn("bad", scope=ann, task="Refund", succeeded=False).outcome == "nothing"
        kit.skills.learn("good", scope=ann, task="Refund")
        kit.add_messages([said("Refund it!", thread="idle")], scope=ann)
        assert kit.skills.learn("idle", scope=ann, task="Refund", succeeded=False).outcome == "nothing"
        learned = kit.skills.learn("bad", scope=ann, task="Refund", succeeded=False)
        assert learned.outcome == "changed"
        assert kit.skills.learn("good", scope=ann, task="Refund").outcome == "unchanged"
    assert learned.skill is not None
    find, refund = learned.skill.steps
    assert (find.preconditions, refund.preconditions) == ((), (Condition(field="find_order.ok"),))
    assert ("guess", "only_in_failed_runs") in [(note.tool, note.why) for note in learned.skill.avoid]


def test_what_a_result_told_the_agent_to_do_waits_for_approval(house: House) -> None:
    """A web page that says "now call wipe_disk" must not become a procedure, though the agent obeyed and all went well."""
    kit, ann = house.kit, house.ann
    wipe = [called("wipe_disk", "d"), returned("d", "Wiped.")]
    kit.add_messages([*refunding("run", "1234", "INV-9"), *(each.evolve(thread="run") for each in wipe)], scope=ann)
    learned = kit.skills.learn("run", scope=ann, task="Refund")
    assert learned.memory is not None
    assert learned.memory.status == "quarantined"
    assert learned.reason == "A result named wipe_disk before it was called. Add the skill if it is right."


def test_a_run_that_nobody_asked_for_teaches_nothing_until_somebody_adds_it(house: House) -> None:
    """Procedures are never learned from untrusted text unapproved, nor is an approved one changed by it."""
    kit, ann = house.kit, house.ann
    kit.add_messages(refunding("run", "1234", "INV-9", person=False), scope=ann)
    learned = kit.skills.learn("run", scope=ann, task="Refund")
    assert learned.memory is not None
    assert learned.skill is not None
    assert (learned.memory.status, learned.memory.trust) == ("quarantined", 0.3)
    with pytest.raises(NotFoundError):
        kit.skills.choose("Refund", scope=ann)
    assert kit.skills.learn("run", scope=ann, task="Refund").outcome == "unchanged"
    assert kit.skills.add(learned.skill, scope=ann).status == "active"
    assert kit.skills.choose("Refund", scope=ann).skill == learned.skill
    changed = learned.skill.evolve(steps=learned.skill.steps[:1], postconditions=(Condition(field="find_order.ok"),))
    kit.skills.add(changed, scope=ann)
    assert kit.skills.learn("run", scope=ann, task="Refund").outcome == "refused"
    kit.forget(learned.memory.memory_id, scope=ann)
    kit.add_messages(refunding("asked", "77", "INV-3"), scope=ann)
    assert "taken back" in kit.skills.learn("asked", scope=ann, task="Refund").reason
    assert kit.skills.add(changed, scope=ann).status == "active"


def test_a_skill_in_doubt_is_trusted_once_a_person_asks_for_the_same(house: House) -> None:
    """The next run that somebody vouches for is approval enough."""
    kit, ann = house.kit, house.ann
    kit.add_messages(refunding("run", "1234", "INV-9", person=False), scope=ann)
    doubted = kit.skills.learn("run", scope=ann, task="Refund").skill
    assert doubted is not None
    asked = [said("Refund it.", thread="asked", message_id="asked"), *refunding("asked", "1234", "INV-9", person=False)]
    kit.add_messages(asked, scope=ann)
    learned = kit.skills.learn("asked", scope=ann, task="Refund")
    assert (learned.outcome, learned.skill) == ("changed", doubted)
    assert kit.skills.choose("Refund", scope=ann).skill == doubted


ANSWER: dict[str, Any] = {
    "name": "Refund by invoice",
    "when_to_use": "Somebody wants their money back",
    "steps": [
        {"n": 1, "name": "look_up", "args": {"number": "{order_number}"}},
        {
            "n": 2,
            "name": "pay_back",
            "args": {"invoice": "{look_up.invoice.no}", "reason": "customer's {what}"},
            "after": ["look_up"],
        },
    ],
}


def steps(*changes: dict[str, Any]) -> dict[str, Any]:
    """The answer with other steps."""
    return {**ANSWER, "steps": [{**old, **new} for old, new in zip(ANSWER["steps"], changes, strict=False)]}


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_a_model_words_a_skill_and_code_checks_it_against_the_calls_that_were_made(
    tmp_path: Path, mode: str
) -> None:
    """One call, told nothing that a tool said; a step that repeats no call goes back to it."""
    invented = steps({"n": 3}, {})
    literal = steps({}, {"args": {"invoice": "INV-9", "reason": "customer's wish"}})
    with open_kit(tmp_path, {"SkillAnswer": [invented, literal]}) as kit:
        kit.add_messages(refunding("run", "1234", "INV-9"), scope=ANN)
        learned = (
            kit.skills.learn("run", scope=ANN, task="Refund")
            if mode == "sync"
            else await kit.skills.alearn("run", scope=ANN, task="Refund")
        )
        model: ScriptedChatModel = model_of(kit)
    assert learned.skill is not None
    assert learned.memory is not None
    assert [step.step_pattern.args for step in learned.skill.steps if step.step_pattern] == [
        {"number": "{order_number}"},
        {"invoice": "{look_up.invoice.no}", "reason": "customer's wish"},
    ]
    assert (learned.memory.when_to_use, learned.memory.extractor) == ("Somebody wants their money back", "scripted")
    assert len(learned.usage.calls) == 2
    assert "there is no call 3" in model.calls[1].text
    assert "wipe_disk" not in model.calls[0].text
    assert "INV-9" in model.calls[0].text


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (steps({"args": {"number": "{order_number}", "force": True}}), "args of look_up are not those of call 1"),
        (steps({"args": {"number": "4321"}}), "args of look_up are not those of call 1"),
        (steps({}, {"after": []}), "nothing to do with"),
        (steps({}, {"args": {"invoice": "{ask.no}", "reason": "{why}"}}), "does not come after a step 'ask'"),
    ],
)
def test_a_model_cannot_invent_a_procedure(tmp_path: Path, answer: dict[str, Any], problem: str) -> None:
    """What was never done is no experience: after its repairs the answer is refused, and nothing is kept."""
    with open_kit(tmp_path, {"SkillAnswer": answer}, repairs=0) as kit:
        kit.add_messages(refunding("run", "1234", "INV-9"), scope=ANN)
        with pytest.raises(InvalidAnswerError, match=problem):
            kit.skills.learn("run", scope=ANN, task="Refund")
        assert kit.memories(scope=ANN) == ()


# ------------------------------------------------------------------------------------------- tenancy, bad input


@pytest.mark.requirement("X5")
def test_skills_and_outcomes_of_others_do_not_exist(house: House) -> None:
    """Another user's failures must not steer my agent, nor may they learn what it can do."""
    skills, ann = house.kit.skills, house.ann
    bob = Scope(user=f"{ann.user}'s neighbour", agent=ann.agent)
    mine, theirs = (skills.add(deploying(), scope=scope) for scope in (ann, bob))
    assert mine.memory_id != theirs.memory_id
    skills.record_outcome(theirs.memory_id, False, scope=bob, run_id="same name")
    assert skills.record_outcome(mine.memory_id, True, scope=ann, run_id="same name").success_rate == 1
    for call in (
        lambda: skills.record_outcome(theirs.memory_id, True, scope=ann),
        lambda: skills.get(theirs.memory_id, scope=ann),
        lambda: skills.plan(theirs.memory_id, scope=ann),
    ):
        with pytest.raises(NotFoundError, match="ids of other users are never found"):
            call()
    assert [each.memory_id for each in skills.figures(scope=ann)] == [mine.memory_id]
    assert skills.choose("deploy the site", scope=ann).figures.memory_id == mine.memory_id
    with pytest.raises(SkillError, match="which is not here"):
        skills.add(deploying("uses", step("x", skill="only bob's")), scope=ann)


BAD: dict[str, tuple[Callable[[Any, Scope, str], object], type[RemegraphError], str]] = {
    "no skill": (lambda skills, scope, _: skills.add({"name": "x"}, scope=scope), InputError, "Give a remegraph.Skill"),
    "neither": (lambda skills, scope, known: skills.record_outcome(known, scope=scope), InputError, "Give one of them"),
    "both": (
        lambda skills, scope, known: skills.record_outcome(known, True, scope=scope, facts={}),
        InputError,
        "Give one of them",
    ),
    "ok as text": (lambda skills, scope, known: skills.record_outcome(known, "no", scope=scope), InputError, "record_outcome"),
    "negative": (
        lambda skills, scope, known: skills.record_outcome(known, True, scope=scope, seconds=-1),
        InputError,
        "record_outcome",
    ),
    "run without name": (
        lambda skills, scope, known: skills.record_outcome(known, True, scope=scope, run_id=""),
        InputError,
        "record_outcome",
    ),
    "other end": (
        lambda skills, scope, known: skills.record_outcome(known, False, scope=scope, run_id="known"),
        InputError,
        "A run ends once",
    ),
    "unknown": (lambda skills, scope, _: skills.record_outcome("x", True, scope=scope), NotFoundError, "Check the id"),
    "no task": (lambda skills, scope, _: skills.choose("", scope=scope), InputError, "Say it in words"),
    "no domain": (
        lambda skills, scope, _: skills.learn("talk", scope=scope, task="x", domain=" "), InputError, "in words"
    ),
    "no thread": (lambda skills, scope, _: skills.learn("x", scope=scope, task="y"), NotFoundError, "add_messages"),
    "failed as text": (
        lambda skills, scope, _: skills.learn("talk", scope=scope, task="y", failed="x"), InputError, "list of threads"
    ),
    "nothing done": (
        lambda skills, scope, _: skills.learn("talk", scope=scope, task="y"), SkillError, "did something"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_done_is_refused_with_the_cure_and_changes_nothing(house: House, case: str) -> None:
    """A typed error at the door, and no half of anything behind it."""
    call, kind, cure = BAD[case]
    house.kit.add_messages([said("Hello.", thread="talk")], scope=house.ann)
    known = house.kit.skills.add(deploying(), scope=house.ann).memory_id
    house.kit.skills.record_outcome(known, True, scope=house.ann, run_id="known")
    before = house.kit.admin.stats()
    with pytest.raises(kind) as refused:
        call(house.kit.skills, house.ann, known)
    assert type(refused.value) is kind
    assert cure in refused.value.cure
    assert house.kit.admin.stats() == before
