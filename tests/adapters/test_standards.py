"""LangChain's own standard tests, unchanged: no override, no xfail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from remegraph import MemoryKit
from remegraph.adapters import MemoryRetriever, memory_tools
from tests.talk import ANN, open_kit


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """A kit that holds four memories; the tests only add to it, or take back what they name."""
    with open_kit(tmp_path_factory.mktemp("standards")) as kit:
        for number, drink in enumerate(("oolong tea", "green tea", "black tea with milk", "cold mint tea"), start=1):
            kit.save(f"drink {number}", f"Ann keeps {drink} in drawer {number}.", scope=ANN)
        yield kit


class _WithKit:
    kit: MemoryKit
    memory_id: str

    @pytest.fixture(autouse=True)
    def _with_kit(self, filled: MemoryKit) -> None:
        self.kit = filled
        self.memory_id = filled.memories(scope=ANN)[0].memory_id


@pytest.mark.requirement("C4")
class TestRetriever(_WithKit, RetrieversIntegrationTests):
    """Five of five."""

    @property
    def retriever_constructor(self) -> type[MemoryRetriever]:
        return MemoryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"kit": self.kit, "scope": ANN}

    @property
    def retriever_query_example(self) -> str:
        return "Which tea does Ann keep?"


class _Tool(_WithKit):
    name: str
    args: dict[str, Any]

    @property
    def tool_constructor(self) -> BaseTool:
        (tool,) = (tool for tool in memory_tools(self.kit, ANN) if tool.name == self.name)
        return tool

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"memory_id": self.memory_id} if self.name in {"forget_memory", "trace_memory"} else self.args


class _Save(_Tool):
    name = "save_memory"
    args = {"key": "tea", "content": "Ann likes oolong.", "tags": ["drinks"], "importance": 0.7}  # noqa: RUF012


class _Search(_Tool):
    name = "search_memory"
    args = {"query": "tea", "k": 3}  # noqa: RUF012


class _Forget(_Tool):
    name = "forget_memory"


class _Trace(_Tool):
    name = "trace_memory"


@pytest.mark.requirement("C6")
class TestSaveUnit(_Save, ToolsUnitTests):
    """Six of six."""


@pytest.mark.requirement("C6")
class TestSaveIntegration(_Save, ToolsIntegrationTests):
    """Five of five."""


@pytest.mark.requirement("C6")
class TestSearchUnit(_Search, ToolsUnitTests):
    """Six of six."""


@pytest.mark.requirement("C6")
class TestSearchIntegration(_Search, ToolsIntegrationTests):
    """Five of five."""


@pytest.mark.requirement("C6")
class TestForgetUnit(_Forget, ToolsUnitTests):
    """Six of six."""


@pytest.mark.requirement("C6")
class TestForgetIntegration(_Forget, ToolsIntegrationTests):
    """Five of five."""


@pytest.mark.requirement("C6")
class TestTraceUnit(_Trace, ToolsUnitTests):
    """Six of six."""


@pytest.mark.requirement("C6")
class TestTraceIntegration(_Trace, ToolsIntegrationTests):
    """Five of five."""
