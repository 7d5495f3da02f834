"""What a person may ask a client for by name: prompts that have it use the memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mcp.types import GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

from remegraph.errors import InputError
from remegraph.integrations.mcp.rights import Rights, allows
from remegraph.kit.calling import check_text
from remegraph.prompts import Language, load

__all__ = ["filled", "instructions", "listed"]

_TOOLS = {"search": "search_memory", "save": "save_memory", "trace": "trace_memory"}
"""What the texts call the tools."""


@dataclass(frozen=True, slots=True)
class _Offer:
    about: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    needs: Rights = "read"


_OFFERS = {
    "recall_first": _Offer("Answer a question from memory.", {"question": "What you want to know."}),
    "about_me": _Offer("Say what is remembered about me, and where it comes from."),
    "remember_this": _Offer("Remember what lasts of a text.", {"text": "What to remember."}, "save"),
}


def instructions(rights: Rights, language: Language) -> str:
    """Return what a model is told of the server as it connects.

    Args:
        rights: What it may do.
        language: The language to tell it in.
    """
    parts = ["mcp_instructions", *(["mcp_saving"] if allows(rights, "save") else [])]
    return "\n".join(_render(part, language, {}) for part in parts)


def listed(rights: Rights) -> list[Prompt]:
    """Return the prompts as the protocol describes them.

    Args:
        rights: What the caller may do.
    """
    return [
        Prompt(
            name=name,
            description=offer.about,
            arguments=[
                PromptArgument(name=each, description=about, required=True) for each, about in offer.arguments.items()
            ],
        )
        for name, offer in _allowed(rights).items()
    ]


def filled(name: str, given: Mapping[str, str] | None, rights: Rights, language: Language) -> GetPromptResult:
    """Return a prompt with what it was given.

    Args:
        name: The prompt.
        given: Its arguments.
        rights: What the caller may do.
        language: The language to ask in.

    Raises:
        InputError: There is no such prompt, or its arguments are others.
    """
    offers, values = _allowed(rights), dict(given or {})
    if name not in offers:
        raise InputError(f"There is no prompt {name!r} here.", f"Ask for one of {', '.join(offers)}.")
    wanted = offers[name].arguments.keys()
    if values.keys() != wanted:
        raise InputError(f"The prompt {name} was given {_named(values)}.", f"Give {_named(wanted)}.")
    check_text(**values)
    text = _render(f"mcp_{name}", language, values)
    return GetPromptResult(
        description=offers[name].about, messages=[PromptMessage(role="user", content=TextContent(text=text))]
    )


def _allowed(rights: Rights) -> dict[str, _Offer]:
    return {name: offer for name, offer in _OFFERS.items() if allows(rights, offer.needs)}


def _named(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def _render(name: str, language: Language, values: Mapping[str, str]) -> str:
    prompt = load(name, language)
    tools = {key: tool for key, tool in _TOOLS.items() if key in prompt.variables}
    return prompt.render(**tools, **values)[1]
