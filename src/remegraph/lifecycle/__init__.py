"""How memories live on: what fades, and when."""
