"""Fits the weights by which the reviser's rules decide, and writes them to `rules/data/weights.toml`.

    python -m evals.fit_reviser

Open are the generated cases and the "seen" ones of `evals.reviser`; the unseen ones are never read. A case is a bag of
statements (or pairs of memories) of which at least one is an omission (a duplicate), or none: multiple-instance logistic
regression (J. Ramon & L. De Raedt, 2000) with softmax pooling over each bag, L2, one set of weights for both languages.
Thresholds are set, for each language, on the scores of cases that the weights were not fitted to (ten-fold
cross-validation), so that the share of clean blocks with a false alarm of either kind stays below `MOST_FALSE_ALARMS`
and most is found. The same cases give the same file.
"""

from __future__ import annotations

import sys
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evals._cases import Case
from evals.reviser import messages_of, open_cases
from remegraph.rules.coverage import Statement, statements
from remegraph.rules.duplicates import likeness
from remegraph.rules.wording import weight, wording

__all__ = ["main"]

Floats = NDArray[np.float64]
Signs = Mapping[str, float]

FOLDS = 10
GENERATED = 1.0
"""Weight of a generated case: there are many, and they are alike."""
PENALTY = {"omission": 0.1, "duplicate": 0.01}
MOST_FALSE_ALARMS = 0.09
ENOUGH = 0.93
STEPS = 500
RATE = 0.05


@dataclass
class _Bags:
    """Bags of signs, whether they hold what is looked for, and of which case each is."""

    signs: list[Sequence[Signs]] = field(default_factory=list)
    found: list[bool] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    cases: list[int] = field(default_factory=list)

    def add(self, signs: Sequence[Signs], *, found: bool, weight: float, case: int) -> None:
        if signs:
            self.signs.append(signs)
            self.found.append(found)
            self.weights.append(weight)
            self.cases.append(case)


def _omissions(case: Case, source: str, number: int, bags: _Bags) -> None:
    """Add what tells of the missing memory as one bag, and all other statements of the block as another."""
    messages = messages_of(case)
    names = {word for message in messages for word in wording(message.speaker).words}
    missing = wording(case["missing"]).words - names
    told: list[tuple[float, Statement]] = [
        (weight(wording(each.text).words & missing), each)
        for each in statements(messages, list(dict.fromkeys(case["after"])))
    ]
    most = max((share for share, _ in told), default=0.0)
    importance = GENERATED if source == "generated" else 1.0
    bags.add(
        [each.signs for share, each in told if share and share >= most / 2], found=True, weight=importance, case=number
    )
    bags.add([each.signs for share, each in told if not share], found=False, weight=importance, case=number)


def _duplicates(case: Case, source: str, number: int, bags: _Bags) -> None:
    names = {turn["name"] for turn in case["messages"]}
    memories = [*dict.fromkeys(case["after"]), *filter(None, [case["missing"]])]
    pairs = [likeness(a, b, names) for a, b in combinations(memories, 2) if not {a, b} <= set(case["before"])]
    importance = GENERATED if source == "generated" else 1.0
    bags.add(pairs, found=case["label"] == "duplicate", weight=importance, case=number)


def _packed(bags: _Bags, names: Sequence[str]) -> tuple[Floats, NDArray[np.bool_]]:
    longest = max(map(len, bags.signs))
    values = np.zeros((len(bags.signs), longest, len(names)))
    there = np.zeros((len(bags.signs), longest), dtype=np.bool_)
    for row, bag in enumerate(bags.signs):
        for column, signs in enumerate(bag):
            values[row, column] = [signs[name] for name in names]
            there[row, column] = True
    return values, there


def _fit(
    values: Floats, there: NDArray[np.bool_], found: Floats, share: Floats, penalty: float
) -> tuple[Floats, float]:
    """Return weights and intercept that minimise the weighed logistic loss of softmax-pooled bags (Adam)."""
    told = values[there]
    mean, spread = told.mean(axis=0), told.std(axis=0) + 1e-6
    scaled = (values - mean) / spread
    share = share / share.sum()
    at = np.append(np.zeros(values.shape[2]), -1.0)
    first, second = np.zeros_like(at), np.zeros_like(at)
    for step in range(1, STEPS + 1):
        scores = np.where(there, scaled @ at[:-1] + at[-1], -np.inf)
        attention = np.exp(scores - scores.max(axis=1, keepdims=True))
        attention /= attention.sum(axis=1, keepdims=True)
        scores = np.where(there, scores, 0.0)
        pooled = (attention * scores).sum(axis=1)
        error = (1 / (1 + np.exp(-np.clip(pooled, -30, 30))) - found) * share
        slope = attention * (1 + scores - pooled[:, None]) * error[:, None]
        gradient = np.append(np.einsum("ij,ijk->k", slope, scaled) + penalty * at[:-1], slope.sum())
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        at -= RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-9)
    weights = at[:-1] / spread
    return weights, float(at[-1] - weights @ mean)


