"""Moses' XML input: what its user guide shows, what is refused, and arbitrary text."""

from __future__ import annotations

import contextlib
import math
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.inference.lines import SourceLine
from nmt_core.inference.moses_xml import XmlMode, parse_xml_line

# The examples of Moses' user guide, "Advanced Features", section "Plugging in translations".
GUIDE = 'das ist <np translation="a cute place">ein kleines haus</np> .'
ALTERNATIVES = 'das ist <n english="dwelling||house" prob="0.8||0.2">haus</n> .'


def test_a_span_gets_its_translation() -> None:
    line = parse_xml_line(GUIDE, mode="exclusive")
    assert line.text == "das ist ein kleines haus ."
    (constraint,) = line.constraints
    assert (constraint.phrases, constraint.log_probs, constraint.required) == (("a cute place",), (), True)
    assert not parse_xml_line(GUIDE, mode="inclusive").constraints[0].required
    assert parse_xml_line(GUIDE, mode="ignore") == SourceLine("das ist ein kleines haus .")


def test_alternatives_have_probabilities() -> None:
    (constraint,) = parse_xml_line(ALTERNATIVES, mode="exclusive").constraints
    assert constraint.phrases == ("dwelling", "house")
    assert constraint.log_probs == pytest.approx((math.log(0.8), math.log(0.2)))


def test_elements_without_a_translation_are_taken_out() -> None:
    text = 'a <s id="1"><np  translation = "x  y" >b</np> c</s> <br/> d'
    line = parse_xml_line(text, mode="exclusive")
    assert line.text == "a b c d"
    assert [one.phrases for one in line.constraints] == [("x y",)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('a <np translation="x">b', "<np> is never closed"),
        ("a b</np>", "</np> closes what was not opened"),
        ('<np translation="x">b</n>', "</n> closes <np>"),
        ("0 2 4 6 8 a < b c d e f g h i j k l",
         "'<' that is no part of a tag, near '2 4 6 8 a < b c d e f g h i j'; in text write &lt;"),
        ("a > b", "'>' that is no part of a tag, near 'a > b'; in text write &gt;"),
        ('<np translation=x>b</np>', "<np> has 'translation=x' where name=\"value\" was expected"),
        ('<np translation="x" translation="y">b</np>', "<np> has an attribute twice"),
        *((f'<np translation="{blank}">b</np>', "<np> has a translation without words") for blank in ("", "x||")),
        ('<np translation="x||y" prob="0.5">b</np>', "<np> has 2 translations and 1 probabilities"),
        *((f'<np translation="x" prob="{prob}">b</np>',
           f"<np> has the probability '{prob}'; expected a number above 0, at most 1")
          for prob in ("1.001", "0", "nan", "x")),
        *((f'<np translation="x"{end} b', "<np> has a translation and has no words") for end in ("></np>", "/>")),
        ('<np translation="x"><n translation="y">b</n></np>',
         "<n> has a translation and is inside of another element with a translation"),
        ('<np translation="x"><s><n translation="y">b</n></s></np>',
         "<n> has a translation and is inside of another element with a translation"),
        *((text, f"<{name}> limits reordering in Moses and means nothing here; take it out, or use --xml-input ignore")
          for name, text in (("wall", "a <wall/> b"), ("zone", "<zone>a b</zone>"))),
        ('<np translation="x" span="0-1">b</np>', "<np> has a span; put the words inside of the element instead"),
        ('<np translation="x">b</np translation="y">', "</np> has attributes"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(text: str, problem: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (its whole message is compared)
        parse_xml_line(text, mode="exclusive")
    assert str(caught.value) == problem


def test_what_means_nothing_here_is_taken_out_where_markup_is_ignored() -> None:
    assert parse_xml_line('a <wall/> <zone>b <n span="0-1">c</n></zone>', mode="ignore") == SourceLine("a b c")
    (constraint,) = parse_xml_line('<n english="x" translation="y" prob="1">b</n>', mode="exclusive").constraints
    assert (constraint.phrases, constraint.log_probs) == (("y",), (0.0,))


@given(
    text=st.text(alphabet='<>/ab="| .np', max_size=40)
    | st.lists(st.sampled_from(["a", " ", '<np translation="x||y">', "</np>", "<n>", "</n>", "<"]), max_size=12).map(
        "".join
    ),
    mode=st.sampled_from(get_args(XmlMode)),
)
def test_any_text_is_a_line_or_an_error(text: str, mode: str) -> None:
    try:
        line = parse_xml_line(text, mode=mode)
    except ValueError:
        return
    assert "<" not in line.text and ">" not in line.text
    assert all(phrase for one in line.constraints for phrase in one.words)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("<" + "a" * 100_000, id="name"),
        pytest.param("<a" + " " * 100_000 + ">b</a>", id="blanks"),
        pytest.param("<a b" + " " * 100_000 + ">c</a>", id="blanks behind a name"),
        pytest.param('<a "' * 30_000, id="quotes"),
    ],
)
def test_long_markup_takes_linear_time(text: str) -> None:
    with contextlib.suppress(ValueError):
        parse_xml_line(text, mode="exclusive")  # seconds; minutes, if the time were quadratic
