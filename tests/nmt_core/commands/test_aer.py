"""``nmt-core aer``: Och and Ney's measures, by hand and beside their definition."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.commands.main import main
from nmt_core.text.alignment import compared, parse_gold, parse_pharaoh, pharaoh


def run(folder: Path, gold: str, found: str) -> int:
    (folder / "gold").write_text(gold)
    (folder / "found").write_text(found)
    return main(["aer", str(folder / "gold"), str(folder / "found")])


def test_links_are_counted_over_all_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A = 5 links, S = 3; 2 of A are sure and 4 possible: 1 - (2 + 4) / (5 + 3)."""
    assert run(tmp_path, "0-0 1?1 2-2\n\n0-1 0?0\n", "0-0 1-1 2-1\n\n0-0 0-1\n") == 0
    assert capsys.readouterr().out == "AER 0.2500 precision 0.8000 recall 0.6667 links 5 sure 3 pairs 3\n"


def test_the_gold_itself_has_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "0-0 1?1\n", "0-0\n") == 0
    assert capsys.readouterr().out.startswith("AER 0.0000 precision 1.0000 recall 1.0000 ")


@pytest.mark.parametrize(
    ("gold", "found", "problem"),
    [
        (
            "0-0\n1:2\n",
            "0-0\n0-0\n",
            "gold:2: alignment point '1:2': expected SOURCE-TARGET, such as 0-1, or 0?1 for a possible link",
        ),
        ("0-0\n", "0?0\n", "found:1: alignment point '0?0': expected SOURCE-TARGET, such as 0-1"),
        ("0-0\n", "0-0\n1-1\n", "gold:2: has 1 line but "),
        ("0?0\n", "0-0\n", "gold: has no sure links, such as 0-1; without them there is no recall"),
    ],
)
def test_other_files_are_one_line(
    tmp_path: Path, error_line: Callable[..., str], gold: str, found: str, problem: str
) -> None:
    assert problem in error_line(run, tmp_path, gold, found)


POINTS = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)))


@given(POINTS, POINTS, POINTS)
def test_the_rate_is_that_of_the_definition(
    links: set[tuple[int, int]], sure: set[tuple[int, int]], possible: set[tuple[int, int]]
) -> None:
    line = f"{pharaoh(sure)} {pharaoh(possible - sure).replace('-', '?')}"
    counts = compared(parse_pharaoh(pharaoh(links)), parse_gold(line))
    every = sure | possible
    if links or sure:
        rate = 1 - (len(links & sure) + len(links & every)) / (len(links) + len(sure))
        assert counts.error_rate == pytest.approx(rate)
    assert 0 <= counts.error_rate <= 1
    assert counts.precision == (len(links & every) / len(links) if links else 1.0)
    assert counts.recall == (len(links & sure) / len(sure) if sure else 1.0)
