"""What a method plans for a request, what that costs, what it replies, and the texts of both.

A method is a function of a request, a route and the limits. It computes the cost before any work, and returns a
``Plan``: what the device is asked for, and how the reply is made of its answers (``finish``). Both are pure, and
run off the event loop where the request is large.

A translation is counted with all the words that it may have, which are more than it usually has. Words are counted
with the mean length of the model's words. All other numbers are exact.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from google.rpc import code_pb2

from nmt_core.base.errors import InputError, is_full_gpu
from nmt_core.base.messages import counted
from nmt_core.base.pauses import yield_point
from nmt_core.base.words import count_words, factors_problem
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.engine.work import LARGE, BatchSpeed, Item
from nmt_core.serving.errors import RpcError, internal, invalid
from nmt_core.serving.limits import Limits
from nmt_core.serving.models.device import Route
from nmt_core.serving.models.served import Key, Proportions
from nmt_core.v1 import nmt_pb2 as pb

INTERACTIVE_ITEMS = 32
"""Requests of so many items at most are interactive unless they say otherwise."""

LONG = 16
"""A search that needs more than this part of a full batch is in the class ``long``, as is all ``LARGE`` work."""

LONGEST_WHOLE = 5.0
"""Seconds of a text or pair that nothing can interrupt, by the speed of the last texts: Transformers have no slices."""

_FLOAT, _DOUBLE, _TAG = 4, 8, 3  # bytes of numbers in messages, and of a field's tag and length
_ITEM = 64  # of the numbers that every item has
_POINT = 8  # of a link of a hard alignment
_COPIES = 3  # of an answer, at its end: as values, as a message and as bytes
_RUN = 128  # rows of which attention works out the energies at once, on a CPU
_POSITIONS = 1 << 14  # that these rows look at, together
_log = logging.getLogger(__name__)

Words = Counter[str]
"""How many words of each kind were done."""

Response = Callable[[list[Any], Words], Iterable[bytes]]
"""Makes the pieces of a response of the answers to all items, and adds the words that it counts."""


class Cost(NamedTuple):
    """Bytes of the answer, bytes in memory at most, and hypotheses or targets times the words they may have."""

    answer: int
    memory: int
    steps: int


class Reply(NamedTuple):
    """The bytes of a response, its words, and how many of its items are errors, by reason."""

    content: bytes
    words: Words
    errors: Mapping[str, int]


class Plan(NamedTuple):
    """Items for a device, in parts by priority class; an RpcError among the items is its own answer.

    ``indices`` are the indices of each part's items.
    """

    key: Key
    items: Sequence[Item | RpcError]
    parts: Mapping[str, Sequence[Item]]
    indices: Sequence[Sequence[int]]
    cost: Cost
    reply: Response

    def finish(self, answers: Sequence[list[Any]]) -> Reply:
        """The reply to the request, made of the answers to each part. It ends with which model made it."""
        found: list[Any] = list(self.items)
        for indices, of_part in zip(self.indices, answers, strict=True):
            for index, answer in zip(indices, of_part, strict=True):
                found[index] = _as_refusal(answer) if isinstance(answer, Exception) else answer
        words = Words()
        content = b"".join([*self.reply(found, words), self.key.model.identity])
        return Reply(content, words, Counter(one.reason for one in found if isinstance(one, RpcError)))


Method = Callable[[Any, Route, Limits], Plan]
"""Plans what is done for a request. Raises RpcError."""


def make_plan(
    key: Key,
    items: Sequence[Item | RpcError],
    *,
    priority: int,
    cost: Cost,
    limits: Limits,
    reply: Response,
) -> Plan:
    """The plan for items, of a ``priority`` of the contract. Raises RpcError where it costs too much.

    Items that may take long are in a part of their own, that others do not wait for them. Those that would take too
    long without a pause are errors.
    """
    if priority not in pb.Priority.values():
        raise invalid("priority", f"there is no priority {priority}")
    check_cost(limits, answer=cost.answer, steps=cost.steps)
    if key.model.speed is not None:
        items = [one if isinstance(one, RpcError) else _bounded(one, key.model.speed) for one in items]
    few = priority == pb.PRIORITY_UNSPECIFIED and len(items) <= INTERACTIVE_ITEMS
    name = "interactive" if few or priority == pb.PRIORITY_INTERACTIVE else "bulk"
    most = key.model.proportions.together // LONG if key.kind == "translate" else LARGE
    short, long = list[int](), list[int]()
    for index, item in enumerate(items):
        if not isinstance(item, RpcError):
            (short if item.tokens <= most else long).append(index)
    classes = {name: some for name, some in ((name, short), ("long", long)) if some}
    known: Sequence[Any] = items
    parts = {name: [known[index] for index in some] for name, some in classes.items()}
    return Plan(key, items, parts, list(classes.values()), cost, reply)


def _bounded(item: Item, speed: BatchSpeed) -> Item | RpcError:
    seconds = speed.seconds_for(item.tokens)
    if not LONGEST_WHOLE < seconds < math.inf:  # before the first one nothing is known
        return item
    problem = f"the model would work on this for about {seconds:.0f} s without a pause; at most {LONGEST_WHOLE:.0f}"
    return invalid("", f"{problem}, send a shorter text or a smaller beam", reason="TOO_COSTLY")


def _as_refusal(error: Exception) -> RpcError:
    """The error of an item that the model failed at."""
    if isinstance(error, RpcError):
        return error
    if isinstance(error, InputError):  # of a Transformer, which alone knows what it takes
        return invalid("", error.problem, reason="TEXT_TOO_LONG")
    _log.error("an item failed", exc_info=error)
    if is_full_gpu(error):
        problem = "the device has not enough memory for this item"
        return RpcError(problem, code=code_pb2.RESOURCE_EXHAUSTED, reason="OUT_OF_MEMORY")
    return internal()


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
