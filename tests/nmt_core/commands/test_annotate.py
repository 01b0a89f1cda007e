"""``nmt-core annotate``: files, filters, and what it says of input that does not fit."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt_core.commands.main import main
from nmt_core.text.vocabulary import Vocabulary

SOURCE = "the TOLL gate in PONT\n\nA the B B\n"
TARGET = "the GATTER TOLLE de PONTE\n\nX the\n"
PLAIN = "the <unk> gate in <unk>\n\n<unk> the <unk> <unk>\n"
ALIGNMENT = "0-0 1-2 2-1 4-4\n\n1-1 0-0 2-0 3-0\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "s").write_text(SOURCE)
    (tmp_path / "t").write_bytes(gzip.compress(TARGET.encode()))
    (tmp_path / "a").write_text(ALIGNMENT)
    for name, words in (("s.vocab", ["the", "in", "gate"]), ("t.vocab", ["the", "de"])):
        (tmp_path / name).write_text("".join(f"{word}\n" for word in ["</s>", "<unk>", *words]))
    return tmp_path


def annotate(files: Path, *options: str, scheme: str = "posunk", **changed: str) -> int:
    names = {"source": "s", "target": "t", "alignment": "a", "source-vocabulary": "s.vocab"}
    names |= {"target-vocabulary": "t.vocab", "output": "out"} | {k.replace("_", "-"): v for k, v in changed.items()}
    given = [part for key, name in names.items() for part in (f"--{key}", name if name == "-" else str(files / name))]
    return main(["annotate", "--scheme", scheme, *given, *options])


@pytest.mark.parametrize(
    ("scheme", "source", "target"),
    [
        ("posunk", PLAIN, "the <unkpos_-1> <unkpos_1> de <unkpos_0>\n\n<unkpos_-2> the\n"),
        (
            "copyable",
            "the <unk_1> gate in <unk_2>\n\n<unk_1> the <unk_2> <unk_2>\n",
            "the <unk_n> <unk_1> de <unk_2>\n\n<unk_2> the\n",
        ),
        (
            "posall",
            "the <unk> gate in <unk>\n\n<unk> the <unk> <unk>\n",
            "the <p_0> <unk> <p_-1> <unk> <p_1> de <p_n> <unk> <p_0>\n\n<unk> <p_-2> the <p_0>\n",
        ),
    ],
)
def test_files(files: Path, scheme: str, source: str, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The last sentence links X to A once and to B twice, so that it comes from the first B."""
    assert annotate(files, scheme=scheme, output="new.gz") == 0
    assert gzip.decompress((files / "new.source.gz").read_bytes()).decode() == source
    assert gzip.decompress((files / "new.target.gz").read_bytes()).decode() == target
    words = Vocabulary.load(str(files / "new.target.vocab")).words
    assert words[-2:] == ("the", "de")
    assert len(words) == 4 + (16 if scheme != "copyable" else 21)
    output = capsys.readouterr()
    assert output.out == ""
    placed = 3 if scheme == "copyable" else 4
    assert output.err == f"3 pairs, 7 target words; {placed} of 4 unknown target words with a source word\n"


def test_thousands_of_pairs_are_counted(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, line in (("s", "TOLL"), ("t", "PONTE de"), ("a", "0-0")):
        (files / name).write_text(f"{line}\n" * 2001)
    assert annotate(files) == 0
    placed = "2,001 of 2,001 unknown target words with a source word"
    assert capsys.readouterr().err == f"2,001 pairs, 4,002 target words; {placed}\n"
    assert (files / "out.target").read_text() == "<unkpos_0> de\n" * 2001
    words, points = " ".join(f"X{number}" for number in range(22)), " ".join(f"{one}-{one}" for one in range(22))
    for name, line in (("s", words), ("t", words), ("a", points)):
        (files / name).write_text(f"{line}\n")
    assert annotate(files, scheme="copyable") == 0  # 20 types have a number
    placed = "20 of 22 unknown target words with a source word"
    assert capsys.readouterr().err == f"1 pair, 22 target words; {placed}\n"


def test_known_words_come_from_what_they_are_linked_with_most_often(files: Path) -> None:
    for name, lines in (("s", "in gate\ngate\n"), ("t", "de\nde\n"), ("a", "0-0 1-0\n0-0\n")):
        (files / name).write_text(lines)
    assert annotate(files, scheme="posall") == 0
    assert (files / "out.target").read_text() == "de <p_-1>\nde <p_0>\n"


def test_a_text_can_be_its_own_target(files: Path) -> None:
    """As for models that copy."""
    (files / "a").write_text("0-0 1-1 2-2 3-3 4-4\n\n0-0 1-1 2-2 3-3\n")
    assert annotate(files, target="s", output="same") == 0
    expected = "the <unkpos_0> <unkpos_0> <unkpos_0> <unkpos_0>\n\n<unkpos_0> the <unkpos_0> <unkpos_0>\n"
    assert (files / "same.target").read_text() == expected


def test_a_filter(files: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    class Input(io.TextIOWrapper):
        def fileno(self) -> int:
            raise OSError

    monkeypatch.setattr("sys.stdin", Input(io.BufferedReader(io.BytesIO(SOURCE.encode()))))
    assert annotate(files, source="-", output="-") == 0
    lines = capfdbinary.readouterr().out.decode().splitlines()
    assert lines[0] == "the <unk> gate in <unk>\tthe <unkpos_-1> <unkpos_1> de <unkpos_0>"
    assert lines[1] == "\t"
    assert not list(files.glob("out*"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a",
            "0-0\n\n4-1\n",
            "a:3: point 4-1, but the sentences have 4 words and 2; is it the al",
        ),
        ("a", "0-0\n\n0-x\n", "a:3: alignment point '0-x'"),
        ("a", "0-0\n\n", "a:3: has 2 lines but"),
        ("s.vocab", "the\n", "s.vocab:1: a vocabulary begins with </s> and <unk>"),
        ("t.vocab", "the\n", "t.vocab:1: a vocabulary begins with </s> and <unk>"),
    ],
)
def test_input_that_does_not_fit(files: Path, name: str, content: str, message: str, error_line) -> None:
    (files / name).write_text(content)
    assert message in error_line(annotate, files)
    assert not list(files.glob("out*"))


def test_an_output_is_no_input(files: Path, error_line: Callable[..., str]) -> None:
    (files / "x.source").write_text(SOURCE)
    assert "is also read" in error_line(annotate, files, source="x.source", output="x")
    assert (files / "x.source").read_text() == SOURCE
