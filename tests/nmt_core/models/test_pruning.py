"""Pruning by magnitude, what sparse folders hold, and training in which zeros stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from nmt_core.base.errors import ModelError
from nmt_core.base.interfaces import SentencePair
from nmt_core.batches.padding import pad_pairs
from nmt_core.commands.main import main
from nmt_core.model_directory.commands.prune import Scheme, prune, weight_classes
from nmt_core.model_directory.loaded_model import load_model, save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.model_directory.tensors import stored_tensors
from nmt_core.models.build import AnyConfig, new_model
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.models.hybrid import HybridConfig
from nmt_core.models.nematus import NematusConfig
from nmt_core.models.rnnencdec import RNNencdecConfig
from nmt_core.models.rnnlm import RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.model_files import load_parameters, open_pair_scorer
from tests.nmt_core.models.runs import train

VOCABULARY = Vocabulary([*SPECIAL_WORDS, *"abcdef"])
SMALL = {"embedding": 6, "hidden": 8, "initialisation": "glorot"}
CONFIGS: dict[str, AnyConfig] = {
    "deep-lstm": DeepLSTMConfig(depth=2, attention="general", feeding=True, **SMALL),
    "rnnsearch": RNNsearchConfig(alignment=5, maxout=4, tied=True, **SMALL),
    "rnnencdec": RNNencdecConfig(maxout=4, **SMALL),
    "rnnlm": RNNLMConfig(**SMALL),
}


SPARSE = FolderConfig(model=CONFIGS["rnnlm"])


def made(name: str = "deep-lstm") -> torch.nn.Module:
    return new_model(CONFIGS[name], len(VOCABULARY), len(VOCABULARY), seed=1)


def matrices(model: torch.nn.Module) -> dict[str, np.ndarray]:
    return {n: p.detach().numpy().copy() for n, p in model.named_parameters() if p.dim() == 2}


@pytest.fixture(params=CONFIGS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = str(tmp_path / "model")
    save_model(path, made(request.param), VOCABULARY, VOCABULARY, FolderConfig(model=CONFIGS[request.param]))
    return path


def test_classes_are_layers_embeddings_attention_readout_and_output() -> None:
    found = {name: len(parameters) for name, parameters in weight_classes(made()).items()}
    assert found == {
        "source_embedding": 1,
        "target_embedding": 1,
        "encoder 1": 2,
        "encoder 2": 2,
        "decoder 1": 3,
        "decoder 2": 2,
        "attention": 1,
        "readout": 2,
        "output": 1,
    }
    search = weight_classes(made("rnnsearch"))
    assert {"encoder 1", "backward_encoder 1", "initial", "attention", "readout"} < search.keys()
    assert len(search["decoder 1"]) == 4  # gates, candidate, and the products of word and context


def test_what_stands_by_itself_is_a_class() -> None:
    """The output over characters of a hybrid model is another than that over words, and far smaller."""
    hybrid = HybridConfig(source_characters="ab", target_characters="abc", character_depth=2, **SMALL)
    found = {name: sum(m.numel() for m in ms) for name, ms in weight_classes(new_model(hybrid, 8, 9, seed=1)).items()}
    assert (found["output"], found["speller.output"]) == (9 * 8, 4 * 8)
    assert {"speller.embedding", "speller 2", "reader.characters.encoder 2", "spelling start"} < found.keys()
    assert found["spelling start"] == 8 * (8 + 8)
    nematus = weight_classes(new_model(NematusConfig(embedding=6, hidden=8), 8, 9, seed=1))
    assert {name: len(ms) for name, ms in nematus.items() if "embedding" not in name} == {
        "encoder 1": 2,
        "backward_encoder 1": 2,
        "initial": 1,
        "decoder 1": 4,  # the states of both transitions, the word, and the context
        "attention": 2,
        "readout": 3,
        "output": 1,
    }


@pytest.mark.parametrize("scheme", get_args(Scheme))
@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.37, 0.8, 1.0])
@pytest.mark.parametrize("name", CONFIGS)
def test_so_many_weights_are_zero_and_the_others_as_before(name: str, scheme: Scheme, fraction: float) -> None:
    model = made(name)
    before, vectors = matrices(model), {n: p.clone() for n, p in model.named_parameters() if p.dim() == 1}
    classes = prune(model, fraction, scheme)
    after = matrices(model)
    size = sum(matrix.size for matrix in before.values())
    zeros = sum(int((matrix == 0).sum()) for matrix in after.values())
    assert (sum(one.weights for one in classes), sum(one.zeros for one in classes)) == (size, zeros)
    if scheme == "class-uniform":
        assert all(one.zeros == round(fraction * one.weights) for one in classes)
    else:
        assert zeros == round(fraction * size)
    for key, matrix in before.items():
        assert np.array_equal(np.where(after[key] == 0, 0, matrix), after[key])
    assert all(torch.equal(vector, model.get_parameter(key)) for key, vector in vectors.items())


def test_blind_pruning_takes_the_smallest_of_all() -> None:
    model = made()
    before = matrices(model)
    prune(model, 0.5, "class-blind")
    every = np.concatenate([np.abs(matrix).ravel() for matrix in before.values()])
    limit = np.sort(every)[round(0.5 * every.size) - 1]
    for key, matrix in matrices(model).items():
        assert np.array_equal(matrix == 0, np.abs(before[key]) <= limit), key


def test_pruning_by_distribution_has_one_lambda() -> None:
    """Lambda is searched for by halving; each class loses what is below lambda times its deviation."""
    model = made()
    classes = {name: [m.detach().numpy().copy() for m in ms] for name, ms in weight_classes(model).items()}
    prune(model, 0.6, "class-distribution")
    sizes = {
        name: np.concatenate([np.abs(m).ravel() for m in ms]) / np.concatenate([m.ravel() for m in ms]).std()
        for name, ms in classes.items()
    }
    wanted = round(0.6 * sum(map(len, sizes.values())))
    low, high = 0.0, 10.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if sum(int((x < middle).sum()) for x in sizes.values()) >= wanted else (middle, high)
    for name, parameters in weight_classes(model).items():
        assert sum(int((p == 0).sum()) for p in parameters) == int((sizes[name] < high).sum()), name


def test_ties_go_by_position() -> None:
    model = made("rnnlm")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(1.0)
            parameter.view(-1)[1::2] = -1.0
    first, *_, last = (p for p in model.parameters() if p.dim() == 2)
    last.data[-1, -1] = 0.5  # goes before the ties
    classes = prune(model, 0.25, "class-blind")
    assert not first.any() and last[-1, -1] == 0
    assert sum(one.zeros for one in classes) == round(0.25 * sum(one.weights for one in classes))


def test_a_sparse_folder_is_the_same_model(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sparse = str(tmp_path / "sparse")
    assert main(["prune", "--model", folder, "--fraction", "0.8", "--output", sparse]) == 0
    said = capsys.readouterr()
    table = [line.split("\t") for line in said.out.splitlines()]
    size = sum(int(row[1]) for row in table)
    share = f"{100 * round(0.8 * size) / size:.1f}%"
    assert said.err == f"{sparse}: {round(0.8 * size):,} of {size:,} weights are 0 ({share})\n"
    model = load_model(folder).model
    assert [tuple(row) for row in table] == [tuple(map(str, one)) for one in prune(model, 0.8, "class-blind")]
    found = dict(load_model(sparse).model.named_parameters())
    assert all(torch.equal(parameter, found[name]) for name, parameter in model.named_parameters())
    assert yaml.safe_load(Path(sparse, "config.yaml").read_text())["format_version"] == 7
    names = load_file(f"{sparse}/model.safetensors").keys()
    assert any(name.endswith(".mask") for name in names)
    pair = SentencePair("a b c", "d e")
    (score,) = open_pair_scorer([sparse]).score([pair])
    batch = pad_pairs([([*VOCABULARY.encode("a b c")], [*VOCABULARY.encode("d e")])])
    assert score.log_prob == pytest.approx(float(model.eval()(batch).sum().detach()), abs=1e-5)
    assert main(["average", sparse, sparse, "--output", str(tmp_path / "mean")]) == 0
    mean = dict(load_model(str(tmp_path / "mean")).model.named_parameters())
    assert all(torch.equal(parameter, mean[name]) for name, parameter in found.items())


def test_a_sparse_table_of_short_vectors_has_all_its_words(tmp_path: Path) -> None:
    source = Vocabulary([*SPECIAL_WORDS, *(f"w{number}" for number in range(500))])
    config = RNNencdecConfig(embedding=2, hidden=3, maxout=2)
    model = new_model(config, len(source), len(VOCABULARY), seed=1)
    prune(model, 0.9, "class-uniform")
    save_model(path := str(tmp_path / "model"), model, source, VOCABULARY, FolderConfig(model=config))
    assert len(load_model(path).source) == len(source)


def test_zeros_take_an_eighth_of_a_byte(tmp_path: Path) -> None:
    """At 80 %: a bit for each weight and 4 bytes for each fifth of them, 0.925 bytes a weight."""
    config = RNNLMConfig(embedding=200, hidden=300, output_rank=None, initialisation="glorot")
    model = new_model(config, len(VOCABULARY), len(VOCABULARY), seed=1)
    classes = prune(model, 0.8, "class-blind")
    save_model(str(tmp_path / "m"), model, VOCABULARY, VOCABULARY, FolderConfig(model=config))
    weights = sum(one.weights for one in classes)
    assert (tmp_path / "m" / "model.safetensors").stat().st_size == pytest.approx(0.925 * weights, rel=0.01)


@pytest.mark.parametrize(("zeros", "names"), [(20, [".weight"]), (21, [".weight.mask", ".weight.values"])])
def test_more_than_3_percent_zeros_are_left_out(zeros: int, names: list[str]) -> None:
    model = new_model(RNNLMConfig(embedding=80, hidden=10), 8, 8, seed=1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(1.0)
            if name == "target_embedding.weight":  # of 640 numbers
                parameter.view(-1)[:zeros] = 0.0
    assert [name for name in stored_tensors(model) if "target" in name] == [f"target_embedding{one}" for one in names]


def test_a_negative_zero_comes_back(tmp_path: Path) -> None:
    model = made("rnnlm")
    prune(model, 0.5, "class-blind")
    with torch.no_grad():
        model.get_parameter("word_inputs.weight")[0] = -0.0
    save_model(str(tmp_path / "m"), model, VOCABULARY, VOCABULARY, SPARSE)
    found = load_model(str(tmp_path / "m")).model.get_parameter("word_inputs.weight")
    assert torch.equal(found.view(torch.int32), model.get_parameter("word_inputs.weight").detach().view(torch.int32))


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        (".values", lambda tensor: tensor[1:], "has 45 numbers and a mask of 46; copy the model again$"),
        (".values", lambda tensor: tensor.double(), "has numbers of type float64, not float32$"),
        (".values", lambda tensor: tensor * torch.nan, "holds NaN or infinite numbers; train again, or take an older"),
        (".mask", lambda tensor: tensor[1:], "has a mask of another size; copy the model again$"),
        (".mask", lambda tensor: tensor.short(), "has a mask of another size; copy the model again$"),
        (".mask", lambda tensor: ~tensor, "has 46 numbers and a mask of 82; copy the model again$"),
    ],
)
def test_a_damaged_sparse_folder_is_one_line(tmp_path: Path, name: str, change: object, problem: str) -> None:
    model = made("rnnlm")
    prune(model, 0.7, "class-uniform")
    save_model(str(tmp_path / "m"), model, VOCABULARY, VOCABULARY, SPARSE)
    path = tmp_path / "m" / "model.safetensors"
    tensors = load_file(path)
    tensors["unit.gates" + name] = change(tensors["unit.gates" + name]).contiguous()
    save_file(tensors, path)
    with pytest.raises(ModelError, match=problem) as error:
        load_model(str(tmp_path / "m"))
    assert "unit.gates" in str(error.value)


@pytest.mark.parametrize("fraction", ["1.2", "nan"])
def test_fractions_that_are_none_are_one_line(error_line: Callable[..., str], fraction: str) -> None:
    line = error_line(main, ["prune", "--model", "m", f"--fraction={fraction}", "--output", "x"])
    assert f"{fraction!r} is not a share from 0 to 1" in line


# --- training


def _train(folder: Path, name: str, *options: str, data: dict | None = None, **training: object) -> int:
    model = None if "start_from" in training else CONFIGS["rnnsearch"].to_mapping()
    texts = {"source": "a b c\nd e f\nb c\nf\n" * 10, "target": "f e\na c b\nd\na a\n" * 10}
    return train(folder, name, *options, **texts, model=model, data=data, **{"validate_every": 6, **training})


def _zeros(folder: Path) -> dict[str, torch.Tensor]:
    return {n: p == 0 for n, p in load_model(str(folder)).model.named_parameters() if p.dim() == 2}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("first")
    assert _train(place, "first", max_updates=2) == 0
    return place / "first"


@pytest.fixture(scope="module")
def pruned(first: Path) -> Path:
    place = first.parent / "pruned"
    assert main(["prune", "--model", str(first), "--fraction", "0.6", "--output", str(place)]) == 0
    return place


@pytest.mark.parametrize(
    "how",
    [{}, {"optimizer": "adam", "learning_rate": 0.01}, {"optimizer": "sgd"}, {"average": 2}],
    ids=["adadelta", "adam", "sgd", "average"],
)
def test_zeros_stay_and_the_others_are_trained(pruned: Path, tmp_path: Path, how: dict) -> None:
    assert _train(tmp_path, "again", start_from=str(pruned), keep_zeros=True, patience=None, **how) == 0
    before, after = _zeros(pruned), _zeros(tmp_path / "again")
    assert all(bool((after[name] | ~before[name]).all()) for name in before)
    assert sum(int(mask.sum()) for mask in after.values()) <= 1.05 * sum(int(mask.sum()) for mask in before.values())
    names = load_parameters(tmp_path / "again").keys()
    assert any(name.endswith(".mask") for name in names)


def test_without_the_key_zeros_are_trained(pruned: Path, tmp_path: Path) -> None:
    assert _train(tmp_path, "again", start_from=str(pruned), optimizer="adam", learning_rate=0.01) == 0
    assert sum(int(mask.sum()) for mask in _zeros(tmp_path / "again").values()) < 50


def test_a_run_that_keeps_zeros_goes_on_as_if_it_had_not_stopped(pruned: Path, tmp_path: Path) -> None:
    how = {"start_from": str(pruned), "keep_zeros": True, "optimizer": "adam"}
    assert _train(tmp_path, "whole", **how) == 0
    assert _train(tmp_path, "parts", **how, max_updates=6) == 0
    assert _train(tmp_path, "parts", "--resume", **how) == 0
    whole, parts = (load_file(tmp_path / name / "training.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(tensor, parts[name]) for name, tensor in whole.items())


def test_a_new_model_has_the_zeros_of_another(pruned: Path, tmp_path: Path) -> None:
    words = {f"{side}_vocabulary": str(pruned / f"{side}.vocab") for side in ("source", "target")}
    assert _train(tmp_path, "new", data=words, mask_of=str(pruned), optimizer="adam") == 0
    before, after = _zeros(pruned), _zeros(tmp_path / "new")
    assert all(bool((after[name] | ~before[name]).all()) for name in before)


@pytest.mark.parametrize(
    ("training", "problem"),
    [
        ({"keep_zeros": True, "start_from": "{first}"}, "training.keep_zeros: {first} has no weights that are 0"),
        ({"mask_of": "{first}", "data": {"source_vocabulary": 4}}, "has another source vocabulary"),
    ],
)
def test_settings_that_do_not_go_together_are_one_line(
    first: Path, tmp_path: Path, error_line: Callable[..., str], training: dict, problem: str
) -> None:
    given = {key: value.format(first=first) if isinstance(value, str) else value for key, value in training.items()}
    assert problem.format(first=first) in error_line(_train, tmp_path, "second", **given)
