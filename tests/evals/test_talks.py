"""Judged dialogues: what is shown is the same to the byte everywhere, and no figure is better than what was judged."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from evals import _systems, talks
from evals._dialogues import Dialogue, dialogues
from evals._handoff import FAULTS, Answers, HandedModel, Prompt, Unanswered, damaged, digest
from evals._systems import ours
from evals._verdicts import Rate, Shown, Verdicts, agreement, answered, given_as_true, held, stated, take, write
from remegraph.testing import FrozenClock

_SAID = (
    ("user", "I live in Porto."),
    ("assistant", "Noted: Porto."),
    ("user", "My salary is 91,000 euros."),
    ("assistant", "Good for you."),
    ("user", "I moved to Braga. And please forget what I earn."),
    ("call", "maps"),
    ("tool", "Braga: 190,000 people"),
    ("assistant", "Braga has 190,000 people."),
    ("user", "Thanks, bye."),
)
_FACTS = (
    ("current", "Ann lives in Braga", "Where does Ann live?", "Braga", "Porto"),
    ("gone", "Ann lives in Porto", "Is Porto still where Ann lives?", "No, she moved", "Porto"),
    ("gone", "Ann earns 91,000 euros", "What does Ann earn?", "Nothing may be known", "91,000"),
    ("never", "Ann lives in Rome", "Does Ann live in Rome?", "No", "Rome"),
    ("uncertain", "Ann may buy a boat", "Does Ann buy a boat?", "Perhaps a boat", "boat, surely"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one short dialogue of two sessions."""
    messages: list[dict[str, Any]] = []
    for at, (role, words) in enumerate(_SAID):
        said: dict[str, Any] = {
            "id": f"m{at}",
            "role": role,
            "content": words,
            "time": f"2025-0{1 + at // 4}-03T10:0{at}:00+01:00",
        }
        if role == "call":
            calls = [{"id": "call_1", "name": words, "args": {"place": "Braga"}}]
            said |= {"role": "assistant", "content": "", "tool_calls": calls}
        elif role == "tool":
            said |= {"tool_call_id": "call_1"}
        messages.append(said)
    sessions = [{"thread": "s1", "messages": messages[:4]}, {"thread": "s2", "messages": messages[4:]}]
    names = ("state", "fact", "question", "answer", "stale_answer")
    raw: dict[str, Any] = {
        "id": "small",
        "lang": "en",
        "user": "Ann, a writer",
        "agent": "Remy (tools: maps)",
        "sessions": sessions,
    }
    raw["expect"] = [dict(zip(names, fact, strict=True)) for fact in _FACTS]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "small.json").write_text(json.dumps(raw), encoding="utf-8")
    return tmp_path / "data"


@pytest.fixture
def dialogue(folder: Path) -> Dialogue:
    """The short dialogue."""
    return next(dialogues(folder))


# ---------------------------------------------------------------------------------------------- the judge's part


def _read(row: Mapping[str, Any], context: str) -> str:
    """Judge a context as the brief says, by the words that the short dialogue makes certain."""
    old, new = row["stale_answer"] in context, row["answer"] in context
    if row["state"] in {"current", "uncertain"}:
        dated = "[2025" in context
        return "answer" if new and (dated or not old) else "both" if new else "stale" if old else "none"
    told = "earns" not in row["fact"] and "moved to Braga" in context
    return "stale" if old and not told else "answer"


def _judge(batches: Sequence[Path], read: Callable[[Mapping[str, Any], str], str] = _read) -> None:
    """Answer batches."""
    for path in batches:
        batch = json.loads(path.read_text(encoding="utf-8"))
        if "memories" in batch:
            said: dict[str, Any] = {"memories": [{"n": n, "verdict": "useful"} for n in batch["wanted"]]}
        else:
            said = {"rows": [_row(row, batch, read) for row in batch["rows"]]}
        path.with_suffix(".answer.json").write_text(json.dumps(said), encoding="utf-8")


def _row(row: Mapping[str, Any], batch: Mapping[str, Any], read: Callable[[Mapping[str, Any], str], str]) -> Any:
    lasting = row["state"] in {"current", "uncertain"}
    contexts = row.get("contexts") or batch.get("contexts", {})
    lists = {}
    for letter, memories in batch.get("memory_lists", {}).items():
        word = row["answer"] if lasting else row["stale_answer"]
        there = any(word in memory for memory in memories)
        lists[letter] = ("held" if there else "missing") if lasting else ("stated" if there else "clean")
    return {"n": row["n"], "contexts": {each: read(row, text) for each, text in contexts.items()}, "lists": lists}


