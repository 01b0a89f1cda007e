"""Every model, option and way: lists and scores are the same up to the stated bounds.

``make test-all`` compares all of them. HYBRIDMT_SEED draws other lines.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import nmt_core
from nmt_core import DecodingConfig
from tests.differential.cases import SEARCHES, Case
from tests.differential.comparison import SEED, Comparison
from tests.differential.models import ALL, make
from tests.differential.ties import PlainSearch
from tests.nmt_core.serving.conftest import servers

SEARCHES_OF_A_MODEL = 6  # drawn: another seed draws others
SOME = ("rnnsearch", "annotated-posunk")


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@contextlib.contextmanager
def served(place: Path, names: Sequence[str]) -> Iterator[str]:
    """The address of a server of these models."""
    named = [part for name in names for part in ("--model", f"{name}={make(place, name)}")]
    with servers() as begin:
        yield begin(*named, "--threads", "1").address


@pytest.fixture(scope="module")
def some(place: Path) -> Iterator[str]:
    """A server of some models."""
    with served(place, SOME) as address:
        yield address


@pytest.fixture(scope="module")
def everything(place: Path) -> Iterator[str]:
    """A server of all models."""
    with served(place, ALL) as address:
        yield address


def compare(comparison: Comparison, cases: Sequence[Case], *, processes: int) -> None:
    """All of it; so many of the searches by processes, too."""
    for number, case in enumerate(cases):
        comparison.search(case, processes=number < processes)
    comparison.scores()
    counts = f"{comparison.combinations} combinations, {len(comparison.problems)} differences"
    print(f"{comparison.name}: {counts}, {len(comparison.ties)} ties")
    assert not comparison.problems, "\n".join(comparison.problems)


def test_the_search_that_finds_ties_is_beam_search(place: Path) -> None:
    model = nmt_core.load_model(make(place, "rnnsearch"), device="cpu", dtype="float64")
    config = DecodingConfig(beam=3, nbest=3, max_length_ratio=1.0, max_length_extra=4)
    for source in ("w1 w2", "w3"):
        search = PlainSearch(model, source, config)
        assert {one.text for one in model.nbest([source], 3, config=config)[0]} <= search.found
        assert search.edge > 1e-5


@pytest.mark.parametrize("name", SOME)
def test_some_ways_of_some_models_agree(place: Path, some: str, tmp_path: Path, name: str) -> None:
    compare(Comparison(place, some, name, tmp_path), SEARCHES[1:2], processes=0)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ALL)
def test_all_ways_of_all_models_agree(place: Path, everything: str, tmp_path: Path, name: str) -> None:
    comparison = Comparison(place, everything, name, tmp_path)
    cases = list(comparison.cases())
    drawn = random.Random(f"{SEED} {name}").sample(cases, min(SEARCHES_OF_A_MODEL, len(cases)))
    compare(comparison, drawn, processes=1)
