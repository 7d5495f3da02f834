"""The index of the ledger: what can be thrown away and rebuilt."""
