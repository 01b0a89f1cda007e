"""Whether a request keeps to the limits: its items, its texts, its cost."""

from __future__ import annotations

from nmt_core.base.messages import counted
from nmt_core.base.words import factors_problem
from nmt_core.inference.search.config import SamplingConfig
from nmt_core.serving.errors import Refusal, invalid
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.costs import count_words

MOST_DRAWN = 100_000
"""Words, and ends, that the samples of one text may have."""


def check_items(limits: Limits, count: int, field: str, *, answers: int = 1) -> None:
    """Raises Refusal for too many of them."""
    if count * answers > limits.items:
        asked = f"{count} items" if answers == 1 else f"{answers} translations of each of {counted(count, 'item')}"
        problem = f"{asked} in one request; at most {limits.items}, send several requests"
        raise invalid(field, problem, reason="TOO_MANY_ITEMS")


def check_cost(limits: Limits, *, answer: int, steps: int) -> None:
    """Raises Refusal for an answer that could not be sent, and for work without end."""
    if answer > limits.message_bytes:
        sizes = f"up to {-(-answer // (1 << 20))} MiB, at most {limits.message_bytes >> 20}"
        problem = f"the answer would have {sizes}; send several requests, or ask for fewer translations"
        raise invalid("", f"{problem} or no attention", reason="ANSWER_TOO_LARGE")
    if steps > limits.steps:
        problem = f"the request needs up to {steps:,} steps of hypotheses; at most {limits.steps:,}"
        raise invalid("", f"{problem}, send several requests or a smaller beam", reason="TOO_COSTLY")


def sample_problem(config: SamplingConfig, text: str) -> Refusal | None:
    """What is wrong with samples of a text: they are drawn together, and what they have drawn is kept."""
    drawn = config.samples * (config.length_limit(count_words(text)) + 1)
    if drawn <= MOST_DRAWN:
        return None
    problem = f"the samples of the text may have {drawn:,} words; at most {MOST_DRAWN:,}"
    return invalid("samples", f"{problem}, ask for fewer of them or a smaller max_length_ratio", reason="TOO_COSTLY")


def text_problem(limits: Limits, text: str, field: str, *, what: str = "the text") -> Refusal | None:
    """What is wrong with a text, before and after it was tokenised or cut."""
    if len(text) > limits.characters:
        problem = f"{what} has {len(text)} characters; at most {limits.characters}"
        return invalid(field, problem, reason="TEXT_TOO_LONG")
    if len(text) > limits.words and (words := count_words(text)) > limits.words:
        return invalid(field, f"{what} has {words} words; at most {limits.words}", reason="TEXT_TOO_LONG")
    return None


def source_problem(limits: Limits, text: str, field: str, *, factors: int) -> Refusal | None:
    """The same, and words without the factors that the model reads beside them."""
    if problem := text_problem(limits, text, field):
        return problem
    wrong = factors_problem(text, factors)
    return None if wrong is None else invalid(field, wrong, reason="WRONG_FACTORS")
