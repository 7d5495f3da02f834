"""Governance: which memory is current, and who decided that."""
