"""What a running search knows of each sentence: its rules, finished hypotheses and attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic

import numpy as np

from nmt_core.inference.search.allocation import RuledSentence
from nmt_core.inference.search.constraints import Progress, Rules, coverage_term, covered
from nmt_core.inference.search.guided import GuidedChoice, GuidedSentence, Prefix
from nmt_core.inference.search.history import End, Path
from nmt_core.inference.search.hypothesis import Extra, Hypothesis, Matrix, make_hypothesis
from nmt_core.inference.search.requests import Finished, Key, Request
from nmt_core.inference.search.tables import Integers, SentenceTable
from nmt_core.text.vocabulary import END_ID


@dataclass
class SearchedSentence(Generic[Key]):
    """What is known of a sentence beside the numbers in its table.

    ``progress`` is that of its live hypotheses, in the order of their rows; empty without rules. ``prefixes`` are what
    a guide knows of them, ``lost`` is the best total that the beam had no place for, with a guide.
    ``attention`` has for every step the first of its rows, and their weights. ``numbers``: no log-probability
    of its last step was NaN.
    """

    request: Request[Key]
    rules: Rules
    progress: list[Progress]
    prefixes: list[Prefix]
    lost: float = -np.inf
    ends: list[End] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    extras: list[Extra] = field(default_factory=list)
    attention: list[tuple[int, Matrix]] = field(default_factory=list)
    numbers: bool = True

    @staticmethod
    def of(request: Request[Key]) -> SearchedSentence[Key]:
        """A sentence at its beginning."""
        rules, guide = request.rules, request.guide
        return SearchedSentence(
            request, rules, [Progress()] if rules else [], [] if guide is None else [guide.beginning]
        )

    def follow(self, choice: GuidedChoice, columns: Sequence[int]) -> None:
        """Go on with those of a choice that stand in these columns."""
        self.prefixes = [choice.prefixes[column] for column in columns]
        self.lost = max(self.lost, choice.lost)

    def note_attention(self, first: int, rows_KS: Matrix, *, keep: bool) -> None:
        """Take what is asked for of the weights of a step, whose rows for this sentence begin with ``first``."""
        if keep:
            self.attention.append((first, rows_KS.copy()))
        if self.rules.coverage:
            rows = zip(self.progress, rows_KS, strict=True)
            self.progress[:] = [covered(progress, row_S[:-1]) for progress, row_S in rows]

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


def table_of(requests: Sequence[Request[Key]], slots: Integers, limits: Sequence[int], *, begun: int) -> SentenceTable:
    """The numbers of sentences that enter a search, which have these slots and limits of words."""
    lines = []
    for request, slot, limit in zip(requests, slots, limits, strict=True):
        config = request.config
        rules = (limit, config.min_length, config.forbid_unknown, *config.ranking)
        threshold = -np.inf if request.guide is None else request.guide.least
        lines.append((slot, len(request.source) + 1, *rules, config.beam, config.beam, begun, threshold))
    return SentenceTable.of(lines)


def ruled_among(sentences: Sequence[SearchedSentence[Key]], firsts: Sequence[int]) -> list[RuledSentence]:
    """Those with rules, of all in the order of the table, with the first rows of each."""
    return [
        RuledSentence(place, first, sentence.rules, sentence.progress)
        for place, (first, sentence) in enumerate(zip(firsts, sentences, strict=True))
        if sentence.rules
    ]


def guided_among(sentences: Sequence[SearchedSentence[Key]], firsts: Sequence[int]) -> list[GuidedSentence]:
    """Those with a guide."""
    return [
        GuidedSentence(place, first, sentence.request.guide, sentence.prefixes)
        for place, (first, sentence) in enumerate(zip(firsts, sentences, strict=True))
        if sentence.request.guide is not None
    ]


def extra_of(sentence: RuledSentence, coverage_penalty: float, row: int) -> Extra:
    """What rules and advice add to the score of the finished hypothesis that had a row."""
    progress = sentence.progress[row - sentence.first]
    coverage = coverage_penalty * coverage_term(progress) if coverage_penalty else 0.0
    log_prob = sentence.rules.log_prob(progress) + sentence.rules.advised(progress, END_ID)
    return Extra(log_prob, coverage, sentence.rules.best(progress).taken)
