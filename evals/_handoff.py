"""Chat models that stand in for a provider: answers handed over by files, recorded ones, and the same ones damaged.

An answer is recorded by the hash of all that the model was shown: messages, and tools with their schemas. A prompt that
was never answered is written into a folder, where somebody who has read nothing else answers it; it is never guessed.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool

__all__ = ["FAULTS", "Answers", "HandedModel", "Unanswered", "damaged", "digest", "jsonl"]

Answer = dict[str, Any]
"""`{"args": {...}}` of the tool asked for, `{"calls": [{"name", "args"}]}`, or `{"text": "..."}`."""

_FORM = """\
Answer as the model that is addressed below: do honestly what the prompt asks, and nothing else. Write the answer as JSON
into {answer}, next to this file: {{"args": {{...}}}}, the arguments of the tool `{tool}`; or {{"text": "..."}}.

===== tools
{tools}
"""


class Unanswered(BaseException):
    """A prompt waits for its answer. No code that carries on after failures may carry on after this."""


def digest(*shown: object) -> str:
    """Return the short hash of what was shown."""
    text = json.dumps(shown, ensure_ascii=False, sort_keys=True)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file, if it is there."""
    if path.exists():
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


@dataclass
class Answers:
    """The recorded answers of one dialogue, and the folder where new prompts wait.

    Args:
        path: Where they are recorded.
        folder: Where prompts wait; none: an unanswered prompt ends the run all the same, and is written nowhere.
        wait: Whether to wait for answers, rather than to end.
    """

    path: Path
    folder: Path | None = None
    wait: bool = False
    asked: int = 0
    """How often an answer was wanted."""
    _known: dict[str, dict[str, Any]] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._known = {each["key"]: each for each in jsonl(self.path)}

    def exact(self, prompt: Prompt) -> Answer:
        """Return the answer to this very prompt; hand it over where there is none.

        Raises:
            Unanswered: It waits for its answer.
        """
        self.asked += 1
        if prompt.key not in self._known:
            self._hand_over(prompt)
        self._used.add(prompt.key)
        answer: Answer = self._known[prompt.key]["answer"]
        return answer

    def nearest(self, prompt: Prompt) -> Answer:
        """Return the exact answer to the likest prompt for the same tool, with the ids that things have here.

        Only what was answered exactly since this was made is looked at, so that old recordings change nothing.

        Raises:
            Unanswered: There is none.
        """
        self.asked += 1
        lines = {digest(line)[:8] for line in prompt.lines}
        rivals = [self._known[key] for key in sorted(self._used) if self._known[key]["tool"] == prompt.tool]
        if not rivals:
            raise Unanswered
        best = max(rivals, key=lambda each: _likeness(lines, set(each["lines"])))
        here = {meant: name for name, meant in prompt.named.items()}
        renamed = {name: here.get(meant, name) for name, meant in best["ids"].items()}
        answer: Answer = _with_ids(best["answer"], renamed)
        return answer

    def keep_used(self) -> None:
        """Forget what no prompt of today asks for."""
        self._known = {key: self._known[key] for key in sorted(self._used)}
        self._write(self._known.values(), "w")

    def _hand_over(self, prompt: Prompt) -> None:
        if self.folder is None:
            raise Unanswered
        self.folder.mkdir(parents=True, exist_ok=True)
        reply = self.folder / f"{prompt.key}.json"
        if not reply.exists():
            (self.folder / f"{prompt.key}.txt").write_text(prompt.text(reply.name), encoding="utf-8")
        while (answer := _reply(reply)) is None:
            if not self.wait:
                raise Unanswered
            time.sleep(0.5)
        self._record(prompt, answer)

    def _record(self, prompt: Prompt, answer: Answer) -> None:
        ids = {name: meant for name, meant in prompt.named.items() if name in set(_ids(answer))}
        lines = sorted({digest(line)[:8] for line in prompt.lines})
        entry = {"key": prompt.key, "tool": prompt.tool, "lines": lines, "ids": ids, "answer": answer}
        self._known[prompt.key] = entry
        self._write([entry], "a")

    def _write(self, entries: Iterable[dict[str, Any]], mode: Literal["a", "w"]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open(mode, encoding="utf-8") as file:
            file.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in entries)


@dataclass(frozen=True)
class Prompt:
    """What a model is shown."""

    messages: Sequence[BaseMessage]
    tools: Sequence[dict[str, Any]]

    @property
    def key(self) -> str:
        """Its hash."""
        return digest([[each.type, each.content] for each in self.messages], list(self.tools))

    @property
    def tool(self) -> str:
        """Name of the first tool; empty without tools."""
        return str(self.tools[0]["function"]["name"]) if self.tools else ""

    @property
    def lines(self) -> list[str]:
        """The lines of its messages."""
        return "\n".join(each.text for each in self.messages).splitlines()

    @property
    def named(self) -> dict[str, str]:
        """What each line says, as a hash, by its first word: lines of memories begin with their short id."""
        return {line.partition(" ")[0]: digest(line.partition(" ")[2])[:8] for line in self.lines if line.strip()}

    def text(self, reply: str) -> str:
        """Return it as somebody reads it who answers by a file of that name."""
        tools = json.dumps([each["function"] for each in self.tools], ensure_ascii=False, indent=1)
        form = _FORM.format(answer=reply, tool=self.tool, tools=tools)
        return "\n".join([form, *(f"===== {each.type}\n{each.text}" for each in self.messages), ""])


