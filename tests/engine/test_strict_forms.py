"""The forms of answers as providers take them that bind a model to one, and what comes back in them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr

from remegraph.engine.chat import answers
from remegraph.engine.chat.answers import DigestAnswer, ProposalAnswer, SkillAnswer, strict_form
from remegraph.engine.chat.model_call import Asker, Question
from remegraph.engine.summary_tasks import Meter
from remegraph.errors import InvalidAnswerError
from tests.engine.test_model_call import Plain

FORMS: list[type[BaseModel]] = [
    found for name in answers.__all__ if name.endswith("Answer") and strict_form(found := getattr(answers, name))
]
_TAKEN = {"type", "description", "enum", "anyOf", "properties", "required", "items", "additionalProperties"}

_MESSAGE = ("Add up.", "1 and 2")


def records(node: Any) -> Iterator[Mapping[str, Any]]:
    """All parts of a schema."""
    if isinstance(node, dict):
        yield node
        inner = [*node.get("properties", {}).values(), *node.get("anyOf", ()), *filter(None, [node.get("items")])]
        for each in inner:
            yield from records(each)


def told(schema: type[BaseModel]) -> dict[str, Any]:
    form = strict_form(schema)
    assert form is not None
    parameters: dict[str, Any] = form["parameters"]
    return parameters


@pytest.mark.parametrize("schema", FORMS)
def test_a_strict_form_keeps_the_rules_of_openai(schema: type[BaseModel]) -> None:
    """Every field required, nothing else allowed, no keyword that is refused; converting it again changes nothing."""
    form = strict_form(schema)
    assert form is not None
    parts = list(records(form["parameters"]))
    assert form["strict"] is True
    assert all(part.keys() <= _TAKEN for part in parts)
    for part in parts:
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert sorted(part["required"]) == sorted(part["properties"])
    again = convert_to_openai_tool({"type": "function", "function": form}, strict=True)
    assert again["function"]["parameters"] == form["parameters"]


def filled(node: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Whatever a model may write that is bound to a form."""
    if "anyOf" in node:
        return st.one_of(*map(filled, node["anyOf"]))
    if "enum" in node:
        return st.sampled_from(node["enum"])
    if node["type"] == "object":
        return st.fixed_dictionaries({name: filled(field) for name, field in node["properties"].items()})
    if node["type"] == "array":
        return st.lists(filled(node["items"]), max_size=3)
    simple: dict[str, st.SearchStrategy[Any]] = {
        "null": st.none(),
        "string": st.text("abc de", min_size=1, max_size=30).map(lambda text: f"x{text}"),
        "integer": st.integers(0, 9),
        "number": st.floats(0, 1),
        "boolean": st.booleans(),
    }
    return simple[node["type"]]


@given(st.data())
def test_whatever_is_written_in_a_strict_form_is_read_nulls_included(data: st.DataObject) -> None:
    """What was optional is null there; it is read as if it had been left out."""
    schema = data.draw(st.sampled_from(FORMS))
    written = data.draw(filled(told(schema)))
    read = schema.model_validate(written)
    bare = {name: value for name, value in written.items() if value is not None}
    assert read == schema.model_validate(bare)


def test_a_form_with_a_record_of_any_fields_is_not_bound() -> None:
    """The arguments of any tool cannot be named beforehand."""
    assert strict_form(SkillAnswer) is None
    assert len(FORMS) > 10


def openai(host: str, sent: list[dict[str, Any]]) -> ChatOpenAI:
    """A client whose provider answers with nulls wherever it may."""

    def reply(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        call = {"name": "DigestAnswer", "arguments": json.dumps({"summary": "So it was.", "entities": None})}
        message = {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": call}]}
        choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
        return httpx.Response(200, json={"id": "1", "object": "chat.completion", "model": "m", "choices": [choice]})

    client = httpx.Client(transport=httpx.MockTransport(reply))
    return ChatOpenAI(
        model_name="m",
        openai_api_key=SecretStr("no key"),
        openai_api_base=f"https://{host}/v1",
        http_client=client,
    )


def summary(model: Any) -> str:
    question = Question("digest", _MESSAGE, "en", DigestAnswer, lambda answer: answer.summary)
    return Asker(model, repairs=0, retries=0, backoff=0).ask(question, Meter())


def test_openai_is_bound_to_the_strict_form_and_others_of_its_protocol_are_not() -> None:
    """A server that speaks its protocol may refuse what it does not know; there, the form is what it was."""
    sent: list[dict[str, Any]] = []
    assert summary(openai("api.openai.com", sent)) == summary(openai("llm.example.com", sent)) == "So it was."
    strict, lenient = (each["tools"][0]["function"] for each in sent)
    assert (strict["strict"], strict["parameters"]) == (True, told(DigestAnswer))
    assert sent[0]["parallel_tool_calls"] is False
    assert lenient == convert_to_openai_tool(DigestAnswer)["function"]
    assert "parallel_tool_calls" not in sent[1]


class Small(Plain):
    """A local model, as its package offers it."""

    formats: list[Any] = []  # noqa: RUF012 - pydantic copies it

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **given: Any) -> Any:
        self.formats.append(given["format"])
        return super()._generate(messages, stop, run_manager)


Small.__module__ = "langchain_ollama.chat_models"


def test_a_small_local_model_is_bound_by_its_format_and_told_the_form_in_words() -> None:
    """Its tools are advice to it; a format is not, and stands in no prompt by itself."""
    model = Small()
    question = Question("propose", _MESSAGE, "en", ProposalAnswer, lambda answer: len(answer.operations))
    with pytest.raises(InvalidAnswerError):
        Asker(model, repairs=0, retries=0, backoff=0).ask(question, Meter())
    assert model.formats == [told(ProposalAnswer)]
    assert any('"operations"' in text for text in model.heard)
