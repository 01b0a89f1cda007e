"""The layers the models are made of."""
