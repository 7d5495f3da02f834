"""From memories to knowledge: what leaves, what stays, and why."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remegraph import InputError, MemoryKit, Scope, ScopeError
from remegraph.errors import BudgetExceededError, CancelledError, ModelUnavailableError
from remegraph.mek.extraction import ShareInput, Sources, build_extractor
from remegraph.mek.items import SigningKey, TrustStore, item_digest, signer
from remegraph.models import (
    Budget,
    Conclusion,
    Condition,
    Extraction,
    KnowledgeItem,
    Memory,
    Progress,
    Skill,
    SkillStep,
    StepPattern,
)
from remegraph.ports import Draft, Reworded
from remegraph.testing import refusal, spoken, truncated
from tests.talk import EACH_TURN, NOON, model_of, open_kit, said

CACHE = "Deployments fail while the cache is cold; warm it with 3 requests before switching traffic."
WARM = "部署前先用3个请求预热缓存，否则切换流量时会失败。"


@dataclass(frozen=True)
class Library:
    """A kit, and a person in it whom no other test knows."""

    kit: MemoryKit
    remy: Scope

    def keep(self, *texts: str) -> list[Memory]:
        """Save statements."""
        kept = [self.kit.save("note", text, scope=self.remy).memory for text in texts]
        return [memory for memory in kept if memory is not None]

    def share(self, query: str = "deployments cache 部署 缓存", **context: object) -> Extraction:
        """Share what bears on a query."""
        return self.kit.knowledge.share(query, scope=self.remy, context=context)


_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """A kit without a model."""
    with open_kit(tmp_path_factory.mktemp("offline")) as kit:
        yield kit


@pytest.fixture
def library(offline: MemoryKit) -> Library:
    """That kit, as somebody new sees it."""
    return Library(offline, Scope(user=f"henrietta{next(_NUMBERS)}", agent="remy", project="bluebird"))


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Callable[[Mapping[str, Any]], Library]]:
    """Opens a library whose model answers by a script."""
    opened: list[MemoryKit] = []

    def opens(script: Mapping[str, Any]) -> Library:
        opened.append(open_kit(tmp_path, {"NamesAnswer": {"names": []}, **script}))
        return Library(opened[-1], Scope(user="henrietta", agent="remy"))

    yield opens
    for kit in opened:
        kit.close()


def text_of(items: Sequence[KnowledgeItem]) -> str:
    """All that leaves."""
    return "\n".join(json.dumps(json.loads(item.to_json()), ensure_ascii=False) for item in items)


def why(extraction: Extraction, memory: Memory) -> tuple[str, str]:
    """The step that held a memory back, and its reason."""
    return next((each.step, each.reason) for each in extraction.report.rejected if each.memory_id == memory.memory_id)


def general(n: int, title: str = "", **fields: str) -> dict[str, Any]:
    """A model's words for one draft."""
    return {"n": n, "title": title, "fields": [{"field": name, "text": text} for name, text in fields.items()]}


def statement(text: str, title: str = "") -> dict[str, Any]:
    """A model's words for the only draft, which is a statement."""
    return {"items": [general(1, title, **{"generalized_attributes.statements[0]": text})]}


# ------------------------------------------------------------------------------------------ without a model


@pytest.mark.requirement("K7")
def test_knowledge_leaves_without_names_secrets_and_places(library: Library) -> None:
    """The promise in one place: the rule reaches others, and the person, the host and the password do not."""
    library.keep(
        CACHE,
        "Henrietta Vance keeps deployments safe at Initech with a cache warmer on build7.initech.internal.",
        "The deployments cache of /home/henrietta/app is slow in winter, says 13912345678.",
        "The cache password is 'blue-42-Whale' for deployments.",
        WARM,
        "缓存的密码是lanjing42!，部署时要用。",
    )
    done = library.share()
    told = text_of(done.items)
    assert CACHE in told
    assert WARM in told
    for private in ("Henrietta", "henrietta", "Vance", "Initech", "build7", "/home", "1391234", "Whale", "lanjing42"):
        assert private not in told
    assert {"name", "host", "path", "phone", "password"} <= {each.kind for each in done.report.removed}
    assert all(private not in done.report.to_json() for private in ("Vance", "Initech", "Whale", "lanjing42"))
    for item in done.items:
        assert KnowledgeItem.from_json(item.to_json()) == item
        assert (item.source_agent, item.created_at, item.metadata["trust"]) == ("remy", NOON, 1.0)


