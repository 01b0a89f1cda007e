"""`smt-bridge tune-loop`: what it settles on, and that interruptions change nothing."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smt_bridge.commands.main import main
from smt_bridge.decoder import moses_process, tuning_loop
from smt_bridge.formats.moses_ini import read_ini
from smt_bridge.formats.tuned_ini import with_weights
from smt_bridge.formats.weights import read_weights
from tests.smt_bridge.decoder.small_hybrid import FAKE, fake_moses

INI = """# a system
[feature]
UnknownWordPenalty
KENLM name=LM0 path=lm.arpa order=3   # the language model
Distortion
PhraseDictionaryMemory name=TM0 num-features=3 path=table.gz tuneable-components=true,false,true

[weight]
UnknownWordPenalty0= 1
LM0= -0.3   # to be tuned
Distortion0= 0.4
TM0= 0.3 7 0.1
"""
SOURCE = ["b a d c", "", "c a", "e b d a c", "d a c", "b c a e", "e d c b a", "a c e d"]


@pytest.fixture
def moses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A decoder whose lists depend on the weights, in a folder with a system and its development set."""
    monkeypatch.setattr(moses_process, "_WAITS", (0.0, 0.0, 0.0))
    monkeypatch.setenv("FAKE_MOSES", "weighted")
    monkeypatch.chdir(tmp_path)
    Path("moses.ini").write_text(INI)
    Path("dev.in").write_text("".join(f"{line}\n" for line in SOURCE))
    Path("dev.ref").write_text("".join(f"{' '.join(sorted(line.split()))}\n" for line in SOURCE))
    return fake_moses(tmp_path)


def arguments(moses: str, *more: str) -> list[str]:
    files = [
        "moses.ini",
        "--source",
        "dev.in",
        "--reference",
        "dev.ref",
        "--working-dir",
        "work",
        "--output",
        "tuned.ini",
    ]
    return ["tune-loop", *files, "--moses", moses, "--nbest", "3", "--runs", "2", "--restarts", "3", *more]


def state() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("work/state.json").read_text())
    return found


def test_it_settles_on_weights_that_translate_best(moses: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(moses)) == 0
    rounds = state()["rounds"]
    scores = [one["score"] for one in rounds]
    assert len(rounds) > 2 and scores[0] < 60 and max(scores) == 100
    assert [one["hypotheses"] for one in rounds] == [
        sum(one["new"] for one in rounds[: n + 1]) for n in range(len(rounds))
    ]
    best = max(place for place, score in enumerate(scores) if score == max(scores))
    assert read_weights("tuned.ini") == read_weights(f"work/round{best + 1}.ini")
    errors = capsys.readouterr().err
    assert f"ended after {len(rounds)} rounds" in errors and "BLEU 100.00; at the start" in errors


def test_nothing_but_the_weights_of_lists_changes(moses: str) -> None:
    assert main(arguments(moses, "--quiet")) == 0
    before, after = (Path(name).read_text().splitlines() for name in ("moses.ini", "tuned.ini"))
    changed = [number for number, lines in enumerate(zip(before, after, strict=True)) if lines[0] != lines[1]]
    assert [before[number].split()[0] for number in changed] == ["LM0=", "Distortion0=", "TM0="]
    assert after[changed[0]].endswith("   # to be tuned")
    assert after[changed[2]].split()[2] == "7"


