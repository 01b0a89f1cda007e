"""Models that other programs have trained, read into model folders (docs/models.md)."""
