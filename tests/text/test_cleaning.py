"""What is taken out of JSON, and how that is told."""

from __future__ import annotations

import pytest

from remegraph.engine.redaction import Cleaner


@pytest.mark.requirement("K7")
def test_every_text_and_number_of_json_is_searched() -> None:
    """A secret hides as easily in a key, a list or a number as in a sentence."""
    cleaner = Cleaner(frozenset({"Henrietta"}))
    assert cleaner.clean(
        {
            "steps": [{"who": "Henrietta", "mail": ["h@initech.example", "h@initech.example"]}],
            "h@initech.example": {"card": 4111111111111111, "retries": 123456, "ratio": 0.5, "on": True, "none": None},
        }
    ) == {
        "steps": [{"who": "<name-1>", "mail": ["<email-1>", "<email-1>"]}],
        "<email-1>": {"card": "<card-1>", "retries": 123456, "ratio": 0.5, "on": True, "none": None},
    }
    assert cleaner.removed == {
        ("$.steps[0].who", "name"): 1,
        ("$.steps[0].mail[0]", "email"): 1,
        ("$.steps[0].mail[1]", "email"): 1,
        ("$", "email"): 1,
        ("$.<email-1>.card", "card"): 1,
    }


@pytest.mark.parametrize("key", ["password", "db_passwd", "API-Key", "access_token", "client secret", "密码", "令牌"])
def test_what_stands_under_a_secrets_key_is_secret(key: str) -> None:
    """A password may look like any word; only its key tells. A slot is no value yet."""
    done = Cleaner(frozenset()).clean({key: ["banana", "{secret}", "", "<password-7>"]})
    assert done == {key: ["<password-1>", "{secret}", "", "<password-7>"]}


def test_cleaning_again_changes_nothing() -> None:
    """The last look at what leaves would otherwise find the placeholders of the first."""
    cleaner = Cleaner(frozenset({"Henrietta"}))
    once = cleaner.clean({"note": "Henrietta keeps /home/henrietta/x; token: 8f3kd9sl2kd93ks; call 13912345678."})
    found = dict(cleaner.removed)
    assert cleaner.clean(once) == once
    assert cleaner.removed == found
