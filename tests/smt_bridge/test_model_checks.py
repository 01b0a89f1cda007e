"""A reverse scorer of the wrong direction, a language model of other words, a reference of another set are noticed."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from nmt_core.base.interfaces import PairScore, SentencePair
from smt_bridge import WiringError, add_scores, read_nbest, rescore_table
from smt_bridge.commands.main import main
from smt_bridge.features.base import Candidates
from smt_bridge.features.neural import CONTINUOUS_SPACE, PairFeature
from smt_bridge.model_checks import check_exchanged, check_reverse, score_problem
from smt_bridge.tables.scoring import Scorers, rescore_window
from smt_bridge.tables.table import read_windows
from tests.fakes import LengthPairScorer

SOURCE = [f"s{number}" for number in range(40)]
TARGET = [f"t{number}" for number in range(40)]
FORWARD_MODEL = LengthPairScorer(unknown=frozenset([f"t{number}" for number in range(40)]) | frozenset(SOURCE))
"""What a model of source to target looks like when it is given targets as sources: nothing is known."""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table"
    path.write_text("".join(f"{a} ||| {b} ||| 0.5\n" for a, b in sorted(zip(SOURCE, TARGET, strict=True))))
    return path


def test_a_table_is_not_scored_by_a_reverse_scorer_of_the_wrong_direction(table: Path, tmp_path: Path) -> None:
    with pytest.raises(WiringError, match="does not know 80 of 80 words of both sides; it must be a model of target"):
        rescore_table(table, tmp_path / "new", LengthPairScorer(), reverse_scorer=FORWARD_MODEL)
    assert not (tmp_path / "new").exists()
    rescore_table(table, tmp_path / "new", LengthPairScorer(), reverse_scorer=LengthPairScorer())


def test_neither_is_a_list(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("".join(f"{place} ||| {word} ||| A= 1 ||| 0\n" for place, word in enumerate(TARGET)))
    lists = read_nbest(tmp_path / "list")
    with pytest.raises(WiringError, match="reverse scorer"):
        add_scores(lists, SOURCE, FORWARD_MODEL, name="R0", reverse=True)
    assert len(add_scores(lists, SOURCE, FORWARD_MODEL)) == 40  # forward, many unknown words are a warning at most


class OneDirection:
    """Knows the words of SOURCE as sources, those of TARGET as targets, and ``both`` on either side."""

    signature = "fake:one direction"

    def __init__(self, both: frozenset[str] = frozenset()) -> None:
        self.known = (both.union(SOURCE), both.union(TARGET))
        self.asked = 0

    def score(self, pairs: Sequence[SentencePair], **_: bool) -> list[PairScore]:
        self.asked += len(pairs)
        unknown = [
            [sum(word not in self.known[side] for word in pair[side].split()) for side in (0, 1)] for pair in pairs
        ]
        return [PairScore(-1.0, unknown_source=source, unknown_target=target) for source, target in unknown]


def test_words_of_both_languages_hide_no_wrong_direction(tmp_path: Path) -> None:
    """Half of the words, such as names and full stops, are known on either side."""
    path = tmp_path / "table"
    path.write_text("".join(f"{a} . ||| {b} . ||| 0.5\n" for a, b in sorted(zip(SOURCE, TARGET, strict=True))))
    forward = OneDirection(frozenset(["."]))
    with pytest.raises(
        WiringError, match="the reverse scorer does not know 80 of 160 words, and with source and target"
    ):
        rescore_table(path, tmp_path / "new", forward, reverse_scorer=forward)
    turned = [f"{word} ." for word in TARGET]
    (tmp_path / "list").write_text(
        "".join(f"{place} ||| {word} . ||| A= 1 ||| 0\n" for place, word in enumerate(SOURCE))
    )
    with pytest.raises(WiringError, match=r"the scorer .* model of the other direction; give one of source to target"):
        add_scores(read_nbest(tmp_path / "list"), turned, forward)
    assert len(add_scores(read_nbest(tmp_path / "list"), turned, forward, name="R0", reverse=True)) == 40


def test_a_small_vocabulary_hides_no_wrong_direction(tmp_path: Path) -> None:
    """Six of ten words are unknown in the right direction, too."""
    pairs = list(zip(SOURCE, TARGET, strict=True))
    small = OneDirection()
    small.known = (frozenset(SOURCE[:16]), frozenset(TARGET[:16]))
    for name, sides in (("right", pairs), ("wrong", [(b, a) for a, b in pairs])):
        (tmp_path / name).write_text("".join(f"{a} ||| {b} ||| 0.5\n" for a, b in sorted(sides)))
    assert rescore_table(tmp_path / "right", tmp_path / "new", small).unknown_source == 24
    exchanged = "the scorer does not know 80 of 80 words, and with source and target exchanged only 48"
    remedy = r"it is a model of the other direction; give one of source to target \(fake:one direction\)"
    with pytest.raises(WiringError, match=f"^{exchanged}: {remedy}$"):
        rescore_table(tmp_path / "wrong", tmp_path / "new", small)


def test_a_part_of_a_table_does_not_end_the_work(tmp_path: Path) -> None:
    """Somewhere in the middle the pairs of a table may be exchanged, as those of its corpus were."""
    path = tmp_path / "table"
    path.write_text("".join(f"{b} . ||| {a} . ||| 0.5\n" for a, b in zip(SOURCE, TARGET, strict=True)))
    window = next(read_windows(str(path)))
    scorers = Scorers(OneDirection(frozenset(["."])))
    with pytest.raises(WiringError, match="model of the other direction"):
        rescore_window(window, scorers)
    assert rescore_window(window._replace(first=1_000_001), scorers).counts.pairs == 40


def test_a_scorer_is_asked_again_only_where_it_knows_little() -> None:
    pairs = [SentencePair(a, b) for a, b in zip(SOURCE, TARGET, strict=True)] * 10
    for scorer, asked in ((OneDirection(), 400), (OneDirection(frozenset(TARGET)), 400)):
        check_exchanged(scorer, pairs, scorer.score(pairs))
        assert scorer.asked == asked
    other = [SentencePair(f"{pair.source} u v w", f"{pair.target} x") for pair in pairs]  # what nobody knows
    scorer = OneDirection()
    check_exchanged(scorer, other, scorer.score(other))
    assert scorer.asked == 400 + 200


@pytest.mark.parametrize(("targets", "refused"), [(2, True), (3, False)])
def test_the_direction_is_seen_of_the_first_hundred_pairs(targets: int, *, refused: bool) -> None:
    """Of two pairs a source there are fewer, so that those that come next are looked at, too."""
    feature = PairFeature(OneDirection())
    feature.compute([Candidates(word, TARGET[:targets]) for word in SOURCE])
    exchanged = [Candidates(word, [other]) for word, other in zip(TARGET, SOURCE, strict=True)]
    with pytest.raises(WiringError, match="model of the other direction") if refused else nullcontext():
        feature.compute(exchanged)


@pytest.mark.parametrize(("words", "unknown", "refused"), [(49, 49, False), (100, 90, False), (50, 46, True)])
def test_rare_words_are_no_proof(words: int, unknown: int, *, refused: bool) -> None:
    pairs = [SentencePair(f"w{number}", "") for number in range(words)]
    scorer = LengthPairScorer(unknown=frozenset(f"w{number}" for number in range(unknown)))
    known = "it must be a model of target to source: is this one of source to target, or of other languages?"
    problem = f"the reverse scorer does not know {unknown} of {words} words of both sides; {known} (fake)"
    with pytest.raises(WiringError, match=f"^{re.escape(problem)}$") if refused else nullcontext():
        check_reverse(pairs, scorer.score(pairs), signature="fake")


@pytest.mark.parametrize(("strange", "asked"), [(18, 30), (20, 60)])
def test_a_scorer_is_asked_again_where_more_than_three_of_ten_words_are_unknown(strange: int, asked: int) -> None:
    scorer, known = OneDirection(), 30 - strange // 2
    pairs = [SentencePair(a, b) for a, b in zip(SOURCE[:30], TARGET[:30], strict=True)]
    scorer.known = (frozenset(SOURCE[:known]), frozenset(TARGET[:known]))
    check_exchanged(scorer, pairs, scorer.score(pairs))
    assert scorer.asked == asked
    check_exchanged(scorer, pairs[:24], [PairScore(-1.0, 1, 1)] * 24)  # 48 words are too few
    assert scorer.asked == asked


@pytest.mark.parametrize(
    ("log_prob", "softmax", "said"),
    [
        (0.0, "full", None),
        (6e-6, "full", None),  # a millionth for each of six words and ends
        (6.1e-6, "full", "6.1e-06, a probability above 1,"),
        (5.0, "none", None),
        (math.inf, "none", "inf, a probability above 1,"),
        (-math.inf, "full", "-inf"),
        (math.nan, "full", "nan"),
    ],
)
def test_what_is_no_probability(log_prob: float, softmax: str, said: str | None) -> None:
    found = score_problem(SentencePair("a b c", "x y"), PairScore(log_prob), signature=f"nmt:x|softmax:{softmax}")
    problem = (
        f"the scorer gave log-probability {said} for `a b c ||| x y`; the model is damaged or its training diverged"
    )
    assert found == (said and problem)


def test_a_language_model_of_other_words_is_refused() -> None:
    groups = [Candidates("", [f"{word} {word}" for word in TARGET])]
    remedy = r"give one of their language that was trained on text prepared as theirs \(fake:length\)"
    problem = f"^the language model does not know 80 of 80 words of the hypotheses; {remedy}$"
    with pytest.raises(WiringError, match=problem):
        PairFeature(FORWARD_MODEL, CONTINUOUS_SPACE, direction="target").compute(groups)
    some = LengthPairScorer(unknown=frozenset(TARGET[:30]))
    assert len(PairFeature(some, CONTINUOUS_SPACE, direction="target").compute(groups)[0]) == 40
    assert len(PairFeature(FORWARD_MODEL, CONTINUOUS_SPACE).compute(groups)[0]) == 40


def sentences(*, seed: int) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.choices(SOURCE, k=generator.randint(2, 25))) for _ in range(60)]


@pytest.mark.parametrize(("seed", "shift", "said"), [(1, 0, ""), (2, 0, "long references"), (1, 1, "ids are 1 ")])
def test_a_reference_of_another_set_is_warned_of(
    tmp_path: Path, seed: int, shift: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        f"{place} ||| {text} ||| A= {-rank} B= {rank} ||| 0\n"
        for place, text in enumerate(sentences(seed=1))
        for rank, text in enumerate((text, f"{text} s1"))
    ]
    (tmp_path / "list").write_text("".join(lines))
    given = sentences(seed=seed)
    (tmp_path / "reference").write_text("\n".join([*given[shift:], *given[:shift]]) + "\n")
    files = ["--nbest", str(tmp_path / "list"), "--reference", str(tmp_path / "reference"), "--tuner", "runs=1"]
    assert main(["tune", *files, "--tuner", "restarts=1", "--output", str(tmp_path / "weights")]) == 0
    warnings = [line for line in capsys.readouterr().err.splitlines() if "warning: is" in line]
    assert len(warnings) == bool(said)
    assert not said or said in warnings[0]


@pytest.mark.parametrize("command", ["rerank", "tune"])
@pytest.mark.parametrize(
    ("reference", "more", "said"),
    [
        ("Ann , s1 &apos; s2 sleeps .", [], ""),
        ("Ann, s1's2 sleeps.", [], "reference is not tokenised as the list is: scores will be too low; give the token"),
        ("Ann, s1's2 sleeps.", ["--detokenize", "en"], ""),
        ("Ann , s1 &apos; s2 sleeps .", ["--detokenize", "en"], "reference has Moses' escapes, but with --detokenize"),
    ],
    ids=["words", "text for words", "text", "words for text"],
)
def test_a_reference_of_another_form_is_warned_of(
    tmp_path: Path, command: str, reference: str, more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list is tokenised: without ``--detokenize`` its words are compared as they stand."""
    lines = [f"0 ||| {start} , s1 &apos; s2 sleeps . ||| A= {len(start)} B= 1 ||| 0\n" for start in ("Ann", "An")]
    (tmp_path / "list").write_text("".join(lines))
    (tmp_path / "reference").write_text(f"{reference}\n")
    (tmp_path / "weights").write_text("A= 1\nB= 1\n")
    given = {"rerank": ["--weights", str(tmp_path / "weights")], "tune": ["--tuner", "runs=1"]}[command]
    files = ["--nbest", str(tmp_path / "list"), "--reference", str(tmp_path / "reference")]
    assert main([command, *files, *given, *more, "--output", str(tmp_path / "out")]) == 0
    warnings = [line for line in capsys.readouterr().err.splitlines() if "warning:" in line]
    assert len(warnings) == (said != "")
    assert said == "" or f"{command}: warning: {tmp_path / said}" in warnings[0]