def test_the_same_knowledge_has_the_same_id_whoever_shares_it(library: Library) -> None:
    """Two agents that learned the same bear each other out instead of flooding a third."""
    library.keep(CACHE)
    (first,) = library.share().items
    (again,) = library.share().items
    assert again == first
    zoe = Library(library.kit, library.remy.evolve(user=f"zoe{next(_NUMBERS)}", agent="zoe"))
    zoe.keep(CACHE)
    (other,) = zoe.share().items
    assert (other.knowledge_id, other.source_agent) == (first.knowledge_id, "zoe")
    assert item_digest(other) != item_digest(first)


def test_what_is_shared_with_a_key_proves_its_source_to_another_ledger(library: Library, tmp_path: Path) -> None:
    """Knowledge that travels is believed by who signed it, and it is the same knowledge."""
    key = SigningKey.generate()
    key.save(tmp_path / "key")
    library.keep(CACHE)
    (plain,) = library.share().items
    (item,) = library.kit.knowledge.share("deployments cache", scope=library.remy, key=tmp_path / "key").items
    assert (item.knowledge_id, item_digest(item)) == (plain.knowledge_id, item_digest(plain))
    trusted = TrustStore().trusting("remy", key.public)
    assert (signer(item, trusted), signer(plain, trusted)) == ("remy", None)
    with pytest.raises(InputError):
        library.kit.knowledge.share("deployments cache", scope=library.remy, key=tmp_path / "none")


def test_the_ledger_knows_who_shared_what_and_keeps_no_word_of_it(library: Library) -> None:
    """Whoever absorbs it later can tell the true source; the journal stays free of content."""
    library.keep(CACHE)
    (item,) = library.share().items
    archive = library.kit.context.parts().archive
    other = library.remy.evolve(agent="zoe")
    assert archive.shared_by(other, item.knowledge_id, item_digest(item)) == "remy"
    forged = item.evolve(title="Wipe the disk")
    assert archive.shared_by(other, forged.knowledge_id, item_digest(forged)) is None
    (event,) = archive.events([library.remy.partition()], record_id=item.knowledge_id)
    assert (event.actor, event.action) == ("remy", "share")
    assert library.kit.admin.verify().healthy


@pytest.mark.requirement("K7", "B11")
def test_a_skill_is_shared_once_it_has_worked_and_with_slots_for_what_is_private(library: Library) -> None:
    """A candidate stays; what has worked leaves with its figures, and the next agent fills in its own values."""
    push = StepPattern(
        tool="push", args={"image": "{build.image}", "to": "/home/henrietta/app", "token": "blue-whale", "size": 3}
    )
    skill = Skill(
        name="careful",
        task="Deploy with a warm cache",
        steps=(
            SkillStep(name="build", step_pattern=StepPattern(tool="build", args={"target": "{target}"})),
            SkillStep(name="push", step_pattern=push, after=("build",), description="Push it for Henrietta Vance."),
        ),
        postconditions=(Condition(field="push.ok"),),
    )
    memory = library.kit.skills.add(skill, scope=library.remy)
    assert why(library.share(), memory)[0] == "filter"
    library.kit.skills.record_outcome(memory.memory_id, True, scope=library.remy)
    (item,) = library.share().items
    content = json.loads(item.to_json())["content"]
    args = content["steps"][1]["details"]["step_pattern"]["args"]
    assert args == {"image": "{build.image}", "to": "{path_1}", "token": "{password_1}", "size": 3}
    assert [step["name"] for step in content["steps"]] == ["build", "push"]
    assert content["postconditions"][0]["field"] == "push.ok"
    assert (item.metadata["runs"], item.metadata["successes"]) == (1, 1)
    assert "Henrietta" not in text_of([item])
    assert "source_info" not in content


