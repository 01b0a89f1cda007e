"""Moses and a neural model on the same sentences: recipes, and the lists of both as one."""
