"""Lists of several systems become one list in which nothing is lost and no ranking changes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smt_bridge.errors import FormatError
from smt_bridge.moses_lines import phrase_of
from smt_bridge.nbest.entry import NbestEntry, NbestList, format_entry
from smt_bridge.nbest.merge import ExactValue, layout, merged, side_by_side
from smt_bridge.nbest.moses import parse_entry

MOSES = """0 ||| the house ||| LM0= -5 TM0= -1 -2 ||| -3 ||| 0-0
0 ||| the  home ||| LM0= -6 TM0= -1 -3 ||| -4
0 ||| a house ||| LM0= -9 TM0= -4 -3 ||| -6
2 ||| yes ||| LM0= -2 TM0= 0 0 ||| -1
"""
NMT = """0 ||| a house ||| NMT0= -1.5 ||| -0.5
0 ||| the home ||| NMT0= -2 ||| -0.7
0 ||| one house ||| NMT0= -4 ||| -1.5
1 ||| no ||| NMT0= -1 ||| -0.5
"""


def lists_of(text: str) -> list[NbestList]:
    groups: dict[int, NbestList] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        entry = parse_entry(line.encode(), path="list", number=number)
        groups.setdefault(entry.sentence, NbestList(entry.sentence, [])).entries.append(entry)
    return list(groups.values())


def merge(*named: tuple[str, str], exact: Mapping[str, ExactValue] = MappingProxyType({})) -> list[NbestEntry]:
    lists = {name: lists_of(text) for name, text in named}
    columns = layout({name: found[0].entries[0] for name, found in lists.items()})
    paths = {name: f"{name}.nbest" for name in lists}
    rows = []
    for sentence, groups in side_by_side({name: iter(found) for name, found in lists.items()}):
        entries = merged(sentence, groups, columns, paths=paths, exact=exact)
        read = [parse_entry(format_entry(one), path="merged", number=sentence + 1) for one in entries]
        assert entries == [one._replace(original=None) for one in read]
        rows += entries
    return rows


def test_the_union_in_order_each_text_once() -> None:
    rows = merge(("moses", MOSES), ("nmt", NMT))
    assert [(row.sentence, row.text) for row in rows] == [
        (0, "the house"),
        (0, "the home"),
        (0, "a house"),
        (0, "one house"),
        (1, "no"),
        (2, "yes"),
    ]
    assert len({tuple(row.features) for row in rows}) == 1 and {row.total for row in rows} == {None}


def test_columns_are_less_the_systems_own_first() -> None:
    rows = merge(("moses", MOSES), ("nmt", NMT))
    house, home, a_house, one_house, no, yes = (row.features for row in rows)
    assert house["LM0"] == (0.0,)
    assert home["LM0"] == (-1.0,)
    assert a_house["TM0"] == (-3.0, -1.0)
    assert home["TotalMoses0"] == (-1.0,)
    assert [row["InMoses0"][0] for row in (house, home, a_house, one_house, no, yes)] == [1, 1, 1, 0, 0, 1]
    assert [row["RankNmt0"][0] for row in (house, home, a_house, one_house)] == pytest.approx([0, 0.5, 1, 1 / 3])
    assert [row["FirstNmt0"][0] for row in (house, home, a_house, one_house)] == [0, 0, 1, 0]
    assert house["NmtNMT0"] == (-2.5,)  # not listed: as the worst of the list, -4 less -1.5
    assert one_house["LM0"] == (-4.0,)
    assert one_house["TM0"] == (-3.0, -1.0)
    assert no["LM0"] == (0.0,)  # a gap decides nothing
    assert yes["NmtNMT0"] == yes["TotalNmt0"] == yes["InNmt0"] == (0.0,)


def test_values_that_can_be_computed_are() -> None:
    rows = merge(("moses", MOSES), ("nmt", NMT), exact={"LM0": lambda text: -float(text.count("o"))})
    assert rows[3].text == "one house"
    assert rows[3].features["LM0"] == (-2.0 - -1.0,)  # "the house" is computed, too: a list may count otherwise
    assert rows[2].features["LM0"] == (-4.0,)  # what Moses said itself is kept
    assert rows[4].features["LM0"] == (0.0,)  # nothing to be compared with


def test_equal_names_are_told_apart() -> None:
    rows = merge(("moses", MOSES), ("old", MOSES.replace("LM0= -9", "LM0= -7")))
    assert [(row.features["LM0"], row.features["OldLM0"]) for row in rows if row.text == "a house"] == [((-4,), (-2,))]
    rows = merge(("nmt", NMT), ("old", MOSES), exact={"OldLM0": lambda text: -float(text.count("o"))})
    assert [row.features["OldLM0"] for row in rows if row.text == "one house"] == [(-2.0 - -1.0,)]


def test_of_several_derivations_the_best_counts() -> None:
    twice = "0 ||| a ||| X= 1 ||| -2\n0 ||| b ||| X= 2 ||| -3\n0 ||| b ||| X= 5 ||| -1\n0 ||| b ||| X= 9 ||| -4\n"
    rows = merge(("moses", twice))
    assert [(row.text, row.features["X"]) for row in rows] == [("a", (0.0,)), ("b", (4.0,))]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("2 ||| x ||| LM0= -1 ||| -1", "feature TM0 has 0 values here and 2 in the first line of moses"),
        ("2 ||| x ||| LM0= -1 -2 TM0= 0 0 ||| -1", "feature LM0 has 2 values here and 1 in the first line of moses"),
        ("2 ||| x ||| LM0= -1 TM0= 0 0 New0= 3 ||| -1",
         "feature New0 has 1 value here and 0 in the first line of moses"),
        ("2 ||| x ||| LM0= -1 TM0= 0 0", "this line has no total but the first line of moses has"),
    ],
)  # fmt: skip
def test_a_line_of_another_list_is_refused(line: str, problem: str) -> None:
    with pytest.raises(FormatError) as caught:
        merge(("moses", MOSES + line + "\n"))
    assert str(caught.value) == f"moses.nbest:5: {problem}; are these two lists?"


def test_of_a_list_without_totals_the_last_is_the_worst() -> None:
    """The systems' names are capitalised, no more."""
    rows = merge(("a", "0 ||| x ||| X= 5\n0 ||| y ||| X= 9\n0 ||| z ||| X= 7\n"), ("myOwn", "0 ||| w ||| Y= 1\n"))
    assert rows[3].features["X"] == (2.0,)
    assert list(rows[3].features)[4:] == ["MyOwnY", "InMyOwn0", "FirstMyOwn0", "RankMyOwn0"]
    with pytest.raises(FormatError, match=r"^a.nbest:2: a total here but not in the first line of a; are these two l"):
        merge(("a", "0 ||| x ||| X= 5\n0 ||| y ||| X= 9 ||| 1\n"))


