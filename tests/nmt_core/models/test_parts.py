"""Models are made of parts: options of the parts, states with a source axis, and first values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import pytest
import torch
from torch import Tensor, nn

from nmt_core.base.interfaces import SentencePair
from nmt_core.batches.layout import Layout
from nmt_core.batches.padding import Padded, pad_pairs
from nmt_core.batches.tensor_tree import SOURCE_AXIS, Memory, State
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.predictor import ModelPredictor
from nmt_core.layers.attention import AdditiveAttention
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.layers.generator import Generator, LinearGenerator
from nmt_core.layers.init import Initialiser, Layer, initialise
from nmt_core.layers.reader import WholeEncoding
from nmt_core.model_directory.loaded_model import LoadedModel, load_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import AnyConfig, new_model
from nmt_core.models.deep_fusion import DeepFusionConfig
from nmt_core.models.encoder_decoder import Order
from nmt_core.models.interface import Step, TranslationModel
from nmt_core.models.nematus import NematusConfig
from nmt_core.models.rnnlm import RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.nmt_core.models.runs import train
from tests.nmt_core.models.test_equations import CONFIGS
from tests.searching import beam_search

SMALL = {"embedding": 4, "hidden": 5, "maxout": 3, "initialisation": "glorot"}
OTHERS: dict[str, AnyConfig] = {
    "nematus": NematusConfig(embedding=4, hidden=5, tied=True),
    "nematus deep": NematusConfig(embedding=4, hidden=5, encoder_transitions=3, decoder_transitions=4),
    "nematus parts": NematusConfig(
        embedding=4, hidden=5, encoder_transitions=2, normalisation="parts", shared_embeddings=True
    ),
    "nematus whole": NematusConfig(embedding=4, hidden=5, decoder_transitions=3, normalisation="whole"),
    **{
        f"fusion {order}": DeepFusionConfig(
            translation=RNNsearchConfig(alignment=6, order=order, **SMALL),
            language=RNNLMConfig(embedding=3, hidden=6, initialisation="glorot"),
        )
        for order in get_args(Order)
    },
}
VOCABULARY = Vocabulary([*SPECIAL_WORDS, *"abcdef"])
PAIRS = [([2, 3, 4], [5, 6]), ([7], [4, 4, 2]), ([], [3]), ([2, 3, 5, 6, 7], []), ([2, 3], [5, 7])]
TEXTS = [SentencePair(*(" ".join(VOCABULARY.words[word] for word in side) for side in pair)) for pair in PAIRS]


def drawn(model: TranslationModel) -> TranslationModel:
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.7 * torch.randn(parameter.shape, generator=generator))
    return model.double().eval().requires_grad_(False)


def assert_all_agree(model: TranslationModel) -> None:
    """Steps, forward pass, pair scorer and beam give one probability."""
    batch = pad_pairs(PAIRS)
    stepwise = TranslationModel.known_targets(model, batch)
    for has_gradient in (False, True):
        with torch.set_grad_enabled(has_gradient):
            known = model.known_targets(batch)
        torch.testing.assert_close(known.readouts_BTL, stepwise.readouts_BTL, rtol=0, atol=1e-12)
        torch.testing.assert_close(known.attention_BTS, stepwise.attention_BTS, rtol=0, atol=1e-12)
    assert (stepwise.attention_BTS is not None) == model.attends
    expected = model(batch).sum(dim=1).tolist()
    loaded = LoadedModel(model, VOCABULARY, VOCABULARY, FolderConfig(model=RNNLMConfig()), "0" * 12, "drawn")
    assert [score.log_prob for score in ModelPairScorer([loaded]).score(TEXTS)] == pytest.approx(expected, abs=1e-9)
    decoding = DecodingConfig(beam=4, nbest=3, max_length_extra=3)
    for found, (source, _) in zip(
        beam_search(ModelPredictor(model), batch.source, config=decoding), PAIRS, strict=True
    ):
        for one in found:
            target = pad_pairs([(source, list(one.words))])
            assert one.log_prob == pytest.approx(model(target).sum().item(), abs=1e-9)


@pytest.mark.parametrize("config", [*CONFIGS.values(), *OTHERS.values()], ids=[*CONFIGS, *OTHERS])
def test_a_model_has_one_probability(config: AnyConfig) -> None:
    assert_all_agree(drawn(new_model(config, len(VOCABULARY), len(VOCABULARY), seed=1)))


# --- a state with a source axis


@dataclass(frozen=True)
class Keys(Memory):
    keys_BSA: Tensor = field(metadata=SOURCE_AXIS)
    mask_BS: Tensor = field(metadata=SOURCE_AXIS)


@dataclass(frozen=True)
class Coverage(State):
    """How much was looked where so far."""

    hidden_NH: Tensor
    coverage_NS: Tensor = field(metadata=SOURCE_AXIS)


class CoveringModel(TranslationModel):
    """A toy whose next state depends on where it has looked before (as in Tu et al. 2016)."""

    attends = True

    def __init__(self, words: int, size: int) -> None:
        super().__init__()
        self.embedding = WordEmbedding(words, size)
        self.attention = AdditiveAttention(size, size, size)
        self.output = LinearGenerator(size, words)

    @property
    def generator(self) -> Generator:
        return self.output

    def encode(self, source: Padded) -> Keys:
        read = WholeEncoding(mask_BS=source.mask_BL, annotations_BSC=self.embedding(source.words_BL))
        return Keys(self.attention.keys(read), source.mask_BL)

    def start(self, memory: Memory) -> Coverage:
        assert isinstance(memory, Keys)
        return Coverage(
            memory.keys_BSA.new_zeros(memory.rows, self.embedding.size),
            memory.keys_BSA.new_zeros(memory.mask_BS.shape),
        )

    def step(self, previous_N: Tensor, state: State, memory: Memory, layout: Layout | None = None) -> Step:
        assert isinstance(memory, Keys) and isinstance(state, Coverage)
        positions = memory.mask_BS.shape[1]
        state = state.fit(state.rows, positions)
        times = len(previous_N) // memory.rows
        here = memory.repeat(times) if layout is None else memory.select(layout.sentences_N)
        keys_NSA = here.keys_BSA * (1 - state.coverage_NS).unsqueeze(2)
        energies_NS = self.attention.energies(state.hidden_NH.unsqueeze(1), keys_NSA).squeeze(1)
        weights_NS = energies_NS.masked_fill(~here.mask_BS, -torch.inf).softmax(dim=1)
        context_NA = (weights_NS.unsqueeze(2) * here.keys_BSA).sum(dim=1)
        (embedded_NE,) = self.embedding.apply_once(previous_N, lambda embedded: [embedded])
        hidden_NH = torch.tanh(context_NA + embedded_NE + state.hidden_NH)
        return Step(hidden_NH, Coverage(hidden_NH, state.coverage_NS + weights_NS), weights_NS)


def test_a_state_with_a_source_axis_goes_through_search_and_scoring() -> None:
    model = CoveringModel(len(VOCABULARY), 4)
    initialise(model, "glorot", seed=1)
    assert_all_agree(drawn(model))


def test_rows_of_sentences_of_several_lengths_are_joined() -> None:
    short, long = (
        Coverage(torch.full((rows, 2), float(rows)), torch.full((rows, positions), float(positions)))
        for rows, positions in ((1, 2), (2, 4))
    )
    both = short.join([long])
    assert both.hidden_NH[:, 0].tolist() == [1.0, 2.0, 2.0]
    assert both.coverage_NS.tolist() == [[2.0, 2.0, 0.0, 0.0], [4.0] * 4, [4.0] * 4]
    both.put(torch.tensor([1]), short)
    assert both.coverage_NS[1].tolist() == [2.0, 2.0, 0.0, 0.0]
    assert both.fit(4, 1).coverage_NS.tolist() == [[2.0], [2.0], [4.0], [0.0]]


# --- first values


class Forgetful(nn.Module):
    """A cell of somebody who did not think of first values."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(2, 2))


