"""Models that other programs have trained, read into model directories (docs/models.md)."""