_KITS = {
    "good": "[2025-03] Ann moved to Braga.",
    "forgets nothing": "[2025-01] Ann: I live in Porto.\n[2025-01] Ann: My salary is 91,000.\n[2025-03] Ann moved to Braga.",
    "returns nothing": "",
    "states old values": "Ann lives in Porto. She earns 91,000. She has a boat, surely.",
}


@pytest.fixture
def judged(dialogue: Dialogue, tmp_path: Path) -> tuple[Shown, Verdicts]:
    """Four kits, bad ones on purpose, and one that returns all that was said; judged."""
    contexts: dict[str, Sequence[str]] = {name: [text] * len(_FACTS) for name, text in _KITS.items()}
    contexts["returns everything"] = ["\n".join(dialogue.lines.values())] * len(_FACTS)
    memories = {name: text.splitlines() for name, text in _KITS.items()}
    shown, verdicts = Shown(dialogue, contexts, memories), Verdicts(tmp_path / "small.verdicts.jsonl")
    _judge(write(tmp_path / "judge", shown, verdicts))
    assert take(tmp_path / "judge", {"small": (dialogue, verdicts)}) == []
    return shown, verdicts


def test_bad_kits_are_ranked_as_they_must_be(judged: tuple[Shown, Verdicts]) -> None:
    """What answers nothing scores nothing, and what forgets nothing or says old values is seen to give them as true."""
    shown, verdicts = judged
    figures = {
        name: (answered(shown, name, verdicts).share, given_as_true(shown, name, verdicts).share)
        for name in shown.contexts
    }
    assert figures == {
        "good": (1.0, 0.0),
        "forgets nothing": (1.0, pytest.approx(1 / 3)),
        "returns everything": (1.0, pytest.approx(1 / 3)),
        "returns nothing": (0.0, 0.0),
        "states old values": (0.0, pytest.approx(2 / 3)),
    }


def test_memories_that_are_not_there_hold_nothing_and_old_ones_are_stated(judged: tuple[Shown, Verdicts]) -> None:
    """A list is judged apart from the contexts: what is stored may be better or worse than what is shown."""
    shown, verdicts = judged
    figures = {
        name: (held(shown, name, verdicts).share, stated(shown, name, verdicts).share) for name in shown.memories
    }
    assert figures["good"] == (1.0, 0.0)
    assert figures["returns nothing"] == (0.0, 0.0)
    assert figures["states old values"] == pytest.approx((0.0, 2 / 3))


def test_a_context_that_changed_by_a_letter_has_no_figure(judged: tuple[Shown, Verdicts]) -> None:
    """Part of the rows would flatter or blame: no share at all is told, only how many rows wait."""
    shown, verdicts = judged
    contexts = list(shown.contexts["good"])
    changed = Shown(shown.dialogue, {"good": [f"{contexts[0]}!", *contexts[1:]]})
    rate = answered(changed, "good", verdicts)
    assert (rate.share, rate.unjudged) == (None, 1)
    assert answered(shown, "good", verdicts).share == 1.0


def test_ids_of_records_are_not_shown_to_a_judge(dialogue: Dialogue, tmp_path: Path) -> None:
    """They tell one system from another, and change where nothing that counts does."""
    shown = Shown(dialogue, {"kit": [f"[{n}-abc, 2025-01-01] Braga" for n in range(len(_FACTS))]})
    (path,) = write(tmp_path, shown, Verdicts(tmp_path / "none"))
    told = path.read_text(encoding="utf-8")
    assert ("-abc" in told, "[2025-01-01] Braga" in told) == (False, True)


def test_what_is_judged_is_not_asked_again(judged: tuple[Shown, Verdicts], tmp_path: Path) -> None:
    """A change costs a judge what is new, and no more."""
    shown, verdicts = judged
    assert write(tmp_path / "again", shown, verdicts) == []
    new = Shown(shown.dialogue, {**shown.contexts, "new": ["Ann left Braga.", *shown.contexts["good"][1:]]})
    (path,) = write(tmp_path / "again", new, verdicts)
    batch = json.loads(path.read_text(encoding="utf-8"))
    assert [row["contexts"] for row in batch["rows"]] == [{"A": "Ann left Braga."}]


def test_a_batch_does_not_tell_which_system_a_context_is_of(judged: tuple[Shown, Verdicts], tmp_path: Path) -> None:
    """A judge who could know would be no blind one."""
    shown, _ = judged
    for path in write(tmp_path / "fresh", shown, Verdicts(tmp_path / "fresh.jsonl")):
        told = path.name + " ".join(json.loads(path.read_text(encoding="utf-8")))
        assert not any(name in told for name in shown.contexts)


