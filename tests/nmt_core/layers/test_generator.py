"""The generator: its normaliser gives what log-softmax gives and is made once, and everybody asks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from nmt_core.base.interfaces import SentencePair
from nmt_core.batches.padding import pad_pairs
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.predictor import ModelPredictor
from nmt_core.layers.embedding import WordTable
from nmt_core.layers.generator import Generator, LinearGenerator
from nmt_core.layers.normalizer import BlockNormalizer
from nmt_core.layers.products import freeze
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.rnnsearch import RNNsearch, RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from nmt_core.training.gradient import backpropagate
from tests.searching import beam_search


def layer(words: int, *, rank: int | None = None, scale: float = 1.0) -> LinearGenerator:
    torch.manual_seed(5)
    output = LinearGenerator(8, words, rank=rank)
    for parameter in output.parameters():
        torch.nn.init.normal_(parameter, std=scale)
    return output


def normalizers(output: LinearGenerator, readout: Tensor) -> Tensor:
    """What logits have to be lessened by to be log-probabilities."""
    first_V = torch.zeros(len(readout), dtype=torch.int64)
    rows = torch.arange(len(readout))
    return (output.logit_at(readout, rows, first_V) - output.log_prob_at(readout, rows, first_V)).double()


@pytest.mark.parametrize("words", [3, 999, 1000, 1001, 2500])
@pytest.mark.parametrize("rank", [None, 4, 12])
def test_the_normaliser_is_the_log_of_the_sum_over_all_words(words: int, rank: int | None) -> None:
    output, readout = layer(words, rank=rank).requires_grad_(False), torch.randn(2100, 8)
    expected = torch.logsumexp(output.logits(readout).double(), dim=1)
    assert torch.allclose(normalizers(output, readout), expected, atol=1e-5)


def test_logits_that_would_overflow_are_normalised_all_the_same() -> None:
    output, readout = layer(1500, scale=1.0).requires_grad_(False), torch.randn(5, 8)
    output.bias[1200] = 400.0
    output.bias[:1000] = -400.0
    expected = torch.logsumexp(output.logits(readout).double(), dim=1)
    assert torch.allclose(normalizers(output, readout), expected, rtol=1e-6)


def test_single_logits_are_those_of_all() -> None:
    output, readout = layer(50, rank=4).requires_grad_(False), torch.randn(6, 8)
    rows, words = torch.tensor([0, 0, 5, 3]), torch.tensor([1, 49, 0, 7])
    assert torch.allclose(output.logit_at(readout, rows, words), output.logits(readout)[rows, words], atol=1e-6)


@pytest.mark.parametrize("rank", [None, 4])
def test_probabilities_of_some_words_are_renormalised(rank: int | None) -> None:
    output, readout, some = layer(20, rank=rank).requires_grad_(False), torch.randn(6, 8), torch.tensor([0, 14, 2])
    expected = output.log_probs(readout)[:, some].log_softmax(1)
    torch.testing.assert_close(output.restricted_to(some).log_probs(readout), expected)


def test_a_row_that_is_not_a_number_stays_so() -> None:
    output = layer(30).requires_grad_(False)
    readout = torch.tensor([[float("nan")] * 8, [0.5] * 8])
    found = normalizers(output, readout)
    assert found[0].isnan()
    assert found[1].isfinite()


def test_rows_that_fall_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^expected rows in ascending order$"):
        layer(30).requires_grad_(False).log_prob_at(torch.zeros(2, 8), torch.tensor([1, 0]), torch.tensor([2, 2]))


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of words of every normaliser that is made."""
    counted: list[int] = []
    first = BlockNormalizer.__init__

    def count(self: BlockNormalizer, inputs: Callable[[Tensor], Tensor], weight_VD: Tensor, bias_V: Tensor) -> None:
        counted.append(len(bias_V))
        first(self, inputs, weight_VD, bias_V)

    monkeypatch.setattr(BlockNormalizer, "__init__", count)
    return counted


def log_probs(output: Generator, readout: Tensor) -> Tensor:
    rows, words = torch.arange(len(readout)), torch.zeros(len(readout), dtype=torch.int64)
    return output.log_prob_at(readout, rows, words).double()


