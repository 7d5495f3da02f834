"""Who calls, on every surface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime, ServerInfo

from remegraph import InputError, MemoryKit, Scope, ScopeError, SetupError
from remegraph.adapters import (
    MemoryMiddleware,
    MemoryRetriever,
    MemoryStore,
    MessageHistory,
    ScopeSource,
    ToolMemoryHandler,
    memory_node,
    memory_tools,
    resolve_scope,
    skill_tools,
    with_memory,
)
from remegraph.models import Partition, visible

_names = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1)


@dataclass
class _Context:
    user_id: str | None = None
    tenant: str | None = None
    model: str = "small"


class _User:
    """Whom the Agent Server authenticated."""

    identity = "server-ann"
    display_name = "Ann"
    is_authenticated = True
    permissions = ()

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def __contains__(self, key: str) -> bool:
        return hasattr(self, key)

    def __iter__(self) -> Any:
        return iter(("identity",))


_SERVER = ServerInfo(assistant_id="a", graph_id="g", user=_User())


def _configured(**values: object) -> RunnableConfig:
    return {"configurable": values}


@pytest.mark.parametrize(
    ("explicit", "context", "configurable", "user"),
    [
        (Scope(user="explicit"), {"user_id": "context"}, {"user_id": "configured"}, "explicit"),
        (None, {"user_id": "context"}, {"user_id": "configured"}, "context"),
        (None, {"user": "context"}, {}, "context"),
        (None, _Context("context"), {"user_id": "configured"}, "context"),
        (None, Scope(user="context"), {"user_id": "configured"}, "context"),
        (None, _Context(), {"user_id": "configured"}, "configured"),
        (None, None, {"user": "configured"}, "configured"),
        (None, None, {"langgraph_user_id": "configured"}, "configured"),
        (None, None, {"thread_id": "1"}, "server-ann"),
    ],
)
def test_the_first_that_names_a_user_decides(
    explicit: Scope | None, context: object, configurable: dict[str, object], user: str
) -> None:
    """One order for all surfaces: an agent whose node and tools disagree would write to one person and read another."""
    runtime: Runtime[Any] = Runtime(context=context, server_info=_SERVER)
    assert resolve_scope(explicit, runtime=runtime, config=_configured(**configurable)).user == user


@given(user=_names)
def test_any_text_is_a_user_and_is_never_parsed(user: str) -> None:
    """E-mail addresses, dots, wildcards and Chinese names are what real user ids look like."""
    scope = resolve_scope(config=_configured(user_id=user))
    assert scope == Scope(user=user)
    assert visible(scope, [Partition(tenant="default", user=user + ".")]) == ()


def test_what_a_run_does_not_name_comes_from_the_source() -> None:
    """The agent's own name is said once, where the surface is made; the user with each run."""
    source = ScopeSource(agent="remy", tenant="acme")
    assert resolve_scope(source, config=_configured(user_id="ann")) == Scope(user="ann", agent="remy", tenant="acme")
    named = _configured(user_id="ann", tenant_id="other", agent_id="max", project_id="p")
    assert resolve_scope(source, config=named) == Scope(user="ann", tenant="other", agent="max", project="p")


def test_sources_are_never_mixed() -> None:
    """The user of one source in the tenant of another would be nobody's scope."""
    runtime = Runtime(context=_Context(tenant="acme"))
    assert resolve_scope(runtime=runtime, config=_configured(user_id="ann")) == Scope(user="ann")


def test_without_a_user_the_error_says_the_cure() -> None:
    """The first run of a newcomer ends here; it must say what to type."""
    with pytest.raises(ScopeError, match=r'config={"configurable": {"user_id": ...}}'):
        resolve_scope(ScopeSource(agent="remy"))


@pytest.mark.parametrize("user", [42, "", "a\x00b"])
def test_a_name_that_names_nobody_is_refused(user: object) -> None:
    """Passing it over would write one person's words to whoever comes next in the order."""
    runtime: Runtime[Any] = Runtime(context={"user_id": user}, server_info=_SERVER)
    with pytest.raises(ScopeError, match=r"The user of this run"):
        resolve_scope(runtime=runtime)
    with pytest.raises(ScopeError, match="not str"):
        resolve_scope("ann")  # type: ignore[arg-type]


class _State(TypedDict):
    user: str


def test_inside_a_graph_the_run_itself_is_asked() -> None:
    """A retriever that a node calls is told nothing, and must still know whom it serves."""
    graph = StateGraph(_State, context_schema=_Context)
    graph.add_node("ask", lambda _: {"user": resolve_scope().user})
    graph.add_edge(START, "ask")
    agent = graph.compile()

    assert agent.invoke({"user": ""}, context=_Context("ann@example.org")) == {"user": "ann@example.org"}
    assert agent.invoke({"user": ""}, _configured(user_id="bob")) == {"user": "bob"}


def test_inside_a_chain_the_config_of_the_run_counts() -> None:
    """LangChain passes the config along; nobody has to hand it on."""
    chain: Runnable[str, str] = RunnableLambda(lambda _: resolve_scope().user)
    assert chain.invoke("", _configured(user_id="ann")) == "ann"


_SURFACES: dict[str, Callable[[Any, Any], object]] = {
    "middleware": MemoryMiddleware,
    "memory_node": memory_node,
    "with_memory": lambda kit, scope: with_memory(kit, lambda state: state, scope),
    "memory_tools": memory_tools,
    "skill_tools": skill_tools,
    "retriever": lambda kit, scope: MemoryRetriever(kit, scope=scope),
    "history": MessageHistory,
    "tool_handler": ToolMemoryHandler,
    "store": lambda kit, scope: MemoryStore(kit, scope=scope),
}


@pytest.mark.parametrize("surface", _SURFACES.values(), ids=_SURFACES)
def test_what_is_no_kit_or_no_scope_is_refused_when_a_surface_is_made(surface: Any, kit: MemoryKit) -> None:
    """Not at the first message of a user. The usual slip is a kit that was opened with `aopen` and not awaited."""
    for wrong in (None, MemoryKit, "home"):
        with pytest.raises(SetupError, match=r"MemoryKit\.open"):
            surface(wrong, Scope(user="ann"))
    with pytest.raises(ScopeError):
        surface(kit, "ann")


def test_what_a_surface_cannot_do_is_refused_when_it_is_made(kit: MemoryKit) -> None:
    """A depth that there is not, a number of documents below one, a node that cannot be called."""
    with pytest.raises(InputError, match="deep"):
        memory_tools(kit, depth="deep")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="deep"):
        MemoryRetriever(kit, mode="deep")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="k is 0"):
        MemoryRetriever(kit, k=0)
    with pytest.raises(InputError, match="node"):
        with_memory(kit, "model")  # type: ignore[arg-type]
