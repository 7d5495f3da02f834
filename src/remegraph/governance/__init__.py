"""Which rules always hold, where they apply, which memory is current, and who decided that."""
