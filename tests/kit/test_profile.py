"""Topics with a schema: what conversations and callers say fills the fields of a pydantic model, with its words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from pydantic import AliasChoices, BaseModel, Field, TypeAdapter, ValidationError, field_validator

from remegraph import (
    AgentMemorySettings,
    ExtractionPolicy,
    InputError,
    MemoryKit,
    Scope,
    SetupError,
)
from remegraph.kit import SaveOptions
from remegraph.models import Profile
from tests.talk import (
    ANN,
    NOON,
    by_topic,
    change,
    clock_of,
    create,
    digest,
    model_of,
    open_kit,
    proposal,
    said,
)

pytestmark = [pytest.mark.usefixtures("setup"), pytest.mark.requirement("X19")]

BOB = Scope(user="bob", agent="remy")


class Work(Enum):
    """How much somebody works."""

    FULL_TIME = "full time"
    PART_TIME = "part time"


class Person(BaseModel):
    """What is to be known of a person."""

    lives_in: str | None = Field(None, description="City or town.")
    age: Annotated[int, Field(ge=0, le=150)] | None = None
    # In the order of docs/profiles.md, too: of unions that are equal but for the order, Python keeps the first.
    diet: Literal["anything", "vegetarian", "vegan"] | None = None
    works: Work | None = None
    race_on: date | None = None
    allergies: list[str] = Field(default=[], description="What the person must not eat or touch.")


def opened(path: Path, script: dict[str, Any] | None = None, **schemas: type[BaseModel]) -> MemoryKit:
    """A kit whose topics have schemas."""
    extraction = ExtractionPolicy(trigger="per-turn", schemas=schemas or {"personal": Person})
    return open_kit(path, script, agent=AgentMemorySettings(extraction=extraction))


def told(path: Path, *turns: tuple[str, list[Any]], **schemas: type[BaseModel]) -> MemoryKit:
    """A kit to which Ann says something in each turn, an hour apart, and a model answers with operations."""
    answers = [proposal(*each) for _, operations in turns for each in _attempts(operations)]
    script = {
        "DigestAnswer": [digest("personal:Ann")] * len(turns),
        "ProposalAnswer": by_topic({"personal:Ann": answers}),
    }
    kit = opened(path, script, **schemas)
    for at, (words, _) in enumerate(turns):
        kit.add_messages([said(words, minutes=60 * at, thread=f"t{at}")], scope=ANN)
        kit.summarize(scope=ANN, close=True)
    clock_of(kit).move(timedelta(minutes=60 * len(turns)))
    return kit


def _attempts(operations: list[Any]) -> list[list[Any]]:
    """Operations of one answer, or, where they are lists, of one answer after the other."""
    return operations if operations and isinstance(operations[0], list) else [operations]


def read(kit: MemoryKit, scope: Scope = ANN) -> Profile[Person]:
    return kit.profile(Person, scope=scope)


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[MemoryKit]:
    with opened(tmp_path) as kit:
        yield kit


def test_what_is_said_fills_the_fields_each_with_its_words(tmp_path: Path) -> None:
    """A profile that cannot be traced to what somebody said is a guess."""
    words = "I'm Ann, 36, in Porto. I'm vegan, allergic to nuts and to latex. I work part-time. I play chess."
    operations = [
        create("Ann lives in Porto.", 1, "in Porto", slot="lives_in", value="Porto"),
        create("Ann is 36 years old.", 1, "I'm Ann, 36", slot="age", value="36"),
        create("Ann is vegan.", 1, "I'm vegan", slot="diet", value="Vegan"),
        create("Ann works part-time.", 1, "I work part-time", slot="works", value="part-time"),
        create("Ann is allergic to nuts.", 1, "allergic to nuts", slot="allergies", value="nuts"),
        create("Ann is allergic to latex.", 1, "to latex", slot="allergies", value="latex"),
        create("Ann plays chess.", 1, "I play chess"),
    ]
    with told(tmp_path, (words, operations)) as kit:
        profile = read(kit)

        assert profile.filled == Person(
            lives_in="Porto", age=36, diet="vegan", works=Work.PART_TIME, allergies=["nuts", "latex"]
        )
        assert (profile.topic, profile.problem, profile.unknown) == ("personal:ann", "", ("race_on",))
        assert profile["race_on"].problem == "nobody said it"
        assert profile["age"].value == 36
        assert [quote.words for quote in profile["age"].words] == ["I'm Ann, 36"]
        assert [quote.words for quote in profile["allergies"].words] == ["allergic to nuts", "to latex"]
        assert [memory.content for memory in profile.beside] == ["Ann plays chess."]
        assert profile.known.keys() == {"lives_in", "age", "diet", "works", "allergies"}
        assert not any(field.history or field.disputed for field in profile)


async def test_the_async_verb_returns_the_same(kit: MemoryKit) -> None:
    """Sync and async are one kit."""
    kit.save("home", "Ann lives in Porto.", scope=ANN, slot="ann:lives_in", value="Porto")
    assert await kit.aprofile(Person, scope=ANN) == read(kit)


def test_the_model_is_told_the_fields_with_their_types_only_where_a_schema_is_set(tmp_path: Path) -> None:
    """It cannot fill what it does not know of; and without a schema every prompt stays as it is."""
    words = "I live in Porto."
    operations = [create("Ann lives in Porto.", 1, words, slot="lives_in", value="Porto")]
    with told(tmp_path / "with", (words, operations)) as kit:
        (with_schema,) = (call.text for call in model_of(kit, "remy").calls if "Topic: " in call.text)
    with told(tmp_path / "without", (words, operations), task=Person) as kit:
        (without,) = (call.text for call in model_of(kit, "remy").calls if "Topic: " in call.text)

    piece = with_schema[with_schema.index("Fields of this topic") : with_schema.index("Memories:")]
    assert with_schema.replace(piece, "") == without
    assert '\nlives_in {"type": "string", "description": "City or town."}\n' in piece
    assert '\nage {"maximum": 150, "minimum": 0, "type": "integer"}\n' in piece
    assert '\nworks {"description": "How much somebody works.", "enum": ["full time", "part time"]' in piece
    assert '\nrace_on {"format": "date", "type": "string"}\n' in piece
    assert '\nallergies {"type": "array", "items": {"type": "string"}, "description": "What the' in piece


def test_chinese_words_get_the_fields_in_chinese(tmp_path: Path) -> None:
    """A prompt is of one language."""
    operations = [create("小安住在波尔图。", 1, "我住在波尔图", slot="lives_in", value="波尔图")]
    with told(tmp_path, ("我住在波尔图，养了两只猫。", operations)) as kit:
        prompt = next(call.text for call in model_of(kit, "remy").calls if "已有记忆：\n" in call.text)
        assert "本主题的字段" in prompt
        assert "Fields of" not in prompt
        assert read(kit)["lives_in"].value == "波尔图"


def test_a_value_of_another_type_is_refused_with_the_reason_and_never_enters(tmp_path: Path) -> None:
    """A wrong type in a profile breaks whoever reads it; the model is told, and says it otherwise or as a free memory."""
    words = "I'm nearly forty and live in Porto."
    good = create("Ann lives in Porto.", 1, "live in Porto", slot="lives_in", value="Porto")
    wrong = create("Ann is nearly forty.", 1, "I'm nearly forty", slot="age", value="nearly forty")
    free = create("Ann is nearly forty.", 1, "I'm nearly forty")
    with told(tmp_path, (words, [[good, wrong], [free]])) as kit:
        repair = model_of(kit, "remy").calls[-1].text
        profile = read(kit)

    assert "age takes" in repair
    assert "'nearly forty' is none: Input should be a valid integer" in repair
    assert profile.known == {"lives_in": "Porto"}
    assert [memory.content for memory in profile.beside] == ["Ann is nearly forty."]


def test_a_value_that_stays_wrong_is_left_out_and_the_rest_is_kept(tmp_path: Path) -> None:
    """What is sound is committed, what is not is named."""
    words = "I'm nearly forty and live in Porto."
    good = create("Ann lives in Porto.", 1, "live in Porto", slot="lives_in", value="Porto")
    wrong = create("Ann is nearly forty.", 1, "I'm nearly forty", slot="age", value="nearly forty")
    with told(tmp_path, (words, [[good, wrong], [wrong]])) as kit:
        assert read(kit).known == {"lives_in": "Porto"}
        assert all(memory.canonical_topic == "ann:lives_in" for memory in kit.memories(scope=ANN))
        assert "age takes" in kit.work.list(scope=ANN)[0].reason


@pytest.mark.parametrize(
    ("slot", "value", "why"),
    [
        ("age", "", "it is empty"),
        ("age", "200", "less than or equal to 150"),
        ("diet", "carnivore", "Input should be 'anything', 'vegetarian' or 'vegan'"),
        ("works", "never", "Input should be 'full time' or 'part time'"),
        ("race_on", "some day", "valid date"),
        ("race_on", "86400", "a number alone is no date"),
    ],
)
def test_a_person_who_saves_a_wrong_value_is_told_so_and_nothing_is_changed(
    kit: MemoryKit, slot: str, value: str, why: str
) -> None:
    """Bad input gets a typed error at the door."""
    with pytest.raises(InputError, match=why):
        kit.save("x", "Ann is so.", scope=ANN, slot=f"ann:{slot}", value=value)
    assert kit.memories(scope=ANN) == ()


def test_a_field_of_a_topic_is_guarded_whatever_topic_a_statement_stands_on(kit: MemoryKit) -> None:
    """Slots are one for all topics of a person: by another topic, a wrong value would take the place of a right one."""
    kit.save("age", "Ann is 36.", scope=ANN, slot="ann:age", value="36")
    with pytest.raises(InputError, match="is no value of ann:age"):
        kit.save("age", "Ann is old.", scope=ANN, slot="ann:age", value="old", topic="task:census")
    assert read(kit)["age"].value == 36


def test_two_items_in_one_sentence_are_sent_back_and_none_is_lost(tmp_path: Path) -> None:
    """A sentence is one memory, which holds one value: the second item would go unnoticed."""
    words = "I'm allergic to nuts and latex."
    nuts, latex = (
        create("Ann is allergic to nuts and latex.", 1, words, slot="allergies", value=each)
        for each in ("nuts", "latex")
    )
    again = create("Ann is allergic to latex.", 1, words, slot="allergies", value="latex")
    with told(tmp_path, (words, [[nuts, latex], [again]])) as kit:
        assert "give each value of ann:allergies a statement of its own" in model_of(kit, "remy").calls[-1].text
        assert read(kit)["allergies"].value == ["nuts", "latex"]


def test_a_change_keeps_what_was_before_with_its_time_and_words(tmp_path: Path) -> None:
    """Where somebody lived is as good to know as where they live."""
    with told(
        tmp_path,
        ("I live in Porto.", [create("Ann lives in Porto.", 1, "in Porto", slot="lives_in", value="Porto")]),
        (
            "I moved to Braga.",
            [change("SUPERSEDE", "m1", 1, "moved to Braga", content="Ann lives in Braga.", value="Braga")],
        ),
    ) as kit:
        field = read(kit)["lives_in"]

    assert field.value == "Braga"
    assert [quote.words for quote in field.words] == ["moved to Braga"]
    (before,) = field.history
    assert (before.value, before.since, before.until) == ("Porto", NOON, NOON + timedelta(hours=1))
    assert [quote.words for quote in before.words] == ["in Porto"]


def test_a_change_without_a_value_is_sent_back(tmp_path: Path) -> None:
    """Else the field would hold nothing that can be read."""
    moved = change("SUPERSEDE", "m1", 1, "moved to Braga", content="Ann lives in Braga.")
    with told(
        tmp_path,
        ("I live in Porto.", [create("Ann lives in Porto.", 1, "in Porto", slot="lives_in", value="Porto")]),
        ("I moved to Braga.", [[moved], [{**moved, "value": "Braga"}]]),
    ) as kit:
        assert "it is empty" in model_of(kit, "remy").calls[-1].text
        assert read(kit)["lives_in"].value == "Braga"


def test_a_memory_of_no_field_that_is_refined_into_one_without_a_value_is_sent_back(tmp_path: Path) -> None:
    """A memory that has a value keeps it; one that has none would leave the field with nothing that can be read."""
    exact = change("REFINE", "m1", 1, "I'm vegan", content="Ann plays chess and is vegan.", slot="diet")
    with told(
        tmp_path,
        ("I play chess.", [create("Ann plays chess.", 1, "I play chess")]),
        ("I play chess, and I'm vegan.", [[exact], [{**exact, "value": "vegan"}]]),
    ) as kit:
        assert "it is empty" in "".join(call.text for call in model_of(kit, "remy").calls)
        assert read(kit)["diet"].value == "vegan"


def test_a_refined_memory_tells_what_it_said_before(tmp_path: Path) -> None:
    """A value that changes within one memory is history, too."""
    with told(
        tmp_path,
        (
            "I live in Portugal.",
            [create("Ann lives in Portugal.", 1, "in Portugal", slot="lives_in", value="Portugal")],
        ),
        (
            "In Porto, to be exact.",
            [change("REFINE", "m1", 1, "In Porto", content="Ann lives in Porto.", value="Porto")],
        ),
    ) as kit:
        field = read(kit)["lives_in"]
    assert (field.value, [each.value for each in field.history]) == ("Porto", ["Portugal"])


def test_what_is_over_is_unknown_and_history(tmp_path: Path) -> None:
    """A race that is run is no race to come; that it is over is no value."""
    with told(
        tmp_path,
        ("I'm vegan, and I live in Porto.", [create("Ann is vegan.", 1, "I'm vegan", slot="diet", value="vegan")]),
        (
            "No more vegan food for me.",
            [change("END", "m1", 1, "No more vegan food", content="Ann is no longer vegan.", value="vegan")],
        ),
    ) as kit:
        profile = read(kit)
    assert not profile["diet"].known
    assert profile["diet"].problem == "nothing that was said holds now"
    assert [each.value for each in profile["diet"].history] == ["vegan"]
    assert [memory.content for memory in profile.beside] == ["Ann is no longer vegan."]


def test_until_a_change_begins_what_it_replaces_holds(tmp_path: Path) -> None:
    """Who moves next month lives where they live."""
    moving = change(
        "SUPERSEDE", "m1", 1, "moving to Braga", content="Ann lives in Braga.", value="Braga", valid_from="2025-04-01"
    )
    with told(
        tmp_path,
        ("I live in Porto.", [create("Ann lives in Porto.", 1, "in Porto", slot="lives_in", value="Porto")]),
        ("I'm moving to Braga on 1 April 2025.", [moving]),
    ) as kit:
        before = read(kit)["lives_in"]
        clock_of(kit).move(timedelta(days=40))
        after = read(kit)["lives_in"]
    assert (before.value, [each.value for each in before.history]) == ("Porto", ["Braga"])
    assert (after.value, [each.value for each in after.history]) == ("Braga", ["Porto"])


def test_a_field_in_dispute_says_so(tmp_path: Path) -> None:
    """A profile that hides a contradiction answers wrongly half of the time."""
    other = change("CONTRADICT", "m1", 1, "in Braga", content="Ann lives in Braga.", slot="lives_in", value="Braga")
    with told(
        tmp_path,
        ("I live in Porto.", [create("Ann lives in Porto.", 1, "in Porto", slot="lives_in", value="Porto")]),
        ("My flat is in Braga.", [other]),
    ) as kit:
        field = read(kit)["lives_in"]
    assert (field.disputed, field.value) == (True, "Braga")
    assert [each.value for each in field.current] == ["Porto", "Braga"]


def test_nobody_sees_the_profile_of_another_user(kit: MemoryKit) -> None:
    """A profile shows no more than its memories do."""
    kit.save("home", "Ann lives in Porto.", scope=ANN, slot="ann:lives_in", value="Porto")
    assert kit.profile(Person, scope=BOB, topic="personal:ann").known == {}
    assert read(kit).known == {"lives_in": "Porto"}


def test_what_is_forgotten_leaves_the_profile_and_its_history(kit: MemoryKit) -> None:
    """Forgotten is forgotten, in every form."""
    kit.save("home", "Ann lives in Porto.", scope=ANN, slot="ann:lives_in", value="Porto")
    memory = kit.memories(scope=ANN)[0]
    kit.forget(memory.memory_id, scope=ANN)
    field = read(kit)["lives_in"]
    assert (field.known, field.current, field.history) == (False, (), ())


# ------------------------------------------------------------------------------------ when the model changes


class Former(BaseModel):
    """A schema as it was."""

    home: str | None = None
    age: int | None = None
    likes: list[str] = []
    nickname: str | None = None


def test_a_renamed_field_reads_its_old_slot_and_fills_the_new_one(tmp_path: Path) -> None:
    """Nobody should have to migrate what was said."""

    class Renamed(BaseModel):
        lives_in: str | None = Field(None, validation_alias=AliasChoices("lives_in", "home"))

    with opened(tmp_path, personal=Former) as kit:
        kit.save("home", "Ann lives in Porto.", scope=ANN, slot="ann:home", value="Porto")
    with opened(tmp_path, personal=Renamed) as kit:
        assert kit.profile(Renamed, scope=ANN)["lives_in"].value == "Porto"

        clock_of(kit).move(timedelta(days=1))
        kit.save(
            "home",
            "Ann lives in Braga.",
            scope=ANN,
            slot="ann:home",
            value="Braga",
            options=SaveOptions(call_id="later"),
        )
        field = kit.profile(Renamed, scope=ANN)["lives_in"]
        assert (field.value, field.disputed, [each.value for each in field.history]) == ("Braga", False, ["Porto"])
        assert kit.memories(scope=ANN)[0].canonical_topic == "ann:lives_in"


def test_a_removed_field_is_a_memory_beside_and_comes_back_with_the_field(tmp_path: Path) -> None:
    """What is no field any more is still known."""

    class Without(BaseModel):
        age: int | None = None

    with opened(tmp_path, personal=Former) as kit:
        kit.save("name", "Ann is called Nan.", scope=ANN, slot="ann:nickname", value="Nan")
        profile = kit.profile(Without, scope=ANN)
        assert (profile.known, [each.content for each in profile.beside]) == ({}, ["Ann is called Nan."])
        assert kit.profile(Former, scope=ANN).known == {"nickname": "Nan"}


def test_a_value_of_a_type_that_changed_is_unknown_with_the_reason_and_its_words(tmp_path: Path) -> None:
    """A wrong type is never shown as right, and nothing is lost."""

    class Typed(BaseModel):
        home: Literal["Lisbon", "Braga"] | None = None
        age: str | None = None
        likes: str | None = None

    with opened(tmp_path, personal=Former) as kit:
        for slot, value in (("home", "Porto"), ("age", "36"), ("likes", "tea"), ("likes", "chess")):
            clock_of(kit).move(timedelta(hours=1))
            kit.save(slot, f"Ann's {slot}: {value}.", scope=ANN, slot=f"ann:{slot}", value=value)
        profile = kit.profile(Typed, scope=ANN)

    home = profile["home"]
    assert (home.known, home.value) == (False, None)
    assert home.problem == "'Porto': Input should be 'Lisbon' or 'Braga'"
    assert [quote.words for quote in home.words] == ["Ann's home: Porto."]
    assert profile["age"].value == "36"  # what is stored is text: it is read as whatever the field is now
    assert (profile["likes"].value, profile["likes"].disputed) == ("chess", True)
    assert [each.value for each in profile["likes"].current] == ["tea", "chess"]


def test_a_single_value_becomes_the_first_of_a_list(tmp_path: Path) -> None:
    """A field that holds several now holds what it held."""

    class Several(BaseModel):
        home: list[str] = []

    with opened(tmp_path, personal=Former) as kit:
        kit.save("home", "Ann lives in Porto.", scope=ANN, slot="ann:home", value="Porto")
    with opened(tmp_path, personal=Several) as kit:
        clock_of(kit).move(timedelta(days=1))
        kit.save(
            "home",
            "Ann has a flat in Braga.",
            scope=ANN,
            slot="ann:home",
            value="Braga",
            options=SaveOptions(call_id="later"),
        )
        assert kit.profile(Several, scope=ANN)["home"].value == ["Porto", "Braga"]


def test_an_added_field_is_unknown_and_finds_what_already_stands_in_its_slot(kit: MemoryKit) -> None:
    """Any model reads the slots that there are, whatever filled them."""

    class Added(Person):
        plays: str | None = None
        sings: bool = False

    kit.save("chess", "Ann plays chess.", scope=ANN, slot="ann:plays", value="chess")
    profile = kit.profile(Added, scope=ANN)
    assert (profile["plays"].value, profile["sings"].known) == ("chess", False)
    assert profile.filled is not None
    assert profile.filled.sings is False


# ------------------------------------------------------------------------------------ models of all kinds


def test_without_a_required_field_there_is_no_filled_model_and_the_fields_are_there(kit: MemoryKit) -> None:
    """An object that breaks its own rules would be worse than none."""

    class Strict(BaseModel):
        name: str
        age: int

    kit.save("age", "Ann is 36.", scope=ANN, slot="ann:age", value="36")
    profile = kit.profile(Strict, scope=ANN)
    assert profile.filled is None
    assert profile.problem == "name: Field required"
    assert profile.known == {"age": 36}


def test_the_models_own_validators_count_at_the_door_and_on_reading(tmp_path: Path) -> None:
    """Whoever writes a validator relies on it."""

    class Even(BaseModel):
        age: int | None = None

        @field_validator("age")
        @classmethod
        def _even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("odd")
            return value

    with opened(tmp_path, personal=Former) as kit:
        kit.save("age", "Ann is 35.", scope=ANN, slot="ann:age", value="35")
        assert kit.profile(Even, scope=ANN)["age"].problem == "'35': Value error, odd"
    with opened(tmp_path, personal=Even) as kit, pytest.raises(InputError, match="odd"):
        kit.save("age", "Ann is 37.", scope=ANN, slot="ann:age", value="37")


def test_a_schema_of_one_topic_comes_before_that_of_its_type(tmp_path: Path) -> None:
    """One project may have fields that others have not."""

    class Atlas(BaseModel):
        due: date | None = None

    class Project(BaseModel):
        due: int | None = None

    schemas: dict[str, type[BaseModel]] = {"task": Project, "task:Atlas": Atlas}
    with opened(tmp_path, None, **schemas) as kit:
        kit.save(
            "due", "Atlas is due on 1 June 2025.", scope=ANN, topic="task:atlas", slot="atlas:due", value="2025-06-01"
        )
        kit.save("due", "Borea is due in 3 weeks.", scope=ANN, topic="task:borea", slot="borea:due", value="3")
        assert kit.profile(Atlas, scope=ANN, topic="task:atlas").known == {"due": date(2025, 6, 1)}
        assert kit.profile(Project, scope=ANN, topic="task:borea").known == {"due": 3}


def test_what_is_no_schema_is_refused_at_once(kit: MemoryKit, tmp_path: Path) -> None:
    """A mistake shows where it is made, not in the first conversation."""

    class Nothing(BaseModel):
        pass

    class Clash(BaseModel):
        lives_in: str = ""
        home: str = Field("", alias="lives in")

    anything: Any = dict
    for wrong in (Nothing, Clash, anything):
        with pytest.raises(InputError):
            kit.profile(wrong, scope=ANN)
    with pytest.raises(InputError, match="names no topic"):
        kit.profile(Person, scope=ANN, topic="atlas")
    with pytest.raises(SetupError, match="both the slot lives_in"):
        opened(tmp_path, personal=Clash)
    with pytest.raises(ValidationError, match="no topic"):
        ExtractionPolicy(schemas={"people": Person})
    with pytest.raises(ValidationError, match="subclass of BaseModel"):
        ExtractionPolicy(schemas={"personal": anything})


def test_a_settings_file_names_schemas_by_where_they_are_imported_from() -> None:
    """A worker reads the same settings as the agent, and must fill the same fields."""
    policy = ExtractionPolicy.model_validate({"schemas": {"personal": f"{__name__}:Person"}})
    assert policy.schemas["personal"].model_fields.keys() == Person.model_fields.keys()


# ------------------------------------------------------------------------------------ whatever comes

FITTING = st.sampled_from(
    [
        ("lives_in", "Porto"),
        ("age", "36"),
        ("diet", "vegan"),
        ("works", "part time"),
        ("race_on", "2025-04-01"),
        ("allergies", "nuts"),
        ("allergies", "forty"),
    ]
)
ANYHOW = st.tuples(
    st.sampled_from([*Person.model_fields, "plays", ""]),
    st.sampled_from(
        ["", "36", "-1", "forty", "vegan", "Porto", "2025-04-01", "2025", "part time", "nuts", "[1]", "{}"]
    ),
)
ACTIONS = st.sampled_from(["REFINE", "SUPERSEDE", "CORRECT", "END", "CONTRADICT", "DELETE", "CORROBORATE"])
OPERATIONS = st.lists(
    st.tuples(
        st.just("CREATE") | ACTIONS, st.sampled_from(["m1", "m2", "m3"]), FITTING | FITTING | ANYHOW, st.booleans()
    ),
    min_size=2,
    max_size=6,
)
WORDS = "So: 36, -1, forty, vegan, Porto, 2025-04-01, 2025, part time, nuts, [1] and {} it is."


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns=st.lists(OPERATIONS, min_size=1, max_size=4))
def test_whatever_a_model_wants_a_profile_holds_values_of_its_types_that_stand_on_words(
    tmp_path_factory: pytest.TempPathFactory, turns: list[Any]
) -> None:
    """The door is checked by code, whatever comes through it."""
    spoken = [
        (
            f"{WORDS} {at}",
            [
                {
                    "action": action,
                    "id": [] if action == "CREATE" else [memory],
                    "content": f"Ann says {value} of {slot} {at} {each}.",
                    "slot": slot,
                    "value": value,
                    "many": many,
                    "evidence": [{"n": 1, "quote": value if value in WORDS and value else "it is"}],
                }
                for each, (action, memory, (slot, value), many) in enumerate(operations)
            ],
        )
        for at, operations in enumerate(turns)
    ]
    script = {
        "DigestAnswer": lambda _: digest("personal:Ann"),
        "ProposalAnswer": lambda call: proposal(*spoken[_turn(call.text)][1]),
    }
    with opened(tmp_path_factory.mktemp("kit"), script) as kit:
        for at, (words, _) in enumerate(spoken):
            kit.add_messages([said(words, minutes=60 * at, thread=f"t{at}")], scope=ANN)
            kit.summarize(scope=ANN, close=True)
            clock_of(kit).move(timedelta(hours=1))
        profile = read(kit)
        recorded = {
            each.message_id: each.text for at in range(len(turns)) for each in kit.messages(f"t{at}", scope=ANN)
        }

    for field in profile:
        kind: Any = Person.model_fields[field.name].annotation
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        assert not field.known or adapter.validate_python(field.value, strict=True) == field.value
        for each in (*field.current, *field.history):
            assert not each.problem, "a value of another type stands in the slot"
        assert not field.known or field.words
        assert all(quote.words in recorded[quote.message.message_id] for quote in field.words)
    assert profile.filled is not None
    event(f"{len(profile.known)} fields known")


def _turn(prompt: str) -> int:
    block = prompt[prompt.rindex("Block:") :]
    return int(block[block.index("it is.") + 7])
