"""Looks at the files of a pipeline together and says what does not fit before Moses, or a tuner, fails on it."""
