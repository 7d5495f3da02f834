"""Layers of memories within a budget (G1, G9): core rules whole, then what applies here, then what bears on the words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from remegraph.errors import BudgetExceededError
from remegraph.models import Chunk, Hit, Injected, InjectionLayer, LeftOut
from remegraph.ports import TokenCounter
from remegraph.rules.assembling import Sheet

__all__ = ["CAPS", "Layered", "layered"]

CAPS: Mapping[InjectionLayer, int] = {"core": 10, "scope": 5, "query": 5}
"""How much a layer shows at most."""


@dataclass(slots=True)
class Layered:
    """The text for the prompt, what it shows, and why it leaves out what it leaves out."""

    text: str = ""
    shown: list[Injected] = field(default_factory=list)
    left_out: dict[str, LeftOut] = field(default_factory=dict)


def layered(
    layers: Mapping[InjectionLayer, Sequence[Hit]],
    budget: int,
    count: TokenCounter,
    working: Sequence[Chunk] = (),
    *,
    share: float = 1.0,
    reader: str | None = None,
) -> Layered:
    """Return the layers as one text, in their order; what stands in one already is not shown again.

    A core rule is never cut nor left out for want of room. Where there is no room for what another layer holds, its
    summary stands for it, or it is left out, and smaller ones after it may still go in.

    Args:
        layers: What each layer holds, best first.
        budget: Tokens that the text may have.
        count: Counts the tokens of a text.
        working: What is in mind: it comes before what bears on the words.
        share: Most of the budget that what one other agent or pack gave may take.
        reader: The agent that reads.

    Raises:
        BudgetExceededError: The core rules do not fit.
    """
    sheet, result = Sheet(budget, count, share=share, reader=reader), Layered()
    _lay("core", layers.get("core", ()), sheet, result)
    if "budget" in result.left_out.values():
        raise BudgetExceededError(
            f"The core rules have more than {budget} tokens.",
            "Raise the budget, or lower the importance of some under .9: core rules are never cut.",
        )
    _lay("scope", layers.get("scope", ()), sheet, result)
    result.left_out |= {chunk.chunk_id: "budget" for chunk in working if not sheet.add_chunk(chunk)}
    _lay("query", layers.get("query", ()), sheet, result)
    result.text = sheet.text()
    return result


def _lay(layer: InjectionLayer, hits: Sequence[Hit], sheet: Sheet, result: Layered) -> None:
    room = CAPS[layer]
    for hit in hits:
        if sheet.shows(hit):
            continue
        reason, shortened = (sheet.add(hit), False) if room else ("cap", False)
        if reason == "budget" and layer != "core" and 0 < len(hit.summary) < len(hit.text):
            reason, shortened = sheet.add(hit, short=True), True
        if reason:
            result.left_out[hit.record_id] = reason
        else:
            room -= 1
            result.left_out.pop(hit.record_id, None)
            result.shown.append(Injected(layer=layer, hit=hit, shortened=shortened))
