"""Limit cases of the deep LSTM and its attention: where two of its settings are one, and what follows from words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.batches.layout import Layout
from nmt_core.batches.padding import pad_pairs
from nmt_core.batches.tensor_tree import Memory, State
from nmt_core.commands.main import main
from nmt_core.inference.output.alignment import AlignedPair, hard_alignment_line
from nmt_core.inference.output.unknowns import UnknownReplacement
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.translator import Translator
from nmt_core.layers import reader
from nmt_core.layers.cells import Cell, PlainLSTM
from nmt_core.layers.init import initialise
from nmt_core.layers.reader import RecurrentEncoder
from nmt_core.layers.recurrent import Layers
from nmt_core.model_directory.loaded_model import LoadedModel, load_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models import deep_lstm
from nmt_core.models.build import build_model, new_model
from nmt_core.models.deep_lstm import DeepLSTM, DeepLSTMConfig, DeepState
from nmt_core.models.interface import NO_WORD, Step, TranslationModel
from nmt_core.models.luong_attention import SourceMemory
from nmt_core.preparation.surface import SurfaceText, for_surface_words
from nmt_core.serving.methods.translate import translate_answer
from nmt_core.serving.models.search import RunningSearch, SearchItem
from nmt_core.text.vocabulary import END_ID, SPECIAL_WORDS, UNKNOWN_ID, Vocabulary
from nmt_core.v1 import nmt_pb2 as pb
from tests.nmt_core.models.runs import train

SMALL = {"embedding": 4, "hidden": 5, "depth": 2, "init_range": 0.7}
PAIRS = [([2, 3, 4, 5], [3, 2]), ([6], [4, 5, 6, 2, 3]), ([], [2]), ([5, 5, 2], [])]


def made(**settings: object) -> DeepLSTM:
    model = new_model(DeepLSTMConfig(**{**SMALL, **settings}), 7, 7, seed=3)
    assert isinstance(model, DeepLSTM)
    return model.double().eval()


@pytest.mark.parametrize("attention", [None, "dot"])
@pytest.mark.parametrize("feeding", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_layers_in_one_call_are_the_steps(
    attention: str | None, feeding: bool, reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if feeding and attention is None:
        pytest.skip("feeding needs attention")
    model = made(attention=attention, feeding=feeding, reverse=reverse, depth=3)
    batch = pad_pairs(PAIRS)
    found, asked = [], []
    for whole in (False, True):

        def in_one_call(cell: Cell, inputs: Tensor, whole: bool = whole) -> bool:
            asked.append(cell)
            return whole

        for module in (reader, deep_lstm):
            monkeypatch.setattr(module, "in_one_call", in_one_call)
        model.zero_grad()
        loss = model(batch).sum()
        loss.backward()
        found.append([loss.detach(), *(one.grad for one in model.trained())])
    assert asked or not reverse
    torch.testing.assert_close(found[1], found[0], rtol=1e-12, atol=1e-12)


def test_layers_are_those_of_pytorch() -> None:
    """``torch.nn.LSTM`` has its gates in the order i, f, g, o, where ours is i, f, o, g."""
    torch.manual_seed(1)
    encoder = RecurrentEncoder(4, 5, Layers(PlainLSTM, depth=3))
    theirs = nn.LSTM(4, 5, num_layers=3, bias=False, batch_first=True)
    order = torch.cat([torch.arange(0, 10), torch.arange(15, 20), torch.arange(10, 15)])
    cells = [encoder.unit, *encoder.upper.cells]
    inputs = [encoder.inputs, *encoder.upper.inputs]
    with torch.no_grad():
        for number, (cell, read) in enumerate(zip(cells, inputs, strict=True)):
            nn.init.uniform_(cell.gates, -0.5, 0.5)
            nn.init.uniform_(read.weight, -0.5, 0.5)
            getattr(theirs, f"weight_ih_l{number}").copy_(read.weight[order])
            getattr(theirs, f"weight_hh_l{number}").copy_(cell.gates[order])
        embedded_BSE = torch.randn(3, 6, 4)
        expected, _ = theirs(embedded_BSE)
        found, _ = encoder(embedded_BSE, torch.ones(3, 6, dtype=torch.bool))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_rows_at_different_words_look_where_each_would_alone() -> None:
    """The target position is part of a hypothesis' state."""
    model = made(attention="general", window="local-m", radius=1)
    with torch.no_grad():
        memory = model.encode(pad_pairs([([2, 3, 4, 5, 6], [])]).source)
        states = [model.start(memory)]
        for word in (NO_WORD, 3, 2):
            states.append(model.step(torch.tensor([word]), states[-1], memory).state)
        words = torch.tensor([NO_WORD, 4, 5])
        alone = [
            model.step(words[row : row + 1], states[place], memory).attention_NS for row, place in enumerate((0, 2, 3))
        ]
        both = states[0].join([states[2], states[3]])
        together = model.step(words, both, memory).attention_NS
    torch.testing.assert_close(together, torch.cat(alone))


