"""What became of memories, and who did what: chains of versions, and the audit trail."""
