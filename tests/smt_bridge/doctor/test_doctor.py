# ruff: noqa: E501 (lines of files as they are)
"""Every mismatch is named with its remedy; a healthy system has none."""

from __future__ import annotations

import gzip
import json
import lzma
import re
import shutil
import string
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from smt_bridge.commands.main import main
from smt_bridge.doctor import examination
from smt_bridge.doctor.examination import Files, examine
from smt_bridge.doctor.findings import Words, examine_case, examine_case_of_model, examine_text, words_of
from tests.metadata_files import describe

pytestmark = pytest.mark.skipif(" " in tempfile.gettempdir(), reason="moses.ini holds no path with a blank")

INI = """[feature]
UnknownWordPenalty
WordPenalty
PhraseDictionaryMemory name=TM0 num-features=2 path={folder}/table
KENLM name=LM0 order=2 path={folder}/lm.arpa

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
TM0= 0.2 0.2
LM0= 0.5
"""
TABLE = (
    "a house ||| une maison ||| 0.5 0.5 ||| 0-0\nthe ||| la ||| 0.5 0.25 ||| 0-0\nthe ||| l&apos; ||| 0.5 0.2 ||| 0-0\n"
)
ARPA = "\\data\\\nngram 1=3\nngram 2=1\n\n\\1-grams:\n-1 <unk>\n-99 <s> -0.5\n-1 </s>\n\n\\2-grams:\n-1 <s> </s>\n\n\\end\\\n"
NBEST = "0 ||| la maison ||| TM0= -1 -1 LM0= -5 WordPenalty0= -2 ||| -3\n1 ||| une maison ||| TM0= -1 -1 LM0= -5 WordPenalty0= -2 ||| -3\n"  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "moses.ini").write_text(INI.format(folder=tmp_path))
    (tmp_path / "table").write_text(TABLE)
    (tmp_path / "lm.arpa").write_text(ARPA)
    (tmp_path / "nbest").write_text(NBEST)
    (tmp_path / "weights").write_text("TM0= 0.2 0.2\nLM0= 0.5\nWordPenalty0= -1\n")
    (tmp_path / "source").write_text("the house\na house\n")
    (tmp_path / "reference").write_text("la maison\nune maison\n")
    model = tmp_path / "model"
    model.mkdir()
    (model / "source.vocab").write_text("</s>\n<unk>\na\nhouse\nthe\n")
    (model / "target.vocab").write_text("</s>\n<unk>\nune\nmaison\nla\nl&apos;\n")
    return tmp_path


def findings(folder: Path) -> list[str]:
    names = ("ini", "table", "nbest", "weights", "source", "reference", "scorer", "lm")
    files = ("moses.ini", "table", "nbest", "weights", "source", "reference", "model", "lm.arpa")
    return [str(found) for found in examine(Files(**{n: str(folder / f) for n, f in zip(names, files, strict=True)}))]


def test_nothing_is_wrong_with_what_fits(folder: Path) -> None:
    assert findings(folder) == []


def edit(name: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / name).write_text(change((folder / name).read_text()))

    return apply


