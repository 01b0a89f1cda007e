"""The `smt-bridge` command line."""