def test_an_interrupted_loop_ends_where_an_uninterrupted_one_does(moses: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(arguments(moses, "--quiet")) == 0
    expected, rounds = Path("tuned.ini").read_bytes(), state()["rounds"]
    tune = tuning_loop.tune
    for number in range(len(rounds) - 1):  # Ctrl-C in the tuning of every round
        left = iter([True] * number)

        def interrupted(*args: Any, left: Any = left, **options: Any) -> Any:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return tune(*args, **options)

        monkeypatch.setattr(tuning_loop, "tune", interrupted)
        assert main(arguments(moses, "--quiet", "--restart")) == 130
        assert not Path("work/state.json").exists() or len(state()["rounds"]) == number
        lists = [path.stat().st_mtime_ns for path in Path("work").glob("round*.nbest.gz")]
        assert len(lists) == number + 1
        monkeypatch.setattr(tuning_loop, "tune", tune)
        assert main(arguments(moses, "--quiet")) == 0
        assert (Path("tuned.ini").read_bytes(), state()["rounds"]) == (expected, rounds)
        assert set(lists) <= {path.stat().st_mtime_ns for path in Path("work").glob("round*.nbest.gz")}


@pytest.mark.parametrize("name", ["round1.ini", "round2.ini"])
def test_a_killed_loop_goes_on(moses: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(arguments(moses, "--quiet")) == 0
    expected = Path("tuned.ini").read_bytes()
    os.unlink("tuned.ini")
    killer = Path("killer")
    condition = f'case "$*" in *{name}*) if [ ! -e killed ]; then touch killed; kill -9 $PPID; sleep 60; fi;; esac'
    killer.write_text(f'#!/bin/sh\n{condition}\nexec {sys.executable} {FAKE} "$@"\n')
    killer.chmod(0o755)
    command = [sys.executable, "-m", "smt_bridge", *arguments(str(killer.resolve()), "--quiet", "--restart")]
    found = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
    assert found.returncode == -signal.SIGKILL and not Path("tuned.ini").exists()
    command.remove("--restart")
    assert main(command[3:]) == 0
    assert Path("tuned.ini").read_bytes() == expected


def test_what_was_decoded_of_a_round_stays(moses: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from smt_bridge.decoder import development

    assert main(arguments(moses, "--quiet")) == 0
    expected = Path("tuned.ini").read_bytes()
    monkeypatch.setattr(development, "_PART", 2)
    translate = development.MosesProcess.translate
    asked: list[list[bytes]] = []

    def once(process: Any, sentences: list[bytes]) -> Any:
        asked.append(list(sentences))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return translate(process, sentences)

    monkeypatch.setattr(development.MosesProcess, "translate", once)
    assert main(arguments(moses, "--quiet", "--restart")) == 130
    assert main(arguments(moses, "--quiet")) == 0
    assert asked[2] == asked[3] and asked[5] == asked[0]
    assert Path("tuned.ini").read_bytes() == expected


def test_a_moses_that_dies_is_started_again(moses: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(arguments(moses, "--quiet")) == 0
    expected = Path("tuned.ini").read_bytes()
    monkeypatch.setenv("FAKE_MOSES", "weighted DIE-AT=3")
    assert main(arguments(moses, "--quiet", "--restart")) == 0
    assert Path("died").exists() and Path("tuned.ini").read_bytes() == expected


def test_other_files_or_options_are_refused(moses: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(moses, "--quiet", "--max-rounds", "1")) == 0
    assert Path("tuned.ini").read_text() == INI
    capsys.readouterr()
    assert main(arguments(moses, "--tuner", "mira")) == 2
    assert "was begun with another --tuner; use the same again" in capsys.readouterr().err
    with open("dev.ref", "a") as stream:
        stream.write("more\n")
    assert main(arguments(moses)) == 2
    assert "was begun with another --reference" in capsys.readouterr().err
    assert main(arguments(moses, "--restart", "--quiet")) == 0


def test_what_was_decoded_of_another_source_is_not_taken(
    moses: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Interrupted in the first round, before any round was complete."""

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tuning_loop, "tune", interrupted)
        assert main(arguments(moses, "--quiet")) == 130
    Path("dev.in").write_text("b a d\n" * len(SOURCE))
    capsys.readouterr()
    assert main(arguments(moses, "--quiet")) == 2
    assert "was begun with another --source" in capsys.readouterr().err


def test_sentences_without_a_list_are_told_of_after_an_interruption_too(
    moses: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("dev.in", "dev.ref"):
        with open(name, "a") as stream:
            stream.write("DIE of it\n")

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tuning_loop, "tune", interrupted)
        assert main(arguments(moses, "--quiet")) == 130
    capsys.readouterr()
    assert main(arguments(moses, "--quiet", "--max-rounds", "1")) == 0
    assert "warning: round 1: Moses failed at 1 sentences" in capsys.readouterr().err


def test_more_rounds_go_on_behind_those_that_were_allowed(moses: str) -> None:
    assert main(arguments(moses, "--quiet")) == 0
    expected, rounds = Path("tuned.ini").read_bytes(), state()["rounds"]
    for allowed in (["--max-rounds", "1", "--restart"], ["--max-rounds", "2"], []):
        assert main(arguments(moses, "--quiet", *allowed)) == 0
    assert (Path("tuned.ini").read_bytes(), state()["rounds"]) == (expected, rounds)


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_a_sentence_without_a_list_counts_as_an_empty_translation(moses: str, metric: str) -> None:
    """Otherwise the round in which Moses failed at the hardest sentences would score best."""
    for name in ("dev.in", "dev.ref"):
        with open(name, "a") as stream:
            stream.write("DIE of it\n")
    assert main(arguments(moses, "--quiet", "--metric", metric)) == 0
    best = max(one["score"] for one in state()["rounds"])
    assert best < (0 if metric == "ter" else 100)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--max-rounds", "0"], "--max-rounds and --runs must be at least 1"),
        (["--nbest", "1"], "--nbest must be at least 2"),
        (["--settled", "nan"], "--settled must be from 0"),
        (["--tokenize", "x"], "--tokenize knows"),
        (["--moses", "no/such/program"], "no/such/program cannot be started"),
        (["--working-dir", "."], "choose a new folder as --working-dir"),
        (["--reference", "moses.ini", "--source", "none"], "none: cannot be read"),
    ],
)
def test_mistakes_are_one_line(moses: str, more: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(moses, *more)) == 2
    errors = capsys.readouterr().err
    assert message in errors and errors.count("\n") == 1
    assert not Path("tuned.ini").exists()


def test_a_folder_is_for_one_loop_at_a_time(moses: str, capsys: pytest.CaptureFixture[str]) -> None:
    from smt_bridge.tuning.loop_folder import held

    with held("work", restart=False):
        assert main(arguments(moses)) == 2
    assert "another program tunes there now" in capsys.readouterr().err


def test_a_damaged_state_is_one_line(moses: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(moses, "--quiet", "--max-rounds", "1")) == 0
    for content in ("{", "[]", '{"format": 1}', '{"format": 9, "description": {}, "rounds": []}'):
        Path("work/state.json").write_text(content)
        capsys.readouterr()
        assert main(arguments(moses)) == 2
        errors = capsys.readouterr().err
        assert "begin anew with --restart" in errors and errors.count("\n") == 1


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (("[weight]", "[weight-overwrite]\nLM0= 1\n[weight]"), "has weights in [weight-overwrite] too"),
        (("name=LM0", "name=LM1"), "has no feature LM0, which the n-best lists show"),
        (("tuneable-components=true,false,true", ""), "TM0 shows 3 weights, but the n-best lists have 2"),
    ],
)
def test_an_ini_of_another_system_is_refused_in_the_first_round(
    moses: str, harm: tuple[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("moses.ini").write_text(INI.replace(*harm))
    assert main(arguments(moses, "--quiet")) == 2
    assert message in capsys.readouterr().err


def test_weights_are_written_where_the_decoder_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "moses.ini"
    path.write_text(
        INI.replace("LM0= -0.3", "LM0= 9\nLM0= -0.3").replace("Distortion0= 0.4\n", "").replace("\n", "\r\n")
    )
    new = with_weights(read_ini(str(path)), {"LM0": [0.25], "Distortion0": [0.5], "TM0": [-0.125, 1]})
    path.write_bytes(new.content)
    assert dict(read_weights(str(path))) == {"LM0": (0.25,), "Distortion0": (0.5,), "TM0": (-0.125, 1.0)}
    assert b"LM0= 9\r\nLM0= 0.25   # to be tuned\r\n" in new.content


def test_recorded_lists_of_a_real_system_settle_at_once(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decoder that always writes its recorded lists: the second round has nothing new."""
    monkeypatch.chdir(tmp_path)
    sentences, real, data = 60, shared / "moses" / "en-fr", shared / "data" / "multi30k"
    for name, language in (("dev.in", "en"), ("dev.ref", "fr")):
        lines = gzip.decompress((data / f"val.tok.{language}.gz").read_bytes()).splitlines(keepends=True)
        Path(name).write_bytes(b"".join(lines[:sentences]))
    recorded = gzip.decompress((real / "val.nbest100.gz").read_bytes()).splitlines(keepends=True)
    Path("recorded").write_bytes(b"".join(line for line in recorded if int(line.split()[0]) < sentences))
    Path("moses.ini").write_bytes((real / "moses.untuned.ini").read_bytes())
    replay = (
        "import sys\nplace = sys.argv.index('-n-best-list')\nmarks = sys.argv[sys.argv.index('-output-unknowns') + 1]\n"
        f"for _ in range({sentences}):\n    sys.stdin.readline()\n"
        "with open(sys.argv[place + 1], 'wb') as lists:\n    lists.write(open('recorded', 'rb').read())\n"
        f"with open(marks, 'w') as stream:\n    stream.write('\\n' * {sentences})\nsys.stdin.read()\n"
    )
    Path("replay.py").write_text(replay)
    Path("moses").write_text(f'#!/bin/sh\nexec {sys.executable} replay.py "$@"\n')
    Path("moses").chmod(0o755)
    assert main(arguments("./moses", "--quiet", "--moses-threads", "100")) == 0
    first, second = state()["rounds"]
    assert first["hypotheses"] == second["hypotheses"] == len(Path("recorded").read_text().splitlines())
    assert second["new"] == 0 and first["tuned_score"] >= first["score"]
    assert read_weights("tuned.ini") == read_weights("work/round2.ini") != read_weights("moses.ini")
