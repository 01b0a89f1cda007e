"""Surface words scored by models of subwords: the sum over the pieces, and numbers for the words of the pair."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from nmt_core.base.interfaces import PairScorer, SentencePair
from nmt_core.inference.scoring.forms import scorer_of_form
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.preparation.bundled import BundledPreprocessor
from nmt_core.preparation.pipeline import Preparation
from nmt_core.preparation.settings import PreparationConfig
from nmt_core.text.vocabulary import build_vocabulary

ENGLISH = ["A man sees the plan's dog.", "Men see a well-known dog & cat.", "The dog sees the men.", "Good dogs!"]
GERMAN = ["Ein Mann sieht den Hund.", "Männer sehen den Hund & die Katze.", "Der Hund sieht die Männer.", "Gute Hunde!"]
KINDS: dict[str, dict[str, Any]] = {
    "words": {},
    "bpe": {"truecasing": {}, "subwords": {"type": "bpe", "merges": 25}},
    "unescaped": {"tokenization": {"escape": False}, "subwords": {"type": "bpe", "merges": 25}},
    "compounds": {"compounds": {"sides": ["target"]}, "subwords": {"type": "bpe", "merges": 25}},
    "sentencepiece": {"subwords": {"type": "sentencepiece", "size": 40}},
    "running": {"tokenization": None, "subwords": {"type": "sentencepiece", "size": 40}},
    "morfessor": {"subwords": {"type": "morfessor"}},
}
PAIRS = [
    SentencePair("the man sees a dog &amp; the plan &apos;s cat .", "ein Mann sieht Hunde &amp; Katzen ."),
    SentencePair("the man", "ein Mann"),
    SentencePair("the man", "ein Mann sieht"),
    SentencePair("the man", ""),
    SentencePair("zebra man", "ein Zebra xyz"),
]


def make(folder: Path, settings: dict[str, Any]) -> LoadedModel:
    """An untrained model of a preparation of a few lines, with weights large enough to have opinions."""
    for language, lines in (("en", ENGLISH), ("de", GERMAN)):
        (folder / f"raw.{language}").write_text("".join(f"{line}\n" for line in lines))
    config = PreparationConfig.from_mapping(
        {"source_language": "en", "target_language": "de", **settings}, origin="test"
    )
    inputs: Any = {"source": str(folder / "raw.en"), "target": str(folder / "raw.de")}
    Preparation(config, inputs, str(folder / "out/train")).run()
    source, target = (build_vocabulary((folder / f"out/train.{side}").read_text().split("\n")) for side in ("en", "de"))
    sizes: dict[str, Any] = {"hidden": 6, "embedding": 5, "alignment": 4, "maxout": 3, "initialisation": "glorot"}
    model_config = RNNsearchConfig(**sizes)
    model = new_model(model_config, len(source), len(target), seed=2).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.mul_(2.0)
    carried = BundledPreprocessor.read(str(folder / "out/preparation.json"))
    return LoadedModel(
        model, source, target, FolderConfig(model=model_config), "f" * 12, str(folder), preparation=carried
    )


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LoadedModel]:
    return {kind: make(tmp_path_factory.mktemp(kind), settings) for kind, settings in KINDS.items()}


def surface(loaded: LoadedModel) -> PairScorer:
    return scorer_of_form([loaded], ModelPairScorer([loaded]), "surface")


@pytest.mark.parametrize("kind", KINDS)
def test_words_add_up_to_their_pieces(models: dict[str, LoadedModel], kind: str) -> None:
    loaded = models[kind]
    assert loaded.preparation is not None
    readers = [loaded.preparation.open_surface(side, words) for side, words in _sides(loaded)]
    scores = surface(loaded).score(PAIRS, per_word=True, attention=True)
    for pair, score in zip(PAIRS, scores, strict=True):
        source, target = (reader.read(text) for reader, text in zip(readers, pair, strict=True))
        pieces = SentencePair(source.text, target.text)
        (alone,) = ModelPairScorer([loaded]).score([pieces], per_word=True, attention=True)
        assert score.log_prob == pytest.approx(alone.log_prob, abs=1e-5)
        words, end = score.word_log_probs[:-1], score.word_log_probs[-1]
        assert alone.word_log_probs is not None
        assert math.fsum((*words, end)) == pytest.approx(alone.log_prob, abs=1e-5)
        assert end == pytest.approx(alone.word_log_probs[-1], abs=1e-5)
        assert len(words) == len(pair.target.split())
        sums = dict.fromkeys(range(len(words)), 0.0)
        for owner, value in zip(target.owners, alone.word_log_probs[:-1], strict=True):
            sums[owner] += value
        assert words == pytest.approx(list(sums.values()), abs=1e-5)
        assert score.attention is not None
        assert {len(row) for row in score.attention} == {len(pair.source.split()) + 1}
        assert len(score.attention) == len(words) + 1
        assert [math.fsum(row) for row in score.attention] == pytest.approx([1.0] * len(score.attention), abs=1e-5)


def test_attention_of_a_word_is_that_of_its_pieces(models: dict[str, LoadedModel]) -> None:
    """Two pieces of a source word are summed, those of a target word have their mean, worked out by hand."""
    loaded = models["bpe"]
    assert loaded.preparation is not None
    readers = [loaded.preparation.open_surface(side, words) for side, words in _sides(loaded)]
    pair = SentencePair("good men", "gute Frauen")
    source, target = (reader.read(text) for reader, text in zip(readers, pair, strict=True))
    assert len(source.owners) > 2
    assert len(target.owners) > 2
    (found,) = surface(loaded).score([pair], attention=True)
    (pieces,) = ModelPairScorer([loaded]).score([SentencePair(source.text, target.text)], attention=True)
    assert found.attention is not None
    assert pieces.attention is not None
    for word in range(2):
        rows = [row for row, owner in zip(pieces.attention, target.owners, strict=False) if owner == word]
        for column in range(2):
            parts = [place for place, owner in enumerate(source.owners) if owner == column]
            mean = sum(row[place] for row in rows for place in parts) / len(rows)
            assert found.attention[word][column] == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize("kind", ["bpe", "unescaped", "sentencepiece", "running", "morfessor"])
def test_escapes_are_those_of_the_model(models: dict[str, LoadedModel], kind: str) -> None:
    """A Moses system with escapes and one without give the same words, so they have the same numbers."""
    escaped = SentencePair("a dog &amp; the plan &apos;s cat", "Hund &amp; Katze")
    plain = SentencePair("a dog & the plan 's cat", "Hund & Katze")
    one, other = surface(models[kind]).score([escaped, plain], per_word=True)
    assert one == other


def test_unknown_words_are_counted_by_surface_word(models: dict[str, LoadedModel]) -> None:
    """A word with two unknown letters is one unknown word."""
    scorer = surface(models["bpe"])
    (score,) = scorer.score([SentencePair("the \u0416\u0416 man", "\u0416\u0416 \u0416 Hund")])
    assert (score.unknown_source, score.unknown_target) == (1, 2)
    (known,) = scorer.score([SentencePair("the man", "Hund")])
    assert (known.unknown_source, known.unknown_target) == (0, 0)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "running"])
def test_surface_words_of_the_training_text_are_read_as_in_training(models: dict[str, LoadedModel], kind: str) -> None:
    """Tokenised (and truecased) as Moses does it, the text becomes what the corpus has."""
    preparation = models[kind].preparation
    assert preparation is not None
    for (side, words), lines in zip(_sides(models[kind]), (ENGLISH, GERMAN), strict=True):
        reader = preparation.open_surface(side, words)
        steps = preparation._open(side, ("cleanup", "punctuation", "tokenization", "truecasing"))
        for line in lines:
            tokenised = line
            for step in steps:
                tokenised = step.apply(tokenised)
            assert reader.read(tokenised).text == preparation.open_side(side).apply(line)


def test_running_text_is_put_together_first(models: dict[str, LoadedModel]) -> None:
    preparation = models["running"].preparation
    assert preparation is not None
    reader = preparation.open_surface("source", models["running"].source)
    line = "The dog sees the men."
    assert reader.read("The dog sees the men .").text == preparation.open_side("source").apply(line)
    assert "\u2581." not in reader.read("The dog .").text.split(" ")


@pytest.mark.parametrize("kind", ["bpe", "compounds", "morfessor", "sentencepiece"])
def test_what_is_too_long_for_a_word_costs_no_more_than_text(models: dict[str, LoadedModel], kind: str) -> None:
    """Segmentation takes the square of a word's length, splitting more; 20,000 letters would hold up a server."""
    preparation = models[kind].preparation
    assert preparation is not None
    reader = preparation.open_surface("target", models[kind].target)
    word = "HundMann" * 2500
    found = reader.read(f"ein {word} .")
    assert len(found.covers) == 3
    assert preparation.open_words("target").undo(found.text).replace(" ", "") == f"ein{word}."


