"""A model is a directory: what it holds, how it is read and checked, and how it is replaced."""