def test_a_module_that_does_not_say_its_first_values_is_an_error() -> None:
    for kind in (Forgetful, type("Forgetful", (Forgetful, Layer), {})):
        with pytest.raises(TypeError, match="Forgetful has parameters and no method initialise"):
            initialise(nn.Sequential(kind()), "paper", seed=1)


def test_uniform_first_values_are_of_a_range() -> None:
    initialiser = Initialiser("uniform", seed=1, spread=0.3)
    matrix, recurrent, energy = torch.empty(100, 300), torch.empty(200, 100), torch.empty(400)
    for draw, one in ((initialiser.matrix, matrix), (initialiser.recurrent, recurrent), (initialiser.energy, energy)):
        draw(one)
        assert 0.29 < one.abs().max() <= 0.3 and abs(one.std() - 0.3 / 3**0.5) < 0.02
    search = RNNsearchConfig(initialisation="uniform", init_range=0.3, source_factors=(2,))
    fused = DeepFusionConfig(translation=search, language=RNNLMConfig(initialisation="glorot", init_range=0.5))
    assert (fused.initialisation, fused.init_range, fused.source_factors) == ("uniform", 0.3, (2,))


def test_glorot_is_by_the_sizes_of_a_matrix_and_a_value_is_drawn_once() -> None:
    """Of those with over eight times as many rows as columns, such as embeddings, by the width alone."""
    initialiser, matrices = Initialiser("glorot", seed=1), [torch.empty(800, 100), torch.empty(801, 100)]
    for matrix in matrices:
        initialiser.matrix(matrix)
    first = [matrix.clone() for matrix in matrices]
    assert [matrix.std().item() for matrix in first] == pytest.approx([(2 / 900) ** 0.5, 0.1], rel=0.02)
    for matrix in matrices:
        initialiser.matrix(matrix)
    assert all(map(torch.equal, first, matrices))


