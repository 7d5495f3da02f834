"""Which rules hold and where, what became of memories, and who did what."""