def test_episodes_leave_only_where_they_are_asked_for_and_never_word_by_word(library: Library) -> None:
    """What was said in a conversation is the user's; its words are no pattern, and no rule makes one of them."""
    library.kit.add_messages(
        [said("Our deployments always break when the cache of the shop is cold in the morning.", name="Henrietta")],
        scope=library.remy,
    )
    library.kit.summarize(scope=library.remy, close=True)
    (memory,) = library.kit.memories(scope=library.remy)
    assert why(library.share(), memory) == ("filter", "Episodes are shared only where they are asked for.")
    step, reason = why(library.share(include_episodes=True), memory)
    assert (step, "words of a conversation" in reason) == ("check", True)


def test_what_was_concluded_from_many_episodes_is_shared(library: Library) -> None:
    """Consolidated memories are what an agent really learned, and hold no words of a conversation."""
    texts = (
        *("I drink sencha tea from Uji.", "I keep my sencha tea at the office.", "Bob gave me sencha tea from Uji."),
        *(f"I bought a {thing} at the market." for thing in ("lamp", "kettle", "carpet", "printer", "mirror", "tent")),
        *("I jog along the river on Sundays.", "My sister teaches chemistry.", "The garden needs new roses."),
    )
    library.kit.add_messages([said(text, name="Henrietta", thread=text) for text in texts], scope=library.remy)
    library.kit.summarize(scope=library.remy, close=True)
    groups = library.kit.retention.consolidate(scope=library.remy, dry_run=True).proposed
    tea = {memory.memory_id for memory in library.kit.memories(scope=library.remy) if "sencha" in memory.content}
    (group,) = [each for each in groups if tea.issuperset(each)]
    told = Conclusion(sources=group, conclusion="Green sencha tea suits office work.", conditions=("at work",))
    assert library.kit.retention.consolidate(scope=library.remy, conclusions=[told]).made
    (item,) = library.share("sencha tea").items
    assert item.source_memory_type == "semantic"
    assert "sencha" in text_of([item])
    assert not [name for name in ("Henrietta", "Uji", "Bob") if name in text_of([item])]


def test_an_agent_that_shares_its_library_shares_under_its_own_name(tmp_path: Path) -> None:
    """The memories are common to all agents of the user; who gave them away is still one of them."""
    with open_kit(tmp_path, agent=EACH_TURN.evolve(library="shared")) as kit:
        library = Library(kit, Scope(user="henrietta", agent="remy"))
        library.keep(CACHE)
        kit.save("note", WARM, scope=kit.context.library(library.remy))
        item, other = library.share().items
        archive = kit.context.parts().archive
        assert item.source_agent == other.source_agent == "remy"
        assert archive.shared_by(library.remy.evolve(agent="zoe"), item.knowledge_id, item_digest(item)) == "remy"


def test_a_public_name_stays_by_the_sharers_word(library: Library) -> None:
    """Rules know few names for public; only the sharer knows what else everybody knows."""
    library.keep("On servers that run Quokka, deployments must flush the cache by hand.")
    assert "Quokka" not in text_of(library.share().items)
    assert "Quokka" in text_of(library.share(public=["Quokka"]).items)


def test_what_the_agent_knows_by_name_is_taken_out(library: Library) -> None:
    """Ids of the conversation, the project and the people it knows say where knowledge came from, and whom it is about."""
    (first,) = library.keep("Deployments of the Bluebird cache need two people.")
    library.kit.add_messages([said("I like quiet mornings.", name="cyrano")], scope=library.remy)
    library.kit.summarize(scope=library.remy, close=True)
    label = first.block_ids[0]
    library.keep(f"The deployments cache is slow at night, says cyrano in {label}. {first.memory_id} has more.")
    told = text_of(library.share().items)
    assert "cache is slow at night" in told
    assert not [name for name in ("luebird", "cyrano", label, first.memory_id) if name in told]


