"""The version: of the distribution, of ``--version`` and in score signatures."""

VERSION = "0.1.0"
