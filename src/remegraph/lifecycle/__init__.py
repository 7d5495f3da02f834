"""How memories come and go: what is sensed, and what is at hand while a task is at work."""
