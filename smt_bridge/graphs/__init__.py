"""What can be done with the search graphs of a phrase-based decoder."""
