"""``score --alignments``: the attention to given targets."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from nmt_core.base.errors import ConfigError
from nmt_core.commands import score
from nmt_core.inference.commands.score import score_files
from tests.nmt_core.commands.test_decode import folder, run

__all__ = ["folder"]


def aligned(folder: Path, name: str, *options: str, model: str = "search") -> list[str]:
    parser = argparse.ArgumentParser()
    score.add_arguments(parser)
    files = [str(folder / "source"), str(folder / "target")]
    places = ["--model", str(folder / model), "--alignments", str(folder / name), "--device", "cpu", "--quiet"]
    assert score_files(parser.parse_args([*places, *options, *files])) == 0
    return (folder / name).read_text().splitlines()


def test_the_alignment_of_a_translation_is_that_of_its_search(folder: Path) -> None:
    found = run(folder, "--alignments", str(folder / "a.jsonl"))
    (folder / "target").write_text("\n".join(found) + "\n")
    of_search = [json.loads(line) for line in (folder / "a.jsonl").read_text().splitlines()]
    forced = [json.loads(line) for line in aligned(folder, "forced.jsonl")]
    for one, other in zip(of_search, forced, strict=True):
        assert one["source"] == other["source"]
        if one["source"] != ["</s>"]:
            assert one["target"] == other["target"]
            for mine, theirs in zip(one["attention"], other["attention"], strict=True):
                assert mine == pytest.approx(theirs, abs=1e-4)
    run(folder, "--alignments", str(folder / "a.points"))
    assert aligned(folder, "forced.points", "--window", "1") == (folder / "a.points").read_text().splitlines()


def test_what_makes_no_sense_is_refused(folder: Path) -> None:
    (folder / "target").write_text("un\n\nun\n")
    with pytest.raises(ConfigError, match="alignments need a model with attention"):
        aligned(folder, "x", model="encdec")
    with pytest.raises(ConfigError) as caught:
        aligned(folder, "x", "--raw")
    assert str(caught.value) == "--alignments has the words of the text; leave out --raw, or prepare the text first"
