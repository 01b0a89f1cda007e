"""Building n-gram language models."""
