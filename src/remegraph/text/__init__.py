"""Reading words, without any knowledge of memories."""
