"""Moses tables of phrases and rules: reading, scoring, filtering."""