def test_the_signature_names_the_preparation(models: dict[str, LoadedModel]) -> None:
    loaded = models["bpe"]
    assert loaded.preparation is not None
    assert f"|tok:{loaded.preparation.fingerprint}|version:" in surface(loaded).signature
    plain = LoadedModel(loaded.model, loaded.source, loaded.target, loaded.config, loaded.fingerprint, "x")
    scorer = ModelPairScorer([plain])
    assert scorer_of_form([plain], scorer, "surface") is scorer
    raw = [scorer_of_form([one], ModelPairScorer([one]), "raw").signature for one in (loaded, plain)]
    assert f"|tok:raw-{loaded.preparation.fingerprint}|" in raw[0] and "|tok:raw-moses|" in raw[1]


@pytest.mark.parametrize("kind", ["bpe", "running"])
def test_raw_text_is_prepared(models: dict[str, LoadedModel], kind: str) -> None:
    loaded = models[kind]
    scorer = ModelPairScorer([loaded])
    assert loaded.preparation is not None
    prepared = SentencePair(
        loaded.preparation.open_side("source").apply("Good men & dogs."),
        loaded.preparation.open_side("target").apply("Gute Hunde!"),
    )
    raw = scorer_of_form([loaded], scorer, "raw")
    assert raw.score([SentencePair("Good men & dogs.", "Gute Hunde!")], per_word=True) == scorer.score(
        [prepared], per_word=True
    )


def _sides(loaded: LoadedModel) -> list[tuple[Any, Any]]:
    return [("source", loaded.source), ("target", loaded.target)]
