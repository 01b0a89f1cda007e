"""What may be wrong with an n-best list and its weights."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from nmt_core.base.errors import InputError
from nmt_core.base.messages import counted
from nmt_core.files import read_lines
from smt_bridge.doctor.findings import Finding, Words, error, warning, words_of
from smt_bridge.nbest.checks import MOST_LOOKED_AT, SampledPair, beyond, looks_unrelated, sampled_pair
from smt_bridge.nbest.entry import NbestEntry
from smt_bridge.nbest.formats import AUTO, read_entries
from smt_bridge.nbest.merge import baselines
from smt_bridge.nbest.weighting import without_partner

_LOG_PROBABILITY = re.compile(r"(?:LM|TranslationModel|NMT|NMTreverse|KENLM|RNNLM)\d+")


class NbestSummary:
    """The first lines of a list: their features with their number of values, the entry of the highest id, and words.

    ``firsts`` are the first entries of some sentences, by which other texts than those of the list are seen.
    """

    def __init__(self, path: str, *, most: int, format: str = AUTO) -> None:
        self.path = path
        self.arity: dict[str, int] = {}
        self.last: NbestEntry | None = None  # of the highest id
        self.firsts: dict[int, NbestEntry] = {}
        self.findings: list[Finding] = []
        self.target = words_of(path, ())
        empty = 0
        positive = 0
        try:
            for entry in islice(read_entries(path, format=format), most or None):
                if self.last is None or entry.sentence > self.last.sentence:
                    self.last = entry
                if len(self.firsts) < MOST_LOOKED_AT:
                    self.firsts.setdefault(entry.sentence, entry)
                self.target.counts.update(word for word in entry.text.split(" ") if word)
                empty += not entry.hypothesis
                for name, values in entry.features.items():
                    known = self.arity.setdefault(name, len(values))
                    if known != len(values) and "_" not in name:
                        problem = f"{name} has {counted(len(values), 'value')} here and {known} before"
                        self.findings.append(error(f"{path}:{entry.line}", problem, "make the list again"))
                        return
                    if _LOG_PROBABILITY.fullmatch(name):
                        positive += all(0 < value <= 1 for value in values)
        except InputError as wrong:
            self.findings.append(error(str(wrong), "the list cannot be used", "correct the line"))
            return
        if empty:
            problem = f"{counted(empty, 'translation is', 'translations are')} empty"
            self.findings.append(warning(path, problem, "make sure that this is meant"))
        if positive > 100 and not baselines(tuple(self.arity)):  # merged lists hold differences
            problem = f"{positive} log-probabilities are between 0 and 1"
            self.findings.append(warning(path, problem, "are they probabilities? features must be logarithms"))


def examine_sentences(summary: NbestSummary, path: str, text: str) -> Iterator[Finding]:
    """Whether a source or reference (``text``) has a line for every id, and looks like one of these sentences."""
    lines = 0
    samples: list[SampledPair] = []
    for line in read_lines(path):
        first = summary.firsts.get(lines)
        if first is not None:
            samples.append(sampled_pair(line, first))
        lines += 1
    if text == "reference":  # alignments are with the source
        samples = [pair._replace(last_aligned=-1) for pair in samples]
    reason = looks_unrelated(samples, text=text)
    if reason is not None:
        yield warning(summary.path, f"is it a list of other sentences than {path}? {reason}", "give those of this list")
    if summary.last is not None and summary.last.sentence >= lines:
        found = beyond(summary.path, summary.last.sentence, path, lines, line=summary.last.line)
        yield error(f"{found.path}:{found.line}", found.problem, "take the file that was translated")


def examine_weights(summary: NbestSummary, weights: Mapping[str, Sequence[float]], path: str) -> Iterator[Finding]:
    """Whether every feature of a list has its weights, and the reverse."""
    unweighted, unused = without_partner(tuple(summary.arity), weights)
    for name in unweighted:
        yield error(
            path, f"no weight for {name} of {summary.path}", f"add `{name}= ...` (0 leaves it out), or tune again"
        )
    for name, arity in summary.arity.items():
        yield from examine_number(name, weights.get(name), arity, place=summary.path, path=path)
    for name in unused:
        problem = f"a weight for {name}, which {summary.path} does not have"
        yield error(path, problem, "delete the line, or take the other file")


def examine_number(
    name: str, weights: Sequence[float] | None, arity: int, *, place: str, path: str
) -> Iterator[Finding]:
    """Whether a feature of ``place`` has as many weights in ``path`` as values."""
    if weights is not None and len(weights) != arity:
        problem = f"{name} has {counted(len(weights), 'weight')} for {counted(arity, 'value')} of {place}"
        yield error(path, problem, "tune again, or correct the line")


def examine_words(summary: NbestSummary, target: Words) -> Iterator[Finding]:
    """Whether the list is written in the words of the table."""
    if summary.target.total and target.total:
        foreign = summary.target.unknown(frozenset(target.counts))
        if foreign > 0.5:
            problem = f"{foreign:.0%} of its words are not in {target.place}"
            yield warning(summary.path, problem, "is it a list of this system, tokenised and escaped alike?")
