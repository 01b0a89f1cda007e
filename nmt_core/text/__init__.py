"""Words and how text becomes words."""
