"""Surfaces for people and for other programs, over the public kit."""
