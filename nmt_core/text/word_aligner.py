"""Word alignment of a corpus by SIL Thot (extra ``align``): fast_align or HMM, both ways, symmetrised.

The corpus is held in memory by the aligner, once for each way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.text.alignment import AlignedPair

Words = Sequence[str]

_PAIRS_AT_A_TIME = 1000


def align(pairs: Iterable[tuple[list[str], list[str]]], *, model: str, iterations: int) -> Iterator[AlignedPair]:
    """The pairs with their points (grow-diag-final-and of the two directions), in order.

    Pairs with an empty side, or longer than the aligner takes, are left out. Raises ConfigError without SIL Thot,
    for another ``model`` than those of ``ALIGNERS``, and for a corpus without a pair.
    """
    thot = _import_thot()
    if model not in ALIGNERS:
        raise ConfigError(f"aligner {model!r}: expected {' or '.join(ALIGNERS)}")
    longest = thot.FastAlignModel().max_sentence_length
    kept = [pair for pair in pairs if all(0 < len(side) <= longest for side in pair)]
    if not kept:
        raise ConfigError("the corpus has no pair of sentences to align")
    train = ALIGNERS[model]
    direct = train(thot, kept, iterations)
    inverse = train(thot, [(target, source) for source, target in kept], iterations)
    symmetrised = thot.SymmetrizedAlignmentModel(direct, inverse)
    symmetrised.heuristic = thot.SymmetrizationHeuristic.GROW_DIAG_FINAL_AND
    return _aligned(symmetrised, kept)


def _aligned(aligner: Any, pairs: list[tuple[list[str], list[str]]]) -> Iterator[AlignedPair]:
    for start in range(0, len(pairs), _PAIRS_AT_A_TIME):
        sources, targets = map(list, zip(*pairs[start : start + _PAIRS_AT_A_TIME], strict=True))
        found = aligner.get_best_alignments(sources, targets)
        for source, target, (_, matrix) in zip(sources, targets, found, strict=True):
            rows, columns = matrix.to_numpy().nonzero()
            yield AlignedPair(source, target, list(zip(rows.tolist(), columns.tolist(), strict=True)))


def _fast_align(thot: Any, pairs: Iterable[tuple[Words, Words]], iterations: int) -> Any:
    return _trained(_with_pairs(thot.FastAlignModel(), pairs), iterations)


def _hmm(thot: Any, pairs: Iterable[tuple[Words, Words]], iterations: int) -> Any:
    """IBM Model 1 first, which the HMM begins with."""
    first = _trained(_with_pairs(thot.Ibm1AlignmentModel(), pairs), iterations)
    return _trained(thot.HmmAlignmentModel(first), iterations)


def _with_pairs(model: Any, pairs: Iterable[tuple[Words, Words]]) -> Any:
    for source, target in pairs:
        model.add_sentence_pair(source, target)
    return model


def _trained(model: Any, iterations: int) -> Any:
    model.start_training()
    for _ in range(iterations):
        model.train()
    model.end_training()
    return model


def _import_thot() -> Any:
    try:
        from thot import alignment
    except ImportError as error:
        raise ConfigError("aligning a corpus needs SIL Thot: pip install 'hybridmt[align]'") from error
    return alignment


ALIGNERS: dict[str, Callable[[Any, Iterable[tuple[Words, Words]], int], Any]] = {
    "fast_align": _fast_align,
    "hmm": _hmm,
}
