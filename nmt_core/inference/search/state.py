"""The two states of a running search, as records: its sentences, and its live rows, one a live hypothesis.

Shapes: A sentences, B of them that enter, N rows, C continuations of a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.inference.search.constraints import NO_RULES, Rules
from nmt_core.inference.search.guided import GuideInIds
from nmt_core.inference.search.requests import (
    Flags,
    Floats,
    Hypothesis,
    Integers,
    Key,
    Matrix,
    Request,
    make_hypothesis,
)
from nmt_core.models.interface import NO_WORD

Records = npt.NDArray[np.void]

SENTENCE = np.dtype(
    [
        ("slot", np.int64),  # of the memory pool
        ("width", np.int64),  # source positions, </s> among them
        ("max_length", np.int64),
        ("min_length", np.int64),
        ("forbid_unknown", np.bool_),
        ("exponent", np.float64),  # of the length normalization
        ("beam", np.int64),
        ("places", np.int64),  # of the beam that no finished hypothesis has
        ("length", np.int64),  # words of the live hypotheses
        ("threshold", np.float64),  # the score that a hypothesis must exceed to be one of the n best
        ("searched", np.object_),  # the SearchedSentence
    ]
)
ROW = np.dtype(
    [
        ("slot", np.int64),  # of its sentence
        ("parent", np.int64),  # the row whose state it continues
        ("previous", np.int64),  # the last word
        ("total", np.float64),  # log-probability, with what rules and guides add
        ("path", np.object_),  # the words so far: a Path
        ("progress", np.object_),  # with rules a Progress, with a guide a Prefix, else None
    ]
)

Path = tuple[Any, int, float, int]
"""The path before (None at the beginning), a word, its log-probability, and the row that it continued."""

_MARGIN = 1e-4  # of a score: more than rounding may be wrong


class Continuations(NamedTuple):
    """The continuations of every sentence, best first: totals, log-probabilities of the words, rows and words.

    ``after_AC`` is the progress with the word, where a sentence has rules or a guide; None where none has.
    """

    totals_AC: Floats
    log_probs_AC: Floats
    rows_AC: Integers
    words_AC: Integers
    after_AC: npt.NDArray[np.object_] | None = None


@dataclass
class SearchedSentence(Generic[Key]):
    """What is known of a sentence in addition to the numbers of its record.

    ``attention`` has for every step the first row of the sentence, and the weights of its rows.
    """

    request: Request[Key]
    rules: Rules | GuideInIds | None
    finished: list[Hypothesis] = field(default_factory=list)
    attention: list[tuple[int, Matrix]] = field(default_factory=list)

    def finish(self, path: Path, progress: Any) -> float:
        """Add the hypothesis of a path that ends with ``</s>``; returns the score to be exceeded from now on.

        ``progress`` is what it has reached with rules or a guide.
        """
        config = self.request.search
        words, log_probs, rows = [], [], []
        while path is not None:
            path, word, log_prob, row = path
            words.append(word)
            log_probs.append(log_prob)
            rows.append(row)
        ending = NO_RULES if self.rules is None else self.rules.ending(progress)
        steps = zip(reversed(rows), self.attention, strict=True) if self.attention else ()
        attention = [rows_KS[row - first] for row, (first, rows_KS) in steps]
        attention_TS = np.stack(attention) if attention else None
        self.finished.append(
            make_hypothesis(words[:0:-1], log_probs[::-1], config=config, attention=attention_TS, ending=ending)
        )
        self.finished.sort(key=lambda hypothesis: -hypothesis.score)  # stable: of equals the earlier comes first
        return self.finished[config.nbest - 1].score if len(self.finished) >= config.nbest else -np.inf


def enter(requests: Sequence[Request[Key]], *, parent: int) -> tuple[Records, Records]:
    """The records of sentences at their beginning, and of a row without words for each, without slots.

    ``parent`` is the first one's state. Raises ConfigError for rules that cannot be met.
    """
    sentences_B, rows_B = np.empty(len(requests), dtype=SENTENCE), np.empty(len(requests), dtype=ROW)
    for number, request in enumerate(requests):
        config, rules = request.search, request.rules
        limits = (request.limit, config.min_length, config.forbid_unknown, config.length_normalization)
        places = (config.beam, config.beam, 0, -np.inf)
        sentences_B[number] = (-1, len(request.source) + 1, *limits, *places, SearchedSentence(request, rules))
        beginning = None if rules is None else rules.beginning
        rows_B[number] = (-1, parent + number, NO_WORD, 0.0, None, beginning)
    return sentences_B, rows_B


def row_ranges(sentences_A: Records, rows_N: Records) -> Integers:
    """The first row of every sentence, and the one behind its last: (A, 2)."""
    slots_A = sentences_A["slot"]
    return np.searchsorted(rows_N["slot"], [slots_A, slots_A + 1]).T


def extended_rows(rows_N: Records, selected: Continuations, live_AC: Flags) -> Records:
    """The rows of the continuations that live on."""
    parents_N, words_N = selected.rows_AC[live_AC], selected.words_AC[live_AC]
    extended_N = np.empty(len(parents_N), dtype=ROW)
    extended_N["slot"] = rows_N["slot"][parents_N]
    extended_N["parent"], extended_N["previous"] = parents_N, words_N
    extended_N["total"] = selected.totals_AC[live_AC]
    columns = (rows_N["path"][parents_N], words_N, selected.log_probs_AC[live_AC], parents_N)
    paths = zip(*(column.tolist() for column in columns), strict=True)
    extended_N["path"] = np.fromiter(paths, dtype=np.object_, count=len(parents_N))
    if selected.after_AC is not None:
        extended_N["progress"] = selected.after_AC[live_AC]
    return extended_N


def are_done(sentences_A: Records, live_AC: Flags, selected: Continuations) -> Flags:
    """Which sentences have no live hypothesis, or none that could still be one of the n best.

    ``live_AC`` are the live hypotheses among the continuations. Log-probabilities only fall, so that no live hypothesis
    will have a better score than its present total at the greatest length. Only log-probabilities of constraints may
    rise, where a further word makes a likelier phrase: these are left out.
    """
    highest_AC = np.where(live_AC, selected.totals_AC, -np.inf)
    if selected.after_AC is not None:
        for place, searched in enumerate(sentences_A["searched"]):
            for column in np.flatnonzero(live_AC[place]).tolist() if isinstance(searched.rules, Rules) else ():
                highest_AC[place, column] -= searched.rules.log_prob(selected.after_AC[place, column])
    bound_A = highest_AC.max(axis=1) / (sentences_A["max_length"] + 1.0) ** sentences_A["exponent"]
    done_A: Flags = ~live_AC.any(axis=1) | (bound_A * (1 - _MARGIN) < sentences_A["threshold"])
    return done_A
