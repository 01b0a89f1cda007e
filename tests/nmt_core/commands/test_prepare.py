"""``nmt-core prepare`` as it is typed."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt_core.commands.main import main
from nmt_core.preparation.record import Dropped, table

ENGLISH = "The plan\u2019s good.\nA dog.\n\nA dog.\n"
GERMAN = "Der Aktionsplan ist gut.\nEin Hund.\nleer\nEin Hund.\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "raw.en").write_text(ENGLISH)
    (tmp_path / "raw.de").write_text(GERMAN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def prepare(options: str) -> int:
    pair = "--source raw.en --target raw.de --source-language en --target-language de --output out/train"
    return main(["prepare", "corpus", *pair.split(), *options.split()])


def pipe(monkeypatch: pytest.MonkeyPatch, text: str, options: str) -> str:
    """What ``prepare lines`` makes of standard input."""
    output = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text.encode()))))
    monkeypatch.setattr(sys, "stdout", output)
    assert main(["prepare", "lines", "out/preparation.json", *options.split()]) == 0
    return output.buffer.getvalue().decode()


def test_the_account(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare("--deduplicate --truecase --split-compounds --max-words 50") == 0
    assert capsys.readouterr().err.splitlines() == [
        "dropped         lines      %  first",
        "duplicate           1  25.00      4",
        "empty (source)      1  25.00      3",
        "kept                2  50.00",
        "read                4",
    ]
    assert table(123456, 120000, [Dropped(reason="too long", side=None, lines=3456, first_line=1234)]).splitlines() == [
        "dropped     lines      %  first",
        "too long    3,456   2.80  1,234",
        "kept      120,000  97.20",
        "read      123,456",
    ]
    assert table(0, 0, []).splitlines()[1] == "kept         0  -"
    assert (folder / "out/train.de").read_text() == "Der Aktionsplan ist gut .\nEin Hund .\n"
    made = json.loads((folder / "out/preparation.json").read_text())["settings"]
    assert [made["filters"][key] for key in ("maximum_words", "duplicates", "language")] == [50, True, None]
    assert (made["truecasing"], made["compounds"]["sides"], made["subwords"]) == ({"sides": None}, None, None)
    files = "--source raw.en --target raw.de --source-language en --target-language de --output new/train --quiet"
    steps = "--gzip --split-compounds source --bpe 3"
    capsys.readouterr()
    assert main(["prepare", "corpus", *files.split(), *steps.split()]) == 0
    assert capsys.readouterr() == ("", "")
    names = {"compounds.en", "preparation.json", "subwords", "train.de.gz", "train.en.gz"}
    assert {path.name for path in (folder / "new").iterdir()} == names
    made = json.loads((folder / "new/preparation.json").read_text())["settings"]
    assert (made["compounds"]["sides"], made["subwords"]["merges"], made["truecasing"]) == (["source"], 3, None)


def test_a_name_that_the_record_cannot_have_is_refused(folder: Path, error_line: Callable[..., str]) -> None:
    name = "raw\udcff.en"  # a byte that is not UTF-8
    (folder / name).write_text(ENGLISH)
    for source, output, wrong in ((name, "out/train", "raw\\xff.en"), ("raw.en", "out/a\udcff", "a\\xff.en")):
        files = ["--source", source, "--target", "raw.de", "--output", output]
        message = error_line(main, ["prepare", "corpus", *files, "--source-language", "en", "--target-language", "de"])
        problem = "this name is not UTF-8, and preparation.json cannot have it; rename it"
        assert message == f"nmt-core prepare: {wrong}: {problem}"


def test_swapped_sides_are_noticed(folder: Path, error_line: Callable[..., str]) -> None:
    """Both files are in the other side's language; nothing is written. One alone may be a matter of taste."""
    (folder / "raw.en").write_text("The old man walks slowly through the green park.\n" * 20)
    (folder / "raw.de").write_text("Der alte Mann geht langsam durch den grünen Park.\n" * 20)
    swapped = "--source raw.de --target raw.en --source-language en --target-language de --output out/train --quiet"
    line = error_line(main, ["prepare", "corpus", *swapped.split()])
    assert "raw.de is in 'de' and raw.en in 'en': swap --source and --target, or the languages" in line
    assert list((folder / "out").iterdir()) == []
    assert prepare("--quiet") == 0
    same = "--source raw.en --target raw.en --source-language en --target-language de --output again/train --quiet"
    assert main(["prepare", "corpus", *same.split()]) == 0


