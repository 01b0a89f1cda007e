"""The second stage of search: what ``<unk>`` stands for (Luong and Manning 2016, section 4.3; thesis, 5.2.3).

The words of a translation are found first. Then every ``<unk>`` in it is spelled from where it stands, by a beam search
over characters of the same width, and its log-probability gets that of the spelling: the sum is that of the pair
scorer for the text written. The order of translations stays that of their words. Samples get sampled spellings.

A word of the vocabulary is never spelled, since it would be scored as that word; where nothing else was found ``<unk>``
stays. Words that a constraint has given are kept and scored.

Shapes: N rows, M words, A edges of a query, U the states of all layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt_core.batches.layout import Layout
from nmt_core.batches.padding import pad
from nmt_core.batches.prefix_tree import Ints, grow
from nmt_core.batches.spelling import padded_spellings
from nmt_core.batches.tensor_tree import State, TensorTree
from nmt_core.device import on_device
from nmt_core.inference.scoring.walk import EdgeQuery, walk
from nmt_core.inference.search.beam import BeamSearch, search_all
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.search.predictor import Ensemble, Prediction, Predictor, block_maxima, log_normalizer
from nmt_core.inference.search.requests import Finished, Hypothesis, Request, checked
from nmt_core.inference.search.sampling import sample
from nmt_core.layers.characters import SpellingDecoder
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.models.context import EmptyMemory
from nmt_core.models.interface import SpellingModel
from nmt_core.text.characters import Spelling
from nmt_core.text.sentence import Sentence
from nmt_core.text.vocabulary import UNKNOWN, UNKNOWN_ID


@dataclass(frozen=True)
class _SpellingState(State):
    """The states of all layers."""

    states_NU: Tensor


class CharacterPredictor:
    """The next character of words, each known by the row of what its spelling begins with."""

    aligns = None

    def __init__(self, speller: SpellingDecoder, starts_MH: Tensor) -> None:
        self.speller, self.starts_MH = speller, starts_MH

    @property
    def device(self) -> torch.device:
        """The model's."""
        return self.starts_MH.device

    def begin(self, sources: Sequence[Sentence]) -> tuple[TensorTree, TensorTree]:
        """The states before the first character; the sources are rows."""
        (rows,) = on_device(self.device, torch.tensor([source[0] for source in sources], dtype=torch.int64))
        states_NU = self.speller.stack.start(self.starts_MH.index_select(0, rows))
        return EmptyMemory(states_NU.new_zeros(len(rows))), _SpellingState(states_NU)

    def advance(self, previous_N: Tensor, state: Any, memory: Any, layout: Layout | None = None) -> Prediction:
        """Read the characters written last and predict the next."""
        readout_NH, states_NU = self.speller.step(previous_N, state.states_NU)
        scores_NV = self.speller.generator.logits(readout_NH)
        tops_NG = block_maxima(scores_NV)
        return Prediction(scores_NV, tops_NG, log_normalizer(scores_NV, tops_NG), _SpellingState(states_NU), None)

    def restrict_vocabulary(self, words_C: Tensor) -> Predictor:
        """Never called: candidate lists are of words."""
        raise NotImplementedError("any character may follow: candidate lists are of words")


_TOGETHER = 200  # "source words" of a search over characters: each has one, and an end
_DRAWN = 8  # spellings, of which the first that is no word of the vocabulary is taken


class Found(NamedTuple):
    """A translation in the order of the text: its numbers, and its words, of which some may be ``<unk>``."""

    hypothesis: Hypothesis
    words: tuple[str, ...]


class _Unknown(NamedTuple):
    """An ``<unk>``: the numbers of sentence and translation, its place, and the spelling that is given."""

    sentence: int
    translation: int
    place: int
    spelling: Spelling | None


