"""Which rules always hold and where, what became of memories, what is in dispute, and who did what."""
