"""Generated sentences, and the bars for what goes and what stays."""

from __future__ import annotations

from collections import Counter

from evals import desensitizing
from evals.desensitizing import figures, sentences, templates


def test_the_bars_hold_on_a_few_sentences() -> None:
    """Sixty of each language show what the full run shows on fifteen hundred."""
    data = list(sentences(seed=7, n=60))
    measured = list(figures(data, "all"))
    assert [figure.name for figure in measured if figure.verdict == "FAIL"] == []
    assert sum(figure.verdict == "PASS" for figure in measured) > 20
    assert min(Counter(each.language for each in data if not each.planted).values()) >= 0.3 * 60


def test_the_bars_are_missed_where_nothing_is_found_or_everything() -> None:
    """An eval that cannot fail measures nothing."""
    data = [each for each in sentences(seed=7, n=60) if each.language == "en"]
    for found in (lambda text, names: (), lambda text, names: (desensitizing.Finding(0, len(text), "email"),)):
        with_it = list(figures(data, "all", find=found))
        assert any(figure.verdict == "FAIL" for figure in with_it)


def test_there_are_sixty_templates_of_each_language_and_each_half_has_every_barred_type() -> None:
    """A type that is only in the half that was seen would be judged by what it was tuned on."""
    for part in templates().values():
        assert sum(map(len, part.values())) >= 60
