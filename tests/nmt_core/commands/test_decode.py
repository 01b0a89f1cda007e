"""``nmt-core decode`` on a tiny model folder."""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt_core.base.errors import NmtError
from nmt_core.commands import decode
from nmt_core.commands.main import main
from nmt_core.inference.commands.decode import decode as work
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.cslm import CSLMConfig
from nmt_core.models.rnnencdec import RNNencdecConfig
from nmt_core.models.rnnlm import RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary

SOURCE = "a group of men\n\nmen of a group\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two model folders, ``search`` and ``encdec``, and a source text."""
    folder = tmp_path_factory.mktemp("decode")
    source = Vocabulary([*SPECIAL_WORDS, "a", "group", "of", "men"])
    target = Vocabulary([*SPECIAL_WORDS, "un", "groupe", "d&apos;", "hommes", "|||"])
    sizes: dict[str, Any] = {"embedding": 4, "hidden": 5, "maxout": 4}
    for name, config in (("search", RNNsearchConfig(alignment=3, **sizes)), ("encdec", RNNencdecConfig(**sizes))):
        save_model(str(folder / name), new_model(config, 6, 7, seed=1), source, target, FolderConfig(model=config))
    (folder / "source").write_text(SOURCE)
    with gzip.open(folder / "source.gz", "wt") as stream:
        stream.write(SOURCE)
    return folder


def run(folder: Path, *options: str, model: str = "search", source: str = "source") -> list[str]:
    """The lines that ``decode`` writes."""
    parser = argparse.ArgumentParser()
    decode.add_arguments(parser)
    output = folder / "output"
    places = ["--model", str(folder / model), "--input", str(folder / source), "--output", str(output)]
    assert work(parser.parse_args([*places, "--device", "cpu", *options])) == 0
    return output.read_text().split("\n")[:-1]


def test_a_line_gives_a_line(folder: Path) -> None:
    lines = run(folder)
    assert len(run(folder, model=f"search,{folder}/encdec")) == len(lines)
    assert len(lines) == 3
    assert lines[1] == ""
    assert lines[0]
    assert run(folder, source="source.gz") == lines
    assert run(folder, "--window", "1", "--search=batch_tokens=1") == lines


@pytest.mark.parametrize("config", [RNNLMConfig(embedding=4, hidden=5), CSLMConfig(embedding=4, hidden=[5, 3])])
def test_a_language_model_does_not_translate(folder: Path, config: RNNLMConfig | CSLMConfig) -> None:
    words = Vocabulary([*SPECIAL_WORDS, "un", "groupe", "d&apos;", "hommes", "|||"])
    save_model(str(folder / "lm"), new_model(config, 2, 7, seed=1), words, words, FolderConfig(model=config))
    (folder / "output").unlink(missing_ok=True)
    for model in ("lm", f"search,{folder}/lm"):
        with pytest.raises(NmtError, match=r"--model .*lm: is a language model.*; --search samples=N"):
            run(folder, model=model)
    assert not (folder / "output").exists()
    assert len(run(folder, "--search=samples=3", model="lm")) == 3 + 1 + 3


def test_nbest_lists_have_four_fields(folder: Path) -> None:
    lines = run(folder, "--nbest", "20")
    fields = [line.split(" ||| ") for line in lines]
    assert all(len(entry) == 4 for entry in fields)
    assert [int(entry[0]) for entry in fields] == [0] * 20 + [1] + [2] * 20
    name, value = fields[0][2].split(" ")
    assert name == "NMT0="
    assert float(value) < 0
    scores = [float(entry[3]) for entry in fields[:20]]
    assert scores == sorted(scores, reverse=True)
    assert any("&#124;&#124;&#124;" in entry[1] for entry in fields)


def test_samples_are_repeatable(folder: Path) -> None:
    drawn = run(folder, "--search=samples=5", "--search=seed=3")
    assert drawn == run(folder, "--search=samples=5", "--search=seed=3", "--window", "1")
    assert drawn != run(folder, "--search=samples=5", "--search=seed=4")
    assert len(drawn) == 11


def test_alignments_have_a_line_per_translation(folder: Path) -> None:
    translations = run(folder, "--alignments", str(folder / "points"))
    points = (folder / "points").read_text().split("\n")[:-1]
    assert [len(line.split()) for line in points] == [len(line.split()) for line in translations]
    run(folder, "--alignments", str(folder / "weights.jsonl"))
    weights = [json.loads(line) for line in (folder / "weights.jsonl").read_text().split("\n")[:-1]]
    assert weights[0]["source"] == ["a", "group", "of", "men", "</s>"]
    assert len(weights[0]["attention"]) == len(weights[0]["target"])


@pytest.mark.usefixtures("quick_processes")
@pytest.mark.parametrize("jobs", [(), ("--jobs", "2")])
def test_what_needs_attention_is_refused_before_a_model_without_it_translates(
    folder: Path, monkeypatch: pytest.MonkeyPatch, jobs: tuple[str, ...]
) -> None:
    monkeypatch.setattr(Translator, "translate", lambda *_, **__: pytest.fail("translated"))
    with pytest.raises(NmtError, match=r"--alignments needs a model with attention .*encdec has none"):
        run(folder, "--alignments", f"{folder}/none", *jobs, model="encdec")
    assert not (folder / "none").exists()


def test_unknown_words_are_forbidden_on_demand(folder: Path) -> None:
    assert not any("<unk>" in line for line in run(folder, "--nbest", "20", "--search=forbid_unknown"))


class OutOfMemoryError(RuntimeError):
    """Called as PyTorch's is."""


def test_a_full_gpu_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch, error_line: Callable[..., str]) -> None:
    """While it loads the models, and while it translates."""

    def fill(*_: object, **__: object) -> None:
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate\n20 GiB")

    command = ["decode", "--model", str(folder / "search"), "--input", str(folder / "source"), "--device", "cpu"]
    for place in (
        "nmt_core.inference.commands.options.load_models",
        "nmt_core.inference.translator.Translator.translate",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, fill)
            line = error_line(main, [*command, "--output", str(folder / "full")])
        assert line.startswith("nmt-core decode: a GPU's memory is full; ")
        assert not (folder / "full").exists()


def test_a_missing_input_is_named_before_a_model_is_loaded(error_line: Callable[..., str]) -> None:
    line = error_line(main, ["decode", "--model", "nowhere", "--input", "nofile"])
    assert line == "nmt-core decode: nofile: cannot be read (No such file or directory)"
