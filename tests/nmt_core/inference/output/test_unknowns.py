"""What is written instead of ``<unk>``."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.errors import ConfigError
from nmt_core.inference.output.unknowns import RULES, UnknownCounts, UnknownReplacement
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.text.lexicon import Candidate, Lexicon
from nmt_core.text.vocabulary import UNKNOWN, UNKNOWN_ID

Load = Callable[..., LoadedModel]

LEXICON = Lexicon(
    {
        word: (Candidate(translation, 0.9), Candidate("worse", 0.1))
        for word, translation in {
            "cats": "chats",
            "Paris": "Lutèce",
            "1,000": "mille",
            "&quot;": "«",
            "&apos;s": "de",
            "iPod": "baladeur",
        }.items()
    }
)


def looking_at(*columns: int, sources: int) -> np.ndarray:
    """Attention of target words that look at these source columns; the end looks at the end."""
    attention = np.full((len(columns) + 1, sources + 1), 0.01, dtype=np.float32)
    for row, column in enumerate([*columns, sources]):
        attention[row, column] = 0.8
    return attention


@pytest.mark.parametrize(
    ("source", "copy", "lexicon", "lowercase"),
    [
        ("cats", "cats", "chats", "chats"),
        ("Paris", "Paris", "Lutèce", "Paris"),
        ("dogs", "dogs", "dogs", "dogs"),
        ("1,000", "1,000", "1,000", "1,000"),
        ("&quot;", "&quot;", "&quot;", "&quot;"),
        ("&apos;s", "&apos;s", "de", "&apos;s"),
        ("iPod", "iPod", "baladeur", "baladeur"),
        ("Éric", "Éric", "Éric", "Éric"),
        (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    ],
)
def test_rules(source: str, copy: str, lexicon: str, lowercase: str) -> None:
    expected = {"copy": copy, "lexicon": lexicon, "lexicon-lowercase": lowercase}
    assert expected.keys() == RULES.keys()
    for rule, word in expected.items():
        unknowns = UnknownReplacement(rule, None if rule == "copy" else LEXICON)
        found, counts = unknowns.replace([UNKNOWN], [source], looking_at(0, sources=1))
        assert found == (word,)
        assert counts == (UnknownCounts(copied=1) if word == source else UnknownCounts(translated=1))


def test_the_end_of_the_source_is_never_looked_at() -> None:
    attention = looking_at(2, sources=2)
    attention[0, 1] = 0.05
    assert UnknownReplacement().replace([UNKNOWN], ["a", "b"], attention)[0] == ("b",)
    assert UnknownReplacement().replace([UNKNOWN], [], np.ones((2, 1), np.float32)) == ((UNKNOWN,), UnknownCounts())


@given(st.lists(st.sampled_from(["x", UNKNOWN]), max_size=6), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_nothing_but_unknown_words_changes(words: list[str], sources: int, seed: int) -> None:
    attention = np.random.default_rng(seed).random((len(words) + 1, sources + 1), dtype=np.float32)
    source = [f"s{place}" for place in range(sources)]
    found, counts = UnknownReplacement().replace(words, source, attention)
    assert len(found) == len(words)
    for place, (word, other) in enumerate(zip(words, found, strict=True)):
        assert other == (source[int(attention[place, :-1].argmax())] if word == UNKNOWN else word)
    assert counts == UnknownCounts(copied=words.count(UNKNOWN))


@pytest.mark.parametrize(
    ("rule", "lexicon", "message"),
    [
        ("lexicon", None, "the rule lexicon needs a lexicon; make one with 'nmt-core lexicon'"),
        ("copy", LEXICON, "the rule copy uses no lexicon; choose lexicon or lexicon-lowercase, or give none"),
        ("guess", None, "'guess' is no rule for unknown words; there are copy, lexicon, lexicon-lowercase"),
    ],
)
def test_rules_and_lexicons_go_together(rule: str, lexicon: Lexicon | None, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        UnknownReplacement(rule, lexicon)
    assert str(caught.value) == message


def test_counts_are_said_with_their_sum() -> None:
    said = "1,234 unknown words replaced: 1,200 copied, 34 from the lexicon"
    assert str(UnknownCounts(1000, 30) + UnknownCounts(200, 4)) == said
    assert str(UnknownCounts(1)) == "1 unknown word replaced: 1 copied, 0 from the lexicon"


def fond_of_unknown_words(model: LoadedModel) -> LoadedModel:
    model.model.output.bias[UNKNOWN_ID] += 10
    return model


@pytest.mark.parametrize("config", [DecodingConfig(beam=12, nbest=12), SamplingConfig(samples=12)])
@pytest.mark.parametrize("kinds", [["rnnsearch"], ["rnnencdec", "rnnsearch"]])
def test_translations_have_none_left(
    load_tiny: Load, kinds: list[str], config: DecodingConfig | SamplingConfig
) -> None:
    models = [fond_of_unknown_words(load_tiny(kind)) for kind in kinds]
    lines = ["men Zorba men", "", "of a"]
    plain = Translator(models, config=config, attention=True).translate(lines)
    found = Translator(models, config=config, unknowns=UnknownReplacement()).translate(lines)
    assert any(UNKNOWN in one.words for one in plain[0])
    for before, after in zip(itertools.chain(*plain), itertools.chain(*found), strict=True):
        assert (after.log_prob, after.score, len(after.words)) == (before.log_prob, before.score, len(before.words))
        assert UNKNOWN not in after.words
        assert after.text == " ".join(after.words)
        assert after.unknown == UnknownCounts(copied=before.words.count(UNKNOWN))
        if before.words:
            assert after.words == UnknownReplacement().replace(before.words, before.source_words, before.attention)[0]


def test_raw_translations_are_detokenised_after(load_tiny: Load) -> None:
    config = DecodingConfig(beam=12, nbest=12)
    models = [fond_of_unknown_words(load_tiny("rnnsearch"))]
    translator = Translator(models, config=config, unknowns=UnknownReplacement())
    found = translator.translate(["&"], raw=True)[0]
    assert any("&amp;" in one.words for one in found)
    for one in found:
        assert one.text == translator.processor.detokenize(" ".join(one.words))
        assert "&amp;" not in one.text
