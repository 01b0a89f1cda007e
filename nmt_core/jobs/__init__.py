"""Long work in parts, that survives being killed."""
