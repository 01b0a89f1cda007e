"""Columns of an n-best list."""
