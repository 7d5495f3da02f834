"""Packs: memories in a single file, checked before anything of it is believed (K9; the format: docs/packs.md)."""