class Speller:
    """Spells with one model or an ensemble. All have to be ``SpellingModel``s with the same characters."""

    def __init__(self, models: Sequence[LoadedModel]) -> None:
        self.models = tuple(models)
        self._spelling_models = [loaded.model for loaded in models if isinstance(loaded.model, SpellingModel)]
        assert len(self._spelling_models) == len(models)
        self.characters = self._spelling_models[0].target_characters
        self.target, self.order = models[0].target, models[0].config.target_order

    @torch.inference_mode()
    def spell(self, sentences: Sequence[Finished[Any]], words: Sequence[Sequence[Found]]) -> list[list[Found]]:
        """The translations, those of each sentence, with what their ``<unk>`` stand for, in the order given."""
        unknown = list(self._unknown(words))
        if unknown:
            starts, rows_A = self._starts(sentences, words, unknown)
            written = self._written(sentences, unknown, starts, rows_A)
            unknown = [one._replace(spelling=spelling) for one, spelling in zip(unknown, written, strict=True)]
            log_probs_A = self._log_probs(unknown, starts, rows_A)
        by_translation: dict[tuple[int, int], dict[int, tuple[str, float]]] = {}
        for one, log_prob in zip(unknown, log_probs_A if unknown else (), strict=True):
            if one.spelling is not None:
                places = by_translation.setdefault((one.sentence, one.translation), {})
                places[one.place] = self.characters.word(one.spelling), log_prob
        return [
            [_with(found, by_translation.get((number, place), {})) for place, found in enumerate(nbest)]
            for number, nbest in enumerate(words)
        ]

    def _unknown(self, words: Sequence[Sequence[Found]]) -> Iterator[_Unknown]:
        """The places to be spelled, and those whose spelling is given."""
        if not self.characters.characters:
            return
        for number, nbest in enumerate(words):
            for translation, found in enumerate(nbest):
                for place, (word_id, word) in enumerate(zip(found.hypothesis.words, found.words, strict=True)):
                    spelling = self.characters.spell(word) if word_id == UNKNOWN_ID else None
                    if word_id == UNKNOWN_ID and (word == UNKNOWN or spelling is not None):
                        yield _Unknown(number, translation, place, spelling)

    def _starts(
        self, sentences: Sequence[Finished[Any]], found: Sequence[Sequence[Found]], unknown: Sequence[_Unknown]
    ) -> tuple[list[Tensor], Ints]:
        """Of each member what spellings begin with, and which of these rows is each place's.

        Translations that begin alike share them.
        """
        roots = {number: root for root, number in enumerate(dict.fromkeys(one.sentence for one in unknown))}
        paths = {
            pair: path for path, pair in enumerate(dict.fromkeys((one.sentence, one.translation) for one in unknown))
        }
        words = [found[number][translation].hypothesis.words for number, translation in paths]
        padded = pad([self.order.words(one) for one in words])
        roots_P = np.array([roots[number] for number, _ in paths], dtype=np.int64)
        tree = grow(roots_P, padded.words_BL.numpy(), padded.mask_BL.sum(dim=1).numpy())
        edges_A = np.array(
            [
                tree.edges_PL[path, self.order.place(one.place, words=len(words[path]))]
                for one in unknown
                for path in [paths[one.sentence, one.translation]]
            ]
        )
        distinct, rows_A = np.unique(edges_A, return_inverse=True)
        query = EdgeQuery(distinct, lambda starts_MH, _: starts_MH)
        answers = [
            walk(
                loaded.model,
                [loaded.encode_text(sentences[number].request.source.text) for number in roots],
                tree,
                score=lambda readout_NL, rows_E, _: readout_NL.new_zeros(len(rows_E)),
                query=query,
            ).answers
            for loaded in self.models
        ]
        return [starts_MH for starts_MH in answers if starts_MH is not None], rows_A.reshape(-1)

    def _written(
        self, sentences: Sequence[Finished[Any]], unknown: Sequence[_Unknown], starts: Sequence[Tensor], rows_A: Ints
    ) -> list[Spelling | None]:
        """The spellings, those that are given among them; None where none was found."""
        members = [
            CharacterPredictor(model.speller, one) for model, one in zip(self._spelling_models, starts, strict=True)
        ]
        predictor: Predictor = members[0] if len(members) == 1 else Ensemble(members)
        rows = rows_A.tolist()
        wide: dict[int, DecodingConfig] = {}
        drawn: list[tuple[int, int]] = []
        for place, (one, row) in enumerate(zip(unknown, rows, strict=True)):
            config = sentences[one.sentence].request.config
            if one.spelling is not None:
                continue
            if isinstance(config, DecodingConfig):
                wide[row] = config
            else:
                number = sentences[one.sentence].request.number
                drawn.append((place, (((number + 1 << 24) + one.translation << 16) + one.place)))
        found = self._searched(predictor, wide)
        spellings = [one.spelling or found.get(row) for one, row in zip(unknown, rows, strict=True)]
        for first in range(0, len(drawn), _TOGETHER):
            part = drawn[first : first + _TOGETHER]
            config = sentences[unknown[part[0][0]].sentence].request.config
            assert isinstance(config, SamplingConfig)
            for (place, _), spelling in zip(part, self._sampled(predictor, part, rows, config), strict=True):
                spellings[place] = spelling
        return spellings

    def _searched(self, predictor: Predictor, wide: dict[int, DecodingConfig]) -> dict[int, Spelling]:
        """The best spellings from rows, each with a beam as wide as that of its words."""
        found: dict[int, Spelling] = {}
        for best in (True, False):  # usually the best is no word of the vocabulary
            requests = [
                Request(
                    row,
                    Sentence((row,)),
                    DecodingConfig(**self._limits, beam=config.beam, nbest=1 if best else config.beam),
                )
                for row, config in wide.items()
                if row not in found
            ]
            search: BeamSearch[int] = BeamSearch(predictor)
            for done in search_all(search, requests, batch_tokens=_TOGETHER):
                spelling = self._first_new(checked(done))
                if spelling is not None:
                    found[done.request.key] = spelling
        return found

    def _sampled(
        self, predictor: Predictor, drawn: Sequence[tuple[int, int]], rows: Sequence[int], config: SamplingConfig
    ) -> Iterator[Spelling | None]:
        """A spelling for each place, drawn with a number of its own."""
        started = predictor.begin([Sentence((rows[place],)) for place, _ in drawn])
        how = config.model_copy(update={**self._limits, "samples": _DRAWN, "forbid_unknown": False})
        numbers = [number for _, number in drawn]
        for hypotheses in sample(predictor, started, [1] * len(drawn), config=how, numbers=numbers):
            yield self._first_new(hypotheses)

    @property
    def _limits(self) -> dict[str, Any]:
        """Words have at least one character, and as many as are spelled; they are ranked by log p."""
        return {
            "length_normalization": 0.0,
            "min_length": 1,
            "max_length_ratio": 0.0,
            "max_length_extra": self.characters.longest,
        }

    def _first_new(self, hypotheses: Sequence[Hypothesis]) -> Spelling | None:
        """The first that is no word of the vocabulary, and that a scorer would spell."""
        for one in hypotheses:
            word = self.characters.word(one.words)
            if word not in self.target and self.characters.spell(word) == one.words:
                return one.words
        return None

    def _log_probs(self, unknown: Sequence[_Unknown], starts: Sequence[Tensor], rows_A: Ints) -> list[float]:
        """Log p of the spellings: the mean of the members."""
        spellings_AC = padded_spellings([one.spelling or () for one in unknown])
        rows = torch.from_numpy(rows_A)
        found = []
        for model, starts_MH in zip(self._spelling_models, starts, strict=True):
            (there_A,) = on_device(starts_MH.device, rows)
            found.append(model.speller.log_probs(starts_MH[there_A], spellings_AC).double())
        log_probs: list[float] = torch.stack(found).mean(dim=0).tolist()
        return log_probs


def _with(found: Found, spelled: dict[int, tuple[str, float]]) -> Found:
    """A translation with words and their log-probabilities at some places."""
    if not spelled:
        return found
    words, log_probs = list(found.words), list(found.hypothesis.word_log_probs)
    for place, (word, log_prob) in spelled.items():
        words[place] = word
        log_probs[place] += log_prob
    total = found.hypothesis.log_prob + sum(log_prob for _, log_prob in spelled.values())
    return Found(replace(found.hypothesis, log_prob=total, word_log_probs=tuple(log_probs)), tuple(words))