def test_an_answer_with_one_unknown_verdict_is_not_taken_at_all(dialogue: Dialogue, tmp_path: Path) -> None:
    """Half a batch would look like a judged one."""
    verdicts = Verdicts(tmp_path / "small.verdicts.jsonl")
    shown = Shown(dialogue, {"kit": [f"Ann said {n}." for n in range(len(_FACTS))]})
    _judge(write(tmp_path / "judge", shown, verdicts), lambda row, _: "answer" if row["n"] else "fine")
    (wrong,) = take(tmp_path / "judge", {"small": (dialogue, verdicts)})
    assert "'fine' is none of answer, stale, both, none" in wrong
    assert answered(shown, "kit", verdicts).unjudged == 1


def test_a_memory_is_double_as_long_as_its_twin_is_there(dialogue: Dialogue, tmp_path: Path) -> None:
    """Where the twin is gone, nobody has said what the memory is worth by itself."""
    verdicts = Verdicts(tmp_path / "small.verdicts.jsonl")
    shown = Shown(
        dialogue, {}, {"kit": ["Ann lives in Braga.", "Braga is where Ann lives.", "Braga is where Ann lives."]}
    )
    path = next(each for each in write(tmp_path / "judge", shown, verdicts) if "worth" in each.name)
    said = {"memories": [{"n": 0, "verdict": "useful"}, {"n": 1, "verdict": "double", "of": 0}]}
    path.with_suffix(".answer.json").write_text(json.dumps(said), encoding="utf-8")
    assert take(tmp_path / "judge", {"small": (dialogue, verdicts)}) == []
    assert verdicts.worth(dialogue, shown.memories["kit"]) == {"useful": 1, "double": 2}
    assert verdicts.worth(dialogue, ["Braga is where Ann lives."]) == {"": 1}


def test_a_double_is_asked_for_again_in_a_list_without_its_twin(dialogue: Dialogue, tmp_path: Path) -> None:
    """Its worth beside the twin says nothing of its worth alone, also where one run shows both lists."""
    verdicts = Verdicts(tmp_path / "small.verdicts.jsonl")
    both, alone = ["Ann lives in Braga.", "Braga is where Ann lives."], ["Braga is where Ann lives."]
    first = Shown(dialogue, {}, {"strong": both})
    path = next(each for each in write(tmp_path / "first", first, verdicts) if "worth" in each.name)
    said = {"memories": [{"n": 0, "verdict": "useful"}, {"n": 1, "verdict": "double", "of": 0}]}
    path.with_suffix(".answer.json").write_text(json.dumps(said), encoding="utf-8")
    assert take(tmp_path / "first", {"small": (dialogue, verdicts)}) == []
    paths = write(tmp_path / "second", Shown(dialogue, {}, {"strong": both, "weak": alone}), verdicts)
    batches = [json.loads(each.read_text(encoding="utf-8")) for each in paths if "worth" in each.name]
    assert [[batch["memories"][at] for at in batch["wanted"]] for batch in batches] == [alone]


def test_two_judges_are_compared_on_the_rows_that_both_have_judged(
    judged: tuple[Shown, Verdicts], tmp_path: Path
) -> None:
    """How far a figure may be trusted is a figure, too."""
    shown, verdicts = judged
    assert agreement([judged]) == (0, 0)
    second = write(tmp_path / "second", shown, verdicts, judge=2)
    _judge(second, lambda row, context: _read(row, context) if row["n"] else "none")
    assert take(tmp_path / "second", {"small": (shown.dialogue, verdicts)}) == []
    same, both = agreement([judged])
    assert 0 < same < both
    assert answered(shown, "good", verdicts).share == 1.0, "the first judge's word counts"


def test_an_interval_is_wider_where_dialogues_differ() -> None:
    """Facts of one dialogue are no independent draws."""
    alike, apart = Rate([[True, False] * 10] * 4), Rate([[True] * 20, [False] * 20] * 2)
    assert alike.share == apart.share == 0.5
    (low, high), (lowest, highest) = alike.interval(), apart.interval()
    assert highest - lowest > 1.5 * (high - low)


# ---------------------------------------------------------------------------------------------- the model's part


