"""The inspector: a local web page on which a person looks at a memory, and decides where something waits."""

from remegraph.integrations.inspector.app import inspector
from remegraph.integrations.inspector.sessions import Session

__all__ = ["Session", "inspector"]
