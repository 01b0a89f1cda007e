"""What the packages show is what they list: sorted, there, and loaded only when it is used."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from tests.architecture.test_imports_and_help import ROOT, run

PACKAGES = ["nmt_core", "smt_bridge"]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_there(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__all__ == sorted(module.__all__)
    assert set(dir(module)) | {"__version__"} == set(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_see_the_same_names(package: str) -> None:
    module = importlib.import_module(package)
    tree = ast.parse((ROOT / package / "__init__.py").read_text())
    typed = {
        alias.name: node.module
        for branch in tree.body
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed.keys() | {"__version__"} == set(module.__all__)
    for name, home in typed.items():
        assert getattr(importlib.import_module(str(home)), name) is getattr(module, name)
    assert (ROOT / package / "py.typed").exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_package_loads_next_to_nothing(package: str) -> None:
    heavy = "{'torch', 'numpy', 'pydantic', 'yaml', 'sacrebleu', 'grpc'}"
    found = run("-c", f"import sys, {package}; print({heavy} & set(sys.modules))")
    assert found.stdout.strip() == "set()", found.stderr


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'load_modle'"):
        _ = importlib.import_module(package).load_modle


def test_every_name_is_documented() -> None:
    page = Path(ROOT / "docs" / "api.md").read_text()
    for package in PACKAGES:
        module = importlib.import_module(package)
        assert [name for name in module.__all__ if f"`{name}" not in page] == []
