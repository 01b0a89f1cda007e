"""Nothing but the generator reads the parameters that make probabilities of readouts; no tensor is found by a name."""

from __future__ import annotations

import ast
import re
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


LOOKUPS = {"get_submodule", "get_parameter", "get_buffer"}


def names_asked_for(tree: ast.AST) -> Iterator[int]:
    """The lines that find a module or a tensor by its name, or look at what the name of a field is like."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) if name in LOOKUPS:
                yield node.lineno
            case ast.Compare(left=ast.Constant(), comparators=[ast.Attribute(value=ast.Name(id="field"), attr="name")]):
                yield node.lineno
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="field"), attr="name"))):
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr="startswith"), args=[ast.Constant(value=str(name))]):
                if re.fullmatch(r"\w+\.", name):
                    yield node.lineno
            case ast.Subscript(slice=ast.Constant(value=str(name))) if name.endswith((".weight", ".bias")):
                yield node.lineno


def test_nothing_finds_a_tensor_by_a_name() -> None:
    """Importers of foreign models name the tensors that they make."""
    paths = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent.name != "foreign"]
    found = [
        f"{path.relative_to(PACKAGE)}:{line}" for path in paths for line in names_asked_for(ast.parse(path.read_text()))
    ]
    assert not found


def test_names_that_are_looked_for_would_be_found() -> None:
    tries = [
        'model.get_submodule("source_embedding")',
        '"_BS" in field.name',
        'field.name.endswith("_BS")',
        'name.startswith("controller.")',
        'given["language.target_embedding.weight"]',
    ]
    assert all(list(names_asked_for(ast.parse(line))) for line in tries)
