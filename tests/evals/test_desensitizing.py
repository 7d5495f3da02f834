"""Generated sentences, and the bars for what goes and what stays."""

from __future__ import annotations

from collections import Counter

from conftest import Figure
from evals._planting import gb_11643
from evals.desensitizing import BARS, figures, sentences, templates
from remegraph.text.findings import Finding


def test_the_bars_hold_on_a_few_sentences(figure: Figure) -> None:
    """Sixty of each language show what the full run shows on fifteen hundred."""
    data = list(sentences(seed=7, n=60))
    measured = list(figures(data, "all"))
    assert [each.name for each in measured if each.verdict == "FAIL"] == []
    met = sum(each.verdict == "PASS" for each in measured)
    assert met > 20
    figure("bar 24: private data", f"{met} of {met} bars met in {len(data)} sentences, seed 7")
    for each in measured:
        if each.bar is None and ("phone" in each.name or "name" in each.name):
            figure("bar 24: phones and names, without a bar", f"{each.name.removeprefix('all, ')} {each.value:.2f}")
    assert min(Counter(each.language for each in data if not each.planted).values()) >= 0.3 * 60


def test_the_bars_are_missed_where_nothing_is_found_and_where_everything_is() -> None:
    """An eval that cannot fail measures nothing."""
    data = list(sentences(seed=7, n=60))
    nothing = figures(data, "all", find=lambda _, **__: ())
    everything = figures(data, "all", find=lambda text, **_: (Finding(0, len(text), "email"),))
    assert {figure.name.rpartition(" ")[2] for figure in nothing if figure.verdict == "FAIL"} == {"recall"}
    assert {figure.name.rpartition(" ")[2] for figure in everything if figure.verdict == "FAIL"} == {"precision"}


def test_there_are_sixty_templates_of_each_language_and_numbers_hold_their_checksums() -> None:
    """What Faker makes is measured as it is; a number without its checksum could not be told from any other."""
    assert all(sum(map(len, groups.values())) >= 60 for groups in templates().values())
    ids = [each.value for sentence in sentences(seed=7, n=300) for each in sentence.planted if each.type == "cn-id"]
    assert len(ids) > 10
    assert all(number[17] == gb_11643(number[:17]) for number in ids)


def test_each_half_has_every_type_that_has_a_bar() -> None:
    """A type that is only in the half that was seen would be judged by what it was tuned on."""
    data = list(sentences(seed=7, n=600))
    for aside in (True, False):
        assert set(BARS) <= {each.type for sentence in data if sentence.aside == aside for each in sentence.planted}
