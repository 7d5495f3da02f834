"""How reliable a tool is: its rate with its uncertainty, and the error rate that is to be expected of the next call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

__all__ = ["Prior", "expected", "fitted_prior", "interval"]

_Z = 1.959964
"""Half of the width of an interval that holds 95 %, in standard deviations."""

_LEAST, _MOST = 0.02, 0.9
"""Bounds of the overdispersion: few tools with few calls would otherwise say that all are alike, or that none tells."""

_UNKNOWN = 1 / 3
"""Overdispersion of a single tool, whose likes nobody knows: a prior of two calls."""


@dataclass(frozen=True, slots=True)
class Prior:
    """A beta distribution of error rates: so many failures and successes are taken as seen before the first call."""

    failures: float
    successes: float

    @property
    def weight(self) -> float:
        """How many calls it counts for."""
        return self.failures + self.successes

    @property
    def mean(self) -> float:
        """The error rate of a tool that was never called."""
        return self.failures / self.weight


def interval(hits: int, known: int, z: float = _Z) -> tuple[float, float]:
    """Return between which rates the true one lies with 95 %, by the score interval; 0 to 1 where nothing is known.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22, 1927.

    Args:
        hits: How often it happened.
        known: Of how many.
        z: Half of its width in standard deviations, for another share than 95 %.
    """
    if not known:
        return 0.0, 1.0
    rate, spread = hits / known, z * z / known
    middle = rate + spread / 2
    reach = z * sqrt(rate * (1 - rate) / known + spread / (4 * known))
    low, high = (middle - reach) / (1 + spread), (middle + reach) / (1 + spread)
    return max(0.0, low) if hits else 0.0, min(1.0, high) if hits < known else 1.0


def fitted_prior(counts: Sequence[tuple[int, int]]) -> Prior:
    """Return the prior that fits some tools best by moments (Kleinman, 1973): the more they differ, the less it weighs.

    Args:
        counts: Failures and known outcomes of each tool.
    """
    seen = [(failures, known) for failures, known in counts if known]
    total = sum(known for _, known in seen)
    mean = (sum(failures for failures, _ in seen) + 0.5) / (total + 1)  # Jeffreys: never none, never all
    spread = _UNKNOWN
    if len(seen) > 1:
        between = sum(known * (failures / known - mean) ** 2 for failures, known in seen)
        chance = mean * (1 - mean) * (len(seen) - 1)
        room = mean * (1 - mean) * (total - sum(known * known for _, known in seen) / total - (len(seen) - 1))
        spread = min(max((between - chance) / room, _LEAST), _MOST) if room > 0 else _UNKNOWN
    weight = 1 / spread - 1
    return Prior(failures=mean * weight, successes=(1 - mean) * weight)


def expected(failures: int, known: int, prior: Prior) -> float:
    """Return the error rate that is to be expected of the next call: what was seen, shrunk to what is usual.

    Args:
        failures: Calls known to have failed.
        known: Calls whose outcome is known.
        prior: What is usual.
    """
    return (failures + prior.failures) / (known + prior.weight)
