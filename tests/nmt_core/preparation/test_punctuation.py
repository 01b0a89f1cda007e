"""One form for each apostrophe."""

from __future__ import annotations

import pytest

from nmt_core.preparation.steps import Punctuation, PunctuationConfig, Tokenization, TokenizationConfig


@pytest.mark.parametrize("apostrophe", ["'", "\u2019", "\u02bc", "\uff07"])
@pytest.mark.parametrize("text", ["It{0}s fine", "the dogs{0} bones", "{0}tis"])
def test_apostrophes_are_one(apostrophe: str, text: str) -> None:
    step = Punctuation(PunctuationConfig(), "en")
    assert step.apply(text.format(apostrophe)) == text.format("'")


def test_the_tokeniser_sees_no_difference_afterwards() -> None:
    punctuation, tokenization = Punctuation(PunctuationConfig(), "en"), Tokenization(TokenizationConfig(), "en")
    assert tokenization.apply("It\u2019s") != tokenization.apply("It's")
    assert tokenization.apply(punctuation.apply("It\u2019s")) == tokenization.apply("It's") == "It &apos;s"


def test_each_rule_can_be_turned_off() -> None:
    assert Punctuation(PunctuationConfig(moses=False), "de").apply("\u201eIt\u2019s\u201c") == "\u201eIt's\u201c"
    assert Punctuation(PunctuationConfig(apostrophes=False), "de").apply("\u201eja\u201c") == '"ja"'
    assert Punctuation(PunctuationConfig(apostrophes=False, moses=False), "de").apply("a\u2019") == "a\u2019"


def test_an_empty_line_stays_empty() -> None:
    assert Punctuation(PunctuationConfig(), "en").apply("") == ""
