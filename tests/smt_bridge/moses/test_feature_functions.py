"""What a line of ``[feature]`` means: scores, files, and whether lists show it, as Moses' source has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from smt_bridge.moses.feature_functions import (
    FeatureFunction,
    binarised_kind,
    binary_scores,
    find_file,
    is_before_2013,
    kind_of,
    parse_features,
)
from smt_bridge.moses.ini import MosesIni


def feature(line: str) -> FeatureFunction:
    (found,) = parse_features([b"[feature]", line.encode()], path="moses.ini")
    return found


@pytest.mark.parametrize(
    ("line", "scores"),
    [
        ("Distortion", 1),
        ("AnyNewFeature", 1),
        ("AnyNewFeature num-features=10000", 10_000),
        ("PhraseDictionaryMemory", 1),
        ("KENLM num-features=3", 1),
        ("KENLM oov-feature=1", 2),
        ("SRILM oov-feature=off", 1),
        ("LexicalReordering", None),
        ("LexicalReordering num-features=6", 6),
        ("EditOps", None),
        ("InputFeature", None),
        ("Mmsapt", None),
        ("PhraseDictionaryTransliteration", 1),
        ("OpSequenceModel", 5),
        ("PhraseOrientationFeature", 6),
        ("UnalignedWordCountFeature", 2),
        ("TargetBigramFeature", 0),
        ("VWFeatureSourceWindow", 0),
    ],
)
def test_scores_where_the_line_does_not_say(line: str, scores: int | None) -> None:
    assert feature(line).scores == scores
    assert feature(line).num_features == (1 if scores is None else scores)


@pytest.mark.parametrize("word", ["0", "false", "No", "n", "F", "OFF"])
def test_switches_are_off_as_the_decoder_reads_them(word: str) -> None:
    assert not feature(f"Distortion tuneable={word}").is_tuneable
    assert not feature(f"KENLM oov-feature={word}").switch("oov-feature")
    flagged = feature(f"PhraseDictionaryMemory tuneable-components=yes,{word},2")
    assert flagged.listed([0.1, 0.2, 0.3]) == (0.1, 0.3)
    assert flagged.listed([0.1, 0.2]) == (0.1, 0.2)  # of another number than there are flags


@pytest.mark.parametrize(("line", "tuneable"), [("UnknownWordPenalty", False), ("UnknownWordPenalty tuneable=1", True)])
def test_unknown_words_have_a_weight_that_is_tuned_on_request(line: str, tuneable: bool) -> None:
    assert feature(line).is_tuneable == tuneable


@pytest.mark.parametrize(
    ("kind", "files"),
    [
        ("PhraseDictionaryMemory", ["t"]),
        ("KENLM", ["t"]),
        ("Generation", ["t", "t.gz"]),
        ("LexicalReordering", ["t", "t.gz", "t.minlexr", "t.binlexr.idx"]),
        ("PhraseDictionaryCompact", ["t.minphr"]),
        ("PhraseDictionaryBinary", ["t.binphr.idx"]),
        ("Mmsapt", ["tde.mct", "tde.txt"]),
    ],
)
def test_the_decoder_puts_an_ending_behind_a_path(tmp_path: Path, kind: str, files: list[str]) -> None:
    names = ["t", "t.gz", "t.minlexr", "t.binlexr.idx", "t.minphr", "t.binphr.idx", "tde.mct", "tde.txt", "tfr.mct"]
    found = []
    for name in names:
        (tmp_path / name).touch()
        if find_file(kind_of(kind), str(tmp_path / "t"), {"L1": "de"}) == str(tmp_path / name):
            found.append(name)
        (tmp_path / name).unlink()
    assert found == files
    (tmp_path / files[-1]).touch()  # the path may have it already
    assert find_file(kind_of(kind), str(tmp_path / files[-1]), {"L1": "de"}) == str(tmp_path / files[-1])


def test_all_files_that_an_ini_names() -> None:
    lines = [
        b"[feature]",
        b"PhraseDictionaryFuzzyMatch name=A path=a source=b target=c alignment=d",
        b"PhraseDictionaryDynSuffixArray name=B path=a target-path=b alignment-path=c",
        b"PhraseDictionaryTransliteration name=C script-dir=a external-dir=b path=c",
        b"PhraseDictionaryDynamicCacheBased name=D cbtm-file=a path=no",
        b"Mmsapt name=E path=a base=b L1=de",
        b"PhraseDictionaryGroup name=F members=A,B path=no",
        b"[weight-file]",
        b"one",
        b"two",
    ]
    found = [(option.line, option.name, option.key, option.path) for option in MosesIni("moses.ini", (*lines,)).paths]
    assert found == [
        *[(2, "A", "path", "a"), (2, "A", "source", "b"), (2, "A", "target", "c"), (2, "A", "alignment", "d")],
        *[(3, "B", "path", "a"), (3, "B", "target-path", "b"), (3, "B", "alignment-path", "c")],
        *[(4, "C", "path", "c"), (4, "C", "script-dir", "a"), (4, "C", "external-dir", "b")],
        *[(5, "D", "cbtm-file", "a"), (6, "E", "path", "a"), (6, "E", "base", "b"), (9, "", "", "one")],
    ]


def test_binarised_tables_are_known_by_their_files(tmp_path: Path) -> None:
    assert binarised_kind("t.binphr.idx") == "PhraseDictionaryBinary"
    assert binarised_kind(str(tmp_path)) is None
    (tmp_path / "config").write_text("version 5\nnum_scores x\nnum_scores 1 2\nnum_scores 6\nnum_scores 7\n")
    (tmp_path / "Misc.dat").write_text("NumTargetFactors 1\nNumScores 5\n")
    assert binary_scores("ProbingPT", str(tmp_path)) == 6
    assert binary_scores("PhraseDictionaryOnDisk", str(tmp_path)) == 5
    (tmp_path / "config").write_text("nothing\n")
    assert binary_scores("ProbingPT", str(tmp_path)) is None


@pytest.mark.parametrize("section", ["ttable-file", "weight-t", "weight-l", "weight-d", "weight-w"])
def test_an_ini_of_before_2013_is_known_by_any_of_its_sections(section: str) -> None:
    old = [f"[{section}]".encode(), b"1"]
    assert is_before_2013(old)
    for new in (b"[feature]", b"[weight]"):
        assert not is_before_2013([*old, new, b"A= 1"])
