"""Every reader with its kept inputs and some changes of each; ``python -m tests.fuzz`` gives it millions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fuzz.harness import check, scratch
from tests.fuzz.mutation import mutated
from tests.fuzz.targets import SEEDS, Target, targets

_NAMES = (*sorted(path.name for path in SEEDS.iterdir()), "model-config", "model-parameters", "model-vocabulary")
_MESSAGES = ("training-state", "message-translate", "message-score", "message-rerank", "message-encode")
_CHANGES = 60


@pytest.fixture(scope="module")
def known() -> Iterator[dict[str, Target]]:
    with scratch() as folder:
        yield targets(folder)


@pytest.mark.parametrize("name", [*_NAMES, *_MESSAGES])
def test_a_value_or_one_clear_line(known: dict[str, Target], name: str) -> None:
    target = known[name]
    inputs = [mutated(2, number, target.seeds, target.tokens) for number in range(len(target.seeds) + _CHANGES)]
    outcomes = [check(target, content) for content in inputs]
    assert "value" in outcomes[: len(target.seeds)]  # which are as they were kept


def test_all_readers_have_seeds(known: dict[str, Target]) -> None:
    assert set(known) == {*_NAMES, *_MESSAGES}
    assert all(target.seeds for target in known.values())


def test_the_same_seed_gives_the_same_inputs() -> None:
    first, second = ([mutated(3, n, (b"a b\n1",), (b"x",)) for n in range(99)] for _ in range(2))
    assert first == second
    assert len(set(first)) > 50
