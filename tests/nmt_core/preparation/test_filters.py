"""Why a pair is dropped."""

from __future__ import annotations

import sys

import pytest

from nmt_core.base.errors import ConfigError
from nmt_core.preparation import filters
from nmt_core.preparation.filters import Filters, FiltersConfig, LanguageConfig, LanguageFilter, Reason
from nmt_core.preparation.steps import Side

PAIR: dict[Side, str] = {"source": "en", "target": "de"}
ENGLISH = "A man in a red shirt is standing in front of the house."
GERMAN = "Ein Mann in einem roten Hemd steht vor dem Haus."


def verdict(source: str, target: str, **settings: object) -> Reason | None:
    judges = Filters(FiltersConfig.from_mapping(settings, origin="test"), PAIR)
    return judges.judge([source, target], [source, target])


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
        (words(101), words(10), {}, Reason("too long", "source")),
        ("", "c c", {"maximum_ratio": 1.0, "ratio_slack": 0}, Reason("empty", "source")),
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
    judges = Filters(FiltersConfig(), PAIR)
    assert judges.decode([b"fine\r", "\u00e4".encode()]) == ["fine", "\u00e4"]
    assert judges.decode([b"fine", b"\xe4"]) == Reason("not UTF-8", "target")
    assert judges.decode([b"x" * 18 + b"\x01\x01", b"fine\r\r"]) == ["x" * 18 + "\x01\x01", "fine\r"]
    assert judges.decode([b"x" * 17 + b"\x01\x01\x01", b""]) == Reason("characters that are no text", "source")
    assert judges.decode([b"\x00\x01", b"fine"]) == Reason("characters that are no text", "source")


def test_another_language() -> None:
    pytest.importorskip("py3langid")
    assert verdict(ENGLISH, GERMAN, language={}) is None
    assert verdict(GERMAN, GERMAN, language={}) == Reason("another language", "source")
    assert verdict(ENGLISH, ENGLISH, language={}) == Reason("another language", "target")
    assert verdict("Haus", "house", language={}) is None, "too short to tell"
    assert verdict(ENGLISH, ENGLISH, language={"candidates": ["fr"]}) == Reason("another language", "target")


def test_a_language_that_nobody_can_tell_is_a_mistake() -> None:
    pytest.importorskip("py3langid")
    problem = "^language identification does not know 'qq'; leave filters.language out$"
    with pytest.raises(ConfigError, match=problem):
        LanguageFilter(LanguageConfig(), {"target": "qq"})


class Identifier:
    """Takes the first word of a line for its language, and the second one for the certainty."""

    labels = ("de", "en", "fr")

    def __init__(self) -> None:
        self.told: list[str] = []

    def set_languages(self, languages: list[str]) -> None:
        self.told = languages

    def classify(self, line: str) -> tuple[str, float]:
        language, certainty, *_ = line.split()
        return language, float(certainty)


def test_a_line_is_of_another_language_from_a_certainty_and_a_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "_open_identifier", Identifier)
    judge = LanguageFilter(LanguageConfig(), {"target": "de"})
    lines = ("fr 0.90 " + "x" * 12, "fr 0.89 " + "x" * 99, "fr 0.99 " + "x" * 11, "de 1.0 " + "x" * 99)
    assert [judge.wrong_side([line]) for line in lines] == ["target", None, None, None]
    chosen = LanguageFilter(LanguageConfig(candidates=("fr",)), PAIR)
    assert isinstance(chosen._identifier, Identifier) and chosen._identifier.told == ["de", "en", "fr"]


def test_sides_are_swapped_where_more_than_four_fifths_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of at least ten lines of at least twenty characters, on both sides."""

    def swapped(right: int, wrong: int, letters: int = 20, sides: dict[Side, str] = PAIR, right_too: int = 0) -> bool:
        counts = {"source": (right + right_too, wrong), "target": (right, wrong)}
        codes = {side: [code] * counts[side][0] + ["fr"] * counts[side][1] for side, code in sides.items()}
        lines = {side: [f"{code} 1 ".ljust(letters, "x") for code in of_side] for side, of_side in codes.items()}
        return filters.are_swapped(lines, sides)

    monkeypatch.setattr(filters, "_open_identifier", Identifier)
    assert swapped(0, 10) and swapped(1, 9)
    assert not any((swapped(0, 9), swapped(0, 10, letters=19), swapped(2, 8), swapped(0, 10, right_too=10)))
    assert not any((swapped(0, 10, sides={"target": "de"}), swapped(0, 10, sides={"source": "en", "target": "xx"})))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert not swapped(0, 10)


def test_an_absent_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    with pytest.raises(ConfigError, match=r"pip install 'hybridmt\[prepare\]'"):
        LanguageFilter(LanguageConfig(), {"target": "de"})
