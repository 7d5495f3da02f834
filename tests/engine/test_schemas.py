"""What stands in a slot is read as a value of its field's type, generously as to its form, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field

from remegraph.engine.schemas import Schemas, schema_of
from remegraph.errors import InputError
from remegraph.models import Topic

pytestmark = pytest.mark.requirement("X19")


class Stage(Enum):
    """How far something is."""

    IN_PROGRESS = "in progress"
    DONE = "done"


class Level(IntEnum):
    """A number with a name."""

    LOW = 1
    HIGH = 2


class Place(BaseModel):
    """A record within a record."""

    city: str
    floor: int = 0


class Everything(BaseModel):
    """Fields of all kinds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    age: Annotated[int, Field(ge=0)] | None = Field(None, description="In years.")
    price: Decimal = Decimal(0)
    stage: Stage = Stage.DONE
    level: Level | None = None
    kinds: list[Literal["x-ray", "ct", 3]] = Field(default=[], min_length=2)
    born: date | None = None
    wait: timedelta | None = None
    sure: bool = False
    place: Place | None = None
    places: tuple[Place, ...] = ()
    numbers: set[int] = set()
    anything: Sequence[Any] = ()
    words: str | None = Field(None, validation_alias=AliasChoices("words", "Former Name", AliasPath("deep", 0)))
    pair: tuple[int, int] | None = None


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("age", "36", 36),
        ("age", " ３６ ", 36),
        ("price", "12.50", Decimal("12.50")),
        ("stage", "In Progress", Stage.IN_PROGRESS),
        ("stage", "in-progress", Stage.IN_PROGRESS),
        ("stage", "IN_PROGRESS", Stage.IN_PROGRESS),
        ("level", "high", Level.HIGH),
        ("level", "2", Level.HIGH),
        ("kinds", "X Ray", "x-ray"),
        ("kinds", "3", 3),
        ("born", "1991-01-28", date(1991, 1, 28)),
        ("wait", "P2D", timedelta(days=2)),
        ("sure", "yes", True),
        ("place", '{"city": "Leeds", "floor": "2"}', Place(city="Leeds", floor=2)),
        ("places", '{"city": "York"}', Place(city="York")),
        ("numbers", "4", 4),
        ("anything", "whatever", "whatever"),
        ("words", "[not JSON", "[not JSON"),
        ("pair", "[1, 2]", (1, 2)),
    ],
)
def test_texts_are_read_as_values(field: str, text: str, value: Any) -> None:
    """Models write numbers as text, names in capitals and records as JSON."""
    read = schema_of(Everything).fields[field].read(text)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("field", "text", "why"),
    [
        ("age", "", "it is empty"),
        ("age", "thirty-six", "valid integer"),
        ("age", "-1", "greater than or equal to 0"),
        ("stage", "begun", "'in progress' or 'done'"),
        ("kinds", "mri", "'x-ray', 'ct' or 3"),
        ("born", "28 January", "valid date"),
        ("born", "0", "a number alone is no date"),
        ("place", "Leeds", "valid dictionary"),
        ("place", '{"floor": 2}', "city: Field required"),
        ("pair", "[1]", "Field required"),
    ],
)
def test_what_is_no_value_is_refused_with_the_reason(field: str, text: str, why: str) -> None:
    """The reason is what a model is told."""
    with pytest.raises(ValueError, match=why):
        schema_of(Everything).fields[field].read(text)


def test_a_writer_is_shown_each_field_with_what_it_holds() -> None:
    """Names, descriptions, constraints, and no word more."""
    lines = dict(line.split(" ", 1) for line in schema_of(Everything).lines().splitlines())
    assert lines.keys() == Everything.model_fields.keys()
    assert lines["age"] == '{"minimum": 0, "type": "integer", "description": "In years."}'
    assert (
        lines["stage"] == '{"description": "How far something is.", "enum": ["in progress", "done"], "type": "string"}'
    )
    assert lines["kinds"] == '{"type": "array", "items": {"enum": ["x-ray", "ct", 3]}}'
    assert lines["words"] == '{"type": "string"}'
    assert '"city": {"type": "string"}' in lines["places"]
    assert "$" not in "".join(lines.values())


def test_a_record_that_holds_itself_is_shown_once() -> None:
    """A tree has no end."""

    class Tree(BaseModel):
        name: str = ""
        under: list[Tree] = []

    class Holder(BaseModel):
        tree: Tree | None = None

    Tree.model_rebuild(_types_namespace={"Tree": Tree})
    assert schema_of(Holder).lines().count('"under"') == 1


def test_slots_are_fields_by_their_names_and_aliases_of_their_own_topic_only() -> None:
    """What is said of somebody else fills nothing."""
    schemas = Schemas({"personal": Everything, "personal:Bob": Place})
    ann, bob = (Topic(type="personal", target_name=name) for name in ("Ann", "bob"))

    def found(slot: str, *topics: Topic) -> tuple[str, str] | None:
        filled = schemas.field(slot, topics)
        return (filled.field.name, filled.slot) if filled else None

    assert found("ann:age", ann) == ("age", "ann:age")
    assert found("Ann : Former name", ann) == ("words", "ann:words")
    assert found("bob:age", ann) is None
    assert found("bob:city", ann, bob) == ("city", "bob:city")
    assert found("bob:age", ann, bob) is None, "a schema of one topic stands instead of that of its type"
    assert found("ann:plays", ann) is None
    assert found("", ann) is None
    assert found("kassa:age", Topic(type="task", target_name="kassa")) is None


def test_what_a_model_refuses_as_a_whole_is_left_out_and_told() -> None:
    """A list that must be longer is unknown; the rest is filled."""
    filled, refused, problem = schema_of(Everything).fill({"age": 36, "kinds": ["ct"]})
    assert filled == Everything(age=36)
    assert refused == {"kinds": "List should have at least 2 items after validation, not 1"}
    assert problem == ""


@pytest.mark.parametrize("wrong", [dict, Place(city="Leeds"), "Place", None])
def test_only_pydantic_models_are_schemas(wrong: Any) -> None:
    """A mistake is told, not guessed around."""
    with pytest.raises(InputError, match="not a pydantic model"):
        schema_of(wrong)
