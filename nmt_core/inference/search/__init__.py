"""Beam search and sampling: from sources to hypotheses."""