def wrote(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def _described_and_changed(folder: Path) -> None:
    describe(folder / "table", {"added": ["p(target|source)"]})
    with open(folder / "table", "a") as stream:
        stream.write("x ||| y ||| 0.5 0.5 0.5 0.5\n")


RULES = b"""[X][X] house [X] ||| [X][X] maison [NP] ||| 0.5 0.5 ||| 0-0 1-1
a house [X] ||| une maison [NP] ||| 0.5 0.5 ||| 0-0 1-1
the [X][NP-SB] [X][NN] [X] ||| la [X][NN] [X][NP-SB] [S] ||| 0.5 0.5 ||| 0-0 1-2 2-1
the [X][NP-SB] [X][NN] [X] ||| la [X][NN] [X][NP-SB] [S] ||| 0.5 0.5 ||| 0-0 1-1 2-2
"""


CUT = ":1: the compressed data ends too early, here or a little later (a truncated file, or other bytes behind it?); copy it again: "
STOPS = ": Moses would stop or drop the line; correct it"
UNSORTED = "warning: table: 1 of 4 sources stand before a smaller one; sort it (LC_ALL=C sort): binarisers need it, and neural scoring shares less without"
TWICE = "warning: table: 1 phrase pair comes twice; keep one line of each"
WIDE = "warning: table: 1 line has several blanks or a tab between words of a phrase; write single ones (tr -s ' \\t' ' '): Moses does not load such a ProbingPT, and CompactPT loses them"
RENAME = "error: moses.ini:4: table is packed with gzip, which Moses tells by a name that ends in .gz; rename it"
UNKNOWN = "of the words are unknown to model; is it tokenised like the model's corpus, and of the model's language?"
ESCAPE = "escape both alike (tokenizer.perl, or its -no-escape; `rescore-table --unescape`)"
GIVE = "give the folder that `nmt-core train` wrote"


# fmt: off
HARMS: list[tuple[Callable[[Path], object], list[str]]] = [
    (edit("moses.ini", lambda t: t.replace("num-features=2", "num-features=4")),
     ["error: moses.ini:4: num-features=4, but table has 2 scores in a line; write num-features=2 and as many weights",
      "error: moses.ini: TM0 has 2 weights for 4 values of [feature]; tune again, or correct the line"]),
    (edit("moses.ini", lambda t: t.replace("TM0= 0.2 0.2", "TM0= 0.2")), ["error: moses.ini: TM0 has 1 weight for 2 values of [feature]; tune again, or correct the line"]),
    (edit("moses.ini", lambda t: t.replace("LM0= 0.5\n", "")), ["warning: moses.ini: no weight for LM0: Moses takes 1 for each score; add `LM0= ...`, or tune"]),
    (edit("moses.ini", lambda t: f"[mapping]\n0 T 1{'0' * 5000}\n{t}"), [f"error: moses.ini:2: [mapping] asks for table 1{'0' * 17}, but there are 1 (counted from 0); correct the number"]),
    (edit("moses.ini", lambda t: t + "[weight-file]\nnone\n"), ["error: moses.ini:13: the ini wants none, which is not there; correct the path"]),
    (edit("moses.ini", lambda t: t + "NMT0= 1\n"), ["error: moses.ini: a weight for NMT0, which [feature] does not have; delete the line: Moses would stop here"]),
    (edit("moses.ini", lambda t: t.replace("/table", "/nowhere")),
     ["error: nowhere: there is no such table; correct the path", "error: moses.ini:4: TM0 wants nowhere, which is not there; correct the path"]),
    (edit("moses.ini", lambda t: re.sub("path=.*/table", "path=table", t)),
     ["warning: moses.ini:4: table is found beside this file, but not from the folder in which this was started; start Moses in the folder of the ini, or write absolute paths"]),
    (edit("moses.ini", lambda t: t.replace(" path=", " path=#", 1)), ["error: moses.ini:4: TM0 has no path, so that Moses finds no file; write path=FILE (what stands behind a # is a comment)"]),
    (edit("moses.ini", lambda t: t.replace("/table", "/model")),
     ["error: model: cannot be read (Is a directory)" + STOPS,
      "error: moses.ini:4: model is a folder, and a PhraseDictionaryMemory reads text; give the text, or the class that reads the folder, such as PhraseDictionaryOnDisk"]),
    (edit("moses.ini", lambda t: t.replace("order=2", "order=5")), ["warning: lm.arpa: has order 2, but moses.ini says order=5; KenLM goes by the file; correct the line so that nobody is misled"]),
    (wrote("table", gzip.compress(TABLE.encode())), [RENAME]),
    (wrote("table", lzma.compress(TABLE.encode())), ["error: moses.ini:4: table is packed with xz, which Moses does not read; pack it with gzip, as *.gz"]),
    (wrote("table", gzip.compress(TABLE.encode() * 100)[:60]), ["error: table" + CUT.removesuffix(": ") + STOPS, RENAME]),
    (edit("table", lambda t: t.replace("0.5 0.25", "-0.5 -1.3")),
     ["error: table:2: score 1 is `-0.5`, but must not be negative: scores are probabilities, of which Moses takes the logarithm" + STOPS]),
    (edit("table", lambda t: t.replace("0.5 0.25", "0.5")), ["error: table:2: has 1 score, but the first line has 2; Moses needs as many in every line" + STOPS]),
    (edit("table", lambda t: t.replace("0.5 0.25", "0.5  0.25")), ["warning: table: 1 line has two blanks between scores; ProbingPT crashes: write it again"]),
    (edit("table", lambda t: t.replace("a house", "a  house")), [WIDE]),
    (edit("table", lambda t: t.replace("a h", " a\th") + t.splitlines()[0] + "\n"), [UNSORTED, TWICE, WIDE]),
    (edit("table", lambda t: "z ||| z ||| 1 1 |||\n" + t), [UNSORTED, *[f"warning: table: 20% {UNKNOWN}"] * 2]),
    (edit("table", lambda t: t + t.splitlines()[2] + "\n"), [TWICE]),
    (edit("table", lambda t: t.replace("0.5", "7")), []),  # 4 of 3 lines
    (edit("table", lambda t: t.replace("0.5", "7").replace("0.2", "3")), ["warning: table: 6 scores are above 1; are these counts, or logarithms with the sign turned?"]),
    (lambda folder: (folder / "lm.arpa").unlink(),
     ["error: moses.ini:5: LM0 wants lm.arpa, which is not there; correct the path", "error: lm.arpa: there is no such language model; correct the path"]),
    (edit("lm.arpa", lambda t: t.replace("\\end\\\n", "")), ["error: lm.arpa: does not end in \\end\\: it was cut off; make or copy it again"]),
    (edit("lm.arpa", lambda t: "\ufeff" + t), ["error: lm.arpa: begins with a byte order mark; save it without one; KenLM reads no file with it"]),
    (edit("lm.arpa", lambda t: "nothing\n"), ["error: lm.arpa: is neither an ARPA file nor a KenLM binary; give an ARPA file or a binary of build_binary"]),
    (wrote("lm.arpa", b"mmap lm http://kheafield.com/code format version 4\n"),
     ["error: lm.arpa: is a KenLM binary of format version 4, where KenLM reads 5; build it again from the ARPA file with build_binary"]),
    (wrote("lm.arpa", b"mmap lm http://kheafield.com/code format version 5\n\0"),
     ["error: lm.arpa: the binary n-gram model is damaged (ends in its header); copy it again, or build it from the ARPA file with build_binary: KenLM cannot read it; make or copy it again"]),
    (wrote("lm.arpa", gzip.compress(ARPA.encode())[:-5]), [f"error: lm.arpa{CUT}KenLM cannot read it; make or copy it again"]),
    (wrote("lm.arpa", lzma.compress(ARPA.encode()) + b"?"), [f"error: lm.arpa{CUT}KenLM cannot read it; make or copy it again"]),
    (edit("nbest", lambda t: t.replace("LM0= -5", "LM0= nan")),
     ["error: nbest:1: feature LM0 is not a finite number; tuners and decoders cannot use nan or inf: the list cannot be used; correct the line"]),
    (edit("nbest", lambda t: t.replace("1 |||", "7 |||", 1)),
     [f"error: nbest:2: id 7 is beyond {text}, which has 2 lines (ids begin at 0); take the file that was translated" for text in ("source", "reference")]),
    (edit("nbest", lambda t: t + "1 ||| une ||| TM0= -1 LM0= -5 WordPenalty0= -2 ||| -3\n"), ["error: nbest:3: TM0 has 1 value here and 2 before; make the list again"]),
    (edit("nbest", lambda t: t.replace("LM0= -5", "LM0= 1") * 50), []),  # of 100
    (edit("nbest", lambda t: t.replace("LM0= -5", "LM0= 0") * 51), []),
    (edit("nbest", lambda t: t.replace("LM0= -5", "LM0= 1") * 51), ["warning: nbest: 102 log-probabilities are between 0 and 1; are they probabilities? features must be logarithms"]),
    (edit("nbest", lambda t: t.replace("maison", "casa")), []),  # half of its words
    (edit("nbest", lambda t: t.replace("maison", "casa").replace("la", "il")), ["warning: nbest: 75% of its words are not in table; is it a list of this system, tokenised and escaped alike?"]),
    (edit("nbest", lambda t: t.replace("la maison", "")), ["warning: nbest: 1 translation is empty; make sure that this is meant"]),
    (edit("weights", lambda t: t.replace("LM0= 0.5\n", "")), ["error: weights: no weight for LM0 of nbest; add `LM0= ...` (0 leaves it out), or tune again"]),
    (edit("weights", lambda t: t.replace("LM0= 0.5", "LM0= 0.5 1")), ["error: weights: LM0 has 2 weights for 1 value of nbest; tune again, or correct the line"]),
    (edit("weights", lambda t: t + "KENLM0= 1\n"), ["error: weights: a weight for KENLM0, which nbest does not have; delete the line, or take the other file"]),
    (edit("weights", lambda t: "LM0 0,5\n"), ["error: weights:1: a weight of LM0 must be a plain number up to 3.4e38 but is '0,5': the weights cannot be read; correct the line"]),
    (edit("source", lambda t: t.replace("\n", "\r\n")), ["warning: source: 2 lines end in a carriage return; convert it (sed 's/\\r$//')"]),
    (wrote("source", b"the house\n\xe9\n" + b"a house the\n" * 5), ["warning: source: 1 line is not UTF-8; convert it with iconv"]),
    (edit("source", lambda t: "\ufeff" + t), ["warning: source:1: begins with a byte order mark; remove it: to Moses it is a part of the first word"]),
    (edit("source", lambda t: "The House.\nA house, the house.\n"),
     ["warning: source: punctuation is glued to words: it is not tokenised; run Moses' tokenizer.perl on it", f"warning: source: 83% {UNKNOWN}"]),
    (edit("source", lambda t: "THE HOUSE\nA HOUSE\n"), ["warning: source: 100% of the words are unknown to model; is it cased while the model was trained on lower-cased text? lower-case it"]),
    (edit("source", lambda t: "das haus\nein haus\n"), [f"warning: source: 100% {UNKNOWN}"]),
    (wrote("source", b"the house a x\nthe house the\n"), []),  # 14 % are unknown
    (edit("source", lambda t: t.replace("the", "'s") + "a house\n" * 5), []),
    (lambda folder: (edit("source", lambda t: t.replace("the", "'s") + "a house\n" * 5)(folder), edit("table", lambda t: "&apos;s house ||| la ||| 0.5 0.25 ||| 0-0\n" + t)(folder)),
     [f"warning: table: has escapes such as &apos;s where source has 's; {ESCAPE}", f"warning: table: 17% {UNKNOWN}"]),
    (edit("reference", lambda t: "la maison\n\n"), ["warning: reference:2: 1 line is blank; make sure that this is meant"]),
    (edit("model/target.vocab", lambda t: t.replace("l&apos;", "l'").replace("la\n", "")),
     ["warning: table: 50% of the words are unknown to model; is it escaped while the model's corpus was not? use `--unescape`, or unescape it"]),
    (wrote("model/source.vocab", b"a\nb\n"),
     [f"error: model/source.vocab:1: a vocabulary begins with </s> and <unk>; make one with 'nmt-core prepare vocab': the model cannot be loaded; {GIVE}"]),
    (lambda folder: (folder / "model" / "source.vocab").unlink(), [f"error: model: is not a model folder; {GIVE}"]),
    (wrote("table.json", b"{"), ["error: table.json: is not JSON (Expecting property name enclosed in double quotes); remove it, or make both again"]),
    (wrote("table", RULES.replace(b"a house [X]", b"a [house] [X]")), ["error: table:2: `[house]` has one label, where Moses wants the two of a non-terminal, such as [X][X]" + STOPS]),
    (wrote("table", RULES.replace(b"a house [X]", b"a house")),
     ["error: table:2: has no labels such as [X] at the end of both sides, but line 1 has a non-terminal such as [X][X]: in a table of hierarchical or syntax rules all lines have labels" + STOPS]),
    (wrote("table", b"[X] ||| a [X,1] ||| b [X,1] ||| p=1\n"),
     ["note: table: is not looked into: this is a Hiero grammar (`[X] ||| ...`); write it as Moses' rules: source ||| target ||| scores; look at it by hand"]),
    (wrote("table", RULES + RULES.splitlines(keepends=True)[-1]), [TWICE]),
    (_described_and_changed,
     ["error: table:4: has 4 scores, but the first line has 2; Moses needs as many in every line" + STOPS,
      "error: table.json: describes other content than table has; remove it, or make both again"]),
]
# fmt: on


@pytest.mark.parametrize(("harm", "said"), HARMS)
def test_each_mismatch_is_named_with_its_remedy(folder: Path, harm: Callable[[Path], object], said: list[str]) -> None:
    harm(folder)
    assert [line.replace(f"{folder}/", "") for line in findings(folder)] == said


def test_of_long_files_the_first_lines_are_read(folder: Path) -> None:
    for name, line in (("source", "the house\r\n"), ("nbest", "1 ||| une ||| TM0= -1 ||| -3\n")):
        edit(name, lambda text, line=line: text + line)(folder)
    files = {name: str(folder / name) for name in ("source", "nbest")}
    assert list(examine(Files(**files, most=2))) == []
    assert len(list(examine(Files(**files)))) == 2
    assert Files().most == 200_000  # as docs/troubleshooting.md says


def test_a_model_of_the_other_direction_is_named(folder: Path) -> None:
    model = folder / "model"
    (model / "source.vocab").rename(folder / "vocab")
    (model / "target.vocab").rename(model / "source.vocab")
    (folder / "vocab").rename(model / "target.vocab")
    found = [line for line in findings(folder) if "are unknown to" in line]
    assert len(found) == 3 and all(
        line.endswith(f" are unknown to {model}; it is a model of the other direction: give one of this")
        for line in found
    )


def test_unknown_words_are_judged_by_what_the_training_text_had(folder: Path) -> None:
    (folder / "source").write_text("the house x\na house the\n")  # 17 %
    assert any("17% of the words are unknown to" in found for found in findings(folder))
    (folder / "model" / "source.vocab").write_text("</s>\t9\n<unk>\t12\na\t30\nhouse\t30\nthe\t28\n")
    assert findings(folder) == []


def test_metadata_of_another_model_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"scores_before": 1, "added": ["p(target|source)"], "signatures": {"scorer": "nmt|model:old"}}
    describe(folder / "table", record)
    named = f"names another model than {folder}/model (new); score again, or give the model it names"
    for model, said in (("old", []), ("new", [f"warning: {folder}/table.json: {named}"])):
        scorer = SimpleNamespace(signature=f"nmt|model:{model}")
        monkeypatch.setattr(examination, "open_model", lambda _, scorer=scorer: scorer)
        assert findings(folder) == said


