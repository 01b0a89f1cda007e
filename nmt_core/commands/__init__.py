"""The `nmt-core` command line."""