def _stub(prompt: str) -> dict[str, Any]:
    """Answer as a model would that finds a statement in the first line of a person."""
    if "`DigestAnswer`" in prompt:
        return {"args": {"summary": "Ann told where she lives.", "topics": ["personal:Ann"]}}
    if "`ProposalAnswer`" in prompt:
        said = next(words for role, words in _SAID if role == "user" and words in prompt)
        number = next(
            line.split()[0] for line in prompt.splitlines() if line.endswith(f'"{said}"') and line[0].isdigit()
        )
        found = {"action": "CREATE", "content": said.replace("I ", "Ann "), "importance": 0.5}
        return {"args": {"operations": [found | {"evidence": [{"n": int(number), "quote": said}]}]}}
    return {"args": {"objections": []}}


def _strong(dialogue: Dialogue, path: Path, folder: Path) -> _systems.Learned:
    """Answer prompt after prompt until none waits."""
    for _ in range(20):
        answers = Answers(path, folder)
        try:
            return ours(dialogue, "strong", "summarize", answers)
        except Unanswered:
            for waiting in folder.glob("*.txt"):
                reply = waiting.with_suffix(".json")
                reply.write_text(json.dumps(_stub(waiting.read_text(encoding="utf-8"))), encoding="utf-8")
    raise AssertionError("it asks without end")


@pytest.mark.slow
def test_answers_handed_over_once_are_found_again_by_what_was_shown(dialogue: Dialogue, tmp_path: Path) -> None:
    """Anyone can compute the figures again without a model; damaged, the same answers stand for a weak one."""
    recorded = tmp_path / "small.summarize.answers.jsonl"
    first = _strong(dialogue, recorded, tmp_path / "ask")
    assert first.calls >= 4
    assert "Ann live in Porto." in first.memories
    answers = Answers(recorded)
    again = ours(dialogue, "strong", "summarize", answers)
    assert again == first
    weak = [ours(dialogue, "weak", "summarize", answers) for _ in range(2)]
    assert weak[0] == weak[1]
    assert weak[0].calls >= 4


def test_a_prompt_that_was_never_answered_ends_the_run(dialogue: Dialogue, tmp_path: Path) -> None:
    """No fallback of the kit may make a figure of it: neither for the model nor for its damaged answers."""
    with pytest.raises(Unanswered):
        ours(dialogue, "strong", "summarize", Answers(tmp_path / "none"))
    with pytest.raises(Unanswered):
        ours(dialogue, "weak", "summarize", Answers(tmp_path / "none"))


def test_a_weak_model_means_the_memories_that_the_strong_one_meant(tmp_path: Path) -> None:
    """Short ids are given anew in each prompt."""

    def asked(*lines: str) -> Prompt:
        return Prompt([HumanMessage("\n".join(lines))], [{"function": {"name": "T", "parameters": {}}}])

    first = asked("m1 Ann lives in Porto", "m2 Ann is vegan", "block 7")
    answers = Answers(tmp_path / "answers.jsonl", tmp_path / "ask")
    (tmp_path / "ask").mkdir()
    operations = [{"id": "m2"}, {"id": "m9"}]
    reply = {"args": {"operations": operations}}
    (tmp_path / "ask" / f"{first.key}.json").write_text(json.dumps(reply), encoding="utf-8")
    assert answers.exact(first) == reply
    found = answers.nearest(asked("m4 Ann is vegan", "m5 Ann sails", "block 7"))
    assert found["args"]["operations"] == [{"id": "m4"}, {"id": "m9"}]


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_one(name: str) -> None:
    """A fault that changes nothing would make the weak model a strong one."""
    evidence = [{"n": 1, "quote": "I live in Porto"}]
    operation = {"action": "UPDATE", "id": "m3", "slot": "lives_in", "valid_from": "2025", "importance": 0.5}
    sound = {"args": {"operations": [operation | {"evidence": evidence}, operation | {"evidence": evidence}]}}
    spoiled = [FAULTS[name](json.loads(json.dumps(sound)), random.Random(seed)) for seed in range(8)]
    assert any(each != sound for each in spoiled)


def test_damage_is_the_same_for_the_same_prompt_and_spares_the_record() -> None:
    """A figure of the weak model is one that anybody finds again."""
    sound = {"args": {"operations": [{"id": "m3", "slot": "a", "evidence": [{"n": 1, "quote": "one two"}]}]}}
    before = json.dumps(sound)
    assert [damaged(sound, str(seed)) for seed in range(20)] == [damaged(sound, str(seed)) for seed in range(20)]
    assert json.dumps(sound) == before


