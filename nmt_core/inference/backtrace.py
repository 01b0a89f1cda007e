"""From the steps of a finished search back to whole hypotheses.

The search keeps, step by step and for all sentences at once, which candidates it took and what they
continue. Here the finished ones are followed back to the beginning, all together, step by step.

Shapes: A sentences still searched at a step, K places of its beam, C candidates it kept,
F finished hypotheses of all sentences, T steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

from nmt_core.inference.hypothesis import Hypothesis, Matrix, make_hypothesis

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Moment:
    """One step of a search.

    ``log_probs_AC`` are those of the candidates' last words alone. ``parents_AC`` are the places
    (of the K of this step) that the candidates continue; ``columns_AK`` says for each place which
    candidate of the step before it is.
    """

    sentences: list[int]
    words_AC: Tensor
    log_probs_AC: Tensor
    parents_AC: Tensor
    finished_AC: Tensor
    columns_AK: Tensor
    attention_AKS: Tensor | None


def trace(history: list[Moment], *, widths: list[int], length_normalization: float) -> list[list[Hypothesis]]:
    """All finished hypotheses of each sentence, in the order they finished (of one step, the better first).

    ``widths`` are the sentences' numbers of source positions.
    """
    steps = [_Step.of(moment) for moment in history]
    ends = [(sentence, time, column) for time, step in enumerate(steps) for sentence, column in step.finished]
    paths = _follow(steps, np.array(ends, dtype=np.int64).reshape(-1, 3))
    found: list[list[Hypothesis]] = [[] for _ in widths]
    for number, (sentence, last, _) in enumerate(ends):
        found[sentence].append(
            make_hypothesis(
                paths.words_FT[number, :last].tolist(),
                paths.log_probs_FT[number, : last + 1].tolist(),
                length_normalization=length_normalization,
                attention=_attention(steps[: last + 1], sentence, paths.places_FT[number], widths[sentence]),
            )
        )
    return found


class _Step(NamedTuple):
    """A moment on the host. ``row_of`` finds a sentence's row; ``finished`` lists (sentence, column)."""

    row_of: Integers
    words_AC: Integers
    log_probs_AC: npt.NDArray[np.float64]
    parents_AC: Integers
    columns_AK: Integers
    finished: list[tuple[int, int]]
    attention_AKS: Matrix | None

    @classmethod
    def of(cls, moment: Moment) -> _Step:
        row_of = np.full(max(moment.sentences) + 1, -1)
        row_of[moment.sentences] = np.arange(len(moment.sentences))
        rows, columns = moment.finished_AC.cpu().numpy().nonzero()
        attention = moment.attention_AKS
        return cls(
            row_of=row_of,
            words_AC=moment.words_AC.cpu().numpy(),
            log_probs_AC=moment.log_probs_AC.double().cpu().numpy(),
            parents_AC=moment.parents_AC.cpu().numpy(),
            columns_AK=moment.columns_AK.cpu().numpy(),
            finished=[(moment.sentences[row], column) for row, column in zip(rows, columns.tolist(), strict=True)],
            attention_AKS=None if attention is None else attention.float().cpu().numpy(),
        )


class _Paths(NamedTuple):
    """The words of hypotheses, their log-probabilities, and the places they came through."""

    words_FT: Integers
    log_probs_FT: npt.NDArray[np.float64]
    places_FT: Integers


def _follow(steps: list[_Step], ends_F3: Integers) -> _Paths:
    """Walk back from all ends (sentence, time, column) at once."""
    sentences_F, last_F, columns_F = ends_F3.T.copy()
    shape = (len(ends_F3), len(steps))
    paths = _Paths(np.zeros(shape, dtype=np.int64), np.zeros(shape), np.zeros(shape, dtype=np.int64))
    for time in range(len(steps) - 1, -1, -1):
        step = steps[time]
        longer = np.flatnonzero(last_F > time)
        if len(longer):
            after = steps[time + 1]
            columns_F[longer] = after.columns_AK[after.row_of[sentences_F[longer]], paths.places_FT[longer, time + 1]]
        there = np.flatnonzero(last_F >= time)
        at = step.row_of[sentences_F[there]], columns_F[there]
        paths.words_FT[there, time] = step.words_AC[at]
        paths.log_probs_FT[there, time] = step.log_probs_AC[at]
        paths.places_FT[there, time] = step.parents_AC[at]
    return paths


def _attention(steps: list[_Step], sentence: int, places_T: Integers, width: int) -> Matrix | None:
    """Where one hypothesis looked at each of its steps, padding cut off."""
    rows = [
        step.attention_AKS[step.row_of[sentence], place, :width]
        for step, place in zip(steps, places_T, strict=False)
        if step.attention_AKS is not None
    ]
    return np.stack(rows) if rows else None
