"""Which rules always hold and where, which memory is current and what it was before, and who decided that."""