@pytest.mark.parametrize(("turned", "said"), [(-3.25, False), (-3.15, True)])
def test_the_direction_of_a_transformer_is_seen_by_fifty_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turned: float, said: bool
) -> None:
    """It is another one where a word, or an end, has less than 0.8 of the cost."""
    asked: list[int] = []

    def score(pairs: list[SentencePair]) -> list[PairScore]:
        asked.append(len(pairs))
        return [PairScore(4 * (-4.0 if pair.source == "s s s" else turned)) for pair in pairs]

    for name, line in (("source", "s s s\n"), ("reference", "r r r\n")):
        (tmp_path / name).write_text(line * 60)
    monkeypatch.setattr(examination, "open_model", lambda _: SimpleNamespace(score=score))
    found = examination._examine_transformer("ct2:m", str(tmp_path / "source"), str(tmp_path / "reference"))
    problem = "log p of a source word is -3.15, of a word of the reference -4.00"
    remedy = "is it of the other direction? Give a model from the source's language"
    assert [str(one) for one in found] == ([f"warning: ct2:m: {problem}; {remedy}"] if said else [])
    assert asked == [50, 50]


def test_what_is_read_more_than_once_is_no_pipe(folder: Path, error_line: Callable[..., str]) -> None:
    line = error_line(main, ["doctor", "--table", str(folder / "table"), "--source", "/dev/null"])
    assert "/dev/null: is a device; expected an ordinary file" in line


