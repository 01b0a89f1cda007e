"""A model from outside that reads the characters of unknown source words: training, and ensembles.

Scoring, samples, server and partitions of such models: ``test_spelling.py`` of ``training`` and ``inference/output``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from nmt_core.base.interfaces import SentencePair
from nmt_core.batches.padding import Padded, pad
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.translator import Translator
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.layers.reader import Encoded, RecurrentEncoder, RecurrentReader, WholeEncoding
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.rnnsearch import RNNsearch, RNNsearchConfig
from nmt_core.text.sentence import Sentence
from nmt_core.text.vocabulary import SPECIAL_WORDS, UNKNOWN_ID, Vocabulary
from nmt_core.training.data.corpus import encode_corpus
from nmt_core.training.fingerprint import hash_of_corpus

CONFIG = RNNsearchConfig(embedding=6, hidden=7, alignment=5, maxout=5, dropout=0.0, initialisation="glorot")
SOURCE = Vocabulary([*SPECIAL_WORDS, "the", "of", "is"])
TARGET = Vocabulary([*SPECIAL_WORDS, "a", "b", "c", "d"])
LETTERS = 128


@dataclass(frozen=True)
class Spelled(Padded):
    """``letters_BLC`` counts the characters of unknown words; rows of other words are zeros."""

    letters_BLC: Tensor


class SpellingReader(RecurrentReader):
    """A bidirectional encoder; characters of unknown words are added to their vectors."""

    def __init__(self, embedding: WordEmbedding, directions: Sequence[RecurrentEncoder]) -> None:
        super().__init__(embedding, directions)
        self.letters = nn.Linear(LETTERS, embedding.size, bias=False)

    def forward(self, source: Padded) -> Encoded:
        assert isinstance(source, Spelled)
        spelled_BSE = self.letters(source.letters_BLC.to(self.letters.weight.dtype))
        embedded_BSE = self.vectors.of(source) + spelled_BSE
        outputs = [one(embedded_BSE, source.mask_BL)[0] for one in self.directions]
        ends = [outputs[0][:, -1], outputs[1][:, 0]]
        return WholeEncoding(mask_BS=source.mask_BL, ends=ends, annotations_BSC=torch.cat(outputs, dim=2))


class SpellingModel(RNNsearch):
    """RNNsearch with that encoder."""

    reads_text = True

    def __init__(self, words: int = len(SOURCE)) -> None:
        super().__init__(CONFIG, words, len(TARGET))
        self.source_encoder = SpellingReader(self.source_embedding, [self.encoder, self.backward_encoder])

    def collate(self, sources: Sequence[Sentence]) -> Spelled:
        padded = pad(sources)
        letters_BLC = torch.zeros(*padded.words_BL.shape, LETTERS)
        for row, sentence in enumerate(sources):
            for place, (number, word) in enumerate(zip(sentence, sentence.words, strict=True)):
                if number == UNKNOWN_ID:
                    for letter in word:
                        letters_BLC[row, place, ord(letter) % LETTERS] += 1
        return Spelled(padded.words_BL, padded.mask_BL, letters_BLC)


def loaded(seed: int = 1, source: Vocabulary = SOURCE, folder: str = "drawn") -> LoadedModel:
    model = SpellingModel(len(source))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.4 * torch.randn(parameter.shape, generator=generator))
    model.eval().requires_grad_(False)
    return LoadedModel(model, source, TARGET, FolderConfig(model=CONFIG), "0" * 12, folder)


def test_members_of_an_ensemble_read_what_is_unknown_to_them() -> None:
    knows_it = Vocabulary([*SPECIAL_WORDS, "quokka", "the", "is"])
    members = [loaded(1), loaded(2, knows_it)]
    config = DecodingConfig(beam=3)
    for line in ("the quokka is", "the axolotl is"):
        (found,) = Translator(members, config=config).translate([line])[0]
        (score,) = ModelPairScorer(members).score([SentencePair(line, found.text)])
        assert found.log_prob == pytest.approx(score.log_prob, abs=1e-5)


TEXTS = [("the axolotl is", "a b"), ("the quokka is", "c d"), ("of the axolotl", "b a"), ("of the quokka", "d c")]


def test_a_run_on_other_unknown_words_is_another_run() -> None:
    texts = [(source.replace("quokka", "wombat"), target) for source, target in TEXTS]
    for keep, same in ((True, False), (False, True)):
        one, other = (encode_corpus(some, SOURCE.encode, TARGET.encode, keep_text=keep) for some in (TEXTS, texts))
        assert (hash_of_corpus(one) == hash_of_corpus(other)) == same
