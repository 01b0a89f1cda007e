"""A Moses table and list scored by models of subwords: numbers for Moses' words."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from nmt_core.base.interfaces import SentencePair
from nmt_core.model_directory.loaded_model import load_model
from scripts.experiments.cho2014.generators import GenerationOptions, open_generator
from smt_bridge.commands.main import main
from smt_bridge.metadata import read_metadata
from smt_bridge.models import ModelOptions
from smt_bridge.nbest.formats import read_entries
from tests.model_files import open_pair_scorer

TABLE = [("the plan", "der Aktionsplan"), ("the plan &apos;s", "der Plan"), ("men", "M\u00e4nner"), ("see", "\u0416")]
NBEST = ["der Aktionsplan ist gut .", "Hunde \u0416\u0416 gut .", "."]
SOURCE = "the plan &apos;s good ."
PER_WORD = ["nmt", "nmtnorm", "nmtmin", "nmtunk", "coverage"]


def by_hand(model: Path, pair: SentencePair) -> list[float]:
    """Numbers of the words of a pair: pieces by the readers of both sides, summed by their owners."""
    loaded = load_model(str(model))
    assert loaded.preparation is not None
    source = loaded.preparation.open_surface("source", loaded.source).read(pair.source)
    target = loaded.preparation.open_surface("target", loaded.target).read(pair.target)
    (score,) = open_pair_scorer([str(model)]).score([SentencePair(source.text, target.text)], per_word=True)
    assert score.word_log_probs is not None
    words = [0.0] * len(pair.target.split())
    for owner, value in zip(target.owners, score.word_log_probs[:-1], strict=True):
        words[owner] += value
    return [*words, score.word_log_probs[-1]]


def files_in(folder: Path, output: str) -> list[str]:
    given = {"--source": "source", "--nbest": "nbest", "--output": output}
    return [argument for option, name in given.items() for argument in (option, str(folder / name))]


def test_a_table(pieces: Path, tmp_path: Path) -> None:
    lines = [f"{source} ||| {target} ||| 0.5 0.5" for source, target in TABLE]
    (tmp_path / "table").write_text("".join(f"{line}\n" for line in lines))
    options = ["--scorer", str(pieces), "--unknown-count", "--quiet", "--jobs", "1", "--output", str(tmp_path / "out")]
    assert main(["rescore-table", str(tmp_path / "table"), *options]) == 0
    written = (tmp_path / "out").read_text().split("\n")[:-1]
    for line, before, pair in zip(written, lines, TABLE, strict=True):
        assert line.startswith(before)
        probability, unknown = map(float, line.removeprefix(before).split())
        assert math.log(probability) == pytest.approx(math.fsum(by_hand(pieces, SentencePair(*pair))), abs=1e-4)
        assert unknown == pytest.approx(math.e if pair[1] == "\u0416" else 1.0, abs=1e-4)


def test_every_neural_column_of_a_list(pieces: Path, tmp_path: Path) -> None:
    (tmp_path / "nbest").write_text("".join(f"0 ||| {text} ||| A= 1 ||| -1\n" for text in NBEST))
    (tmp_path / "source").write_text(f"{SOURCE}\n")
    features = [argument for name in PER_WORD for argument in ("--feature", f"{name}:{pieces}")]
    assert main(["add-features", *files_in(tmp_path, "out"), *features, "--quiet", "--jobs", "1"]) == 0
    for text, entry in zip(NBEST, read_entries(str(tmp_path / "out")), strict=True):
        words = by_hand(pieces, SentencePair(SOURCE, text))
        found = {name: values[0] for name, values in entry.features.items()}
        assert found["NMT0"] == pytest.approx(math.fsum(words), abs=1e-4)
        assert found["NMTnorm0"] == pytest.approx(math.fsum(words) / len(words), abs=1e-4)
        assert found["NMTmin0"] == pytest.approx(min(words), abs=1e-4)
        assert found["NMTunk0"] == ("\u0416\u0416" in text)
        assert 0.0 <= found["NMTuncovered0"] <= 1.0
    signature = read_metadata(str(tmp_path / "out.json")).columns["NMT0"]
    carried = load_model(str(pieces)).preparation
    assert carried is not None
    assert f"|tok:{carried.fingerprint}|" in signature


def test_a_list_of_other_conventions_is_noticed(
    pieces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words of another script, or of another language, are unknown to the model; it is said once."""
    monkeypatch.setattr("smt_bridge.lists.add.WINDOW", 1)
    options = ["--scorer", str(pieces), "--quiet", "--jobs", "1"]
    for sentences, warnings in ((5, 0), (200, 1)):  # 60 words are too few to judge
        lists = [f"{number} ||| {'x ' * 9}\u0416{number} ||| A= 1 ||| -1\n" for number in range(sentences)]
        (tmp_path / "nbest").write_text("".join(lists))
        (tmp_path / "source").write_text("\u0416 plan\n" * sentences)
        assert main(["add-features", *files_in(tmp_path, f"out{sentences}"), *options]) == 0
        assert capsys.readouterr().err.count("are unknown to the model") == warnings


def test_generated_phrases_are_limited_in_words_not_in_pieces(pieces: Path) -> None:
    loaded = load_model(str(pieces))
    assert loaded.preparation is not None
    reader = loaded.preparation.open_surface("target", loaded.target)
    generator, _ = open_generator(str(pieces), GenerationOptions(samples=300), ModelOptions())
    (drawn,) = generator.generate(["the man sees the plan &apos;s dog"])
    sizes = [len(reader.read(target).text.split()) for target in drawn]
    assert max(sizes) > 16  # a target of seven words has more than ten pieces
