"""Versions, audit, consensus, decisions of persons, and the rules that an agent is always given."""
