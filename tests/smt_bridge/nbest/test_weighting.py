"""Totals, ties, and weights that do not fit the list."""

from __future__ import annotations

import re

import pytest

from smt_bridge.errors import FormatError, WiringError
from smt_bridge.nbest.entry import NbestEntry
from smt_bridge.nbest.moses import parse_entry
from smt_bridge.nbest.weighting import Reranker


def list_of(*features: bytes) -> list[NbestEntry]:
    lines = [b"0 ||| h%d ||| %s ||| 0" % (place, text) for place, text in enumerate(features)]
    return [parse_entry(line, path="list", number=number) for number, line in enumerate(lines, start=1)]


def reranker(weights: dict[str, tuple[float, ...]], *, lenient: bool = False) -> Reranker:
    return Reranker(weights, path="list", weights_path="weights", lenient=lenient)


def test_totals_are_dot_products_and_ties_keep_their_order() -> None:
    group = list_of(b"A= 1 B= 1 1", b"B= 0 2 A= 3", b"A= 3 B= 0 2", b"A= 0 B= 9 9")
    chosen = reranker({"B": (0.0, 0.5), "A": (2.0,)})
    assert [(total, entry.hypothesis) for total, entry in chosen.order(group)] == [
        (7.0, b"h1"),
        (7.0, b"h2"),
        (4.5, b"h3"),
        (2.5, b"h0"),
    ]
    assert chosen.best(group).hypothesis == b"h1"


@pytest.mark.parametrize(
    ("weights", "features", "said"),
    [
        ({"A": (1.0,)}, b"A= 1 B= 2 C= 3",
         "weights: no weight for B, C of list; tune with this list, or add the weights (0 leaves a feature out)"),
        ({"A": (1.0,), "LM1": (1.0,), "UnknownWordPenalty0": (1.0,), "Z": (0.0, 1.0)}, b"A= 1",
         "list: no feature for the weight of LM1, Z in weights; was the list made by another system? (Moses does not"
         " list features with tuneable=false: delete their weights, or use --lenient)"),
    ],
)  # fmt: skip
def test_one_side_without_the_other_is_named(weights: dict[str, tuple[float, ...]], features: bytes, said: str) -> None:
    with pytest.raises(WiringError, match=f"^{re.escape(said)}$"):
        reranker(weights).best(list_of(features))


def test_unknown_word_penalty_sparse_features_and_weights_of_0_need_no_partner() -> None:
    chosen = reranker({"A": (1.0,), "UnknownWordPenalty0": (1.0,), "NotMade0": (0.0, 0.0)})
    assert chosen.total(list_of(b"A= 2 s_x= 9")[0]) == 2.0


def test_lenient_counts_both_sides_as_zero() -> None:
    assert reranker({"A": (1.0,), "C": (5.0,)}, lenient=True).total(list_of(b"A= 2 B= 9")[0]) == 2.0


@pytest.mark.parametrize("weights", [{"A": (1.0,), "B": (1.0, 2.0)}, {"A": (1.0, 2.0), "B": (1.0,)}])
def test_a_value_under_the_wrong_name_is_noticed(weights: dict[str, tuple[float, ...]]) -> None:
    with pytest.raises(
        FormatError, match=r"list:[12]: feature A has (1 value but 2 weights|2 values but 1 weight) in weights$"
    ):
        reranker(weights).best(list_of(b"A= 1 B= 2 3", b"A= 1 2 B= 3"))
