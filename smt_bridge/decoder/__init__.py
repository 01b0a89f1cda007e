"""A running Moses and a neural decoder as one translator."""
