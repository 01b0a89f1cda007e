"""The models once more, in plain NumPy and loops, one sentence at a time, straight from the equations.

Nothing is shared with the package but the names of the parameters. Bahdanau et al. 2015, appendix A;
Cho et al. 2014, section 2 and supplement; the order Look, Generate, Update of Jean et al. 2015b.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Parameters = Mapping[str, Array]


def sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def log_softmax(x: Array) -> Array:
    x = x - x.max()
    return x - np.log(np.exp(x).sum())


def gated_unit(p: Parameters, unit: str, word: Array, state: Array, context: Array | None = None) -> Array:
    """h' = (1 - z) h + z tanh(W e + U (r h) + C c)."""
    n = len(state)
    inputs = word if context is None else word + context
    update = sigmoid(inputs[n : 2 * n] + p[f"{unit}.gates"][:n] @ state)
    reset = sigmoid(inputs[2 * n :] + p[f"{unit}.gates"][n:] @ state)
    candidate = np.tanh(inputs[:n] + p[f"{unit}.candidate"] @ (reset * state))
    return (1 - update) * state + update * candidate


def context_reset_unit(p: Parameters, unit: str, word: Array, state: Array, context: Array) -> Array:
    """h' = (1 - z) h + z tanh(W e + r (U h + C c)), the decoder of Cho et al. 2014."""
    n = len(state)
    update = sigmoid(word[n : 2 * n] + context[n : 2 * n] + p[f"{unit}.gates"][:n] @ state)
    reset = sigmoid(word[2 * n :] + context[2 * n :] + p[f"{unit}.gates"][n:] @ state)
    candidate = np.tanh(word[:n] + reset * (p[f"{unit}.candidate"] @ state + context[:n]))
    return (1 - update) * state + update * candidate


def gate_inputs(p: Parameters, name: str, x: Array) -> Array:
    total = p[f"{name}.weight"] @ x
    bias = p.get(f"{name}.bias")
    if bias is not None:
        total[: len(bias)] += bias
    return total


def encoder_states(p: Parameters, encoder: str, words: Sequence[int], *, backward: bool) -> list[Array]:
    state = np.zeros_like(p[f"{encoder}.unit.candidate"][0])
    states = []
    for word in reversed(words) if backward else words:
        inputs = gate_inputs(p, f"{encoder}.inputs", p["source_embedding.weight"][word])
        state = gated_unit(p, f"{encoder}.unit", inputs, state)
        states.append(state)
    return states[::-1] if backward else states


def maxout_readout(p: Parameters, state: Array, embedded: Array, context: Array) -> Array:
    pairs = p["readout.state.weight"] @ state + p["readout.state.bias"]
    pairs = pairs + p["readout.word.weight"] @ embedded + p["readout.context.weight"] @ context
    return np.array([max(pairs[2 * k], pairs[2 * k + 1]) for k in range(len(pairs) // 2)])


def word_log_probs(p: Parameters, readout: Array) -> Array:
    low_rank = p.get("output.low_rank.weight")
    inputs = readout if low_rank is None else low_rank @ readout
    return log_softmax(p["output.weight"] @ inputs + p["output.bias"])


def rnnsearch(p: Parameters, source: Sequence[int], target: Sequence[int], *, order: str) -> list[float]:
    """log p of every target word; both sides end with their ``</s>``."""
    forward = encoder_states(p, "encoder", source, backward=False)
    backward = encoder_states(p, "backward_encoder", source, backward=True)
    annotations = [np.concatenate(pair) for pair in zip(forward, backward, strict=True)]
    state = np.tanh(p["initial.weight"] @ backward[0] + p["initial.bias"])

    def look(state: Array) -> Array:
        query = p["attention.query.weight"] @ state
        energies = np.array(
            [p["attention.energy"] @ np.tanh(query + p["attention.key.weight"] @ h) for h in annotations]
        )
        weights = np.exp(log_softmax(energies))
        return sum(weight * h for weight, h in zip(weights, annotations, strict=True))

    def update(state: Array, embedded: Array, context: Array) -> Array:
        word, here = gate_inputs(p, "word_inputs", embedded), gate_inputs(p, "context_inputs", context)
        return gated_unit(p, "unit", word, state, here)

    embedded = np.zeros_like(p["target_embedding.weight"][0])
    log_probs = []
    for word in target:
        context = look(state)
        if order == "conditional":
            state = update(state, embedded, context)
        log_probs.append(word_log_probs(p, maxout_readout(p, state, embedded, context))[word])
        embedded = p["target_embedding.weight"][word]
        if order == "look-generate-update":
            state = update(state, embedded, context)
    return log_probs


def rnnencdec(
    p: Parameters, source: Sequence[int], target: Sequence[int], *, order: str, summary: str, reset: str
) -> list[float]:
    """log p of every target word; both sides end with their ``</s>``."""
    context = encoder_states(p, "encoder", source, backward=False)[-1]
    if summary == "tanh":
        context = np.tanh(p["summary.weight"] @ context)
    state = np.tanh(p["initial.weight"] @ context + p["initial.bias"])
    unit = context_reset_unit if reset == "context" else gated_unit
    here = gate_inputs(p, "context_inputs", context)
    embedded = np.zeros_like(p["target_embedding.weight"][0])
    log_probs = []
    for word in target:
        if order == "conditional":
            state = unit(p, "unit", gate_inputs(p, "word_inputs", embedded), state, here)
        log_probs.append(word_log_probs(p, maxout_readout(p, state, embedded, context))[word])
        embedded = p["target_embedding.weight"][word]
        if order == "look-generate-update":
            state = unit(p, "unit", gate_inputs(p, "word_inputs", embedded), state, here)
    return log_probs


def lstm_language_model(p: Parameters, target: Sequence[int]) -> list[float]:
    """The same with an LSTM: gates i, f, o and new content g, the forget gate's bias raised by one."""
    embedded = np.zeros_like(p["target_embedding.weight"][0])
    size = p["unit.gates"].shape[1]
    hidden, cell = np.zeros(size), np.zeros(size)
    log_probs = []
    for word in target:
        summed = p["word_inputs.weight"] @ embedded + p["word_inputs.bias"] + p["unit.gates"] @ hidden
        i, f, o, g = summed[:size], summed[size : 2 * size], summed[2 * size : 3 * size], summed[3 * size :]
        cell = sigmoid(f + 1) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
        log_probs.append(word_log_probs(p, hidden)[word])
        embedded = p["target_embedding.weight"][word]
    return log_probs


def rnnlm(p: Parameters, target: Sequence[int], *, cell: str = "gru") -> list[float]:
    """log p of every target word of a recurrent language model."""
    if cell == "lstm":
        return lstm_language_model(p, target)
    embedded = np.zeros_like(p["target_embedding.weight"][0])
    state = np.zeros(p["unit.candidate"].shape[0])
    log_probs = []
    for word in target:
        state = gated_unit(p, "unit", gate_inputs(p, "word_inputs", embedded), state)
        log_probs.append(word_log_probs(p, state)[word])
        embedded = p["target_embedding.weight"][word]
    return log_probs
