"""The text of a training run as word ids, and the order in which it is read."""