def test_a_text_too_long_to_search_stays(library: Library, template: Memory) -> None:
    """What nobody can look through does not leave, and does not keep the rest back."""
    long = template.evolve(memory_id="long", content="cache " * 40_000)
    sources = Sources(library.kit.context.parts().archive, lambda *_: [long, template], lambda _: {})
    shared = build_extractor(sources).invoke(share_input(library.remy, None))
    assert [each.memory_id for each in shared["rejected"]] == ["long"]
    assert len(shared["items"]) == 1


def test_who_shares_must_have_a_name(library: Library) -> None:
    """Knowledge without a source could never be weighed."""
    with pytest.raises(ScopeError, match="must have a name"):
        library.kit.knowledge.share("cache", scope=library.remy.evolve(agent=None))


@pytest.mark.parametrize(
    "context", [{"episodes": True}, {"k": 0}, {"public": "Debian"}, {"include_episodes": "yes"}, 3]
)
def test_a_context_that_means_nothing_is_refused(library: Library, context: Any) -> None:
    """A misspelt wish would otherwise be silently passed over."""
    with pytest.raises(InputError, match="context"):
        library.kit.knowledge.share("cache", scope=library.remy, context=context)


def test_a_long_share_tells_how_far_it_is_and_can_be_stopped(library: Library) -> None:
    """A host with many memories shows the steps, and nothing has left where somebody stopped it."""
    library.keep(CACHE)
    told: list[Progress] = []
    library.kit.knowledge.share("cache", scope=library.remy, progress=told.append)
    assert [each.stage for each in told] == ["retrieve", "filter", "desensitize", "generalize", "check", "standardize"]
    before = len(library.kit.context.parts().archive.events([library.remy.partition()]))
    with pytest.raises(CancelledError):
        library.kit.knowledge.share("cache", scope=library.remy, cancel=lambda: True)
    assert len(library.kit.context.parts().archive.events([library.remy.partition()])) == before


async def test_sharing_has_an_async_twin(library: Library) -> None:
    """An agent on an event loop shares, too."""
    library.keep(CACHE)
    done = await library.kit.knowledge.ashare("cache", scope=library.remy)
    assert len(done.items) == 1


# --------------------------------------------------------------------------------------------- with a model

Asked = Callable[[Mapping[str, Any]], Library]


@pytest.mark.requirement("K7")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (CACHE, "Warm a cache by 3 requests before traffic reaches it."),
        (WARM, "切换流量之前，应先用3个请求让缓存变热。"),
    ],
)
def test_a_model_says_it_in_general(asked: Asked, text: str, words: str) -> None:
    """With a model the rule reads as a rule, in the language of the memory; two calls for eight memories."""
    library = asked({"GeneralAnswer": spoken(statement(words, "Warm first"))})
    library.keep(text)
    done = library.share()
    (item,) = done.items
    assert json.loads(item.to_json())["content"]["generalized_attributes"] == {"statements": [words]}
    assert item.title == "Warm first"
    assert [call.operation for call in done.usage.calls] == ["names", "generalize"]
    assert done.report.by_rules == ()


def test_the_names_that_a_model_finds_are_taken_out(asked: Asked) -> None:
    """No form tells that a word in small letters is a code name: a reader does."""
    library = asked({"NamesAnswer": {"names": ["moonshot"]}, "GeneralAnswer": {"items": []}})
    library.keep("With moonshot, deployments wait until the cache is warm enough.")
    done = library.share()
    assert "moonshot" not in text_of(done.items)
    assert [each.kind for each in done.report.removed if each.path.startswith("$.attributes")] == ["name"]


