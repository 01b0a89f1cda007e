"""Messages: what files hold is shown, never obeyed."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.messages import first_line, say, show
from nmt_core.commands.main import main as nmt_core
from smt_bridge.commands.main import main as smt_bridge
from smt_bridge.report.page import text

ATTACK = "\x1b]0;title\x07\x1b[2J\u202e\x9b31m\r\udcff"


def test_what_a_terminal_obeys_is_escaped() -> None:
    assert show(ATTACK) == r"\x1b]0;title\x07\x1b[2J\u202e\x9b31m\r\xff"
    assert show("Größe 日本 a\u200db\u00a0c") == "Größe 日本 a\u200db\u00a0c"
    marks_and_tags = "\u061c\u200e\u200f\ufeff\ufffe\uffff\U000e0000\U000e007f"
    assert show(marks_and_tags) == r"\u061c\u200e\u200f\ufeff\ufffe\uffff\ue0000\ue007f"


def test_all_controls_and_marks_of_direction_are_escaped() -> None:
    of_direction = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    for character in map(chr, range(sys.maxunicode + 1)):
        obeyed = unicodedata.category(character) in ("Cc", "Zl", "Zp", "Cs")
        if obeyed or unicodedata.bidirectional(character) in of_direction:
            assert show(character).startswith("\\"), ascii(character)


@given(st.text())
def test_nothing_that_is_shown_is_obeyed(content: str) -> None:
    shown = show(content)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    assert show(shown) == shown


def test_names_of_files_and_wrong_options_are_shown(error_line: Callable[..., str], tmp_path: Path) -> None:
    for program, command, shown in (
        (nmt_core, ["prepare", "vocab", str(tmp_path / "\x1b[31mred")], "\\x1b[31mred"),
        (smt_bridge, ["rerank", "--nbest", "a\x1b[2J", "--weights", "w\x1b[2J"], "\\x1b[2J"),
        (nmt_core, ["prepare", "vocab", "--size", "\x1b[31m", "corpus"], "\\x1b[31m"),
    ):
        line = error_line(program, command)
        assert "\x1b" not in line and shown in line


def test_words_of_a_list_are_shown(error_line: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(b"0 ||| a ||| \x1b[31mLM0 ||| 0\n")
    (tmp_path / "weights").write_bytes(b"LM0= 1\n")
    command = ["rerank", "--nbest", str(tmp_path / "list"), "--weights", str(tmp_path / "weights")]
    for kind in ("moses", "\x1b[2J"):
        assert "\x1b" not in error_line(smt_bridge, [*command, "--nbest-format", kind])


def test_pages_show_them_too() -> None:
    assert text("<\x1b[0m>\u202e") == r"&lt;\x1b[0m&gt;\u202e"


class Gone(io.StringIO):
    """A terminal that is not there any more."""

    def write(self, _: str) -> int:
        raise BrokenPipeError


def test_where_nobody_reads_messages_the_work_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (Gone(), closed, None):
        monkeypatch.setattr(sys, "stderr", stream)
        say("anybody there?")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("program", ["nmt_core", "smt_bridge"])
def test_help_to_a_full_disk_is_no_traceback(program: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", program, "--help"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert b"Traceback" not in done.stderr and b"Exception" not in done.stderr


def test_a_message_has_a_length_that_people_read(capsys: pytest.CaptureFixture[str]) -> None:
    say("begin " + "x" * 1_000_000 + " end")
    assert capsys.readouterr().err == f"begin {'x' * 1494} … {'x' * 396} end\n"
    say("x" * 2000)
    assert capsys.readouterr().err == f"{'x' * 2000}\n"


def test_of_a_librarys_error_the_first_line_is_said() -> None:
    assert first_line(RuntimeError("\n\nfirst\nsecond")) == "first"
    assert first_line(RuntimeError("x" * 1000)) == "x" * 200


ONE_LINE = [
    (nmt_core, "prepare vocab text", "1 word covers 100.00 % of 1 running word"),
    (nmt_core, "lexicon --moses lexicon --output new", "1 source word with 1 target word"),
    (
        nmt_core,
        "annotate --scheme posunk --source text --target text --alignment points --source-vocabulary words"
        " --target-vocabulary words --output new",
        "1 pair, 1 target word; 1 of 1 unknown target word with a source word",
    ),
    (
        smt_bridge,
        "add-features --source text --nbest a=list --nbest b=list --output new --quiet",
        "add-features: 1 hypothesis of 1 sentence",
    ),
    (smt_bridge, "filter-table table --sources text --output new", "1 of 1 line kept"),
    (smt_bridge, "doctor --table unsorted", "warning: unsorted: 1 phrase pair comes twice"),
    (smt_bridge, "tune --nbest list --reference text --output new", "1 hypothesis of 1 sentence, 1 feature value,"),
    (smt_bridge, "rerank --nbest list --weights weights --reference text --output new", "on 1 sentence,"),
]


@pytest.mark.parametrize(("program", "command", "expected"), ONE_LINE)
def test_one_line_is_told_as_one(
    program: object,
    command: str,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    table = "a ||| b ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 1 1 1\n"
    texts = {"text": "a\n", "words": "</s>\n<unk>\n", "lexicon": "a a 1\n", "points": "0-0\n", "table": table}
    texts |= {"list": "0 ||| a ||| LM0= 1 ||| 1\n", "weights": "LM0= 1\n", "unsorted": table * 2}
    for name, content in texts.items():
        Path(name).write_text(content)
    assert callable(program)
    program(command.split())
    message = re.sub(r"\r[^\r\n]*\[[^\r\n]*", "", "".join(capfd.readouterr()))  # without bars
    assert expected in message
    assert not re.search(r"\b1 [a-z]*(?:lines|pairs|words|sentences|hypotheses|values|errors|warnings)\b", message)
