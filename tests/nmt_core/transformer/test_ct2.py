"""Transformers in CTranslate2: numbers against NumPy, text on its way in and out, and directories that are none."""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nmt_core.base.errors import ConfigError, InputError, ModelError, NmtError
from nmt_core.base.interfaces import SentencePair
from nmt_core.transformer.ct2 import Ct2Model, _read_vocabulary
from nmt_core.transformer.text import PiecesOfSide, TextOfModel
from nmt_core.version import VERSION
from tests.numpy_transformer import END, UNKNOWN, NumpyTransformer

ctranslate2 = pytest.importorskip("ctranslate2")
WORDS = ["the", "old", "woman", "la", "vieille", "femme", ",", "@@x"]
PAIRS = [
    SentencePair("the old woman", "la vieille femme"),
    SentencePair("the", "la"),
    SentencePair(" ".join(["the old woman ,"] * 8), " ".join(["la femme , vieille"] * 9)),
    SentencePair("an old woman", "une vieille"),
    SentencePair("the", ""),
    SentencePair("", "la"),
]


@pytest.fixture(scope="module")
def transformer() -> NumpyTransformer:
    return NumpyTransformer(WORDS)


@pytest.fixture(scope="module")
def folder(transformer: NumpyTransformer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return transformer.write(tmp_path_factory.mktemp("ct2") / "words")


@pytest.fixture(scope="module")
def model(folder: Path) -> Ct2Model:
    return Ct2Model(str(folder), threads=1)


def test_scores_are_those_of_numpy_whatever_is_scored_together(model: Ct2Model, transformer: NumpyTransformer) -> None:
    asked = [*PAIRS, *reversed(PAIRS)]
    for pair, score in zip(asked, model.score(asked), strict=True):
        expected = sum(transformer.log_probs(pair.source.split(), pair.target.split()))
        assert score.log_prob == pytest.approx(expected, abs=1e-4)
        assert score.log_prob == pytest.approx(model.score([pair])[0].log_prob, abs=1e-5)
    unknown = model.score([PAIRS[3]])[0]
    assert (unknown.unknown_source, unknown.unknown_target) == (1, 1)


def test_each_side_has_a_vocabulary_of_its_own(transformer: NumpyTransformer, tmp_path: Path) -> None:
    folder = transformer.write(tmp_path / "model")
    shared = (folder / "shared_vocabulary.json").rename(folder / "target_vocabulary.json")
    upper = [piece.upper() if piece in WORDS else piece for piece in json.loads(shared.read_bytes())]
    (folder / "source_vocabulary.json").write_text(json.dumps(upper))
    (score,) = Ct2Model(str(folder), threads=1).score([SentencePair("THE the OLD", "la vieille femme")])
    assert (score.unknown_source, score.unknown_target) == (1, 0)
    expected = sum(transformer.log_probs(["the", UNKNOWN, "old"], ["la", "vieille", "femme"]))
    assert score.log_prob == pytest.approx(expected, abs=1e-4)


def test_a_vocabulary_as_large_as_those_of_published_models_is_read(tmp_path: Path) -> None:
    """That of opus-mt-en-de has 58,101 pieces."""
    large = NumpyTransformer([*WORDS, *(f"piece{number}" for number in range(58_101))])
    (score,) = Ct2Model(str(large.write(tmp_path / "large")), threads=1).score([SentencePair("the old", "piece58100")])
    assert score.log_prob == pytest.approx(sum(large.log_probs(["the", "old"], ["piece58100"])), abs=1e-4)


def test_what_may_follow_a_prefix_has_probability_1(model: Ct2Model, transformer: NumpyTransformer) -> None:
    prefix = "la vieille"
    ended = model.score([SentencePair("the old", prefix)])[0].log_prob
    p_end = transformer.log_probs(["the", "old"], prefix.split())[-1]
    total = math.exp(p_end)
    for piece in [*WORDS, UNKNOWN]:
        longer = transformer.log_probs(["the", "old"], [*prefix.split(), piece])
        p_ended = model.score([SentencePair("the old", f"{prefix} {piece}")])[0].log_prob
        total += math.exp(p_ended - (ended - p_end) - longer[-1])
    assert total == pytest.approx(1, abs=1e-4)


def test_an_entry_of_a_list_has_the_score_of_its_pair(model: Ct2Model) -> None:
    texts = ["the old woman", "", "the"]
    lists = model.nbest(texts, beam=4, nbest=4, forbid_unknown=True)
    assert [bool(found) for found in lists] == [True, False, True]
    alone = [model.nbest([text], beam=4, nbest=4, forbid_unknown=True)[0] for text in texts]
    assert [[entry.text for entry in found] for found in lists] == [[entry.text for entry in found] for found in alone]
    for text, found in zip(texts, lists, strict=True):
        assert len({entry.text for entry in found}) == len(found)
        assert [entry.log_prob for entry in found] == sorted((entry.log_prob for entry in found), reverse=True)
        scores = model.score([SentencePair(text, entry.text) for entry in found])
        assert [entry.log_prob for entry in found] == pytest.approx([score.log_prob for score in scores], abs=1e-5)
        assert all(UNKNOWN not in entry.text.split() for entry in found)


def test_a_beam_as_wide_as_all_texts_finds_the_likeliest(
    model: Ct2Model, transformer: NumpyTransformer, tmp_path: Path
) -> None:
    small = NumpyTransformer(["a", "b"], seed=5)
    found = Ct2Model(str(small.write(tmp_path / "small")), threads=1).nbest(
        ["a b"], beam=64, nbest=1, forbid_unknown=True
    )
    texts = itertools.chain.from_iterable(itertools.product("ab", repeat=length) for length in range(1, 6))
    best = max(texts, key=lambda text: sum(small.log_probs(["a", "b"], list(text))))
    assert found[0][0].text == " ".join(best)


@pytest.mark.parametrize(
    ("config", "settings", "writes_end"),
    [
        ({"add_source_eos": True}, "", False),  # by the converter for Marian's own files
        ({"add_source_eos": False, "decoder_start_token": END}, "", True),  # by that for transformers
        ({"add_source_eos": False, "decoder_start_token": "<s>"}, "", False),  # by that for OpenNMT-py
        ({"add_source_eos": False, "decoder_start_token": "<s>"}, "source_end: true", True),
    ],
)
def test_the_source_ends_as_the_model_was_trained(
    transformer: NumpyTransformer, tmp_path: Path, config: dict[str, Any], settings: str, writes_end: bool
) -> None:
    folder = transformer.write(tmp_path / "model", **config)
    (folder / "hybridmt.yaml").write_text(settings or "text: tokenised")
    assert Ct2Model(str(folder))._cut(0, [""]) == [[END] * writes_end]


def test_an_empty_source_without_an_end_is_an_error(transformer: NumpyTransformer, tmp_path: Path) -> None:
    folder = transformer.write(tmp_path / "model", add_source_eos=False, decoder_start_token="<s>")
    problem = "^ct2:.*model: the model has no score for an empty source; leave such pairs out$"
    with pytest.raises(NmtError, match=problem):
        Ct2Model(str(folder)).score([SentencePair("the", "la"), SentencePair("", "la")])


def test_a_language_of_the_target_stands_before_each_source(tmp_path: Path) -> None:
    several = NumpyTransformer([">>fra<<", ">>por<<", *WORDS])
    folder = several.write(tmp_path / "model")
    with pytest.raises(NmtError, match=r"such as '>>por<<'; write source_prefix into .*hybridmt.yaml$"):
        Ct2Model(str(folder))
    (folder / "hybridmt.yaml").write_text("source_prefix: '>>fra<<'\n")
    (score,) = Ct2Model(str(folder), threads=1).score([SentencePair("the old", "la femme")])
    assert score.unknown_source == 0
    expected = sum(several.log_probs([">>fra<<", "the", "old"], ["la", "femme"]))
    assert score.log_prob == pytest.approx(expected, abs=1e-4)
    (folder / "hybridmt.yaml").write_text("source_prefix: the old\n")  # a task, in words
    (score,) = Ct2Model(str(folder), threads=1).score([SentencePair("woman", "la")])
    assert score.log_prob == pytest.approx(sum(several.log_probs(["the", "old", "woman"], ["la"])), abs=1e-4)


def test_what_frames_texts_in_other_ways_is_one_line(tmp_path: Path) -> None:
    folder = NumpyTransformer(["<pad>", *WORDS]).write(
        tmp_path / "model", add_source_eos=False, decoder_start_token=END
    )
    problem = (
        "model frames texts by more than an end, as BART, NLLB and T5 do; use hf:, or write source_end into .* where "
    )
    with pytest.raises(NmtError, match=problem):
        Ct2Model(str(folder))
    (folder / "hybridmt.yaml").write_text("source_end: true\n")
    assert Ct2Model(str(folder))._cut(0, ["the"]) == [["the", END]]


def test_pieces_without_their_model_are_one_line(tmp_path: Path) -> None:
    folder = NumpyTransformer(["\u2581the", "\u2581old"]).write(tmp_path / "model-en-fr")
    problem = "model-en-fr has SentencePieces, but no SIDE.spm; copy it from the model, or write SIDE_subwords into "
    with pytest.raises(NmtError, match=f"{problem}{folder}/hybridmt.yaml$".replace("SIDE", "source")):
        Ct2Model(str(folder))
    (folder / "source_vocabulary.json").write_text("[]")
    with pytest.raises(NmtError, match=problem.replace("SIDE", "target")):
        Ct2Model(str(folder))
    (folder / "source_vocabulary.json").unlink()
    (folder / "hybridmt.yaml").write_text("text: tokenised\n")
    assert Ct2Model(str(folder))._cut(0, ["\u2581the"]) == [["\u2581the"]]


def test_a_signature_says_how_the_numbers_are_computed(folder: Path) -> None:
    found = Ct2Model(str(folder), compute_type="default")
    arithmetic = f"dtype:float32|device:cpu|ctranslate2:{ctranslate2.__version__}|version:{VERSION}"
    assert found.signature == f"nmt:ct2|model:{found.fingerprint}|log:e|norm:none|{arithmetic}"
    assert len(found.fingerprint) == 12


def test_what_the_library_is_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are never cut, and what a search looks for is the sum of log p."""
    model, asked = Ct2Model(str(folder), threads=1), list[Any]()

    def answer(texts: list[list[str]], *_: Any, **options: Any) -> list[Any]:
        asked.append(options)
        return [SimpleNamespace(hypotheses=[], log_probs=[]) for _ in texts]

    monkeypatch.setattr(model, "_translator", SimpleNamespace(translate_batch=answer, score_batch=answer))
    model._log_probs([["the"]], [["la"]])
    model._search([["the"]], beam=3, longest=9, forbid_unknown=False)
    batches = {"max_batch_size": 2048, "batch_type": "tokens", "max_input_length": 0}
    search = {"beam_size": 3, "num_hypotheses": 3, "length_penalty": 0, "disable_unk": False, "max_decoding_length": 9}
    assert asked == [batches, batches | search]

    def opened(*given: Any, **options: Any) -> None:
        asked.append((given, options))
        raise ValueError("none here")

    monkeypatch.setitem(sys.modules, "ctranslate2", SimpleNamespace(Translator=opened))
    with pytest.raises(ModelError, match=r"^ct2:m: CTranslate2 cannot open it \(none here\); is it"):
        Ct2Model("m", device="cuda:1", compute_type="int8", threads=2)
    assert asked[2] == (("m", "cuda"), {"device_index": 1, "compute_type": "int8", "intra_threads": 2})


def sentence_pieces(folder: Path, name: str, lines: list[str]) -> None:
    library = pytest.importorskip("sentencepiece")
    library.SentencePieceTrainer.Train(
        sentence_iterator=iter(lines),
        model_prefix=str(folder / name),
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    os.replace(folder / f"{name}.model", folder / f"{name}.spm")


def test_running_text_is_detokenised_for_the_model_and_tokenised_for_moses(tmp_path: Path) -> None:
    folder = tmp_path / "opus-mt-en-fr"
    folder.mkdir()
    english, french = ["it's the old woman's house ."] * 40, ["l'homme de la femme qui dort."] * 40
    sentence_pieces(folder, "source", english)
    sentence_pieces(folder, "target", french)
    text = TextOfModel.read(str(folder))
    assert (text.source_language, text.target_language, text.is_running) == ("en", "fr", True)
    side = PiecesOfSide(str(folder), text.target_subwords, text.target_language, is_running=True)
    pieces = side.cut("l&apos; homme dort .")
    assert "".join(pieces).replace("\u2581", " ").strip() == "l'homme dort."
    assert side.join(pieces) == "l&apos; homme dort ."


def test_what_the_settings_name_goes_before_what_follows_from_the_directory(tmp_path: Path) -> None:
    folder = tmp_path / "opus-mt-en-fr"
    folder.mkdir()
    for name, written in (("hybridmt.yaml", "source_language: de\nsource_subwords: codes\n"), ("source.spm", "")):
        (folder / name).write_text(written)
        (folder / name.replace("source", "target")).write_text(written)
    text = TextOfModel.read(str(folder))
    assert (text.source_language, text.target_language) == ("de", "fr")
    assert (text.source_subwords, text.target_subwords) == ("codes", "target.spm")


def test_words_are_cut_by_merge_operations_that_the_settings_name(tmp_path: Path) -> None:
    (tmp_path / "codes").write_text("#version: 0.2\no l\nol d</w>\n")
    (tmp_path / "hybridmt.yaml").write_text("source_subwords: codes\n")
    text = TextOfModel.read(str(tmp_path))
    side = PiecesOfSide(str(tmp_path), text.source_subwords, text.source_language, is_running=text.is_running)
    assert side.cut("old ox") == ["old", "o@@", "x"]
    assert side.join(["old", "o@@", "x"]) == "old ox"
    assert side.join(["old\n", "ox"]) == "old  ox"  # a line of an output


def test_a_change_of_any_file_is_another_model(folder: Path, transformer: NumpyTransformer, tmp_path: Path) -> None:
    same = transformer.write(tmp_path / "same")
    assert Ct2Model(str(same)).fingerprint == Ct2Model(str(folder)).fingerprint
    renamed = same.rename(tmp_path / "words-en-fr")  # for other languages text is prepared otherwise
    assert Ct2Model(str(renamed)).fingerprint != Ct2Model(str(folder)).fingerprint
    same = renamed.rename(same)
    (same / "hybridmt.yaml").write_text("text: tokenised\n")
    other = NumpyTransformer(WORDS, seed=2).write(tmp_path / "other")
    prints = {Ct2Model(str(one)).fingerprint for one in (folder, same, other)}
    assert len(prints) == 3


def test_a_sentence_longer_than_the_model_takes_is_an_error(model: Ct2Model) -> None:
    for pair in (SentencePair("the " * 70, "la"), SentencePair("the", "la " * 70)):
        with pytest.raises(NmtError, match=r"does not take .* of 7\d pieces"):
            model.score([PAIRS[0], pair])
    with pytest.raises(NmtError, match=r"does not take .* of 7\d pieces"):
        model.nbest(["the " * 70], beam=1, nbest=1, forbid_unknown=False)


def test_a_directory_that_is_no_such_model_is_one_line(tmp_path: Path, folder: Path) -> None:
    problem = r"CTranslate2 cannot open it \(.*\); is it what ct2-transformers-converter wrote\?$"
    with pytest.raises(NmtError, match=f"^ct2:{tmp_path}: {problem}"):
        Ct2Model(str(tmp_path))
    with pytest.raises(ConfigError, match=f"^ct2:{folder}: --dtype float17: .*compute type"):
        Ct2Model(str(folder), compute_type="float17")
    with pytest.raises(ModelError) as raised:
        _read_vocabulary(str(tmp_path), "target")
    missing = "has no target_vocabulary.json and no shared_vocabulary.json; convert it again"
    assert str(raised.value) == f"ct2:{tmp_path} {missing}"
    (tmp_path / "shared_vocabulary.json").write_text("{")
    with pytest.raises(InputError, match=f"^{tmp_path}/shared_vocabulary.json: not valid JSON: "):
        _read_vocabulary(str(tmp_path), "target")


def test_without_the_library_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(ConfigError, match=r"^ct2:m needs CTranslate2: pip install 'hybridmt\[ct2\]'$"):
        Ct2Model("m")
