"""Transformers that CTranslate2 runs: an OPUS-MT or Marian model as its own converters wrote it, used as it is."""
