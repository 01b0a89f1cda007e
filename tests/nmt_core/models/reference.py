"""The models once more, in plain NumPy and loops, one sentence at a time, straight from the equations.

Nothing is shared with the package but the names of the parameters. Bahdanau et al. 2015, appendix A;
Cho et al. 2014, section 2 and supplement; the order Look, Generate, Update of Jean et al. 2015b.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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


def lstm(p: Parameters, unit: str, word: Array, state: Array, context: Array | None = None) -> Array:
    """c' = f c + i g, h' = o tanh(c'); the forget gate's bias is raised by one. A state is h and c."""
    hidden, cell = np.split(state, 2)
    summed = word + p[f"{unit}.gates"] @ hidden + (0 if context is None else context)
    i, f, o, g = np.split(summed, 4)
    cell = sigmoid(f + 1) * cell + sigmoid(i) * np.tanh(g)
    return np.concatenate([sigmoid(o) * np.tanh(cell), cell])


def vanilla(p: Parameters, unit: str, word: Array, state: Array, context: Array | None = None) -> Array:
    """h' = tanh(W e + U h + C c)."""
    return np.tanh(word + p[f"{unit}.recurrent"] @ state + (0 if context is None else context))


CELLS = {
    "vanilla": vanilla,
    "gru": gated_unit,
    "lstm": lstm,
    "context-reset": context_reset_unit,
}
PARTS = {"lstm": 2}


class Layer:
    """A recurrent layer step by step."""

    def __init__(self, p: Parameters, inputs: str, unit: str, hidden: int, *, cell: str = "gru") -> None:
        self.p, self.hidden, self.cell, self.inputs, self.unit = p, hidden, cell, inputs, unit
        self.state = np.zeros(hidden * PARTS.get(cell, 1))

    def step(self, embedded: Array, context: Array | None = None) -> Array:
        first = gate_inputs(self.p, self.inputs, embedded)
        self.state = CELLS[self.cell](self.p, self.unit, first, self.state, context)
        return self.given_out

    @property
    def given_out(self) -> Array:
        return self.state[: self.hidden]


def encoder_states(
    p: Parameters, encoder: str, words: Sequence[int], *, backward: bool, hidden: int = 0, **options: object
) -> list[Array]:
    hidden = hidden or p[f"{encoder}.unit.candidate"].shape[0]
    layer = Layer(p, f"{encoder}.inputs", f"{encoder}.unit", hidden, **options)
    ordered = reversed(words) if backward else words
    states = [layer.step(p["source_embedding.weight"][word]) for word in ordered]
    return states[::-1] if backward else states


def maxout_readout(p: Parameters, state: Array, embedded: Array, context: Array) -> Array:
    pairs = p["readout.state.weight"] @ state + p["readout.state.bias"]
    pairs = pairs + p["readout.word.weight"] @ embedded + p["readout.context.weight"] @ context
    return np.array([max(pairs[2 * k], pairs[2 * k + 1]) for k in range(len(pairs) // 2)])


def word_log_probs(p: Parameters, readout: Array) -> Array:
    low_rank = p.get("output.low_rank.weight")
    inputs = readout if low_rank is None else low_rank @ readout
    return log_softmax(p["output.weight"] @ inputs + p["output.bias"])


def rnnsearch(
    p: Parameters,
    source: Sequence[int],
    target: Sequence[int],
    *,
    order: str,
    cell: str = "gru",
) -> list[float]:
    """log p of every target word; both sides end with their ``</s>``."""
    hidden = p["initial.weight"].shape[0]
    options = {"hidden": hidden, "cell": cell}
    forward = encoder_states(p, "encoder", source, backward=False, **options)
    backward = encoder_states(p, "backward_encoder", source, backward=True, **options)
    annotations = [np.concatenate(pair) for pair in zip(forward, backward, strict=True)]

    def look(state: Array) -> Array:
        query = p["attention.query.weight"] @ state
        energies = np.array(
            [p["attention.energy"] @ np.tanh(query + p["attention.key.weight"] @ h) for h in annotations]
        )
        weights = np.exp(log_softmax(energies))
        return sum(weight * h for weight, h in zip(weights, annotations, strict=True))

    return decode(p, target, look, backward[0], order=order, cell=cell)


def rnnencdec(
    p: Parameters,
    source: Sequence[int],
    target: Sequence[int],
    *,
    order: str,
    summary: str,
    reset: str,
    cell: str = "gru",
) -> list[float]:
    """log p of every target word; both sides end with their ``</s>``."""
    hidden = p["initial.weight"].shape[0]
    context = encoder_states(p, "encoder", source, backward=False, hidden=hidden, cell=cell)[-1]
    if summary == "tanh":
        context = np.tanh(p["summary.weight"] @ context)
    cell = "context-reset" if reset == "context" else cell
    return decode(p, target, lambda state: context, context, order=order, cell=cell)


def decode(
    p: Parameters,
    target: Sequence[int],
    look: Callable[[Array], Array],
    first: Array,
    *,
    order: str,
    cell: str,
) -> list[float]:
    """The decoder of both."""
    hidden = p["initial.weight"].shape[0]
    layer = Layer(p, "word_inputs", "unit", hidden, cell=cell)
    layer.state[:hidden] = np.tanh(p["initial.weight"] @ first + p["initial.bias"])
    embedded = np.zeros_like(p["target_embedding.weight"][0])
    log_probs = []
    for word in target:
        context = look(layer.given_out)
        told = gate_inputs(p, "context_inputs", context)
        if order == "conditional":
            layer.step(embedded, told)
        readout = maxout_readout(p, layer.given_out, embedded, context)
        log_probs.append(word_log_probs(p, readout)[word])
        embedded = p["target_embedding.weight"][word]
        if order == "look-generate-update":
            layer.step(embedded, told)
    return log_probs


def cslm(p: Parameters, target: Sequence[int], *, order: int, layers: int) -> list[float]:
    """log p of every target word of a continuous-space language model."""
    log_probs = []
    for place, word in enumerate(target):
        before = [target[k] if k >= 0 else None for k in range(place - order + 1, place)]
        vectors = [p["context_vectors.begin"] if k is None else p["target_embedding.weight"][k] for k in before]
        units = np.concatenate(vectors)
        for layer in range(layers):
            units = np.maximum(0.0, p[f"hidden.{layer}.weight"] @ units + p[f"hidden.{layer}.bias"])
        log_probs.append(word_log_probs(p, units)[word])
    return log_probs


def rnnlm(p: Parameters, target: Sequence[int], *, hidden: int, cell: str = "gru") -> list[float]:
    """log p of every target word of a recurrent language model."""
    layer = Layer(p, "word_inputs", "unit", hidden, cell=cell)
    embedded = np.zeros_like(p["target_embedding.weight"][0])
    log_probs = []
    for word in target:
        log_probs.append(word_log_probs(p, layer.step(embedded))[word])
        embedded = p["target_embedding.weight"][word]
    return log_probs
