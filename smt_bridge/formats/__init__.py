"""Readers and writers of Moses' files."""
