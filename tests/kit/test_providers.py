"""From a setting to a model: OpenAI where a key is set, any LangChain model where given, nothing without both."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from remegraph import MemoryKit, Settings, SetupError
from remegraph.errors import MissingExtraError
from remegraph.kit.providers import as_chat_model, as_embedder
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.testing import ScriptedChatModel
from tests.talk import ANN, create, digest, proposal, said


@pytest.mark.requirement("C9")
@pytest.mark.parametrize(
    ("env", "model", "embedder"),
    [
        ({}, None, None),
        ({"OPENAI_API_KEY": ""}, None, None),
        ({"OPENAI_API_KEY": "k"}, "openai:gpt-5-mini", "openai:text-embedding-3-small"),
        ({"OPENAI_API_KEY": "k", "REMEGRAPH_MODEL": "x:y"}, "x:y", "openai:text-embedding-3-small"),
        ({"REMEGRAPH_EMBEDDER": "hashed:"}, None, "hashed:"),
    ],
)
def test_openai_is_the_default_where_a_key_is_set(env: dict[str, str], model: str | None, embedder: str | None) -> None:
    """A key in the environment is all that most users want to set up; what they name goes first."""
    settings = Settings.from_env(env)
    assert (settings.model, settings.embedder) == (model, embedder)


@pytest.mark.requirement("C9")
def test_openai_models_are_made_from_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made, not called: that costs nothing and needs no network."""
    openai = pytest.importorskip("langchain_openai")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    chat = as_chat_model("openai:gpt-5-mini", timeout=7)
    embedder = as_embedder("openai:text-embedding-3-small")

    assert isinstance(chat, openai.ChatOpenAI)
    assert (chat.model_name, chat.request_timeout) == ("gpt-5-mini", 7)
    assert (embedder.name, embedder.dimension, embedder.semantic) == ("openai:text-embedding-3-small", 1536, True)


@pytest.mark.requirement("C9")
@pytest.mark.parametrize(("name", "cure"), [("openai:gpt-5-mini", "OPENAI_API_KEY"), ("gpt-5", "openai:gpt-5")])
def test_a_model_without_its_key_is_refused_at_the_door(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, cure: str
) -> None:
    """The first minute of most users: it must say which key, and not in the words of a package they did not call."""
    pytest.importorskip("langchain_openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SetupError, match=cure):
        MemoryKit.open(tmp_path / "home", model=name, embedder=None)
    with pytest.raises(SetupError, match="OPENAI_API_KEY"):
        MemoryKit.open(tmp_path / "home", model=None, embedder="openai:text-embedding-3-small")
    assert not (tmp_path / "home").exists()


def test_hashed_vectors_have_the_length_that_is_asked_for() -> None:
    """Shorter vectors save memory; a length that is silently another one would be found out years later."""
    assert [as_embedder(name).dimension for name in ("hashed", "hashed:", "hashed:512")] == [1024, 1024, 512]
    for wrong in ("hashed:0", "hashed:many", "hashed:65537"):
        with pytest.raises(SetupError, match="hashed:512"):
            as_embedder(wrong)


@pytest.mark.requirement("C9")
def test_any_langchain_model_and_embeddings_will_do(tmp_path: Path) -> None:
    """Nobody should change their provider for a memory."""
    steps: dict[str, Any] = {
        "DigestAnswer": digest("personal:Ann"),
        "ProposalAnswer": proposal(create("Ann loves hiking.", 1, "I love hiking")),
        "VerdictAnswer": {"objections": []},
    }
    with MemoryKit.open(
        tmp_path, model=ScriptedChatModel(script=steps), embedder=DeterministicFakeEmbedding(size=8)
    ) as kit:
        kit.add_messages([said("I love hiking in the hills.")], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        assert kit.admin.stats()["embedder"] == "DeterministicFakeEmbedding"
        assert kit.recall("hiking", scope=ANN).memories[0].contributions.keys() == {"text", "dense"}
        assert kit.admin.verify().healthy


@pytest.mark.requirement("C9")
def test_without_a_key_it_works_offline(tmp_path: Path) -> None:
    """The first try must not ask for a credit card."""
    with MemoryKit.open(tmp_path) as kit:
        stats = kit.admin.stats()
        assert (stats["model"], stats["embedder"]) == ("extractive", HashedEmbedder().name)


def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cure is a command to copy."""
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'remegraph\[fastembed\]'"):
        as_embedder("fastembed:any")
