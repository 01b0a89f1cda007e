"""``decode`` with Moses' markup and options that do not go together."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from nmt_core.base.errors import ConfigError, InputError
from tests.nmt_core.commands.test_decode import folder, run

__all__ = ["folder"]


def put(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_constraints_are_met_in_their_own_words(folder: Path) -> None:
    marked = 'a <np translation="groupe Zanzibar">group</np> of <np translation="un||hommes hommes">men</np>'
    put(folder, "asked", f"{marked}\n\nmen of a group\n")
    alone = ("--search=candidates=3", "--search=batch_tokens=1")
    lines = run(folder, "--xml-input", "exclusive", *alone, source="asked")
    assert "groupe Zanzibar" in lines[0]
    assert " un " in f" {lines[0]} " or "hommes hommes" in lines[0]
    assert lines[2] == run(folder, *alone)[2]  # the others are as ever


@pytest.mark.parametrize("mode", ["exclusive", "inclusive"])
def test_markup_is_followed(folder: Path, mode: str) -> None:
    put(folder, "marked", 'a <np translation="d&apos; hommes||Zanzibar" prob="0.9||0.1">group</np> of men\n')
    (line,) = run(folder, "--xml-input", mode, source="marked")
    assert mode == "inclusive" or "d&apos; hommes" in line or "Zanzibar" in line
    assert run(folder, "--xml-input", "ignore", source="marked") == run(folder)[:1]


@pytest.mark.parametrize("prob", ["", ' prob="{}"'])
def test_alternatives_may_be_written_in_any_order(folder: Path, prob: str) -> None:
    lines = []
    for order in itertools.permutations([("un", 0.01), ("groupe un", 0.9), ("Zanz", 0.5), ("Aix", 0.5)]):
        attribute = prob.format("||".join(str(value) for _, value in order))
        phrases = "||".join(phrase for phrase, _ in order)
        lines.append(f'a <np translation="{phrases}"{attribute}>group</np> of men\n')
    put(folder, "orders", "".join(lines))
    written = [
        line.partition(" ")[2] for line in run(folder, "--xml-input", "exclusive", "--nbest", "5", source="orders")
    ]
    assert written == written[:5] * len(lines)


def test_bad_markup_is_told_with_its_line(folder: Path) -> None:
    put(folder, "bad", 'a\n<np translation="un">b\n')
    with pytest.raises(InputError, match="bad:2: <np> is never closed"):
        run(folder, "--xml-input", "exclusive", source="bad")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--xml-input", "ignore", "--raw"],
         "--xml-input ignore is for tokenised text, in the words of the model; leave out --raw"),
        (["--xml-input", "exclusive", "--search=samples=2"],
         "--xml-input exclusive is for search; leave out --search samples"),
        (["--search=samples=2", "--beam", "3"], "--beam is for search; leave out --search samples"),
        (["--search=temperature=2"],
         "--search temperature is for --search samples; give that, too, or leave out --search temperature"),
        (["--beam", "0"], "decode: 'beam': Input should be greater than or equal to 1 (found 0)"),
        (["--search=distinct"],
         "--search distinct is for --nbest or --search samples; give that, too, or leave out --search distinct"),
        (["--nbest", "5", "--scores"], "--nbest writes an n-best list, which holds the scores; leave out --scores"),
        (["--nbest", "5", "--search=samples=5"],
         "--search samples writes N translations a line already; leave out --nbest"),
        (["--nbest", "5", "--beam", "3"], "5 best translations need a beam of at least 5"),
        (["--search=samples=2", "--scores"],
         "--search samples=N writes an n-best list, which holds the scores; leave out --scores"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(folder: Path, options: list[str], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        run(folder, *options)
    assert str(caught.value) == problem


def test_distinct_texts(folder: Path) -> None:
    drawn = run(folder, "--search", "samples=60", "distinct", "temperature=0.5", "max_length_ratio=0.5")
    texts = [line.split(" ||| ")[1] for line in drawn if line.startswith("0 ")]
    assert len(set(texts)) == len(texts) < 60
    listed = run(folder, "--nbest", "5", "--search=distinct", "--replace-unk", "copy", "--beam", "40")
    texts = [line.split(" ||| ")[1] for line in listed if line.startswith("0 ")]
    assert len(set(texts)) == len(texts) == 5


def test_lengths(folder: Path) -> None:
    lengths = [len(line.split()) for line in run(folder, "--search=min_length=7")]
    assert min(lengths[0], lengths[2]) >= 7 and lengths[1] == 0  # of a blank line
