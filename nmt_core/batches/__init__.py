"""Batches of word ids: padding, which rows belong to which sentence, prefix trees, copies to the device."""
