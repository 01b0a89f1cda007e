"""`smt-bridge tune-loop`: what it settles on, and what it refuses."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smt_bridge.commands.main import main
from smt_bridge.metrics.references import statistics_against
from smt_bridge.moses.process import MosesOptions, MosesProcess
from smt_bridge.moses.weights import read_weights
from smt_bridge.nbest.entry import NbestList
from smt_bridge.tuning.loop import _change
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.pool import NbestPool
from smt_bridge.tuning.tune import Start, TuningReport, tune
from tests.smt_bridge.tuning.small_loop import INI, SOURCE, arguments, state


def test_it_settles_on_weights_that_translate_best(weighted_moses: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(weighted_moses)) == 0
    rounds = state()["rounds"]
    scores = [one["score"] for one in rounds]
    assert len(rounds) > 2 and scores[0] < 60 and max(scores) == 100
    assert [one["hypotheses"] for one in rounds] == [
        sum(one["new"] for one in rounds[: n + 1]) for n in range(len(rounds))
    ]
    best = max(place for place, score in enumerate(scores) if score == max(scores))
    assert read_weights("tuned.ini") == read_weights(f"work/round{best + 1}.ini")
    said = capsys.readouterr().err.splitlines()
    for number, one in enumerate(rounds, start=1):
        decoded = f"tune-loop: round {number}: 8 of 8 sentences decoded"
        known = f"{one['new']} new hypothes{'is' if one['new'] == 1 else 'es'}, {one['hypotheses']} in all"
        tuned = f"; tuned to BLEU {one['tuned_score']:.2f} on all lists" if one["new"] else ""
        spread = f" (deviation of the runs {one['deviation']:.2f})" if one["deviation"] else ""
        assert said[2 * number - 2 :][:2] == [
            decoded, f"tune-loop: round {number}: BLEU {one['score']:.2f}, {known}{tuned}{spread}",
        ]  # fmt: skip
    ended = f"tune-loop: ended after {len(rounds)} rounds (no weight changed by more than 1e-05): weights of round"
    assert said[2 * len(rounds) :] == [f"{ended} {best + 1}, BLEU 100.00; at the start BLEU {scores[0]:.2f}"]


def test_weights_are_compared_by_their_proportions() -> None:
    assert _change({"A": [1.0, -1.0], "B": [2.0]}, {"A": [0.5, -0.5], "B": [1.0]}) == 0.0
    assert _change({"A": [1.0, 3.0]}, {"A": [3.0, 1.0]}) == 0.5
    assert _change({"A": [1.0]}, {"A": [1.0], "B": [-1.0]}) == 0.5


def test_its_result_translates_as_the_best_round_did(either_loop: str) -> None:
    """The decoder reads the ini that the loop wrote, and finds the lists that the loop judged it by."""
    assert main(arguments(either_loop, "--quiet", "--max-rounds", "4", "--nbest", "20")) == 0
    scores = [one["score"] for one in state()["rounds"]]
    best = max(place for place, score in enumerate(scores) if score == max(scores))
    assert max(scores) > scores[0] + 10
    lines = Path("dev.in").read_bytes().splitlines()
    with MosesProcess(MosesOptions(program=either_loop, ini="tuned.ini", nbest=20)) as moses:
        found = moses.translate(lines)
    expected = [b"%d ||| %b" % (number, line) for number, part in enumerate(found) for line in part or ()]
    assert gzip.decompress(Path(f"work/round{best + 1}.nbest.gz").read_bytes()).splitlines() == expected


def test_hypotheses_are_counted_once_and_every_round_has_seeds_of_its_own(
    weighted_moses: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the first of every sentence and round, which is the round's own translation."""
    counted, seeds = [], []

    def seeded(pool: NbestPool, start: Start, options: TuningOptions) -> TuningReport:
        seeds.append(options.seed)
        return tune(pool, start, options)

    def watched(*given: Any, **options: Any) -> Any:
        count = statistics_against(*given, **options)

        def count_and_note(group: NbestList) -> Any:
            counted.extend(entry for entry in group.entries if entry.line > 0)
            return count(group)

        return count_and_note

    monkeypatch.setattr("smt_bridge.tuning.loop.statistics_against", watched)
    monkeypatch.setattr("smt_bridge.tuning.loop.tune", seeded)
    assert main(arguments(weighted_moses, "--quiet")) == 0
    rounds = state()["rounds"]
    assert seeds == [1 + 2 * place for place, one in enumerate(rounds) if one["tuned"]] and len(seeds) > 1
    sentences = sum(bool(line) for line in SOURCE)
    assert len(counted) == rounds[-1]["hypotheses"] + len(rounds) * sentences