def test_new_input_and_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert prepare("--quiet") == 0
    raw = "It\u2019s (new).\n\nX\n"
    tokenised = "It &apos;s ( new ) .\n\nX\n"
    assert pipe(monkeypatch, raw, "--side source") == tokenised
    assert pipe(monkeypatch, tokenised, "--side source --reverse") == raw.replace("\u2019", "'")
    source, target, usual = (
        pipe(monkeypatch, "it &apos;s .\n", f"{side} --reverse") for side in ("--side source", "--side target", "")
    )
    assert usual == target != source


def test_settings_from_a_file_and_the_command_line(folder: Path) -> None:
    (folder / "steps.yaml").write_text("tokenization: null\nfilters: {minimum_words: 0, maximum_words: 3}\n")
    assert prepare("--config steps.yaml --set filters.maximum_words=4 --quiet") == 0
    assert (folder / "out/train.en").read_text() == ENGLISH.replace("\u2019", "'")


def test_like_an_earlier_one(folder: Path, monkeypatch: pytest.MonkeyPatch, error_line: Callable[..., str]) -> None:
    assert prepare("--truecase --quiet") == 0
    record = json.loads((folder / "out/preparation.json").read_text())
    record["settings"]["shuffle"] = True  # as versions wrote it that shuffled
    (folder / "out/preparation.json").write_text(json.dumps(record))
    monkeypatch.setattr("nmt_core.preparation.pipeline.are_swapped", lambda *_: False)  # which takes a second
    again = "--source raw.en --target raw.de --like out/preparation.json --output again/train --quiet"
    assert main(["prepare", "corpus", *again.split()]) == 0  # in both languages, on the same sides
    for name in ("train.en", "train.de", "truecasing.en"):
        assert (folder / "again" / name).read_bytes() == (folder / "out" / name).read_bytes()
    mono = "--target raw.de --target-language de --output mono/mono --like out/preparation.json --quiet --deduplicate"
    assert main(["prepare", "corpus", *mono.split(), "--check-language"]) == 0
    filters = json.loads((folder / "mono/preparation.json").read_text())["settings"]["filters"]
    assert filters["language"] == {"certainty": 0.9, "minimum_letters": 20, "candidates": None}
    assert (folder / "mono/truecasing.de").read_bytes() == (folder / "out/truecasing.de").read_bytes()
    assert len((folder / "mono/mono.de").read_text().splitlines()) == 3
    exclusive = "--like and --config exclude one another; --set changes single settings"
    cases = [("--config=steps.yaml", exclusive)]
    for more, key in (("--bpe=3", "subwords"), ("--truecase", "truecasing"), ("--set=compounds={}", "compounds")):
        cases.append((more, f"--like takes {key} from the earlier preparation; only filters can be changed"))
    for more, problem in cases:
        assert error_line(main, ["prepare", "corpus", *mono.split(), more]) == f"nmt-core prepare: {problem}"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--set filters.maximum_word=3", "did you mean 'maximum_words'?"),
        ("--like absent.json", "absent.json: cannot be read"),
        ("--set filters.maximum_ratio=0.5", "filters.maximum_ratio"),
        ("--target-language DE", "prepare: 'target_language': String should match pattern"),
        ("--source-language engl", "prepare: 'source_language': String should match pattern"),
        ("--set filters.junk.maximum_share=1.1", "filters.junk.maximum_share"),
    ],
)
def test_mistakes_are_one_line(folder: Path, error_line: Callable[..., str], options: str, problem: str) -> None:
    assert problem in error_line(prepare, options)
    assert not (folder / "out").exists()
