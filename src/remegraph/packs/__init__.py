"""Packs: memories in a single file, checked before any of it is trusted (K9; the format: docs/packs.md). Faults raise `PackError`."""
