"""Recurrent neural machine translation: training, decoding, scoring and serving."""
