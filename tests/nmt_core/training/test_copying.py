"""Training on annotated text: exact resumption, development sets of plain text, the lexicon in the folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main
from nmt_core.model_directory.loaded_model import load_model
from tests.model_files import open_pair_scorer
from tests.searching import open_translator


@pytest.fixture(params=["posunk", "posall"])
def settings(request: pytest.FixtureRequest, runs) -> dict[str, object]:
    """The settings of a run of the scheme beyond the usual."""
    words = "".join(f"{word}\n" for word in ["</s>", "<unk>", *(f"w{number}" for number in range(7))])
    Path(runs.file("words")).write_text(words)
    Path(runs.file("lex")).write_text("".join(f"w{number} w{number} 1.0\n" for number in range(12)))
    sides = ("source", "s"), ("target", "t"), ("alignment", "align")
    files = [part for key, name in sides for part in (f"--{key}", runs.file(f"train.{name}"))]
    vocabularies = ["--source-vocabulary", runs.file("words"), "--target-vocabulary", runs.file("words")]
    assert main(["annotate", "--scheme", request.param, *files, *vocabularies, "--output", runs.file("read")]) == 0
    data = {
        **{side: runs.file(f"read.{side}") for side in ("source", "target")},
        **{f"{side}_vocabulary": runs.file(f"read.{side}.vocab") for side in ("source", "target")},
        "dev_alignment": runs.file("dev.align"),
        "lexicon": runs.file("lex"),
    }
    return {"others": {"copying": request.param}, "data": data}


def test_a_run_resumes_exactly_and_measures_plain_text(
    runs, error_line: Callable[..., str], settings: dict[str, object]
) -> None:
    runs.assert_resumes_exactly(updates=18, **settings)
    loaded = load_model(runs.file("whole"))
    assert loaded.copying is not None
    assert loaded.lexicon is not None
    kept = json.loads(Path(runs.file("whole/training.json")).read_text())["kept"]
    lines = [Path(runs.file(f"dev.{side}")).read_text().splitlines() for side in ("s", "t", "align")]
    points = [[(int(one), int(other)) for one, other in (p.split("-") for p in line.split())] for line in lines[2]]
    pairs = [
        SentencePair(source, " ".join(loaded.copying.read_target(source.split(), target.split(), links)))
        for source, target, links in zip(*lines[:2], points, strict=True)
    ]
    scores = open_pair_scorer([runs.file("whole")]).score(pairs, annotated=True)
    words = sum(len(pair.target.split()) + 1 for pair in pairs)
    assert -sum(score.log_prob for score in scores) / words == pytest.approx(kept["nats_per_word"], abs=1e-5)
    (found, *_) = open_translator([runs.file("whole")]).translate([lines[0][0]])
    assert not any("<" in word for word in found[0].words)
    for name, content, what in (("lex", "w1 w1 0.5\n", "lexicon"), ("dev.align", "0-0\n" * 12, "development set")):
        before = Path(runs.file(name)).read_text()
        Path(runs.file(name)).write_text(content)
        assert f"the {what} is another, since the content of a file changed" in error_line(runs.go_on, "whole")
        Path(runs.file(name)).write_text(before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["copying=null"], "data.dev_alignment is for annotated text"),
        (["data.target_vocabulary={words}"], "the target vocabulary lacks <"),
        (["copying=unkpos"], "'copying': "),
    ],
)
def test_what_a_run_cannot_do_is_one_line(
    runs, error_line: Callable[..., str], settings, options: list[str], message: str
) -> None:
    runs.write("run", **settings, max_updates=2)
    assert message in error_line(runs.go_on, "run", *(option.format(words=runs.file("words")) for option in options))
