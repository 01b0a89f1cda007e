"""A right-to-left model says of a text what a left-to-right one of the same weights says of the text backwards."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nmt_core.base.errors import ConfigError, ModelError
from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main as nmt
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.lines import PhraseConstraint, SourceLine
from nmt_core.inference.output.alignment import hard_points
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.output.unknowns import UnknownReplacement
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel, load_model, save_model
from nmt_core.text.alignment import parse_pharaoh
from smt_bridge.commands.main import main as bridge
from smt_bridge.metadata import field_of, read_metadata
from smt_bridge.nbest.formats import read_entries
from tests.mirrored_models import WORDS, make_models, mirrored, mirrored_points, turned
from tests.model_files import open_pair_scorer
from tests.searching import open_translator

SOURCES = ["w1 w2 w3 w4", "w5", "w0 unseen w7 w7 w2", "w11 w10"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return make_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def models(folders: dict[str, str]) -> dict[str, LoadedModel]:
    return {name: load_model(folder) for name, folder in folders.items()}


def some_pairs(count: int) -> list[SentencePair]:
    generator = random.Random(3)
    texts = [" ".join(generator.choices([*WORDS, "unseen"], k=generator.randint(0, 7))) for _ in range(count)]
    return [SentencePair(generator.choice(SOURCES), text) for text in texts]


# --- scores


def test_scores_are_those_of_the_text_backwards(models: dict[str, LoadedModel]) -> None:
    pairs = some_pairs(60)
    backwards = [SentencePair(source, mirrored(target)) for source, target in pairs]
    found = ModelPairScorer([models["r2l"]]).score(pairs, per_word=True, attention=True)
    expected = ModelPairScorer([models["l2r"]]).score(backwards, per_word=True, attention=True)
    for one, other in zip(found, expected, strict=True):
        assert one.word_log_probs is not None and one.attention is not None
        assert other.word_log_probs is not None and other.attention is not None
        assert one.log_prob == other.log_prob
        assert one.word_log_probs == turned(other.word_log_probs)
        assert one.attention == turned(other.attention)
        assert (one.unknown_source, one.unknown_target) == (other.unknown_source, other.unknown_target)


def test_a_pair_scores_the_same_in_any_company(models: dict[str, LoadedModel]) -> None:
    pairs, scorer = some_pairs(40), ModelPairScorer([models["r2l"]])
    for pair, together in zip(pairs, scorer.score(pairs, per_word=True), strict=True):
        (alone,) = scorer.score([pair], per_word=True)
        assert together.word_log_probs == pytest.approx(alone.word_log_probs, abs=1e-5)


def test_the_signature_and_the_fingerprint_tell_the_order(models: dict[str, LoadedModel]) -> None:
    assert "|order:right-to-left|" in ModelPairScorer([models["r2l"]]).signature
    assert "order" not in ModelPairScorer([models["l2r"]]).signature
    assert models["l2r"].fingerprint != models["r2l"].fingerprint


def test_the_score_command_has_numbers_and_points_in_the_order_of_the_text(
    folders: dict[str, str], tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    pairs = [pair for pair in some_pairs(20) if pair.target]
    (tmp_path / "s").write_text("".join(f"{pair.source}\n" for pair in pairs))
    rows, points = {}, {}
    for name, folder in folders.items():
        texts = [pair.target if name == "r2l" else mirrored(pair.target) for pair in pairs]
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts))
        options = ["--per-word", "--quiet", "--device", "cpu", "--alignments", str(tmp_path / f"{name}.points")]
        assert nmt(["score", "--model", folder, *options, str(tmp_path / "s"), str(tmp_path / name)]) == 0
        rows[name] = [tuple(line.split()) for line in capfdbinary.readouterr().out.decode().splitlines()]
        points[name] = (tmp_path / f"{name}.points").read_text().splitlines()
    assert rows["r2l"] == [turned(row) for row in rows["l2r"]]
    for pair, one, other in zip(pairs, points["r2l"], points["l2r"], strict=True):
        assert parse_pharaoh(one) == mirrored_points(parse_pharaoh(other), len(pair.target.split()))


def test_attention_of_what_was_read_stays_with_its_words(tmp_path: Path) -> None:
    """Here the row behind a word's own is the word's; a model with another attention has it in its own row."""
    folders = make_models(tmp_path, "aligns=read", preset="luong2015-global-general-feed")
    pairs = [pair for pair in some_pairs(20) if pair.target]
    found, expected = (
        open_pair_scorer([folders[name]]).score(
            [SentencePair(source, order(target)) for source, target in pairs], attention=True
        )
        for name, order in (("r2l", str), ("l2r", mirrored))
    )
    for pair, one, other in zip(pairs, found, expected, strict=True):
        assert one.aligns == other.aligns == "read"
        points, others = (hard_points(np.array(score.attention), "read") for score in (one, other))
        assert points == mirrored_points(others, len(pair.target.split()))
    best, backwards = (open_translator([folders[name]], attention=True).translate(SOURCES) for name in ("r2l", "l2r"))
    for (one,), (other,) in zip(best, backwards, strict=True):
        assert one.text == mirrored(other.text)
        assert one.attention is not None and other.attention is not None
        points, others = (hard_points(each.attention, each.aligns) for each in (one, other))
        assert points == mirrored_points(others, len(one.words))


# --- the bridge


def test_a_table_is_rescored_with_both_orders(folders: dict[str, str], tmp_path: Path) -> None:
    pairs = sorted({pair for pair in some_pairs(30) if pair.target})
    (tmp_path / "table").write_text("".join(f"{source} ||| {target} ||| 0.5\n" for source, target in pairs))
    options = ["--scorer", folders["r2l"], "--quiet", "--jobs", "1", "--output", str(tmp_path / "out")]
    assert bridge(["rescore-table", str(tmp_path / "table"), *options]) == 0
    expected = open_pair_scorer([folders["l2r"]]).score([SentencePair(s, mirrored(t)) for s, t in pairs])
    for line, score in zip((tmp_path / "out").read_text().splitlines(), expected, strict=True):
        assert math.log(float(line.split()[-1])) == pytest.approx(score.log_prob, abs=1e-4)


def test_both_orders_are_two_features(folders: dict[str, str], tmp_path: Path) -> None:
    texts = [text for text in dict.fromkeys(pair.target for pair in some_pairs(12)) if text]
    (tmp_path / "nbest").write_text("".join(f"0 ||| {text} ||| A= 1 ||| -1\n" for text in texts))
    (tmp_path / "source").write_text(f"{SOURCES[0]}\n")
    names = (f"nmt:{folders['l2r']}", f"nmt:{folders['r2l']}", f"nmtmin:{folders['r2l']}", f"coverage:{folders['r2l']}")
    features = [argument for name in names for argument in ("--feature", name)]
    files = [
        "--source",
        str(tmp_path / "source"),
        "--nbest",
        str(tmp_path / "nbest"),
        "--output",
        str(tmp_path / "out"),
    ]
    assert bridge(["add-features", *files, *features, "--quiet", "--jobs", "1"]) == 0
    scorer = open_pair_scorer([folders["l2r"]])
    forward = scorer.score([SentencePair(SOURCES[0], text) for text in texts])
    backward = scorer.score([SentencePair(SOURCES[0], mirrored(text)) for text in texts], per_word=True)
    entries = list(read_entries(str(tmp_path / "out")))
    for entry, one, other in zip(entries, forward, backward, strict=True):
        found = {name: values[0] for name, values in entry.features.items()}
        assert found["NMT0"] == pytest.approx(one.log_prob, abs=1e-4)
        assert found["NMT1"] == pytest.approx(other.log_prob, abs=1e-4)
        assert found["NMTmin0"] == pytest.approx(min(other.word_log_probs or ()), abs=1e-4)
    columns = read_metadata(str(tmp_path / "out.json")).columns
    assert field_of(columns["NMT1"], "order") == "right-to-left"
    assert field_of(columns["NMT0"], "order") is None


# --- search


def check_mirrored(found: Translation, expected: Translation) -> None:
    """``found`` is ``expected`` backwards, with the same numbers for the same words."""
    assert found.text == mirrored(expected.text)
    assert found.words == expected.words[::-1]
    assert (found.log_prob, found.score) == (expected.log_prob, expected.score)
    assert found.word_log_probs == turned(expected.word_log_probs)
    assert (found.attention is None) == (expected.attention is None)
    if found.attention is not None and expected.attention is not None:
        np.testing.assert_array_equal(found.attention[:-1], expected.attention[:-1][::-1])
        np.testing.assert_array_equal(found.attention[-1], expected.attention[-1])


@pytest.mark.parametrize("candidates", [False, True])
@pytest.mark.parametrize(
    "config",
    [
        DecodingConfig(beam=5, nbest=5, min_length=2),
        SamplingConfig(samples=4, seed=5),
    ],
)
def test_translations_are_in_the_order_of_the_text(
    models: dict[str, LoadedModel], config: DecodingConfig | SamplingConfig, *, candidates: bool
) -> None:
    found = {}
    for name, loaded in models.items():
        lists = CandidateLists(loaded.target, frequent=9) if candidates else None
        translator = Translator(
            [loaded], config=config, attention=True, candidates=lists, unknowns=UnknownReplacement("copy")
        )
        found[name] = translator.translate(SOURCES)
    for one, other in zip(found["r2l"], found["l2r"], strict=True):
        for translation, expected in zip(one, other, strict=True):
            check_mirrored(translation, expected)


def test_a_translations_own_score_is_the_pair_scorers(models: dict[str, LoadedModel]) -> None:
    translator = Translator([models["r2l"]], config=DecodingConfig(beam=4, nbest=4))
    for source, nbest in zip(SOURCES, translator.translate(SOURCES), strict=True):
        pairs = [SentencePair(source, found.text) for found in nbest]
        for found, score in zip(nbest, ModelPairScorer([models["r2l"]]).score(pairs, per_word=True), strict=True):
            assert found.word_log_probs == pytest.approx(score.word_log_probs, abs=2e-5)


def test_constraints_are_phrases_of_the_text(models: dict[str, LoadedModel]) -> None:
    phrases = ("w3 unknown w4", "w8 w9")
    config = DecodingConfig(beam=6, nbest=3)
    found, expected = (
        Translator([models[name]], config=config).translate(
            [SourceLine("w1 w2 w3 w4 w5", constraints=tuple(PhraseConstraint((order(one),)) for one in phrases))]
        )[0]
        for name, order in (("r2l", str), ("l2r", mirrored))
    )
    for translation, other in zip(found, expected, strict=True):
        assert all(phrase in translation.text for phrase in phrases)
        check_mirrored(translation, other)


def test_the_decode_command(folders: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in SOURCES))
    texts, attention = {}, {}
    for name, folder in folders.items():
        output, aligned = str(tmp_path / f"{name}.out"), str(tmp_path / f"{name}.jsonl")
        options = ["--input", str(tmp_path / "in"), "--output", output, "--alignments", aligned, "--device", "cpu"]
        assert nmt(["decode", "--model", folder, *options, "--quiet"]) == 0
        texts[name] = Path(output).read_text().splitlines()
        attention[name] = [json.loads(line) for line in Path(aligned).read_text().splitlines()]
    assert texts["r2l"] == [mirrored(text) for text in texts["l2r"]]
    for text, one, other in zip(texts["r2l"], attention["r2l"], attention["l2r"], strict=True):
        assert one["target"] == [*text.split(), "</s>"]
        assert one["attention"] == [*turned(other["attention"])]


# --- what does not go together


def test_orders_are_not_mixed(folders: dict[str, str], tmp_path: Path, error_line: Callable[..., str]) -> None:
    both = [load_model(folder) for folder in folders.values()]
    problem = "l2r writes targets left-to-right and .*r2l right-to-left, .*two features"
    for make in (ModelPairScorer, Translator):
        with pytest.raises(ConfigError, match=problem):
            make(both)
    error_line(nmt, ["decode", "--model", f"{folders['l2r']},{folders['r2l']}", "--input", "/dev/null"])
    error_line(bridge, ["rescore-table", "/dev/null", "--scorer", ",".join(folders.values()), "--output", "-"])
    error_line(nmt, ["average", *folders.values(), "--output", str(tmp_path / "mean")])


def test_a_language_model_of_the_other_order_is_refused(
    folders: dict[str, str], tmp_path: Path, error_line: Callable[..., str]
) -> None:
    make_models(tmp_path, preset="rnnlm")
    fuse = ["fuse", "--model", folders["r2l"], "--output", str(tmp_path / "fused"), "--lm"]
    error_line(nmt, [*fuse, str(tmp_path / "l2r")])
    assert nmt([*fuse, str(tmp_path / "r2l")]) == 0
    assert load_model(str(tmp_path / "fused")).config.target_order == "right-to-left"


# --- folders


def test_a_folder_without_the_key_is_left_to_right(folders: dict[str, str], tmp_path: Path) -> None:
    loaded = load_model(folders["l2r"])
    save_model(str(tmp_path), loaded.model, loaded.source, loaded.target, loaded.config)
    settings = (tmp_path / "config.yaml").read_text()
    (tmp_path / "config.yaml").write_text(settings.replace("target_order: left-to-right\n", ""))
    again = load_model(str(tmp_path))
    assert (again.config.target_order, again.fingerprint) == ("left-to-right", loaded.fingerprint)


def test_an_unknown_order_is_one_line(folders: dict[str, str], tmp_path: Path) -> None:
    loaded = load_model(folders["r2l"])
    save_model(str(tmp_path), loaded.model, loaded.source, loaded.target, loaded.config)
    settings = (tmp_path / "config.yaml").read_text()
    (tmp_path / "config.yaml").write_text(settings.replace("target_order: right-to-left", "target_order: rtl"))
    with pytest.raises(ModelError, match=r"config\.yaml:\d+: 'target_order': .*'left-to-right' or 'right-to-left'"):
        load_model(str(tmp_path))
