"""log p(target | source) for many pairs, with one model or an ensemble.

Scoring is a walk over prefix trees: each source is read once, targets of a source that begin alike
share their decoder states, and each state is normalised once. The trees, and what goes into a batch,
depend on the pairs given alone, so the same call gives the same numbers.

Shapes: P pairs, L positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch

from nmt_core.base.interfaces import Aligns, PairScore, SentencePair
from nmt_core.batches.padding import group_by_length, pad
from nmt_core.batches.prefix_tree import Ints, PrefixTree, grow
from nmt_core.device import name_precision
from nmt_core.inference.output.copies import annotated_pair, of_text
from nmt_core.inference.scoring.spelled_pairs import spelled_words
from nmt_core.inference.scoring.walk import NodeAttention, Walk, Weights, walk
from nmt_core.model_directory.ensembles import check_members, signature_of
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.models.interface import SpellingModel
from nmt_core.text.sentence import Sentence, TargetOrder
from nmt_core.text.vocabulary import UNKNOWN_ID

MAX_PADDED = 8_000_000  # words of the targets of a tree, with padding

Softmax = Literal["full", "none"]
"""Over which words probabilities are normalised: all, or none (for models that normalise themselves)."""


class _EncodedPairs(NamedTuple):
    """Distinct sources, of every model, and targets; for every pair its source and its target; the targets' tree."""

    sources: list[list[Sentence]]
    targets: list[Sentence]
    source_of_P: Ints
    target_of_P: Ints
    tree: PrefixTree