def test_exit_codes_and_json(folder: Path, capfd: pytest.CaptureFixture[str], error_line: Callable[..., str]) -> None:
    assert main(["doctor", str(folder / "moses.ini")]) == 0
    assert capfd.readouterr() == ("", "doctor: 0 errors, 0 warnings\n")
    assert error_line(main, ["doctor"]) == "smt-bridge doctor: give a moses.ini or other files to look at"
    (folder / "moses.ini").write_text(INI.format(folder=folder).replace("LM0= 0.5\n", ""))
    assert main(["doctor", str(folder / "moses.ini")]) == 0
    assert capfd.readouterr().err == "doctor: 0 errors, 1 warning\n"
    (folder / "moses.ini").write_text(INI.format(folder=folder).replace("LM0= 0.5\n", "LM0= 0.5 1\n"))
    capfd.readouterr()
    assert main(["doctor", str(folder / "moses.ini"), "--json"]) == 1
    problem = "LM0 has 2 weights for 1 value of [feature]"
    found = {"level": "error", "place": str(folder / "moses.ini"), "problem": problem}
    said = capfd.readouterr()
    assert json.loads(said.out) == {**found, "remedy": "tune again, or correct the line"}
    assert said.err == "doctor: 1 error, 0 warnings\n"
    name = str(folder / "moses\udcff.ini")  # a byte that is not UTF-8
    (folder / "moses.ini").rename(name)
    assert main(["doctor", name, "--json"]) == 1
    assert name in json.loads(capfd.readouterr().out)["place"]


