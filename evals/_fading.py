"""The forgetting curve of one memory with its reviews, and how many memories are live, week by week."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from remegraph.models import Access, Explanation
from remegraph.retention.forgetting import life_of, retention
from remegraph.settings import LifecyclePolicy

__all__ = ["draw"]

_DAY = timedelta(days=1)


def draw(path: Path, explained: Explanation, fading: Sequence[int], whole: Sequence[int]) -> None:
    """Draw both into PATH.svg.

    Args:
        path: Without an ending; its folder is made.
        explained: Whose curve.
        fading: Live memories, week by week, where maintenance runs.
        whole: The same where it never does.
    """
    from matplotlib.figure import Figure

    settings, learned = LifecyclePolicy(), explained.trace.versions[0].recorded_at
    policy = retention(explained.memory, settings)
    used = set(explained.uses)
    life = life_of(explained.memory, [Access(learned), *(Access(at, at in used) for at in explained.reviews)])
    drawing = Figure(figsize=(9, 6), layout="constrained")
    curve, counts = drawing.subplots(2)
    days = [hours / 4 for hours in range(4 * 7 * len(fading))]
    curve.plot(days, [policy.weight(life, learned + day * _DAY) for day in days], color="#08519c", label="weight")
    for times, colour, name in ((explained.reviews, "#d55e00", "review"), (explained.uses, "#009e73", "used")):
        curve.vlines([(at - learned) / _DAY for at in times], 0, 1, color=colour, alpha=0.4, label=name)
    for threshold, name in ((settings.low_threshold, "low priority"), (settings.forget_threshold, "archived")):
        curve.axhline(threshold, color="grey", linestyle=":")
        curve.annotate(name, (0, threshold), fontsize=7, va="bottom")
    curve.set_title(f"“{explained.memory.content}”")
    curve.set_xlabel("days since it was learned")
    counts.plot(range(1, len(whole) + 1), whole, color="#999999", label="never forgetting")
    counts.plot(range(1, len(fading) + 1), fading, color="#08519c", label="maintained every week")
    counts.set_title("Live memories")
    counts.set_xlabel("week")
    for axes in (curve, counts):
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    drawing.supxlabel("python -m evals retention", fontsize=6)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path.with_suffix(".svg"))
