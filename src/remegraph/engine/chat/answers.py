"""What a chat model is asked to fill in. Short, so that the instructions stay cheap; read generously, checked by code."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_origin

from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import SkipJsonSchema

__all__ = [
    "ConclusionAnswer",
    "DescribeAnswer",
    "DescriptionAnswer",
    "DigestAnswer",
    "FieldAnswer",
    "GeneralAnswer",
    "KnowledgeAnswer",
    "NamesAnswer",
    "ObjectionAnswer",
    "OperationAnswer",
    "ProposalAnswer",
    "QuoteAnswer",
    "RuleAnswer",
    "ScreenAnswer",
    "SkillAnswer",
    "StepAnswer",
    "UnreadOperation",
    "VerdictAnswer",
    "problems",
    "strict_form",
]

_MOST_OPERATIONS = 400
"""More than this is a model that repeats itself."""

_BETWEEN = re.compile(r"[,，、;；\n]+")


def _no_nul(value: str) -> str:
    if "\x00" in value:
        raise ValueError("must not contain NUL")
    return value


_Words = Annotated[str, AfterValidator(_no_nul)]
"""What a model says in words of its own; a quote is checked against its message instead."""


def problems(error: ValidationError) -> str:
    """Return what pydantic holds against an answer, in one line."""
    details = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in details[:8])


_KEPT = ("type", "description", "enum", "anyOf")
"""Keywords of JSON Schema that every provider accepts with strict output."""


def strict_form(schema: type[BaseModel]) -> dict[str, Any] | None:
    """Return a schema in the form of strict output; None if it cannot be expressed so.

    Every field is required, and null where it was optional; nothing else may be given; the reader checks bounds.
    """
    function = convert_to_openai_tool(schema)["function"]
    try:
        return {**function, "strict": True, "parameters": _strict(function["parameters"])}
    except KeyError:  # a record of any fields
        return None


def _strict(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a schema.

    Raises:
        KeyError: It is a record whose fields are not named.
    """
    kept = {name: node[name] for name in _KEPT if name in node}
    if node.get("type") == "array":
        return {**kept, "items": _strict(node["items"])}
    if node.get("type") != "object":
        return kept
    fields, required = node["properties"], node.get("required", ())
    properties = {
        name: _strict(field) if name in required else {"anyOf": [_strict(field), {"type": "null"}]}
        for name, field in fields.items()
    }
    return {**kept, "properties": properties, "required": list(fields), "additionalProperties": False}


