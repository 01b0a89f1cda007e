"""Transformers that CTranslate2 runs: an OPUS-MT or Marian model as its own converters wrote it, used as it is."""

CT2 = "ct2:"
"""What stands before the directory of such a model where commands take a model."""
