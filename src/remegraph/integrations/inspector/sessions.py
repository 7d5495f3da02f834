"""Who may look: one person, let in once by the token that the terminal shows."""

from __future__ import annotations

import secrets
from threading import Lock

__all__ = ["Session"]


class Session:
    """The one visit that an inspector serves. Its secrets live in memory and die with it."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        """Opens the door, once."""
        self.csrf = secrets.token_urlsafe(32)
        """Stands in every form: who has not seen our pages cannot send one."""
        self._cookie = secrets.token_urlsafe(32)
        self._lock = Lock()
        self._open = True

    def enter(self, token: str) -> str | None:
        """Return the cookie for the right token, the first time; none for anything else.

        Args:
            token: What the visitor shows.
        """
        with self._lock:
            if not self._open or not _same(token, self.token):
                return None
            self._open = False
            return self._cookie

    def knows(self, cookie: str) -> bool:
        """Return whether a visitor was let in.

        Args:
            cookie: What the browser sends.
        """
        return _same(cookie, self._cookie)

    def sent(self, csrf: str) -> bool:
        """Return whether a form is one of ours.

        Args:
            csrf: What it holds.
        """
        return _same(csrf, self.csrf)


def _same(given: str, expected: str) -> bool:
    """Compare in a time that tells nothing."""
    return secrets.compare_digest(given.encode("utf-8", "replace"), expected.encode())
