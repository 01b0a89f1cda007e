"""Search, sampling and scoring with trained models."""
