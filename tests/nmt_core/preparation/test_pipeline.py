"""A corpus through all steps: accounts, replays, processes, and input that is no good."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.errors import ConfigError, InputError, NmtError
from nmt_core.preparation.bundled import BundledPreprocessor, PreparedText, Preprocessor
from nmt_core.preparation.corpus import read_chunks
from nmt_core.preparation.pipeline import Preparation, _publish
from nmt_core.preparation.record import Record, parse_record, read_record
from nmt_core.preparation.settings import PLAIN, PreparationConfig, model_names, models_in, open_steps
from nmt_core.preparation.steps import Side

ENGLISH = ["The plan\u2019s good.", "A man sees the plan.", "Men see a dog.", "The dog sees the man.", "Good dogs!"]
GERMAN = ["Der Aktionsplan ist gut.", "Ein Mann sieht den Plan.", "Der Plan der Aktion.", "Die Aktion.", "Gute Hunde!"]
EVERYTHING: dict[str, Any] = {"truecasing": {}, "compounds": {"mark": True}, "subwords": {"type": "bpe", "merges": 30}}
LEARNED: dict[str, Any] = {"truecasing": {}, "compounds": {"mark": True}}


def write(folder: Path, english: list[str], german: list[str]) -> dict[Any, str]:
    """Raw text; the inputs of a preparation."""
    (folder / "raw.en").write_text("".join(f"{line}\n" for line in english))
    (folder / "raw.de").write_text("".join(f"{line}\n" for line in german))
    return {"source": str(folder / "raw.en"), "target": str(folder / "raw.de")}


def config(**settings: Any) -> PreparationConfig:
    return PreparationConfig.from_mapping({"source_language": "en", "target_language": "de", **settings}, origin="test")


def lines(path: Path) -> list[str]:
    return path.read_text().split("\n")[:-1]


def prepare(folder: Path, inputs: dict[Any, str], name: str = "out", jobs: int = 1, **settings: Any) -> Record:
    return Preparation(config(**settings), inputs, str(folder / name / "train"), jobs=jobs).run()


def test_steps_by_default(tmp_path: Path) -> None:
    inputs, done = write(tmp_path, ENGLISH, GERMAN), list[tuple[str, int]]()
    record = prepare(tmp_path, inputs)
    Preparation(config(**LEARNED), inputs, str(tmp_path / "b/a"), progress=lambda *one: done.append(one)).run()
    assert done == [("tokenization", 5), ("truecasing", 5), ("compounds", 5)]
    assert lines(tmp_path / "out/train.en")[0] == "The plan &apos;s good ."
    assert lines(tmp_path / "out/train.de")[0] == "Der Aktionsplan ist gut ."
    assert (record.read, record.kept, record.dropped, record.models) == (5, 5, [], {})
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["preparation.json", "train.de", "train.en"]


def test_what_is_dropped_is_told_and_adds_up(tmp_path: Path) -> None:
    english = ["same", *ENGLISH, "", "x", "bad \x00", *ENGLISH[:2], "w " * 101, "one", *["ok"] * 20]
    german = ["same", *GERMAN, "leer", "w " * 13, "gut", *GERMAN[:2], "eins", "", *[f"gut {n}" for n in range(20)]]
    filters = {"duplicates": True, "identical": True}
    record = prepare(tmp_path, write(tmp_path, english, german), filters=filters)
    assert [(row.reason, row.side, row.lines, row.first_line) for row in record.dropped] == [
        ("duplicate", None, 2, 10),
        ("characters that are no text", "source", 1, 9),
        ("empty", "source", 1, 7),
        ("empty", "target", 1, 13),
        ("identical sides", None, 1, 1),
        ("length ratio", None, 1, 8),
        ("too long", "source", 1, 12),
    ]
    assert record.kept == len(lines(tmp_path / "out/train.de")) == len(lines(tmp_path / "out/train.en"))
    assert record.read == len(english) == record.kept + sum(row.lines for row in record.dropped)
    assert record == read_record(str(tmp_path / "out/preparation.json"))


@pytest.mark.parametrize("settings", [LEARNED, EVERYTHING], ids=["words", "subwords"])
def test_a_replay_equals_the_first_pass(tmp_path: Path, settings: dict[str, Any]) -> None:
    if "subwords" in settings:
        pytest.importorskip("subword_nmt")
    prepare(tmp_path, write(tmp_path, ENGLISH, GERMAN), **settings)
    for side, raw in (("source", ENGLISH), ("target", GERMAN)):
        replay = BundledPreprocessor.read(str(tmp_path / "out/preparation.json")).open_side(side)
        prepared = lines(tmp_path / f"out/train.{'en' if side == 'source' else 'de'}")
        assert [replay.apply(line) for line in raw] == prepared
        assert [replay.undo(line) for line in prepared] == [line.replace("\u2019", "'") for line in raw]
    assert any("@s@" in line for line in lines(tmp_path / "out/train.de")) or "subwords" in settings


def test_bytes_do_not_depend_on_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_chunks, "__kwdefaults__", {"lines": 7})
    inputs = write(tmp_path, [f"{n % 30} {line}" for n in range(40) for line in ENGLISH], GERMAN * 40)
    for jobs in (1, 2):
        prepare(tmp_path, inputs, name=str(jobs), jobs=jobs, filters={"duplicates": True}, **LEARNED)
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "2").iterdir())
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name


def test_a_model_that_was_changed_is_rejected(tmp_path: Path) -> None:
    inputs = write(tmp_path, ENGLISH, GERMAN)
    prepare(tmp_path, inputs, **LEARNED)
    (tmp_path / "out/compounds.de").write_text("damaged\n")
    with pytest.raises(
        NmtError,
        match=r"compounds\.de: not the model that preparation\.json speaks of; copy the whole directory again$",
    ):
        BundledPreprocessor.read(str(tmp_path / "out/preparation.json"))
    path = tmp_path / "out/preparation.json"
    path.write_text(path.read_text().replace('"compounds.de":', '"../raw.de":'))
    problem = "speaks of other files than its steps have; was it edited? Prepare the text again"
    with pytest.raises(InputError, match=re.escape(f"{path}: {problem}")):
        BundledPreprocessor.read(str(path))


def test_an_end_while_files_get_their_names_leaves_no_record(tmp_path: Path) -> None:
    for name in ("new/train.en", "new/preparation.json", "train.en", "preparation.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(FileNotFoundError):
        _publish(str(tmp_path / "new"), str(tmp_path), ["train.en", "absent"])
    assert sorted(os.listdir(tmp_path)) == ["new", "train.en"] and os.listdir(tmp_path / "new") == ["preparation.json"]


def test_gzip_in_and_out(tmp_path: Path) -> None:
    inputs = write(tmp_path, ENGLISH, GERMAN)
    Path(inputs["source"]).write_bytes(gzip.compress(Path(inputs["source"]).read_bytes()))
    Preparation(config(), inputs, str(tmp_path / "out/train"), packed=True).run()
    with gzip.open(tmp_path / "out/train.en.gz", "rt") as stream:
        assert stream.readline() == "The plan &apos;s good .\n"


def test_a_monolingual_corpus(tmp_path: Path) -> None:
    settings = config(source_language=None, filters={"identical": True})
    record = Preparation(settings, {"target": write(tmp_path, [], GERMAN)["target"]}, str(tmp_path / "out/mono")).run()
    assert record.outputs == {"target": "mono.de"}
    assert len(lines(tmp_path / "out/mono.de")) == 5
    mono = BundledPreprocessor.read(str(tmp_path / "out/preparation.json"))
    assert (PreparedText(mono).tokenize("Ja."), PreparedText(mono).tokenize_target("Ja.")) == ("", "Ja .")
    with pytest.raises(ConfigError, match=r"^the preparation has no source side$"):
        mono.open_side("source")
    with pytest.raises(ConfigError, match=r"^the preparation is of one language, de; give one of both languages$"):
        mono.between("source", "target")


def test_what_a_preparation_says_of_itself() -> None:
    def of(models: Any = (), **settings: Any) -> BundledPreprocessor:
        return BundledPreprocessor.of_corpus(config(**settings), dict(models), ["a", "b"])

    one, learned = of(), of({"truecasing.en": b"the\t1\n"}, truecasing={})
    assert re.fullmatch("[0-9a-f]{12}", one.fingerprint)
    assert of(filters={"duplicates": True}).fingerprint == one.fingerprint
    others = [of(target_language="fr"), of(source_language="fr"), of(punctuation=None), learned, of(truecasing={})]
    assert len({one.fingerprint, *(other.fingerprint for other in others)}) == 6
    plain = of(punctuation=None, tokenization={"escape": False, "aggressive_hyphens": True}).text
    assert plain.to_mapping() == one.text.to_mapping() | {
        "normalize_punctuation": False, "escape": False, "aggressive_hyphens": True
    }  # fmt: skip
    assert of(tokenization=None).text == one.text  # the step has the same defaults
    kinds = [{}, {"compounds": {}}, {"subwords": {"type": "bpe"}}, {"subwords": {"type": "sentencepiece"}}]
    kinds += [{"compounds": {}, "subwords": {"type": "morfessor"}}, {"subwords": {"type": "bpe", "sides": ["target"]}}]
    sides: list[Side] = ["source", "target"]
    assert [[of(**kind).cuts(side) for side in sides] for kind in kinds] == [
        [False, False], [False, True], [True, True], [True, True], [True, True], [False, True]
    ]  # fmt: skip
    assert [[of(**kind).joins(side) for side in sides] for kind in kinds] == [
        [False, False], [False, False], [True, True], [False, False], [True, False], [False, True]
    ]  # fmt: skip
    apart: list[dict[str, Any]] = [{"type": "bpe", "joint": False}, {"type": "morfessor"}, {"type": "bpe"}]
    apart.append({"type": "bpe", "sides": ["source"]})
    found = [model_names(config(subwords=kind), ["subwords"]) for kind in apart]
    assert found == [["subwords.en", "subwords.de"], ["subwords.en", "subwords.de"], ["subwords"], ["subwords.en"]]


def test_another_corpus_like_the_first(tmp_path: Path) -> None:
    inputs = write(tmp_path, ENGLISH, GERMAN)
    prepare(tmp_path, inputs, **LEARNED)
    earlier = BundledPreprocessor.read(str(tmp_path / "out/preparation.json"))
    assert (earlier.side_of("en", "x"), earlier.side_of("de", "x")) == ("source", "target")
    like = earlier.between("target", "source")
    swapped = {"source": inputs["target"], "target": inputs["source"]}
    Preparation(like.record.settings, swapped, str(tmp_path / "other/train"), like=like).run()
    for name in ("train.en", "train.de", "truecasing.de", "compounds.de"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    assert like.record.inputs == {"source": inputs["target"], "target": inputs["source"]}
    assert like.record.outputs == {"source": "train.de", "target": "train.en"}
    problem = "^preparation.json is about en and de, not fr; give its languages, or leave --like out$"
    with pytest.raises(ConfigError, match=problem):
        earlier.side_of("fr", "preparation.json")


def test_a_failure_leaves_older_files_alone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"raw.en:5: has 4 lines but .*raw.de has 5; parallel files"):
        prepare(tmp_path, write(tmp_path, ENGLISH[:4], GERMAN))
    assert list((tmp_path / "out").iterdir()) == []
    (tmp_path / "long").write_text("a\n" * 5001)
    assert [chunk.first for chunk in read_chunks([str(tmp_path / "long")])] == [1, 5001]
    with pytest.raises(InputError, match=r"raw.en:5: has 4 lines but .*long has 5,001;"):
        list(read_chunks([str(tmp_path / "long"), str(tmp_path / "raw.en")], lines=3))
    prepare(tmp_path, write(tmp_path, ENGLISH, GERMAN), **LEARNED)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(InputError, match="has 4 lines"):
        prepare(tmp_path, write(tmp_path, ENGLISH, GERMAN[:4]), **LEARNED)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_what_a_killed_program_left_goes_and_a_second_one_is_refused(tmp_path: Path) -> None:
    inputs = write(tmp_path, ENGLISH, GERMAN)
    left = tmp_path / "out" / ".train.hybridmt.tmp"
    (left / ".shuffle.x").mkdir(parents=True)
    (left / "clean.pass.source").write_text("half a li")
    lock = os.open(left, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with pytest.raises(ConfigError, match=r"out/train: another program is making it now; wait for it$"):
        prepare(tmp_path, inputs)
    assert (left / "clean.pass.source").exists()
    os.close(lock)
    prepare(tmp_path, inputs)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["preparation.json", "train.de", "train.en"]


def test_a_hidden_folder_of_somebody_else_stays(tmp_path: Path) -> None:
    inputs = write(tmp_path, ENGLISH, GERMAN)
    mine = tmp_path / "out" / ".train.tmp"
    mine.mkdir(parents=True)
    (mine / "notes").write_text("mine")
    prepare(tmp_path, inputs)
    assert (mine / "notes").read_text() == "mine"
    (tmp_path / "out" / ".train.hybridmt.tmp").symlink_to(mine)
    with pytest.raises(NmtError, match="out: cannot be written"):
        prepare(tmp_path, inputs)
    assert (mine / "notes").read_text() == "mine"


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    inputs = write(tmp_path, ["fine"] * 10, ["gut"] * 10)
    Path(inputs["target"]).write_bytes(b"gut\n" * 8 + "schön\n".encode("latin-1") * 2)
    problem = "raw.de:9: 2 of 10 lines are no UTF-8 text, here is the first; convert it with iconv$"
    with pytest.raises(InputError, match=problem):
        prepare(tmp_path, inputs)
    record = prepare(tmp_path, inputs, filters={"junk": {"maximum_lines": 0.5}})
    assert (record.kept, record.dropped[0].reason, record.dropped[0].first_line) == (8, "not UTF-8", 9)
    Path(inputs["target"]).write_bytes(b"gut\n" * 9 + "schön\n".encode("latin-1"))  # a tenth, and no more
    assert prepare(tmp_path, inputs).kept == 9


def test_filters_that_leave_nothing_are_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"raw.de: no line is left of 1,000 \(too short: 1,000\)$"):
        prepare(tmp_path, write(tmp_path, ["x"] * 1000, ["y"] * 1000), filters={"minimum_words": 50})
    with pytest.raises(InputError, match=r"raw.de: no line is left of 0 \(the file is empty\)$"):
        prepare(tmp_path, write(tmp_path, [], []))


def test_two_programs_that_prepare_into_one_folder_at_once(tmp_path: Path) -> None:
    """The second one to be complete is refused, and leaves the models of the first."""
    inputs = write(tmp_path, ENGLISH, GERMAN)
    begun: list[str] = []

    def meanwhile(_name: str, _lines: int) -> None:
        if not begun:
            begun.append("train")
            prepare(tmp_path, inputs)

    with pytest.raises(ConfigError, match=r"belongs to train.en, train.de; choose another directory"):
        Preparation(config(), inputs, str(tmp_path / "out/dev"), progress=meanwhile).run()
    assert not list((tmp_path / "out").glob("*dev*"))
    prepare(tmp_path, inputs)
    with pytest.raises(ConfigError, match=r"belongs to train.en, train.de; choose another directory"):
        Preparation(config(), inputs, str(tmp_path / "out/dev")).run()


def test_raw_text_is_not_overwritten(tmp_path: Path) -> None:
    inputs = write(tmp_path, ENGLISH, GERMAN)
    with pytest.raises(ConfigError, match=r"raw.en would be overwritten; choose another --output$"):
        Preparation(config(), inputs, str(tmp_path / "raw")).run()
    with pytest.raises(ConfigError, match=r"^only one side can be standard input$"):
        Preparation(config(), {"source": "-", "target": "-"}, str(tmp_path / "out/train")).run()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"target_language": "en"}, "both sides are in 'en'; the outputs could not be told apart"),
        (
            {"target_language": "fr", "compounds": {}},
            "compounds: no side is German; name the sides to split in compounds.sides",
        ),
        (
            {"source_language": None},
            "give --source with --source-language, --target with --target-language, one file each",
        ),
    ],
)
def test_settings_that_do_not_fit(tmp_path: Path, settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=f"^{problem}$"):
        prepare(tmp_path, write(tmp_path, ENGLISH, GERMAN), **settings)


def test_a_damaged_or_newer_record_is_named(tmp_path: Path) -> None:
    problem = "x: not a preparation.json that this version understands; expected what 'nmt-core prepare' wrote$"
    for content in (b"{}", b"[1", b"[]", b'{"settings": 1}', b"[" * 100_000, b"\xff"):
        with pytest.raises(InputError, match=problem):
            parse_record(content, "x")
    prepare(tmp_path, write(tmp_path, ENGLISH, GERMAN))
    path = tmp_path / "out/preparation.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 2}))
    with pytest.raises(InputError, match=r"by a newer version of this program \(format 2\); update"):
        read_record(str(path))


def test_real_text(shared: Path, tmp_path: Path) -> None:
    corpus = shared / "data" / "multi30k"
    inputs = {"source": str(corpus / "val.en.gz"), "target": str(corpus / "val.de.gz")}
    record = prepare(tmp_path, inputs, filters={"duplicates": True}, **LEARNED)
    assert record.read == 1014
    assert record.kept > 1000
    text = (tmp_path / "out/train.de").read_text()
    assert " @s@ " in text
    replay = BundledPreprocessor.read(str(tmp_path / "out/preparation.json")).open_side("target")
    plain = Preprocessor(open_steps(config(), "target", PLAIN, models_in("")))
    for line in lines(tmp_path / "out/train.de")[:200]:
        back = plain.apply(replay.undo(line))
        assert back[:1].upper() == back[:1]
        assert replay.apply(replay.undo(line)) == line


@given(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])))
def test_any_line_gives_one_line_without_spaces_to_spare(line: str) -> None:
    text = Preprocessor(open_steps(config(), "source", PLAIN, models_in(""))).apply(line)
    assert "\n" not in text
    assert text == " ".join(text.split(" "))
