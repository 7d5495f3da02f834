"""Any user id as a label of a namespace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from remegraph import InputError
from remegraph.adapters.store import decode_label, encode_label

_TEXTS = st.text(st.characters(exclude_categories=())) | st.text("~.*2EeF\x00")


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
        ("ann@example.org", "ann@example~2Eorg"),
        ("ann_b-c+d:7", "ann_b-c+d:7"),
        ("小林", "~E5~B0~8F~E6~9E~97"),
        ("a*b~c", "a~2Ab~7Ec"),
        ("langgraph", "~6Canggraph"),
        ("", "~"),
        ("\ud800\x00", "~ED~A0~80~00"),
    ],
)
def test_labels_are_what_every_store_takes(text: str, label: str) -> None:
    """Plain names stay readable; only what some package refuses is written otherwise."""
    assert encode_label(text) == label


@pytest.mark.parametrize("label", ["ann@example.org", "~2e", "~41", "~ZZ", "~E5", "", "*", "langgraph", "100~", "小林"])
def test_what_was_never_encoded_is_not_decoded(label: str) -> None:
    """Two labels for one user would be two users."""
    with pytest.raises(InputError, match="no encoded label"):
        decode_label(label)
