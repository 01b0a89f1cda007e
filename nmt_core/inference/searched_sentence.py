"""What a running search knows of each sentence: its rules, finished hypotheses and attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic

import numpy as np

from nmt_core.inference.backtrace import End, Path
from nmt_core.inference.constrained_choice import RuledSentence
from nmt_core.inference.hypothesis import Extra, Hypothesis, Matrix, make_hypothesis
from nmt_core.inference.rules import Progress, Rules, coverage_term
from nmt_core.inference.search_requests import Finished, Key, Request
from nmt_core.inference.search_tables import Integers, SentenceTable


@dataclass
class SearchedSentence(Generic[Key]):
    """What is known of a sentence beside the numbers in its table.

    ``progress`` is that of its live hypotheses, in the order of their rows; empty without rules.
    ``attention`` has for every step the first of its rows, and their weights. ``numbers``: no log-probability
    of its last step was NaN.
    """

    request: Request[Key]
    rules: Rules
    progress: list[Progress]
    ends: list[End] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    extras: list[Extra] = field(default_factory=list)
    attention: list[tuple[int, Matrix]] = field(default_factory=list)
    numbers: bool = True

    @staticmethod
    def of(request: Request[Key]) -> SearchedSentence[Key]:
        """A sentence at its beginning."""
        rules = request.rules
        return SearchedSentence(request, rules, [Progress()] if rules else [])

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
        constrained = self.numbers and bool(self.rules)
        return Finished(self.request.key, hypotheses[: config.nbest], constrained=constrained)


def table_of(requests: Sequence[Request[Key]], slots: Integers, limits: Sequence[int], *, begun: int) -> SentenceTable:
    """The numbers of sentences that enter a search, which have these slots and limits of words."""
    lines = []
    for request, slot, limit in zip(requests, slots, limits, strict=True):
        config = request.config
        rules = (limit, config.min_length, config.forbid_unknown, *config.ranking)
        lines.append((slot, len(request.source) + 1, *rules, config.beam, config.beam, begun, -np.inf))
    return SentenceTable.of(lines)


def extra_of(sentence: RuledSentence, coverage_penalty: float, row: int) -> Extra:
    """What the rules add to the score of the finished hypothesis that had a row."""
    progress = sentence.progress[row - sentence.first]
    coverage = coverage_penalty * coverage_term(progress) if coverage_penalty else 0.0
    return Extra(sentence.rules.log_prob(progress), coverage, sentence.rules.best(progress).taken)
