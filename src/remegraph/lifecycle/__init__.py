"""How memories come and go: what is sensed, what is at hand while a task is at work, what fades, and when."""
