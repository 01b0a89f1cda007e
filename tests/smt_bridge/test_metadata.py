"""Metadata are read back, a table's as well; those of other bytes are not believed, whoever reads them."""

from __future__ import annotations

import gzip
import json
import shlex
from pathlib import Path

import pytest

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.files import open_output
from smt_bridge.commands.main import main
from smt_bridge.metadata import (
    Metadata,
    find_metadata,
    identity,
    known_columns,
    new_metadata,
    read_metadata,
    signature_of,
)
from smt_bridge.tables.rescore import _OPTIONS, write_table_metadata
from smt_bridge.tables.scoring import Counts
from smt_bridge.tables.table import Window
from tests.metadata_files import describe, metadata_of

SCORER = "nmt:rnnsearch|model:c6a6575452b0|log:e|norm:none|dtype:float32|version:0.1.0"


def test_metadata_is_read_back(tmp_path: Path) -> None:
    columns = {"NMT0": SCORER, "WordCount0": signature_of("wordcount")}
    options = {"scorer": ["é", "no UTF-8: \udcff"]}
    written = Metadata(input="no UTF-8: \udcff", columns=columns, counts={"hypotheses": 3}, options=options)
    (tmp_path / "out.gz").write_bytes(b"0 ||| a ||| ||| 1\n")
    content = written.model_dump(exclude_none=True)
    (tmp_path / "out.gz.json").write_bytes(metadata_of(str(tmp_path / "out.gz"), content))
    written = written.model_copy(update={"file": identity(str(tmp_path / "out.gz"))})
    assert read_metadata(str(tmp_path / "out.gz.json")) == written
    assert '"é"' in (tmp_path / "out.gz.json").read_text("utf-8")
    assert list(read_metadata(str(tmp_path / "out.gz.json")).columns) == ["NMT0", "WordCount0"]
    assert find_metadata(str(tmp_path / "out.gz")) == written
    assert find_metadata(str(tmp_path / "other.gz")) is None
    assert find_metadata("-") is None


