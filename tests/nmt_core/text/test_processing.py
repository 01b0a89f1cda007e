"""Raw text against what Moses' own scripts made of it."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest
import sacremoses

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.base.languages import WITH_RULES, say_if_without_rules
from nmt_core.preparation.settings import PreparationConfig
from nmt_core.text.processing import TextConfig, TextProcessor

pytest.importorskip("sacremoses")


@pytest.fixture(scope="module")
def processor() -> TextProcessor:
    return TextProcessor(TextConfig(source_language="en", target_language="fr"))


def lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return stream.read().split("\n")[:-1]


def test_languages_with_rules_are_those_of_the_library() -> None:
    known = sacremoses.corpus.NonbreakingPrefixes().available_langs.values()
    assert set(WITH_RULES.split()) == {*known, "ja", "ko", "zh"}


@pytest.mark.parametrize("language", ["cz", "tr", "src"])
def test_a_language_without_rules_is_said_once(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The tokeniser takes the rules of English, also for what is no language."""
    say_if_without_rules.cache_clear()
    for _ in range(2):
        TextProcessor(TextConfig(source_language="cs", target_language=language))
    problem = "Moses' tokeniser has no rules for it and uses the English ones (Czech is cs)"
    assert capsys.readouterr().err == f"language '{language}': {problem}\n"


@pytest.mark.parametrize("language", ["pt-BR", "french", "EN"])
def test_no_corpus_is_prepared_in_what_is_no_code(language: str) -> None:
    with pytest.raises(ConfigError, match="target_language"):
        PreparationConfig.from_mapping({"target_language": language}, origin="settings")
    TextConfig(target_language=language)  # a model that was trained so is read


@pytest.mark.parametrize("language", ["en", "fr", "de"])
@pytest.mark.parametrize("split", ["val", "test_2016_flickr"])
def test_as_the_perl_scripts_on_multi30k(shared: Path, language: str, split: str) -> None:
    folder = shared / "data" / "multi30k"
    processor = TextProcessor(TextConfig(source_language=language))
    raw, expected = lines(folder / f"{split}.{language}.gz"), lines(folder / f"{split}.tok.{language}.gz")
    assert [processor.tokenize(line) for line in raw] == expected


def test_detokenised_references_are_the_raw_ones(shared: Path, processor: TextProcessor) -> None:
    folder = shared / "data" / "multi30k"
    raw = [" ".join(line.split()) for line in lines(folder / "val.fr.gz")]
    made = [processor.detokenize(line) for line in lines(folder / "val.tok.fr.gz")]
    different = sum(one != other for one, other in zip(raw, made, strict=True))
    assert different <= len(raw) // 100  # quotation marks that normalisation changed, and the like


def test_escapes_go_in_and_out(processor: TextProcessor) -> None:
    escaped = processor.tokenize_target('a|b [c] <x> & "q" d\'eau')
    assert escaped == "a &#124; b &#91; c &#93; &lt; x &gt; &amp; &quot; q &quot; d&apos; eau"
    assert processor.detokenize("a &#124; b &amp; c d&apos; eau .") == "a | b & c d'eau."


def test_a_quotation_mark_at_the_end_of_a_line_is_that_of_the_perl_script(processor: TextProcessor) -> None:
    """The script exchanges it with the full stop before it only where something follows, such as the line feed."""
    assert processor.tokenize_target('Il dit "oui."') == "Il dit &quot; oui &quot; ."


def test_what_looks_like_an_escape_survives(processor: TextProcessor) -> None:
    assert processor.detokenize(processor.tokenize_target("&lt;")).replace(" ", "") == "&lt;"


def test_without_escapes() -> None:
    plain = TextProcessor(TextConfig(escape=False))
    assert plain.tokenize("it's a|b & c") == "it 's a | b & c"
    assert plain.detokenize("a &amp; b") == "a &amp; b"


def test_hyphens_are_cut_on_demand() -> None:
    assert TextProcessor(TextConfig(aggressive_hyphens=True)).tokenize("a T-shirt") == "a T @-@ shirt"
    assert TextProcessor(TextConfig()).tokenize("a T-shirt") == "a T-shirt"


def test_the_last_full_stop_is_a_word(processor: TextProcessor) -> None:
    assert processor.tokenize("They met Mr. Smith of the U.S.") == "They met Mr. Smith of the U.S ."
    assert processor.tokenize("so ...") == "so ..."
    assert processor.tokenize(".") == "."


def test_punctuation_stays_on_demand() -> None:
    assert TextProcessor(TextConfig(normalize_punctuation=False)).tokenize("\u201eJa\u201c") == "\u201e Ja \u201c"
    assert TextProcessor(TextConfig()).tokenize("\u201eJa\u201c") == "&quot; Ja &quot;"


def test_a_language_is_a_short_name_and_the_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for language in ("ab", "abcdefgh-Latn"):
        assert TextConfig.from_mapping({"source_language": language}, origin="x").source_language == language
    for language in ("a", "abcdefghi", "en_GB", "en-", "../en"):
        with pytest.raises(ConfigError, match=r"^x: 'source_language'"):
            TextConfig.from_mapping({"source_language": language}, origin="x")
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(NmtError, match=r"^raw text needs sacremoses: pip install sacremoses, or give tokenised text$"):
        TextProcessor(TextConfig())


@pytest.mark.parametrize("line", ["", " ", "\u00a0", "\t"])
def test_nothing_stays_nothing(processor: TextProcessor, line: str) -> None:
    assert processor.tokenize(line) == ""
    assert processor.detokenize("") == ""
