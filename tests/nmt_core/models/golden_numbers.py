"""Numbers that must not move: what small models of every kind compute, as plain lists.

``golden/numbers.json`` and the folders beside it were written by this module at commit 74a31b7:

    python -m tests.nmt_core.models.golden_numbers

Everything is in double precision, from parameters drawn here, so that it is the same on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nmt_core.base.interfaces import SentencePair
from nmt_core.batches.padding import pad, pad_pairs
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.predictor import Ensemble, ModelPredictor
from nmt_core.layers.losses import LossOptions
from nmt_core.model_directory.loaded_model import LoadedModel, load_model, save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import AnyConfig, build_model, new_model
from nmt_core.models.deep_fusion import DeepFusionConfig
from nmt_core.models.interface import TranslationModel
from nmt_core.models.rnnencdec import RNNencdecConfig
from nmt_core.models.rnnlm import RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from nmt_core.training.data.corpus import encode_corpus, make_batch
from nmt_core.training.data.partitions import cut_into_partitions
from nmt_core.training.gradient import backpropagate
from nmt_core.training.optimizer import WordTables
from nmt_core.training.validation import negative_log_likelihood
from tests.searching import beam_search

GOLDEN = Path(__file__).with_name("golden")
SIZES: dict[str, Any] = {"embedding": 4, "hidden": 6, "maxout": 5}
SEARCH: dict[str, Any] = {**SIZES, "alignment": 3}
CONFIGS: dict[str, AnyConfig] = {
    "rnnsearch": RNNsearchConfig(**SEARCH, dropout=0.2, embedding_dropout=0.1),
    "rnnsearch-conditional": RNNsearchConfig(**SEARCH, order="conditional", output_rank=3),
    "rnnsearch-tied": RNNsearchConfig(**SEARCH, tied=True, initialisation="glorot"),
    "rnnencdec": RNNencdecConfig(**SIZES, dropout=0.2, embedding_dropout=0.1, initialisation="glorot"),
    "rnnencdec-cho2014": RNNencdecConfig(
        **SIZES, summary="tanh", reset="context", order="conditional", output_rank=3, dropout=0.1
    ),
    "rnnencdec-tied": RNNencdecConfig(**SIZES, order="conditional", tied=True),
    "rnnlm": RNNLMConfig(embedding=4, hidden=6, dropout=0.2, embedding_dropout=0.1, initialisation="glorot"),
    "rnnlm-lstm": RNNLMConfig(embedding=4, hidden=6, cell="lstm", output_rank=3),
    "rnnlm-tied": RNNLMConfig(embedding=4, hidden=6, tied=True),
    "deep-fusion": DeepFusionConfig(
        translation=RNNsearchConfig(**SEARCH, dropout=0.1), language=RNNLMConfig(embedding=3, hidden=4), trained="all"
    ),
    "deep-fusion-conditional": DeepFusionConfig(
        translation=RNNsearchConfig(**SEARCH, order="conditional"),
        language=RNNLMConfig(embedding=3, hidden=4, cell="lstm"),
    ),
}
SOURCE = Vocabulary([*SPECIAL_WORDS, "a", "b", "c", "d", "e", "f"])
TARGET = Vocabulary([*SPECIAL_WORDS, "t", "u", "v", "w", "x", "y", "z"])
PAIRS = [([2, 3, 4, 5], [3, 2]), ([6], [4, 5, 6, 2, 3]), ([], [2]), ([5, 5, 2], []), ([2, 3, 7], [3, 2, 8])]
TEXTS = [
    SentencePair("a b c", "t u"),
    SentencePair("a b c", "t u v"),
    SentencePair("a b", "z y x w v"),
    SentencePair("", "t"),
    SentencePair("f e d c b a unseen", ""),
    SentencePair("d", "t u"),
]
Numbers = dict[str, Any]


def drawn(config: AnyConfig, seed: int = 1) -> TranslationModel:
    """A model whose parameters are all N(0, 0.6^2)."""
    model = build_model(config, len(SOURCE), len(TARGET)).double().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.6 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return model


def fingerprint(tensor: Tensor | None) -> list[float]:
    """Three sums that change with the values and, but for signs, with their order."""
    if tensor is None:
        return []
    flat = tensor.detach().double().flatten()
    weights = torch.cos(torch.arange(len(flat), dtype=torch.float64))
    return [flat.abs().sum().item(), flat.square().sum().item(), (weights * flat.abs()).sum().item()]


def first_values(config: AnyConfig) -> Numbers:
    """What every parameter begins with. The signs of orthogonal matrices depend on the machine."""
    model = new_model(config, len(SOURCE), len(TARGET), seed=5)
    return {name: fingerprint(parameter) for name, parameter in model.named_parameters()}


def probabilities(config: AnyConfig) -> Numbers:
    """Word log-probabilities of known targets, all together and step by step."""
    model, batch = drawn(config), pad_pairs(PAIRS)
    with torch.no_grad():
        return {
            "forward": model(batch).tolist(),
            "steps": fingerprint(TranslationModel.known_targets(model, batch).readouts_BTL),
            "nll": negative_log_likelihood(model, batch).total,
        }


def losses(config: AnyConfig) -> Numbers:
    """Losses and gradients, among them those under dropout."""
    found: Numbers = {}
    words = sum(len(target) + 1 for _, target in PAIRS)
    kinds = {
        "plain": (LossOptions(), 1.0),
        "smoothed": (LossOptions(label_smoothing=0.1), 1.0 / words),
        "self-normalised": (LossOptions(self_normalization=0.2), 1.0),
    }
    for name, (options, scale) in kinds.items():
        model = drawn(config).train(name == "plain")
        torch.manual_seed(7)
        total = backpropagate(model, pad_pairs(PAIRS), options, scale=scale).objective
        gradients = {key: fingerprint(parameter.grad) for key, parameter in model.named_parameters()}
        found[name] = {"loss": total.item(), "gradients": gradients}
    return found


@torch.inference_mode()
def searches(config: AnyConfig) -> Numbers:
    """What beams find, over all words, over some of them, and by two models."""
    predictor = ModelPredictor(drawn(config).requires_grad_(False))
    second = ModelPredictor(drawn(config, seed=2).requires_grad_(False))
    source = pad([pair[0] for pair in PAIRS])
    decoding = DecodingConfig(beam=4, nbest=2, max_length_extra=2)
    some = torch.tensor([0, 1, 2, 4, 7])
    predictors = {"all": predictor, "some": predictor.restrict_vocabulary(some), "two": Ensemble([predictor, second])}
    return {
        name: [
            [[one.words, one.log_prob, one.score] for one in hypotheses]
            for hypotheses in beam_search(each, source, config=decoding, attention=True)
        ]
        for name, each in predictors.items()
    }


def scores(config: AnyConfig, model: TranslationModel | None = None) -> Numbers:
    """Scores of pairs of texts, with every normalisation."""
    model = (drawn(config) if model is None else model).requires_grad_(False)
    loaded = LoadedModel(model, SOURCE, TARGET, FolderConfig(model=config), "0" * 12, "golden")
    found: Numbers = {}
    for softmax in ("full", "none", 4):
        answers = ModelPairScorer([loaded], softmax=softmax).score(TEXTS, per_word=True, attention=True)
        found[str(softmax)] = [list(answer.word_log_probs or ()) for answer in answers]
        found["attention"] = [fingerprint(torch.tensor(answer.attention or ())) for answer in answers]
    return found


def partitions(config: AnyConfig) -> Numbers:
    """Parameters after training with some words at a time."""
    if isinstance(config, DeepFusionConfig):
        return {}  # was wrong
    model = drawn(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    tables = WordTables(model, optimizer)
    corpus = encode_corpus((tuple(pair) for pair in TEXTS if pair.source and pair.target), SOURCE.encode, TARGET.encode)
    sizes = {"source_words": len(SOURCE), "target_words": len(TARGET)}
    batches = [np.array([0, 1]), np.array([2]), np.array([3, 0])]
    for partition in cut_into_partitions(corpus, batches, words=7, **sizes):
        tables.narrow(partition.source.words_C, partition.target.words_C)
        for indices in partition.batches:
            optimizer.zero_grad()
            backpropagate(model, partition.local(make_batch(corpus, indices.tolist())))
            optimizer.step()
    tables.widen()
    return {name: fingerprint(parameter) for name, parameter in model.named_parameters()}


KINDS: dict[str, Callable[[AnyConfig], Numbers]] = {
    "first values": first_values,
    "probabilities": probabilities,
    "losses": losses,
    "searches": searches,
    "scores": scores,
    "partitions": partitions,
}


def folders() -> Iterator[tuple[str, Numbers]]:
    """The model folders, and the scores that their models give."""
    for path in sorted(GOLDEN.glob("*/config.yaml")):
        loaded = load_model(str(path.parent), dtype=torch.float64)
        yield path.parent.name, scores(loaded.config.model, loaded.model)


def write() -> None:
    """Write everything anew."""
    for name in ("rnnsearch", "rnnsearch-tied", "rnnencdec-cho2014", "rnnlm-lstm", "deep-fusion"):
        save_model(str(GOLDEN / name), drawn(CONFIGS[name]).float(), SOURCE, TARGET, FolderConfig(model=CONFIGS[name]))
    numbers = {kind: {name: compute(config) for name, config in CONFIGS.items()} for kind, compute in KINDS.items()}
    numbers["folders"] = dict(folders())
    (GOLDEN / "numbers.json").write_text(json.dumps(_rounded(numbers), separators=(",", ":")) + "\n")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return round(value, 9) if isinstance(value, float) else value


if __name__ == "__main__":
    write()
