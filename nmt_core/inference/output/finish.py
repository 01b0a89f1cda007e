"""From hypotheses to translations, for command line, server and Python alike.

in the order of the text    models may write from right to left
score again                 search in bfloat16 chooses among words by logits of 8 bits; the pair scorer has the same
                            products in float32
order                       the best first
spell                       what the unknown words of models that spell stand for
copy                        words that models point to, and what is written instead of ``<unk>``
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from nmt_core.base.interfaces import Aligns, PairScore, SentencePair
from nmt_core.inference.output.alignment import AlignedPair
from nmt_core.inference.output.copies import replacement_of, restore
from nmt_core.inference.output.spelling import Found, Speller
from nmt_core.inference.output.unknowns import NOTHING_REPLACED, UnknownCounts, UnknownReplacement
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig, OutputConfig
from nmt_core.inference.search.requests import Finished, Hypothesis, Matrix
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.text.sentence import TargetOrder


@dataclass(frozen=True)
class Translation:
    """One translation of one line.

    ``text`` is tokenised, or raw when raw text was given. ``words`` are the target words as the
    model has them, but for ``<unk>`` where it is replaced; the numbers and ``attention`` are those of
    ``Hypothesis``, and ``aligns`` defines which words the rows of ``attention`` are of. ``source_words`` are
    the tokenised words of the source. ``lm_log_prob`` is the log-probability by an n-gram model, if there is one;
    ``length`` is how many tokens a search wrote, ``</s>`` among them: what it normalised ``score`` by. ``unknown``
    counts the words that were replaced. ``systems`` names those that listed it, where several made
    translations together; ``degraded`` means that one of them was unavailable.
    """

    text: str
    words: tuple[str, ...]
    log_prob: float
    score: float
    word_log_probs: tuple[float, ...]
    source_words: tuple[str, ...]
    attention: Matrix | None = field(default=None, compare=False)
    lm_log_prob: float | None = None
    length: int | None = None
    unknown: UnknownCounts = NOTHING_REPLACED
    aligns: Aligns = "written"
    systems: tuple[str, ...] = ()
    degraded: bool = False

    def with_unknown_replaced(self, unknowns: UnknownReplacement) -> tuple[str, UnknownCounts]:
        """The tokenised text with something else for every ``<unk>``, and what that was."""
        if self.attention is None:
            return self.text, self.unknown
        words, counts = unknowns.replace(self.words, self.source_words, self.attention, self.aligns)
        return " ".join(words), counts + self.unknown

    @property
    def aligned(self) -> AlignedPair:
        """Source, target, and the attention between them."""
        return AlignedPair(self.source_words, self.words, self.attention, self.aligns)


class Finisher:
    """Makes translations of what one model or an ensemble found.

    ``aligns`` says which words the rows of attention are of, None without attention. With ``rescores``, where search is
    less exact than the pair scorer, translations get its log-probabilities, and what was searched for is ranked by
    them. ``unknowns`` says what is written instead of ``<unk>``, which stays where it is None or there is no attention.
    Models of annotated text point to source words instead: what is written for these is what ``unknowns`` says, or else
    their own lexicon.
    """

    def __init__(
        self,
        models: Sequence[LoadedModel],
        aligns: Aligns | None,
        *,
        rescores: bool,
        unknowns: UnknownReplacement | None = None,
    ) -> None:
        self._models, self._aligns = tuple(models), aligns or "written"
        self.rescores, self.spells = rescores and search_is_coarse(models), models[0].model.spells
        self._speller = Speller(models) if self.spells else None
        self._copying, self._unknowns = models[0].copying, unknowns
        if self._copying is not None:
            self._unknowns = unknowns or replacement_of(models[0])

    def finish(self, sentences: Sequence[Finished[Any]]) -> list[list[Translation]]:
        """The translations of every source; a source without words has the empty one, with the pair scorer's number."""
        order, in_text = self._models[0].config.target_order, list(sentences)
        if order is not TargetOrder.LEFT_TO_RIGHT:
            for number, one in enumerate(sentences):
                turned = [hypothesis.in_text_order(order, self._aligns) for hypothesis in one.hypotheses]
                in_text[number] = one._replace(hypotheses=turned)
        if self.rescores:
            in_text = self._rescored(in_text)
        if not all(one.request.source for one in in_text):
            empty = [self._empty()]
            in_text = [one if one.request.source else one._replace(hypotheses=empty) for one in in_text]
        found = [self._found(one) for one in in_text]
        if self._speller is not None:
            found = self._speller.spell(in_text, found)
        return [
            [self._translation(translation, one.request.source.words) for translation in translations]
            for one, translations in zip(in_text, found, strict=True)
        ]

    def _rescored(self, sentences: Sequence[Finished[Any]]) -> list[Finished[Any]]:
        """With the numbers of the pair scorer; samples stay in the order drawn."""
        pairs = ((one.request.source.text, hypothesis) for one in sentences for hypothesis in one.hypotheses)
        scores = iter(self._scores(pairs))
        found = []
        for one in sentences:
            config = one.request.config
            hypotheses = [_with_score(hypothesis, next(scores), config) for hypothesis in one.hypotheses]
            if isinstance(config, DecodingConfig):
                hypotheses.sort(key=lambda hypothesis: -hypothesis.score)  # stable: of equals the earlier stays before
            found.append(one._replace(hypotheses=hypotheses))
        return found

    def _empty(self) -> Hypothesis:
        """Log p of ``</s>`` behind a source without words, which is not searched for.

        Its length is 1, so that every normalisation leaves its score as it is.
        """
        empty = Hypothesis((), 0.0, 0.0, ())
        return _with_score(empty, self._scores([("", empty)])[0], DecodingConfig())

    def _scores(self, pairs: Iterable[tuple[str, Hypothesis]]) -> list[PairScore]:
        target = self._models[0].target
        read = [SentencePair(source, " ".join(target.decode(hypothesis.words))) for source, hypothesis in pairs]
        return ModelPairScorer(self._models).score(read, per_word=True, annotated=True)

    def _found(self, one: Finished[Any]) -> list[Found]:
        """The translations with their words; constraints have their words as given."""
        surface, words = one.request.surface, [self._models[0].target.decode(each.words) for each in one.hypotheses]
        if surface is not None:
            words = [surface(own, each.met) for own, each in zip(words, one.hypotheses, strict=True)]
        return [Found(each, tuple(own)) for each, own in zip(one.hypotheses, words, strict=True)]

    def _translation(self, found: Found, source: tuple[str, ...]) -> Translation:
        """The translation, tokenised, of a source of these words."""
        hypothesis, words = found
        numbers, attention, aligns = hypothesis.word_log_probs, hypothesis.attention, self._aligns
        counts = NOTHING_REPLACED
        unknowns = self._unknowns
        if self._copying is not None and unknowns is not None:
            words, numbers, attention, counts = restore(
                self._copying, unknowns, words, source, word_log_probs=numbers, attention=attention, aligns=aligns
            )
            aligns = "written"
        elif unknowns is not None and attention is not None:
            words, counts = unknowns.replace(words, source, attention, aligns)
        return Translation(
            text=" ".join(words),
            words=words,
            log_prob=hypothesis.log_prob,
            score=hypothesis.score,
            word_log_probs=numbers,
            source_words=source,
            attention=attention,
            length=len(hypothesis.word_log_probs),
            unknown=counts,
            aligns=aligns,
        )


def search_is_coarse(models: Sequence[LoadedModel]) -> bool:
    """Whether the numbers of their search are less exact than their pair scorer's."""
    return next(models[0].model.parameters()).dtype not in (torch.float32, torch.float64)


def _with_score(hypothesis: Hypothesis, score: PairScore, config: OutputConfig) -> Hypothesis:
    assert score.word_log_probs is not None
    added = config.normalized(score.log_prob - hypothesis.log_prob, length=len(score.word_log_probs))
    return replace(
        hypothesis,
        log_prob=score.log_prob,
        word_log_probs=score.word_log_probs,
        score=hypothesis.score + added,
    )
