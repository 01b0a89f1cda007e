"""What a running search knows of each sentence: its rules, finished hypotheses and attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic

import numpy as np

from nmt_core.inference.search.allocation import RuledSentence
from nmt_core.inference.search.constraints import Progress, Rules, coverage_term
from nmt_core.inference.search.guided import GuidedSentence, Prefix
from nmt_core.inference.search.history import End, Path
from nmt_core.inference.search.hypothesis import Extra, Hypothesis, Matrix, make_hypothesis
from nmt_core.inference.search.requests import Finished, Key, Request
from nmt_core.inference.search.tables import Integers, LiveRows, Sentences
from nmt_core.text.vocabulary import END_ID


@dataclass
class SearchedSentence(Generic[Key]):
    """What is known of a sentence beside the numbers in its table.

    ``lost`` is the best total that the beam had no place for, with a guide.
    ``attention`` has for every step the first of its rows, and their weights. ``numbers``: no log-probability
    of its last step was NaN.
    """

    request: Request[Key]
    rules: Rules
    lost: float = -np.inf
    ends: list[End] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    extras: list[Extra] = field(default_factory=list)
    attention: list[tuple[int, Matrix]] = field(default_factory=list)
    numbers: bool = True

    @staticmethod
    def of(request: Request[Key]) -> SearchedSentence[Key]:
        """A sentence at its beginning."""
        return SearchedSentence(request, request.rules)

    @property
    def beginning(self) -> Progress | Prefix | None:
        """How far a hypothesis without words has come; None without rules and guide."""
        if self.request.guide is not None:
            return self.request.guide.beginning
        return Progress() if self.rules else None

    def attention_of(self, path: Path) -> Matrix | None:
        """The attention weights of one hypothesis at each of its steps."""
        if not self.attention:
            return None
        steps = zip(path.rows, self.attention, strict=False)
        return np.stack([rows_KS[row - first] for row, (first, rows_KS) in steps])

    def best(self, paths: Sequence[Path]) -> Finished[Key]:
        """The best of its finished hypotheses, whose paths are in the order of ``ends``."""
        config = self.request.config
        hypotheses: list[Hypothesis] = [
            make_hypothesis(
                path.words[:-1], path.log_probs, ranking=config.ranking, attention=self.attention_of(path), extra=extra
            )
            for path, extra in zip(paths, self.extras, strict=True)
        ]
        hypotheses.sort(key=lambda hypothesis: -hypothesis.score)  # stable: of equals the earlier comes first
        guided = self.request.guide is not None
        constrained = self.numbers and (bool(self.rules) or guided)
        best = hypotheses[: config.nbest]
        proved = guided and self.lost <= (best[-1].score if len(best) == config.nbest else -np.inf)
        return Finished(self.request.key, best, constrained=constrained, proved=proved)


def table_of(requests: Sequence[Request[Key]], slots: Integers, limits: Sequence[int], *, begun: int) -> Sentences:
    """The numbers of sentences that enter a search, which have these slots and limits of words."""
    lines = []
    for request, slot, limit in zip(requests, slots, limits, strict=True):
        config = request.config
        rules = (limit, config.min_length, config.forbid_unknown, *config.ranking)
        threshold = -np.inf if request.guide is None else request.guide.least
        numbers = (slot, len(request.source) + 1, *rules, config.beam, config.beam, begun, threshold)
        lines.append((*numbers, SearchedSentence.of(request)))
    return Sentences.of(lines)


def asked_of(sentences: Sentences, rows: LiveRows) -> tuple[list[RuledSentence], list[GuidedSentence]]:
    """The sentences with rules, and those with a guide, with the progress of their rows; usually none."""
    ruled: list[RuledSentence] = []
    guided: list[GuidedSentence] = []
    if all(progress is None for progress in rows.progress_N):
        return ruled, guided
    bounds = np.searchsorted(rows.slots_N, [sentences.slots_A, sentences.slots_A + 1]).T.tolist()
    for place, (sentence, (first, last)) in enumerate(zip(sentences.searched_A, bounds, strict=True)):
        progress = rows.progress_N[first:last].tolist()
        if sentence.request.guide is not None:
            guided.append(GuidedSentence(place, first, sentence.request.guide, progress))
        elif sentence.rules:
            ruled.append(RuledSentence(place, first, sentence.rules, progress))
    return ruled, guided


def extra_of(rules: Rules, coverage_penalty: float, progress: Progress) -> Extra:
    """What rules and advice add to the score of a finished hypothesis."""
    coverage = coverage_penalty * coverage_term(progress) if coverage_penalty else 0.0
    log_prob = rules.log_prob(progress) + rules.advised(progress, END_ID)
    return Extra(log_prob, coverage, rules.best(progress).taken)
