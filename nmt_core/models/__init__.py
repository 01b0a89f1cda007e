"""The models, one file a paper, and their one interface."""
