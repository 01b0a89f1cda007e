"""Finished hypotheses are followed back to where their sentence began."""

from __future__ import annotations

import numpy as np

from nmt_core.inference.search.history import BeamStep, End, History, Path


def step(words: list[int], rows: list[int], origins: list[int]) -> BeamStep:
    """The log-probability of a word is minus its number."""
    return BeamStep(np.array(words), -np.array(words, dtype=np.float64), np.array(rows), np.array(origins))


def test_steps_between_the_ends_of_two_sentences_belong_to_neither() -> None:
    """The older sentence found its end long before both were done, and its other hypotheses only lived on."""
    history = History()
    history.add(step([5, 6], rows=[0, 0], origins=[-1]))
    history.add(step([7, 8], rows=[0, 1], origins=[0, 1]))  # the end of the older sentence is entry 1
    history.add(step([7], rows=[0], origins=[0]))
    history.add(step([7, 9], rows=[0, 1], origins=[0, -1]))  # the younger sentence begins, and ends
    older, younger = history.trace([End(1, 1), End(3, 1)])
    assert older == Path([6, 8], [-6.0, -8.0], [0, 1])
    assert younger == Path([9], [-9.0], [1])
