"""Every model, option and way: lists and scores are the same up to the stated bounds.

``make test-all`` compares all of them. HYBRIDMT_SEED draws other lines.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch

from nmt_core.layers.generator import LinearGenerator
from nmt_core.model_directory.loaded_model import read_model
from tests.differential.cases import SEARCHES, Case
from tests.differential.comparison import SEED, Comparison
from tests.differential.models import ALL, make
from tests.differential.ties import changed_scores
from tests.differential.ways import Lists, decode, read_lists
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


def with_alike_words(place: Path, bonus: float) -> str:
    """A model that writes w30 now and then, and as readily w31, whose logit is larger by ``bonus``."""
    loaded = read_model(make(place, "rnnsearch"))
    generator, (one, other) = loaded.model.generator, loaded.target.encode("w30 w31")
    assert isinstance(generator, LinearGenerator)
    with torch.no_grad():
        generator.weight[other] = generator.weight[one]
        generator.bias[other] = generator.bias[one] + bonus
    loaded.save(folder := str(place / f"alike{bonus}"))
    return folder


@pytest.mark.parametrize("last", ["w3", '<np translation="w9">w3</np>'])
def test_a_tie_is_where_rounding_decides(tmp_path: Path, last: str) -> None:
    (source := tmp_path / "source").write_text("".join(f"w{number} {last}\n" for number in range(9)))
    options = ("--xml-input=exclusive",) if "<" in last else ()
    case = Case("tied", ("--scores", "--search=max_length_ratio=1", "--beam=1", *options))

    def found(folder: str) -> Lists:
        return read_lists(decode(folder, source, tmp_path / "found", *case.options), 9)

    @functools.cache
    def again(draw: int) -> Lists:
        with changed_scores(draw, 1e-5):
            return found(folder)

    folder, nearly, apart = (with_alike_words(tmp_path, bonus) for bonus in (1e-6, -1e-6, 0.2))
    expected = found(folder)
    for other, is_tied in ((nearly, True), (apart, False)):
        comparison = Comparison(tmp_path, "", "rnnsearch", tmp_path)
        comparison.compare(case, "another model", expected, found(other), again)
        assert bool(comparison.ties) is is_tied
        assert bool(comparison.problems) is not is_tied


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
