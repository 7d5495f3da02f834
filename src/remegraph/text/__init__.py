"""What reads words and knows nothing of memories."""
