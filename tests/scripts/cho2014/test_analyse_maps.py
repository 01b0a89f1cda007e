"""`analyse --vectors`: maps on the page and in the files, and what is refused."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from nmt_core.commands.main import main as nmt_core
from nmt_core.inference.embed import Vectors, source_vectors, word_vectors
from nmt_core.model_directory.loaded_model import load_model
from scripts.experiments.cho2014 import maps
from scripts.experiments.cho2014.__main__ import main
from tests.metadata_files import describe
from tests.scripts.cho2014.test_analyse import Checker
from tests.scripts.cho2014.test_table_study import content

LINES = [(" ".join(words), "x", 0.5, 1, 1, 0.1) for words in sorted(
    [[*"abcd"], [*"dcba"], [*"abce"], [*"abdd"], [*"bbcd"], [*"ccda"], [*"aacde"], [*"edcba"], [*"ab"]]
)]  # fmt: skip

RECORD = {"scores_before": 4, "added": ["p(target|source)"], "signatures": {"scorer": "fake"}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("nmt").write_bytes(content(LINES))
    describe("nmt", RECORD)
    for side, words in (("s", "abcde"), ("t", "xyzuvw")):
        Path(side).write_text("\n".join(["</s>", "<unk>", *words]) + "\n")
    sizes = ["hidden=8", "embedding=4", "maxout=4", "initialisation=glorot"]
    sets = [argument for size in sizes for argument in ("--set", f"model.{size}")]
    assert (
        nmt_core(["init", "model", "--preset", "rnnencdec", "--source-vocab", "s", "--target-vocab", "t", *sets]) == 0
    )
    return tmp_path


@pytest.fixture
def flat(monkeypatch: pytest.MonkeyPatch) -> dict[str, Vectors]:
    """Maps that need no library: the first two numbers; what was to be drawn."""
    seen: dict[str, Vectors] = {}

    def project(texts: Sequence[str], vectors_ND: Vectors, *, perplexity: float, seed: int) -> maps.Map:
        seen.update(zip(texts, vectors_ND, strict=True))
        low, high = vectors_ND.min(), vectors_ND.max()
        return maps.Map(texts, ((vectors_ND[:, :2] - low) / (high - low)).astype(np.float64))

    monkeypatch.setattr(maps, "library", lambda: "by hand 1")
    monkeypatch.setattr(maps, "project", project)
    return seen


def rows(name: str) -> list[dict[str, str]]:
    with open(Path("data") / name, newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_both_maps_are_drawn_of_the_models_own_vectors(folder: Path, flat: dict[str, Vectors]) -> None:
    command = ["analyse", "nmt", "--vectors", "model", "--output", "page.html"]
    assert main([*command, "--data", "data", "--zoom", "b  c d e", "--points", "8"]) == 0
    page = Path("page.html").read_text()
    checker = Checker()
    checker.feed(page)
    assert (checker.open, checker.outside) == ([], [])
    assert "scripts" not in page
    assert "Near “b c d e”" in page
    assert "by hand 1" in page
    assert "<summary>9 phrases, the nearest on the map first</summary><p>b c d e\u00a0· " in page
    long = [line[0] for line in LINES if len(line[0].split()) >= 4]
    assert sorted(row["phrase"] for row in rows("figure5.tsv")) == sorted([*long, "b c d e"])
    assert [row["word"] for row in rows("figure4.tsv")] == [*"abcde"]
    loaded = load_model("model")
    for phrase in long:
        np.testing.assert_allclose(flat[phrase], source_vectors(loaded, [phrase])[0], rtol=0, atol=1e-6)
    for word, vector in list(word_vectors(loaded, "source"))[2:]:
        np.testing.assert_array_equal(flat[word], vector)
    drawings = [ElementTree.fromstring(f"<svg{part.partition('</svg>')[0]}</svg>") for part in page.split("<svg")[1:]]
    drawn = {one.get("aria-label"): len(list(one.iter("circle"))) for one in drawings}
    assert drawn["map of words"] == 5
    assert drawn["map of phrases"] == drawn["near b c d e"] == 9
    neighbours = json.loads(Path("data/claims.json").read_text())["neighbours"]
    assert neighbours["points"] == 9
    assert set(neighbours["phrases"]) == {"last_word", "first_word", "length"}
    assert neighbours["other_order_not_near"] == {"share": 0.0, "pairs": 1}  # all are among the ten nearest
    assert neighbours["bags_of_words"]["length"] == neighbours["phrases"]["length"]
    assert main(["analyse", "nmt", "--vectors", "model", "--output", "target.html", "--side", "target"]) == 0
    assert {*"xyzuvw"} <= flat.keys()