def test_the_real_system_is_healthy(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = shared / "data" / "multi30k"
    monkeypatch.chdir(shared / "moses" / "en-fr")
    files = Files("moses.ini", "", "val.nbest100.gz", "moses.ini", str(data / "val.tok.en.gz"), most=20_000)
    assert list(examine(files)) == []


def test_the_example_is_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[3] / "examples" / "en-fr" / "moses")
    assert list(examine(Files("moses.ini", nbest="dev.nbest50.gz", weights="moses.ini", most=20_000))) == []


BINARY = """[feature]
{kind} name=TM0 num-features=4 path={path}
[mapping]
0 T 0
[weight]
TM0= 0.2 0.2 0.2 0.2
"""


KINDS = pytest.mark.parametrize(("kind", "name"), [("ProbingPT", "probing"), ("PhraseDictionaryOnDisk", "ondisk")])


@KINDS
def test_a_binarised_system_is_healthy_and_what_is_not_seen_is_said(
    shared: Path, tmp_path: Path, kind: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ini = tmp_path / "moses.ini"
    table = shared / "moses" / "binarised" / name
    ini.write_text(BINARY.format(kind=kind, path=table))
    assert main(["doctor", str(ini)]) == 0
    note = f"note: {table}: TM0 is a {kind}: its phrase pairs are not looked into"
    assert capsys.readouterr().out == f"{note}; give the text that it was made from with --table\n"
    assert main(["doctor", str(ini), "--table", str(shared / "moses" / "binarised" / "phrase-table.gz")]) == 0
    ini.write_text(BINARY.format(kind=kind, path=table).replace("=4", "=5").replace("TM0= ", "TM0= 0.2 "))
    capsys.readouterr()
    assert main(["doctor", str(ini)]) == 1
    assert f"num-features=5, but {table} has 4 scores" in capsys.readouterr().out


def test_a_compact_table_may_be_named_with_or_without_its_ending(tmp_path: Path) -> None:
    (tmp_path / "table.minphr").write_bytes(b"\x00\xff|")
    for path in (tmp_path / "table", tmp_path / "table.minphr"):
        (tmp_path / "moses.ini").write_text(BINARY.format(kind="PhraseDictionaryCompact", path=path))
        assert [found.level for found in examine(Files(str(tmp_path / "moses.ini")))] == ["note"]
    (tmp_path / "moses.ini").write_text(BINARY.format(kind="PhraseDictionaryCompact", path=tmp_path / "other"))
    assert [found.level for found in examine(Files(str(tmp_path / "moses.ini")))] == ["error"]
    (tmp_path / "moses.ini").write_text(BINARY.format(kind="ProbingPT", path=tmp_path))
    parts = "TargetColl.dat, TargetVocab.dat, Alignments.dat, probing_hash.dat, source_vocabids, config"
    (found,) = examine(Files(str(tmp_path / "moses.ini")))
    assert str(found) == f"error: {tmp_path}: a ProbingPT without {parts}; make it again, or correct the path"


SYSTEM = """[feature]
UnknownWordPenalty
PhraseBoundaryFeature name=PB0
VWFeatureBagOfWords name=bow
KENLM name=LM0 oov-feature=1 path={folder}/lm.arpa
PhraseDictionaryMemory name=TM0 num-features=2 path={folder}/table tuneable=false
PhraseDictionaryMemory name=TM1 num-features=2 path={folder}/table tuneable-components=true,false
PhraseDictionaryGroup name=G0 members=TM0,TM1 num-features=6 word-counts=true
[mapping]
0 T 2
[weight]
LM0= 1 1
TM1= 9 9
TM1= 0.1 0.1
G0= 1 1 1 1 1 1
PB0_a= 0.3
"""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("", "", None),
        ("num-features=6", "num-features=5",
         "error: moses.ini:8: num-features=5, but the members of G0 make 6; write num-features=6 and as many weights"),
        ("word-counts=true", "phrase-counts=true", None),
        ("word-counts=true", "word-counts=off",
         "error: moses.ini:8: num-features=6, but the members of G0 make 4; write num-features=4 and as many weights"),
        ("word-counts=true", "model-bitmap-counts=true",
         "error: moses.ini:8: num-features=6, but the members of G0 make 7; write num-features=7 and as many weights"),
        ("Group name=G0 members", "MultiModel name=G0 components",
         "error: moses.ini:8: num-features=6, but the components of G0 have [2, 2]; use tables with as many scores"),
        ("members=TM0,TM1", "members=TM6,TM7",
         "error: moses.ini:8: G0 combines TM6, TM7, which is no feature of this file; correct the names"),
        ("0 T 2", "0 T 3",
         "error: moses.ini:10: [mapping] asks for table 3, but there are 3 (counted from 0); correct the number"),
        (
            "PB0_a",
            "PX0_a",
            "error: moses.ini: a sparse weight PX0_a, but there is no feature PX0; delete the line: Moses would stop here",
        ),
        (
            "name=TM1",
            "name=TM1 input-factor=0,1,2",
            "warning: moses.ini:7: TM1 asks for input factor 1, 2, which [input-factors] does not have; add a line, or correct input-factor=",
        ),
        ("LM0= 1 1", "LM0= 1",
         "error: moses.ini: LM0 has 1 weight for 2 values of [feature]; tune again, or correct the line"),
    ],
)  # fmt: skip
def test_groups_components_and_sparse_weights_are_understood(
    folder: Path, before: str, after: str, said: str | None
) -> None:
    (folder / "moses.ini").write_text(SYSTEM.format(folder=folder).replace(before, after))
    found = [str(one).replace(f"{folder}/", "") for one in examine(Files(str(folder / "moses.ini")))]
    assert found[:1] == ([] if said is None else [said])


