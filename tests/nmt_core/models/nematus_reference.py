"""Nematus' translation model in plain NumPy, by the names of its arrays: shapes, and log p of a sentence.

Written from the ``theano`` branch (``layers.py``: ``gru_layer``, ``gru_cond_layer``, ``fflayer``, ``layer_norm``;
``nmt.py``: ``build_encoder``, ``build_model``, ``build_decoder``) and, for ``normalisation="marian"``, from Marian's
``rnn/cells.h`` (``GRU``), ``rnn/attention.h`` and ``layers/generic.h`` (``Dense``). Vectors are rows: x W.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Arrays = Mapping[str, Array]


class Kind(NamedTuple):
    """What a model is like; ``normalisation`` is none, nematus or marian."""

    normalisation: str = "none"
    encoder: int = 1
    decoder: int = 2
    tied: bool = False
    shared: bool = False


def shapes(words: tuple[int, int], *, dim: int, dim_word: int, kind: Kind) -> dict[str, tuple[int, ...]]:
    """The arrays of a model."""
    found: dict[str, tuple[int, ...]] = {"Wemb": (words[0], dim_word)}
    if not kind.shared:
        found["Wemb_dec"] = (words[1], dim_word)
    transitions: list[tuple[str, str]] = []
    for part in ("encoder", "encoder_r", "decoder"):
        found |= {f"{part}_W": (dim_word, 2 * dim), f"{part}_Wx": (dim_word, dim)}
        deeper = [f"_drt_{number}" for number in range(1, kind.encoder)] if part != "decoder" else []
        transitions += [(part, suffix) for suffix in ("", *deeper)]
    transitions += [("decoder", f"_nl{f'_drt_{number}' if number else ''}") for number in range(kind.decoder - 1)]
    for part, suffix in transitions:
        found |= {f"{part}_U{suffix}": (dim, 2 * dim), f"{part}_Ux{suffix}": (dim, dim)}
        found |= {f"{part}_b{suffix}": (2 * dim,), f"{part}_bx{suffix}": (dim,)}
    found |= {
        "decoder_Wc": (2 * dim, 2 * dim),
        "decoder_Wcx": (2 * dim, dim),
        "decoder_W_comb_att": (dim, 2 * dim),
        "decoder_Wc_att": (2 * dim, 2 * dim),
        "decoder_b_att": (2 * dim,),
        "decoder_U_att": (2 * dim, 1),
        "decoder_c_tt": (1,),
    }
    layers = {"ff_state": (2 * dim, dim), "ff_logit_lstm": (dim, dim_word), "ff_logit_prev": (dim_word, dim_word)}
    layers |= {"ff_logit_ctx": (2 * dim, dim_word)}
    for name, shape in layers.items():
        found |= {f"{name}_W": shape, f"{name}_b": (shape[1],)}
    if kind.normalisation == "nematus":
        for name, shape in list(found.items()):
            if len(shape) == 2 and "Wemb" not in name and not name.startswith("ff_") and name != "decoder_U_att":
                found |= {f"{name}_lns": (shape[1],), f"{name}_lnb": (shape[1],)}
        found |= {f"{name}_ln_{sign}": (shape[1],) for name, shape in layers.items() for sign in "sb"}
    if kind.normalisation == "marian":
        cells = [f"{part}{suffix}" for part, suffix in transitions]
        found |= {f"{_cell(cell)}_gamma2": (3 * dim,) for cell in cells}
        found |= {f"{_cell(cell)}_gamma1": (3 * dim,) for cell in ("encoder", "encoder_r", "decoder", "decoder_nl")}
        found |= {"decoder_att_gamma1": (2 * dim,), "decoder_att_gamma2": (2 * dim,), "ff_state_gamma": (dim,)}
        found |= {f"ff_logit_l1_gamma{number}": (dim_word,) for number in range(3)}
    if not kind.tied:
        found["ff_logit_W"] = (dim_word, words[1])
    return found | {"ff_logit_b": (words[1],)}


def _cell(name: str) -> str:
    """Marian's prefix of a cell, with gains under it: encoder_drt_1 is encoder_cell2, decoder_nl is decoder_cell2."""
    part = name.partition("_nl")[0]
    number = int(name.rpartition("_")[2]) if "_drt_" in name else 0
    if part.startswith("decoder"):
        return f"decoder_cell{(2 + number) if '_nl' in name else 1}"
    part = part.partition("_drt_")[0]
    return f"{part}_cell{number + 1}" if number else part