class ModelPairScorer:
    """A ``PairScorer`` made of loaded models; several are an ensemble.

    An ensemble's log-probability is the mean of its members' for every word (Jean et al. 2015b,
    section 3.2), as in the beam search. Members share the target vocabulary and its order; sources may differ.
    Pairs and their numbers are in the order of the text, whatever the order in which the models write.
    ``softmax`` other than ``full`` makes scores that are not the exact ones; the signature says so.
    Models of annotated text (``nmt_core.text.copying``) score the annotation of a pair.
    """

    def __init__(self, models: Sequence[LoadedModel], *, softmax: Softmax = "full") -> None:
        check_members(models)
        self.models = tuple(models)
        self.order, self.copying = models[0].config.target_order, models[0].copying
        self.softmax: Softmax = softmax

    @property
    def signature(self) -> str:
        """Architecture and fingerprint of every model, normalisation, precision, device, instructions, and versions.

        ``order`` is there for models that write from right to left, ``factors`` for models that read so many factors of
        each source word, ``copy`` for models of annotated text.
        """
        exact = name_precision(next(self.models[0].model.parameters())) == "float32" and self.softmax == "full"
        fields = {
            f"order:{self.order}": self.order is not TargetOrder.LEFT_TO_RIGHT,
            f"factors:{len(self.models[0].factors)}": bool(self.models[0].factors),
            f"copy:{self.copying and self.copying.scheme}": self.copying is not None,
            "log:e": True,
            "norm:none": True,
            f"softmax:{self.softmax}": self.softmax != "full",
            "exact:no": not exact,
        }
        return signature_of(self.models, *(field for field, there in fields.items() if there))

    @torch.inference_mode()
    def score(
        self,
        pairs: Sequence[SentencePair],
        *,
        per_word: bool = False,
        attention: bool = False,
        annotated: bool = False,
    ) -> list[PairScore]:
        """Score every pair; one answer per pair, in order.

        Targets are text, or as models of annotated text read them (``annotated``). Raises ConfigError for pairs whose
        annotation has to be given (scheme ``posall``).
        """
        if self.copying is not None and not annotated:
            copying, read = self.copying, {pair: annotated_pair(self.copying, pair) for pair in pairs}
            scores = self.score([read[one] for one in pairs], per_word=per_word, attention=attention, annotated=True)
            return [of_text(copying, pair, score) for pair, score in zip(pairs, scores, strict=True)]
        distinct = sorted(set(pairs))
        lengths = [pair.target.count(" ") + 2 for pair in distinct]
        answers: dict[SentencePair, PairScore] = {}
        for group in group_by_length(lengths, limit=MAX_PADDED):
            together = [distinct[index] for index in sorted(group)]
            answers.update(zip(together, self._score(together, per_word, attention), strict=True))
        return [answers[pair] for pair in pairs]

    def _score(self, distinct: Sequence[SentencePair], per_word: bool, attention: bool) -> Iterator[PairScore]:
        """One answer per pair; the pairs are distinct and sorted."""
        pairs = self._encode(distinct)
        sources, targets, tree = pairs.sources[0], pairs.targets, pairs.tree
        spelled = None
        if isinstance(self.models[0].model, SpellingModel):
            spelled = spelled_words(self.models[0].model, targets, pairs.target_of_P, tree)
        by_logits = self.softmax == "none"
        walks = [
            walk(
                loaded.model,
                ids,
                tree,
                score=loaded.model.generator.logit_at if by_logits else loaded.model.generator.log_prob_at,
                attention=attention,
                query=None if spelled is None else spelled.query_of(loaded.model),
            )
            for loaded, ids in zip(self.models, pairs.sources, strict=True)
        ]
        there_PL = tree.edges_PL >= 0
        log_probs_E = np.mean([one.log_probs_E for one in walks], axis=0)
        log_probs_PL = np.where(there_PL, log_probs_E[tree.edges_PL], 0.0)
        if spelled is not None:
            spelled.add_to(log_probs_PL, [one.answers for one in walks])
        unknown_source = [words.ids.count(UNKNOWN_ID) for words in sources]
        unknown_target = [words.ids.count(UNKNOWN_ID) for words in targets]
        aligns, attended = self._attended(walks) if attention else ("written", [])
        nodes_E = np.concatenate([level.nodes for level in tree.levels])
        columns = (log_probs_PL.sum(axis=1), pairs.source_of_P, pairs.target_of_P, there_PL.sum(axis=1))
        for index, (total, source, target, end) in enumerate(zip(*(one.tolist() for one in columns), strict=True)):
            rows = None
            if attended:
                mean_LS = _mean_attention(attended, nodes_E[tree.edges_PL[index, :end]], len(sources[source]) + 1)
                rows = self.attention_of(mean_LS, aligns)
            numbers = tuple(self.order.rows(log_probs_PL[index, :end].tolist())) if per_word else None
            yield PairScore(total, unknown_source[source], unknown_target[target], numbers, rows, aligns)

    def _encode(self, distinct: Sequence[SentencePair]) -> _EncodedPairs:
        """Sources are in the order of their texts, which puts those with common beginnings into one batch."""
        source_texts = sorted({pair.source for pair in distinct})
        target_texts = list(dict.fromkeys(pair.target for pair in distinct))
        sources = [[loaded.encode_text(text) for text in source_texts] for loaded in self.models]
        targets = [self.models[0].encode_target(text) for text in target_texts]
        source_of = {text: number for number, text in enumerate(source_texts)}
        target_of = {text: number for number, text in enumerate(target_texts)}
        source_of_P = np.array([source_of[pair.source] for pair in distinct], dtype=np.int64)
        target_of_P = np.array([target_of[pair.target] for pair in distinct], dtype=np.int64)
        padded = pad(targets)
        lengths_P = padded.mask_BL.sum(dim=1).numpy()[target_of_P]
        words_PL = padded.words_BL.numpy()[target_of_P, : int(lengths_P.max())]
        return _EncodedPairs(sources, targets, source_of_P, target_of_P, grow(source_of_P, words_PL, lengths_P))

    def _attended(self, walks: Sequence[Walk]) -> tuple[Aligns, list[NodeAttention]]:
        """Which words the rows of attention are of, and the attention of the members like the first that attends."""
        attended = [
            (loaded.model.aligns, one.attention)
            for loaded, one in zip(self.models, walks, strict=True)
            if one.attention is not None
        ]
        aligns = attended[0][0] if attended else "written"
        return aligns, [attention for how, attention in attended if how == aligns]

    def attention_of(self, weights_LS: Weights, aligns: Aligns) -> tuple[tuple[float, ...], ...]:
        """What an answer has of the weights of a pair."""
        return tuple(map(tuple, self.order.attention(weights_LS.tolist(), aligns)))


def _mean_attention(members: Sequence[NodeAttention], nodes_L: Ints, width: int) -> Weights:
    """The attention of one pair, (L, S): the mean over ``members``."""
    mean_LS: Weights = np.mean([member.of_path(nodes_L, width) for member in members], axis=0)
    return mean_LS
