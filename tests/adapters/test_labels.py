"""Any user id as a label of a namespace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from remegraph import InputError
from remegraph.adapters import decode_label, encode_label

_TEXTS = st.text(st.characters(exclude_categories=())) | st.text("%.*2EeF\x00")


@pytest.mark.requirement("C5")
@given(_TEXTS)
def test_every_text_becomes_a_label_and_comes_back(text: str) -> None:
    """User ids come from elsewhere: e-mail addresses, paths, names in any script, whatever a form let through."""
    label = encode_label(text)
    InMemoryStore().put((label,), "key", {})  # LangGraph takes it
    assert decode_label(label) == text


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("ann@example.org", "ann@example%2Eorg"),
        ("小林", "小林"),
        ("a*b%c", "a%2Ab%25c"),
        ("langgraph", "%6Canggraph"),
        ("", "%"),
        ("\ud800\x00", "%ED%A0%80%00"),
    ],
)
def test_labels_stay_readable(text: str, label: str) -> None:
    """They show up in logs and in the inspector; only what must not stand there is written otherwise."""
    assert encode_label(text) == label


@pytest.mark.parametrize("label", ["ann@example.org", "%2e", "%41", "%ZZ", "%E5", "", "*", "langgraph", "100%"])
def test_what_was_never_encoded_is_not_decoded(label: str) -> None:
    """Two labels for one user would be two users."""
    with pytest.raises(InputError, match="no encoded label"):
        decode_label(label)
