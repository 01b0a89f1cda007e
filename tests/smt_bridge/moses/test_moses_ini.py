"""moses.ini: what changes when a table grows, and that nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from smt_bridge.errors import FormatError, WiringError
from smt_bridge.moses.ini import MosesIni, read_ini, with_weights

TABLE = b"PhraseDictionaryMemory name=TM0 num-features=2 path=old.gz input-factor=0 # num-features=9"
INI = b"""# made by hand
[feature]
UnknownWordPenalty
%b
Distortion

[weight]
Distortion0= 0.3
TM0= 0.1  0.2 # tuned

[odd section]
kept as it is \xff
"""


def ini(table: bytes = TABLE, text: bytes = INI) -> MosesIni:
    return MosesIni("moses.ini", tuple((text % table if b"%b" in text else text).split(b"\n")))


def edited(configuration: MosesIni, weights: tuple[float, ...] = (0.2, -0.5)) -> bytes:
    table = configuration.phrase_table()
    return configuration.with_phrase_scores(table, path="new.gz", weights=weights).content


def test_growing_table_changes_three_places() -> None:
    line = b"PhraseDictionaryMemory name=TM0 num-features=4 path=new.gz input-factor=0 # num-features=9"
    assert edited(ini()) == (INI % line).replace(b"0.1  0.2 #", b"0.1  0.2 0.2 -0.5 #")


def test_windows_line_ends_stay() -> None:
    text = (INI % TABLE).replace(b"\n", b"\r\n")
    result = edited(ini(text=text))
    assert result.replace(b"\r\n", b"\n") == edited(ini())
    assert result.count(b"\r\n") == result.count(b"\n")


def test_missing_weight_line_is_added_with_ones() -> None:
    text = (INI % TABLE).replace(b"TM0= 0.1  0.2 # tuned\n", b"")
    configuration = ini(text=text)
    assert not configuration.weight_lines(configuration.phrase_table())
    assert b"Distortion0= 0.3\nTM0= 1 1 0.2 -0.5\n\n[odd" in edited(configuration)
    windows = ini(text=text.replace(b"\n", b"\r\n"))
    assert b"Distortion0= 0.3\r\nTM0= 1 1 0.2 -0.5\r\n\r\n[odd" in edited(windows)


def test_missing_weight_section_is_added() -> None:
    assert edited(ini(text=b"[feature]\n" + TABLE)).endswith(b"\n\n[weight]\nTM0= 1 1 0.2 -0.5\n")
    before = edited(ini(text=b"[weight]\nA= 1\n[feature]\n" + TABLE + b"\n"))  # lines of features keep their numbers
    assert before.startswith(b"[weight]\nA= 1\n[feature]\n") and before.endswith(b"=9\n\n[weight]\nTM0= 1 1 0.2 -0.5\n")
    empty = edited(ini(text=b"[feature]\n" + TABLE + b"\n[weight]\n[x]\n"))
    assert empty.endswith(b"=9\n[weight]\nTM0= 1 1 0.2 -0.5\n[x]\n")


def test_tuneable_components_grow() -> None:
    line = b"PhraseDictionaryMemory tuneable-components=true,false name=TM0 num-features=2 path=x"
    assert b"tuneable-components=true,false,true,true name" in edited(ini(line))


def test_missing_num_features_is_one() -> None:
    text = b"[feature]\nPhraseDictionaryMemory path=x\n[weight]\nPhraseDictionaryMemory0= 1\n"
    expected = b"PhraseDictionaryMemory path=new.gz num-features=3\n[weight]\nPhraseDictionaryMemory0= 1 0.2 -0.5\n"
    assert edited(ini(text=text)).endswith(expected)


def test_unnamed_features_are_numbered_by_class() -> None:
    text = b"[feature]\nKENLM path=a\nKENLM name=X path=b\nKENLM path=c\nDistortion\n"
    assert [feature.name for feature in ini(text=text).features] == ["KENLM0", "X", "KENLM1", "Distortion0"]


def test_several_tables_must_be_named() -> None:
    configuration = ini(TABLE + b"\nProbingPT name=TM1 num-features=1 path=y")
    several = r"^moses.ini: has several phrase tables \(TM0, TM1\); choose one by `wire --feature NAME`$"
    with pytest.raises(WiringError, match=several):
        configuration.phrase_table()
    with pytest.raises(WiringError, match=r"^moses.ini: has no phrase table called TM7; there is TM0, TM1$"):
        configuration.phrase_table("TM7")
    assert configuration.phrase_table("TM1").kind == "ProbingPT"
    group = b"\nPhraseDictionaryGroup name=G0 members=TM0 num-features=2\nProbingPT name=TM1 num-features=1 path=y"
    assert ini(TABLE + group).phrase_table().name == "TM1"  # the others cannot grow
    with pytest.raises(WiringError, match=r"^moses.ini:4: TM0 \(RuleTable\) has no file of scores: no column can be"):
        ini(b"RuleTable name=TM0 num-features=2").phrase_table()
    with pytest.raises(WiringError, match=r"TM0 \(PhraseDictionaryGroup\) combines no table and has no file of its"):
        ini(b"PhraseDictionaryGroup name=TM0 num-features=2").phrase_table()


def test_no_table_is_said() -> None:
    with pytest.raises(WiringError, match=r"^moses.ini: has no phrase table in its \[feature\] section$"):
        ini(b"Distortion name=D1").phrase_table()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"A name=TM0 name=TM1 path=x", "`name=TM1` is given twice; Moses would stop here"),
        (b"A " + b"n" * 81, f"`{'n' * 80}` is not of the form key=value; Moses would stop here"),
        (b"A num-features=two", "num-features=two is not a number up to 10,000"),
        (b"A num-features=10001", "num-features=10001 is not a number up to 10,000"),
        (b"A num-features=-1", "num-features=-1 is not a number up to 10,000"),
    ],
)
def test_malformed_feature_is_refused_with_its_line(line: bytes, problem: str) -> None:
    with pytest.raises(FormatError) as caught:
        _ = ini(line).features
    assert str(caught.value) == f"moses.ini:4: {problem}"


def test_weights_of_another_number_are_refused() -> None:
    line = TABLE.replace(b"num-features=2", b"num-features=3")
    with pytest.raises(
        WiringError, match=r"^moses.ini:9: TM0 has 2 weights but num-features=3; was this file edited by hand\?$"
    ):
        edited(ini(line))
    with pytest.raises(FormatError, match=r"^moses.ini:9: a weight of TM0 must be a plain number"):
        edited(ini(text=(INI % TABLE).replace(b"0.1  0.2", b"0.1 ,2")))


def test_path_with_blanks_is_refused() -> None:
    configuration = ini()
    for path in ("my table.gz", "table#1", "a\tb"):
        with pytest.raises(WiringError) as caught:
            configuration.with_phrase_scores(configuration.phrase_table(), path=path, weights=[0.2])
        problem = f"the path {path!r} has blanks or #, which moses.ini cannot hold; rename the file"
        assert str(caught.value) == problem


def test_real_ini_changes_only_the_table(shared: Path) -> None:
    path = shared / "moses" / "en-fr" / "moses.ini"
    configuration = read_ini(str(path))
    assert configuration.content == path.read_bytes()
    old, new = path.read_bytes().split(b"\n"), edited(configuration).split(b"\n")
    changed = [(before, after) for before, after in zip(old, new, strict=True) if before != after]
    assert [after.split(b" ")[0] for _, after in changed] == [b"PhraseDictionaryMemory", b"TranslationModel0="]
    assert changed[1][1] == changed[1][0] + b" 0.2 -0.5"


REPEATED = """[feature]
PhraseDictionaryMemory name=TM0 num-features=2 path=table

