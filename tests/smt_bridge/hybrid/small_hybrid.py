"""A small neural model, a program that behaves like Moses, and a recipe of both."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nmt_core.model_directory.loaded_model import save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from smt_bridge.commands.main import main
from smt_bridge.moses.weights import format_weights, read_weights
from smt_bridge.recipe import read_recipe, write_recipe

FAKE = Path(__file__).parents[2] / "fake_moses.py"
SOURCE = ["ab cd", "", "cd ef ab", "ef", "ab ab cd ef"]
LISTS = ["--moses-ini", "moses.ini", "--model", "model", "--lists", "moses:2,nmt:3", "--beam", "4"]
GRAPHS = ["--lists", "moses:2,nmt:3,graph:4", "--search", "graph_gap=2"]
COLUMNS = ["--feature", "nmt:model", "--feature", "wordcount", "--exact", "WordPenalty0"]


WEIGHTS = {"NMT0": 0.2, "WordCount0": 0.1, "TotalMoses0": 0.3, "InMoses0": 0.1, "RankNmt0": 0.3}


def fake_moses(folder: Path) -> str:
    """The path of a program."""
    program = folder / "moses"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE} "$@"\n')
    program.chmod(0o755)
    return str(program)


def files(folder: Path) -> None:
    """A model and a development set."""
    config = RNNsearchConfig(embedding=4, hidden=5, maxout=4, alignment=3, initialisation="glorot")
    source = Vocabulary([*SPECIAL_WORDS, "ab", "cd", "ef"])
    target = Vocabulary([*SPECIAL_WORDS, "ba", "dc", "fe", "ab", "cd"])
    model = new_model(config, len(source.words), len(target.words), seed=5)
    save_model(str(folder / "model"), model, source, target, FolderConfig(model=config))
    (folder / "dev").write_text("".join(f"{line}\n" for line in SOURCE))
    (folder / "reference").write_text("dc ba\n\nba fe dc\nfe\nfe dc ba ba\n")


def translate(moses: str, *options: str, window: int = 100) -> int:
    """The exit code; at most ``window`` sentences are translated together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("smt_bridge.hybrid.translate.WINDOW", window)
        return main(["translate", "--moses", moses, "--quiet", "--device", "cpu", *options])


_MADE: dict[object, dict[str, bytes]] = {}
"""The files of recipes that were made from the same files, by the same options."""


def recipe(moses: str, *more: str, name: str = "recipe.json") -> None:
    """Lists of the development set, made with ``more`` options, and weights, in the current folder.

    The weights that tuning finds are replaced: on four sentences they are those of Moses alone, of which few tell.
    """
    before = {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    made_of = (more, name, Path(moses).read_bytes(), os.environ.get("FAKE_MOSES"), frozenset(before.items()))
    if made_of not in _MADE:
        _make_recipe(moses, more, name)
        after = {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}
        _MADE[made_of] = {path: content for path, content in after.items() if before.get(path) != content}
    for path, content in _MADE[made_of].items():
        Path(path).write_bytes(content)
    write_recipe(name, replace(read_recipe(name), moses_program=moses))


def _make_recipe(moses: str, more: tuple[str, ...], name: str) -> None:
    files = ["--input", "dev", "--output", "out", "--nbest-output", "dev.nbest"]
    assert translate(moses, *LISTS, *COLUMNS, *more, *files) == 0
    tuning = ["--reference", "reference", "--tuner", "runs=1", "--recipe", name, "--output", "weights"]
    assert main(["tune", "--nbest", "dev.nbest", *tuning]) == 0
    tuned = read_recipe(name)
    assert tuned.weights == read_weights("weights")
    weights = {column: (WEIGHTS.get(column, 0.0),) * len(values) for column, values in tuned.weights.items()}
    write_recipe(name, replace(tuned, weights=weights))
    Path("weights").write_text(format_weights(weights))
