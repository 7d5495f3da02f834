"""The memory tools through the real `openai` SDK, against a server of our own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.utils.function_calling import convert_to_openai_tool
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageFunctionToolCall
from openai.types.chat.chat_completion_message_custom_tool_call import ChatCompletionMessageCustomToolCall
from openai.types.responses import ResponseFunctionToolCall, ResponseInputParam

from remegraph import MemoryKit, Scope, ScopeError
from remegraph.adapters import memory_tools
from remegraph_openai_tools import MemoryFunctions

if TYPE_CHECKING:
    from integrations.openai_tools.tests.conftest import ScriptedServer

ANN = Scope(user="ann@example.org", agent="remy")
BOB = Scope(user="bob@example.org", agent="remy")
_README = Path(__file__).parents[1] / "README.md"
TEA = {"key": "tea", "content": "Ann drinks oolong."}


def completion(content: str | None = None, **calls: str) -> dict[str, Any]:
    """What the server says in a chat: text, or calls by function name."""
    tool_calls = [
        {"id": f"call-{name}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for name, arguments in calls.items()
    ]
    message = {"role": "assistant", "content": content, "tool_calls": tool_calls or None}
    choice = {"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": message}
    return {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}


def asking(name: str, arguments: str) -> ChatCompletionMessageFunctionToolCall:
    """A call as the SDK gives it."""
    fields = {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return ChatCompletionMessageFunctionToolCall.model_validate(fields)


@pytest.mark.requirement("C6")
def test_the_readme_saves_finds_and_lets_the_model_read_what_failed(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The loop that everybody copies: what the model gets wrong goes back to it, and the chat goes on."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    server.script = [
        completion(save_memory=json.dumps(TEA)),
        completion("Noted."),
        completion(search_memory="{not json", recall_everything="{}"),
        completion(search_memory='{"query": "oolong"}'),
        completion("You drink oolong."),
    ]
    (code,) = re.findall(r"^```python\n(.*?)^```", _README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(compile(code.replace("~/.my-agent", str(tmp_path)), str(_README), "exec"), names)
    names["kit"].close()
    names["client"].close()

    assert capsys.readouterr().out == "Noted.\nYou drink oolong.\n"
    sent = [message for request in server.requests for message in request["messages"][-2:]]
    said = list(dict.fromkeys(message["content"] for message in sent if message["role"] == "tool"))
    assert said[0].startswith("Saved as new memory")
    assert said[1].startswith("Error: search_memory was not called. Its arguments are not JSON")
    assert said[2].startswith("Error: There is no function 'recall_everything' here. There are save_memory,")
    assert "Ann drinks oolong." in said[3]


async def test_the_responses_api_and_async_clients_work_alike(server: ScriptedServer, kit: MemoryKit) -> None:
    """It is the SDK's newer interface, and servers are async."""
    memory = MemoryFunctions(kit, ANN)
    asked = {"type": "function_call", "call_id": "1", "name": "save_memory", "arguments": json.dumps(TEA)}
    shell = {"id": "r", "object": "response", "created_at": 0, "model": "m", "parallel_tool_calls": True}
    server.script = [shell | {"tool_choice": "auto", "tools": [], "output": [asked]}, completion(save_memory="{}")]
    async with AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0) as client:
        response = await client.responses.create(model="m", input="I drink oolong.", tools=memory.responses_tools)
        calls = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
        outputs: ResponseInputParam = [await memory.acall(call) for call in calls]
        chat = await client.chat.completions.create(model="m", messages=[], tools=memory.chat_tools)
        answers = [await memory.acall(call) for call in chat.choices[0].message.tool_calls or ()]

    (output,) = outputs
    assert output == {"type": "function_call_output", "call_id": "1", "output": output["output"]}  # type: ignore[typeddict-item]
    assert "Saved as new memory" in str(output)
    assert answers == [{"role": "tool", "tool_call_id": "call-save_memory", "content": answers[0]["content"]}]
    assert "key: Field required; content: Field required." in str(answers)
    assert server.requests[0]["tools"] == memory.responses_tools


def test_both_shapes_are_the_schemas_of_the_tools(kit: MemoryKit) -> None:
    """A second copy would drift from the tools that answer."""
    memory = MemoryFunctions(kit, ANN)
    expected = [convert_to_openai_tool(tool) for tool in memory_tools(kit)]
    assert memory.chat_tools == expected
    assert memory.responses_tools == [{"type": "function", "strict": False, **tool["function"]} for tool in expected]
    assert memory.names == {tool["function"]["name"] for tool in expected}


@pytest.mark.requirement("X5")
@pytest.mark.parametrize("forged", ["user", "scope", "runtime", "config"])
def test_a_model_cannot_say_for_whom(kit: MemoryKit, forged: str) -> None:
    """Whoever writes to the model would otherwise read anybody's memory."""
    arguments = {"query": "mate", forged: {"user_id": BOB.user, "context": {"user_id": BOB.user}}}
    said = str(MemoryFunctions(kit, ANN).call(asking("search_memory", json.dumps(arguments)))["content"])
    assert said == f"Error: search_memory was not called. It takes no {forged}, only query, k."


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", "key: Field required"),
        ("[1]", "must be one JSON object, not list"),
        ("[" * 100_000, "are not JSON"),
        ('{"key": "tea", "content": 7}', "content: Input should be a valid string"),
        ('{"key": "tea", "content": "Tea.", "importance": NaN}', "importance: Input should be less than"),
        ('{"key": "tea", "content": " "}', "The statement is empty."),
        ('{"key": "tea", "content": "\\u0000\\ud800"}', "lone surrogates"),
    ],
)
def test_what_a_model_gets_wrong_is_answered_and_changes_nothing(kit: MemoryKit, arguments: str, expected: str) -> None:
    """Models send broken arguments every day; an exception would end the user's chat."""
    said = str(MemoryFunctions(kit, BOB).call(asking("save_memory", arguments))["content"])
    assert said.startswith("Error: ")
    assert expected in said
    assert kit.memories(scope=BOB) == ()


def test_a_call_of_a_custom_tool_is_answered_too(kit: MemoryKit) -> None:
    """A call without an answer makes the provider refuse the next request."""
    call = ChatCompletionMessageCustomToolCall.model_validate(
        {"id": "9", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    )
    answer = MemoryFunctions(kit, ANN).call(call)
    assert answer["tool_call_id"] == "9"
    assert "There is no function 'shell' here" in str(answer["content"])


def test_without_a_scope_the_developer_is_told_at_once(kit: MemoryKit) -> None:
    """There is no run that could say who the user is."""
    with pytest.raises(ScopeError, match=r"Give scope=Scope\(user=\.\.\.\)"):
        MemoryFunctions(kit, None)  # type: ignore[arg-type]
