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
    """They are not the parser's."""
    parser = argparse.ArgumentParser()
    graph.add_arguments(parser)
    said = {action.dest: re.findall(r"\((.*?)\)", action.help or "") for action in parser._actions}
    names = ("nbest", "scale", "order", "minimum", "beam", "graph_weight", "gap", "weights")
    expected = ["nbest 100, search 1", "1", "4", "0.001", "12", "1", "1", "the moses.ini's"]
    assert [said[name][-1] for name in names] == expected


SAID = {
    "rescore-table": [
        "p(target|source) by --scorer; six digits, at least 1e-43 p(source|target) by --reverse-scorer",
        "exp(unknown) with --unknown-count: e to the number of target words unknown to the model",
        "rules without source words get 1. A table is one of rules if both sides of each of its first 100 lines end in",
        "undo &apos; and the like before scoring",
    ],
    "wire": ["Start weights are 0.2 for probabilities and 0 for exp(unknown)", "a table with glue-grammar in its path"],
    "filter-table": ["with a word or more in the place of each non-terminal; rules of glue grammars always do"],
    "add-features": [
        "NMT0= NMT1= ... log p(hypothesis | source), one per --scorer NMTreverse0= ... log p(source | hypothesis),",
        "KENLM0= KenLMoov0= log p(hypothesis) with sentence boundaries, and unknown words, of --lm",
        "InNmt0 (1 where it has the hypothesis), FirstNmt0 (1 for its best) and RankNmt0 (1/place)",
    ],
    "build-lm": ["discounts 0.5, 1, 1.5 for counts 1, 2, 3 where they cannot be estimated"],
    "doctor": ["Exit code 0 without errors, 1 with some, 2 when a file cannot be read at all"],
    "new": ["DIR gets three settings files and a Makefile", "(small for little text or time, or medium)"],
    "rerank": ["95 % confidence intervals and p-values against the best system alone"],
    "tune-loop": ["hypotheses a sentence and round (100)", "most rounds (25)"],
}


@pytest.mark.parametrize("command", SAID)
def test_help_says_what_other_tests_hold(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert [said for said in SAID[command] if said not in shown] == []
