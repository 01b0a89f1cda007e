"""The Python interface has the numbers and the bytes of the commands."""

from __future__ import annotations

import gzip
import json
import math
import random
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import nmt_core
import smt_bridge
from nmt_core.commands.main import main as nmt
from nmt_core.text.alignment import pharaoh
from smt_bridge.commands.main import main as bridge
from tests.fakes import LengthPairScorer

WORDS = [f"w{number}" for number in range(30)]


def texts(count: int, *, seed: int) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.choices([*WORDS, "unseen"], k=generator.randint(1, 9))) for _ in range(count)]


SOURCES = texts(12, seed=1)
TARGETS = texts(12, seed=2)


def written(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("api")
    written(folder / "v", ["</s>", "<unk>", *WORDS])
    written(folder / "source", SOURCES)
    written(folder / "target", TARGETS)
    sizes = ["hidden=12", "embedding=6", "maxout=8", "initialisation=glorot"]
    for name, preset in (("model", "rnnsearch"), ("other", "rnnsearch"), ("phrases", "rnnencdec")):
        options = [word for size in sizes for word in ("--set", f"model.{size}")]
        vocabularies = ["--source-vocab", str(folder / "v"), "--target-vocab", str(folder / "v")]
        seed = ["--seed", str(len(name))]
        assert nmt(["init", str(folder / name), "--preset", preset, *vocabularies, *seed, *options]) == 0
    lists = [
        f"{number} ||| {text} ||| LM0= {-place / 7:.3f} WP0= {-len(text.split())} ||| {-place}"
        for number in range(len(SOURCES))
        for place, text in enumerate(texts(5, seed=number))
    ]
    written(folder / "list", lists)
    table = [
        f"{' '.join(a.split()[:2])} ||| {' '.join(b.split()[:2])} ||| 0.5 0.25"
        for a, b in zip(SOURCES, TARGETS, strict=True)
    ]
    written(folder / "table", sorted(table))
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> nmt_core.Model:
    return nmt_core.load_model(folder / "model", device="cpu")


@pytest.mark.parametrize("members", [["model"], ["model", "other"]], ids=["one", "ensemble"])
def test_translations_are_those_of_decode(folder: Path, members: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    folders = [str(folder / name) for name in members]
    options = ["--model", ",".join(folders)]
    options += ["--device", "cpu", "--input", str(folder / "source")]
    model = nmt_core.load_model(*folders, device="cpu")
    assert nmt(["decode", *options, "--scores", "--search=min_length=2"]) == 0
    found = model.translate(SOURCES, config=nmt_core.DecodingConfig(min_length=2))
    assert [f"{one.log_prob:.6f}\t{one.text}" for one in found] == capsys.readouterr().out.splitlines()
    assert nmt(["decode", *options, "--nbest", "20"]) == 0
    lines = [
        f"{number} ||| {one.text} ||| NMT0= {one.log_prob:.6f} ||| {one.score:.6f}"
        for number, found in enumerate(model.nbest(SOURCES, 20))
        for one in found
    ]
    assert lines == capsys.readouterr().out.splitlines()


def test_scores_are_those_of_score(folder: Path, model: nmt_core.Model, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model", str(folder / "model"), "--device", "cpu", str(folder / "source"), str(folder / "target")]
    assert nmt(["score", *options]) == 0
    pairs = list(zip(SOURCES, TARGETS, strict=True))
    assert [f"{score.log_prob:.6f}" for score in model.score(pairs)] == capsys.readouterr().out.splitlines()
    assert nmt(["score", *options, "--per-word", "--alignments", str(folder / "points")]) == 0
    words = [score.word_log_probs or () for score in model.score(pairs, per_word=True)]
    assert [" ".join(f"{number:.6f}" for number in row) for row in words] == capsys.readouterr().out.splitlines()
    assert [pharaoh(model.attention(*pair).points) for pair in pairs] == (folder / "points").read_text().splitlines()


def test_vectors_are_those_of_embed(folder: Path, model: nmt_core.Model) -> None:
    output = folder / "vectors.npy"
    options = ["--model", str(folder / "model"), "--device", "cpu", "--output", str(output)]
    assert nmt(["embed", *options, str(folder / "source")]) == 0
    assert np.array_equal(model.encode(SOURCES), np.load(output))


def test_attention_is_drawn(folder: Path, model: nmt_core.Model) -> None:
    pair = model.attention("w1 <b> w2", "w3 w4")
    assert pair.attention is not None
    assert pair.attention.shape == (3, 4)
    drawing = ElementTree.fromstring(pair.svg())
    texts = [text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["w1", "<b>", "w2", "</s>", "w3", "w4", "</s>"]
    assert len(list(drawing.iter("{http://www.w3.org/2000/svg}rect"))) == 3 + (pair.attention >= 0.03).sum()
    assert pair.svg() in pair._repr_html_()
    for source in ("w1 w2", "w1,w2,w3"):  # as it is: a tokeniser would cut the second
        own = model.attention(source)
        assert own.target_words == model.translate([source])[0].words
    with pytest.raises(nmt_core.ConfigError, match=r"^attention of surface words needs a target; without one, give "):
        model.attention("w1 w2", form="surface")
    with pytest.raises(
        nmt_core.ConfigError, match=r"^attention is to the words of a text: give it tokenised, not raw$"
    ):
        model.attention("w1 w2", "w1", form="raw")
    with pytest.raises(nmt_core.ConfigError, match=r"phrases: has no attention; models such as rnnsearch have$"):
        nmt_core.load_model(folder / "phrases", device="cpu").attention("w1", "w2")
    both = nmt_core.load_model(folder / "phrases", folder / "model", device="cpu")
    with pytest.raises(nmt_core.ConfigError, match=r"^vectors are those of one model; an ensemble has none$"):
        both.encode(["w1"])
    assert repr(both) == f"Model('{folder}/phrases', '{folder}/model', '{both.signature}')"
    assert (
        repr(folder / "model")[11:-2] in repr(model)
        and "float64" in nmt_core.load_model(folder / "model", device="cpu", dtype="float64").signature
    )


@pytest.mark.parametrize("call", ["translate", "encode"])
def test_one_text_is_not_taken_for_its_letters(model: nmt_core.Model, call: str) -> None:
    with pytest.raises(nmt_core.ConfigError, match=r"^expected a list of texts, found one: \['w1 w2'\]$"):
        getattr(model, call)("w1 w2")
    with pytest.raises(nmt_core.ConfigError, match=r"one line, but this has several: 'w1\\nw2'$"):
        getattr(model, call)(["w2", "w1\nw2"])


def test_what_is_not_a_pair_is_refused(model: nmt_core.Model) -> None:
    for pair in ("w1 w2", None, ("w1", "w2", "w3"), "w" * 99):
        with pytest.raises(nmt_core.ConfigError) as caught:
            model.score([pair])
        assert str(caught.value) == f"expected a (source, target), found {repr(pair)[:80]}"
    with pytest.raises(nmt_core.ConfigError, match=r"^a text is a string, but this is None$"):
        model.score([("w1", None)])


def test_odd_arguments_of_models_are_told(model: nmt_core.Model) -> None:
    for call in (lambda: model.score([("w1", "w2")], form="odd"), lambda: model.attention("w1", form="odd")):
        with pytest.raises(nmt_core.ConfigError, match=r"^form 'odd': expected prepared, surface, raw$"):
            call()
    for line in (None, b"w1"):
        with pytest.raises(nmt_core.ConfigError, match="a text is a string, but this is"):
            model.translate([line])
    with pytest.raises(nmt_core.ConfigError, match=r"^config: expected a DecodingConfig, found \{'beam': 3\}$"):
        model.translate(["w1"], config={"beam": 3})
    for number in (0, None, "two", 10**9):
        with pytest.raises(nmt_core.ConfigError, match="nbest: 'nbest'"):
            model.nbest(["w1"], number)
    assert len(model.nbest(["w1 w2"], 20)[0]) == 20
    wide = model.nbest(SOURCES, 2, config=nmt_core.DecodingConfig(beam=20))  # not narrowed to two
    narrow, all_20 = model.nbest(SOURCES, 2, config=nmt_core.DecodingConfig(beam=2)), model.nbest(SOURCES, 20)
    assert [[one.text for one in found] for found in wide] == [[one.text for one in found[:2]] for found in all_20]
    assert wide != narrow


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_tables_are_those_of_rescore_table(folder: Path, suffix: str) -> None:
    table, scorer = str(folder / "table"), str(folder / "phrases")
    output, other = folder / f"new{suffix}", folder / f"mine{suffix}.table{suffix}"
    options = ["--scorer", scorer, "--reverse-scorer", scorer, "--unknown-count", "--quiet", "--jobs", "1"]
    assert bridge(["rescore-table", table, *options, "--output", str(output)]) == 0
    counts = smt_bridge.rescore_table(table, other, scorer, reverse_scorer=scorer, unknown_count=True)
    unpack = gzip.decompress if suffix else bytes
    assert unpack(other.read_bytes()) == unpack(output.read_bytes())
    assert json.loads(Path(f"{other}.json").read_text()) == json.loads(Path(f"{output}.json").read_text())
    assert counts.lines == len(SOURCES)


def test_a_table_is_not_its_own_output(folder: Path) -> None:
    with pytest.raises(nmt_core.ConfigError, match=r"/table is also read and would be lost; give another name$"):
        smt_bridge.rescore_table(folder / "table", folder / "table", LengthPairScorer())


def test_a_phrase_of_more_than_max_words_is_refused(folder: Path) -> None:
    table = folder / "long"
    table.write_text("a ||| b ||| 0.5 |||\na b c ||| d ||| 0.5 |||\n")
    with pytest.raises(nmt_core.InputError, match=r"long:2: has 3 words; up to 2 are taken"):
        smt_bridge.rescore_table(table, folder / "short", LengthPairScorer(), max_words=2)
    assert not (folder / "short").exists()
    assert smt_bridge.rescore_table(table, folder / "short", LengthPairScorer(), max_words=3).lines == 2


def test_any_scorer_will_do(folder: Path) -> None:
    output = folder / "fake"
    smt_bridge.rescore_table(folder / "table", output, LengthPairScorer())
    assert json.loads(Path(f"{output}.json").read_text())["signatures"] == {"scorer": "fake:length"}
    assert smt_bridge.read_nbest(folder / "list")[0].entries[0].features.keys() == {"LM0", "WP0"}


def test_lists_are_those_of_the_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rich, weights = str(folder / "rich.gz"), str(folder / "weights")
    given = ["--source", str(folder / "source"), "--nbest", str(folder / "list")]
    scorer = ["--scorer", str(folder / "model"), "--jobs", "1", "--quiet"]
    assert bridge(["add-features", *given, *scorer, "--output", rich]) == 0
    lists = smt_bridge.add_scores(smt_bridge.read_nbest(folder / "list"), SOURCES, str(folder / "model"))
    smt_bridge.write_nbest(folder / "mine.gz", lists)
    assert gzip.decompress((folder / "mine.gz").read_bytes()) == gzip.decompress(Path(rich).read_bytes())

    assert bridge(["tune", "--nbest", rich, "--reference", str(folder / "target"), "--output", weights]) == 0
    report = smt_bridge.tune(lists, [TARGETS])
    assert smt_bridge.format_weights(report.weights) == Path(weights).read_text()
    assert dict(smt_bridge.read_weights(weights)).keys() == {"LM0", "WP0", "NMT0"}

    capsys.readouterr()
    assert bridge(["rerank", "--nbest", rich, "--weights", weights]) == 0
    best = smt_bridge.rerank(lists, report.weights)
    assert [entry.text for entry in best] == capsys.readouterr().out.splitlines()


def test_misuse_of_lists_is_told(folder: Path) -> None:
    lists = smt_bridge.read_nbest(folder / "list")
    for references in (TARGETS, []):
        with pytest.raises(
            nmt_core.ConfigError, match=r"^references are lists of lines: give .lines., also for a single"
        ):
            smt_bridge.tune(lists, references)
    with pytest.raises(nmt_core.ConfigError, match=r"^there is no list to tune on$"):
        smt_bridge.tune([], [TARGETS])
    with pytest.raises(nmt_core.ConfigError, match=r"^a reference has 3 lines but the ids of the lists go up to 11$"):
        smt_bridge.tune(lists, [TARGETS[:12], TARGETS[:3]])
    with pytest.raises(nmt_core.ConfigError, match=r"^metric 'blue': expected bleu, chrf, ter$"):
        smt_bridge.tune(lists, [TARGETS], metric="blue")
    with pytest.raises(nmt_core.ConfigError, match=r"^tokenize 'x': expected none, 13a, intl, char, zh$"):
        smt_bridge.tune(lists, [TARGETS], tokenize="x")
    with pytest.raises(smt_bridge.FormatError, match="beyond the source file"):
        smt_bridge.add_scores(lists, SOURCES[:2], LengthPairScorer())
    with pytest.raises(nmt_core.ConfigError, match="sources are a list of lines; found one string"):
        smt_bridge.add_scores(lists, "\n".join(SOURCES), LengthPairScorer())


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ({"LM0": [math.nan], "WP0": [1.0]}, "a weight of LM0 must be a plain number up to 3.4e38 but is nan"),
        ({"LM0": [1.0], "WP0": [math.inf]}, "a weight of WP0 must be a plain number up to 3.4e38 but is inf"),
        ({"LM0": 1.0, "WP0": [1.0]}, "the weights of LM0: expected a list of numbers, found 1.0"),
        ({"LM 0": [1.0]}, "'LM 0' is no name of a feature"),
    ],
)
def test_weights_that_are_none_are_told(folder: Path, weights: dict[str, list[float]], problem: str) -> None:
    lists = smt_bridge.read_nbest(folder / "list")
    with pytest.raises(nmt_core.ConfigError, match=problem):
        smt_bridge.rerank(lists, weights)
    with pytest.raises(nmt_core.ConfigError, match=problem):
        smt_bridge.tune(lists, [TARGETS], start=weights)
    with pytest.raises(nmt_core.ConfigError, match=problem):
        smt_bridge.format_weights(weights)


@pytest.mark.parametrize(
    ("names", "values", "problem"),
    [
        (["New0"], [math.nan], "the feature New0 is not a finite number"),
        (["New0"], ["1"], "the feature New0: expected a number, found '1'"),
        (["New 0"], [1.0], "feature name 'New 0' must be letters and digits"),
        (["New0", "New0"], [1.0, 2.0], "feature name 'New0' is given twice"),
        (["LM0"], [1.0], "the entry already has a feature LM0; choose another name"),
        (["New0", "New1"], [1.0], r"names and values: expected as many of both, found \['New0', 'New1'\] and \[1.0\]"),
        ("A", [1.0], r"names and values: expected as many of both, found 'A' and \[1.0\]"),
    ],
)
def test_features_that_no_reader_takes_are_not_written(
    folder: Path, names: list[str], values: list[float], problem: str
) -> None:
    entry = smt_bridge.read_nbest(folder / "list")[0].entries[0]
    with pytest.raises(nmt_core.ConfigError, match=problem):
        smt_bridge.with_features(entry, names, values)
    assert smt_bridge.with_features(entry, ["New0"], [1.5]).features["New0"] == (1.5,)
