"""What a statement may say that stands nowhere to the letter: in whatever language."""

from __future__ import annotations

from datetime import datetime

import pytest

from remegraph.engine.grounds import DatedText, Ground

pytestmark = pytest.mark.requirement("X13", "X17")

WEDNESDAY = datetime.fromisoformat("2025-09-10T18:00:00+02:00")


def lacking(said: str, statement: str) -> tuple[str, ...]:
    """What stands nowhere, where only this was said on a Wednesday."""
    return Ground([DatedText(f"Ann: {said}", WEDNESDAY)], ["Ann"], [said]).lacking(statement)


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


@pytest.mark.parametrize(
    ("said", "statement"),
    [
        ("I don't eat meat.", "Ann is vegetarian."),
        ("Ich esse kein Fleisch.", "Ann ist Vegetarierin."),
        ("我不吃肉", "Ann吃素。"),
        ("we meet at quarter to eight in the evening", "Ann meets at 19:45."),
        ("der Kurs ist um halb acht abends", "Anns Kurs ist um 19:30 Uhr."),
        ("wir treffen uns um Viertel vor acht", "Ann trifft sie um 7:45 Uhr."),
        ("ich werde fünfundzwanzig", "Ann wird 25."),
        ("zweihundertfünfzig Gäste kommen", "Ann hat 250 Gäste."),
        ("ein Dutzend Eier", "Ann hat 12 Eier."),
        ("wir sind zu viert", "Bei Ann leben vier Personen."),
        ("we moved in '98", "Ann moved in 1998."),
        ("I live in nyc", "Ann lives in New York City."),
        ("the UK office", "Ann works in the United Kingdom."),
        ("32 gigs of memory", "Ann has 32 GB of memory."),
        ("I have half a dozen hens", "Ann has six hens."),
        ("run the adr script with several names", "The script takes several slugs. adr new SLUG..."),
        ("我有半打鸡蛋", "Ann有六个鸡蛋。"),
        ("我妹叫小丽", "Ann的妹妹叫小丽。"),
        ("我叫她点外卖", "Ann叫外卖。"),
    ],
)
def test_what_is_said_in_other_words_is_said(said: str, statement: str) -> None:
    """Times, ages and counts in words, and names written long or short."""
    assert lacking(said, statement) == ()


@pytest.mark.parametrize(
    ("said", "statement", "missing"),
    [
        ("I use a laptop from work.", "Ann uses an IBM laptop from work.", "IBM"),
        ("I bought a phone.", "Ann bought an iPhone.", "iPhone"),
        ("I have a cat", "Ann has seven cats.", "7"),
        ("Ich habe eine Katze", "Ann hat fünf Katzen.", "5"),
        ("我有一只猫", "Ann有五只猫。", "5"),
        ("Meine Schwester kommt bald, ich freue mich.", "Anns Schwester Katrin kommt bald.", "Katrin"),
        ("Meine Nichte ist da und ich bin froh.", "Anns Nichte heißt Mathilda.", "Mathilda"),
        ("我妹妹快来看我了。", "Ann的妹妹王小丽快来看她了。", "王小丽"),
        ("我妹妹快來看我了。", "Ann的妹妹叫王小麗。", "王小麗"),
        ("我有一只猫", "Ann的猫叫咪咪。", "咪咪"),
        ("我老板人很好", "Ann的老板是张伟。", "张伟"),
    ],
)
def test_a_name_is_known_by_its_form_or_by_what_introduces_it(said: str, statement: str, missing: str) -> None:
    """A capital alone makes a name in English, and none in German or Chinese."""
    assert lacking(said, statement) == (missing,)


@pytest.mark.parametrize(
    ("said", "statement", "value", "strange"),
    [
        ("My sister visits soon.", "Kate visits Ann soon.", "", "Kate"),
        ("My sister visits soon.", "Kate, Ann's sister, visits soon.", "", "Kate"),
        ("Ich bin umgezogen, und es ist ruhig hier.", "Ann wohnt jetzt in Leipzig, und es ist ruhig.", "", "Leipzig"),
        ("我上个月搬家了，这里很安静。", "Ann搬到了杭州。", "", "杭州"),
        ("我在一家面包店上班。", "Ann在阿里巴巴上班。", "", "阿里巴巴"),
        ("我在一家面包店上班。", "Ann是做面包的，在店里上班。", "腾讯", "腾讯"),
        ("I moved, it is quiet here.", "Ann moved, and it is quiet.", "Lisbon", "Lisbon"),
    ],
)
def test_what_may_be_a_name_is_asked_about(said: str, statement: str, value: str, strange: str) -> None:
    """Where a sentence begins, or after a preposition, form alone does not tell a name from a word."""
    ground = Ground([DatedText(f"Ann: {said}", WEDNESDAY)], ["Ann"], [said])
    assert strange in ground.strange(statement, value)


@pytest.mark.parametrize(
    ("said", "statement", "value"),
    [
        ("I work nights.", "Ann works nights.", "nights"),
        ("I'm going on holiday, according to plan.", "Plans: Ann goes on holiday.", ""),
        ("Ich wohne in Leipzig, und es ist ruhig.", "Ann wohnt in Leipzig.", "Leipzig"),
        ("我搬到海边了，很安静。", "Ann搬到了海边。", "海边"),
        ("我在家上班。", "Ann在家工作。", "在家"),
        ("Meat is not for me.", "Ann eats no meat.", "vegetarian"),
        ("I take the pills on Mondays", "User takes pills.", ""),
    ],
)
def test_what_was_said_is_not_asked_about(said: str, statement: str, value: str) -> None:
    """Each question costs a call of a model."""
    ground = Ground([DatedText(f"Ann: {said}", WEDNESDAY)], ["Ann"], [said])
    assert ground.strange(statement, value) in {(), ("vegetarian",)}
