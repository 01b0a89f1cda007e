"""log p(target | source) of given pairs."""
