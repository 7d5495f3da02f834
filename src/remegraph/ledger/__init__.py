"""The ledger and its projections: SQL is the truth, the vector index can be rebuilt."""
