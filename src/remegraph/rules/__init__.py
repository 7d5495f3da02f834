"""Pure decisions: what counts as found, covered, twice, in conflict, near."""
