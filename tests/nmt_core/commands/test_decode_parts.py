"""``nmt-core decode`` by several workers writes the bytes that one process writes, whatever is stopped or lost."""

from __future__ import annotations

import gzip
import random
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml

from nmt_core.commands.main import main
from nmt_core.inference.commands import options
from nmt_core.inference.commands.decode import DecodeWorker, LineWindow
from nmt_core.jobs.outputs import Result
from nmt_core.model_directory.loaded_model import save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.fake_ray import first_two_lost

WORDS = ["a", "group", "of", "men", "unheard", ""]
LINES, WINDOW = 22, 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and its input."""
    folder = tmp_path_factory.mktemp("decode")
    source = Vocabulary([*SPECIAL_WORDS, *WORDS[:4]])
    target = Vocabulary([*SPECIAL_WORDS, "un", "groupe", "hommes"])
    config = RNNsearchConfig(embedding=4, hidden=5, maxout=4, alignment=3, initialisation="glorot")
    save_model(str(folder / "model"), new_model(config, 6, 5, seed=1), source, target, FolderConfig(model=config))
    generator = random.Random(1)
    lines = ["of a", *(" ".join(generator.choices(WORDS, k=generator.randint(1, 7))) for _ in range(LINES - 1))]
    lines[17] = ""
    (folder / "in").write_text("".join(f"{line}\n" for line in lines))
    return folder


def decode(folder: Path, output: Path, *options: str) -> int:
    places = ["--model", str(folder / "model"), "--input", str(folder / "in"), "--output", str(output)]
    common = ["--device", "cpu", "--window", str(WINDOW), "--search=batch_tokens=12", "--quiet"]
    return main(["decode", *places, *common, *options])


KINDS = {
    "nbest": ("--nbest", "3", "--search=distinct", "--replace-unk", "copy"),
    "scores": ("--scores", "--search=min_length=2"),
    "samples": ("--search=samples=2", "--search=seed=3"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_shards_and_the_rest_are_what_one_process_writes(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    whole = ("--alignments", str(tmp_path / "points"), *KINDS[kind])
    assert decode(folder, tmp_path / "whole", *whole) == 0
    told = capsys.readouterr().err
    parts = ("--alignments", str(tmp_path / "points.gz"), *KINDS[kind])
    assert decode(folder, tmp_path / "parts.gz", *parts, "--shards", "2-3") == 0
    assert not (tmp_path / "parts.gz").exists()
    done = "shards 2-3 are done; when all are, the same command without --shards puts them together\n"
    assert capsys.readouterr().err.endswith(f"decode: {done}")
    assert decode(folder, tmp_path / "parts.gz", *parts, "--jobs", "1", "--restart") == 0
    assert capsys.readouterr().err == told
    for one, other in (("whole", "parts.gz"), ("points", "points.gz")):
        assert gzip.decompress((tmp_path / other).read_bytes()) == (tmp_path / one).read_bytes()
        assert (tmp_path / one).stat().st_size
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parts.gz", "points", "points.gz", "whole"]


def test_a_job_knows_its_batch(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On another card it would be another one, on which last digits depend."""
    places = ["--model", str(folder / "model"), "--input", str(folder / "in"), "--output", str(tmp_path / "out")]
    command = ["decode", *places, "--device", "cpu", "--window", str(WINDOW), "--quiet"]
    for tokens, exit_code in ((12, 0), (13, 2)):
        monkeypatch.setattr(options, "usual_batch_tokens", lambda _, tokens=tokens: tokens)
        assert main([*command, "--shards", "1-1"]) == exit_code
    assert main([*command, "--search=batch_tokens=12"]) == 0


def test_parts_of_another_preparation_of_text_are_refused_before_any_is_made(
    folder: Path, tmp_path: Path, error_line: Callable[..., str]
) -> None:
    """Of the rules in the settings as of tensors; the parts that were made stay."""
    own = Path(shutil.copytree(folder / "model", tmp_path / "model"))
    raw = ("--model", str(own), "--raw")
    assert decode(folder, tmp_path / "out", *raw, "--shards", "1-1") == 0
    made = {path.name: path.read_bytes() for path in tmp_path.glob("*out*")}
    settings = yaml.safe_load((own / "config.yaml").read_text())
    settings["text"]["source_language"] = "it"
    (own / "config.yaml").write_text(yaml.safe_dump(settings))
    for rest in (("--shards", "2-3"), ("--jobs", "1")):
        assert "the job was begun with models translator=" in error_line(decode, folder, tmp_path / "out", *raw, *rest)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*out*")} == made


def test_the_command_without_shards_puts_parts_together(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one process, too: nothing that is done is translated again."""
    assert decode(folder, tmp_path / "whole") == 0
    assert decode(folder, tmp_path / "out", "--shards", "1-2") == 0
    done: list[int] = []
    work = DecodeWorker.__call__

    def noting(worker: DecodeWorker, window: LineWindow) -> Result:
        done.append(window.first // WINDOW)
        return work(worker, window)

    monkeypatch.setattr(DecodeWorker, "__call__", noting)
    assert decode(folder, tmp_path / "out") == 0
    assert done == [2, 3, 4]
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "whole"]


@pytest.mark.parametrize("stream", [False, True])
def test_lost_actors_change_no_byte(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    monkeypatch.setitem(sys.modules, "ray", first_two_lost())
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    whole, found = (("--nbest", "2", "--alignments", str(tmp_path / f"{name}.jsonl")) for name in ("whole", "out"))
    assert decode(folder, tmp_path / "whole", *whole) == 0
    output = Path("/dev/null") if stream else tmp_path / "out"
    assert decode(folder, output, *found, "--engine", "ray", "--jobs", "3") == 0
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert stream or (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--jobs", "2", "--search=distinct"), "--search distinct is for --nbest or --search samples"),
        (("--shards", "1", "--output", "-"), "--shards and --restart need a file as input and another as --output"),
        (("--restart", "--output", "-"), "--shards and --restart need a file as input and another as --output"),
    ],
)
def test_what_does_not_go_together_is_one_line(
    folder: Path, tmp_path: Path, error_line: Callable[..., str], options: Sequence[str], told: str
) -> None:
    assert told in error_line(decode, folder, tmp_path / "out", *options)
    assert not [*tmp_path.iterdir()]


def test_a_bad_line_is_named_by_its_number_in_the_file(
    folder: Path, tmp_path: Path, error_line: Callable[..., str]
) -> None:
    marked = f'<np translation="{"un " * 40}">a</np>'
    (tmp_path / "in").write_text("a\n" * 13 + f"{marked}\na\n")
    options = ("--xml-input", "exclusive", "--input", str(tmp_path / "in"))
    assert "line 14: constraints need 40 words" in error_line(decode, folder, tmp_path / "out", *options, "--restart")
