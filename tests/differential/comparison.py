"""One model by all the ways that lead to translations and scores."""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import nmt_core
from nmt_core import DecodingConfig, SentencePair
from nmt_core.model_directory.loaded_model import load_models
from tests.differential import ways
from tests.differential.cases import LINES, WINDOW, Case, cases_of, draw_line, draw_sources
from tests.differential.models import ANNOTATED, LANGUAGE, RAW, make
from tests.differential.ties import DRAWS, changed_scores

SEED = os.environ.get("HYBRIDMT_SEED", "1")
A_WORD = {"float32": 1e-5, "float64": 1e-9, "bfloat16": 0.05}
PRINTED = 2e-6  # of two numbers of six decimals
DIGITS = 3e-7  # of a number in float32, such as a sum over the pieces of an unlikely word

Again = Callable[[int], ways.Lists]
"""A search by the command with its scores changed at random, otherwise for each number."""


class Comparison:
    """All ways of one model; ``problems`` are what they differ in."""

    def __init__(self, place: Path, address: str, name: str, work: Path) -> None:
        self.name, self.address, self.work = name, address, work
        self.folders = make(place, name)
        folders = self.folders.split(",")
        self.model = functools.cache(lambda dtype: nmt_core.load_model(*folders, device="cpu", dtype=dtype))
        self.problems: list[str] = []
        self.ties: list[str] = []  # searches that rounding decided
        self.combinations = 0

    def cases(self) -> Iterator[Case]:
        """Those that this model takes."""
        if self.name in LANGUAGE:
            return iter(())
        loaded = load_models(self.folders.split(","), device="cpu", dtype="float32")
        return cases_of(
            self.name,
            attends=all(one.model.attends for one in loaded),
            spells=any(one.model.spells for one in loaded),
        )

    def search(self, case: Case, *, processes: bool) -> None:
        """A search by all the ways that have its options."""
        chance = random.Random(f"{SEED} {self.name} {case.name}")
        sources = draw_sources(chance, self.name)
        work = self.work / case.name.replace(" ", "-")
        work.mkdir()
        options = list(case.options)
        _write(work, case, chance, sources)
        raw = self.name in RAW
        options += ["--raw"] if raw else []
        window = ["--window", str(WINDOW)]
        source = work / "source"
        content = ways.decode(self.folders, source, work / "whole", *options, *window)
        expected = ways.read_lists(content, LINES)
        found = ways.ranges(self.folders, source, work / "ranges", *options, *window)
        self._same(case, "ranges", found == content)
        if processes:
            found = ways.decode(self.folders, source, work / "processes", *options, *window, "--jobs", "2")
            self._same(case, "processes", found == content)

        @functools.cache
        def again(draw: int) -> ways.Lists:
            with changed_scores(draw, A_WORD[case.dtype]):
                return ways.read_lists(ways.decode(self.folders, source, work / "again", *options, *window), LINES)

        for way, lists in self._other_ways(case, source, sources, options, raw=raw):
            self.compare(case, way, expected, lists, again)
        if case.scored and not raw and self.name not in ANNOTATED:
            self._score_again(case, sources, expected)

    def _other_ways(
        self, case: Case, source: Path, sources: Sequence[str], options: Sequence[str], *, raw: bool
    ) -> Iterator[tuple[str, ways.Lists]]:
        """The ways whose numbers may differ by rounding, and what they find."""
        if not case.in_company:
            sizes = ["--window", "100", "--search=batch_tokens=50"]
            content = ways.decode(self.folders, source, source.parent / "batches", *options, *sizes)
            yield "batches", ways.read_lists(content, LINES)
        if case.config is not None:
            config = DecodingConfig.from_mapping(dict(case.config), origin="test")
            yield "Python", ways.in_python(self.model(case.dtype), sources, config, raw=raw)
        if case.request is not None:
            asked = {**case.request, "raw": raw}
            yield "one by one", ways.one_by_one(self.address, self.name, sources, **asked)
            yield "streamed", ways.streamed(self.address, self.name, sources, **asked)

    def _score_again(self, case: Case, sources: Sequence[str], lists: ways.Lists) -> None:
        """The translations are pairs that ``score`` gives the same number."""
        pairs = [SentencePair(source, one.text) for source, each in zip(sources, lists, strict=True) for one in each]
        options = [option for option in case.options if option.startswith("--dtype")]
        scores = [number for (number,) in ways.score(self.folders, self.work, pairs, *options)]
        numbers = [one.log_prob for each in lists for one in each]
        for pair, one, other in zip(pairs, numbers, scores, strict=True):
            bound = self._bound(case, pair.target)
            if abs(one - other) > bound:
                self.problems.append(f"{case.name}, score: {pair}: {one} and {other}, not within {bound:g}")
        self.combinations += 1

    def score(self, form: str) -> None:
        """Pairs by all ways, with the numbers of their words."""
        chance = random.Random(f"{SEED} {self.name} {form}")
        sources = draw_sources(chance, self.name)
        targets = [draw_line(chance, "") if self.name not in RAW else draw_line(chance, self.name) for _ in sources]
        pairs = [SentencePair(*pair) for pair in zip(sources, targets, strict=True)]
        options = ["--per-word", *([] if form == "prepared" else [f"--{form}"])]
        expected = ways.score(self.folders, self.work, pairs, *options)
        ours = {
            "windows": lambda: ways.score(self.folders, self.work, pairs, *options, "--window", "3"),
            "Python": lambda: ways.scored_in_python(self.model("float32"), pairs, form),
            "one by one": lambda: ways.scored_one_by_one(self.address, self.name, pairs, form),
            "streamed": lambda: ways.scored_streamed(self.address, self.name, pairs, form),
        }
        for way, scored in ours.items():
            self.combinations += 1
            for pair, one, other in zip(pairs, expected, scored(), strict=True):
                if one != pytest.approx(other, abs=A_WORD["float32"] + PRINTED, rel=DIGITS):
                    self.problems.append(f"score {form}, {way}: {pair}: {one} and {other}")

    def _same(self, case: Case, way: str, same: bool) -> None:
        self.combinations += 1
        if not same:
            self.problems.append(f"{case.name}, {way}: other bytes")

    def compare(self, case: Case, way: str, expected: ways.Lists, found: ways.Lists, again: Again) -> None:
        """Note where lists differ."""
        self.combinations += 1
        for line, (ours, theirs) in enumerate(zip(expected, found, strict=True)):
            if self._same_list(case, ours, theirs) or self._tied(case, line, [ours, theirs], again):
                continue
            self.problems.append(f"{case.name}, {way}, line {line + 1}: {ours} and {theirs}")

    def _same_list(self, case: Case, ours: Sequence[ways.Found], theirs: Sequence[ways.Found]) -> bool:
        """Whether they have the same texts, and the same numbers at each rank."""
        same = len(ours) == len(theirs) and {one.text for one in ours} == {one.text for one in theirs}
        return same and all(self._same_rank(case, *ranks) for ranks in zip(ours, theirs, strict=True))

    def _tied(self, case: Case, line: int, lists: Sequence[Sequence[ways.Found]], again: Again) -> bool:
        """Whether rounding decided: ``again``, with scores that are changed by less than the bound, finds each list."""
        for draw in range(DRAWS):
            found = again(draw)[line]
            lists = [one for one in lists if not self._same_list(case, one, found)]
            if not lists:
                self.ties.append(f"{case.name}, line {line + 1}")
                return True
        return False

    def _same_rank(self, case: Case, one: ways.Found, other: ways.Found) -> bool:
        """Whether they have the same numbers; texts that rank the same may have changed places."""
        bound = self._bound(case, one.text)
        near = abs(one.score - other.score) <= bound
        return near and (one.text != other.text or abs(one.log_prob - other.log_prob) <= bound)

    def _bound(self, case: Case, text: str) -> float:
        words = len(text) if self.name in RAW else text.count(" ") + 1
        return PRINTED + A_WORD[case.dtype] * (words + 1)

    def scores(self) -> None:
        """Pairs in every form that the model takes; what posall makes of a pair needs its word alignment."""
        forms = ("surface", "raw") if self.name in RAW else ("prepared",)
        for form in () if self.name == "annotated-posall" else forms:
            self.score(form)


def _write(work: Path, case: Case, chance: random.Random, sources: Sequence[str]) -> None:
    """Write the source, marked up where the case has markup."""
    lines = sources if case.markup is None else [case.markup(chance, source) for source in sources]
    (work / "source").write_text("".join(f"{line}\n" for line in lines))
