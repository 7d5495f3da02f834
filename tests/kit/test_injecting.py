"""What an agent has before it at a turn: rules, what applies here, and what bears on the words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from remegraph import BudgetExceededError, InputError, Memory, MemoryKit, NotFoundError, Scope
from remegraph.adapters import MemoryStore, memory_tools
from remegraph.engine.frame import short_id
from remegraph.models import ChangeSet, Depth, MemoryChange, RecallMode, Workspace
from tests.talk import NOON, open_kit, packed, said

MODES: tuple[RecallMode, ...] = ("exact", "semantic", "temporal", "associative", "hybrid")


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """One kit; each test is a person of its own."""
    with open_kit(tmp_path_factory.mktemp("injecting")) as opened:
        yield opened


@pytest.fixture
def ann(request: pytest.FixtureRequest) -> Scope:
    """Somebody whom nobody has met before."""
    return Scope(user=request.node.name, agent=f"agent of {request.node.name}")


def save(kit: MemoryKit, scope: Scope, content: str, **fields: Any) -> Memory:
    memory = kit.save("note", content, scope=scope, **packed(fields)).memory
    assert memory is not None
    return memory


def texts(kit: MemoryKit, scope: Scope, text: str = "Hello.", **options: Any) -> list[tuple[str, str]]:
    """What is given, with its layer."""
    found = kit.inject(text, scope=scope, **options)
    return [(each.layer, each.hit.text) for each in found.shown]


@pytest.mark.requirement("G1")
def test_layers_come_in_order_and_the_weightiest_rules_first(kit: MemoryKit, ann: Scope) -> None:
    """What always holds is read first; what was merely found, last."""
    here = ann.evolve(project="atlas")
    kit.remember_self("I am Remy.", scope=here)
    save(kit, here, "Never deploy on Fridays.", importance=1, memory_class="policy", enforcement_level="hard")
    save(kit, here, "Atlas keeps its data in Lisbon.", importance=0.6)
    save(kit, here, "Review each change to Atlas.", memory_class="policy", importance=0.1)
    save(kit, here, "Four spaces are one indent.", applies_to="lang:Python", importance=0.2)
    save(kit, ann, "Ann drinks green tea.")

    assert texts(kit, here) == [
        ("core", "Never deploy on Fridays."),
        ("core", "I am Remy."),
        ("scope", "Review each change to Atlas."),
        ("scope", "Atlas keeps its data in Lisbon."),
    ]
    found = kit.inject("Which tea did I say I drink?", scope=here, workspace=Workspace(languages=("python",)))
    assert [each.layer for each in found.shown] == ["core", "core", "scope", "scope", "scope", "query"]
    assert found.shown[-1].hit.text == "Ann drinks green tea."
    assert [trigger.kind for trigger in found.triggers] == ["past"]
    assert "rule hard] Never deploy on Fridays." in found.context
    assert found.context.startswith("<memory note=")
    assert all(short_id(memory_id) in found.context for memory_id in found.ids)
    assert 0 < found.tokens <= found.budget == 2000
    assert [each.hit.text for each in kit.rules.list(scope=here)] == [text for _, text in texts(kit, here)]


@pytest.mark.requirement("G2")
def test_memory_is_searched_only_where_the_words_call_for_it(kit: MemoryKit, ann: Scope) -> None:
    """At most turns nothing of the past is needed, and nothing is paid for it."""
    save(kit, ann, "Atlas runs in Lisbon.", topic="task:Atlas")
    save(kit, ann, "Marta leads the reviews.")
    for text, kinds in (
        ("Translate this into French.", []),
        ("Is atlas down?", ["entity"]),
        ("Please write to Marta.", ["entity"]),
        ("Please write to Nobody.", []),
        ("Where should we run it?", ["decision"]),
    ):
        found = kit.inject(text, scope=ann)
        assert [trigger.kind for trigger in found.triggers] == kinds, text
        assert bool(found.shown) == bool(kinds), text
    turns = [turn for turn in range(1, 11) if kit.inject("Atlantic.", scope=ann, turn=turn).triggers]
    assert turns == [5, 10]
    always = kit.inject("Tell me what runs.", scope=ann, always=True)
    assert ([trigger.kind for trigger in always.triggers], len(always.shown)) == (["asked"], 2)
    repeated = kit.inject("Tell me what runs.", scope=ann, always=True, without=always.ids)
    assert repeated.shown == (), "asked again, it brings what is not at hand yet"


@pytest.mark.requirement("G1", "G9")
def test_caps_budget_and_report(kit: MemoryKit, ann: Scope) -> None:
    """Who writes eleven core rules, or long ones, is told what became of them."""
    here = ann.evolve(project="atlas")
    words = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda omega".split()
    for number, word in enumerate(words):
        save(kit, here, f"Mind {word}.", importance=0.9 + number / 1000)
    for word in words[:7]:
        save(kit, here, f"Of {word}. " + f"{word} {word}s {word}ed. " * 60)
    found = kit.inject("Hello.", scope=here, budget=1700)
    core = [each.hit.text for each in found.shown if each.layer == "core"]
    assert core == [f"Mind {word}." for word in words[:1:-1]]
    assert [each.shortened for each in found.shown if each.layer == "scope"] == [False, False, False, False, True]
    assert list(found.left_out.values()) == ["cap"] * 4
    assert found.tokens <= 1700
    with pytest.raises(BudgetExceededError, match="The core rules have more than 120 tokens"):
        kit.inject("Hello.", scope=here, budget=120)


@pytest.mark.requirement("G1")
def test_the_working_directory_tells_project_and_language(kit: MemoryKit, ann: Scope, tmp_path: Path) -> None:
    """An agent in a terminal should not have to be told where it stands."""
    (tmp_path / "zeus").mkdir()
    (tmp_path / "zeus" / "go.mod").touch()
    save(kit, ann.evolve(project="zeus"), "Zeus has no database.")
    save(kit, ann, "Handle each error.", applies_to="lang:Go", importance=0.95)
    save(kit, ann, "Use type hints.", applies_to="lang:python", importance=0.95)
    here = texts(kit, ann, workspace=tmp_path / "zeus")
    assert here == [("core", "Handle each error."), ("scope", "Zeus has no database.")]
    assert texts(kit, ann.evolve(project="atlas"), workspace=tmp_path / "zeus") == here[:1], (
        "the scope's project counts"
    )
    assert {text for _, text in texts(kit, ann)} == {"Handle each error.", "Use type hints."}, "no language is known"


@pytest.mark.requirement("G1")
def test_a_rule_whose_time_is_over_is_not_given(kit: MemoryKit, ann: Scope) -> None:
    """Whoever replaces a rule wants the old one gone at once."""
    old = save(kit, ann, "Answer in French.", importance=1, memory_class="policy")
    new = save(kit, ann, "Answer in English.", importance=1, memory_class="policy", supersedes=[old.memory_id])
    assert texts(kit, ann) == [("core", "Answer in English.")]
    over = MemoryChange(memory=new.evolve(version=2, valid_to=NOON), expected_version=1, action="refine")
    ended = ChangeSet(operation_id=new.memory_id, actor="x", recorded_at=NOON, changes=(over,))
    kit.context.parts().archive.commit(ended)
    assert texts(kit, ann) == []


@pytest.mark.requirement("B3")
def test_what_is_in_mind_is_given_too(kit: MemoryKit, ann: Scope) -> None:
    """Layers or not, the task at hand is before the agent."""
    kit.working.sense("Flight BA17 boards at gate 4 in ten minutes, please go there now.", scope=ann, task="trip")
    assert "gate 4" in kit.inject("Hello.", scope=ann, task="trip").context
    assert kit.inject("Hello.", scope=ann).context == ""


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"text": 7}, "text is of type int"),
        ({"turn": -1}, "turn is -1"),
        ({"budget": 0}, "budget is 0"),
        ({"turn": "5"}, "turn is '5'"),
        ({"task": 7}, "task is of type int"),
        ({"workspace": "/no/such/folder"}, "cannot be read"),
    ],
)
def test_what_cannot_be_asked_is_told(kit: MemoryKit, ann: Scope, options: dict[str, Any], problem: str) -> None:
    """A slip in the host must not look like an empty memory."""
    with pytest.raises(InputError, match=problem):
        kit.inject(**cast("Any", {"text": "Hello.", "scope": ann} | options))


# ---------------------------------------------------------------------------------------------- isolation

SECRET = "The launch code of Atlas is osprey."


def told(kit: MemoryKit, scope: Scope) -> Memory:
    """Something that is known in one project, as memory, message and item."""
    kit.add_messages([said(SECRET)], scope=scope)
    kit.summarize(scope=scope, close=True)
    MemoryStore(kit, scope=scope).put(("notes",), "launch", {"text": SECRET})
    return save(kit, scope, SECRET, importance=0.95, tags=["launch"])


@pytest.mark.requirement("G8")
def test_what_one_project_knows_never_reaches_another(kit: MemoryKit, ann: Scope) -> None:
    """A consultant's agent must not tell one client of another, by whatever way it is asked."""
    a, b = ann.evolve(project="a"), ann.evolve(project="b")
    memory = told(kit, a)
    asked = "What is the launch code of Atlas?"
    depths: tuple[Depth, ...] = ("summaries", "memories", "blocks", "messages")
    for scope, expected in ((b, False), (ann, False), (a, True)):
        found = [
            kit.recall(asked, scope=scope, mode=mode, depth="messages").to_json() for mode in MODES if mode != "exact"
        ]
        found += [kit.recall("launch code of Atlas", scope=scope, mode="exact", depth="messages").to_json()]
        found += [kit.recall(asked, scope=scope, depth=depth).to_json() for depth in depths]
        found += [kit.inject(asked, scope=scope, depth="messages").to_json()]
        found += [str(memory_tools(kit, scope)[1].invoke({"query": asked}))]
        found += [str(MemoryStore(kit, scope=scope).search(("notes",), query=asked))]
        assert {"osprey" in text for text in found} == {expected}, scope.project
        assert any(each.hit.record_id == memory.memory_id for each in kit.rules.list(scope=scope)) == expected
    for call in (kit.trace, kit.explain, kit.retention.metadata, kit.forget, kit.restore):
        with pytest.raises(NotFoundError):
            call(memory.memory_id, scope=b)
    with pytest.raises(NotFoundError):
        kit.rules.promote(memory.memory_id, scope=b, reason="mine")