def test_a_text_that_would_end_its_field_is_refused() -> None:
    first = lists_of("0 ||| a ||| X= 1\n")[0].entries[0]
    group = NbestList(0, [first._replace(hypothesis=b"a ||| b", line=4)])
    with pytest.raises(FormatError, match=r"^path:4: the text holds '\|\|\|', which separates fields in the output$"):
        merged(0, {"a": group}, layout({"a": first}), paths={"a": "path"}, exact={})


def test_names_that_would_clash_are_refused() -> None:
    first = lists_of("0 ||| a ||| TotalB0= 1 ||| 2\n")[0].entries[0]
    with pytest.raises(ValueError, match=r"^two columns would be called TotalB0; give the lists other names$"):
        layout({"a": first, "b": lists_of("0 ||| a ||| X0= 1 ||| 2\n")[0].entries[0]})


WORDS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3).map(" ".join)
ROWS = st.lists(st.tuples(WORDS, st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=6)


def as_text(rows: list[tuple[str, int, int]], name: str) -> str:
    return "".join(f"0 ||| {text} ||| {name}= {value} ||| {total}\n" for text, value, total in rows)


@given(ROWS, ROWS, st.integers(-3, 3))
def test_centring_changes_no_choice_within_a_system(
    first: list[tuple[str, int, int]], second: list[tuple[str, int, int]], weight: int
) -> None:
    rows = merge(("a", as_text(first, "A")), ("b", as_text(second, "B")))
    best: dict[str, tuple[int, int]] = {}
    for text, value, total in first:
        if text not in best or total > best[text][1]:
            best[text] = (value, total)
    within = {row.text: weight * row.features["A"][0] for row in rows if row.features["InA0"] == (1.0,)}
    own = {text: weight * value for text, (value, _) in best.items()}
    offset = own[first[0][0]]
    assert within == {text: value - offset for text, value in own.items()}
    assert {row.text for row in rows} == {text for text, _, _ in (*first, *second)}


@given(ROWS, ROWS)
def test_indicators_of_a_half_choose_its_first(
    first: list[tuple[str, int, int]], second: list[tuple[str, int, int]]
) -> None:
    rows = merge(("a", as_text(first, "A")), ("b", as_text(second, "B")))
    assert max(rows, key=lambda row: row.features["FirstA0"]).text == first[0][0]
    assert max(rows, key=lambda row: row.features["FirstB0"]).text == second[0][0]
    swapped = merge(("b", as_text(second, "B")), ("a", as_text(first, "A")))
    alike = [{row.text: sorted(row.features.values()) for row in found} for found in (rows, swapped)]
    assert alike[0] == alike[1]


def test_text_is_compared_by_words() -> None:
    entry = parse_entry(b"0 |||  a \t b\xc2\xa0c ||| X= 1", path="x", number=1)
    assert phrase_of(entry.hypothesis) == b"a b\xc2\xa0c"
