"""Training with a few of the target words at a time (Jean et al. 2015)."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.errors import ConfigError
from nmt_core.models.build import new_model
from nmt_core.models.deep_fusion import DeepFusionConfig
from nmt_core.models.presets import preset
from nmt_core.models.rnnlm import RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from nmt_core.training.config import TrainingConfig
from nmt_core.training.data.corpus import BatchPlan, ParallelCorpus, encode_corpus, make_batch
from nmt_core.training.data.partitions import cut_into_partitions
from nmt_core.training.gradient import backpropagate
from nmt_core.training.optimizer import WordTables, build_optimizer

WORDS = 40
SIZES = {"source_words": WORDS + 2, "target_words": WORDS + 2}


def random_corpus(seed: int, sentences: int) -> ParallelCorpus:
    generator = np.random.default_rng(seed)
    vocabulary = Vocabulary([*SPECIAL_WORDS, *(f"w{number}" for number in range(WORDS))])
    texts = [" ".join(f"w{int(w)}" for w in generator.integers(0, WORDS, 5)) for _ in range(2 * sentences)]
    return encode_corpus(zip(texts[::2], texts[1::2], strict=True), vocabulary.encode, vocabulary.encode)


@given(st.integers(0, 1000), st.integers(1, 60), st.integers(17, 45))
def test_partitions_are_the_corpus_in_order_with_all_its_words(seed: int, sentences: int, words: int) -> None:
    corpus = random_corpus(seed, sentences)
    plan = [one for (one,) in BatchPlan(sentences=3, window=2, seed=seed).epoch(corpus, 0)]
    partitions = list(cut_into_partitions(corpus, plan, words=words, **SIZES))
    assert [indices.tolist() for part in partitions for indices in part.batches] == [one.tolist() for one in plan]
    assert [part.first for part in partitions] == np.cumsum([0, *(len(p.batches) for p in partitions)])[:-1].tolist()
    for part, following in itertools.pairwise(partitions):  # whose first minibatch had no place in the one before
        targets = [make_batch(corpus, indices.tolist()).target for indices in (*part.batches, following.batches[0])]
        assert len(torch.cat([torch.tensor([0, 1]), *(one.words_BL[one.mask_BL] for one in targets)]).unique()) > words
    for part in partitions:
        chosen = part.target.words_C
        assert len(chosen) == min(words, WORDS + 2)
        assert chosen[:2].tolist() == [0, 1]
        for indices in part.batches:
            batch = make_batch(corpus, indices.tolist())
            local = part.local(batch)
            assert torch.equal(chosen[local.target.words_BL], batch.target.words_BL)
            assert torch.equal(part.source.words_C[local.source.words_BL], batch.source.words_BL)


def test_a_minibatch_with_too_many_words_is_one_clear_error() -> None:
    corpus = random_corpus(1, 30)
    plan = BatchPlan(sentences=30, window=1).epoch(corpus, 0)[0]
    with pytest.raises(ConfigError, match=r"training.partition_words 10: a minibatch of 30 pairs has \d\d distinct"):
        list(cut_into_partitions(corpus, plan, words=10, **SIZES))


@pytest.mark.parametrize("optimizer", ["adadelta", "adam"])
@pytest.mark.parametrize("tied", [False, True])
def test_only_the_chosen_rows_change_and_as_a_restricted_softmax_wants(optimizer: str, tied: bool) -> None:
    sizes = {"hidden": 6, "embedding": 5, "alignment": 4, "maxout": 3, "initialisation": "glorot", "tied": tied}
    model = new_model(preset("rnnsearch").model_copy(update=sizes), WORDS + 2, WORDS + 2, seed=3)
    model.requires_grad_(True)
    updater = build_optimizer(TrainingConfig(optimizer=optimizer), model.parameters())
    tables = WordTables(model, updater)
    corpus = random_corpus(7, 12)
    first, second = np.arange(0, 6), np.arange(6, 12)

    def update(indices: np.ndarray) -> torch.Tensor:
        (part,) = cut_into_partitions(corpus, [indices], words=26, **SIZES)
        batch = make_batch(corpus, indices.tolist())
        with torch.no_grad():
            readouts_NL = model.known_targets(batch).readouts_BTL[batch.target.mask_BL]
            logits = model.generator.restricted_to(part.target.words_C).logits(readouts_NL)
            words = part.local(batch).target.words_BL[batch.target.mask_BL]
            expected = torch.nn.functional.cross_entropy(logits, words, reduction="sum")
        tables.narrow(part.source.words_C, part.target.words_C)
        with tables.whole():
            assert len(model.output.bias) == WORDS + 2
        assert len(model.output.bias) == 26
        updater.zero_grad()
        loss = backpropagate(model, part.local(batch)).objective
        assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
        updater.step()
        tables.widen()
        return part.target.words_C

    def tables_now() -> list[torch.Tensor]:
        found = []
        for parameter in {model.target_embedding.weight, model.output.weight, model.output.bias}:
            moments = [value for value in updater.state[parameter].values() if value.shape == parameter.shape]
            found += [parameter.detach(), *moments]
        return [tensor.clone() for tensor in found]

    update(first)
    before = tables_now()
    chosen = update(second)
    others = torch.ones(WORDS + 2, dtype=torch.bool)
    others[chosen] = False
    assert len(before) == 6 if tied else 9
    for old, new in zip(before, tables_now(), strict=True):
        assert torch.equal(old[others], new[others])
        assert not torch.equal(old[chosen], new[chosen])


def test_a_fused_language_model_reads_the_words_of_the_partition() -> None:
    """Its own word vectors too are those of the words in use."""
    sizes = {"hidden": 6, "embedding": 5, "initialisation": "glorot"}
    translation = RNNsearchConfig(alignment=4, maxout=3, **sizes)
    config = DeepFusionConfig(translation=translation, language=RNNLMConfig(**sizes), trained="all")
    model = new_model(config, WORDS + 2, WORDS + 2, seed=3)
    updater = build_optimizer(TrainingConfig(optimizer="adam"), model.parameters())
    tables = WordTables(model, updater)
    corpus, indices = random_corpus(7, 6), np.arange(6)
    (part,) = cut_into_partitions(corpus, [indices], words=26, **SIZES)
    batch = make_batch(corpus, indices.tolist())
    with torch.no_grad():
        expected = model.known_targets(batch).readouts_BTL
    language = model.language.target_embedding
    before = language.weight.detach().clone()
    tables.narrow(part.source.words_C, part.target.words_C)
    with torch.no_grad():
        torch.testing.assert_close(model.known_targets(part.local(batch)).readouts_BTL, expected)
    backpropagate(model, part.local(batch))
    updater.step()
    tables.widen()
    changed = (language.weight != before).any(dim=1).nonzero().squeeze(1)
    assert len(changed) > 2
    assert set(changed.tolist()) <= set(part.target.words_C.tolist())


@pytest.mark.parametrize("optimizer", ["adadelta", "adam"])
def test_a_partition_of_all_words_is_ordinary_training(runs, optimizer: str) -> None:
    runs.write("plain", optimizer=optimizer, max_updates=40)
    runs.write("large", optimizer=optimizer, max_updates=40, partition_words=1000)
    assert runs.go_on("plain") == runs.go_on("large") == 0
    runs.assert_equal(runs.state("plain"), runs.state("large"))


def test_frozen_embeddings_stay_as_they_are(runs) -> None:
    runs.write("run", freeze_embeddings_after=20)
    assert runs.go_on("run", "training.max_updates=20") == 0
    early = runs.state("run")
    assert runs.go_on("run", "training.max_updates=40") == 0
    later = runs.state("run")
    for name, tensor in early.items():
        if name.startswith("parameter."):
            assert torch.equal(tensor, later[name]) == ("embedding" in name), name


def test_too_small_partitions_are_one_clear_line(runs, error_line: Callable[..., str]) -> None:
    runs.write("run", partition_words=5)
    assert "training.partition_words 5" in error_line(runs.go_on, "run")
