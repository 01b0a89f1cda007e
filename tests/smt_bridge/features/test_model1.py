"""IBM Model 1 against its definition, and against the lexicon's own alignment."""

from __future__ import annotations

import gzip
import math
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt_core.base.errors import InputError, NmtError
from nmt_core.files.lexicon_lines import NULL
from smt_bridge.errors import WiringError
from smt_bridge.features.base import Candidates
from smt_bridge.features.model1 import Lexicon, Model1

F2E = "la the 0.5\nla house 0.1\nmaison house 0.75\nmaison NULL 0.01\nla NULL 0.2\n"
GROUPS = [
    Candidates("the house", ["la maison", "maison la la", "", "chat", "la chat"]),
    Candidates("", ["la", ""]),
    Candidates("cat", ["maison"]),
]


def write(folder: Path, text: str) -> str:
    path = folder / "lex.gz"
    path.write_bytes(gzip.compress(text.encode()))
    return str(path)


def by_definition(probabilities: dict[tuple[str, str], float], given: str, generated: str) -> float:
    """log p(generated | given), word by word."""
    words = [*given.split(), NULL]
    sums = [math.fsum(probabilities.get((word, other), 0.0) for other in words) for word in generated.split()]
    return sum(math.log(max(total, 1e-7) / len(words)) for total in sums)


def table_of(lines: Sequence[str]) -> dict[tuple[str, str], float]:
    return {(generated, given): float(value) for generated, given, value in (line.split() for line in lines)}


def test_score_is_the_definition(tmp_path: Path) -> None:
    check_by_definition(Model1(write(tmp_path, F2E)), table_of(F2E.splitlines()), GROUPS)


def check_by_definition(feature: Model1, table: dict[tuple[str, str], float], groups: Sequence[Candidates]) -> None:
    for group, rows in zip(groups, feature.compute(groups), strict=True):
        wanted = [by_definition(table, group.source, text) for text in group.hypotheses]
        assert [row[0] for row in rows] == pytest.approx(wanted)


def test_real_lists_have_the_score_of_the_definition(shared: Path) -> None:
    from smt_bridge.nbest.entry import runs_of_sentence
    from smt_bridge.nbest.formats import read_entries

    moses = shared / "moses/en-fr"
    table = table_of(gzip.decompress((moses / "lex.f2e.gz").read_bytes()).decode().split("\n")[:-1])
    with gzip.open(shared / "data/multi30k/val.tok.en.gz", "rt") as stream:
        sources = [next(stream).rstrip("\n") for _ in range(20)]
    lists = runs_of_sentence(read_entries(str(moses / "val.first20.nbest10.with-alignment.gz")))
    groups = [Candidates(sources[each.sentence], [entry.text for entry in each.entries]) for each in lists]
    assert len(groups) == 20
    check_by_definition(Model1(str(moses / "lex.f2e.gz")), table, groups)


def test_lexicon_of_the_other_direction_is_refused(tmp_path: Path) -> None:
    group = Candidates("the house", ["la maison"])
    numbers = r"\(4 words of the list fit that way, 0 this way\)"
    remedy = r"give lex\.f2e, which has p\(target word \| source word\)"
    problem = rf"lex.gz: the lexicon is of the other direction {numbers}; {remedy}$"
    with pytest.raises(WiringError, match=problem):
        Model1(write(tmp_path, "the la 0.5\nhouse maison 0.5\n")).compute([group])
    one_way = "the la 0.5\nhouse maison 0.5\nla the 1\n"  # 2 words fit this way, 4 that way: not more than twice
    assert len(Model1(write(tmp_path, one_way)).compute([group])) == 1


@pytest.mark.parametrize("line", ["la the", "la the 0.5 1", "la the x", "la the -0.5", "la the 2.5", "la the nan", ""])
def test_malformed_lexicon_names_the_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(InputError, match=r"lex\.gz:3: "):
        Lexicon(write(tmp_path, f"a b 0.5\nc\td 0.5\r\n{line}\n"))
    with pytest.raises(NmtError, match="empty"):
        Lexicon(write(tmp_path, ""))


def test_signature_tells_lexicons_apart(tmp_path: Path) -> None:
    signature = Model1(write(tmp_path, F2E)).signature
    assert signature != Model1(write(tmp_path, "a b 1\n")).signature
    numbers = "log:e|norm:none|floor:1e-07|tok:none|dtype:float64"
    assert re.fullmatch(
        rf"feature:model1\|direction:forward\|model:[0-9a-f]+\|{re.escape(numbers)}\|version:.*", signature
    )


def test_words_count_as_often_as_they_stand_in_the_text(tmp_path: Path) -> None:
    (tmp_path / "lex").write_text("la the 0.5\nmaison house 0.75\n")
    lexicon = Lexicon(str(tmp_path / "lex"))
    assert lexicon.knows_generated(["la", "maison", "la", "chat"]) == 3
