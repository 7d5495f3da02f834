"""Who thinks for which agent: its own model where it has one, else the kit's, or none; each in the agent's voice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remegraph.errors import SetupError
from remegraph.kit.providers import as_chat_model
from remegraph.prompts import Prompt, template
from remegraph.settings import AgentMemorySettings, ExtractionPolicy, Settings, SummaryPolicy
from remegraph.telemetry import Telemetry, telemetry_of

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from remegraph.engine.asking import Asker
    from remegraph.engine.metering import Meter
    from remegraph.engine.tasks import Thinker
    from remegraph.ports import Concluder, Generalizer

__all__ = ["Thinkers"]


@dataclass(frozen=True)
class _Mind:
    """What a thinker is made from."""

    model: BaseChatModel | None
    extraction: ExtractionPolicy
    template: Prompt | None


class Thinkers:
    """The thinkers of a kit. Models and templates are checked at once; a thinker is made when it is first asked for.

    Args:
        settings: Names agents, with their models, voices and templates.
        model: The kit's chat model; none: extractive mode.
        extractors: Chat models of agents, by name; they come before those that settings name.

    Raises:
        SetupError: A model cannot be made, a template cannot be used, or an extractor is for no agent of its own.
    """

    def __init__(
        self, settings: Settings, model: BaseChatModel | None, extractors: Mapping[str, BaseChatModel | str]
    ) -> None:
        _check(settings, extractors)
        self._policy = settings.summary
        self._telemetry = telemetry_of(asked=settings.opentelemetry)
        self._minds: dict[str | None, _Mind] = {None: _mind(settings.agent, None, model, settings.summary)}
        for name, agent in settings.agents.items():
            self._minds[name] = _mind(agent, extractors.get(name), model, settings.summary)
        self._made: dict[str | None, Thinker] = {}

    def of(self, agent: str | None) -> Thinker:
        """Return who thinks for an agent; agents that no setting names have one in common.

        Args:
            agent: Name of the agent.
        """
        name = agent if agent in self._minds else None
        if name not in self._made:
            self._made[name] = _made(self._minds[name], self._policy, self._telemetry)
        return self._made[name]

    def concluder(self, agent: str | None, meter: Meter) -> Concluder | None:
        """Return who draws conclusions for an agent: its model; none in extractive mode.

        Args:
            agent: Name of the agent.
            meter: Books the calls.
        """
        from remegraph.engine.concluding import ModelConcluder

        mind = self._minds[agent if agent in self._minds else None]
        return None if mind.model is None else ModelConcluder(_asker(mind.model, self._policy, self._telemetry), meter)

    def generalizer(self, agent: str | None, meter: Meter) -> Generalizer | None:
        """Return who says things more generally for an agent: its model; none in extractive mode.

        Args:
            agent: Name of the agent.
            meter: Books the calls.
        """
        from remegraph.engine.generalizing import ModelGeneralizer

        mind = self._minds[agent if agent in self._minds else None]
        return (
            None if mind.model is None else ModelGeneralizer(_asker(mind.model, self._policy, self._telemetry), meter)
        )

    def names(self) -> dict[str | None, str]:
        """Return what thinks, by agent: for all in common (None), and for each agent with a model of its own."""
        common = self._minds[None].model
        return {
            name: self.of(name).name for name, mind in self._minds.items() if name is None or mind.model is not common
        }


def _check(settings: Settings, extractors: Mapping[str, BaseChatModel | str]) -> None:
    for name in extractors:
        if name not in settings.agents:
            raise SetupError(
                f"There is an extractor for {name!r}, whom no setting names.", "Name the agent in settings.agents."
            )
        if settings.agents[name].library == "shared":
            raise SetupError(
                f"There is an extractor for {name!r}, whose library is shared.",
                "What is extracted into a shared library, the kit's model writes: leave the extractor out.",
            )


def _mind(
    agent: AgentMemorySettings,
    extractor: BaseChatModel | str | None,
    model: BaseChatModel | None,
    policy: SummaryPolicy,
) -> _Mind:
    extraction = agent.extraction
    own = as_chat_model(extractor or extraction.model, policy.timeout)
    text = extraction.prompt
    return _Mind(own or model, extraction, None if text is None else template(text, "propose"))


def _made(mind: _Mind, policy: SummaryPolicy, telemetry: Telemetry) -> Thinker:
    from remegraph.engine.extractive import ExtractiveThinker
    from remegraph.engine.modelled import ModelThinker
    from remegraph.engine.tasks import Voice

    if mind.model is None:
        return ExtractiveThinker()
    voice = Voice(mind.extraction.mode, mind.extraction.voice)
    asker = _asker(mind.model, policy, telemetry)
    return ModelThinker(asker, similar_tokens=policy.similar_tokens, voice=voice, template=mind.template)


def _asker(model: BaseChatModel, policy: SummaryPolicy, telemetry: Telemetry) -> Asker:
    from remegraph.engine.asking import Asker

    return Asker(
        model,
        repairs=policy.repairs,
        retries=policy.retries,
        backoff=policy.backoff,
        longest_wait=policy.longest_wait,
        timeout=policy.timeout,
        telemetry=telemetry,
    )
