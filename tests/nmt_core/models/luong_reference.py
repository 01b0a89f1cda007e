"""The deep LSTM models of Luong's thesis in plain NumPy and loops, one sentence at a time (2.22-2.27, 3.2, 4.1).

Nothing is shared with the package, or with the reference of the other models, but the names of the parameters.
Positions of the source are counted from 0, from the left, whatever the direction of reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Parameters = Mapping[str, Array]


def sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max())
    return e / e.sum()


@dataclass
class Layer:
    """[i; f; o; g] = T [input; h], c = f c + i g, h = o tanh(c)."""

    of_input: Array
    of_state: Array
    h: Array
    c: Array

    def step(self, x: Array) -> Array:
        i, f, o, g = np.split(self.of_input @ x + self.of_state @ self.h, 4)
        self.c = sigmoid(f) * self.c + sigmoid(i) * np.tanh(g)
        self.h = sigmoid(o) * np.tanh(self.c)
        return self.h


def layers_of(p: Parameters, prefix: str, first_input: Array) -> list[Layer]:
    n = p[f"{prefix}unit.gates"].shape[1]
    layers = [Layer(first_input, p[f"{prefix}unit.gates"], np.zeros(n), np.zeros(n))]
    while (name := f"{prefix}upper.cells.{len(layers) - 1}.gates") in p:
        of_input = p[f"{prefix}upper.inputs.{len(layers) - 1}.weight"]
        layers.append(Layer(of_input, p[name], np.zeros(n), np.zeros(n)))
    return layers


def run(layers: Sequence[Layer], x: Array) -> Array:
    for layer in layers:
        x = layer.step(x)
    return x


def scores(p: Parameters, kind: str, h: Array, annotations: Sequence[Array]) -> Array:
    if kind == "dot":
        return np.array([h @ s for s in annotations])
    if kind == "general":
        return np.array([h @ p["readout.score.key.weight"] @ s for s in annotations])
    both = np.concatenate([p["readout.score.query.weight"], p["readout.score.key.weight"]], axis=1)
    return np.array([p["readout.score.energy"] @ np.tanh(both @ np.concatenate([h, s])) for s in annotations])


def attention(
    p: Parameters, kind: str, window: str, radius: int, h: Array, annotations: Sequence[Array], t: int
) -> Array:
    """What the annotations are weighted with; it need not sum to 1."""
    length = len(annotations)
    if kind == "location":
        places = softmax(p["readout.score.energies.weight"] @ h)[:length]
        return np.concatenate([places, np.zeros(length - len(places))])
    energies = scores(p, kind, h, annotations)
    if window == "global":
        return softmax(energies)
    point = float(min(t, length - 1))
    if window == "local-p":
        predicted = p["readout.window.energy"] @ np.tanh(p["readout.window.position.weight"] @ h)
        point = length * sigmoid(predicted)
    centre = min(int(np.floor(point)), length - 1)
    inside = [s for s in range(length) if abs(s - centre) <= radius]
    weights = np.zeros(length)
    weights[inside] = softmax(energies[inside])
    if window == "local-p":
        deviation = radius / 2
        weights = weights * np.exp(-((np.arange(length) - point) ** 2) / (2 * deviation**2))
    return weights


def deep_lstm(
    p: Parameters,
    source: Sequence[int],
    target: Sequence[int],
    *,
    attention_kind: str | None,
    window: str = "global",
    radius: int = 10,
    reverse: bool = True,
    feeding: bool = False,
    vectors: Mapping[int, Array] | None = None,
    seen: list[tuple[Array, Array, Array]] | None = None,
) -> list[float]:
    """log p of every target word; the target ends with ``</s>``, the source has none.

    ``vectors`` are those of source words that have none in the table; ``seen`` gets c_t, h_t and h~_t of every word.
    """
    words = list(source) or [0]
    encoder = layers_of(p, "encoder.", p["encoder.inputs.weight"])
    annotations: list[Array] = [np.zeros(0)] * len(words)
    for place in reversed(range(len(words))) if reverse else range(len(words)):
        vector = (vectors or {}).get(place)
        annotations[place] = run(encoder, p["source_embedding.weight"][words[place]] if vector is None else vector)
    first_input = p["word_inputs.weight"]
    if feeding:
        first_input = np.concatenate([first_input, p["fed_inputs.weight"]], axis=1)
    decoder = layers_of(p, "", first_input)
    for layer, ended in zip(decoder, encoder, strict=True):
        layer.h, layer.c = ended.h, ended.c
    fed = np.zeros_like(decoder[-1].h)
    log_probs = []
    for t, word in enumerate(target):
        embedded = p["target_embedding.weight"][target[t - 1] if t else 0]
        h = run(decoder, np.concatenate([embedded, fed]) if feeding else embedded)
        if attention_kind is not None:
            weights = attention(p, attention_kind, window, radius, h, annotations, t)
            context = sum(weight * s for weight, s in zip(weights, annotations, strict=True))
            combine = np.concatenate([p["readout.context.weight"], p["readout.state.weight"]], axis=1)
            top, h = h, np.tanh(combine @ np.concatenate([context, h]))
            if seen is not None:
                seen.append((context, top, h))
            fed = h if feeding else fed
        log_probs.append(float(np.log(softmax(p["output.weight"] @ h + p["output.bias"]))[word]))
    return log_probs


def word_vector(p: Parameters, spelling: Sequence[int]) -> Array:
    """The last top state of an LSTM over the characters and the end (0) of a word."""
    layers = layers_of(p, "reader.characters.encoder.", p["reader.characters.encoder.inputs.weight"])
    return [run(layers, p["reader.characters.embedding.weight"][character]) for character in (*spelling, 0)][-1]


def next_characters(p: Parameters, start: Array, written: Sequence[int]) -> Array:
    """log p of the end (0) and of every character behind those written."""
    layers = layers_of(p, "speller.", p["speller.inputs.weight"])
    layers[0].h = start
    table = p["speller.embedding.weight"]
    for character in (len(table) - 1, *written):
        h = run(layers, table[character])
    return np.log(softmax(p["speller.output.weight"] @ h + p["speller.output.bias"]))


def log_prob_of_spelling(p: Parameters, start: Array, spelling: Sequence[int]) -> float:
    whole = (*spelling, 0)
    return sum(float(next_characters(p, start, whole[:place])[one]) for place, one in enumerate(whole))


def hybrid(
    p: Parameters,
    source: Sequence[int],
    target: Sequence[int],
    source_spellings: Mapping[int, Sequence[int]],
    target_spellings: Mapping[int, Sequence[int]],
    *,
    path: str,
    **settings: object,
) -> tuple[list[float], dict[int, float]]:
    """log p of every target word with ``<unk>`` for those spelled, and log p of the spellings, by place (5.1, 5.2)."""
    seen: list[tuple[Array, Array, Array]] = []
    vectors = {place: word_vector(p, spelling) for place, spelling in source_spellings.items()}
    words = deep_lstm(p, source, target, vectors=vectors, seen=seen, **settings)
    spelled = {}
    for place, spelling in target_spellings.items():
        context, top, attentional = seen[place]
        if path == "separate":
            separate = np.concatenate([p["spelling_context.weight"], p["spelling_state.weight"]], axis=1)
            start = np.tanh(separate @ np.concatenate([context, top]))
        else:
            start = attentional
        spelled[place] = log_prob_of_spelling(p, start, spelling)
    return words, spelled