@pytest.mark.parametrize("rank", [None, 4, 12])
def test_the_normaliser_of_frozen_weights_is_made_once(rank: int | None, built: list[int]) -> None:
    output, readout = layer(50, rank=rank), torch.randn(6, 8)
    freeze(output)
    first = log_probs(output, readout)
    with torch.inference_mode():
        assert torch.equal(log_probs(output, readout), first)
    assert built == [50]


def test_weights_in_training_have_no_normaliser_that_is_kept(built: list[int]) -> None:
    output, readout = layer(50), torch.randn(6, 8)
    for _ in range(2):
        log_probs(output, readout)
    assert built == [50, 50]


class Tempered(Generator):
    """A generator that says its logits alone."""

    def __init__(self, inner: Generator, temperature: float) -> None:
        super().__init__()
        self.inner, self.temperature = inner, temperature

    @property
    def words(self) -> int:
        return self.inner.words

    def logits(self, readout: Tensor) -> Tensor:
        return self.inner.logits(readout) / self.temperature

    def word_tables(self) -> Sequence[WordTable]:
        return self.inner.word_tables()


def test_a_generator_that_says_its_logits_alone_has_all_the_rest() -> None:
    output, readout = Tempered(layer(20).requires_grad_(False), 1.7), torch.randn(6, 8)
    rows, words, some = torch.tensor([0, 0, 5, 3]), torch.tensor([1, 19, 0, 7]), torch.tensor([0, 1, 7])
    expected = (output.inner.logits(readout) / 1.7).log_softmax(1)
    torch.testing.assert_close(output.log_probs(readout), expected)
    torch.testing.assert_close(output.log_prob_at(readout, rows, words), expected[rows, words])
    restricted = output.restricted_to(some)
    torch.testing.assert_close(restricted.log_probs(readout), expected[:, some].log_softmax(1))
    torch.testing.assert_close(
        restricted.log_prob_at(readout, rows, torch.tensor([0, 2, 1, 1])),
        expected[:, some].log_softmax(1)[rows, torch.tensor([0, 2, 1, 1])],
    )
    assert restricted.words == 3


class TemperedSearch(RNNsearch):
    """A model with a distribution of its own."""

    @property
    def generator(self) -> Generator:
        return Tempered(self.output, 0.5)


def test_a_model_with_its_own_generator_trains_scores_and_decodes_one_distribution() -> None:
    config = RNNsearchConfig(embedding=4, hidden=5, maxout=4, alignment=3, initialisation="glorot")
    model = TemperedSearch(config, 7, 7).double().eval()
    for seed, parameter in enumerate(model.parameters()):
        torch.nn.init.normal_(parameter, std=0.5, generator=torch.Generator().manual_seed(seed))
    vocabulary = Vocabulary([*SPECIAL_WORDS, *"abcde"])
    batch = pad_pairs([([2, 3], [4, 5, 2])])
    expected = model(batch).sum().item()
    plain = RNNsearch(config, 7, 7).double().eval()
    plain.load_state_dict(model.state_dict())
    assert abs(plain(batch).sum().item() - expected) > 0.1
    assert backpropagate(model, batch).objective.item() == pytest.approx(-expected, abs=1e-6)
    model.requires_grad_(False)
    loaded = LoadedModel(model, vocabulary, vocabulary, FolderConfig(model=config), "0" * 12, "tempered")
    (score,) = ModelPairScorer([loaded]).score([SentencePair("a b", "c d a")])
    assert score.log_prob == pytest.approx(expected, abs=1e-9)
    some = torch.tensor([0, 1, 2, 4, 5])
    predictor = ModelPredictor(model)
    for words, each in ((torch.arange(7), predictor), (some, predictor.restrict_vocabulary(some))):
        for one in beam_search(each, batch.source, config=DecodingConfig(beam=3, nbest=3))[0]:
            target = pad_pairs([([2, 3], words[list(one.words)].tolist())])
            places = torch.searchsorted(words, target.target.words_BL[0])
            wanted = (
                model.generator.restricted_to(words)
                .log_probs(model.known_targets(target).readouts_BTL[0])
                .gather(1, places.unsqueeze(1))
                .sum()
            )
            assert one.log_prob == pytest.approx(wanted.item(), abs=1e-6)