def test_the_list_of_a_system_with_tuneable_components_fits_its_ini(folder: Path) -> None:
    (folder / "moses.ini").write_text(SYSTEM.format(folder=folder))
    (folder / "nbest").write_text("0 ||| la maison ||| LM0= -1 0 TM1= -2 G0= 1 2 3 4 5 6 PB0_a= 1 ||| -3\n")
    files = Files(nbest=str(folder / "nbest"), weights=str(folder / "moses.ini"))
    assert list(examine(files)) == []
    assert main(["rerank", "--nbest", files.nbest, "--weights", files.weights, "--output", str(folder / "out")]) == 0
    assert (folder / "out").read_text() == "la maison\n"


def test_an_ini_of_before_2013_is_not_looked_into(tmp_path: Path) -> None:
    (tmp_path / "moses.ini").write_text("[ttable-file]\n0 0 0 2 x\n[weight-t]\n1\n1\n")
    (found,) = examine(Files(str(tmp_path / "moses.ini")))
    problem = "has its tables and weights in [ttable-file] and [weight-t], as before 2013"
    assert (found.level, found.place, found.problem) == ("error", str(tmp_path / "moses.ini"), problem)
    assert found.remedy == "convert it with Moses' scripts/training/convert-moses-ini-to-v2.perl"


