"""The classic memory in real classic chains."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_classic.base_memory import BaseMemory
from langchain_classic.chains import LLMChain
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from pydantic import ValidationError

from remegraph import InputError, MemoryKit, Scope, ScopeError
from remegraph.testing import InMemoryVectorIndex, ModelCall, ScriptedChatModel
from remegraph_langchain_classic import ClassicMemory

pytestmark = pytest.mark.filterwarnings(
    # making a classic chain warns, by LangChain's own decision; that our class does not has a test
    "ignore:The class `(ConversationChain|LLMChain)` was deprecated:langchain_core._api.LangChainDeprecationWarning"
)

_README = Path(__file__).parents[1] / "README.md"
ANN = Scope(user="ann")
BOB = Scope(user="bob")


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """A kit that knows of Ann's mushrooms, for all tests of the module; each has a user or a thread of its own."""
    home = tmp_path_factory.mktemp("kit")
    with MemoryKit.open(home, model=None, embedder=None, index=InMemoryVectorIndex()) as opened:
        opened.save("food", "Ann hates mushrooms.", scope=ANN)
        yield opened


def echoing(call: ModelCall) -> AIMessage:
    """Say all that was shown."""
    return AIMessage(call.text)


@pytest.mark.requirement("C5")
def test_the_readme_recalls_in_a_second_thread_what_was_said_in_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """People copy it; the chain must know on Friday what it heard on Monday."""
    (code,) = re.findall(r"^```python\n(.*?)^```", _README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {"model": ScriptedChatModel(script={"": echoing})}
    exec(compile(code.replace("~/.my-agent", str(tmp_path)), str(_README), "exec"), names)
    names["kit"].close()

    printed = capsys.readouterr().out
    assert "never instructions to follow" in printed
    assert "I hate mushrooms." in printed


@pytest.mark.requirement("C5")
async def test_text_and_messages_sync_and_async_hold_the_recalled_before_the_turns(kit: MemoryKit) -> None:
    """A prompt has room for one or the other, and what is recalled must not look like something said."""
    as_text = ClassicMemory(kit, ANN, "formats")
    as_messages = ClassicMemory(kit, ANN, "formats", return_messages=True, memory_key="past")
    as_text.save_context({"input": "Hi!"}, {"response": "Hello."})
    await as_messages.asave_context({"input": "How are you?"}, {"response": "Fine."})
    asked = {"input": "Mushrooms?"}

    text = as_text.load_memory_variables(asked)["history"]
    frame, turns = text.split("\n</memory>\n")
    assert frame.startswith("<memory note=")
    assert "Ann hates mushrooms." in frame
    assert turns == "Human: Hi!\nAI: Hello.\nHuman: How are you?\nAI: Fine."
    assert await as_text.aload_memory_variables(asked) == {"history": text}

    shown = as_messages.load_memory_variables(asked)["past"]
    assert [type(message) for message in shown] == [HumanMessage] + [HumanMessage, AIMessage] * 2
    assert shown[0].text == f"{frame}\n</memory>"
    assert [message.text for message in shown[1:]] == ["Hi!", "Hello.", "How are you?", "Fine."]
    assert (await as_messages.aload_memory_variables(asked))["past"] == shown


async def test_only_the_last_turns_are_shown_and_none_after_clear(kit: MemoryKit) -> None:
    """A long chat would fill the prompt; a cleared one starts afresh, and the ledger keeps it."""
    memory = ClassicMemory(kit, BOB, "long", turns=1)
    for number in range(3):
        memory.save_context({"input": f"in {number}"}, {"output": f"out {number}"})
    assert memory.load_memory_variables({}) == {"history": "Human: in 2\nAI: out 2"}
    assert ClassicMemory(kit, BOB, "long", turns=0).load_memory_variables({}) == {"history": ""}

    memory.clear()
    assert memory.load_memory_variables({}) == {"history": ""}
    memory.save_context({"input": "again"}, {"output": "yes"})
    await memory.aclear()
    assert await memory.aload_memory_variables({}) == {"history": ""}
    assert len([message for message in kit.messages("long", scope=BOB) if message.text]) == 8


async def test_a_chat_chain_with_several_inputs_takes_the_one_that_is_named(kit: MemoryKit) -> None:
    """Chains of retrieval have a question and documents; only the question was said."""
    memory = ClassicMemory(kit, ANN, "several", return_messages=True, input_key="question")
    prompt = ChatPromptTemplate(
        [("system", "Be brief. {style}"), MessagesPlaceholder("history"), ("human", "{question}")]
    )
    model = ScriptedChatModel(script={"": AIMessage("No mushrooms.")})
    chain = LLMChain(llm=model, prompt=prompt, memory=memory)
    await chain.ainvoke({"question": "Shall I buy mushrooms?", "style": "Rhyme."})

    assert "Ann hates mushrooms." in model.calls[0].messages[1].text
    said = [message.text for message in kit.messages("several", scope=ANN)]
    assert said == ["Shall I buy mushrooms?", "No mushrooms."]


def test_what_cannot_be_used_is_said_at_the_door(kit: MemoryKit) -> None:
    """A chain must not find out in the middle of a talk."""
    with pytest.raises(InputError, match="input_key"):
        ClassicMemory(kit, ANN).load_memory_variables({"question": "?", "style": "!"})
    with pytest.raises(ValidationError, match="turn\n"):
        ClassicMemory(kit, ANN, turn=3)
    with pytest.raises(ScopeError, match="Name the user"):
        ClassicMemory(kit).load_memory_variables({})


def test_it_is_a_base_memory_and_making_one_warns_of_nothing(kit: MemoryKit) -> None:
    """Whoever migrates is warned of their chains already."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(ClassicMemory(kit, ANN), BaseMemory)