def test_a_reference_of_another_set_is_warned_of(
    weighted_moses: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FAKE_MOSES")  # for long sentences
    features = "KENLM name=LM0 path=lm.arpa order=3\nWordPenalty\n"
    Path("moses.ini").write_text(f"[feature]\n{features}[weight]\nLM0= 0.5\nWordPenalty0= -1\n")
    words = "abcdefghijklmnopqrstuvwxy"
    lines = [" ".join(words[: 1 + number * 7 % 23]) for number in range(25)]
    Path("dev.in").write_text("".join(f"{line}\n" for line in lines))
    Path("dev.ref").write_text("".join(f"{line}\n" for line in lines))
    Path("other.ref").write_text("".join(f"{line}\n" for line in sorted(lines)))
    options = ["--quiet", "--max-rounds", "1"]
    assert main(arguments(weighted_moses, *options)) == 0
    assert "warning" not in capsys.readouterr().err
    shutil.rmtree("work")
    assert main(arguments(weighted_moses, *options, "--reference", "other.ref")) == 0
    errors = capsys.readouterr().err
    assert errors.count("warning: is ") == 1
    assert "warning: is other.ref a reference of the sentences of dev.in? " in errors


def test_nothing_but_the_weights_of_lists_changes(weighted_moses: str) -> None:
    """Of repeated weights the last counts, as in the decoder."""
    Path("moses.ini").write_text(INI.replace("LM0= -0.3", "LM0= 9\nLM0= -0.3"))
    assert main(arguments(weighted_moses, "--quiet")) == 0
    before, after = (Path(name).read_text().splitlines() for name in ("moses.ini", "tuned.ini"))
    changed = [number for number, lines in enumerate(zip(before, after, strict=True)) if lines[0] != lines[1]]
    assert [before[number].split()[0] for number in changed] == ["LM0=", "Distortion0=", "TM0="]
    assert after[changed[0]].endswith("   # to be tuned")
    assert after[changed[2]].split()[2] == "7"


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_a_sentence_without_a_list_counts_as_an_empty_translation(
    weighted_moses: str, metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise the round in which Moses failed at the hardest sentences would score best."""
    for name in ("dev.in", "dev.ref"):
        with open(name, "a") as stream:
            stream.write("DIE of it\n")
    assert main(arguments(weighted_moses, "--quiet", "--metric", metric)) == 0
    best = max(one["score"] for one in state()["rounds"])
    assert best < (0 if metric == "ter" else 100)
    said = capsys.readouterr().err.splitlines()
    warning = "tune-loop: warning: round {}: Moses failed at 1 sentence, which has no list in this round"
    assert said[:-1] == [warning.format(number) for number in range(1, len(state()["rounds"]) + 1)]
    shown = {"bleu": "BLEU ", "chrf": "chrF2 ", "ter": "TER "}[metric] + f"{abs(best):.2f}; at the start"
    assert shown in said[-1]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--max-rounds", "0"], "--max-rounds: expected a whole number from 1 up"),
        (["--nbest", "1"], "--nbest must be at least 2"),
        (["--tuner", "folds=2"], "--tuner folds= is for `smt-bridge tune`"),
        (["--source", "blank"], "blank: has no sentences; expected the development set"),
        (["--tokenize", "x"], "--tokenize: invalid choice"),
        (["--moses", "no/such/program"], "no/such/program cannot be started"),
        (["--working-dir", "."], ".: has blank; choose a new folder as --working-dir"),
        (["--working-dir", "dev.in/work"], "dev.in/work: cannot be written (Not a directory)"),
        (["--reference", "moses.ini", "--source", "none"], "none: cannot be read"),
        (["--source", "/dev/null"], "/dev/null: is a device; expected an ordinary file"),
        (["--output", "work/round1.nbest.gz"],
         "--output work/round1.nbest.gz: the loop keeps a file of that name there; give another name"),
        *(
            (["--output", f"./work/../work/{name}"], "the loop keeps a file of that name there; give another name")
            for name in ("lock", "state.json", "round12.00000100.gz", "round2.ini")
        ),
        (["--max-words", "4"], "dev.in:4: has 5 words; up to 4 are taken: divide the line, or allow more with --max-"),
        (["--reference", "long"], "long:8: has 1,001 words; up to 1,000 are taken"),
        (["--source", "-"], "MOSES.INI, --source and --reference are read more than once; give files, not '-'"),
        (["--moses-options", "-n-best-list x 5"], "leave out -n-best-list: the options of this command"),
        (["--moses-options", "-labeled-n-best-list false"], "leave out -labeled-n-best-list: features of lists need"),
        (["--moses-options", "-search-algorithm '1"], "--moses-options: No closing quotation"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(
    weighted_moses: str, more: list[str], message: str, error_line: Callable[..., str]
) -> None:
    Path("long").write_text("\n" * 7 + "a " * 1001 + "\n")
    Path("blank").write_text("\n \n")
    assert message in error_line(main, arguments(weighted_moses, *more))
    assert not Path("tuned.ini").exists()


def test_a_longer_reference_is_warned_of(weighted_moses: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("dev.ref").write_text(Path("dev.ref").read_text() + "a b\n")
    assert main(arguments(weighted_moses, "--quiet", "--max-rounds", "1", "--nbest", "2")) == 0
    message = "tune-loop: warning: dev.ref has 9 lines, but dev.in 8; is it of another set?"
    *said, ended = capsys.readouterr().err.splitlines()
    assert message in said and "ended after 1 round (1 round, as many as are allowed): weights of round 1" in ended


@pytest.mark.parametrize(
    ("harm", "message", "decoded"),
    [
        ((INI, "[ttable-file]\n0 0 0 5 t\n[weight-t]\n0.2\n"), "[ttable-file] and [weight-t], as before 2013", False),
        (("[weight]", "[weight-overwrite]\nLM0= 1\n[weight]"), "has weights in [weight-overwrite] too", False),
        (("name=LM0", "name=LM1"), "has no feature LM0, which the n-best lists show", True),
        (("tuneable-components=true,false,true", ""), "TM0 shows 3 weights, but the n-best lists have 2", True),
    ],
)
def test_an_ini_of_another_system_is_refused_in_the_first_round(
    weighted_moses: str, harm: tuple[str, str], message: str, decoded: bool, error_line: Callable[..., str]
) -> None:
    """Before it where no list is needed to see it, so that the corrected ini can begin in the same folder."""
    Path("moses.ini").write_text(INI.replace(*harm))
    assert message in error_line(main, arguments(weighted_moses, "--quiet"))
    assert Path("work").exists() == decoded


def test_recorded_lists_of_a_real_system_settle_at_once(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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
    assert "ended after 2 rounds (no new hypotheses): weights of round 2, BLEU " in capsys.readouterr().err
    assert second["new"] == 0 and first["tuned_score"] >= first["score"]
    assert read_weights("tuned.ini") == read_weights("work/round2.ini") != read_weights("moses.ini")


def test_a_hypothesis_of_too_many_words_is_named(weighted_moses: str, error_line: Callable[..., str]) -> None:
    """In a list that is there already; where more words are allowed, the loop goes on."""
    assert main(arguments(weighted_moses, "--quiet", "--max-rounds", "1")) == 0
    Path("work/state.json").write_text(json.dumps({**state(), "rounds": []}))
    lists = gzip.decompress(Path("work/round1.nbest.gz").read_bytes())
    Path("work/round1.nbest.gz").write_bytes(gzip.compress(lists.replace(b" ||| ", b" ||| " + b"a " * 10, 1)))
    limit = ["--quiet", "--max-words", "10"]
    line = error_line(main, arguments(weighted_moses, *limit, "--max-rounds", "2"))
    assert "work/round1.nbest.gz:1: has 14 words; up to 10 are taken" in line
    assert main(arguments(weighted_moses, "--quiet", "--max-rounds", "1")) == 0


PROGRAM = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from tests import fake_moses
plain = fake_moses.weighted
fake_moses.weighted = lambda *given: [line.replace("TM0=", "PB0_a= 1 TM0=") for line in plain(*given)]
sys.exit(fake_moses.main())
"""


def test_sparse_features_are_named_before_anything_is_tuned(
    weighted_moses: str, error_line: Callable[..., str]
) -> None:
    Path(weighted_moses).write_text(PROGRAM)
    line = error_line(main, arguments(weighted_moses, "--quiet"))
    said = "moses.ini: its lists have sparse features (PB0_a), which the loop does not tune"
    assert line == f"smt-bridge tune-loop: {said}"
