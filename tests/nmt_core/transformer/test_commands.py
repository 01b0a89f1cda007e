"""``nmt-core decode`` and ``score`` with a model in CTranslate2: what they write is what the model says, bare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt_core.base.interfaces import SentencePair
from nmt_core.base.words import nbest_line
from nmt_core.commands.main import main
from nmt_core.inference.commands.arguments import KEYS
from nmt_core.transformer.ct2 import Ct2Model
from tests.numpy_transformer import NumpyTransformer

pytest.importorskip("ctranslate2")
WORDS = ["the", "old", "woman", "la", "vieille", "femme", "|||"]
SOURCES = ["the old woman", "", "woman", "old old the strange", "the"]
TARGETS = ["la vieille femme", "", "femme la", "vieille", ""]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ct2Model:
    monkeypatch.chdir(tmp_path)
    NumpyTransformer(WORDS).write(Path("model"))
    for name, lines in (("source", SOURCES), ("target", TARGETS)):
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    return Ct2Model("model", threads=1)


def decode(options: str) -> list[str]:
    assert main(["decode", "--model", "ct2:model", "--input", "source", "--output", "out", *options.split()]) == 0
    return Path("out").read_text().splitlines()


def test_score_is_numpy_s_number(model: Ct2Model, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "--model", "ct2:model", "--window", "2", "source", "target"]) == 0
    found = [float(line) for line in capfd.readouterr().out.splitlines()]
    bare = NumpyTransformer(WORDS)
    pairs = zip(SOURCES, TARGETS, strict=True)
    assert found == pytest.approx([sum(bare.log_probs(one.split(), two.split())) for one, two in pairs], abs=1e-4)


def test_decode_writes_the_model_s_lists(model: Ct2Model) -> None:
    lists = model.nbest(SOURCES, beam=4, nbest=3, forbid_unknown=True)
    expected = []
    for number, (source, entries) in enumerate(zip(SOURCES, lists, strict=True)):
        listed = [(entry.text, entry.log_prob) for entry in entries]
        for text, log_prob in listed or [("", model.score([SentencePair(source, "")])[0].log_prob)]:
            expected.append(nbest_line(number, text, f"NMT0= {log_prob:.6f}", log_prob))
    assert decode("--beam 4 --nbest 3 --search forbid_unknown") == expected
    assert len(expected) > 2 * len(SOURCES)
    firsts = {int(line.split(" ||| ")[0]): line.split(" ||| ")[1] for line in reversed(expected)}
    best = decode("--beam 4 --scores --search forbid_unknown")
    assert [line.split("\t")[1] for line in best] == [firsts[number].strip() for number in range(len(SOURCES))]
    assert [line.split("\t")[1] for line in best] == decode("--beam 4 --search forbid_unknown")
    scores = [float(line.split("\t")[0]) for line in best]
    pairs = [SentencePair(source, line.split("\t")[1]) for source, line in zip(SOURCES, best, strict=True)]
    assert scores == pytest.approx([one.log_prob for one in model.score(pairs)], abs=1e-5)


def test_processes_write_the_same_bytes_and_go_on_with_the_same_model_alone(
    model: Ct2Model, error_line: Callable[..., str]
) -> None:
    alone = decode("--nbest 4 --window 2")
    assert decode("--nbest 4 --window 2 --jobs 2 --quiet") == alone
    Path("out").unlink()
    command = ["decode", "--model", "ct2:model", "--input", "source", "--output", "out", "--window", "2", "--quiet"]
    assert main([*command, "--shards", "1-1"]) == 0
    Path("model").rename("before")
    NumpyTransformer(WORDS, seed=2).write(Path("model"))
    error_line(main, [*command, "--shards", "2-3"])


def test_a_blank_line_needs_no_number_that_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_line: Callable[..., str]
) -> None:
    monkeypatch.chdir(tmp_path)
    NumpyTransformer(WORDS).write(Path("model"), add_source_eos=False, decoder_start_token="<s>")
    Path("source").write_text("the\n\n")
    assert decode("")[1] == ""
    line = error_line(main, ["decode", "--model", "ct2:model", "--input", "source", "--output", "new", "--scores"])
    assert "source:1: in 2 lines from here: ct2:model: the model has no score for" in line


def test_a_line_beyond_the_positions_of_the_model_is_named_with_its_window(
    model: Ct2Model, error_line: Callable[..., str]
) -> None:
    Path("source").write_text("the\n" * 5 + "old " * 900 + "\nthe\n")
    error = error_line(
        main, ["decode", "--model", "ct2:model", "--input", "source", "--output", "out", "--window", "2"]
    )
    assert "source:5: in 2 lines from here: ct2:model: the model does not take 'old old" in error
    assert not Path("out").exists()


DECODE = (
    "--xml-input exclusive", "--xml-input inclusive", "--xml-input ignore", "--guidance source", "--lm lm=0.1",
    "--replace-unk copy", "--lexicon source", "--alignments a", *(f"--search {key}={value}" for key, value in {
        "samples": 2, "temperature": 0.5, "seed": 3, "candidates": 9, "candidates_per_word": 3, "distinct": "true",
        "guidance_weight": 1, "guidance_factors": "1,1", "guidance_joined": "true", "length_normalization": 0.5,
        "max_length_ratio": 3, "min_length": 3, "batch_tokens": 9,
    }.items()),
)  # fmt: skip
SCORE = ("--per-word", "--alignments a", "--word-alignment source", "--softmax none")


@pytest.mark.parametrize(
    "options", [*(f"decode {one}" for one in DECODE), *(f"score source target {one}" for one in SCORE)]
)
def test_what_such_a_model_cannot_do_is_one_line_before_it_is_loaded(
    options: str, error_line: Callable[..., str]
) -> None:
    command, *words = options.split()
    option, *value = " ".join(words).removeprefix("source target ").split("=")[0].split(" ")
    named = [option, *value] if option in ("--search", "--xml-input", "--softmax") else [option]
    line = error_line(main, [command, "--model", "ct2:nowhere", *words])
    assert "--model ct2:DIR" in line and f"; leave out {' '.join(named)}" in line


def test_all_keys_of_search_are_among_these() -> None:
    tested = {one.split()[1].split("=")[0] for one in DECODE if one.startswith("--search")}
    assert tested == set(KEYS) - {"forbid_unknown"}