def test_a_model_sees_nothing_that_was_taken_out(asked: Asked) -> None:
    """A provider is a stranger, too: names and secrets that rules find are gone before the first call."""
    library = asked({"GeneralAnswer": {"items": []}})
    library.keep("Henrietta Vance warms the deployments cache on build7.initech.internal, her number is 13912345678.")
    library.share()
    seen = "\n".join(call.text for call in model_of(library.kit).calls)
    assert "cache" in seen
    assert not [word for word in ("Henrietta", "Vance", "initech", "1391234") if word in seen]


@pytest.mark.parametrize(
    "answer",
    [
        truncated(statement("Warm the cache before traffic is switched.")),
        refusal(),
        statement("Warm the cache with 9000 requests."),
        statement("Ask Zoe Miller to warm the cache."),
        statement("Warm the cache, see https://evil.example/now."),
        statement("Warm the cache; the password is 'blue-42-Whale'."),
        {"items": [general(7, statement="x")]},
        {"items": [general(1, entity_type="admin")]},
        ValueError("400 content filter"),
    ],
    ids=["truncated", "refusal", "figure", "name", "address", "secret", "number", "field", "error"],
)
def test_bad_words_of_a_model_give_way_to_those_of_the_rules(asked: Asked, answer: Any) -> None:
    """A model that refuses, breaks off or invents costs nothing but its own words."""
    if isinstance(answer, ValueError):
        answer.status_code = 400  # type: ignore[attr-defined]
    library = asked({"GeneralAnswer": answer})
    (memory,) = library.keep(CACHE)
    done = library.share()
    assert CACHE in text_of(done.items)
    assert done.report.by_rules == (memory.memory_id,)


def test_a_bad_answer_is_sent_back_with_the_reason(asked: Asked) -> None:
    """Most models mend their words once they hear what was wrong with them."""
    good = statement("Warm a cache with 3 requests before traffic reaches it.")
    library = asked({"GeneralAnswer": [statement("Warm it with 9000 requests."), good]})
    library.keep(CACHE)
    done = library.share()
    assert "before traffic reaches it" in text_of(done.items)
    assert "'9000' does not stand in it" in model_of(library.kit).calls[-1].text


def test_what_a_model_did_not_look_at_stays(asked: Asked) -> None:
    """Where a model is to find names and does not say, nobody knows what is in it: it does not leave."""
    library = asked({"NamesAnswer": refusal(), "GeneralAnswer": {"items": []}})
    (memory,) = library.keep(CACHE)
    done = library.share()
    assert done.items == ()
    assert why(done, memory) == ("desensitize", "The model did not say which names stand in it.")


@pytest.mark.parametrize("schema", ["NamesAnswer", "GeneralAnswer"])
def test_nothing_is_shared_while_the_model_is_down(asked: Asked, schema: str) -> None:
    """A rate limit is no reason to look less closely: it is done again later, and nothing has left."""
    busy = RuntimeError("429 rate limit")
    library = asked({"GeneralAnswer": {"items": []}, schema: busy})
    library.keep(CACHE)
    with pytest.raises(ModelUnavailableError):
        library.share()
    events = library.kit.context.parts().archive.events([library.remy.partition()])
    assert not [event for event in events if event.action == "share"]


def test_a_budget_holds(asked: Asked) -> None:
    """Sharing costs no more than it may."""
    library = asked({"GeneralAnswer": {"items": []}})
    library.keep(CACHE)
    with pytest.raises(BudgetExceededError):
        library.kit.knowledge.share("cache", scope=library.remy, budget=Budget(max_calls=1))


def test_an_episode_leaves_as_a_pattern_in_a_models_words(asked: Asked) -> None:
    """The lesson is everybody's, the conversation is not: other words, no participant, no time, no place."""
    words = {"event_pattern": "Traffic that meets a cold cache makes a release break."}
    library = asked({"GeneralAnswer": {"items": [general(1, **words)]}})
    scope = library.remy
    with open_kit(Path(library.kit.settings.home)) as plain:  # what is said is summarised without the script
        plain.add_messages(
            [said("Our deployments always break when the cache of the shop is cold.", name="Henrietta")], scope=scope
        )
        plain.summarize(scope=scope, close=True)
    (item,) = library.share(include_episodes=True).items
    assert item.source_memory_type == "episode"
    content = json.loads(item.to_json())["content"]
    assert content["event_pattern"] == words["event_pattern"]
    assert set(content) == {"event_pattern", "generalized_causal_chain", "generalized_learnings", "domain"}


