"""Small models trained on text of ``nmt-core prepare``, of every kind that it makes."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from nmt_core.commands.main import main

ENGLISH = [
    "The plan\u2019s good.",
    "A man sees the plan.",
    "Men see a dog.",
    "The dog sees the man.",
    "Good dogs! A man.",
    "The men see the dogs.",
]
GERMAN = [
    "Der Aktionsplan ist gut.",
    "Ein Mann sieht den Plan.",
    "Männer sehen einen Hund.",
    "Der Hund sieht den Mann.",
    "Gute Hunde! Ein Mann der Aktion.",
    "Die Männer sehen die Hunde.",
]
NEW = ["The man sees the plan\u2019s dog.", "", "Good men! Dogs see \u201cthe plan\u201d."]

KINDS = {
    "words": "",
    "truecased": "--truecase",
    "bpe": "--truecase --split-compounds target --bpe 30 --set compounds.mark=true",
    "unescaped": "--bpe 40 --set tokenization.escape=false",
    "sentencepiece": "--set subwords.type=sentencepiece --set subwords.size=55 --set tokenization=null",
    "morfessor": "--set subwords.type=morfessor --split-compounds source target",
}


def pipe(arguments: Sequence[str], lines: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines a command writes when it reads ``lines``."""
    output = io.TextIOWrapper(io.BytesIO())
    content = "".join(f"{line}\n" for line in lines).encode()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
        patch.setattr(sys, "stdout", output)
        assert main(list(arguments)) == 0
    return output.buffer.getvalue().decode().split("\n")[:-1]


def make_model(folder: Path, options: str, *, turned: bool = False, **training: object) -> Path:
    """Prepare the corpus in ``folder`` and train a small model on it, to the other direction if ``turned``."""
    (folder / "raw.en").write_text("".join(f"{line}\n" for line in ENGLISH))
    (folder / "raw.de").write_text("".join(f"{line}\n" for line in GERMAN))
    pair = ["--source", str(folder / "raw.en"), "--target", str(folder / "raw.de"), "--quiet"]
    languages = ["--source-language", "en", "--target-language", "de"]
    if not (folder / "data").exists():
        assert (
            main(["prepare", "corpus", *pair, *languages, "--output", str(folder / "data/train"), *options.split()])
            == 0
        )
    sides = [str(folder / f"data/train.{language}") for language in (("de", "en") if turned else ("en", "de"))]
    settings = {
        "folder": str(folder / "model"),
        "model": {"type": "rnnsearch", "hidden": 8, "embedding": 6, "alignment": 5, "maxout": 4, "dropout": 0.0},
        "data": {"source": sides[0], "target": sides[1], "dev_source": sides[0], "dev_target": sides[1]},
        "training": {"optimizer": "adam", "learning_rate": 0.02, "max_updates": 30, "validate_every": 15, **training},
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(settings))
    assert main(["train", str(folder / "run.yaml"), "--quiet"]) == 0
    return folder / "model"