class HandedModel(BaseChatModel):
    """A chat model whose answers somebody else looks up.

    Args:
        answer: Returns the answer to a prompt.
    """

    answer: Callable[[Prompt], Answer]
    model_name: str = "handed"

    @property
    def _llm_type(self) -> str:
        return "handed"

    def bind_tools(self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any) -> Any:
        """Offer tools."""
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools], tool_choice=tool_choice, **kwargs)

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:  # noqa: ARG002 - the base names them
        prompt = Prompt(messages, kwargs.get("tools") or [])
        given = self.answer(prompt)
        calls = given.get("calls") or ([{"name": prompt.tool, "args": given["args"]}] if "args" in given else [])
        named = [
            {"name": call["name"], "args": call["args"], "id": f"{prompt.key}-{at}", "type": "tool_call"}
            for at, call in enumerate(calls)
        ]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(given.get("text", ""), tool_calls=named))])


def _reply(path: Path) -> Answer | None:
    """Return what somebody wrote, once it can be read as an answer."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # not there, or half written
        return None
    usable = isinstance(found, dict) and (isinstance(found.get("args"), dict) or found.keys() & {"calls", "text"})
    return found if usable else None


def _likeness(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other)


def _ids(value: object) -> Iterator[str]:
    """Yield all ids in an answer."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in {"id", "ids"}:
                yield from [item] if isinstance(item, str) else item or ()
            else:
                yield from _ids(item)
    elif isinstance(value, list):
        for item in value:
            yield from _ids(item)


def _with_ids(value: Any, renamed: Mapping[str, str], *, is_id: bool = False) -> Any:
    """Return an answer with other ids."""
    if isinstance(value, Mapping):
        return {key: _with_ids(item, renamed, is_id=key in {"id", "ids"}) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_ids(item, renamed, is_id=is_id) for item in value]
    return renamed.get(value, value) if is_id and isinstance(value, str) else value


# ---------------------------------------------------------------------------------------------- a weak model

_Operations = list[dict[str, Any]]


def damaged(answer: Answer, seed: str) -> Answer:
    """Return an answer as a weak model would give it: with two faults that the seed chooses, of those that it can have.

    Args:
        answer: An honest one; it is not changed.
        seed: Names the prompt; the same prompt gets the same faults.
    """
    rng = random.Random(seed)
    spoiled: Answer = json.loads(json.dumps(answer))
    for name in sorted(rng.sample(sorted(FAULTS), 2), key=list(FAULTS).index):
        spoiled = FAULTS[name](spoiled, rng)
    return spoiled


def _operations(answer: Answer) -> _Operations:
    """Return the list of records that an answer consists of."""
    lists = (value for value in answer.get("args", {}).values() if isinstance(value, list))
    return next((value for value in lists if value and all(isinstance(each, dict) for each in value)), [])


_OPTIONAL = ("slot", "valid_from", "importance", "category", "when_to_use", "entities", "kind")


def _without_fields(answer: Answer, rng: random.Random) -> Answer:
    for each in [answer.get("args", {}), *_operations(answer)]:
        for name in [name for name in each if name in _OPTIONAL and rng.random() < 0.5]:
            del each[name]
    return answer


def _with_nulls(answer: Answer, rng: random.Random) -> Answer:
    for each in [answer.get("args", {}), *_operations(answer)]:
        each.update({name: None for name in each if name in _OPTIONAL and rng.random() < 0.5})
    return answer


def _with_a_wrong_id(answer: Answer, rng: random.Random) -> Answer:
    aimed = [each for each in _operations(answer) if each.get("id")]
    if aimed:
        rng.choice(aimed)["id"] = f"m{rng.randint(1, 99)}"
    return answer


def _with_a_paraphrase(answer: Answer, rng: random.Random) -> Answer:
    quotes = [quote for each in _operations(answer) for quote in each.get("evidence") or () if quote.get("quote")]
    if quotes:
        chosen = rng.choice(quotes)
        words = chosen["quote"].split()
        chosen["quote"] = " ".join(words[::2]) if len(words) > 1 else chosen["quote"][::2]
    return answer


def _with_prose(answer: Answer, rng: random.Random) -> Answer:
    if "args" not in answer:
        return answer
    lead = rng.choice(
        ("Sure! Here is what I found:", "I compared the block with the memories. Result:", "<think>ok</think>")
    )
    return {"text": f"{lead}\n```json\n{json.dumps(answer['args'], ensure_ascii=False)}\n```\nLet me know!"}


def _with_one_too_many(answer: Answer, rng: random.Random) -> Answer:
    operations = _operations(answer)
    if operations:
        operations.append({**rng.choice(operations), "evidence": []})
    return answer


def _with_half(answer: Answer, rng: random.Random) -> Answer:
    operations = _operations(answer)
    kept = sorted(rng.sample(range(len(operations)), (len(operations) + 1) // 2))
    operations[:] = [operations[at] for at in kept]
    return answer


FAULTS: Mapping[str, Callable[[Answer, random.Random], Answer]] = {
    "fields dropped": _without_fields,
    "nulls": _with_nulls,
    "a wrong id": _with_a_wrong_id,
    "a quote paraphrased": _with_a_paraphrase,
    "half the operations missing": _with_half,
    "an operation too many": _with_one_too_many,
    "prose around": _with_prose,
}
"""What is wrong with the answers of a weak model, in the order in which it goes wrong: prose comes around what is left."""
