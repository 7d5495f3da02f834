"""Measurements of remegraph. They read data that is not part of it."""
