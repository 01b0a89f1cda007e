"""What a request costs, known before any of it is done: bytes of the answer, bytes in memory, and steps of the device.

A translation is counted with all the words that it may have, which are more than it usually has. Words
are counted with the mean length of the model's words. All other numbers are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.errors import invalid
from nmt_core.serving.limits import Limits

_FLOAT, _DOUBLE, _TAG = 4, 8, 3  # bytes of numbers in messages, and of a field's tag and length
_ITEM = 64  # of the numbers that every item has
_POINT = 8  # of a link of a hard alignment
_COPIES = 3  # of an answer, at its end: as values, as a message and as bytes
_RUN = 128  # rows of which attention works out the energies at once, on a CPU
_POSITIONS = 1 << 14  # that these rows look at, together


class Cost(NamedTuple):
    """Bytes of the answer, bytes in memory at most, and hypotheses or targets times the words they may have."""

    answer: int
    memory: int
    steps: int


class Proportions(NamedTuple):
    """What costs depend on besides the request: mean bytes of a target word, and units of the attention (0: none).

    ``together`` are the source positions times beam that are searched together, ``tokens_of_a_word`` what a model of
    annotated text writes for each word.
    """

    word_bytes: float = 8.0
    attention_units: int = 0
    together: int = 12_000
    tokens_of_a_word: int = 1


def translation_cost(
    sources: Sequence[tuple[int, int]],
    config: DecodingConfig,
    model: Proportions,
    *,
    answered: bool = False,
    kept: bool = False,
) -> Cost:
    """Of sources with so many words and bytes; with attention in the answer, or at least during the search."""
    if not sources:
        return Cost(0, 0, 0)
    config = config.lengthened(model.tokens_of_a_word)
    beam, attends = config.beam, kept or answered
    a_word = 2 * model.word_bytes + 2 * _TAG + _DOUBLE + (_POINT if answered else 0)
    answer = 0.0
    steps = history = longest_history = positions = most_words = 0
    for words, text in sources:
        length = config.length_limit(words)
        weights = (length + 1) * (words + 1) * _FLOAT
        answer += length * a_word + text + _TAG * words + _ITEM + (weights if answered else 0)
        kept_here = (length + 1) * 32 + (weights if attends else 0)
        history += kept_here
        longest_history = max(longest_history, kept_here)
        positions += words + 1
        most_words = max(most_words, words)
        steps += length + 1
    size = int(answer * config.nbest) + _ITEM * len(sources)
    share = min(1.0, max(model.together, beam * (most_words + 1)) / (beam * positions))  # the others wait
    search = max(beam * longest_history, int(share * beam * history))
    looked_at = min(min(beam, _RUN) * (most_words + 1), max(_POSITIONS, most_words + 1))
    energies = looked_at * model.attention_units * _FLOAT
    return Cost(size, _COPIES * size + search + energies, beam * steps)


def score_cost(pairs: Sequence[tuple[int, int]], *, per_word: bool, attention: bool) -> Cost:
    """Of pairs of so many source and target words."""
    steps = sum([target for _, target in pairs]) + len(pairs)
    weights = sum([(source + 1) * (target + 1) for source, target in pairs]) if attention else 0
    answer = _ITEM * len(pairs) + weights * _FLOAT + (steps * _DOUBLE if per_word else 0)
    return Cost(answer, _COPIES * answer, steps)


def check_cost(limits: Limits, *, answer: int, steps: int) -> None:
    """Raises RpcError for an answer that could not be sent, and for work without end."""
    if answer > limits.message_bytes:
        sizes = f"up to {-(-answer // (1 << 20))} MiB, at most {limits.message_bytes >> 20}"
        problem = f"the answer would have {sizes}; send several requests, or ask for fewer translations"
        raise invalid("", f"{problem} or no attention", reason="ANSWER_TOO_LARGE")
    if steps > limits.steps:
        problem = f"the request needs up to {steps:,} steps of hypotheses; at most {limits.steps:,}"
        raise invalid("", f"{problem}, send several requests or a smaller beam", reason="TOO_COSTLY")
