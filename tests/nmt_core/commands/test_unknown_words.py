"""``nmt-core lexicon``, and ``nmt-core decode`` with unknown words replaced."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmt_core.commands.main import main
from nmt_core.model_directory.loaded_model import save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.rnnencdec import RNNencdecConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, UNKNOWN_ID, Vocabulary
from tests.nmt_core.arpa import ARPA

F2E = "groupe group 0.75\nla the 0.5\nun group 0.25\nle the 0.5\nbande Zorba 1.0\nNULL the 0.1\n"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two model folders, ``search`` and ``encdec``, that write unknown words alone."""
    folder = tmp_path_factory.mktemp("models")
    source = Vocabulary([*SPECIAL_WORDS, "the", "group", "of", "men"])
    target = Vocabulary([*SPECIAL_WORDS, "un", "groupe", "le", "hommes"])
    for name, kind in (("search", RNNsearchConfig), ("encdec", RNNencdecConfig)):
        sizes = {"alignment": 3} if kind is RNNsearchConfig else {}
        config = kind(embedding=4, hidden=5, maxout=4, **sizes)
        model = new_model(config, 6, 6, seed=1)
        with torch.no_grad():
            model.output.bias[UNKNOWN_ID] = 20.0
        save_model(str(folder / name), model, source, target, FolderConfig(model=config))
    return folder


