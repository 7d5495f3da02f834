"""Which rules always hold and where, what became of memories, and who did what."""