def test_a_table_of_hashes_is_no_text(shared: Path, tmp_path: Path, error_line: Callable[..., str]) -> None:
    table = str(shared / "moses" / "binarised" / "probing")
    said = "is a table for ProbingPT: its phrase pairs are not looked into; give the text that it was made from"
    assert [str(found) for found in examine(Files(table=table))] == [f"note: {table}: {said}"]
    line = error_line(main, ["rescore-table", table, "--scorer", "none", "--output", str(tmp_path / "new")])
    assert f"{table}: is a binarised table (ProbingPT), in which" in line
    assert not (tmp_path / "new").exists()


def test_a_real_table_on_disk_is_not_looked_into_and_one_without_its_words_is_an_error(
    shared: Path, tmp_path: Path
) -> None:
    table = tmp_path / "ondisk"
    shutil.copytree(shared / "moses" / "binarised" / "ondisk", table)
    assert [one.level for one in examine(Files(table=str(table)))] == ["note"]
    table.chmod(0o755)
    (tmp_path / "moses.ini").write_text(BINARY.format(kind="PhraseDictionaryOnDisk", path=table))
    (table / "Vocab.dat").unlink()
    (finding,) = examine(Files(str(tmp_path / "moses.ini")))
    assert "without Vocab.dat" in finding.problem


def test_a_table_of_rules_is_looked_into_by_its_words(folder: Path) -> None:
    (folder / "table").write_bytes(RULES)
    (folder / "nbest").write_text(NBEST.replace("la maison", "la maison une"))
    assert findings(folder) == []
    (folder / "table").write_bytes(RULES.replace(b"maison", b"dog"))
    assert any("words are unknown to" in found for found in findings(folder))


def test_a_list_of_other_sentences_than_source_or_reference_is_named(tmp_path: Path) -> None:
    nbest, source, reference = (str(tmp_path / name) for name in ("nbest", "source", "reference"))
    lengths = [1 + 7 * number % 23 for number in range(40)]
    aligned = [f"{number} ||| {'le ' * size}fin ||| A= 1 ||| 1 ||| {size}-0\n" for number, size in enumerate(lengths)]
    Path(nbest).write_text("".join(aligned))
    for word, path in (("the ", source), ("le ", reference)):
        Path(path).write_text("".join(f"{word * size}{word}\n" for size in lengths))
    assert list(examine(Files(nbest=nbest, source=source, reference=reference))) == []
    for path, option in ((source, "source"), (reference, "reference")):
        lines = Path(path).read_text().splitlines(keepends=True)
        Path(path).write_text("".join(lines[11:] + lines[:11]))
        [found] = examine(Files(nbest=nbest, **{option: path}))
        assert str(found).startswith(f"warning: {nbest}: is it a list of other sentences than {path}? ")
        assert ("alignments" in found.problem) == (option == "source")


