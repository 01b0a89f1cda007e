"""The models against a NumPy reference written from the papers' equations: values and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nmt_core.batches.padding import pad_pairs
from nmt_core.models.build import AnyConfig, build_model, new_model
from nmt_core.models.cslm import CSLMConfig
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.models.interface import TranslationModel
from nmt_core.models.presets import PRESETS
from nmt_core.models.rnnencdec import RNNencdecConfig
from nmt_core.models.rnnlm import RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from tests.nmt_core.models import luong_reference, reference
from tests.nmt_core.models.finite_differences import assert_gradients

SMALL = {"embedding": 4, "hidden": 5, "maxout": 3, "initialisation": "glorot"}
DEEP = {"embedding": 4, "hidden": 5, "depth": 2, "init_range": 0.7}
CONFIGS = {
    "rnnsearch": RNNsearchConfig(alignment=6, **SMALL),
    "rnnsearch-conditional": RNNsearchConfig(alignment=6, order="conditional", **SMALL),
    "rnnsearch-low-rank": RNNsearchConfig(alignment=6, output_rank=2, **SMALL),
    "rnnencdec": RNNencdecConfig(**SMALL),
    "rnnencdec-cho2014": PRESETS["rnnencdec-cho2014"].model_copy(update={**SMALL, "output_rank": 2}),
    "rnnencdec-conditional": RNNencdecConfig(order="conditional", **SMALL),
    "rnnlm": RNNLMConfig(embedding=4, hidden=5, output_rank=3, initialisation="glorot"),
    "rnnlm-lstm": RNNLMConfig(embedding=4, hidden=5, cell="lstm", initialisation="glorot"),
    "rnnlm-vanilla": RNNLMConfig(embedding=4, hidden=5, cell="vanilla", initialisation="glorot"),
    "rnnencdec-vanilla": RNNencdecConfig(cell="vanilla", **SMALL),
    "rnnsearch-vanilla": RNNsearchConfig(alignment=6, cell="vanilla", **SMALL),
    "rnnsearch-lstm": RNNsearchConfig(alignment=6, cell="lstm", **SMALL),
    "rnnsearch-lstm-conditional": RNNsearchConfig(alignment=6, cell="lstm", order="conditional", **SMALL),
    "rnnsearch-shared": RNNsearchConfig(alignment=6, shared_embeddings=True, **SMALL),
    "rnnencdec-lstm": RNNencdecConfig(cell="lstm", summary="tanh", **SMALL),
    "cslm": CSLMConfig(order=4, embedding=4, hidden=(6, 5)),
    "cslm-bigram": CSLMConfig(order=2, embedding=4, hidden=(7,)),
    "luong": DeepLSTMConfig(**DEEP),
    "luong-from-the-left": DeepLSTMConfig(embedding=4, hidden=5, depth=3, reverse=False, init_range=0.7),
    "luong-one-layer": DeepLSTMConfig(embedding=4, hidden=5, depth=1, attention="dot", feeding=True, init_range=0.7),
    **{
        f"luong-{score}{'-feed' * feeding}": DeepLSTMConfig(attention=score, feeding=feeding, places=3, **DEEP)
        for score in ("dot", "general", "concat", "location")
        for feeding in (False, True)
    },
    **{
        f"luong-{window}-{score}{'-feed' * feeding}": DeepLSTMConfig(
            attention=score, window=window, radius=1, feeding=feeding, **DEEP
        )
        for window in ("local-m", "local-p")
        for score in ("dot", "general", "concat")
        for feeding in (False, True)
    },
}
WORDS = 7
PAIRS = [([2, 3, 4, 5], [3, 2]), ([6], [4, 5, 6, 2, 3]), ([], [2]), ([5, 5, 2], [])]


@pytest.fixture(params=CONFIGS)
def config(request: pytest.FixtureRequest) -> AnyConfig:
    return CONFIGS[request.param]


def make(config: AnyConfig, dtype: torch.dtype) -> TranslationModel:
    model = new_model(config, WORDS, WORDS, seed=3).to(dtype).eval()
    with torch.no_grad():  # biases too must matter
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.uniform_(-0.5, 0.5, generator=torch.Generator().manual_seed(len(parameter)))
    return model


def expected(config: AnyConfig, parameters: dict, source: list[int], target: list[int]) -> list[float]:
    words = [*source, 0], [*target, 0]
    if isinstance(config, DeepLSTMConfig):
        chosen = {"window": config.window, "radius": config.radius, "reverse": config.reverse}
        return luong_reference.deep_lstm(
            parameters, source, words[1], attention_kind=config.attention, feeding=config.feeding, **chosen
        )
    if isinstance(config, CSLMConfig):
        return reference.cslm(parameters, words[1], order=config.order, layers=len(config.hidden))
    cell = {"cell": config.cell}
    if isinstance(config, RNNLMConfig):
        return reference.rnnlm(parameters, words[1], hidden=config.hidden, **cell)
    if config.shared_embeddings:
        shared = parameters["source_embedding.weight"]
        parameters = {**parameters, "target_embedding.weight": shared, "output.weight": shared}
    if isinstance(config, RNNsearchConfig):
        return reference.rnnsearch(parameters, *words, order=config.order, **cell)
    kind = {"order": config.order, "summary": config.summary, "reset": config.reset}
    return reference.rnnencdec(parameters, *words, **kind, **cell)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_forward_equals_the_equations(config, dtype, tolerance) -> None:
    model = make(config, dtype)
    parameters = {name: tensor.detach().double().numpy() for name, tensor in model.named_parameters()}
    found = model(pad_pairs(PAIRS)).detach().numpy()
    for row, (source, target) in zip(found, PAIRS, strict=True):
        goal = expected(config, parameters, source, target)
        np.testing.assert_allclose(row[: len(goal)], goal, rtol=0, atol=tolerance)
        assert not row[len(goal) :].any()


def test_gradients_equal_finite_differences_of_the_equations(config) -> None:
    model = make(config, torch.float64)
    batch = pad_pairs(PAIRS[:2])
    model(batch).sum().backward()
    parameters = {name: tensor.detach().numpy().copy() for name, tensor in model.named_parameters()}

    def total() -> float:
        return sum(sum(expected(config, parameters, *pair)) for pair in PAIRS[:2])

    assert_gradients(model, parameters, total)


def test_probabilities_of_the_next_word_sum_to_one_and_attention_too(config) -> None:
    model = make(config, torch.float64)
    batch = pad_pairs(PAIRS)
    memory = model.encode(batch.source)
    step = model.step(torch.tensor([-1, 3, -1, 2]), model.start(memory), memory)
    torch.testing.assert_close(
        model.generator.log_probs(step.readout_NL).exp().sum(1), torch.ones(4, dtype=torch.float64)
    )
    if step.attention_NS is not None:
        torch.testing.assert_close(step.attention_NS.sum(1), torch.ones(4, dtype=torch.float64))
        assert not step.attention_NS[~batch.source.mask_BL].any()
        if isinstance(config, DeepLSTMConfig):  # which does not look at </s> where there are words
            assert not step.attention_NS[[0, 1, 3], [4, 1, 3]].any()


def test_several_hypotheses_of_a_sentence_stand_side_by_side(config) -> None:
    model = make(config, torch.float64)
    memory = model.encode(pad_pairs(PAIRS[:2]).source)
    state = model.start(memory)
    previous = torch.tensor([2, 3, 4, 5])
    grid = model.step(previous, state.repeat(2), memory)
    rows = model.step(previous, state.repeat(2), memory.repeat(2))
    torch.testing.assert_close(grid.readout_NL, rows.readout_NL, rtol=0, atol=1e-12)


@pytest.mark.parametrize("preset", ["rnnsearch", "rnnencdec", "rnnencdec-cho2014"])
def test_papers_initialisation(preset) -> None:
    config = PRESETS[preset].model_copy(update={"hidden": 300, "embedding": 100})
    model = new_model(config, 50, 40, seed=1)
    parameters = dict(model.named_parameters())
    for name in ("unit.candidate", "encoder.unit.candidate"):
        matrix = parameters[name]
        torch.testing.assert_close(matrix @ matrix.t(), torch.eye(300), rtol=0, atol=1e-5)
    gates = parameters["unit.gates"]
    for half in (gates[:300], gates[300:]):
        torch.testing.assert_close(half.t() @ half, torch.eye(300), rtol=0, atol=1e-5)
    assert parameters["target_embedding.weight"].std().item() == pytest.approx(0.01, rel=0.05)
    assert not parameters["output.bias"].any()
    if preset == "rnnsearch":
        assert parameters["attention.key.weight"].std().item() == pytest.approx(0.001, rel=0.03)
        assert not parameters["attention.energy"].any()
        memory = model.encode(pad_pairs([([2, 3, 4], [])]).source)
        weights = model.step(torch.tensor([-1]), model.start(memory), memory).attention_NS
        torch.testing.assert_close(weights, torch.full((1, 4), 0.25))


# models of the authors' code have 84.35 M (with a factored output matrix) and 17.27 M (without V) parameters
@pytest.mark.parametrize(
    ("preset", "words", "millions"),
    [("rnnsearch", 30000, 84.35 - 0.31 - 18.6 + 15.0), ("rnnencdec-cho2014", 15000, 17.27 + 1.0)],
)
def test_sizes_of_the_papers(preset, words, millions) -> None:
    with torch.device("meta"):
        model = build_model(PRESETS[preset], words, words)
    size = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    assert size == pytest.approx(millions, rel=0.005)