[weight]
TM0= 9 9
TM0= 0.1 0.2
"""


def test_new_weights_go_into_the_line_that_counts(tmp_path: Path) -> None:
    (tmp_path / "moses.ini").write_text(REPEATED)
    written = with_weights(read_ini(str(tmp_path / "moses.ini")), {"TM0": [0.3, 0.4]}).content
    assert written.decode() == REPEATED.replace("0.1 0.2", "0.3 0.4")
    assert edited(ini(text=REPEATED.encode())).endswith(b"TM0= 9 9\nTM0= 0.1 0.2 0.2 -0.5\n")


def test_a_path_is_found_from_here_before_beside_the_ini(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("b").mkdir()
    for place in ("b/lm", "lm"):
        Path(place).touch()
        (option,) = MosesIni("b/moses.ini", (b"[feature]", b"KENLM path=lm")).paths
        assert (option.found, option.beside, option.file) == (place, place == "b/lm", place)


def test_components_that_lists_do_not_show_keep_their_weights() -> None:
    text = REPEATED.replace("path=table", "path=table tuneable-components=false,true").encode()
    written = with_weights(ini(text=text), {"TM0": [0.123456789012]}).content
    assert written == text.replace(b"0.1 0.2", b"0.1 0.123456789")
    other = ini(text=text.replace(b"=false,true", b"=false"))  # of another number than there are scores
    assert with_weights(other, {"TM0": [0.3, 0.4]}).content.endswith(b"TM0= 0.3 0.4\n")
    missing = ini(text=text.replace(b"TM0= 9 9\nTM0= 0.1 0.2\n", b""))
    assert with_weights(missing, {"TM0": [0.3]}).content.endswith(b"[weight]\nTM0= 1 0.3\n")


@pytest.mark.parametrize(
    ("section", "weights", "problem"),
    [
        ("weight-overwrite", {}, "has weights in [weight-overwrite] too; put them into [weight] first"),
        ("alternate-weight-setting", {}, "has weights in [alternate-weight-setting] too; put them into [weight] first"),
        ("weight-add", {}, "has weights in [weight-add] too; put them into [weight] first"),
        ("x", {"LM0": [1.0]}, "has no feature LM0, which the n-best lists show; it has TM0"),
        ("x", {"TM0": [1.0]}, "TM0 shows 2 weights, but the n-best lists have 1"),
    ],
)
def test_weights_of_another_system_are_refused(section: str, weights: dict[str, list[float]], problem: str) -> None:
    with pytest.raises(WiringError) as caught:
        with_weights(ini(text=f"{REPEATED}[{section}]\nTM0= 1 2\n".encode()), weights)
    assert str(caught.value) == f"moses.ini: {problem}"
    with pytest.raises(WiringError, match=r"has no feature LM0, which the n-best lists show; it has none$"):
        with_weights(ini(text=b"[weight]\nLM0= 1\n"), {"LM0": [1.0]})
