"""Nothing but the generator reads the parameters that make probabilities of readouts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "nmt_core"
OWNERS = {"output", "generator"}
PARAMETERS = {"weight", "bias", "low_rank"}


def reaches(tree: ast.AST) -> Iterator[int]:
    """The lines that read a parameter of an output layer, or find it by its name."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Attribute(attr=owner) | ast.Name(id=owner), attr=name):
                if owner in OWNERS and name in PARAMETERS:
                    yield node.lineno
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=name), *_]):
                if name in OWNERS:
                    yield node.lineno


def test_nothing_reads_the_parameters_of_the_generator() -> None:
    paths = sorted(PACKAGE.rglob("*.py"))
    found = [f"{path.relative_to(PACKAGE)}:{line}" for path in paths for line in reaches(ast.parse(path.read_text()))]
    assert not found


def test_what_is_looked_for_would_be_found() -> None:
    tries = ["model.output.weight[words]", "output.bias", 'getattr(model, "output", None)', "self.generator.low_rank"]
    assert all(list(reaches(ast.parse(line))) for line in tries)
