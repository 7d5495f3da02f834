"""Which rules always hold, where they apply, and how one comes to hold everywhere."""