def test_dropout_is_of_what_layers_read_alone() -> None:
    """The top layer gives out what it gives out, however much is dropped (Zaremba et al. 2014)."""
    model = made(dropout=0.5, depth=1)
    model.train()
    assert not (model.known_targets(pad_pairs(PAIRS)).readouts_BTL == 0).any()
    changed = {float(model(pad_pairs(PAIRS)).sum().detach()) for _ in range(3)}
    assert len(changed) == 3


def test_no_bias_is_trained() -> None:
    model = made(attention="concat", feeding=True)
    trained = {id(parameter) for parameter in model.trained()}
    assert {name for name, parameter in model.named_parameters() if id(parameter) not in trained} == {"output.bias"}
    assert not model.output.bias.any()


def test_first_values_are_uniform() -> None:
    config = DeepLSTMConfig(embedding=60, hidden=60, depth=2, attention="concat", window="local-p", init_range=0.08)
    model = new_model(config, 9, 9, seed=1)
    for name, parameter in model.named_parameters():
        if name != "output.bias":
            assert 0.07 < parameter.abs().max() < 0.08, name
            assert abs(float(parameter.detach().std()) - 0.08 / 3**0.5) < 0.01, name


def test_sizes_of_the_thesis() -> None:
    """Its 216 M parameters: 50 M for each embedding and the softmax, 8 M for every layer, 2 M for attention."""
    config = DeepLSTMConfig(attention="dot")
    with torch.device("meta"):
        model = build_model(config, 50000, 50000)
    assert sum(parameter.numel() for parameter in model.trained()) == 216_000_000


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ({"feeding": True}, "no attentional vector; give attention: dot, or another"),
        ({"window": "local-p"}, "window: local-p goes with attention by content; give attention: general, or dot"),
        ({"window": "local-m", "attention": "location"}, "window: local-m goes with attention by content; give"),
        ({"attention": "multiply"}, "model.deep-lstm.attention"),
        ({"aligns": "read"}, "aligns: read goes with attention by content; give attention: general, dot or concat"),
        ({"attention": "location", "aligns": "read"}, "aligns: read goes with attention by content"),
    ],
)
def test_settings_that_do_not_go_together_are_one_clear_line(
    tmp_path: Path, error_line: Callable[..., str], model: dict, problem: str
) -> None:
    error = error_line(_train, tmp_path, {**SMALL, **model}, max_updates=1)
    assert problem in error.replace("model.type", "model.deep-lstm") or problem.replace(".deep-lstm", "") in error


def _train(folder: Path, model: dict, lines: int = 30, **training: object) -> int:
    """Train to write source words backwards."""
    generator = torch.Generator().manual_seed(1)
    sentences = [
        [f"w{word}" for word in torch.randint(0, 8, (length,), generator=generator).tolist()]
        for length in torch.randint(2, 7, (lines,), generator=generator).tolist()
    ]
    source, target = ("".join(" ".join(words[::step]) + "\n" for words in sentences) for step in (1, -1))
    how = {"batch_sentences": 32, "optimizer": "adam", "gradient": "word", **training}
    settings = {"type": "deep-lstm", **model}
    return train(folder, "m", source=source, target=target, model=settings, data={"hold_out": 10}, **how)


@pytest.mark.parametrize(
    ("how", "model"),
    [
        ({"precision": "bfloat16"}, {"attention": "dot", "feeding": True}),
        ({"partition_words": 9}, {"attention": "location"}),
        ({"partition_words": 9}, {"attention": "dot", "feeding": True}),
    ],
)
def test_it_goes_through_training(tmp_path: Path, model: dict, how: dict) -> None:
    """The output has no bias, whatever the words of an update were."""
    assert _train(tmp_path, {**SMALL, **model}, 30, batch_sentences=1, max_updates=8, validate_every=4, **how) == 0
    loaded = load_model(str(tmp_path / "m"))
    assert isinstance(loaded.model, DeepLSTM)
    assert not loaded.model.output.bias.any()


def loaded_of(model: TranslationModel) -> LoadedModel:
    vocabulary = Vocabulary([*SPECIAL_WORDS, *"abcde"])
    return LoadedModel(model, vocabulary, vocabulary, FolderConfig(model=DeepLSTMConfig()), "0" * 12, "made")


