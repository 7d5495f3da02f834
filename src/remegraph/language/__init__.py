"""Text in English and Chinese (and whatever else people write): pure functions."""
