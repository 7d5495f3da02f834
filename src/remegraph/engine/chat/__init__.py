"""What a chat model is asked, and what is taken from its answers."""