def test_a_list_of_lines_is_looked_at_as_other_commands_read_it(folder: Path, capfd, error_line) -> None:
    (folder / "lines").write_text("la maison\nune maison\nla\nune\n")
    assert main(["doctor", "--nbest", str(folder / "lines")]) == 1
    assert "give --nbest-format lines:N" in capfd.readouterr().out
    assert main(["doctor", "--nbest", str(folder / "lines"), "--nbest-format", "lines:2"]) == 0
    line = error_line(main, ["doctor", "--nbest", str(folder / "lines"), "--nbest-format", "lines"])
    assert "needs the number of hypotheses" in line


def test_a_server_that_cannot_be_looked_at_is_refused(folder: Path, error_line) -> None:
    line = error_line(main, ["doctor", str(folder / "moses.ini"), "--scorer", "grpc:localhost:1"])
    assert "--scorer grpc:localhost:1: a server does not show its vocabularies; give the model's folder" in line


CASES = {
    "cased": ["the dog saw it", "The cat saw Anna", "Dogs saw the cat", "A dog saw a cat"],
    "truecased": ["the dog saw it", "the cat saw Anna", "dogs saw the cat", "a dog saw a cat"],
}


def words_cased(place: str, how: str) -> Words:
    """Twenty sentences, each of words of its own."""
    texts = CASES[how]
    return words_of(place, (f"{text} ".replace(" ", f"{number:c} ") for number in range(97, 117) for text in texts))


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("cased", "cased", None),
        ("truecased", "truecased", None),
        ("cased", "truecased",
         "table: 0.0% of the words that may begin sentences have capitals, against 50.0% in text"),
        ("truecased", "cased",
         "text: 0.0% of the words that may begin sentences have capitals, against 50.0% in table"),
    ],
)  # fmt: skip
def test_files_that_are_not_cased_alike_are_named(first: str, second: str, said: str | None) -> None:
    text, table = words_cased("text", first), words_cased("table", second)
    begin = {word.lower() for word in text.counts if word[:-1].lower() in ("the", "a", "dogs")}
    found = [str(finding) for finding in examine_case(text, table, begin)]
    assert len(found) == (said is not None)
    remedy = "case both alike, by truecase.perl with the system's model, or in lower case"
    assert said is None or found[0] == f"warning: {said}; {remedy}"
    model = Vocabulary([*SPECIAL_WORDS, *table.counts])
    of_model = list(examine_case_of_model(text, begin, model, "model"))
    share, known = ("40.0%", "0%") if first == "cased" else ("0.0%", "100%")
    problem = f"{share} of the words that may begin sentences have capitals; model knows {known} of these so"
    assert [str(finding) for finding in of_model] == ([f"warning: text: {problem}; {remedy}"] if said else [])


def test_escapes_are_no_punctuation_glued_to_words(tmp_path: Path) -> None:
    for line, glued in (("l&apos; homme dort .", 0), ("l&apos; homme dort.", 1)):
        (tmp_path / "text").write_text(f"{line}\n")
        assert len(list(examine_text(str(tmp_path / "text"), most=0, tokenised=True))) == glued
        assert not list(examine_text(str(tmp_path / "text"), most=0, tokenised=False))  # as a reference may be


WORDS = [f"{one}{other}" for one in string.ascii_lowercase for other in "ab"]


def test_each_table_is_compared_with_the_reference_of_the_list(tmp_path: Path) -> None:
    table, nbest, reference = (tmp_path / name for name in ("table", "nbest", "reference"))
    lines = [f"{word.capitalize()} {word}" for word in WORDS]
    reference.write_text("".join(f"{line}\n" for line in lines))
    nbest.write_text("".join(f"{number} ||| {line} ||| LM0= -1 ||| -1\n" for number, line in enumerate(lines)))
    table.write_text("".join(f"{word} ||| {word} ||| 0.5 |||\n" for word in WORDS))
    found = [str(one) for one in examine(Files("", str(table), str(nbest), reference=str(reference)))]
    (named,) = (line for line in found if "of the words that may begin sentences have capitals" in line)
    assert f"{table}: 0.0%" in named and f"against 50.0% in {reference}" in named


def test_fewer_than_twenty_words_say_nothing() -> None:
    cased, lower = (
        words_of(how, [*WORDS, *map(change, WORDS)])
        for how, change in (("cased", str.capitalize), ("lower", str.lower))
    )
    assert not list(examine_case(cased, lower, WORDS[:19]))
    assert len(list(examine_case(cased, lower, WORDS[:20]))) == 1
