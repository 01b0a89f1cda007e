"""Finding the weights of a log-linear model."""
