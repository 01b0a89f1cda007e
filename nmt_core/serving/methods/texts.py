"""The texts of a request: within the limits, as words that the model reads, and as running text in the reply."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted
from nmt_core.base.pauses import yield_point
from nmt_core.base.words import factors_problem
from nmt_core.serving.errors import RpcError, invalid, not_supported
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.costs import count_words, count_words_of_all
from nmt_core.serving.models.devices import Route
from nmt_core.text.processing import RawText


def check_items(limits: Limits, count: int, field: str, *, answers: int = 1) -> None:
    """Raises RpcError for too many of them."""
    if count * answers > limits.items:
        asked = f"{count} items" if answers == 1 else f"{answers} translations of each of {counted(count, 'item')}"
        problem = f"{asked} in one request; at most {limits.items}, send several requests"
        raise invalid(field, problem, reason="TOO_MANY_ITEMS")


def text_problem(limits: Limits, text: str, field: str, *, what: str = "the text") -> RpcError | None:
    """What is wrong with a text, before and after it was tokenised or cut."""
    if len(text) > limits.characters:
        problem = f"{what} has {len(text)} characters; at most {limits.characters}"
        return invalid(field, problem, reason="TEXT_TOO_LONG")
    if len(text) > limits.words and (words := count_words(text)) > limits.words:
        return invalid(field, f"{what} has {words} words; at most {limits.words}", reason="TEXT_TOO_LONG")
    return None


def source_problem(limits: Limits, text: str, field: str, *, factors: int) -> RpcError | None:
    """The same, and words without the factors that the model reads beside them."""
    if problem := text_problem(limits, text, field):
        return problem
    wrong = factors_problem(text, factors)
    return None if wrong is None else invalid(field, wrong, reason="WRONG_FACTORS")


def read_texts(texts: Sequence[str], route: Route, limits: Limits, *, raw: bool) -> list[str | RpcError]:
    """Every text as words that the model reads, or what is wrong with it. Raises RpcError where raw text cannot be."""
    factors = 0 if raw else route.model.source_factors
    checked = [source_problem(limits, text, "texts", factors=factors) or text for text in texts]
    if not raw:
        return checked
    tokenize = _raw_text(route).tokenize
    return [text if isinstance(text, RpcError) else _tokenized(text, tokenize, limits) for text in checked]


def _tokenized(text: str, tokenize: Callable[[str], str], limits: Limits) -> str | RpcError:
    yield_point()
    tokenized = tokenize(text)
    return text_problem(limits, tokenized, "texts") or tokenized


def written_texts(nbest: Sequence[Sequence[str]], route: Route) -> list[list[str]]:
    """Running text for every translation of every sentence."""
    detokenize = _raw_text(route).detokenize
    shown: list[list[str]] = []
    for texts in nbest:
        shown.append([])
        for text in texts:
            yield_point()
            shown[-1].append(detokenize(text))
    return shown


def _raw_text(route: Route) -> RawText:
    try:
        return route.model.raw_text
    except ConfigError as error:
        raise not_supported(str(error)) from error


def words_of(texts: Sequence[str | RpcError]) -> list[int]:
    """How many words each text has; one that was rejected has none."""
    return count_words_of_all(["" if isinstance(text, RpcError) else text for text in texts])