# --- training


def test_shared_embeddings_are_trained_on_a_joint_vocabulary(tmp_path: Path) -> None:
    model = {"type": "rnnsearch", "alignment": 3, "shared_embeddings": True, **SMALL}
    how = {"max_updates": 5, "dev_beam": 1, "optimizer": "adam"}
    assert train(tmp_path, "m", target="u w c\nx\nv v\n" * 20, model=model, **how) == 0
    loaded = load_model(str(tmp_path / "m"))
    assert loaded.source.words == loaded.target.words
    assert set("abcduvwx") <= set(loaded.source.words)
    model = loaded.model
    assert len({id(embedding.weight) for _, embedding in model.embeddings()}) == 1
    names = {name for name, _ in model.named_parameters() if "embedding" in name or "output" in name}
    assert names == {"source_embedding.weight", "output.bias", "output.low_rank.weight"}


@pytest.mark.parametrize(
    ("model", "data", "training", "problem"),
    [
        ({"type": "rnnencdec", "reset": "context", "cell": "lstm"}, {}, {}, "gate for the context, lstm has not"),
        (
            {"type": "rnnsearch", "shared_embeddings": True, "output_rank": 3},
            {},
            {},
            "output_rank: with tied or shared_embed",
        ),
        ({"type": "rnnlm", "tied": True, "output_rank": 3}, {}, {}, "output_rank: with tied or shared_embed"),
        (
            {"type": "rnnsearch", "shared_embeddings": True},
            {"source_vocabulary": 5, "target_vocabulary": 6},
            {},
            "model.shared_embeddings: give one vocabulary",
        ),
        (
            {"type": "rnnsearch", "shared_embeddings": True, "hidden": 4, "embedding": 4},
            {"source": "not read"},
            {"partition_words": 20},
            "model.shared_embeddings do not go with training.partition_words",
        ),
        (
            {"type": "rnnsearch", "cell": "grue"},
            {},
            {},
            ": 'model.cell': expected vanilla, gru, lstm, plain-lstm (found 'grue')",
        ),
    ],
)
def test_options_that_do_not_go_together_are_one_clear_line(
    tmp_path: Path, error_line: Callable[..., str], model: dict, data: dict, training: dict, problem: str
) -> None:
    assert problem in error_line(train, tmp_path, "x", model=model, data=data, **training)