def _held_out(bags: _Bags, names: Sequence[str], folds: Sequence[int], penalty: float) -> tuple[Floats, Floats]:
    """Return each bag's score by weights that were fitted without its case, and the weights fitted to all."""
    values, there = _packed(bags, names)
    found, share = np.array(bags.found, dtype=np.float64), np.array(bags.weights)
    fold_of = np.array([folds[case] for case in bags.cases])
    scores = np.zeros(len(found))
    for fold in range(FOLDS):
        kept, out = fold_of != fold, fold_of == fold
        weights, intercept = _fit(values[kept], there[kept], found[kept], share[kept], penalty)
        scores[out] = np.where(there[out], values[out] @ weights + intercept, -np.inf).max(axis=1)
    weights, intercept = _fit(values, there, found, share, penalty)
    return scores, np.append(weights, intercept)


def _thresholds(wanted: Mapping[str, Floats], clean: Mapping[str, Floats]) -> dict[str, float]:
    """Return the thresholds for omissions and duplicates that find most within the false alarms allowed."""
    best: tuple[float, dict[str, float]] = (-1.0, {})
    for omission in np.quantile(clean["omission"], np.linspace(0.7, 1.0, 61)):
        for duplicate in np.quantile(clean["duplicate"], np.linspace(0.8, 1.0, 41)):
            alarms = np.mean((clean["omission"] > omission) | (clean["duplicate"] > duplicate))
            if alarms <= MOST_FALSE_ALARMS:
                limits = {"omission": float(omission), "duplicate": float(duplicate)}
                value = sum(min(float(np.mean(wanted[kind] > limits[kind])), ENOUGH) for kind in limits)
                best = max(best, (value, limits), key=lambda each: each[0])
    return best[1]


def _written(
    found: Mapping[str, Floats], names: Mapping[str, Sequence[str]], limits: Mapping[str, Mapping[str, float]]
) -> str:
    text = (Path(__file__).with_name("reviser_signs.toml")).read_text(encoding="utf-8")
    meaning = tomllib.loads(text)
    lines = [
        "# Written by `python -m evals.fit_reviser`: do not edit. A statement is an omission, a pair of memories a",
        "# duplicate, where the sum of its signs times their weights exceeds the threshold of its language.",
    ]
    for kind, each in found.items():
        lines += ["", f"[{kind}.threshold]"]
        lines += [f"{language} = {limits[language][kind] - each[-1]:.3f}" for language in sorted(limits)]
        lines += ["", f"[{kind}.weights]"]
        lines += [
            f"{name} = {value:.3f}  # {meaning[kind][name]}" for name, value in zip(names[kind], each[:-1], strict=True)
        ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Fit, write the weights, and print the cross-validated rates."""
    cases = list(open_cases())
    folds: list[int] = []
    met: dict[tuple[str, str, str], int] = defaultdict(int)
    bags = {"omission": _Bags(), "duplicate": _Bags()}
    for number, (source, case) in enumerate(cases):
        stratum = source, case["language"], case["label"]
        folds.append(met[stratum] % FOLDS)
        met[stratum] += 1
        _omissions(case, source, number, bags["omission"])
        _duplicates(case, source, number, bags["duplicate"])
    meaning = tomllib.loads(Path(__file__).with_name("reviser_signs.toml").read_text(encoding="utf-8"))
    names = {kind: list(meaning[kind]) for kind in bags}
    weights: dict[str, Floats] = {}
    scores: dict[str, dict[bool, Floats]] = {}
    for kind, each in bags.items():
        held, weights[kind] = _held_out(each, names[kind], folds, PENALTY[kind])
        by_case = {found: np.full(len(cases), -1e3) for found in (True, False)}
        for case_number, found, score in zip(each.cases, each.found, held, strict=True):
            by_case[found][case_number] = score
        scores[kind] = by_case
    limits: dict[str, dict[str, float]] = {}
    for language in ("en", "zh"):
        chosen = {
            label: np.array([case["language"] == language and case["label"] == label for _, case in cases])
            for label in ("omission", "duplicate", "clean")
        }
        wanted = {kind: scores[kind][True][chosen[kind]] for kind in bags}
        clean = {kind: scores[kind][False][chosen["clean"]] for kind in bags}
        limits[language] = _thresholds(wanted, clean)
        _report(language, cases, chosen, scores, limits[language])
    target = Path(str(files("remegraph.rules"))) / "data" / "weights.toml"
    target.write_text(_written(weights, names, limits), encoding="utf-8")
    return 0


def _report(
    language: str,
    cases: Sequence[tuple[str, Case]],
    chosen: Mapping[str, NDArray[np.bool_]],
    scores: Mapping[str, Mapping[bool, Floats]],
    limits: Mapping[str, float],
) -> None:
    for source in ("generated", "seen"):
        of_source = np.array([each == source for each, _ in cases])
        for kind in limits:
            hit = scores[kind][True][chosen[kind] & of_source] > limits[kind]
            print(f"{kind + ' found':18s} {source:10s} {language}  {hit.mean():.2f} of {len(hit)} (cross-validated)")
        clean = chosen["clean"] & of_source
        alarm = np.any([scores[kind][False][clean] > limits[kind] for kind in limits], axis=0)
        print(f"{'false alarm':18s} {source:10s} {language}  {alarm.mean():.2f} of {len(alarm)} (cross-validated)")


if __name__ == "__main__":
    sys.exit(main())
