"""Procedures that agents carry out and how well they go, and guidelines of tools."""
