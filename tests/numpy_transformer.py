"""A small Transformer: written by CTranslate2's own specification, and computed in NumPy without it.

Post-norm, ReLU, sinusoidal positions, one embedding matrix for all (Vaswani et al. 2017), the decoder begun by a vector
of zeros, as Marian has it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

WIDTH, HEADS, INNER, LAYERS, POSITIONS = 16, 2, 24, 2, 64
END, UNKNOWN = "</s>", "<unk>"


class NumpyTransformer:
    """The model of this seed and vocabulary: ``write`` makes its directory, ``log_probs`` the numbers."""

    def __init__(self, pieces: list[str], seed: int = 1) -> None:
        self.vocabulary = [END, UNKNOWN, *pieces]
        draw = np.random.default_rng(seed)

        def matrix(rows: int, columns: int) -> np.ndarray:
            return draw.normal(0, 0.4, (rows, columns)).astype(np.float32)

        def linear(outputs: int, inputs: int) -> tuple[np.ndarray, np.ndarray]:
            return matrix(outputs, inputs), matrix(1, outputs)[0]

        def norm() -> tuple[np.ndarray, np.ndarray]:
            return 1 + matrix(1, WIDTH)[0], matrix(1, WIDTH)[0]

        def attention() -> dict[str, Any]:
            return {**{name: linear(WIDTH, WIDTH) for name in "qkvo"}, "norm": norm()}

        def layer(kinds: tuple[str, ...]) -> dict[str, Any]:
            inner = {"in": linear(INNER, WIDTH), "out": linear(WIDTH, INNER), "norm": norm()}
            return {**{kind: attention() for kind in kinds}, "inner": inner}

        self.embedding = matrix(len(self.vocabulary), WIDTH)
        self.bias = matrix(1, len(self.vocabulary))[0]
        self.encoder = [layer(("self",)) for _ in range(LAYERS)]
        self.decoder = [layer(("self", "cross")) for _ in range(LAYERS)]
        rates = 10000 ** (-2 * (np.arange(WIDTH) // 2) / WIDTH)
        angles = np.arange(POSITIONS)[:, None] * rates
        self.positions = np.concatenate([np.sin(angles[:, ::2]), np.cos(angles[:, 1::2])], axis=1).astype(np.float32)

    def log_probs(self, source: list[str], target: list[str]) -> list[float]:
        """Log p of each target piece and the end; the source's end is added here."""
        read, written = self._ids([*source, END]), self._ids([*target, END])
        memory = self.embedding[read] * WIDTH**0.5 + self.positions[: len(read)]
        for layer in self.encoder:
            memory = self._inner(layer, self._attend(layer["self"], memory, memory))
        before = np.zeros((len(written), WIDTH), np.float32)
        before[1:] = self.embedding[written[:-1]] * WIDTH**0.5
        state = before + self.positions[: len(written)]
        for layer in self.decoder:
            state = self._attend(layer["self"], state, state, is_causal=True)
            state = self._inner(layer, self._attend(layer["cross"], state, memory))
        logits = state @ self.embedding.T + self.bias
        exact = logits - np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1, keepdims=True))
        return [float(row[piece] - row_max) for row, piece, row_max in zip(exact, written, logits.max(1), strict=True)]

    def write(self, folder: Path, **config: Any) -> Path:
        """The directory of CTranslate2, by its specification."""
        specs = pytest.importorskip("ctranslate2").specs
        spec = specs.TransformerSpec.from_config(LAYERS, HEADS, pre_norm=False)
        for side, layers in ((spec.encoder, self.encoder), (spec.decoder, self.decoder)):
            for embeddings in side.embeddings if isinstance(side.embeddings, list) else [side.embeddings]:
                embeddings.weight = self.embedding
            side.position_encodings.encodings = self.positions
            for wanted, layer in zip(side.layer, layers, strict=True):
                self._fill(wanted, layer)
        spec.decoder.start_from_zero_embedding = True
        spec.decoder.projection.weight, spec.decoder.projection.bias = self.embedding, self.bias
        spec.register_source_vocabulary(self.vocabulary)
        spec.register_target_vocabulary(self.vocabulary)
        spec.config.add_source_eos = True
        for key, value in config.items():
            setattr(spec.config, key, value)
        spec.validate()
        spec.optimize()
        folder.mkdir(parents=True)
        spec.save(str(folder))
        return folder

    def _fill(self, spec: Any, layer: dict[str, Any]) -> None:
        own, inner = layer["self"], layer["inner"]
        _set(spec.self_attention.linear[0], *_stacked(own, "qkv"))
        _set(spec.self_attention.linear[1], *own["o"])
        spec.self_attention.layer_norm.gamma, spec.self_attention.layer_norm.beta = own["norm"]
        if "cross" in layer:
            cross = layer["cross"]
            _set(spec.attention.linear[0], *cross["q"])
            _set(spec.attention.linear[1], *_stacked(cross, "kv"))
            _set(spec.attention.linear[2], *cross["o"])
            spec.attention.layer_norm.gamma, spec.attention.layer_norm.beta = cross["norm"]
        _set(spec.ffn.linear_0, *inner["in"])
        _set(spec.ffn.linear_1, *inner["out"])
        spec.ffn.layer_norm.gamma, spec.ffn.layer_norm.beta = inner["norm"]

    def _ids(self, pieces: list[str]) -> list[int]:
        return [self.vocabulary.index(piece) if piece in self.vocabulary else 1 for piece in pieces]

    def _attend(self, one: dict[str, Any], asking: Any, memory: Any, *, is_causal: bool = False) -> Any:
        queries, keys, values = (
            (value @ one[name][0].T + one[name][1]).reshape(len(value), HEADS, -1).transpose(1, 0, 2)
            for name, value in zip("qkv", (asking, memory, memory), strict=True)
        )
        scores = queries @ keys.transpose(0, 2, 1) / (WIDTH // HEADS) ** 0.5
        if is_causal:
            scores = np.where(np.tri(len(asking), dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        found = (weights @ values).transpose(1, 0, 2).reshape(len(asking), WIDTH)
        return _normalized(asking + found @ one["o"][0].T + one["o"][1], one["norm"])

    def _inner(self, layer: dict[str, Any], state: Any) -> Any:
        inner = layer["inner"]
        hidden = np.maximum(state @ inner["in"][0].T + inner["in"][1], 0)
        return _normalized(state + hidden @ inner["out"][0].T + inner["out"][1], inner["norm"])


def _set(spec: Any, weight: Any, bias: Any) -> None:
    spec.weight, spec.bias = weight, bias


def _stacked(one: dict[str, Any], names: str) -> tuple[Any, Any]:
    return np.concatenate([one[name][0] for name in names]), np.concatenate([one[name][1] for name in names])


def _normalized(state: Any, norm: tuple[Any, Any]) -> Any:
    centred = state - state.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * norm[0] + norm[1]
