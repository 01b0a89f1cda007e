"""Inputs that hypothesis builds of the words of a format."""

from __future__ import annotations

import itertools

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.harness import Tally
from tests.fuzz.targets import Target


def contents(target: Target) -> st.SearchStrategy[bytes]:
    """Lines of words of the format, of numbers, of text and of anything."""
    numbers = st.integers() | st.floats() | st.integers(0, 9)
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    known = sorted({word for content in target.seeds for word in content.split()} | set(target.tokens))
    pieces = [numbers.map(lambda number: str(number).encode()), text.map(str.encode), st.binary(max_size=4)]
    word = st.one_of(st.sampled_from(known), *pieces) if known else st.one_of(*pieces)
    line = st.builds(bytes.join, st.sampled_from([b" ", b"\t", b"", b" ||| "]), st.lists(word, max_size=9))
    lines = st.builds(bytes.join, st.sampled_from([b"\n", b"\r\n"]), st.lists(line, max_size=9))
    return lines | st.sampled_from(target.seeds).flatmap(lambda valid: _changed(valid, lines))


def _changed(valid: bytes, lines: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """A valid input of which a piece was replaced."""
    places = st.tuples(st.integers(0, len(valid)), st.integers(0, 20))
    return st.builds(lambda place, new: valid[: place[0]] + new + valid[sum(place) :], places, lines)


def run_built(target: Target, numbers: range, number_of_run: int, tally: Tally) -> None:
    """So many examples, the same for the same number of run."""
    counter = itertools.count(numbers.start)

    @seed(number_of_run)
    @settings(
        max_examples=len(numbers),
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(contents(target))
    def one(content: bytes) -> None:
        tally.add(target, next(counter), content)

    one()
