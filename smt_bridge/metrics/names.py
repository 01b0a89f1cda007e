"""The names of metrics and tokenisers, for command lines, which load no more than these."""

from __future__ import annotations

METRIC_NAMES = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}
"""What people call the metrics of options."""

TOKENIZERS = ("none", "13a", "intl", "char", "zh")
"""Sacrebleu's, of BLEU."""