@pytest.fixture
def decode(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """``decode("--nbest", "3", lexicon=...)``: the lines of output, of standard error, and the exit code."""

    def run(*options: str, lexicon: str | None = None, source: str = "Zorba\n\n1914\n", model: str = "search"):
        (tmp_path / "source").write_text(source)
        arguments = ["--model", str(models / model), "--input", str(tmp_path / "source"), "--device", "cpu"]
        if lexicon is not None:
            (tmp_path / "lex").write_text(lexicon)
            arguments += ["--lexicon", str(tmp_path / "lex")]
        code = main(["decode", *arguments, "--search=max_length_ratio=1", "--quiet", *options])
        output = capsys.readouterr()
        return output.out.split("\n")[:-1], output.err.split("\n")[:-1], code

    return run


def test_decode_writes_what_the_rule_says(decode) -> None:
    plain, _, _ = decode()
    assert set(plain[0].split()) == {"<unk>"}
    for options, word, copied in (
        ({}, "Zorba", None),
        ({"lexicon": F2E}, "bande", False),
        ({"lexicon": F2E}, "Zorba", True),
    ):
        rule = "copy" if copied is None else "lexicon-lowercase" if copied else "lexicon"
        found, messages, code = decode("--replace-unk", rule, **options)
        assert code == 0
        assert [len(line.split()) for line in found] == [len(line.split()) for line in plain]
        assert (set(found[0].split()), found[1], set(found[2].split())) == ({word}, "", {"1914"})
        names, years = (len(line.split()) for line in (found[0], found[2]))
        translated = names if word == "bande" else 0
        total = names + years
        remark = f"{total} unknown words replaced: {total - translated} copied, {translated} from the lexicon"
        assert messages == [f"nmt-core decode: {remark}"]


def test_lists_have_an_entry_per_hypothesis_and_the_scores_they_had(decode) -> None:
    plain, _, _ = decode("--nbest", "5")
    found, _, _ = decode("--nbest", "5", "--replace-unk", "copy")
    fields = [[line.split(" ||| ") for line in lines] for lines in (plain, found)]
    assert len(plain) == len(found) == 11
    for before, after in zip(*fields, strict=True):
        assert [after[0], *after[2:]] == [before[0], *before[2:]]
        word = "Zorba" if after[0] == "0" else "1914"
        assert after[1] == before[1].replace("<unk>", word)


def test_a_language_model_judges_the_words_that_are_written(decode, tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm")
    (tmp_path / "lm.arpa").write_text(ARPA)
    options = ["--nbest", "5", "--lm", f"{tmp_path}/lm.arpa=0.5"]
    lines, _, code = decode(*options, "--replace-unk", "lexicon", lexicon="hommes Zorba 1\n", source="Zorba\n")
    assert code == 0
    model = kenlm.Model(str(tmp_path / "lm.arpa"))
    for line in lines:
        _, text, scores, _ = line.split(" ||| ")
        assert "hommes" in text
        assert "<unk>" not in text
        assert float(scores.split("LM0= ")[1]) == pytest.approx(model.score(text) * math.log(10), abs=1e-4)


def test_bars_that_are_copied_do_not_cut_the_line(decode) -> None:
    (line, *_), _, _ = decode("--nbest", "2", "--replace-unk", "copy", source="|||\n")
    fields = line.split("|||")
    assert len(fields) == 4
    assert "&#124;&#124;&#124;" in fields[1]


@pytest.mark.parametrize(
    ("options", "lexicon", "model", "message"),
    [
        (["--replace-unk", "copy"], None, "encdec", "replacing <unk> needs a model with attention"),
        (["--replace-unk", "lexicon"], None, "search", "the rule lexicon needs a lexicon"),
        (["--replace-unk", "copy"], F2E, "search", "--lexicon is for --replace-unk lexicon"),
        ([], F2E, "search", "--lexicon is for --replace-unk lexicon"),
        (["--replace-unk", "copy", "--search=forbid_unknown"], None, "search", "leave out --search forbid_unknown"),
        (["--replace-unk", "lexicon"], "the le 0.5\ngroup groupe 1\n", "search", "lexicon is of the other direction"),
        (["--replace-unk", "lexicon"], "le the 0.5\nle the\n", "search", "lex:2: expected 'word word probability'"),
        (["--replace-unk", "lexicon"], "le the -0.5\n", "search", "lex:1: -0.5 is not a probability"),
        (["--replace-unk", "lexicon"], "", "search", "lex: is empty"),
    ],
)
def test_decode_says_what_does_not_fit(decode, options: list[str], lexicon: str, model: str, message: str) -> None:
    found, messages, code = decode(*options, lexicon=lexicon, model=model)
    assert code == 2
    assert found == []
    assert len(messages) == 1
    assert message in messages[0]


class TestLexicon:
    """``nmt-core lexicon``."""

    @pytest.fixture
    def files(self, tmp_path: Path) -> Path:
        """``moses``, and ``source``, ``target`` and ``points``."""
        (tmp_path / "moses").write_bytes(gzip.compress(F2E.encode()))
        (tmp_path / "source").write_text("the group\nthe group of men\n")
        (tmp_path / "target").write_text("le groupe\nun groupe d' hommes\n")
        (tmp_path / "points").write_text("0-0 1-1\n1-1 2-2 3-3\n")
        return tmp_path

    def corpus(self, files: Path) -> list[str]:
        return ["--source", str(files / "source"), "--target", str(files / "target")]

    def test_of_moses(self, files: Path, models: Path, capsys: pytest.CaptureFixture[str]) -> None:
        output = files / "out.gz"
        moses = ["lexicon", "--moses", str(files / "moses"), "--model", str(models / "search")]
        assert main([*moses, "--top", "1", "--output", str(output)]) == 0
        expected = ["bande Zorba 1.0000000", "groupe group 0.7500000", "la the 0.5000000"]
        assert gzip.decompress(output.read_bytes()).decode().split("\n") == [*expected, ""]
        assert capsys.readouterr().err == "3 source words with 3 target words\n"
        again = files / "again.gz"
        assert main([*moses[:3], "--top", "1", "--output", str(again)]) == 0
        assert again.read_bytes() == output.read_bytes()
        assert main([*moses, "--minimum-probability", "0.6"]) == 0
        assert capsys.readouterr().out == "bande Zorba 1.0000000\ngroupe group 0.7500000\n"

    def test_of_an_alignment(self, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["lexicon", *self.corpus(files), "--alignment", str(files / "points"), "--null"]) == 0
        assert capsys.readouterr().out.split("\n") == [
            "un NULL 1.0000000",
            "groupe group 1.0000000",
            "hommes men 1.0000000",
            "d' of 1.0000000",
            "NULL the 0.5000000",
            "le the 0.5000000",
            "",
        ]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "give either --moses F, or --source F, --target F and --alignment F"),
            (["--source", "source"], "give either"),
            (["--moses", "moses", "--source", "source", "--target", "target"], "give either"),
            (["--moses", "moses", "--alignment", "points"], "give either"),
            (["--source", "source", "--target", "target"], "give either"),
            (["--moses", "moses", "--minimum-probability", "2"], "expected 0 to 1"),
            (["--moses", "source"], "source:1: expected 'word word probability'"),
            (
                ["--source", "target", "--target", "source", "--alignment", "points", "--model", "search"],
                "other direction",
            ),
            (["--source", "points", "--target", "target", "--alignment", "points"], "points:2: point 3-3"),
            (["--source", "source", "--target", "target", "--alignment", "target"], "target:1: alignment point 'le'"),
        ],
    )
    def test_says_what_does_not_fit(
        self, files: Path, models: Path, error_line: Callable[..., str], arguments: list[str], message: str
    ) -> None:
        (files / "points").write_text("0-0 1-1\n1-1 2-2 3-3\n")
        places = {name: str(files / name) for name in ("moses", "source", "target", "points")}
        places["search"] = str(models / "search")
        given = [places.get(argument, argument) for argument in arguments]
        output = files / "out"
        output.write_text("older")
        assert message in error_line(main, ["lexicon", *given, "--output", str(output)])
        assert output.read_text() == "older"