class CopyingByPosition(DeepLSTM):
    """Writes ``<unk>`` for source words 0, 1, 2 … and ``</s>`` behind them; looks where the word it has *read* was."""

    def step(self, previous_N: Tensor, state: State, memory: Memory, layout: Layout | None = None) -> Step:
        assert isinstance(state, DeepState) and isinstance(memory, SourceMemory) and state.place_N is not None
        assert memory.words_B is not None and memory.values_BSH is not None
        widths_N = memory.words_B if layout is None else memory.words_B[layout.sentences_N]
        looked_N = (state.place_N - 1).clamp(min=0)
        attention_NS = nn.functional.one_hot(looked_N, memory.values_BSH.shape[1]).float()
        ends_N = state.place_N >= widths_N
        readout_NH = nn.functional.one_hot(torch.where(ends_N, END_ID, UNKNOWN_ID), self.config.hidden).float()
        return Step(100 * readout_NH, DeepState(state.layers_NU, None, state.place_N + 1), attention_NS)


def copying(**settings: object) -> LoadedModel:
    config = DeepLSTMConfig(**{**SMALL, "attention": "dot", "window": "local-m", "aligns": "read", **settings})
    model = CopyingByPosition(config, 7, 7)
    initialise(model, "uniform", seed=1)
    with torch.no_grad():
        model.output.weight.copy_(torch.eye(7, 5))
    return loaded_of(model.eval().requires_grad_(False))


@pytest.mark.parametrize(("line", "aligns"), [("", "written"), ("  aligns: read\n", "read")])
def test_a_folder_without_the_key_is_read(tmp_path: Path, line: str, aligns: str) -> None:
    Vocabulary([*SPECIAL_WORDS, "a"]).save(str(tmp_path / "vocab"))
    vocabularies = [f"--{side}-vocab={tmp_path / 'vocab'}" for side in ("source", "target")]
    small = ["--set=model.hidden=4", "--set=model.embedding=4"]
    preset = ["--preset", "luong2015-global-dot-feed"]
    assert main(["init", str(tmp_path / "m"), *preset, *vocabularies, *small]) == 0
    settings = tmp_path / "m" / "config.yaml"
    without = settings.read_text().replace("  aligns: written\n", line)
    assert without != settings.read_text()
    settings.write_text(without)
    assert load_model(str(tmp_path / "m")).model.aligns == aligns


def test_unknown_words_come_from_where_it_looks_after_writing_them() -> None:
    """The row of a word is the next one (thesis, section 4.3.3), in search, scores and ensembles."""
    loaded = copying()
    assert loaded.model.aligns == "read"
    translator = Translator([loaded], unknowns=UnknownReplacement(), config=DecodingConfig(beam=1))
    (best,) = translator.translate(["x a y z"])[0]
    assert best.text == "x a y z"
    assert best.aligns == "read"
    assert hard_alignment_line(best.aligned) == "0-0 1-1 2-2 3-3"
    assert best.attention.argmax(axis=1).tolist() == [0, 0, 1, 2, 3]  # as it was computed
    pair = SentencePair("x a y z", "<unk> <unk> <unk> <unk>")
    (score,) = ModelPairScorer([loaded]).score([pair], attention=True)
    assert hard_alignment_line(AlignedPair.of(pair, score)) == "0-0 1-1 2-2 3-3"


def test_the_server_follows_the_rows_of_the_model_too() -> None:
    search = RunningSearch([copying()], attention=True)
    search.admit([(0, SearchItem("x a y z", DecodingConfig(beam=1, nbest=1)))])
    found: list = []
    while not found:
        found = search.step()
    (best,) = found[0][1]
    assert best.with_unknown_replaced(UnknownReplacement())[0] == "x a y z"
    answer = pb.TranslateResponse.FromString(b"".join(translate_answer([[best]], [[best.text]], attention=True)))
    (message,) = answer.sentences[0].translations
    assert [(point.source, point.target) for point in message.alignment] == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_an_ensemble_has_the_attention_of_those_that_align_as_its_first() -> None:
    read, written = loaded_of(made(attention="dot", aligns="read")), loaded_of(made(attention="location"))
    none = loaded_of(made())
    pair = SentencePair("a b c", "c a")
    for members, alone in (([none, read, written], read), ([written, none, read], written)):
        (score,), (its,) = (ModelPairScorer(models).score([pair], attention=True) for models in (members, [alone]))
        assert (score.aligns, score.attention) == (its.aligns, its.attention)
        found, its_own = (Translator(models).predictor for models in (members, [alone]))
        assert found.aligns == its_own.aligns == alone.model.aligns


def test_attention_for_surface_words_is_of_the_words_written() -> None:
    score = PairScore(-1.0, attention=((1.0, 0.0), (0.4, 0.6), (0.2, 0.8)), aligns="read")
    source = SurfaceText("a", (0,), ((0, 1),), 0)
    target = SurfaceText("b@@ c", (0, 0), ((0, 2),), 0)
    found = for_surface_words(score, source, target)
    assert found.aligns == "written"
    assert found.attention[0] == pytest.approx((0.3, 0.7))