def test_metadata_of_a_rescored_table_have_the_same_form(tmp_path: Path) -> None:
    signatures, counts = {"scorer": SCORER, "reverse_scorer": "fake:table"}, Counts(lines=3, pairs=2, log_prob=-1.5)
    options = dict.fromkeys(_OPTIONS) | {"input": "phrase-table.gz", "unknown_count": True}
    first = Window("phrase-table.gz", 1, 4, b"", rules=False)
    with open_output(
        str(tmp_path / "table"),
        on_complete=lambda: write_table_metadata(
            str(tmp_path / "table"), options, first=first, signatures=signatures, counts=counts
        ),
    ):
        pass
    found = find_metadata(str(tmp_path / "table"))
    assert found is not None
    assert (found.input, found.scores_before, found.counts["pairs"]) == ("phrase-table.gz", 4, 2)
    assert found.columns == {
        "p(target|source)": f"direction:forward|{SCORER}",
        "p(source|target)": "direction:reverse|fake:table",
        "exp(unknown)": f"direction:forward|{SCORER}",
    }
    assert found.signatures == signatures


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        *[("[1]", ": Input should be a"), ("{}", "input: Field required"), ("3", ": Input "), ('"x"', ": Input ")],
        ('{"input": "a", "columns": 3}', "columns: Input should be a valid dictionary"),
        *[("", ""), ("\xff", "")],
    ],
)
def test_file_that_is_no_metadata_is_named(tmp_path: Path, text: str, wrong: str) -> None:
    (tmp_path / "list").write_bytes(b"0 ||| a ||| ||| 1\n")
    (tmp_path / "list.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        find_metadata(str(tmp_path / "list"))
    named = f": is not metadata of add-features or rescore-table ({wrong}" if wrong else ""
    assert str(caught.value).startswith(f"{tmp_path}/list.json{named}")
    assert not wrong or str(caught.value).endswith("); remove it or write it again")
    with pytest.raises(ConfigError) as refused:
        new_metadata(str(tmp_path / "list"))
    problem = "is there already and is no metadata of add-features or rescore-table"
    assert str(refused.value) == f"{tmp_path}/list.json: {problem}; move it away, or choose another --output"


def test_only_files_have_metadata_and_their_identity_is_length_and_crc(tmp_path: Path) -> None:
    assert [new_metadata(output) for output in ("-", "/dev/null", "a.gz")] == [None, None, "a.gz.json"]
    (tmp_path / "digits").write_bytes(b"123456789")  # of which the CRC-32 is known
    assert identity(str(tmp_path / "digits")) == {"bytes": 9, "crc32": "cbf43926"}
    (tmp_path / "digits").write_bytes(b"62")
    assert identity(str(tmp_path / "digits"))["crc32"] == "0012d20a"


LIST = "0 ||| le chat ||| LM0= -5 ||| -3\n0 ||| un chat ||| LM0= -4 ||| -4\n1 ||| oui ||| LM0= -1 ||| -1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``rich`` had the column of WordCount0 with its metadata, and was made again without."""
    monkeypatch.chdir(tmp_path)
    for name, content in (("list", LIST), ("source", "the cat\nyes\n"), ("weights", "LM0= 1\n")):
        Path(name).write_text(content)
    Path("reference").write_text("le chat\noui\n")
    command = "add-features --nbest list --source source --feature wordcount --output rich --quiet --jobs 1"
    assert main(command.split()) == 0
    return tmp_path


def test_a_list_that_was_made_again_has_no_column_of_the_older_one(folder: Path, capsys) -> None:
    assert list(known_columns("rich")) == ["WordCount0"]
    assert main(shlex.split("rerank --nbest list --weights weights --nbest-output rich --output best")) == 0
    with pytest.raises(InputError, match="describes other content than rich has; remove it"):
        known_columns("rich")
    Path("rich.json").unlink()
    assert known_columns("rich") == {}


@pytest.mark.parametrize(
    "command",
    [
        "wire moses.ini --table table --output new.ini",
        "add-features --nbest table --source source --feature lengthratio --output merged --jobs 1",
        "add-features --nbest a=table --nbest b=list --source source --feature lengthratio --output merged --jobs 1",
        "tune --nbest table --reference reference --output tuned",
        "rerank --nbest table --weights weights --reference reference --report report.json --output best",
        "filter-table table --sources source --output small",
        "report --table table --output page.html",
        "tune --nbest table --reference reference --recipe recipe --output tuned",
    ],
)
def test_readers_that_need_it_end(folder: Path, error_line, command: str) -> None:
    Path("moses.ini").write_text(
        "[mapping]\n0 T 0\n\n[feature]\nPhraseDictionaryMemory name=TM0 num-features=4 path=table\n\n[weight]\n"
        "TM0= 1 1 1 1\n"
    )
    Path("table").write_text("a ||| x ||| 1 1 1 1 0.5 ||| 0-0 ||| 1 1 1\n")
    describe("table", {"added": ["p(target|source)"]})
    Path("table").write_text("a ||| x ||| 1 1 1 1 0.4 ||| 0-0 ||| 1 1 1\n")
    if "--nbest" in command:
        Path("table").write_text(LIST)
    line = error_line(main, command.split())
    assert not Path("best").exists()
    assert "table.json: describes other content than table has; remove it, or make both again" in line


def test_metadata_of_another_version_are_read_if_they_say_of_which_bytes_they_are(folder: Path, error_line) -> None:
    found = json.loads(Path("rich.json").read_bytes())
    other = {**found, "version": "0.0.1", "of_that_version": [1]}
    Path("rich.json").write_text(json.dumps(other))
    assert list(known_columns("rich")) == ["WordCount0"]
    del other["file"]  # as the first ones were
    Path("rich.json").write_text(json.dumps(other))
    add = "add-features --nbest rich --source source --feature lengthratio --output more --jobs 1"
    assert error_line(main, add.split()).endswith(
        "rich.json: describes other content than rich has; remove it, or make both again"
    )
    assert not Path("more").exists()


def test_one_bit_tells(tmp_path: Path) -> None:
    path = tmp_path / "list.gz"
    path.write_bytes(gzip.compress(LIST.encode(), mtime=0))
    describe(path, {"added": ["p(target|source)"]})
    assert find_metadata(str(path)) is not None
    path.write_bytes(gzip.compress(LIST.replace("-5", "-6").encode(), mtime=0))
    with pytest.raises(InputError, match="describes other content"):
        find_metadata(str(path))
    content = json.loads((tmp_path / "list.gz.json").read_text())
    assert content.pop("file").keys() == {"bytes", "crc32"}
    (tmp_path / "list.gz.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="describes other content"):
        find_metadata(str(path))
