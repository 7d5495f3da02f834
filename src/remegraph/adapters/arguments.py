"""What a model gave a tool, checked where no LangChain agent stands between: for other SDKs and protocols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError

from remegraph.errors import InputError

__all__ = ["checked_arguments"]


def checked_arguments(tool: BaseTool, given: object) -> dict[str, object]:
    """Return the arguments of a call, which are those of the tool's schema and no others.

    Args:
        tool: What is called.
        given: What the model gave, read as JSON.

    Raises:
        InputError: They do not fit; says how, for the model.
    """
    if not isinstance(given, Mapping):
        raise InputError(f"Its arguments must be one JSON object, not {type(given).__name__}.")
    if unknown := sorted(given.keys() - tool.args.keys()):  # nor may a model give what only a run injects
        raise InputError(f"It takes no {', '.join(unknown)}, only {', '.join(tool.args) or 'nothing'}.")
    schema = cast("type[BaseModel]", tool.tool_call_schema)
    try:
        schema.model_validate(given)
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False))
        raise InputError(f"Its arguments do not fit: {'; '.join(faults)}.") from error
    return dict(given)
