"""The version, as it stands in score signatures."""

VERSION = "0.1.0"
