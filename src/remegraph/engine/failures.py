"""What the error of a provider's client means: the provider is down, or it refuses this request for good."""

from __future__ import annotations

from collections.abc import Mapping

from langchain_core.exceptions import ContextOverflowError, ModelInvalidRequestError

from remegraph.errors import ModelUnavailableError, RequestRefusedError
from remegraph.rules.desensitizing.masking import masked

__all__ = ["asked_to_wait", "provider_failure", "told"]

_LONGEST = 600
"""Characters of a provider's error that are told on."""

_REFUSALS = (ModelInvalidRequestError, ContextOverflowError)
_REFUSING = frozenset({400, 413, 422})
"""Invalid, too large, not to be processed: the same request gets the same answer. 401 and 403 end with the key."""


def provider_failure(name: str, error: Exception) -> ModelUnavailableError | RequestRefusedError:
    """Return an error of a model's or an embedder's client in our own words.

    Args:
        name: Of the model or the embedder.
        error: What its client raised.
    """
    if isinstance(error, _REFUSALS) or _status(error) in _REFUSING:
        return RequestRefusedError(f"{name} refused the request ({told(error)}).")
    return ModelUnavailableError(f"{name} did not answer ({told(error)}).")


def told(error: Exception) -> str:
    """Return what an error says, without keys and passwords, and no more of it than anybody reads.

    Args:
        error: What a client raised; some repeat the whole request.
    """
    text = f"{type(error).__name__}: {error}"
    return masked(text[: 2 * _LONGEST])[:_LONGEST]  # a key that the end cuts in two would no longer look like one


def asked_to_wait(error: BaseException | None) -> float:
    """Return the seconds that a provider asked to wait, in the way of its error; 0 where it did not ask.

    OpenAI, Anthropic and others raise errors with the HTTP response; some give `retry_after`.

    Args:
        error: What the client raised.
    """
    headers = getattr(getattr(error, "response", None), "headers", None)
    told = headers.get("retry-after") if isinstance(headers, Mapping) else getattr(error, "retry_after", None)
    try:
        return max(0.0, float(told or 0))
    except (TypeError, ValueError):  # a date: the usual wait will do
        return 0.0


def _status(error: Exception) -> object:
    """Return the HTTP status, which clients keep on the error or on its response; none where neither has it."""
    own = getattr(error, "status_code", None)
    return own if isinstance(own, int) else getattr(getattr(error, "response", None), "status_code", None)
