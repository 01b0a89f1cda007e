"""Values of options that argparse does not check by itself, and what help says of them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from smt_bridge.commands import graph
from smt_bridge.commands.add_features import _named_input
from smt_bridge.commands.main import main
from smt_bridge.commands.options import FeatureSpec


@pytest.mark.parametrize("text", ["0", "-1", "nan", "1e9", "x"])
def test_a_time_is_a_number_of_seconds(text: str, error_line: Callable[..., str]) -> None:
    line = error_line(main, ["translate", f"--moses-timeout={text}"]).removesuffix(
        " ('smt-bridge translate --help' explains)"
    )
    assert line.endswith(f"--moses-timeout: expected a number of seconds above 0, found {text!r}")


def test_a_list_may_have_a_name_unless_it_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert _named_input("a1=x=y") == ("a1", "x=y")
    assert [_named_input(text) for text in ("1a=x", "a=", "a_b=x")] == [("", "1a=x"), ("", "a="), ("", "a_b=x")]
    Path("a1=x=y").touch()
    assert _named_input("a1=x=y") == ("", "a1=x=y")


def test_the_file_of_a_feature() -> None:
    specs = {"kenlm:a:b": "a:b", "nmt:runs/search": "runs/search", "wordcount": "", "mbrbleu:posterior": ""}
    assert {spec: FeatureSpec(spec).path for spec in specs} == specs


def test_help_names_the_defaults_of_each_use() -> None:
    """Which are not those of the parser."""
    parser = argparse.ArgumentParser()
    graph.add_arguments(parser)
    said = {action.dest: re.findall(r"\((.*?)\)", action.help or "") for action in parser._actions}
    names = ("nbest", "scale", "order", "minimum", "beam", "graph_weight", "gap", "weights")
    expected = ["nbest 100, search 1", "1", "4", "0.001", "12", "1", "1", "the moses.ini's"]
    assert [said[name][-1] for name in names] == expected
