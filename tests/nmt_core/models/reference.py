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
    if f"{name}.norm.gain" in p:
        n = len(total) // 3
        return layer_norm(p, f"{name}.norm", total, [n])
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


def layer_norm(p: Parameters, name: str, x: Array, cuts: Sequence[int] = ()) -> Array:
    """Each part less its mean, by its standard deviation; gain and shift."""
    parts = [(part - part.mean()) / np.sqrt(part.var() + 1e-5) for part in np.split(x, cuts)]
    return np.concatenate(parts) * p[f"{name}.gain"] + p[f"{name}.shift"]


def layer_norm_gru(p: Parameters, unit: str, word: Array, state: Array, context: Array | None = None) -> Array:
    """The gated unit with all products normalised (Ba et al. 2016)."""
    n = len(state)
    inputs = word if context is None else word + context
    gates = sigmoid(inputs[n:] + layer_norm(p, f"{unit}.gates_norm", p[f"{unit}.gates"] @ state))
    update, reset = np.split(gates, 2)
    recurrent = layer_norm(p, f"{unit}.candidate_norm", p[f"{unit}.candidate"] @ (reset * state))
    return (1 - update) * state + update * np.tanh(inputs[:n] + recurrent)


CELLS = {
    "vanilla": vanilla,
    "gru": gated_unit,
    "lstm": lstm,
    "layer-norm-gru": layer_norm_gru,
    "context-reset": context_reset_unit,
}
PARTS = {"lstm": 2}


class Layers:
    """Recurrent layers step by step: the first is told a context, the others read what is given out below."""

    def __init__(
        self, p: Parameters, names: tuple[str, str, str], hidden: int, *, cell: str = "gru", residual: bool = False
    ) -> None:
        self.p, self.hidden, self.residual, self.cell = p, hidden, residual, cell
        self.inputs, self.unit, self.upper = names
        self.depth = 1
        while f"{self.upper}.inputs.{self.depth - 1}.weight" in p:
            self.depth += 1
        self.states = [np.zeros(hidden * PARTS.get(cell, 1)) for _ in range(self.depth)]

    def step(self, embedded: Array, context: Array | None = None) -> Array:
        first = gate_inputs(self.p, self.inputs, embedded)
        self.states[0] = CELLS[self.cell](self.p, self.unit, first, self.states[0], context)
        for number in range(1, self.depth):
            inputs = gate_inputs(self.p, f"{self.upper}.inputs.{number - 1}", self.given_out(number))
            name = f"{self.upper}.cells.{number - 1}"
            cell = "gru" if self.cell == "context-reset" else self.cell
            self.states[number] = CELLS[cell](self.p, name, inputs, self.states[number])
        return self.given_out(self.depth)

    def given_out(self, layers: int) -> Array:
        hiddens = [state[: self.hidden] for state in self.states[:layers]]
        return np.sum(hiddens, axis=0) if self.residual else hiddens[-1]


def encoder_states(
    p: Parameters, encoder: str, words: Sequence[int], *, backward: bool, hidden: int = 0, **options: object
) -> list[Array]:
    hidden = hidden or p[f"{encoder}.unit.candidate"].shape[0]
    layers = Layers(p, (f"{encoder}.inputs", f"{encoder}.unit", f"{encoder}.upper"), hidden, **options)
    ordered = reversed(words) if backward else words
    states = [layers.step(p["source_embedding.weight"][word]) for word in ordered]
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
    residual: bool = False,
) -> list[float]:
    """log p of every target word; both sides end with their ``</s>``."""
    hidden = p["initial.weight"].shape[0]
    options = {"hidden": hidden, "cell": cell, "residual": residual}
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

    return decode(p, target, look, backward[0], order=order, cell=cell, residual=residual)


def rnnencdec(
    p: Parameters,
    source: Sequence[int],
    target: Sequence[int],
    *,
    order: str,
    summary: str,
    reset: str,
    cell: str = "gru",
    residual: bool = False,
) -> list[float]:
    """log p of every target word; both sides end with their ``</s>``."""
    hidden = p["initial.weight"].shape[0]
    context = encoder_states(p, "encoder", source, backward=False, hidden=hidden, cell=cell, residual=residual)[-1]
    if summary == "tanh":
        context = np.tanh(p["summary.weight"] @ context)
    cell = "context-reset" if reset == "context" else cell
    return decode(p, target, lambda state: context, context, order=order, cell=cell, residual=residual)


def decode(
    p: Parameters,
    target: Sequence[int],
    look: Callable[[Array], Array],
    first: Array,
    *,
    order: str,
    cell: str,
    residual: bool,
) -> list[float]:
    """The decoder of both: the first layer looks and is told, the last is read out."""
    hidden = p["initial.weight"].shape[0]
    layers = Layers(p, ("word_inputs", "unit", "upper"), hidden, cell=cell, residual=residual)
    layers.states[0][:hidden] = np.tanh(p["initial.weight"] @ first + p["initial.bias"])
    embedded = np.zeros_like(p["target_embedding.weight"][0])
    log_probs = []
    for word in target:
        context = look(layers.states[0][:hidden])
        told = gate_inputs(p, "context_inputs", context)
        if order == "conditional":
            layers.step(embedded, told)
        readout = maxout_readout(p, layers.given_out(layers.depth), embedded, context)
        log_probs.append(word_log_probs(p, readout)[word])
        embedded = p["target_embedding.weight"][word]
        if order == "look-generate-update":
            layers.step(embedded, told)
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


def rnnlm(
    p: Parameters, target: Sequence[int], *, hidden: int, cell: str = "gru", residual: bool = False
) -> list[float]:
    """log p of every target word of a recurrent language model."""
    layers = Layers(p, ("word_inputs", "unit", "upper"), hidden, cell=cell, residual=residual)
    embedded = np.zeros_like(p["target_embedding.weight"][0])
    log_probs = []
    for word in target:
        log_probs.append(word_log_probs(p, layers.step(embedded))[word])
        embedded = p["target_embedding.weight"][word]
    return log_probs
