"""Three kinds of subwords, each undone exactly."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.preparation.filters import LanguageConfig
from nmt_core.preparation.settings import PreparationConfig
from nmt_core.preparation.steps import ModelFile
from nmt_core.preparation.subwords import (
    Bpe,
    BpeConfig,
    MorfessorConfig,
    SentencePieceConfig,
    SubwordsConfig,
    learn_subwords,
    open_subwords,
)
from nmt_core.preparation.words import CompoundsConfig

LINES = ["lower newer &apos; wider", "lowest newest widest", "low new wide @-@ newer", "talossa taloissa autossa"] * 5
KINDS: list[tuple[str, SubwordsConfig]] = [
    ("subword_nmt", BpeConfig(merges=20)),
    ("sentencepiece", SentencePieceConfig(size=30)),
    ("sentencepiece", SentencePieceConfig(size=40, model="bpe")),
    ("morfessor", MorfessorConfig()),
    ("morfessor", MorfessorConfig(dampening="log")),
    ("morfessor", MorfessorConfig(dampening="none")),
]
with_every_kind = pytest.mark.parametrize(("module", "config"), KINDS, ids=lambda value: getattr(value, "type", ""))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


@with_every_kind
def test_words_come_back(text: Path, tmp_path: Path, module: str, config: SubwordsConfig) -> None:
    pytest.importorskip(module)
    learn_subwords(config, [str(text)], str(tmp_path / "model"))
    step = open_subwords(config, ModelFile.read(str(tmp_path / "model")))
    for line in [*LINES, "unseen W\u00f6rter \u4e2d\u6587", "x", ""]:
        assert step.undo(step.apply(line)) == line
    assert len(step.apply("unlowest").split()) > 1


@with_every_kind
def test_learning_again_gives_the_same_and_leaves_random_numbers_alone(
    text: Path, tmp_path: Path, module: str, config: SubwordsConfig
) -> None:
    pytest.importorskip(module)
    before = random.getstate()
    for name in ("one", "two"):
        learn_subwords(config, [str(text)], str(tmp_path / name))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert random.getstate() == before


def test_learning_says_nothing(text: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for module, config in KINDS:
        pytest.importorskip(module)
        learn_subwords(config, [str(text)], str(tmp_path / "model"))
    assert capfd.readouterr() == ("", "")


@with_every_kind
def test_an_absent_library_is_named(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, config: SubwordsConfig
) -> None:
    for name in (module, f"{module}.learn_bpe"):
        monkeypatch.setitem(sys.modules, name, None)
    names = {"bpe": "byte-pair encoding needs subword-nmt", "morfessor": "Morfessor needs morfessor"}
    needs = names.get(config.type, "SentencePiece needs sentencepiece")
    with pytest.raises(ConfigError, match=rf"^{needs}: pip install 'hybridmt\[prepare\]'$"):
        learn_subwords(config, [str(text)], str(tmp_path / "model"))


def test_too_many_pieces_are_a_mistake(text: Path, tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece")
    with pytest.raises(ConfigError, match=r"^subwords\.size 30000: SentencePiece could not learn \(.+\)$"):
        learn_subwords(SentencePieceConfig(size=30000), [str(text)], str(tmp_path / "model"))


@with_every_kind
def test_a_file_that_is_no_model_is_named(text: Path, module: str, config: SubwordsConfig) -> None:
    pytest.importorskip(module)
    said = {
        "bpe": "text:1: not a file of merge operations ",
        "morfessor": "text:1: expected a count .from 1. and morphs$",
    }
    with pytest.raises(
        InputError, match=said.get(config.type, "text: not a SentencePiece model; expected what 'nmt-core")
    ):
        open_subwords(config, ModelFile.read(str(text)))


MORPHS = ": expected a count (from 1) and morphs"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", ": is empty; expected a count and morphs on each line"),
        *((f"1 a\n{line}", f":2{MORPHS}") for line in ("0 a", "1", "1 a  b")),
        (f"1 a {'b' * 1000}", ":1: a word of 1,001 characters; expected at most 1,000"),
    ],
)
def test_morphs_have_counts(content: str, problem: str) -> None:
    pytest.importorskip("morfessor")
    with pytest.raises(InputError) as caught:
        open_subwords(MorfessorConfig(), ModelFile("morphs", content.encode()))
    assert str(caught.value) == f"morphs{problem}"


def test_too_little_text_teaches_no_subwords(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a b\nlow low\nnew\n")
    problem = "text: too little text to learn subwords from; give more, or prepare it without subwords$"
    for config in (BpeConfig(minimum_frequency=3), MorfessorConfig(minimum_count=3)):
        with pytest.raises(InputError, match=problem):
            learn_subwords(config, [str(tmp_path / "text")], str(tmp_path / "model"))
    learn_subwords(MorfessorConfig(minimum_count=2), [str(tmp_path / "text")], str(tmp_path / "model"))
    assert (tmp_path / "model").read_text().replace(" ", "") == "1low\n"
    (tmp_path / "more").write_text("low low low\n")
    both = [str(tmp_path / name) for name in ("text", "more")]  # five times together
    for dampening, count in (("ones", 1), ("log", 3), ("none", 5)):
        learn_subwords(MorfessorConfig(minimum_count=5, dampening=dampening), both, str(tmp_path / "model"))  # type: ignore[arg-type]
        assert (tmp_path / "model").read_text().replace(" ", "") == f"{count}low\n"
    for merges in (1, 2):
        learn_subwords(BpeConfig(merges=merges, minimum_frequency=5), both, str(tmp_path / "model"))
        assert len((tmp_path / "model").read_text().splitlines()) == 1 + merges


def test_sentencepiece_is_given_all_settings(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, given = pytest.importorskip("sentencepiece"), dict[str, object]()
    monkeypatch.setattr(library.SentencePieceTrainer, "Train", lambda **settings: given.update(settings))
    config = SentencePieceConfig(size=30, model="bpe", character_coverage=0.5, sample=7)
    learn_subwords(config, [str(text)], str(tmp_path / "model"))
    names = ("vocab_size", "model_type", "character_coverage", "input_sentence_size")
    assert [given[name] for name in names] == [30, "bpe", 0.5, 7]


def test_settings_are_by_default_as_documented() -> None:
    """docs/preparation.md."""
    found = [config().to_mapping() for config in (BpeConfig, SentencePieceConfig, MorfessorConfig, CompoundsConfig)]
    pieces = {"size": 32000, "model": "unigram", "character_coverage": 1.0, "sample": 5_000_000, "joint": True}
    assert found == [
        {"type": "bpe", "sides": None, "merges": 32000, "minimum_frequency": 2, "joint": True},
        {"type": "sentencepiece", "sides": None, **pieces},
        {"type": "morfessor", "sides": None, "dampening": "ones", "minimum_count": 1, "joint": False},
        {"sides": None, "minimum_length": 3, "minimum_count": 1, "fillers": ["s", "es"], "mark": False},
    ]
    on = {"cleanup": {}, "punctuation": {"apostrophes": True, "moses": True}}
    on["tokenization"] = {"aggressive_hyphens": False, "escape": True}
    off = dict.fromkeys(("source_language", "truecasing", "compounds", "subwords"))
    lengths = {"minimum_words": 1, "maximum_words": 100, "maximum_ratio": 2.0, "ratio_slack": 10}
    usual = {"junk": {"maximum_share": 0.1, "maximum_lines": 0.1}, "identical": False, "language": None, **lengths}
    settings = {**on, **off, "target_language": "de", "filters": {**usual, "duplicates": False}}
    assert PreparationConfig(target_language="de").to_mapping() == settings
    assert LanguageConfig().to_mapping() == {"certainty": 0.9, "minimum_letters": 20, "candidates": None}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            "#version: 0.2\na b\nc\n",
            r"codes:3: not a file of merge operations .*; expected what 'nmt-core prepare corpus'",
        ),
        ("#version: 9\na b\n", r"codes:1: not a file of merge operations"),
    ],
)
def test_what_is_no_file_of_merges_says_where(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / "codes").write_text(content)
    with pytest.raises(InputError, match=problem):
        Bpe(ModelFile.read(str(tmp_path / "codes")))


@pytest.mark.parametrize(
    ("version", "segmented"),
    [("", "low low@@ e@@ r"), ("#version: 0.1\n", "low low@@ e@@ r"), ("#version: 0.2\n", "lo@@ w low@@ e@@ r")],
)
def test_merges_without_a_version_are_those_of_the_first(tmp_path: Path, version: str, segmented: str) -> None:
    """subword-nmt wrote none before 0.2, since when the end of a word belongs to its last letter."""
    pytest.importorskip("subword_nmt")
    (tmp_path / "codes").write_text(f"{version}l o\nlo w\n")
    assert Bpe(ModelFile.read(str(tmp_path / "codes"))).apply("low lower") == segmented


@pytest.mark.parametrize("length", [101, 20_000])
def test_what_is_too_long_for_a_word_teaches_no_morphs(text: Path, tmp_path: Path, length: int) -> None:
    """It would take more than quadratic time, and a model that could not be read again."""
    pytest.importorskip("morfessor")
    for name, content in (("plain", text.read_text()), ("more", text.read_text() + "talo" * (length // 4 + 1) + "\n")):
        (tmp_path / name).write_text(content)
        learn_subwords(MorfessorConfig(), [str(tmp_path / name)], str(tmp_path / f"{name}.model"))
    assert (tmp_path / "more.model").read_bytes() == (tmp_path / "plain.model").read_bytes()