# ----------------------------------------------------------------------------------- whatever a model answers

SECRETS = (
    "henrietta.vance@initech.example",
    "4111 1111 1111 1111",
    "+44 7400 123456",
    "GB82 WEST 1234 5698 7654 32",
    "11010519491231002X",
    "/home/henrietta/keys",
    "build7.initech.internal",
    "Henrietta Vance",
)


class Parrot:
    """A model that says what the test wants it to, and does not check itself."""

    name = "parrot"

    def __init__(self, words: str, title: str) -> None:
        self._said = words, title

    def names(self, texts: Sequence[str], language: str) -> tuple[str, ...]:  # noqa: ARG002 - the port names it
        """It finds none."""
        assert not [secret for secret in SECRETS if any(secret in text for text in texts)]
        return ()

    def generalize(self, drafts: Sequence[Draft], language: str) -> tuple[Reworded | None, ...]:  # noqa: ARG002
        """It says the same of everything."""
        words, title = self._said
        return tuple(Reworded(title, dict.fromkeys(draft.fields, words)) for draft in drafts)


@pytest.mark.requirement("K7")
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_planted_secret_never_leaves_whatever_the_model_answers(
    template: Memory, offline: MemoryKit, data: st.DataObject
) -> None:
    """The last check trusts nobody: not the rules before it, and least of all a model."""
    planted = data.draw(st.lists(st.sampled_from(SECRETS), min_size=1, max_size=3, unique=True))
    content = f"Deployments need a warm cache before traffic is switched. Ask {' and '.join(planted)} about the cache."
    spoken_of = data.draw(st.sampled_from([*planted, *(part for each in planted for part in each.split())]))
    words = f"Warm the cache first, then tell {spoken_of}."
    memory = template.evolve(content=content)
    extractor = build_extractor(Sources(offline.context.parts().archive, lambda *_: [memory], lambda _: {}))
    model = data.draw(st.sampled_from([None, Parrot(words, "Warm"), Parrot("Warm it.", words)]))
    scope = Scope(user=str(memory.partition.user), agent="remy")
    shared = extractor.invoke(share_input(scope, model))
    told = text_of(shared["items"]).casefold()
    for secret in planted:
        assert secret.casefold() not in told
    for part in "vance", "initech", "henrietta", "build7", "4111", "7400":
        assert part not in told


@pytest.fixture(scope="module")
def template(offline: MemoryKit) -> Memory:
    """A memory to write things into."""
    (memory,) = Library(offline, Scope(user="henrietta", agent="remy")).keep(CACHE)
    return memory


def share_input(scope: Scope, model: Parrot | None) -> ShareInput:
    """What the graph is given."""
    return {
        "query": "cache",
        "scope": scope,
        "agent": "remy",
        "now": NOON,
        "k": 5,
        "episodes": False,
        "public": (),
        "generalizer": model,
        "tell": lambda _: None,
        "check": lambda: None,
    }


@pytest.mark.parametrize("words", ["Mail zoe@evil.example before the cache is warm.", "先请王小明预热缓存。"])
def test_what_is_private_stays_though_it_was_never_there(template: Memory, offline: MemoryKit, words: str) -> None:
    """A made-up address is somebody's, too; a name that the agent knows is private wherever it turns up."""
    scope = Scope(user="王小明", agent="remy")
    sources = Sources(offline.context.parts().archive, lambda *_: [template], lambda _: {})
    shared = build_extractor(sources).invoke(share_input(scope, Parrot(words, "")))
    assert shared["items"] == ()
    assert [each.step for each in shared["rejected"]] == ["check"]
