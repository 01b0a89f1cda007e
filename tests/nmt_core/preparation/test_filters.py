"""Why a pair is dropped."""

from __future__ import annotations

import sys

import pytest

from nmt_core.base.errors import ConfigError
from nmt_core.preparation.filters import Filters, FiltersConfig, LanguageConfig, LanguageFilter, Reason
from nmt_core.preparation.steps import Side

PAIR: dict[Side, str] = {"source": "en", "target": "de"}
ENGLISH = "A man in a red shirt is standing in front of the house."
GERMAN = "Ein Mann in einem roten Hemd steht vor dem Haus."


def verdict(source: str, target: str, **settings: object) -> Reason | None:
    filters = Filters(FiltersConfig.from_mapping(settings, origin="test"), PAIR)
    return filters.judge([source, target], [source, target])


def words(count: int) -> str:
    return " ".join(["w"] * count)


@pytest.mark.parametrize(
    ("source", "target", "settings", "expected"),
    [
        ("a b", "c", {}, None),
        ("", "c", {}, Reason("empty", "source")),
        ("a", "", {}, Reason("empty", "target")),
        ("a", "", {"minimum_words": 0}, None),
        ("a b", "c", {"minimum_words": 2}, Reason("too short", "target")),
        (words(100), words(100), {}, None),
        (words(101), words(100), {}, Reason("too long", "source")),
        (words(101), words(100), {"maximum_words": None}, None),
        (words(10), words(30), {}, None),
        (words(10), words(31), {}, Reason("length ratio", None)),
        (words(31), words(10), {}, Reason("length ratio", None)),
        (words(31), words(10), {"maximum_ratio": None}, None),
        (words(4), words(2), {"maximum_ratio": 1.5, "ratio_slack": 0}, Reason("length ratio", None)),
        ("a", "a", {}, None),
        ("a", "a", {"identical": True}, Reason("identical sides", None)),
    ],
)
def test_reasons(source: str, target: str, settings: dict[str, object], expected: Reason | None) -> None:
    assert verdict(source, target, **settings) == expected


def test_bytes_that_are_no_text() -> None:
    filters = Filters(FiltersConfig(), PAIR)
    assert filters.decode([b"fine\r", "\u00e4".encode()]) == ["fine", "\u00e4"]
    assert filters.decode([b"fine", b"\xe4"]) == Reason("not UTF-8", "target")
    assert filters.decode([b"\x00\x01", b"fine"]) == Reason("characters that are no text", "source")


def test_another_language() -> None:
    pytest.importorskip("py3langid")
    assert verdict(ENGLISH, GERMAN, language={}) is None
    assert verdict(GERMAN, GERMAN, language={}) == Reason("another language", "source")
    assert verdict(ENGLISH, ENGLISH, language={}) == Reason("another language", "target")
    assert verdict("Haus", "house", language={}) is None, "too short to tell"
    assert verdict(ENGLISH, ENGLISH, language={"candidates": ["fr"]}) == Reason("another language", "target")


def test_a_language_that_nobody_can_tell_is_a_mistake() -> None:
    pytest.importorskip("py3langid")
    with pytest.raises(ConfigError, match="'qq'"):
        LanguageFilter(LanguageConfig(), {"target": "qq"})


def test_an_absent_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    with pytest.raises(ConfigError, match=r"pip install 'hybridmt\[prepare\]'"):
        LanguageFilter(LanguageConfig(), {"target": "de"})
