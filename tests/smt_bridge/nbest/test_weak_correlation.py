"""A list whose lengths say little, but which fits its own source better than the sources beside it."""

from __future__ import annotations

import random

from smt_bridge.nbest.checks import SampledPair, looks_unrelated


def test_a_list_that_fits_its_own_source_best_is_left_in_peace() -> None:
    draw = random.Random(3)
    pairs = []
    for _ in range(200):
        length = draw.randint(10, 40)
        pairs.append(SampledPair(" ".join(["aaaa"] * length), " ".join(["bbbb"] * (length // 2 + draw.randint(1, 24)))))
    assert looks_unrelated(pairs) is None
    assert "correlation 0.0" in str(
        looks_unrelated([one._replace(source=pairs[-n].source) for n, one in enumerate(pairs)])
    )
