"""Servers over the public kit, each with an extra of its own: the inspector for people, MCP for other programs."""
