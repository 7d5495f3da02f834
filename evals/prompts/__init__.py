"""The prompts of the evals that ask a model, in the form of `remegraph.prompts`."""