@pytest.mark.requirement("G8")
def test_a_memory_holds_everywhere_once_somebody_says_so_and_the_journal_tells(kit: MemoryKit, ann: Scope) -> None:
    """Sharing between projects is a decision: who made it, and why, can be asked later."""
    a, b = ann.evolve(project="a"), ann.evolve(project="b")
    memory = told(kit, a)
    for words in ("The office has plants.", "Berta has a boat."):  # in blocks of their own, with the same labels
        save(kit, b, words)
    shared = kit.rules.promote(memory.memory_id, scope=a, reason="The client is the same.")

    assert (shared.applies_to, shared.partition.project, shared.supersedes) == ("global", None, (memory.memory_id,))
    for scope in (a, b, ann):
        assert texts(kit, scope).count(("core", SECRET)) == 1, "and once, in its own project too"
    events = kit.trace(shared.memory_id, scope=a).events
    assert next((event.action, event.actor, event.reason) for event in events) == (
        "promote",
        ann.agent,
        "The client is the same.",
    )
    assert kit.trace(memory.memory_id, scope=a).events[-1].reason == "The client is the same."
    assert [quote.words for quote in kit.trace(shared.memory_id, scope=a).quotes] == [SECRET]
    assert kit.trace(shared.memory_id, scope=b).messages == (), "the conversation stays in its project"
    assert kit.rules.promote(shared.memory_id, scope=b, reason="again") == shared
    assert kit.admin.verify().differences == ()
    for memory_id, reason, error in ((memory.memory_id, "x", NotFoundError), (shared.memory_id, " ", InputError)):
        with pytest.raises(error):
            kit.rules.promote(memory_id, scope=a, reason=reason)


@pytest.mark.requirement("G8")
def test_what_is_said_for_all_projects_reaches_all(kit: MemoryKit, ann: Scope) -> None:
    """A rule for everything may be written down wherever one happens to be."""
    save(kit, ann.evolve(project="a"), "Answer in English.", importance=1, applies_to="global")
    assert texts(kit, ann.evolve(project="b")) == [("core", "Answer in English.")]
    language = save(kit, ann.evolve(project="a"), "Use type hints.", applies_to="lang:python")
    shared = kit.rules.promote(language.memory_id, scope=ann.evolve(project="a"), reason="It is our style.")
    assert (shared.applies_to, shared.partition.project) == ("lang:python", None)