class _Answer(BaseModel):
    """An answer, however a model wraps it: null, names in capitals, JSON in a string, a list bare or of one.

    An optional field that cannot be read is dropped, and `notes` says so.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    notes: SkipJsonSchema[tuple[str, ...]] = ()
    """What was read differently from how it was written, or dropped."""

    vital: ClassVar[frozenset[str]] = frozenset()
    """Optional fields without which it would say something else: they are never dropped."""

    @model_validator(mode="wrap")
    @classmethod
    def _generously(cls, value: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        fields = cls._fields(value)
        if not isinstance(fields, dict):
            return read(fields)
        notes = cls._normalize(fields)
        try:
            return read({**fields, "notes": tuple(notes)})
        except ValidationError as error:
            spoiled = {str(item["loc"][0]) if item["loc"] else "" for item in error.errors()}
            if not all(name in cls.model_fields and cls._droppable(name) for name in spoiled):
                raise
            notes.append(f"dropped {problems(error)}")
            return read({name: kept for name, kept in fields.items() if name not in spoiled} | {"notes": tuple(notes)})

    @classmethod
    def _normalize(cls, fields: dict[str, Any]) -> list[str]:  # noqa: ARG003 - for those that read more
        """Rewrite fields in place that models often write in another way; return notes on what changed."""
        return []

    @classmethod
    def _droppable(cls, name: str) -> bool:
        return name not in cls.vital and not cls.model_fields[name].is_required()

    @classmethod
    def _fields(cls, value: Any) -> Any:
        """Return the fields in what a model wrote; anything else unchanged."""
        value = _parsed(value)
        lists = [name for name, field in cls._asked().items() if get_origin(field.annotation) is list]
        sole = lists[0] if len(lists) == len(cls._asked()) == 1 else ""
        if isinstance(value, list) and sole:
            return {sole: value}
        if not isinstance(value, dict):
            return value
        named = {str(key).strip().casefold().replace("-", "_"): item for key, item in value.items()}
        if not named.keys() & cls._asked().keys():
            within = (_parsed(item) for item in value.values())
            inner = next((item for item in within if _speaks_of(item, cls._asked())), None)
            if inner is not None:
                return cls._fields(inner)
            return {sole: [value]} if sole and _speaks_of(value, _item_fields(cls._asked()[sole])) else value
        given = {name: item for name, item in named.items() if item is not None}
        return {name: _formed(item, cls.model_fields.get(name)) for name, item in given.items()}

    @classmethod
    def _asked(cls) -> dict[str, FieldInfo]:
        """Return the fields that a model is asked for."""
        return {name: field for name, field in cls.model_fields.items() if name not in {"notes", "cut"}}


def _parsed(value: Any) -> Any:
    """Return the JSON in a string; anything else unchanged."""
    if not isinstance(value, str) or not value.strip().startswith(("{", "[")):
        return value
    try:
        return json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return value


def _speaks_of(value: Any, names: Mapping[str, object]) -> bool:
    return isinstance(value, dict) and any(str(key).strip().casefold() in names for key in value)


def _item_fields(field: FieldInfo) -> Mapping[str, object]:
    """Return the required fields of what a list holds."""
    item = _item(field)
    known = item.model_fields if isinstance(item, type) and issubclass(item, BaseModel) else {}
    return {name: each for name, each in known.items() if each.is_required()}


def _item(field: FieldInfo) -> Any:
    """Return what a list holds: a model, or a text."""
    (item,) = get_args(field.annotation)
    if get_origin(item) is Annotated:
        item = get_args(item)[0]
    return next((each for each in get_args(item) if isinstance(each, type)), item)


def _formed(value: Any, field: FieldInfo | None) -> Any:
    """Return a value in the form of its field, where it says the same in another."""
    if field is None:
        return value
    if get_origin(field.annotation) is list:
        return _listed(_parsed(value), texts=_item(field) is str)
    if field.annotation is str:
        return _worded(value)
    return value


def _listed(value: Any, *, texts: bool) -> Any:
    if isinstance(value, dict):
        return [value]
    if texts and isinstance(value, str):
        return [part.strip() for part in _BETWEEN.split(value) if part.strip()]
    if texts and isinstance(value, int):
        return [str(value)]
    if texts and isinstance(value, list):
        return [_worded(item) for item in value if item is not None]
    return value


def _worded(value: Any) -> Any:
    """Return a number as text, and texts in a row as one; of a record, its first text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    if isinstance(value, dict):
        return next((item for item in value.values() if isinstance(item, str)), value)
    return value


class DigestAnswer(_Answer):
    """Summary and routing of a block."""

    summary: _Words = Field(min_length=1, max_length=2000, description="What happened, 1-2 sentences.")
    entities: list[_Words] = Field(default_factory=list, max_length=50)
    vital: ClassVar[frozenset[str]] = frozenset({"topics"})
    topics: list[_Words] = Field(
        default_factory=list, max_length=50, description="Keys type:name; empty: nothing to remember."
    )
    forget: list[int] = Field(default_factory=list, max_length=50, description="Message numbers.")
    correct: list[int] = Field(default_factory=list, max_length=50, description="Message numbers.")


class DescriptionAnswer(_Answer):
    """What is in one attachment."""

    n: int = Field(description="Attachment number.")
    text: _Words = Field(min_length=1, max_length=4000)


class DescribeAnswer(_Answer):
    """What is in the attachments of a block."""

    descriptions: list[DescriptionAnswer] = Field(max_length=100)


class QuoteAnswer(_Answer):
    """Words of one message."""

    n: int = Field(description="Message number.")
    quote: str = Field(min_length=1, description="Its exact words.")

    @classmethod
    def _normalize(cls, fields: dict[str, Any]) -> list[str]:
        for name, others in (("n", ("message", "message_id", "number")), ("quote", ("text", "words", "content"))):
            fields.setdefault(name, next((fields[other] for other in others if other in fields), None))
        number = re.search(r"\d+", str(fields["n"]))
        fields["n"] = int(number[0]) if number else 0  # the words alone locate the quote
        return []


