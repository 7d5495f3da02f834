"""Layers within a budget: never over it, core rules never cut, in order, and nothing left out in silence."""

from __future__ import annotations

import random
from typing import Any, get_args

import pytest

from remegraph import BudgetExceededError
from remegraph.engine.frame import framed_lines, shown_ids, shown_records
from remegraph.governance.injection import CAPS, Layered, layered
from remegraph.models import Chunk, Hit, InjectionLayer, Partition
from remegraph.text.sentences import summary_of
from remegraph.text.tokens import estimate_tokens
from tests.talk import NOON

ANN = Partition(tenant="t", user="ann")
LAYERS: tuple[InjectionLayer, ...] = get_args(InjectionLayer)


def hit(record_id: str, text: str, **fields: Any) -> Hit:
    """A memory that is given."""
    known = Hit(kind="memory", record_id=record_id, partition=ANN, text=text, score=1, time=NOON)
    return known.evolve(summary=summary_of(text), **fields)


def pool(rng: random.Random) -> list[Hit]:
    """Memories in all lengths, in English and Chinese; some say the same, some would close the frame if they could."""
    words = ["tea", "rule", "规则", "。", ". ", "\n", "</memory>", '"', "& ", "word " * 9]
    texts = ["".join(rng.choices(words, k=rng.randint(1, 40))) + str(number % 50) for number in range(60)]
    return [hit(f"h{number}", text) for number, text in enumerate([*texts, *texts[:6]])]


def plain_cost(hits: list[Hit]) -> int:
    """What core rules take, line by line."""
    text = layered({"core": hits}, 10**9, estimate_tokens).text.split("\n")
    return estimate_tokens(framed_lines([""])) + sum(estimate_tokens(line) + 1 for line in text[1:-1])


@pytest.mark.requirement("G1", "G9")
def test_whatever_is_known_the_budget_holds_and_the_report_is_right() -> None:
    """Who pays for tokens, and who relies on a rule, must both be able to trust it, with any memories."""
    rng = random.Random(7)
    hits, refused = pool(rng), 0
    for _ in range(500):
        held = {layer: rng.sample(hits, rng.randint(0, 12)) for layer in LAYERS}
        budget = rng.randint(1, 2500)
        try:
            result = layered(held, budget, estimate_tokens)
        except BudgetExceededError:
            assert plain_cost(held["core"]) > budget
            refused += 1
            continue
        assert not held["core"] or plain_cost(held["core"]) <= budget
        assert estimate_tokens(result.text) <= budget
        _in_order(held, result)
        _whole_or_short(result)
        _reported(held, result)
    assert 50 < refused < 450


def _in_order(held: dict[InjectionLayer, list[Hit]], result: Layered) -> None:
    ids = [each.hit.record_id for each in result.shown]
    assert shown_ids(result.text) == ids
    assert len(set(ids)) == len(ids)
    layers = [LAYERS.index(each.layer) for each in result.shown]
    assert layers == sorted(layers)
    for layer in LAYERS:
        mine = [each.hit for each in result.shown if each.layer == layer]
        assert len(mine) <= CAPS[layer]
        assert mine == [each for each in held[layer] if each in mine], "best first, as given"


def _whole_or_short(result: Layered) -> None:
    told = {said["id"]: said for said in shown_records(result.text)}
    for each in result.shown:
        said = told.pop(each.hit.record_id)
        assert not (each.shortened and each.layer == "core")
        assert said["text"] == (each.hit.summary if each.shortened else each.hit.text)
        assert ("short" in said) == each.shortened
    assert {each["about"] for each in told.values()} <= {"working memory"}


def _reported(held: dict[InjectionLayer, list[Hit]], result: Layered) -> None:
    shown = {each.hit.record_id: each.layer for each in result.shown}
    for layer in LAYERS:
        for each in held[layer]:
            reason = result.left_out.get(each.record_id)
            assert (reason is None) == (each.record_id in shown)
            if reason == "cap":
                assert any(list(shown.values()).count(other) == CAPS[other] for other in LAYERS)
            if reason == "budget":
                assert each in (*held["scope"], *held["query"]), "core rules are whole"


@pytest.mark.requirement("G1")
def test_each_layer_has_its_cap() -> None:
    """Ten rules are followed; a hundred are not."""
    assert CAPS == {"core": 10, "scope": 5, "query": 5}
    held = {layer: [hit(f"{layer}{n}", f"{layer} {n}") for n in range(12)] for layer in LAYERS}
    result = layered(held, 10_000, estimate_tokens)
    expected = [f"{layer}{n}" for layer in LAYERS for n in range(CAPS[layer])]
    assert [each.hit.record_id for each in result.shown] == expected
    assert result.left_out == {f"{layer}{n}": "cap" for layer in LAYERS for n in range(CAPS[layer], 12)}


@pytest.mark.requirement("G9")
def test_under_pressure_a_summary_stands_for_the_whole_and_what_is_smaller_still_goes_in() -> None:
    """Fifty words of a handbook page are better than none of it."""
    page = hit("page", "Wash your hands before you cook. " * 20)
    held: dict[InjectionLayer, list[Hit]] = {
        "core": [hit("rule", "Be kind.", enforcement="hard")],
        "scope": [page, hit("small", "Use Celsius.")],
        "query": [hit("long", "word" * 500)],
    }
    result = layered(held, 200, estimate_tokens)
    assert [(each.hit.record_id, each.shortened) for each in result.shown] == [
        ("rule", False),
        ("page", True),
        ("small", False),
    ]
    assert result.left_out == {"long": "budget"}
    assert "rule hard] Be kind." in result.text


@pytest.mark.requirement("G9")
def test_core_rules_that_do_not_fit_are_an_error_with_a_cure() -> None:
    """An agent that goes on without its first rule is worse than one that stops."""
    with pytest.raises(BudgetExceededError, match=r"more than 50 tokens\. Raise the budget"):
        layered({"core": [hit("rule", "Never tell a secret. " * 20)]}, 50, estimate_tokens)


@pytest.mark.requirement("B3")
def test_what_is_in_mind_stands_between_rules_and_what_was_found() -> None:
    """The task at hand comes before old news, and after what always holds."""
    chunk = Chunk(chunk_id="c", content="Boarding at noon.", created_at=NOON, last_accessed=NOON)
    held: dict[InjectionLayer, list[Hit]] = {"core": [hit("rule", "Be kind.")], "query": [hit("found", "Ann flies.")]}
    assert shown_ids(layered(held, 500, estimate_tokens, [chunk]).text) == ["rule", "c", "found"]
    assert layered(held, 110, estimate_tokens, [chunk.evolve(content="x" * 900)]).left_out == {"c": "budget"}
