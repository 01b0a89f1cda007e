"""Drawing translations from a model instead of searching for the best (ancestral sampling).

Cho et al. 2014 (section 4.3) sample target phrases from the RNN Encoder-Decoder this way.

Every sentence has random numbers of its own, made from the seed and the sentence's number, and a
word is found by looking the number up in the cumulated probabilities. So a sentence's samples do
not depend on what else is in the batch. Shapes: as in ``nmt_core.layers``; K samples of each sentence.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt_core.base.pauses import yield_point
from nmt_core.batches.layout import Layout
from nmt_core.batches.padding import group_by_tokens
from nmt_core.batches.tensor_tree import TensorTree
from nmt_core.device import on_device, on_host
from nmt_core.inference.search.config import USUAL_ROWS, SamplingConfig
from nmt_core.inference.search.predictor import Prediction, Predictor
from nmt_core.inference.search.requests import Finished, Hypothesis, Key, Request, make_hypothesis
from nmt_core.models.interface import NO_WORD
from nmt_core.text.vocabulary import END_ID, UNKNOWN_ID

_MAX_ROWS = 1024  # drawn together; a source has at least ``USUAL_ROWS`` of them
_AT_ONCE = 1 << 22  # words whose chances are worked out together: 32 MiB in float64
_AT_ONCE_ON_CPU = 1 << 18  # 2 MiB, which stay in the cache; a quarter of the time that sixteen times as many take
_LOOK = 16  # steps of a GPU, which is waited for, between two looks at whether all samples have ended


@torch.inference_mode()
def sample(
    predictor: Predictor,
    started: tuple[TensorTree, TensorTree],
    lengths: Sequence[int],
    *,
    config: SamplingConfig,
    numbers: Sequence[int],
    attention: bool = False,
) -> list[list[Hypothesis]]:
    """``config.samples`` hypotheses of every source, in the order drawn.

    ``started`` are the memory and the states that the predictor begins with for sentences of ``lengths`` words.
    ``numbers`` are the sentences' numbers in their file.
    """
    limits = [config.length_limit(words) for words in lengths]
    (chances_TBK,) = on_device(predictor.device, _chances(numbers, limits, config))
    most = max(USUAL_ROWS, _MAX_ROWS // max(len(lengths), 1))
    drawn = [
        _sample(predictor, started, lengths, limits, part_TBK, config, attention)
        for part_TBK in chances_TBK.split(most, dim=2)
    ]
    return [list(itertools.chain.from_iterable(parts)) for parts in zip(*drawn, strict=True)]


def sample_all(
    predictor: Predictor,
    requests: Sequence[Request[Key]],
    *,
    config: SamplingConfig,
    batch_tokens: int,
    attention: bool = False,
) -> Iterator[Finished[Key]]:
    """Sample for any number of sentences, in batches of ``batch_tokens`` source positions, smaller for many samples.

    A sentence for which the model's numbers are not probabilities has no
    hypotheses.
    """
    widths = [len(request.source) + 1 for request in requests]
    for group in group_by_tokens(widths, limit=batch_tokens * USUAL_ROWS // max(config.samples, USUAL_ROWS)):
        batch = [requests[place] for place in group]
        started = predictor.begin([request.source for request in batch])
        lengths = [len(request.source) for request in batch]
        numbers = [request.number for request in batch]
        drawn = sample(predictor, started, lengths, config=config, numbers=numbers, attention=attention)
        for request, hypotheses in zip(batch, drawn, strict=True):
            usable = not any(math.isnan(one.log_prob) for one in hypotheses)
            yield Finished(request, hypotheses if usable else [])


def _sample(
    predictor: Predictor,
    started: tuple[TensorTree, TensorTree],
    lengths: Sequence[int],
    limits: Sequence[int],
    chances_TBK: Tensor,
    config: SamplingConfig,
    attention: bool,
) -> list[list[Hypothesis]]:
    """As many hypotheses of every source as there are random numbers."""
    memory, state = started
    samples = chances_TBK.shape[2]
    chances_TN = chances_TBK.flatten(1)
    (limits_N,) = on_device(predictor.device, np.repeat(np.array(limits, dtype=np.int64), samples))
    state = state.repeat(samples)
    previous_N = torch.full((len(lengths) * samples,), NO_WORD, device=predictor.device)
    open_N = torch.ones_like(previous_N, dtype=torch.bool)
    words, log_probs, attentions = [], [], []
    layout = _layout(lengths, samples, predictor.device)
    looks_every = 1 if predictor.device.type == "cpu" else _LOOK
    for time in range(max(limits, default=0) + 1):
        step = predictor.advance(previous_N, state, memory, layout)
        state = step.state
        closed_N = time >= limits_N
        previous_N, log_probs_N = _next_words(step, chances_TN[time], closed_N, config, short=time < config.min_length)
        words.append(previous_N)
        log_probs.append(log_probs_N)
        if attention and step.attention_NS is not None:
            attentions.append(step.attention_NS)
        open_N &= previous_N != END_ID
        if (time + 1) % looks_every == 0 and not bool(open_N.any()):
            break
    widths = [length + 1 for length in lengths for _ in range(samples)]
    hypotheses = _collect(words, log_probs, attentions, widths=widths, config=config)
    return [hypotheses[first : first + samples] for first in range(0, len(hypotheses), samples)]


def _layout(lengths: Sequence[int], samples: int, device: torch.device) -> Layout | None:
    """Of the samples of every source, on a CPU: attention works through them some rows at a time."""
    if device.type != "cpu":
        return None
    sentences_N = np.repeat(np.arange(len(lengths)), samples)
    return Layout(on_device(device, sentences_N)[0], sentences_N, np.array(lengths) + 1)


def number_of_text(text: str) -> int:
    """A number for ``numbers`` that a source has wherever it stands: 64 bits of the digest of its text."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _chances(numbers: Sequence[int], limits: Sequence[int], config: SamplingConfig) -> npt.NDArray[np.float64]:
    """Uniform numbers in [0, 1) for every step and sample, a sentence's from its own generator, (T, B, K)."""
    longest = max(limits, default=0) + 1
    chances = np.zeros((longest, len(numbers), config.samples))
    for row, (number, limit) in enumerate(zip(numbers, limits, strict=True)):
        generator = np.random.default_rng((config.seed, number))
        chances[: limit + 1, row] = generator.random((limit + 1, config.samples))
    return chances