def test_a_schema_that_changed_is_another_prompt() -> None:
    """The model is shown the schema, too."""
    message = HumanMessage("Hello")
    plain, described = ({"function": {"name": "T", "description": each}} for each in ("", "Better."))
    assert Prompt([message], [plain]).key != Prompt([message], [described]).key
    seen: list[Prompt] = []
    model = HandedModel(answer=lambda prompt: (seen.append(prompt), {"text": "Hi."})[1])  # type: ignore[func-returns-value]
    assert model.invoke([message]).text == "Hi."
    assert seen[0].key == Prompt([message], []).key


# ---------------------------------------------------------------------------------------------- the ways in


def test_the_agent_says_what_the_dialogue_says_tool_calls_included(folder: Path, tmp_path: Path) -> None:
    """Each message is in a block, under its id and at the time of its turn; a turn that nobody answered ends in silence."""
    small = folder / "small.json"  # whoever asks to forget is shown none of it: that is another test's matter
    small.write_text(small.read_text(encoding="utf-8").replace(" And please forget what I earn.", ""), encoding="utf-8")
    dialogue = next(dialogues(folder))
    clock = FrozenClock(datetime.fromisoformat(dialogue.messages[0]["time"]))
    with _systems._opened(str(tmp_path), None, clock) as kit:
        _systems._talked(kit, dialogue, clock)
        clock.move(timedelta(hours=1))  # what was said last is a block once nobody speaks
        kit.drain()
        blocks = kit.sources.blocks(scope=dialogue.scope)
        held_there = [
            message for block in blocks for message in kit.sources.retrieve_block(block.block_id, scope=dialogue.scope)
        ]
    heard = {each.message_id: each for each in held_there}
    assert heard.keys() == {message["id"] for message in dialogue.messages} | {"m8-end"}
    assert [call.name for call in heard["m5"].tool_calls] == ["maps"]
    assert heard["m6"].text == "Braga: 190,000 people"
    said = {each["id"]: datetime.fromisoformat(each["time"]) for each in dialogue.messages if each["role"] == "user"}
    late = [heard[key].time - time for key, time in said.items()]
    assert all(timedelta(0) <= each <= timedelta(minutes=5) for each in late)  # a turn is recorded once it is answered


_DIGEST = """
import sys
from pathlib import Path
from evals import talks
from evals._handoff import digest
from evals._dialogues import dialogues
(dialogue,) = dialogues(Path(sys.argv[1]))
shown = talks.run(dialogue, talks.Options(Path(sys.argv[2]))).shown
print(digest({name: list(each) for name, each in {**shown.contexts, **shown.memories}.items()}))
"""


@pytest.mark.slow
def test_contexts_are_the_same_to_the_byte_in_each_process(folder: Path, dialogue: Dialogue, tmp_path: Path) -> None:
    """Or verdicts by hash would hold on one machine only."""
    recorded = tmp_path / "recorded"
    _strong(dialogue, recorded / "small.summarize.answers.jsonl", tmp_path / "ask")
    digests = set()
    for seed in ("1", "77"):
        (tmp_path / seed).mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TMPDIR": str(tmp_path / seed)}
        command = [sys.executable, "-c", _DIGEST, str(folder), str(recorded)]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        digests.add(ended.stdout.strip())
    assert len(digests) == 1
    assert digests.pop() != digest({})


def test_the_command_prints_figures_only_of_what_is_judged(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """First all rows wait; once a judge has answered, there are figures, and nothing waits."""
    command = ["--data", str(folder), "--only", "no model", "--only", "summarize", "--jobs", "1"]
    talks.main([*command, "--judge", str(tmp_path / "judge")])
    before = capsys.readouterr().out
    assert "| BM25, 500 | – | not judged yet |" in before
    assert "rows are not judged yet" in before
    _judge(list((tmp_path / "judge").glob("*.json")))
    talks.main([*command, "--judge", str(tmp_path / "judge")])
    after = capsys.readouterr().out
    assert "Nothing waits for a judge." in after
    assert "| all that was said | 1.00 | **1.00** (1.00 to 1.00) |" in after
    assert "not judged yet" not in after


def test_a_context_over_its_budget_fails(judged: tuple[Shown, Verdicts]) -> None:
    """Whoever returns everything answers everything: that is no memory, and the bar says so."""
    shown, verdicts = judged
    everything = Shown(shown.dialogue, {"kit, 500": ["All that was ever said. " * 200] * len(_FACTS)})
    (figure,) = talks.figures([(talks.Run(everything), verdicts)])
    assert (figure.value, figure.verdict) == (len(_FACTS), "FAIL")


def test_a_folder_without_dialogues_is_told(tmp_path: Path) -> None:
    """An empty table would look like a result."""
    with pytest.raises(SystemExit, match="--data FOLDER"):
        talks.main(["--data", str(tmp_path)])
