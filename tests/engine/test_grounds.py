"""What a statement may say that stands nowhere to the letter: in whatever language."""

from __future__ import annotations

from datetime import datetime

import pytest

from remegraph.engine.grounds import Ground, Said

pytestmark = pytest.mark.requirement("X13", "X17")

WEDNESDAY = datetime.fromisoformat("2025-09-10T18:00:00+02:00")


def lacking(said: str, statement: str) -> tuple[str, ...]:
    """What stands nowhere, where only this was said on a Wednesday."""
    return Ground([Said(f"Ann: {said}", WEDNESDAY)], ["Ann"], [said]).lacking(statement)


@pytest.mark.parametrize(
    ("said", "statement"),
    [
        ("Am Montag fängt der Kurs an", "Der Kurs fängt am 15. September 2025 an."),
        ("nächstes Wochenende wandern wir", "Ann wandert am 20./21. September 2025."),
        ("El lunes me operan", "A Ann la operan el 15 de septiembre de 2025."),
        ("je pars demain", "Ann part le 11 septembre 2025."),
        ("昨日ジムに入会した", "Annは2025年9月9日にジムに入会した。"),
        ("今度の金曜に引っ越す", "Annは9月12日に引っ越す。"),
        ("모레 이사해", "Ann은 2025년 9월 12일에 이사한다."),
        ("कल मेरी परीक्षा है", "Ann की परीक्षा 11 सितंबर 2025 को है।"),
        ("موعدي يوم الجمعة", "موعد Ann يوم 12 سبتمبر 2025."),
        ("seit zwei Jahren vegan", "Ann ist seit 2023 vegan."),
        ("me operaron hace tres años", "A Ann la operaron en 2022."),
        ("عندي ٣١ كتابا", "Ann عندها 31 كتابا."),
        ("j'ai vingt poules", "Ann a 20 poules."),
    ],
)
def test_a_model_may_reckon_a_day_and_write_a_number_in_any_language(said: str, statement: str) -> None:
    """The prompt asks for absolute dates, and code knows those of English and Chinese alone."""
    assert lacking(said, statement) == ()


@pytest.mark.parametrize(
    ("said", "statement", "missing"),
    [
        ("Der Kurs fängt bald an", "Der Kurs fängt am 15. September 2025 an.", "15"),
        ("Am Montag fängt der Kurs an", "Der Kurs fängt am 27. Dezember 2025 an.", "27"),
        ("El lunes me operan", "A Ann la operan el 15 de septiembre de 2031.", "2031"),
        ("昨日ジムに入会した", "Annは2025年12月24日にジムに入会した。", "2025年12月24"),
        ("je pars demain", "Ann a 17 chats.", "17"),
        ("seit zwei Jahren vegan", "Ann ist seit 2015 vegan.", "2015"),
    ],
)
def test_a_date_or_number_that_no_word_bears_out_stands_nowhere(said: str, statement: str, missing: str) -> None:
    """A day of the week reaches two weeks, and nothing but dates; where nobody speaks of a day, none is reckoned."""
    assert missing in lacking(said, statement)