def _next_words(
    step: Prediction, chances_N: Tensor, closed_N: Tensor, config: SamplingConfig, *, short: bool
) -> tuple[Tensor, Tensor]:
    """The words drawn, ``</s>`` in the rows that are closed, and their log-probabilities; some rows at a time."""
    words, log_probs = [], []
    at_once = _AT_ONCE_ON_CPU if step.scores_NV.device.type == "cpu" else _AT_ONCE
    rows = max(1, at_once // step.scores_NV.shape[1])
    columns = (step.scores_NV, step.normalizer_N, chances_N, closed_N)
    for scores_RV, normalizer_R, chances_R, closed_R in zip(*(part.split(rows) for part in columns), strict=True):
        yield_point()
        log_probs_RV = scores_RV - normalizer_R.unsqueeze(1)
        words_R = _draw(log_probs_RV, chances_R, config, short=short).masked_fill(closed_R, END_ID)
        words.append(words_R)
        log_probs.append(log_probs_RV.gather(1, words_R.unsqueeze(1)).squeeze(1))
    return torch.cat(words), torch.cat(log_probs)


def _draw(log_probs_NV: Tensor, chances_N: Tensor, config: SamplingConfig, *, short: bool) -> Tensor:
    """The words at which the cumulated probabilities first exceed the random numbers."""
    scaled_NV = log_probs_NV.double() / config.temperature
    for word, forbidden in ((UNKNOWN_ID, config.forbid_unknown), (END_ID, short)):
        if forbidden:  # before the softmax, in which all the others may vanish compared with them
            scaled_NV[:, word] = -torch.inf
    weights_NV = scaled_NV.softmax(dim=1)
    cumulated_NV = weights_NV.cumsum(dim=1)
    wanted_N1 = chances_N.unsqueeze(1) * cumulated_NV[:, -1:]
    return torch.searchsorted(cumulated_NV, wanted_N1, right=True).squeeze(1).clamp(max=log_probs_NV.shape[1] - 1)


def _collect(
    words: list[Tensor],
    log_probs: list[Tensor],
    attentions: list[Tensor],
    *,
    widths: Sequence[int],
    config: SamplingConfig,
) -> list[Hypothesis]:
    """Cut every row after its first ``</s>``, and its attention behind its source positions."""
    fetched = on_host([torch.stack(column, dim=1).double() for column in (words, log_probs)])
    words_NT, log_probs_NT = fetched[0].astype(np.int64), fetched[1]
    attention_NTS = torch.stack(attentions, dim=1).float().cpu().numpy() if attentions else None
    lengths = (words_NT == END_ID).argmax(axis=1).tolist()
    return [
        make_hypothesis(
            words_NT[row, :length].tolist(),
            log_probs_NT[row, : length + 1].tolist(),
            config=config,
            attention=None if attention_NTS is None else attention_NTS[row, : length + 1, : widths[row]],
        )
        for row, length in enumerate(lengths)
    ]
