"""Language models in ``decode``, and ``tune-lm``, on a tiny model folder."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import sacrebleu
import torch

from nmt_core.commands.main import main
from nmt_core.inference.commands.tune_lm import _report
from nmt_core.inference.output.lm_tuning import Trial, Tuning, parse_grid
from nmt_core.model_directory.loaded_model import save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.nmt_core.arpa import ARPA

kenlm = pytest.importorskip("kenlm")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translation model, a language model, a development set."""
    folder = tmp_path_factory.mktemp("tune")
    source = Vocabulary([*SPECIAL_WORDS, "a", "group", "of", "men"])
    target = Vocabulary([*SPECIAL_WORDS, "un", "groupe", "hommes", "."])
    config = RNNsearchConfig(alignment=3, maxout=4, embedding=4, hidden=5)
    model = new_model(config, len(source), len(target), seed=1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(20)  # to have opinions
    save_model(str(folder / "search"), model, source, target, FolderConfig(model=config))
    (folder / "lm.arpa").write_text(ARPA)
    (folder / "bad.arpa").write_text("nothing\n")
    (folder / "source").write_text("a group of men\n\nmen of a group\nmen\na a group\n")
    (folder / "reference").write_text("un groupe hommes .\n\nhommes . un groupe\nhommes .\nun groupe un groupe .\n")
    return folder


def decode(folder: Path, *options: str) -> list[list[str]]:
    """The fields of the lines ``decode`` writes."""
    output = folder / "output"
    places = ["--model", str(folder / "search"), "--input", str(folder / "source"), "--output", str(output)]
    assert main(["decode", *places, "--device", "cpu", *options]) == 0
    return [line.split(" ||| ") for line in output.read_text().split("\n")[:-1]]


def test_decode_reranks_the_whole_beam(folder: Path) -> None:
    lm = ["--lm", f"{folder}/lm.arpa=0.4"]
    beam = decode(folder, "--nbest", "12")
    best = decode(folder, "--nbest", "3", *lm)
    said = kenlm.Model(str(folder / "lm.arpa"))
    for line in ("0", "2", "3", "4"):
        scored = []
        for _, text, value, _ in (fields for fields in beam if fields[0] == line):
            nmt, lm0 = float(value.split()[1]), said.score(text) * math.log(10)
            scored.append((round((nmt + 0.4 * lm0) / (len(text.split()) + 1), 4), text))
        expected = sorted(scored, key=lambda pair: -pair[0])[:3]
        found = [fields for fields in best if fields[0] == line]
        assert [fields[1] for fields in found] == [text for _, text in expected]
        assert [float(fields[3]) for fields in found] == pytest.approx([score for score, _ in expected], abs=2e-4)
        assert all(fields[2].split()[::2] == ["NMT0=", "LM0="] for fields in found)
    assert [fields[1] for fields in best if fields[0] == "1"] == [""]
    assert [fields[0] for fields in decode(folder, *lm)] == [
        next(fields[1] for fields in best if fields[0] == str(line)) for line in range(5)
    ]


def test_weight_zero_is_decode_without(folder: Path) -> None:
    assert decode(folder, "--lm", f"{folder}/lm.arpa=0") == decode(folder)


def test_tune_lm_finds_what_decoding_with_every_weight_finds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lm = str(folder / "lm.arpa")
    command = ["tune-lm", "--model", str(folder / "search"), "--device", "cpu", "--lm", lm, "--weights", "0:2:0.25"]
    places = ["--source", str(folder / "source"), "--reference", str(folder / "reference")]
    assert main([*command, *places, "--output", str(folder / "tuned.json")]) == 0
    output = capsys.readouterr()
    rows = [tuple(map(float, line.split("\t"))) for line in output.out.split("\n")[:-1]]
    references = (folder / "reference").read_text().split("\n")[:-1]
    bleus = {}
    for weight in (0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2):
        texts = [fields[0] for fields in decode(folder, "--lm", f"{lm}={weight}")]
        bleus[weight] = sacrebleu.corpus_bleu(texts, [references], tokenize="none", force=True).score
    assert rows[:-1] == [(weight, pytest.approx(bleu, abs=0.006)) for weight, bleu in bleus.items()]
    assert len(set(bleus.values())) > 1
    best = max(bleus, key=lambda weight: bleus[weight])
    assert rows[-1] == (best, pytest.approx(bleus[best], abs=0.006))
    written = json.loads((folder / "tuned.json").read_text())
    said = f"BLEU {bleus[best]:.2f} with weight {best:g}, {bleus[0]:.2f} with 0 ({written.pop('signature')})"
    assert output.err.splitlines()[-2 - (best == 2) :][:2] == [said, f"decode with: --lm {lm}={best:g}"]
    assert output.err.endswith("try greater ones with --weights\n") == (best == 2)
    trials = [{"weight": weight, "bleu": pytest.approx(bleu)} for weight, bleu in bleus.items()]
    files = {"lm": lm, "models": [str(folder / "search")], "source": places[1], "reference": places[3]}
    how = {"beam": 12, "length_normalization": 1.0, "trials": trials, "best": trials[[*bleus].index(best)]}
    assert written == {**files, **how}


def test_the_last_weight_of_a_grid_may_not_be_the_best_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    trials = [Trial(0.0, 10.0), Trial(0.5, 20.125)]
    _report(Tuning(trials, trials[1], "sig"), "lm.arpa")
    output = capsys.readouterr()
    assert output.out == "0\t10.00\n0.5\t20.12\n0.5\t20.12\n"
    greater = "the best weight is the last of the grid; try greater ones with --weights"
    best = "BLEU 20.12 with weight 0.5, 10.00 with 0 (sig)"
    assert output.err.splitlines() == [best, "decode with: --lm lm.arpa=0.5", greater]


@pytest.mark.parametrize(
    ("grid", "weights"), [("0:0.3:0.1", [0.0, 0.1, 0.2, 0.3]), ("0.1:0.1:1", [0.1]), ("0:1:0.4", [0.0, 0.4, 0.8])]
)
def test_both_ends_of_a_grid_count(grid: str, weights: list[float]) -> None:
    assert parse_grid(grid) == weights
    assert len(parse_grid("0:9999:1")) == 10_000


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("bad.arpa=1",), "bad.arpa"),
        (("lm.arpa=1", "--search=samples=2"), "leave out --search samples"),
        (("search=1",), "search"),
        (("nowhere=1",), "nowhere"),
    ],
)
def test_wrong_options_of_decode_are_told(
    folder: Path, error_line: Callable[..., str], options: tuple[str, ...], problem: str
) -> None:
    here = [option if option.startswith("--") else f"--lm={folder}/{option}" for option in options]
    places = ["--model", str(folder / "search"), "--input", str(folder / "source")]
    assert problem in error_line(main, ["decode", *places, "--device", "cpu", *here])


@pytest.mark.parametrize("grid", ["1", "0:1", "0:1:0", "1:0:0.1", "0:1:x", "-1:1:0.5", "0:10000:1", "nan:1:1"])
def test_what_is_no_grid_is_told(folder: Path, error_line: Callable[..., str], grid: str) -> None:
    places = ["--source", str(folder / "source"), "--reference", str(folder / "reference")]
    lm = ["--lm", str(folder / "lm.arpa"), f"--weights={grid}"]
    line = error_line(main, ["tune-lm", "--model", str(folder / "search"), *lm, *places])
    expected = "expected START:STOP:STEP from 0 up, such as 0:0.5:0.02"
    assert line == f"nmt-core tune-lm: {grid!r} is no grid of weights; {expected}"
    (folder / "none").touch()
    empty = ["--source", str(folder / "none"), "--reference", str(folder / "none"), "--lm", f"{folder}/lm.arpa"]
    line = error_line(main, ["tune-lm", "--model", str(folder / "search"), *empty])
    assert line == f"nmt-core tune-lm: {folder}/none: is empty; there is nothing to tune on"
