"""Agreement with the other hypotheses of a list: the expected metric of Minimum Bayes Risk decoding.

Kumar and Byrne 2004, section 2: the hypothesis with the least expected loss, the loss being one minus a metric against
every other hypothesis, weighed by how probable that one is. Here the expectation is a column among others, and its
weight is tuned. The metric is sentence BLEU.

How many n-grams every two sequences share, clipped as BLEU clips them: the k-th occurrence of an n-gram in a
sequence is one *item*; two sequences share min(a, b) occurrences exactly when they share that many items. So the shared
n-grams of all pairs are one product of a binary matrix (sequences by items) with itself.

Shapes: N distinct hypotheses of a list, P symbols of all of them one behind the other, I items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nmt_core.base.errors import ConfigError
from smt_bridge.errors import WiringError
from smt_bridge.features.base import Candidates
from smt_bridge.metadata import signature_of
from smt_bridge.nbest.merge import baselines, column_of
from smt_bridge.ordered_sum import ordered_sum

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_CELLS = 1 << 23  # of the binary matrix at a time


def shared_ngrams(symbols_P: Ints, lengths_N: Ints, *, orders: int) -> Iterator[Floats]:
    """Yield, for n = 1, 2, ..., ``orders``, the shared n-grams (N, N) of every two sequences."""
    row_P = np.repeat(np.arange(len(lengths_N)), lengths_N)
    end_P = np.repeat(np.cumsum(lengths_N), lengths_N)
    symbols = np.unique(symbols_P, return_inverse=True)[1].reshape(-1).astype(np.int64)
    alphabet = int(symbols.max(initial=0)) + 1
    starts, grams = np.arange(len(symbols)), symbols
    for order in range(1, orders + 1):
        if order > 1:
            inside = starts + order <= end_P[starts]
            starts = starts[inside]
            grams = grams[inside] * alphabet + symbols[starts + order - 1]
        grams, rows, items = _items(grams, row_P[starts], len(lengths_N))
        yield _product(rows, items, len(lengths_N))


def _items(grams: Ints, rows: Ints, sequences: int) -> tuple[Ints, Ints, Ints]:
    """Number the n-grams from 0 in place; and, in the order of items, the row and the number of each item."""
    if not len(grams):
        return grams, rows, grams
    cells = grams * sequences + rows
    order = np.argsort(cells)
    cells, sorted_rows, sorted_grams = cells[order], rows[order], grams[order]
    place = np.arange(len(order))
    new_gram = np.concatenate(([True], sorted_grams[1:] != sorted_grams[:-1]))
    new_cell = np.concatenate(([True], cells[1:] != cells[:-1]))
    occurrence = place - np.maximum.accumulate(np.where(new_cell, place, 0))
    numbers = np.cumsum(new_gram) - 1
    most = np.maximum.reduceat(occurrence, np.flatnonzero(new_gram)) + 1
    items = (np.cumsum(most) - most)[numbers] + occurrence
    numbered = np.empty_like(grams)
    numbered[order] = numbers
    return numbered, sorted_rows, items


def _product(rows: Ints, items: Ints, sequences: int) -> Floats:
    """B Bᵀ for the binary B (N, I) with ones at (rows, items), a block of items at a time."""
    shared = np.zeros((sequences, sequences))
    holders = np.bincount(items) if len(items) else np.zeros(0, dtype=np.int64)
    common = holders[items] > 1  # an item of one sequence counts on the diagonal only
    np.add.at(shared, (rows[~common], rows[~common]), 1.0)
    columns = (np.cumsum(holders > 1) - 1)[items[common]]
    rows = rows[common]
    width = max(1, _CELLS // sequences)
    for begin in range(0, int(columns.max(initial=-1)) + 1, width):
        chosen = (columns >= begin) & (columns < begin + width)
        block = np.zeros((sequences, min(width, int(columns.max()) + 1 - begin)), dtype=np.float32)
        block[rows[chosen], columns[chosen] - begin] = 1.0
        shared += block @ block.T
    return shared


@dataclass(frozen=True)
class Weighting:
    """How much each hypothesis of a list counts.

    ``uniform``: all lines alike. ``posterior``: as exp(scale * total), the posterior of a log-linear model over
    its list (Kumar and Byrne 2004; small scales are flat). ``systems``: of a merged list the mean of each system's
    posterior over what it listed itself, so that a longer list does not outvote a shorter one.
    """

    kind: str = "uniform"
    scale: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Weighting:
        """Read ``uniform``, ``posterior[:SCALE]`` or ``systems[:SCALE]``; raises ConfigError for anything else."""
        kind, _, scale = text.partition(":")
        if kind in ("", "uniform") and not scale:
            return cls()
        try:
            value = float(scale or 1.0)
        except ValueError:
            value = -1.0
        if kind not in ("posterior", "systems") or not 0.0 <= value < float("inf"):
            raise ConfigError(
                f"'{text}' is not a weighting; expected uniform, posterior, posterior:SCALE, systems or systems:SCALE"
            )
        return cls(kind, value)

    def __str__(self) -> str:
        return "uniform" if self.kind == "uniform" else f"{self.kind}:{self.scale:g}"

    def of(self, group: Candidates) -> Floats:
        """One weight per hypothesis, together 1; raises WiringError when totals are needed and absent."""
        if self.kind == "uniform":
            return np.full(len(group.hypotheses), 1.0 / len(group.hypotheses))
        if self.kind == "systems":
            return _mean_of_systems(group, self.scale)
        if group.totals is None:
            raise WiringError("the list has lines without a total, which posterior weights are made of; use uniform")
        return _posterior(self.scale * np.asarray(group.totals, dtype=np.float64))


def _posterior(scaled: Floats) -> Floats:
    counts = np.exp(scaled - scaled.max())
    weights: Floats = counts / ordered_sum(counts)
    return weights


def _mean_of_systems(group: Candidates, scale: float) -> Floats:
    """By the columns of the systems S of a merged list (``smt_bridge.nbest.merge``).

    A system without a list has no say; of one without totals all hypotheses count the same.
    """
    columns = group.columns or [{}] * len(group.hypotheses)
    systems = baselines([*columns[0]])
    if not systems:
        raise WiringError(
            "the list has no columns FirstS0, InS0 and RankS0 of a system S, as `smt-bridge add-features` makes them"
            " of several lists; use uniform or posterior"
        )
    found = []
    for system in systems:
        listed = np.array([row[column_of(system, "In")][0] for row in columns]) > 0
        if listed.any():
            totals = np.array([row.get(column_of(system, "Total"), (0.0,))[0] for row in columns])
            found.append(_posterior(np.where(listed, scale * totals, -np.inf)))
    weights: Floats = ordered_sum(np.stack(found, axis=-1)) / len(found)
    return weights


BLEU_ORDER = 4


class MbrBleu:
    """The expected sentence BLEU in 0..1 of every hypothesis against its list, itself among the others.

    It is sacrebleu's, of words as they stand: orders without a match are smoothed by halving, orders longer than the
    hypothesis left out. ``weighting`` says how the hypotheses count; lines of equal text add their weights.
    """

    def __init__(self, weighting: str = "") -> None:
        self.names: tuple[str, ...] = ("MBRBLEU0",)
        self._weighting = Weighting.parse(weighting)
        self.signature = signature_of("mbrbleu", weights=str(self._weighting), smooth="exp", eff="yes")

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """One number per hypothesis; raises WiringError where totals are needed and absent."""
        return [self._expected(group) for group in groups]

    def _expected(self, group: Candidates) -> list[tuple[float, ...]]:
        if not group.hypotheses:
            return []
        numbers = {text: number for number, text in enumerate(dict.fromkeys(group.hypotheses))}
        of_line = np.array([numbers[text] for text in group.hypotheses])
        weights = np.bincount(of_line, weights=self._weighting.of(group), minlength=len(numbers))
        expected = ordered_sum(bleu_of_all(list(numbers)) * weights)
        return [(value,) for value in expected[of_line].tolist()]


def bleu_of_all(hypotheses: Sequence[str]) -> Floats:
    """Sacrebleu's sentence BLEU (N, N), with effective order, in 0..1: of each hypothesis, the row, against each."""
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(word, len(numbers)) for word in text.split(" ") if word] for text in hypotheses]
    symbols = np.array([number for row in rows for number in row], dtype=np.int64)
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    log_sum = np.zeros((len(rows), len(rows)))
    halvings = np.zeros_like(log_sum)
    for order, matches in enumerate(shared_ngrams(symbols, lengths, orders=BLEU_ORDER)):
        totals = np.maximum(lengths - order, 0)[:, None]
        used = totals > 0
        missing = used & (matches == 0)
        halvings += missing
        counted = np.where(missing, 0.5**halvings, matches)
        log_sum += np.log(np.where(used, counted / np.maximum(totals, 1), 1.0))
        if order == 0:
            related = matches > 0
    orders = np.clip(lengths, 1, BLEU_ORDER)[:, None]
    brevity = np.minimum(0.0, 1.0 - lengths[None, :] / np.maximum(lengths, 1)[:, None])
    scores: Floats = np.where(related, np.exp(log_sum / orders + brevity), 0.0)
    return scores
