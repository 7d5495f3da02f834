"""Who calls over HTTP: the token says it, whole, and nothing else does."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Self

from mcp.server.auth.provider import AccessToken, TokenVerifier
from pydantic import ValidationError

from remegraph.errors import InputError, SetupError
from remegraph.kit.calling import required
from remegraph.models import Scope

__all__ = ["Tokens", "scope_of"]

_SHORTEST = 16
_SCOPE = "remegraph_scope"


class Tokens(TokenVerifier):
    """Knows each token by its digest, so that comparing takes the same time however much of one is guessed.

    Args:
        scopes: Whom each token stands for.

    Raises:
        InputError: There is none, or one is too short to be a secret.
        ScopeError: One stands for nobody.
    """

    def __init__(self, scopes: Mapping[str, Scope]) -> None:
        if not scopes or any(len(token) < _SHORTEST for token in scopes):
            raise InputError(
                f"A token has under {_SHORTEST} characters, or there is none.", "Make one: openssl rand -hex 32."
            )
        self._scopes = {_digest(token): required(scope) for token, scope in scopes.items()}

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """Read tokens from a JSON file: `{"TOKEN": {"user": ..., "agent": ...}, ...}`.

        Args:
            path: The file; others must not be able to read it.

        Raises:
            SetupError: It cannot be read, others can read it, or it holds something else.
            InputError: A token is too short.
        """
        try:
            others = stat.S_IMODE(path.stat().st_mode) & 0o077 if os.name == "posix" else 0
            given = json.loads(path.read_text(encoding="utf-8"))
            scopes = {token: Scope.model_validate(scope) for token, scope in dict(given).items()}
        except (OSError, ValueError, TypeError, ValidationError) as error:
            raise SetupError(
                f"The tokens in {path} cannot be read ({type(error).__name__}).",
                'Write {"TOKEN": {"user": "ann"}} there.',
            ) from error
        if others:
            raise SetupError(f"Others than its owner may use {path}.", f"Run: chmod 600 {path}.")
        return cls(scopes)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whom a token stands for; nobody, if it is unknown."""
        digest = _digest(token)
        scope = self._scopes.get(digest)
        if scope is None:
            return None
        return AccessToken(token=digest, client_id=digest, scopes=[], claims={_SCOPE: scope.model_dump()})


def scope_of(token: AccessToken) -> Scope | None:
    """Return whom a token that was found right stands for.

    Args:
        token: As `Tokens` gave it.
    """
    claims = token.claims or {}
    return Scope.model_validate(claims[_SCOPE]) if _SCOPE in claims else None


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
