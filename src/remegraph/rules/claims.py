"""Statements in slots: what code can compare. Precision over recall - what does not parse stays prose."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import NotRequired, TypedDict, cast

from remegraph.language.numerals import CHINESE_NUMERAL, number
from remegraph.language.scripts import has_cjk
from remegraph.language.sentences import sentences
from remegraph.language.tokens import tokenize
from remegraph.models import Claim
from remegraph.rules.telling import unreported

__all__ = [
    "canonical",
    "conflicting",
    "contradicts",
    "named",
    "of_different_values",
    "read_claims",
    "relatives",
    "same",
    "slot",
    "stated",
]

_FAVOURITE = "favourite_"
_NUMERAL = re.compile(CHINESE_NUMERAL)
_EN_FAVOURITE = re.compile(
    r"^(?P<subject>My|[A-Z][\w-]+['’]s) favou?rite (?P<what>[\w-]+(?: [\w-]+)?) (?:is|are) (?P<value>.+)", re.IGNORECASE
)
_EN_POSSESSIVE = re.compile(
    r"^(?P<subject>My|[A-Z][\w-]+['’]s) (?P<what>name|birthday) is (?:on )?(?P<value>.+)", re.IGNORECASE
)
_EN_NEGATED_BE = re.compile(r"^(am|is|are|'m)\s+(not|no longer|never)\b")
_PRONOUNS = frozenset("He She It We They You This That These Those There Who What Everyone Nobody Someone".split())
_ZH_FAVOURITE = re.compile(r"^(?P<subject>.{1,6}?)最(?:喜欢|爱)的(?P<what>[^是，。]{1,5})是(?P<value>.+)")


class _Pattern(TypedDict):
    relation: str
    verb: str
    denies: NotRequired[bool]
    value: NotRequired[str]


class _Grammar(TypedDict):
    negations: str
    adverbs: str
    kin: str
    uncertain: str
    ends: str
    articles: str
    patterns: list[_Pattern]


class _Data(TypedDict):
    single: list[str]
    named: list[str]
    en: _Grammar
    zh: _Grammar


@dataclass(frozen=True, slots=True)
class _Rule:
    relation: str
    denies: bool
    predicate: re.Pattern[str]


def read_claims(sentence: str, speaker: str, language: str, known: Collection[str] = ()) -> tuple[Claim, ...]:
    """Return what a text states in slots: who likes, lives in, works as, has, plans what.

    Statements of the first person are about the speaker; of the third person, about a name or a relation ("my wife")
    at the start of a sentence, or after words that say how the speaker knows ("I learned that"). Questions, conditions,
    hearsay and what is over are left out.

    Args:
        sentence: A sentence, or several.
        speaker: Who says it: the subject of "I".
        language: "en" or "zh".
        known: Whom else it may be about. Chinese does not show what is a name, so others are read as 小林 only.
    """
    read = _read_chinese if language == "zh" else _read_english
    return tuple(dict.fromkeys(claim for span in sentences(sentence) for claim in read(span.text, speaker, known)))


def relatives(text: str, language: str) -> frozenset[str]:
    """Return the words for relatives, friends and animals that a text names.

    Args:
        text: The text.
        language: "en" or "zh".
    """
    return frozenset(match.group().casefold() for match in _relatives(language).finditer(text))


def canonical(topic: str) -> str:
    """Return a canonical topic as it is compared, part by part: `Database : Choice` is `database:choice`.

    Args:
        topic: Its parts, divided by colons, in any width.
    """
    parts = unicodedata.normalize("NFKC", topic).casefold().split(":")
    return ":".join(" ".join(part.split()) for part in parts)


def slot(claim: Claim) -> str:
    """Return the canonical topic of a claim: `ann:lives_in`, or `ann:likes:<stems>` where many values hold at once."""
    key = f"{' '.join(claim.subject.casefold().split())}:{claim.relation}"
    if _single(claim.relation):
        return key
    value = claim.value if has_cjk(claim.value) else " ".join(tokenize(claim.value))
    return f"{key}:{value.casefold()}"


def contradicts(a: Claim, b: Claim) -> bool:
    """Return whether two claims cannot both hold: same slot, but another value or the contrary."""
    if slot(a) != slot(b):
        return False
    mine, yours = _stems(a.value), _stems(b.value)
    same = mine <= yours or yours <= mine
    return a.positive != b.positive if same else a.positive and b.positive


def conflicting(a: Collection[Claim], b: Collection[Claim]) -> bool:
    """Return whether a claim of one statement contradicts one of the other."""
    return any(contradicts(mine, yours) for mine in a for yours in b)


def of_different_values(a: Collection[Claim], b: Collection[Claim]) -> bool:
    """Return whether two statements give different values of one attribute: they cannot say the same."""
    pairs = [
        (mine, yours) for mine in a for yours in b if (mine.subject, mine.relation) == (yours.subject, yours.relation)
    ]
    return bool(pairs) and not any(_stems(mine.value) & _stems(yours.value) for mine, yours in pairs)


def named(claims: Collection[Claim]) -> tuple[str, ...]:
    """Return the names that claims give: of places, employers, persons. Form alone shows few of them in Chinese."""
    return tuple(dict.fromkeys(claim.value for claim in claims if claim.relation in _data()["named"]))


def same(a: Collection[Claim], b: Collection[Claim]) -> bool:
    """Return whether two statements say the same and nothing else: all slots, values and polarities agree."""
    return bool(a) and stated(a) == stated(b)


def stated(claims: Collection[Claim]) -> frozenset[tuple[str, str, bool]]:
    """Return what claims state, such that equal is what says the same: slots, values and polarities."""
    return frozenset(_key(claim) for claim in claims)


def _key(claim: Claim) -> tuple[str, str, bool]:
    return slot(claim), claim.value.casefold(), claim.positive


def _read_english(sentence: str, speaker: str, _: Collection[str]) -> Iterator[Claim]:
    grammar = _data()["en"]
    sentence = unreported(sentence.replace("’", "'").strip())
    if re.search(grammar["uncertain"], sentence, re.IGNORECASE):
        return
    for pattern in (_EN_FAVOURITE, _EN_POSSESSIVE):
        match = pattern.match(sentence)
        value = _value(match["value"], grammar) if match else ""
        if match and value:
            subject = speaker if match["subject"].lower() == "my" else match["subject"].removesuffix("'s")
            what = match["what"].lower().replace(" ", "_")
            yield Claim(subject=subject, relation=what if pattern is _EN_POSSESSIVE else _FAVOURITE + what, value=value)
            return
    found = _english_subject().match(sentence)
    if not found or found["name"] in _PRONOUNS:
        return
    whose, kin = found["whose"], found["kin"]
    owner = speaker if whose and whose.lower() == "my" else (whose or "").removesuffix("'s")
    subject = f"{owner}'s {kin.lower()}" if kin else speaker if found["self"] else found["name"]
    predicate = _EN_NEGATED_BE.sub(r"\2 \1", sentence[found.end() :].lstrip().rstrip(".!"))
    yield from _claims(predicate, subject, "en")


def _read_chinese(sentence: str, speaker: str, known: Collection[str]) -> Iterator[Claim]:
    grammar = _data()["zh"]
    if re.search(grammar["uncertain"], sentence):
        return
    names = "|".join(re.escape(name) for name in sorted({"我", speaker, *known} - {""}, key=len, reverse=True))
    subject_pattern = re.compile(
        rf"^(?P<who>{names}|(?:小|老|阿)[\u4e00-\u9fff](?![\u4e00-\u9fff]?的))(?:(?:家|的)?(?P<kin>{grammar['kin']}))?"
    )
    last = ""
    for clause in re.split("[，；,;。！!]", sentence):
        clause = clause.strip()  # noqa: PLW2901
        told = unreported(clause)
        favourite = _ZH_FAVOURITE.match(told)
        if favourite and favourite["subject"] in {"我", speaker, *known}:
            value = _value(favourite["value"], grammar)
            who = speaker if favourite["subject"] == "我" else favourite["subject"]
            yield Claim(subject=who, relation=_FAVOURITE + favourite["what"], value=value)
            continue
        clause = told if subject_pattern.match(told) else clause  # noqa: PLW2901
        found = subject_pattern.match(clause)
        if found:
            who = speaker if found["who"] == "我" else found["who"]
            last = f"{who}的{found['kin']}" if found["kin"] else who
            clause = clause[found.end() :]  # noqa: PLW2901
        if last:
            yield from _claims(clause, last, "zh")


def _claims(predicate: str, subject: str, language: str) -> Iterator[Claim]:
    grammar = _data()["zh" if language == "zh" else "en"]
    for rule in _rules(language):
        match = rule.predicate.match(predicate)
        if not match:
            continue
        groups = match.groupdict()
        value = _value(groups.get("inner") or groups["value"], grammar)
        age = _NUMERAL.search(value) if rule.relation == "age" else None
        if age:
            value = str(number(age.group()))
        if value:
            positive = bool(groups["negation"]) == rule.denies
            yield Claim(subject=subject, relation=rule.relation, value=value, positive=positive)
            return


def _value(text: str, grammar: _Grammar) -> str:
    value = re.sub(grammar["ends"], "", text.strip(), flags=re.IGNORECASE | re.DOTALL)
    before = None
    while before != value:
        before, value = value, re.sub(grammar["articles"], "", value.strip(), flags=re.IGNORECASE)
    return value.strip(" 的了。.!！")


def _single(relation: str) -> bool:
    return relation.startswith(_FAVOURITE) or relation in _data()["single"]


@lru_cache(maxsize=1 << 11)
def _stems(value: str) -> frozenset[str]:
    return frozenset(tokenize(value)) or frozenset({value})


@lru_cache(maxsize=1)
def _english_subject() -> re.Pattern[str]:
    kin = _data()["en"]["kin"]
    return re.compile(
        r"^(?:(?:Yes|Yeah|No|Well|So|Oh|Also|And|But|Actually|Honestly|By the way|BTW|Btw|Hi|Hello)[,!.]?\s+)*"
        rf"(?:(?P<whose>[Mm]y|[A-Z][\w-]+'s) (?P<kin>{kin})(?:,? [A-Z][\w-]+,?)?(?=\s)|(?P<self>[Ii](?=\s|'))|(?P<name>[A-Z][\w-]+(?: [A-Z][\w-]+)?)(?=\s))"
    )


@lru_cache(maxsize=1)
def _data() -> _Data:
    text = (files("remegraph.rules") / "data" / "claims.toml").read_text(encoding="utf-8")
    return cast("_Data", tomllib.loads(text))


@lru_cache(maxsize=2)
def _relatives(language: str) -> re.Pattern[str]:
    kin = _data()["zh" if language == "zh" else "en"]["kin"]
    return re.compile(kin if language == "zh" else rf"\b{kin}\b", re.IGNORECASE)


@lru_cache(maxsize=2)
def _rules(language: str) -> tuple[_Rule, ...]:
    grammar = _data()["zh" if language == "zh" else "en"]
    gap, end = ("", "") if language == "zh" else (r"\s+", r"\b\s*")
    return tuple(
        _Rule(
            pattern["relation"],
            pattern.get("denies", False),
            re.compile(
                rf"^(?:{grammar['adverbs']}{gap})*(?:(?P<negation>{grammar['negations']}){gap})?(?:{grammar['adverbs']}{gap})*"
                rf"{pattern['verb']}{end}(?P<value>{pattern.get('value', '.+')})",
                re.DOTALL,
            ),
        )
        for pattern in grammar["patterns"]
    )
