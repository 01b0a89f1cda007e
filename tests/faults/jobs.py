"""Small jobs of the commands that work for long: what they read, and their command lines."""

from __future__ import annotations

import gzip
import random
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.differential.models import WORDS, make
from tests.smt_bridge.tuning.small_loop import write_system

FAKE_MOSES = Path(__file__).parents[1] / "fake_moses.py"


@dataclass(frozen=True)
class LongJob:
    """``commands`` make ``outputs``, one after the other; ``write`` makes what they read in a folder."""

    write: Callable[[Path, Path], None]
    commands: Sequence[str]
    outputs: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def _texts(seed: int, count: int, words: Sequence[str] = WORDS) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(words, k=chance.randint(1, 6))) for _ in range(count)]


def _lines(texts: Sequence[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


def _model(models: Path, folder: Path) -> None:
    (folder / "model").symlink_to(make(models, "rnnencdec-cho2014"))


_PAIRS = 45_000  # of a table: three shards


def _table(models: Path, folder: Path) -> None:
    _model(models, folder)
    pairs = zip(sorted(_texts(1, _PAIRS)), _texts(2, _PAIRS), strict=True)
    content = "".join(f"{source} ||| {target} ||| 0.5 0.25 ||| 0-0 ||| 1 1 1\n" for source, target in pairs)
    (folder / "table.gz").write_bytes(gzip.compress(content.encode(), 1))


def _list(models: Path, folder: Path) -> None:
    _model(models, folder)
    (folder / "source").write_text(_lines(_texts(3, 1_200)))
    entries = [f"{number // 2} ||| {text} ||| LM0= -{number} ||| -1" for number, text in enumerate(_texts(4, 2_400))]
    (folder / "nbest").write_text(_lines(entries))


def _source(models: Path, folder: Path) -> None:
    _model(models, folder)
    (folder / "source").write_text(_lines(_texts(5, 120)))


def _raw(models: Path, folder: Path) -> None:
    words = ["The", "man's", "dog", "sees", "a", "house.", "Good", "well-known", "dogs!", "3.5"]
    for seed, language in enumerate(("en", "de")):
        (folder / f"raw.{language}").write_text(_lines(_texts(seed, 600, words)))


def _run(models: Path, folder: Path) -> None:
    for name, count in (("train", 240), ("dev", 10)):
        texts = _texts(count, count, WORDS[:12])
        (folder / f"{name}.s").write_text(_lines(texts))
        (folder / f"{name}.t").write_text(_lines([" ".join(reversed(text.split())) for text in texts]))
    sizes = {"type": "rnnsearch", "hidden": 8, "embedding": 6, "alignment": 5, "maxout": 4, "dropout": 0.1}
    files = {"source": "train.s", "target": "train.t", "dev_source": "dev.s", "dev_target": "dev.t"}
    training = {"batch_sentences": 10, "window": 3, "validate_every": 6, "dev_beam": 1, "max_updates": 24}
    settings = {"folder": "run", "model": sizes, "data": files, "training": {**training, "average": 2, "keep_best": 2}}
    (folder / "run.yaml").write_text(yaml.safe_dump(settings))


def _loop(models: Path, folder: Path) -> None:
    write_system(folder)
    program = folder / "moses"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S {FAKE_MOSES} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


_DECODE = "nmt-core decode --model model --device cpu --quiet --input source --output out --beam 4 --nbest 2"
JOBS = {
    "rescore-table": LongJob(
        _table,
        ["smt-bridge rescore-table table.gz --scorer model --output out.gz --jobs 1 --devices cpu --quiet"],
        ["out.gz"],
    ),
    "add-features": LongJob(
        _list,
        [
            "smt-bridge add-features --source source --nbest nbest --scorer model --feature mbrbleu"
            " --output out.gz --jobs 1 --devices cpu --quiet"
        ],
        ["out.gz"],
    ),
    "decode": LongJob(
        _source,
        [
            f"{_DECODE} --window 10 --shards 1-7",
            f"{_DECODE} --window 10 --shards 8-12",
            f"{_DECODE} --window 10",
        ],
        ["out"],
    ),
    "decode --jobs 2": LongJob(_source, [f"{_DECODE} --window 10 --jobs 2"], ["out"]),
    "prepare": LongJob(
        _raw,
        [
            "nmt-core prepare corpus --source raw.en --target raw.de --source-language en --target-language de"
            " --truecase --bpe 30 --deduplicate --output out/train --gzip --quiet"
        ],
        ["out/train.en.gz", "out/train.de.gz"],
    ),
    "train": LongJob(_run, ["nmt-core train run.yaml --resume --quiet --device cpu"], []),
    "tune-loop": LongJob(
        _loop,
        [
            "smt-bridge tune-loop moses.ini --source dev.in --reference dev.ref --working-dir work --output tuned.ini"
            " --moses ./moses --nbest 3 --tuner runs=2 --tuner restarts=3 --quiet"
        ],
        ["tuned.ini"],
        {"FAKE_MOSES": "weighted"},
    ),
}
