"""GroundHog's translation models in plain NumPy, by the names of their arrays: shapes, and log p of a sentence.

Written from the graph that ``experiments/nmt/encdec.py`` builds (``RecurrentLayerWithSearch.step_fprop``,
``Decoder.build_decoder``, ``RNNEncoderDecoder.build``): sentences end with ``null_sym``; the context of word i is made
from the state before it; the word i-1 enters the readout, and word i the update behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Arrays = Mapping[str, Array]


def shapes(source: int, target: int, *, dim: int, rank: int, search: bool) -> dict[str, tuple[int, ...]]:
    """The arrays of a model for so many symbols; ``rank`` is the size of word vectors and of the output's factor."""
    found: dict[str, tuple[int, ...]] = {}
    for part, words in (("enc", source), ("dec", target)):
        found |= {f"W_0_{part}_approx_embdr": (words, rank), f"b_0_{part}_approx_embdr": (rank,)}
    for part in ("enc", "back_enc", "dec") if search else ("enc", "dec"):
        found |= {f"W_0_{part}_{gate}_embdr_0": (rank, dim) for gate in ("input", "update", "reset")}
        found |= {f"b_0_{part}_input_embdr_0": (dim,)}
        found |= {f"{gate}_{part}_transition_0": (dim, dim) for gate in "WGR"}
    context = 2 * dim if search else dim
    found |= {f"W_0_dec_dec_{gate}_0": (context, dim) for gate in ("inputter", "updater", "reseter")}
    if search:
        found |= {
            "A_dec_transition_0": (context, dim),
            "B_dec_transition_0": (dim, dim),
            "D_dec_transition_0": (dim, 1),
        }
    return found | {
        "W_0_dec_initializer_0": (dim, dim),
        "b_0_dec_initializer_0": (dim,),
        "W_0_dec_hid_readout_0": (dim, dim),
        "b_0_dec_hid_readout_0": (dim,),
        "W_0_dec_prev_readout_0": (rank, dim),
        "W_0_dec_repr_readout": (context, dim),
        "W1_dec_deep_softmax": (dim // 2, rank),
        "W2_dec_deep_softmax": (rank, target),
        "b_dec_deep_softmax": (target,),
    }


def log_probs(p: Arrays, source: Sequence[int], target: Sequence[int], *, search: bool) -> list[float]:
    """Log p of every symbol of the target; both sides end with their ``null_sym``."""
    words = [p["W_0_enc_approx_embdr"][word] + p["b_0_enc_approx_embdr"] for word in source]
    forward = _encode(p, "enc", words)
    if search:
        backward = _encode(p, "back_enc", words[::-1])[::-1]
        annotations = np.concatenate([forward, backward], axis=1)
        state = backward[0]
    else:
        annotations, state = forward[-1:], forward[-1]
    state = np.tanh(state @ p["W_0_dec_initializer_0"] + p["b_0_dec_initializer_0"])
    previous: Array | None = None
    found = []
    for word in target:
        context = annotations[0]
        if search:
            hidden = np.tanh(state @ p["B_dec_transition_0"] + annotations @ p["A_dec_transition_0"])
            energy = np.exp(hidden @ p["D_dec_transition_0"])[:, 0]
            context = (energy / energy.sum()) @ annotations
        readout = context @ p["W_0_dec_repr_readout"] + state @ p["W_0_dec_hid_readout_0"] + p["b_0_dec_hid_readout_0"]
        if previous is not None:
            readout = readout + previous @ p["W_0_dec_prev_readout_0"]
        units = readout.reshape(-1, 2).max(axis=1)
        logits = units @ p["W1_dec_deep_softmax"] @ p["W2_dec_deep_softmax"] + p["b_dec_deep_softmax"]
        found.append(float(logits[word] - logits.max() - np.log(np.exp(logits - logits.max()).sum())))
        previous = p["W_0_dec_approx_embdr"][word] + p["b_0_dec_approx_embdr"]
        state = _step(p, "dec", previous, state, context)
    return found


def _encode(p: Arrays, part: str, words: Sequence[Array]) -> Array:
    state, states = np.zeros(len(p[f"W_{part}_transition_0"])), []
    for word in words:
        state = _step(p, part, word, state, None)
        states.append(state)
    return np.array(states)


def _step(p: Arrays, part: str, word: Array, state: Array, context: Array | None) -> Array:
    inputs, update, reset = (word @ p[f"W_0_{part}_{gate}_embdr_0"] for gate in ("input", "update", "reset"))
    inputs = inputs + p[f"b_0_{part}_input_embdr_0"]
    if context is not None:
        inputs = inputs + context @ p["W_0_dec_dec_inputter_0"]
        update = update + context @ p["W_0_dec_dec_updater_0"]
        reset = reset + context @ p["W_0_dec_dec_reseter_0"]
    reset = _sigmoid(reset + state @ p[f"R_{part}_transition_0"])
    update = _sigmoid(update + state @ p[f"G_{part}_transition_0"])
    new = np.tanh((reset * state) @ p[f"W_{part}_transition_0"] + inputs)
    return update * new + (1 - update) * state


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))