_ACTIONS = {
    "ADD": "CREATE", "INSERT": "CREATE", "NEW": "CREATE", "REPLACE": "SUPERSEDE", "CONFIRM": "CORROBORATE",
    "REMOVE": "DELETE", "FORGET": "DELETE", "FIX": "CORRECT", "EXPIRE": "END", "CLOSE": "END",
}  # fmt: skip
"""What models call the actions that mean the same."""

_CATEGORIES = {
    "plan": "decision", "goal": "decision", "intention": "decision", "task": "decision", "commitment": "decision",
    "event": "episode", "experience": "episode", "history": "episode", "habit": "preference", "like": "preference",
    "dislike": "preference", "interest": "preference", "style": "preference", "opinion": "preference",
    "feeling": "emotion", "mood": "emotion", "偏好": "preference", "喜好": "preference", "事实": "fact",
    "决定": "decision", "计划": "decision", "情绪": "emotion", "情感": "emotion", "经历": "episode", "事件": "episode",
}  # fmt: skip
"""The nearest category to others that models name; whatever else is a fact."""

_GRADES = {"low": 0.2, "medium": 0.5, "high": 0.8, "低": 0.2, "中": 0.5, "高": 0.8}


class OperationAnswer(_Answer):
    """One change to the memories of a topic."""

    action: Literal["CREATE", "CORROBORATE", "REFINE", "SUPERSEDE", "CORRECT", "END", "CONTRADICT", "DELETE"]
    id: list[_Words] = Field(default_factory=list, description="Memory ids; none for CREATE.")
    content: _Words = Field(default="", max_length=2000)
    when_to_use: _Words = Field(default="", max_length=500)
    category: Literal["preference", "fact", "decision", "emotion", "episode"] = "fact"
    slot: _Words = Field(default="", max_length=80, description="Attribute, e.g. lives_in.")
    whose: _Words = Field(default="", max_length=80, description="Whose attribute, if not the topic's.")
    value: _Words = Field(default="", max_length=200, description="Short value of the slot.")
    many: bool = Field(default=False, description="True: the slot holds several values at once.")
    importance: float = Field(default=0.5, ge=0, le=1)
    tags: list[_Words] = Field(default_factory=list, max_length=8)
    valid_from: _Words = Field(default="", max_length=40, description="ISO date since when it is true.")
    valid_to: _Words = Field(default="", max_length=40, description="ISO date until when (END).")
    evidence: list[QuoteAnswer] = Field(max_length=20)
    vital: ClassVar[frozenset[str]] = frozenset({"id", "content", "evidence"})

    @classmethod
    def _normalize(cls, fields: dict[str, Any]) -> list[str]:
        notes: list[str] = []
        action = str(fields.get("action", "")).strip().upper()
        fields["action"] = _ACTIONS.get(action, action)
        fields["id"] = [name for each in fields.get("id", ()) for name in _ids(str(each))]
        if isinstance(evidence := fields.get("evidence"), str):
            fields["evidence"] = [evidence]
        fields["evidence"] = [{"quote": each} if isinstance(each, str) else each for each in fields.get("evidence", ())]
        if (category := str(fields.get("category", "fact")).strip().casefold()) not in get_args(
            cls.model_fields["category"].annotation
        ):
            nearest = _CATEGORIES.get(category, "fact")
            notes.append(f"category {category!r} read as {nearest!r}")
            category = nearest
        fields["category"] = category
        if "importance" in fields and (importance := _weighed(fields["importance"])) is not None:
            fields["importance"] = importance
        return notes


def _ids(text: str) -> list[str]:
    """Return the ids in a text: short ones anywhere in it, else its parts."""
    short = re.findall(r"(?i)\b[mo]\d+\b", text)
    return [name.casefold() for name in short] or [part.strip() for part in _BETWEEN.split(text) if part.strip()]


def _weighed(value: Any) -> float | None:
    """Return an importance on a scale of 0 to 1, whatever scale it was given on: 8, "8 of 10", "80 %", "high"."""
    text = str(value).strip().casefold().replace(",", ".")
    if text in _GRADES:
        return _GRADES[text]
    found = re.fullmatch(r"(\d*\.?\d+)\s*(?:(%|percent)|(?:/|of|out of|分之)\s*(\d+))?", text)
    if found is None:
        return None
    number, whole = float(found[1]), float(found[3] or 0)
    scale = whole or (100 if found[2] else 1 if number <= 1 else 10 if number <= 10 else 100)
    return number / scale if number <= scale else None


