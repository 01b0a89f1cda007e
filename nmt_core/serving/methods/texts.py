"""The texts of a request: within the limits, as words that the model reads, and as running text in the reply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nmt_core.base.messages import counted
from nmt_core.base.pauses import yield_point
from nmt_core.base.words import count_words, factors_problem
from nmt_core.serving.errors import RpcError, invalid
from nmt_core.serving.limits import Limits
from nmt_core.serving.models.device import Route


class ReadText(NamedTuple):
    """What the model reads, of ``words`` words; ``reading`` says where these come from, in another form of text."""

    text: str
    words: int
    reading: Any = None


def check_items(limits: Limits, count: int, field: str, *, answers: int = 1) -> None:
    """Raises RpcError for too many of them."""
    if count * answers > limits.items:
        asked = f"{count} items" if answers == 1 else f"{answers} translations of each of {counted(count, 'item')}"
        problem = f"{asked} in one request; at most {limits.items}, send several requests"
        raise invalid(field, problem, reason="TOO_MANY_ITEMS")


def read_text(
    text: str, field: str, limits: Limits, *, factors: int = 0, read: Callable[[str], Any] | None = None
) -> ReadText | RpcError:
    """A text as the model reads it, or what is wrong with it, before or after it was read.

    ``read`` reads another form of text. Words have so many ``factors`` that the model reads, too.
    """
    yield_point()
    if problem := _too_long(text, field, limits, "the text"):
        return problem
    if factors and (wrong := factors_problem(text, factors)):
        return invalid(field, wrong, reason="WRONG_FACTORS")
    if read is None:
        return ReadText(text, count_words(text))
    reading = read(text)
    problem = _too_long(reading.text, field, limits, "the text as the model reads it")
    return problem or ReadText(reading.text, max(count_words(text), count_words(reading.text)), reading)


def _too_long(text: str, field: str, limits: Limits, what: str) -> RpcError | None:
    if len(text) > limits.characters:
        problem = f"{what} has {len(text)} characters; at most {limits.characters}"
    elif len(text) > limits.words and (words := count_words(text)) > limits.words:
        problem = f"{what} has {words} words; at most {limits.words}"
    else:
        return None
    return invalid(field, problem, reason="TEXT_TOO_LONG")


def read_texts(texts: Sequence[str], route: Route, limits: Limits, *, raw: bool) -> list[ReadText | RpcError]:
    """Every text as words that the model reads, or what is wrong with it. Raises RpcError where raw text cannot be."""
    if not raw:
        return [read_text(text, "texts", limits, factors=route.model.source_factors) for text in texts]
    tokenize = route.model.raw_text.tokenize
    return [read_text(text, "texts", limits, read=lambda text: ReadText(tokenize(text), 0)) for text in texts]


def written_texts(nbest: Sequence[Sequence[str]], route: Route) -> list[list[str]]:
    """Running text for every translation of every sentence."""
    detokenize = route.model.raw_text.detokenize
    shown: list[list[str]] = []
    for texts in nbest:
        shown.append([])
        for text in texts:
            yield_point()
            shown[-1].append(detokenize(text))
    return shown
