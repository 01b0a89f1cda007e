"""Models of GroundHog (``experiments/nmt``), the authors' code of Cho et al. 2014 and Bahdanau et al. 2015.

Their equations are ours with ``order: look-generate-update`` and an output matrix of two factors (``encdec.py``: the
decoder's scan, then the readout of the states shifted by one). Matrices are stored as inputs x outputs. Embeddings have
a bias, which is added to their rows: the word before the first is no word and stays zero. ``null_sym`` ends sentences,
``unk_sym`` is the unknown word; row 0, which no text has, stays in the normaliser.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nmt_core.base.errors import InputError
from nmt_core.foreign.arrays import Array, Arrays
from nmt_core.foreign.imported import Files, Imported, check_setting, read_settings
from nmt_core.foreign.vocabularies import Rows, ordered, read_words
from nmt_core.models.rnnencdec import RNNencdecConfig
from nmt_core.models.rnnsearch import RNNsearchConfig

_GATES = ("input", "update", "reset")  # the order in which we store them
_MARKS = (("<s>", 0), ("</s>", 0))  # in every vocabulary, and in no text
_TANH = "lambdax:TT.tanh(x)"
_SIGMOID = "lambdax:TT.nnet.sigmoid(x)"
_IDENTITY = "lambdax:x"
_PARTS = ("", "enc_", "back_enc_", "dec_")  # a setting without a part is that of parts that have none of their own
_KNOWN: dict[str, tuple[object, ...]] = {
    "rank_n_activ": (_IDENTITY,),
    "unary_activ": ("Maxout(2)",),
    "maxout_part": (2.0, 2),
    "encoder_stack": (1,),
    "decoder_stack": (1,),
    "dim_mult": (1.0, 1),
    "hid_mult": (1.0, 1),
    "dropout": (1.0, 1),
    "dropout_rec": (1.0, 1),
    **{f"{part}rec_layer": ("RecurrentLayer",) for part in ("", "enc_", "back_enc_")},
    **{f"{part}activ": (_TANH,) for part in _PARTS},
    **{f"{part}{name}": (True,) for part in _PARTS for name in ("rec_gating", "rec_reseting")},
    **{f"{part}{name}": (_SIGMOID,) for part in _PARTS for name in ("rec_gater", "rec_reseter")},
    **dict.fromkeys(("bigram", "bias_code", "decoding_inputs", "deep_out", "check_first_word"), (True,)),
    "last_backward": (False,),
}


def read_groundhog(files: Files) -> Imported:
    """Read a model; ``files.settings`` is its state file. Raises InputError, naming what is not as expected."""
    settings = {} if files.settings is None else read_settings(files.settings)
    arrays = Arrays(files.model)
    searches = "A_dec_transition_0" in arrays
    if files.settings is not None:
        _check(settings, files.settings, searches=searches)
    reader = _Reader(arrays)
    source = reader.rows("enc", files.source, settings, "source")
    target = reader.rows("dec", files.target, settings, "target")
    tensors = reader.tensors(source, target, searches=searches)
    arrays.finish()
    base = RNNsearchConfig(alignment=reader.hidden) if searches else RNNencdecConfig()
    sizes = {"embedding": reader.rank, "hidden": reader.hidden, "maxout": reader.hidden // 2}
    config = base.model_copy(update={**sizes, "output_rank": reader.output_rank})
    return Imported(config, source.vocabulary, target.vocabulary, tensors)


def _check(settings: Mapping[str, Any], path: str, *, searches: bool) -> None:
    for name, expected in _KNOWN.items():
        check_setting(settings, path, name, *expected)
    check_setting(settings, path, "search", searches)
    check_setting(settings, path, "dec_rec_layer", "RecurrentLayerWithSearch" if searches else "RecurrentLayer")
    check_setting(settings, path, "last_forward", not searches)
    for name in ("forward", "backward"):
        check_setting(settings, path, name, searches)


class _Reader:
    """The arrays of a model in the shapes that its sizes ask for."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.hidden = arrays.shape("W_enc_transition_0", 2)[0]
        self.rank = arrays.shape("W_0_enc_approx_embdr", 2)[1]
        self.output_rank = arrays.shape("W1_dec_deep_softmax", 2)[1]
        if self.hidden % 2:
            raise InputError(arrays.path, f"has {self.hidden} hidden units; maxout of pairs needs an even number")

    def rows(self, part: str, path: str, settings: Mapping[str, Any], side: str) -> Rows:
        """The words of a side, ``</s>`` and ``<unk>`` first."""
        size = self.arrays.shape(f"W_0_{part}_approx_embdr", 2)[0]
        end, unknown = settings.get(f"null_sym_{side}", size - 1), settings.get(f"unk_sym_{side}", 1)
        if type(end) is not int or type(unknown) is not int or end < 0 or unknown < 0:
            raise InputError(path, f"null_sym_{side} and unk_sym_{side} are {end!r} and {unknown!r}, expected numbers")
        words = {word: number for word, number in read_words(path).items() if (word, number) not in _MARKS}
        return ordered(words, size, end=end, unknown=unknown, path=path)

    def tensors(self, source: Rows, target: Rows, *, searches: bool) -> dict[str, Array]:
        """All parameters by our names."""
        hidden, maxout = self.hidden, self.hidden // 2
        context = 2 * hidden if searches else hidden
        output = self.matrix("W2_dec_deep_softmax", self.output_rank, len(target.rows))
        found = {
            "source_embedding.weight": self.embedding("enc", source),
            "target_embedding.weight": self.embedding("dec", target),
            **self.recurrence("encoder.inputs", "encoder.unit", "enc"),
            "initial.weight": self.matrix("W_0_dec_initializer_0", hidden, hidden),
            "initial.bias": self.vector("b_0_dec_initializer_0", hidden),
            **self.recurrence("word_inputs", "unit", "dec"),
            "context_inputs.weight": np.concatenate(
                [self.matrix(f"W_0_dec_dec_{name}_0", context, hidden) for name in ("inputter", "updater", "reseter")]
            ),
            "readout.state.weight": self.matrix("W_0_dec_hid_readout_0", hidden, hidden),
            "readout.state.bias": self.vector("b_0_dec_hid_readout_0", hidden),
            "readout.word.weight": self.matrix("W_0_dec_prev_readout_0", self.rank, hidden),
            "readout.context.weight": self.matrix("W_0_dec_repr_readout", context, hidden),
            "output.weight": output[target.rows],
            "output.bias": self.vector("b_dec_deep_softmax", len(target.rows))[target.rows],
            "output.low_rank.weight": self.matrix("W1_dec_deep_softmax", maxout, self.output_rank),
        }
        if searches:
            found |= self.recurrence("backward_encoder.inputs", "backward_encoder.unit", "back_enc")
            found |= {
                "attention.query.weight": self.matrix("B_dec_transition_0", hidden, hidden),
                "attention.key.weight": self.matrix("A_dec_transition_0", context, hidden),
                "attention.energy": self.arrays.take("D_dec_transition_0", hidden, 1)[:, 0],
            }
        return found

    def recurrence(self, inputs: str, unit: str, part: str) -> dict[str, Array]:
        """What reads words and states: candidate, update gate, reset gate, in this order."""
        words = [self.matrix(f"W_0_{part}_{name}_embdr_0", self.rank, self.hidden) for name in _GATES]
        update, reset = (self.matrix(f"{gate}_{part}_transition_0", self.hidden, self.hidden) for gate in "GR")
        return {
            f"{inputs}.weight": np.concatenate(words),
            f"{inputs}.bias": self.vector(f"b_0_{part}_input_embdr_0", self.hidden),
            f"{unit}.gates": np.concatenate([update, reset]),
            f"{unit}.candidate": self.matrix(f"W_{part}_transition_0", self.hidden, self.hidden),
        }

    def embedding(self, part: str, rows: Rows) -> Array:
        """Word vectors with their bias."""
        vectors = self.arrays.take(f"W_0_{part}_approx_embdr", len(rows.rows), self.rank)
        found: Array = (vectors + self.vector(f"b_0_{part}_approx_embdr", self.rank))[rows.rows]
        return found

    def matrix(self, name: str, inputs: int, outputs: int) -> Array:
        """A matrix as we store it, (outputs, inputs)."""
        return np.ascontiguousarray(self.arrays.take(name, inputs, outputs).T)

    def vector(self, name: str, size: int) -> Array:
        """A bias."""
        return self.arrays.take(name, size)
