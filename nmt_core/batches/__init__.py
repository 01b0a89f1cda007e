"""Batches: padded sentences, rows of sentences and hypotheses, prefix trees, copies to the device."""
