"""Compiled inner loops for CPUs; the package works without them."""
