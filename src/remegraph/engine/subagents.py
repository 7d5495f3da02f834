"""The Sub Agent that writes (R8), as a graph: compares a block with the memories of one topic, and says what changes.

    START -> recall_similar_memory -> decide -> END

For reading, `engine.retriever` has one step for all topics, in which a host's own agents take the place of ours.
"""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from remegraph.engine.metering import Meter
from remegraph.engine.nodes import Body, Think, Update, node
from remegraph.engine.search import Searcher, Similar
from remegraph.engine.tasks import Proposal, ProposeTask, ThinkerOf
from remegraph.errors import InvalidAnswerError, ModelUnavailableError
from remegraph.rules.tool_guidelines import is_guideline

__all__ = ["ProposalKey", "SubAgentInput", "SubAgentOutput", "create_sub_agent"]

ProposalKey = tuple[str, int]
"""Topic key and attempt: a rejected proposal never stands for its successor."""


class SubAgentInput(TypedDict):
    """What the Meta Agent sends to a Sub Agent."""

    task: ProposeTask
    meter: Meter


class SubAgentOutput(TypedDict):
    """What a Sub Agent hands back, joined with what its siblings hand back."""

    proposals: Annotated[dict[ProposalKey, Proposal], operator.or_]


class _State(SubAgentInput, SubAgentOutput):
    similar: Similar


SubAgent = CompiledStateGraph[_State, None, SubAgentInput, SubAgentOutput]


def create_sub_agent(searcher: Searcher, thinker_of: ThinkerOf) -> SubAgent:
    """Return the Sub Agent's graph.

    Args:
        searcher: Recalls similar memories of the topic.
        thinker_of: Says who decides.
    """

    def recall_similar_memory(state: _State) -> Update:
        task = state["task"]
        return {"similar": searcher.similar(task.shelf, task.messages, thinker_of(task.scope.agent).similar_tokens)}

    def decide(state: _State) -> Body:
        shown = state["similar"]
        task = replace(
            state["task"],
            similar=tuple(memory for memory in shown.memories if not is_guideline(memory)),
            settle=shown.pairs,
            beside=shown.beside,
            meant=tuple(memory for memory in state["task"].meant if memory not in shown.memories),
        )
        try:
            proposal: Proposal = yield Think(thinker_of(task.scope.agent), "propose", task, state["meter"])
        except (InvalidAnswerError, ModelUnavailableError) as error:
            proposal = Proposal(shelf=task.shelf, attempt=task.attempt, similar=task.similar, failure=str(error))
        return {"proposals": {(task.shelf.topic.key, task.attempt): proposal}}

    graph = StateGraph(_State, input_schema=SubAgentInput, output_schema=SubAgentOutput)
    graph.add_node("recall_similar_memory", recall_similar_memory)
    graph.add_node("decide", node(decide, "decide"))
    graph.add_edge(START, "recall_similar_memory")
    graph.add_edge("recall_similar_memory", "decide")
    graph.add_edge("decide", END)
    return graph.compile(checkpointer=False, name="sub_agent")
