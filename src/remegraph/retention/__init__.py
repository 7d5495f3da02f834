"""Forgetting, consolidation, the active tier, working memory and the sensory buffer."""
