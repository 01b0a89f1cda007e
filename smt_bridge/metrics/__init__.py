"""Sufficient statistics of translation metrics."""
