"""`smt-bridge translate --search guidance_weight=W`: what `decode --guidance` makes of posteriors of Moses' lists."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt_core.base.errors import ConfigError
from nmt_core.commands.main import main as nmt_core
from nmt_core.model_directory.loaded_model import load_model
from smt_bridge.commands.main import main
from smt_bridge.hybrid.translator import guidance_of
from smt_bridge.models import check_takes_guidance
from smt_bridge.moses.process import MosesOptions, MosesProcess
from smt_bridge.nbest.entry import NbestEntry, NbestList
from smt_bridge.nbest.formats import read_entries
from smt_bridge.recipe import GuidanceOptions
from tests.prepared_models import KINDS, make_model
from tests.smt_bridge.hybrid.small_hybrid import SOURCE, translate

ADVISED = ["--moses-ini", "moses.ini", "--model", "model", "--lists", "moses:2,nmt:3", "--beam", "4"]
WEIGHT = ["--search", "guidance_weight=20"]


@pytest.mark.parametrize("window", [1, 100])
def test_it_is_what_the_batch_commands_make(
    folder: Path, either_moses: str, window: int, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    options = [*ADVISED, *WEIGHT, "guidance_scale=2", "--input", "dev"]
    assert translate(either_moses, *options, "--output", "out", "--nbest-output", "list", window=window) == 0
    with MosesProcess(MosesOptions(program=either_moses, nbest=2)) as process:
        found = process.translate([line.encode() for line in SOURCE])
    lines = [f"{n} ||| {line.decode()}\n" for n, part in enumerate(found) for line in part or []]
    Path("moses.nbest").write_text("".join(lines))
    capsysbinary.readouterr()
    assert main(["graph", "list-posteriors", "moses.nbest", "--scale", "2"]) == 0
    Path("ngrams").write_bytes(capsysbinary.readouterr().out)
    files = ["--model", "model", "--input", "dev"]
    search = [*files, "--beam", "4", "--search=forbid_unknown", "--device", "cpu", "--quiet"]
    advice = ["--guidance", "ngrams", "--search=guidance_weight=20"]
    assert nmt_core(["decode", *search, *advice, "--output", "expected"]) == 0
    assert nmt_core(["decode", *search, *advice, "--nbest", "3", "--output", "nmt.nbest"]) == 0
    assert nmt_core(["decode", *search, "--output", "free"]) == 0
    assert Path("out").read_bytes() == Path("expected").read_bytes() != Path("free").read_bytes()
    theirs = [entry for entry in read_entries("nmt.nbest") if SOURCE[entry.sentence]]
    for entry, other in zip(read_entries("list"), theirs, strict=True):
        assert (entry.sentence, entry.text) == (other.sentence, other.text)
        assert entry.features["NMT0"] == pytest.approx(other.features["NMT0"], abs=1e-5)
        assert entry.total == pytest.approx(other.total, abs=1e-4)
    assert not Path("list.json").exists()  # nothing to tune with


def test_what_is_hardly_likely_is_no_advice() -> None:
    entries = [NbestEntry(0, text, {}, total, 1) for text, total in ((b"a", 0.0), (b"b", -6.0), (b"c", -7.0))]
    advice = guidance_of({"moses": NbestList(0, entries)}, GuidanceOptions(1.0, (1.0,), 1.0))
    assert advice is not None and sorted(advice.posteriors) == [("</s>",), ("a",), ("b",)]


def test_without_moses_it_is_the_model_alone(
    folder: Path, moses: str, monkeypatch: pytest.MonkeyPatch, capfd, error_line: Callable[..., str]
) -> None:
    search = ["--model", "model", "--beam", "4", "--search=forbid_unknown", "--device", "cpu", "--quiet"]
    Path("text").write_text("ab cd\nab DIE\n\ncd ef\n")
    assert nmt_core(["decode", *search, "--input", "text", "--output", "free"]) == 0
    free = Path("free").read_text().splitlines()
    assert translate(moses, *ADVISED, *WEIGHT, "--input", "text", "--output", "out") == 0
    lines = Path("out").read_text().splitlines()
    assert len(lines) == 4 and lines[1:3] == free[1:3] and lines[0] != free[0]
    assert "line 2 (2 words): Moses ended" in capfd.readouterr().err
    monkeypatch.setenv("FAKE_MOSES", "load-fails")
    error_line(translate, moses, *ADVISED, *WEIGHT, "--input", "text", "--output", "other")
    assert not Path("other").exists()
    assert translate(moses, *ADVISED, *WEIGHT, "--input", "text", "--output", "other", "--degrade") == 0
    assert Path("other").read_text().splitlines() == free
    assert "going on with the neural model alone" in capfd.readouterr().err


def test_a_recipe_translates_alike(folder: Path, moses: str, error_line: Callable[..., str]) -> None:
    options = [*ADVISED, *WEIGHT, "guidance_scale=2", "--moses-options=-tt", "--write-recipe", "advised.json"]
    assert translate(moses, *options, "--input", "dev", "--output", "one", "--nbest-output", "one.nbest") == 0
    recipe = ["--recipe", "advised.json", "--input", "dev"]
    assert translate(moses, *recipe, "--output", "two", "--nbest-output", "two.nbest") == 0
    assert Path("one").read_bytes() == Path("two").read_bytes() != b""
    assert Path("one.nbest").read_bytes() == Path("two.nbest").read_bytes()
    content = json.loads(Path("advised.json").read_text())
    assert content["guidance"] == {"weight": 20.0, "factors": [1.0, 0.6, 0.1, 0.5], "scale": 2.0}
    assert content["moses_options"] == ["-tt"] and content["weights"] is None
    for change, problem in (
        ({"guidance": None}, "has no weights"),
        ({"guidance": content["guidance"] | {"weight": -1.0}}, "guidance.weight"),
        ({"weights": {"NMT0": [1.0]}}, "is a damaged recipe"),
        ({"features": ["wordcount"]}, "(guidance: expected none beside lists that are merged)"),
    ):
        Path("other.json").write_text(json.dumps(content | change))
        assert problem in error_line(translate, moses, "--recipe", "other.json", "--input", "dev", "--output", "no")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([*ADVISED, "--search", "guidance_weight=-1"], "guidance_weight': Input should be greater than or equal to 0"),
        ([*ADVISED, "--search", "guidance_scale=5", "--nbest-output", "l"],
         "--search guidance_scale is for guidance_weight"),
        ([*ADVISED, *WEIGHT, "--feature", "wordcount"],
         "--feature is for lists to tune with; guidance_weight translates without weights"),
        ([*ADVISED, *WEIGHT, "--exact", "WordPenalty0"],
         "--exact is for lists to tune with; guidance_weight translates without weights"),
        ([*ADVISED, "--nbest-output", "l", "--write-recipe", "r"],
         "--write-recipe is for guidance_weight; `smt-bridge tune --recipe` wri"),
        (["--recipe", "r", "--write-recipe", "s"], "--write-recipe and --recipe exclude one another"),
        (["--moses-ini", "i", "--model", "grpc:h:1", *WEIGHT],
         "guidance and graphs need a model of nmt-core, not grpc:h:1"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_with_it(
    folder: Path, moses: str, options: list[str], problem: str, error_line: Callable[..., str]
) -> None:
    assert problem in error_line(translate, moses, *options, "--input", "dev", "--output", "out")
    assert not Path("out").exists()


def test_a_model_of_parts_of_words_follows_words(
    folder: Path, moses: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    (folder / "bpe").mkdir()
    model = str(make_model(folder / "bpe", KINDS["unescaped"]))
    Path("text").write_text("dnuH red theis nnaM .\nnalP nenie eid .\n")  # Moses turns the words round
    options = ["--moses-ini", "moses.ini", "--model", model, "--lists", "moses:1,nmt:3", "--input", "text"]
    assert translate(moses, *options, "--search", "guidance_weight=0", "--output", "free") == 0
    assert translate(moses, *options, "--search", "guidance_weight=50", "--output", "out") == 0
    assert Path("out").read_text() == "Hund der sieht Mann .\nPlan einen die .\n" != Path("free").read_text()


def test_a_model_of_other_parts_of_words_is_refused(folder: Path, moses: str, error_line: Callable[..., str]) -> None:
    (folder / "pieces").mkdir()
    model = str(make_model(folder / "pieces", KINDS["sentencepiece"]))
    line = error_line(translate, moses, "--moses-ini", "moses.ini", "--model", model, *WEIGHT, "--input", "dev")
    assert "writes parts of words without a mark behind each but the last" in line


@pytest.mark.parametrize(
    ("prepared", "is_rejected"),
    [("--split-compounds target", True), ("--bpe 30 --set subwords.sides=[source]", False), ("--bpe 30", False)],
)
def test_parts_of_words_without_marks_are_rejected(tmp_path: Path, prepared: str, is_rejected: bool) -> None:
    model = load_model(str(make_model(tmp_path, prepared, max_updates=1)))
    expected = pytest.raises(ConfigError, match="writes parts of words without a mark behind each but the last")
    with expected if is_rejected else contextlib.nullcontext():
        check_takes_guidance([model])