def log_probs(
    p: Arrays,
    source: Sequence[int],
    target: Sequence[int],
    kind: Kind,
    kept: Callable[[str], float] = lambda name: 1.0,
) -> list[float]:
    """Log p of every word of the target; both sides end with 0. ``kept`` is the share that old dropout leaves."""
    model = _Model(p, kind)
    words = p["Wemb"][list(source)] * kept("source")
    forward, backward = model.encode("encoder", words, kept), model.encode("encoder_r", words[::-1], kept)[::-1]
    annotations = np.concatenate([forward, backward], axis=1)
    state = np.tanh(model.layer("ff_state", annotations.mean(axis=0) * kept("hidden"), "ff_state_gamma"))
    table = p["Wemb" if kind.shared else "Wemb_dec"]
    output = table.T if kind.tied else p["ff_logit_W"]
    previous, found = np.zeros(table.shape[1]), []
    for word in target:
        state, context = model.step(previous, state, annotations, kept)
        hidden = model.layer("ff_logit_lstm", state * kept("hidden"), "ff_logit_l1_gamma1")
        hidden = hidden + model.layer("ff_logit_prev", previous * kept("embedding"), "ff_logit_l1_gamma0")
        hidden = hidden + model.layer("ff_logit_ctx", context * kept("hidden"), "ff_logit_l1_gamma2")
        logits = (np.tanh(hidden) * kept("hidden")) @ output + p["ff_logit_b"]
        found.append(float(logits[word] - logits.max() - np.log(np.exp(logits - logits.max()).sum())))
        previous = table[word] * kept("target")
    return found


