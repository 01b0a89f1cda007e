"""From lines to batches of word ids."""
