"""A directory that takes a Moses system to a served hybrid: settings, and a Makefile of the product's own commands."""
