"""The hybrid word-character model against NumPy written from its equations, and its limit cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from nmt_core.batches.padding import Batch, pad_pairs
from nmt_core.layers.losses import LossOptions
from nmt_core.models.build import new_model
from nmt_core.models.deep_lstm import DeepLSTM, DeepLSTMConfig
from nmt_core.models.hybrid import Hybrid, HybridConfig
from nmt_core.models.interface import NO_WORD
from nmt_core.text.characters import Characters, first_characters
from nmt_core.text.sentence import Sentence, TargetOrder
from nmt_core.text.vocabulary import SPECIAL_WORDS, UNKNOWN_ID, Vocabulary, by_frequency, count_words
from tests.nmt_core.models import luong_reference
from tests.nmt_core.models.finite_differences import assert_gradients
from tests.spelling_models import spelling_model

SMALL = {"embedding": 4, "hidden": 5, "depth": 2, "init_range": 0.7}
SPELLS = {"source_characters": "abcxyz", "target_characters": "abcd", "longest_spelling": 5}
CONFIGS = {
    "separate": HybridConfig(character_depth=2, **SMALL, **SPELLS),
    "same": HybridConfig(path="same", **SMALL, **SPELLS),
    "no feeding": HybridConfig(feeding=False, attention="dot", character_depth=2, reverse=False, **SMALL, **SPELLS),
    "window": HybridConfig(attention="concat", window="local-m", radius=1, **SMALL, **SPELLS),
}
VOCABULARY = Vocabulary([*SPECIAL_WORDS, "the", "of", "a", "b", "c"])
TEXTS = [
    ("xyz the xyz of", "abba a d"),
    ("the xylophone zax", "b qq c"),  # too long, and with a character that is not there
    ("", "dad"),
    ("the of", "a b c"),
    ("zax zax", "dad dad <unk> dada"),
]

Parameters = Mapping[str, NDArray[np.floating]]


@pytest.fixture(params=CONFIGS)
def config(request: pytest.FixtureRequest) -> HybridConfig:
    return CONFIGS[request.param]


def made(config: HybridConfig, dtype: torch.dtype = torch.float64) -> Hybrid:
    model = new_model(config, len(VOCABULARY), len(VOCABULARY), seed=3)
    assert isinstance(model, Hybrid)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.uniform_(-0.5, 0.5, generator=torch.Generator().manual_seed(len(parameter)))
    return model.to(dtype).eval()


def sentence(text: str) -> Sentence:
    return Sentence(VOCABULARY.encode(text), text)


def batch_of(model: Hybrid, texts: Sequence[tuple[str, str]]) -> Batch:
    sources, targets = ([sentence(text) for text in side] for side in zip(*texts, strict=True))
    return Batch(model.collate(sources), model.collate_targets(targets))


def spellings(text: str, characters: Characters) -> dict[int, tuple[int, ...]]:
    found = {place: characters.spell(word) for place, word in enumerate(text.split()) if word not in VOCABULARY}
    return {place: spelling for place, spelling in found.items() if spelling is not None}


def expected(config: HybridConfig, p: Parameters, source: str, target: str) -> tuple[list[float], dict[int, float]]:
    return luong_reference.hybrid(
        p,
        VOCABULARY.encode(source),
        [*VOCABULARY.encode(target), 0],
        spellings(source, Characters(config.source_characters, longest=config.longest_spelling)),
        spellings(target, Characters(config.target_characters, longest=config.longest_spelling)),
        path=config.path,
        attention_kind=config.attention,
        window=config.window,
        radius=config.radius,
        reverse=config.reverse,
        feeding=config.feeding,
    )


def parameters_of(model: Hybrid) -> dict[str, NDArray[np.floating]]:
    return {name: tensor.detach().double().numpy().copy() for name, tensor in model.named_parameters()}


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_log_probabilities_equal_the_equations(config: HybridConfig, dtype: torch.dtype, tolerance: float) -> None:
    model = made(config, dtype)
    p = parameters_of(model)
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            found = model(batch_of(model, TEXTS)).detach().numpy()
        for row, (source, target) in zip(found, TEXTS, strict=True):
            words, spelled = expected(config, p, source, target)
            goal = [words[place] + spelled.get(place, 0.0) for place in range(len(words))]
            np.testing.assert_allclose(row[: len(goal)], goal, rtol=0, atol=tolerance)
            assert not row[len(goal) :].any()


def test_the_loss_is_that_of_words_and_of_weighted_characters(config: HybridConfig) -> None:
    config = config.model_copy(update={"character_weight": 0.3})
    model = made(config)
    losses = model.loss(batch_of(model, TEXTS), LossOptions())
    found = [expected(config, parameters_of(model), *pair) for pair in TEXTS]
    words = -sum(sum(word) for word, _ in found)
    characters = -sum(sum(spelled.values()) for _, spelled in found)
    assert losses.sums["words"].total.item() == pytest.approx(words, abs=1e-4)
    assert losses.sums["characters"].total.item() == pytest.approx(characters, abs=1e-4)
    assert losses.sums["characters"].count == sum(len(word) + 1 for word in ("abba", "d", "dad", "dad", "dad", "dada"))
    assert losses.objective.item() == pytest.approx(words + 0.3 * characters, abs=1e-4)


def test_gradients_equal_finite_differences_of_the_equations(config: HybridConfig) -> None:
    model = made(config)
    model.loss(batch_of(model, TEXTS[:1]), LossOptions()).objective.backward()
    p = parameters_of(model)

    def total() -> float:
        words, spelled = expected(config, p, *TEXTS[0])
        return -sum(words) - sum(spelled.values())

    # the loss of words is summed in float32
    assert_gradients(model, p, total, rel=1e-4, abs=1e-5)


def test_steps_equal_known_targets(config: HybridConfig) -> None:
    model = made(config)
    batch = batch_of(model, TEXTS[:1])
    with torch.no_grad():
        known = model.known_targets(batch)
        memory = model.encode(batch.source)
        state, previous, starts = model.start(memory), torch.tensor([NO_WORD]), []
        for place, word in enumerate(batch.target.words_BL[0].tolist()):
            step = model.step(previous, state, memory)
            torch.testing.assert_close(step.readout_NL, known.readouts_BTL[:, place])
            if word == 1:
                starts.append(model.spelling_starts(step, memory, torch.tensor([0])))
            state, previous = step.state, torch.tensor([word])
    assert known.starts_MH is not None
    torch.testing.assert_close(torch.cat(starts), known.starts_MH)


def test_without_rare_words_it_is_the_model_of_words() -> None:
    """To the bit, in loss and gradients, also while units are dropped."""
    config = HybridConfig(dropout=0.3, **SMALL, **SPELLS)
    settings = {key: value for key, value in config.to_mapping().items() if key in DeepLSTMConfig.model_fields}
    words = new_model(DeepLSTMConfig.model_validate({**settings, "type": "deep-lstm"}), 7, 7, seed=3).train()
    hybrid = new_model(config, 7, 7, seed=3).train()
    assert isinstance(words, DeepLSTM) and isinstance(hybrid, Hybrid)
    plain = pad_pairs([([2, 3], [4, 5, 6]), ([], [5])])
    spelled = batch_of(hybrid, [("the of", "a b c"), ("", "b")])
    found = []
    for model, batch in ((words, plain), (hybrid, spelled)):
        torch.manual_seed(1)
        losses = model.loss(batch, LossOptions())
        losses.objective.backward()
        found.append((losses.objective, {name: p.grad for name, p in model.named_parameters()}))
    assert torch.equal(words.eval()(plain), hybrid.eval()(spelled))
    assert torch.equal(found[0][0], found[1][0])
    for name, gradient in found[0][1].items():
        assert torch.equal(gradient, found[1][1][name]), name


def test_characters_are_those_of_frequent_words_first() -> None:
    lines = ["to be or not", "to be", "zzz to", "\udc80q be", "<unk>"]
    words = [word for word, _ in by_frequency(count_words(lines))]
    assert words[:2] == ["be", "to"]
    assert first_characters(words, most=100) == "betonrzq"
    assert first_characters(words, most=3) == "bet"
    characters = Characters("beto", longest=3)
    assert [characters.spell(word) for word in ("bet", "toto", "zeb", "", "<unk>")] == [(1, 2, 3), *[None] * 4]
    assert Characters("<unk>", longest=9).spell("<unk>") is None


def test_a_sentence_that_is_written_from_its_end_keeps_its_words() -> None:
    text = sentence("the abba of")
    assert (text.count(UNKNOWN_ID), text.count(2), text.count(9)) == (1, 1, 0)
    turned = TargetOrder.RIGHT_TO_LEFT.sentence(text)
    assert list(turned) == list(text)[::-1]
    assert turned.words == ("of", "abba", "the")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"attention": None, "feeding": False}, "the hybrid model needs dot, general or concat"),
        ({"attention": "location"}, "the hybrid model needs dot, general or concat"),
        ({"window": "local-p"}, "window global or local-m"),
        ({"source_factors": (3,)}, "reads characters beside words, and no factors"),
        ({"source_characters": "aba"}, "a character is there twice"),
        *(({"target_characters": f"a{blank}b"}, "words have no blanks") for blank in " \t\n"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        HybridConfig(**{**SMALL, **settings})


@torch.inference_mode()
def test_spellings_are_scored_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the generator reads, a vector for each character, is never there for all words of a table."""
    speller = spelling_model().model.speller
    seen: list[int] = []
    exact = type(speller.generator).log_prob_at

    def watched(generator: Any, readouts: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        seen.append(len(readouts))
        return exact(generator, readouts, *others)

    monkeypatch.setattr(type(speller.generator), "log_prob_at", watched)
    words = torch.randint(1, 5, (1000, 6), generator=torch.Generator().manual_seed(1))
    starts = torch.rand(1000, 6, generator=torch.Generator().manual_seed(2))
    together = speller.log_probs(starts, words)
    assert sum(seen) == 7 * 1000
    assert max(seen) <= 7 * 128
    alone = torch.cat([speller.log_probs(starts[[place]], words[[place]]) for place in range(0, 1000, 100)])
    torch.testing.assert_close(together[::100], alone)
    assert speller.log_probs(starts[:0], words[:0]).shape == (0,)
