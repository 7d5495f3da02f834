"""Full text: the engine's match set is what a scan of all texts would find."""

from __future__ import annotations

import itertools

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remegraph.ledger.index import fulltext
from remegraph.models import Message, Partition
from remegraph.text.tokens import token_counts, tokenize
from tests.ledger.conftest import ANN, NOON, Ledger, following

_numbers = itertools.count(1)
_WORDS = [
    "tea",
    "Tea",
    "teas",
    "caf\u00e9",
    "\u5317\u4eac",
    "\u4eac\u90fd",
    "a_b",
    "x5e",
    "OR",
    "NOT",
    "x",
    "it's",
    "c++",
    "1,000",
    "_1",
]
_texts = st.lists(
    st.lists(st.sampled_from(_WORDS) | st.text(max_size=6), max_size=6).map(" ".join), min_size=1, max_size=6
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=_texts, query=st.lists(st.sampled_from(_WORDS) | st.text(max_size=6), max_size=4))
def test_the_match_set_is_that_of_a_scan(ledger: Ledger, texts: list[str], query: list[str]) -> None:
    """Whatever the script, the operators and the punctuation: the index finds all and only what is there."""
    home = Partition(tenant="t", user=f"user{next(_numbers)}")
    messages = [Message(message_id=f"m{n}", role="user", content=text, time=NOON) for n, text in enumerate(texts)]
    ledger.archive.add_messages(home, messages, NOON)
    tokens = [token for word in query for token in (*tokenize(word), word)]
    (found,) = ledger.archive.match([home], "message", tokens)
    counted = [token_counts(f"user {text}") for text in texts]
    expected = [
        (n + 1, f"m{n}", sum(counts.values()), [counts.get(token, 0) for token in found.tokens])
        for n, counts in enumerate(counted)
        if any(token in counts for token in tokens)
    ]
    columns = (found.seqs.tolist(), found.record_ids, found.lengths.tolist(), found.counts.tolist())
    assert sorted(zip(*columns, strict=True)) == expected
    assert (found.total, found.total_length) == (len(texts), sum(sum(counts.values()) for counts in counted))


def test_speakers_and_tools_are_found_too(ledger: Ledger) -> None:
    """Who asked for the calculator, and with what, is a question about the words around the words."""
    call = {
        "name": "calculator",
        "args": {"sums": [17, {"city": "Lisbon\nPorto"}], "place": "\u5317\u4eac", "no": None},
    }
    message = Message.model_validate(
        {"message_id": "m", "role": "assistant", "name": "Nora", "time": NOON, "tool_calls": [call]}
    )
    ledger.archive.add_messages(ANN, [message], NOON)
    for word in ("Nora", "calculator", "sums", "17", "Lisbon", "Porto", "\u5317\u4eac"):
        assert ledger.found(ANN, "message", *tokenize(word)) == {"m"}


def test_a_question_of_thousands_of_words_is_answered(ledger: Ledger) -> None:
    """A pasted page as a query must not break the engine's parser."""
    (message,) = ledger.say(ANN, "needle")
    assert ledger.found(ANN, "message", *(f"w{n}" for n in range(5000)), "needl") == {message.message_id}


def test_a_text_with_very_many_words_is_found_by_its_last(ledger: Ledger) -> None:
    """A tsvector has an end; a pasted book is recorded and found all the same."""
    words = [f"w{n:06}" for n in range(fulltext.MOST_TERMS + 100)]
    (book, _) = ledger.say(ANN, " ".join(words), "short")
    assert ledger.found(ANN, "message", words[-1]) == {book.message_id}
    assert ledger.found(ANN, "message", "absent") == set()


def test_only_live_memories_are_found(ledger: Ledger) -> None:
    """What was archived is not recalled; brought back, it is found again, and the totals follow."""
    memory = ledger.learn("Ann likes green tea.")

    def tea() -> tuple[set[str], int, int]:
        (found,) = ledger.archive.match([ANN], "memory", ["tea"])
        return set(found.record_ids), found.total, found.total_length

    assert tea() == ({memory.memory_id}, 1, 4)
    ledger.commit(following(memory, status="archived"))
    assert tea() == (set(), 0, 0)
    ledger.commit(following(ledger.head(memory), status="active", tags=("drink",)))
    assert tea() == ({memory.memory_id}, 1, 5)
    assert ledger.found(ANN, "memory", "drink") == {memory.memory_id}
    ledger.commit(following(ledger.head(memory), content="Ann likes green coffee.", tags=()))
    assert tea() == (set(), 1, 4)


def test_long_and_short_tokens_never_stand_for_each_other(ledger: Ledger) -> None:
    """Terms of the index are short forms; the counts decide."""
    ledger.say(ANN, "x6162 " + "z" * 60)
    assert ledger.found(ANN, "message", "ab") == set()
    assert len(ledger.found(ANN, "message", "z" * 60)) == 1
    assert ledger.found(ANN, "message", "z" * 59) == set()