class _Model:
    def __init__(self, p: Arrays, kind: Kind) -> None:
        self.p, self.kind = p, kind

    def encode(self, part: str, words: Array, kept: Callable[[str], float]) -> Array:
        state, states = np.zeros(self.p[f"{part}_Ux"].shape[0]), []
        for word in words:
            x = word * kept("embedding")
            state = self.first(part, x, state * 1.0, kept)
            for number in range(1, self.kind.encoder):
                state = self.further(part, f"_drt_{number}", state, kept, inside=False)
            states.append(state)
        return np.array(states)

    def first(self, part: str, x: Array, state: Array, kept: Callable[[str], float]) -> Array:
        """The transition that reads a word."""
        p, h = self.p, state * kept("hidden")
        if self.kind.normalisation == "marian":
            x_gates, x_new = self.whole(part, 1, x @ p[f"{part}_W"], x @ p[f"{part}_Wx"])
            h_gates, h_new = self.whole(part, 2, h @ p[f"{part}_U"], h @ p[f"{part}_Ux"])
            x_gates, x_new = x_gates + p[f"{part}_b"], x_new + p[f"{part}_bx"]
        else:
            x_gates = self.parts(f"{part}_W", x @ p[f"{part}_W"] + p[f"{part}_b"])
            x_new = self.parts(f"{part}_Wx", x @ p[f"{part}_Wx"] + p[f"{part}_bx"])
            h_gates, h_new = self.parts(f"{part}_U", h @ p[f"{part}_U"]), self.parts(f"{part}_Ux", h @ p[f"{part}_Ux"])
        reset, update = np.split(_sigmoid(h_gates + x_gates), 2)
        return update * state + (1 - update) * np.tanh(h_new * reset + x_new)

    def further(
        self,
        part: str,
        suffix: str,
        state: Array,
        kept: Callable[[str], float],
        *,
        inside: bool,
        context: Array | None = None,
    ) -> Array:
        """A transition without a word; ``inside``: the reset gate scales the bias too."""
        p, h = self.p, state * kept("hidden")
        names = f"{part}_U{suffix}", f"{part}_Ux{suffix}"
        bias, bias_new = p[f"{part}_b{suffix}"], p[f"{part}_bx{suffix}"]
        gates, new = h @ p[names[0]], h @ p[names[1]]
        if self.kind.normalisation == "marian":
            gates, new = self.whole(f"{part}{suffix}", 2, gates, new)
            gates, new = gates + bias, new + (bias_new if inside else 0)
        elif inside:
            gates, new = self.parts(names[0], gates + bias), self.parts(names[1], new + bias_new)
        else:
            gates, new = self.parts(names[0], gates) + bias, self.parts(names[1], new)
        added: Array = np.zeros_like(new) if inside else bias_new
        if context is not None:
            c = context * kept("hidden")
            c_gates, c_new = c @ p["decoder_Wc"], c @ p["decoder_Wcx"]
            if self.kind.normalisation == "marian":
                c_gates, c_new = self.whole("decoder_nl", 1, c_gates, c_new)
            else:
                c_gates, c_new = self.parts("decoder_Wc", c_gates), self.parts("decoder_Wcx", c_new)
            gates, added = gates + c_gates, added + c_new
        reset, update = np.split(_sigmoid(gates), 2)
        return update * state + (1 - update) * np.tanh(new * reset + added)

    def step(
        self, previous: Array, state: Array, annotations: Array, kept: Callable[[str], float]
    ) -> tuple[Array, Array]:
        """The next state, and the context that it has read."""
        p = self.p
        state = self.first("decoder", previous * kept("embedding"), state, kept)
        keys, query = (
            (annotations * kept("hidden")) @ p["decoder_Wc_att"],
            (state * kept("hidden")) @ p["decoder_W_comb_att"],
        )
        if self.kind.normalisation == "marian":
            keys = np.array([_normal(key, 1e-9) * p["decoder_att_gamma1"] for key in keys]) + p["decoder_b_att"]
            query = _normal(query, 1e-9) * p["decoder_att_gamma2"]
        else:
            keys = np.array([self.parts("decoder_Wc_att", key + p["decoder_b_att"]) for key in keys])
            query = self.parts("decoder_W_comb_att", query)
        energy = ((np.tanh(keys + query) * kept("hidden")) @ p["decoder_U_att"])[:, 0] + p["decoder_c_tt"][0]
        weights = np.exp(energy - energy.max())
        context = (weights / weights.sum()) @ annotations
        for number in range(self.kind.decoder - 1):
            suffix = f"_nl_drt_{number}" if number else "_nl"
            state = self.further("decoder", suffix, state, kept, inside=True, context=None if number else context)
        return state, context

    def layer(self, name: str, x: Array, gain: str) -> Array:
        """A feed-forward layer without its activation."""
        p, product = self.p, x @ self.p[f"{name}_W"]
        if self.kind.normalisation == "marian":
            return _normal(product, 1e-9) * p[gain] + p[f"{name}_b"]
        product = product + p[f"{name}_b"]
        if self.kind.normalisation == "nematus":
            return _normal(product, 1e-5) * p[f"{name}_ln_s"] + p[f"{name}_ln_b"]
        return product

    def parts(self, name: str, product: Array) -> Array:
        if self.kind.normalisation == "none":
            return product
        return _normal(product, 1e-5) * self.p[f"{name}_lns"] + self.p[f"{name}_lnb"]

    def whole(self, cell: str, number: int, gates: Array, new: Array) -> tuple[Array, Array]:
        both = _normal(np.concatenate([gates, new]), 1e-9) * self.p[f"{_cell(cell)}_gamma{number}"]
        return both[: len(gates)], both[len(gates) :]


def _normal(x: Array, epsilon: float) -> Array:
    return (x - x.mean()) / np.sqrt(x.var() + epsilon)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))
