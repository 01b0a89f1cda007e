"""``nmt-core embed``: vectors are the encoders' (in NumPy)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt_core.commands.main import main
from nmt_core.inference import embed as module
from nmt_core.inference.embed import source_vectors
from nmt_core.model_directory.loaded_model import LoadedModel, load_model, save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import AnyConfig, new_model
from nmt_core.models.cslm import CSLMConfig
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.models.hybrid import HybridConfig
from nmt_core.models.nematus import NematusConfig
from nmt_core.models.rnnencdec import RNNencdecConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.nmt_core.models import luong_reference, reference

SMALL = {"embedding": 4, "hidden": 5, "maxout": 3, "initialisation": "glorot"}
CONFIGS: dict[str, AnyConfig] = {
    "rnnencdec": RNNencdecConfig(**SMALL),
    "cho": RNNencdecConfig(summary="tanh", **SMALL),
    "rnnsearch": RNNsearchConfig(alignment=6, **SMALL),
    "deep": DeepLSTMConfig(embedding=4, hidden=5, depth=2, init_range=0.7),
    "attention": DeepLSTMConfig(embedding=4, hidden=5, depth=2, init_range=0.7, attention="dot", window="local-p"),
    "hybrid": HybridConfig(embedding=4, hidden=5, init_range=0.7, source_characters="abcz", target_characters="a"),
    "nematus": NematusConfig(embedding=4, hidden=5),
    "cslm": CSLMConfig(order=3, embedding=4, hidden=(6,)),
}
WORDS = Vocabulary([*SPECIAL_WORDS, *"abcdef"])
LINES = ["a b c", "", "f", "a b", "c b a", "a b zzz", "a b c"]


def saved(folder: Path, kind: str) -> str:
    config = CONFIGS[kind]
    path = str(folder / kind)
    save_model(path, new_model(config, len(WORDS), len(WORDS), seed=3), WORDS, WORDS, FolderConfig(model=config))
    (folder / "lines").write_text("\n".join(LINES) + "\n")
    return path


def expected(loaded: LoadedModel, kind: str, words: list[int]) -> np.ndarray:
    p = {name: tensor.double().numpy() for name, tensor in loaded.model.named_parameters()}
    if kind == "deep":
        layers = luong_reference.layers_of(p, "encoder.", p["encoder.inputs.weight"])
        return [luong_reference.run(layers, p["source_embedding.weight"][word]) for word in words[-2::-1] or [0]][-1]
    if kind == "rnnsearch":
        forward = reference.encoder_states(p, "encoder", words, backward=False)
        return np.concatenate([forward[-1], reference.encoder_states(p, "backward_encoder", words, backward=True)[0]])
    last = reference.encoder_states(p, "encoder", words, backward=False)[-1]
    return np.tanh(p["summary.weight"] @ last) if kind == "cho" else last


@pytest.mark.parametrize("kind", ["rnnencdec", "cho", "rnnsearch", "deep"])
def test_vectors_are_the_equations(tmp_path: Path, kind: str) -> None:
    loaded, passes = load_model(saved(tmp_path, kind)), []
    reader = loaded.model.reader if kind == "deep" else loaded.model.source_encoder
    reader.register_forward_hook(lambda *_: passes.append(1))
    source_vectors(loaded, ["a b c"])
    assert len(passes) == 1  # the sentence is read once
    for line, vector in zip(LINES, source_vectors(loaded, LINES), strict=True):
        np.testing.assert_allclose(vector, expected(loaded, kind, [*WORDS.encode(line), 0]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["rnnencdec", "rnnsearch", "deep", "attention", "hybrid", "nematus"])
def test_batches_make_no_difference(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_model(saved(tmp_path, kind))
    together = source_vectors(loaded, LINES)
    monkeypatch.setattr(module, "_TOKENS", 3)
    np.testing.assert_allclose(source_vectors(loaded, LINES), together, rtol=0, atol=1e-6)


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, lines = saved(tmp_path, "rnnencdec"), str(tmp_path / "lines")
    vectors = source_vectors(load_model(model), LINES)
    assert main(["embed", "--model", model, lines]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == LINES
    assert np.array_equal(np.array([row[1:] for row in rows], dtype=np.float32), vectors)
    assert main(["embed", "--model", model, "--output", str(tmp_path / "v.npy"), lines]) == 0
    assert np.array_equal(np.load(tmp_path / "v.npy", allow_pickle=False), vectors)
    assert source_vectors(load_model(model), []).shape == (0, vectors.shape[1])
    assert main(["embed", "--model", model, "--what", "target-words", "--output", str(tmp_path / "w.npy")]) == 0
    table = load_model(model).model.get_submodule("target_embedding").weight
    assert np.array_equal(np.load(tmp_path / "w.npy", allow_pickle=False), table.detach().numpy())


@pytest.mark.parametrize(("line", "warned"), [("a zzz", True), ("a b", False)])
def test_text_of_unknown_words_is_told(tmp_path: Path, capsys, line: str, warned: bool) -> None:
    model, lines = saved(tmp_path, "rnnencdec"), tmp_path / "many"
    lines.write_text(f"{line}\n" * 60)
    capsys.readouterr()
    assert main(["embed", "--model", model, "--output", str(tmp_path / "v.npy"), str(lines)]) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == warned
    beginning = f"nmt-core embed: warning: {model}: 60 of the first 120 words (50 %) are unknown to the model"
    assert all(message.startswith(beginning) for message in said)


@pytest.mark.parametrize("side", ["source", "target"])
def test_words_come_back_as_they_are(tmp_path: Path, side: str) -> None:
    model = saved(tmp_path, "rnnsearch")
    path = str(tmp_path / "words.vec")
    assert main(["embed", "--model", model, "--what", f"{side}-words", "--output", path]) == 0
    weight = load_model(model).model.get_submodule(f"{side}_embedding").weight
    count, *rows = Path(path).read_text().splitlines()
    assert count == f"{len(WORDS)} {weight.shape[1]}" and [row.split(" ")[0] for row in rows] == [*WORDS.words]
    assert weight.equal(torch.tensor([[float(one) for one in row.split(" ")[1:]] for row in rows]))


def test_words_that_are_not_utf8_are_written_as_they_are(tmp_path: Path) -> None:
    words = Vocabulary([*SPECIAL_WORDS, "caf\udce9", "caf\udcea"])  # of Latin-1, as an imported model may have
    config = CONFIGS["rnnsearch"]
    model = new_model(config, len(words), len(words), seed=3)
    save_model(str(tmp_path / "model"), model, words, words, FolderConfig(model=config))
    path = tmp_path / "words.vec"
    assert main(["embed", "--model", str(tmp_path / "model"), "--what", "source-words", "--output", str(path)]) == 0
    assert [line.split(b" ")[0] for line in path.read_bytes().splitlines()[3:]] == [b"caf\xe9", b"caf\xea"]


@pytest.mark.parametrize(
    ("kind", "options", "problem"),
    [
        ("cslm", ["lines"], "cslm: a model of type cslm reads no source"),
        ("cslm", ["--what", "source-words"], "cslm: a model of type cslm has no vectors of source words"),
        ("rnnencdec", [], "embed: give INPUT for vectors of lines, and none for those of words"),
        (
            "rnnencdec",
            ["--what", "source-words", "lines"],
            "embed: give INPUT for vectors of lines, and none for those",
        ),
        ("rnnencdec", ["empty"], "empty: is empty; expected tokenised lines"),
        ("rnnencdec", ["tabs"], "tabs:2: has a tab, which is what separates the columns of the output"),
        ("rnnencdec", ["long"], "long:2: has 1,001 words; up to 1,000 are taken"),
        ("rnnencdec", ["long", "--max-words", "1000"], "long:2: has 1,001 words"),
    ],
)
def test_what_cannot_be_done_is_told(
    tmp_path: Path, error_line: Callable[..., str], kind: str, options: list[str], problem: str
) -> None:
    model = saved(tmp_path, kind)
    (tmp_path / "empty").touch()
    (tmp_path / "tabs").write_text("a\na\tb\n")
    (tmp_path / "long").write_text("a\n" + "b " * 1001 + "\n")
    here = [str(tmp_path / option) if option in ("lines", "empty", "tabs", "long") else option for option in options]
    assert problem in error_line(main, ["embed", "--model", model, *here])
