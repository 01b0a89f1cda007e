"""The spellings of the unknown words of pairs (Luong and Manning 2016, section 4.3), in a walk over prefix trees.

Models that spell read ``<unk>`` whatever the spelling, so that words of different spellings are one edge of a tree. To
the edge's log-probability each pair adds that of its own spelling; equal spellings at one edge are scored once.

Shapes: P pairs, L positions, A distinct (edge, spelling), X spellings, C characters, Q unknown words of all pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt_core.batches.prefix_tree import Ints, PrefixTree
from nmt_core.batches.spelling import padded_spellings, spellings_of
from nmt_core.inference.scoring.walk import EdgeQuery, Floats
from nmt_core.models.interface import SpellingModel, TranslationModel
from nmt_core.text.characters import Spelling
from nmt_core.text.sentence import Sentence
from nmt_core.text.vocabulary import UNKNOWN_ID


class SpelledPairs(NamedTuple):
    """The unknown words of pairs: where each is, and which of the distinct ones it is."""

    edges_A: Ints
    spelling_of_A: Ints
    spellings_XC: Tensor
    pairs_Q: Ints
    places_Q: Ints
    distinct_Q: Ints

    def query_of(self, model: TranslationModel) -> EdgeQuery:
        """The query of a model: log p of every distinct one."""
        assert isinstance(model, SpellingModel)
        speller = model.speller

        def answer(starts_MH: Tensor, places_M: Ints) -> Tensor:
            spellings_MC = self.spellings_XC[torch.from_numpy(self.spelling_of_A[places_M])]
            return speller.log_probs(starts_MH, spellings_MC)

        return EdgeQuery(self.edges_A, answer)

    def add_to(self, log_probs_PL: Floats, answers: Sequence[Tensor | None]) -> None:
        """Add the mean of what the members of an ensemble say to the log-probabilities of the words."""
        found = [answer.double().cpu().numpy() for answer in answers if answer is not None]
        log_probs_PL[self.pairs_Q, self.places_Q] += np.mean(found, axis=0)[self.distinct_Q]


def spelled_words(
    model: SpellingModel, targets: Sequence[Sentence], target_of_P: Ints, tree: PrefixTree
) -> SpelledPairs | None:
    """Those of pairs of which pair p has target ``target_of_P[p]``; None where there are none that can be spelled."""
    numbers: dict[Spelling, int] = {}
    found: dict[int, list[tuple[int, int]]] = {}  # of a target: place and spelling
    for number, target in enumerate(targets):
        if UNKNOWN_ID in target.ids:
            spelled = enumerate(spellings_of(target, model.target_characters))
            found[number] = [
                (place, numbers.setdefault(spelling, len(numbers)))
                for place, spelling in spelled
                if spelling is not None
            ]
    if not numbers:
        return None
    uses = [
        (pair, place, spelling)
        for pair, target in enumerate(target_of_P.tolist())
        for place, spelling in found.get(target, ())
    ]
    pairs_Q, places_Q, spelling_Q = np.array(uses, dtype=np.int64).T
    keys_A, distinct_Q = np.unique(tree.edges_PL[pairs_Q, places_Q] * len(numbers) + spelling_Q, return_inverse=True)
    edges_A, spelling_of_A = np.divmod(keys_A, len(numbers))
    return SpelledPairs(
        edges_A, spelling_of_A, padded_spellings(list(numbers)), pairs_Q, places_Q, distinct_Q.reshape(-1)
    )