class UnreadOperation(BaseModel):
    """A change that could not be read, and why."""

    model_config = ConfigDict(frozen=True)

    written: str
    """The beginning of what was written."""
    problem: str


class ProposalAnswer(_Answer):
    """Changes to the memories of a topic."""

    operations: list[OperationAnswer | SkipJsonSchema[UnreadOperation]]
    cut: SkipJsonSchema[bool] = False
    """Whether the answer broke off: there may have been more."""

    @field_validator("operations", mode="before")
    @classmethod
    def _one_by_one(cls, value: Any) -> Any:
        """Read each operation separately: one that cannot be read does not affect the others."""
        if not isinstance(value, Sequence) or isinstance(value, str):
            return value
        if len(value) > _MOST_OPERATIONS:
            raise ValueError(f"{len(value)} operations; give those that matter")
        return [_operation(item) for item in value]


def _operation(item: Any) -> Any:
    if isinstance(item, UnreadOperation):
        return item
    try:
        return OperationAnswer.model_validate(item)
    except ValidationError as error:
        written = json.dumps(item, ensure_ascii=False, default=str)[:80].encode("utf-8", "replace").decode("utf-8")
        return UnreadOperation(written=written, problem=problems(error))


class ObjectionAnswer(_Answer):
    """One thing wrong with the memories."""

    topic: _Words = Field(description="Topic key.")
    kind: Literal["omission", "duplicate", "conflict"]
    reason: _Words = Field(min_length=1, max_length=500)


class VerdictAnswer(_Answer):
    """What is wrong with the memories; empty: nothing."""

    objections: list[ObjectionAnswer] = Field(max_length=40)


class RuleAnswer(_Answer):
    """What the owner's rules say of one statement."""

    n: int = Field(description="Statement number.")
    rule: int = Field(ge=0, description="Number of the rule that it breaks; 0: none.")


class ScreenAnswer(_Answer):
    """What the owner's rules say of statements, and of the words of a block."""

    verdicts: list[RuleAnswer] = Field(max_length=1000)
    words: list[QuoteAnswer] = Field(default_factory=list, max_length=200)
    vital: ClassVar[frozenset[str]] = frozenset({"words"})


class ConclusionAnswer(_Answer):
    """What similar memories have in common."""

    conclusion: _Words = Field(
        max_length=500, description="1-2 sentences, in words of your own; empty: nothing in common."
    )
    conditions: list[_Words] = Field(
        default_factory=list, max_length=5, description="When it applies, a few words each; none without a conclusion."
    )


class StepAnswer(_Answer):
    """One step of a skill."""

    n: int = Field(description="Number of the call that it repeats.")
    name: _Words = Field(min_length=1, max_length=80, description="One word.")
    args: dict[str, Any] = Field(
        default_factory=dict,
        description="The call's arguments; what changes from run to run is {slot} or {step.field}.",
    )
    after: list[_Words] = Field(default_factory=list, max_length=50, description="Names of the steps before it.")


class SkillAnswer(_Answer):
    """A procedure that can be repeated."""

    name: _Words = Field(min_length=1, max_length=200)
    when_to_use: _Words = Field(default="", max_length=500)
    steps: list[StepAnswer] = Field(min_length=1, max_length=50)


class NamesAnswer(_Answer):
    """Names that occur in texts."""

    names: list[_Words] = Field(max_length=200, description="As they are written there; empty: none.")


class FieldAnswer(_Answer):
    """One field in general words."""

    field: _Words = Field(description="Its name, as given.")
    text: _Words = Field(min_length=1, max_length=1000)


class KnowledgeAnswer(_Answer):
    """One piece of knowledge in general words."""

    n: int = Field(description="Its number.")
    title: _Words = Field(default="", max_length=80, description="A few words.")
    fields: list[FieldAnswer] = Field(max_length=40)


class GeneralAnswer(_Answer):
    """Knowledge in general words."""

    items: list[KnowledgeAnswer] = Field(max_length=40)
