"""The tensors of our ``nematus`` model from the arrays of Nematus, amun and Marian.

Names here are those of Nematus; Marian's own are translated (``models/amun.h`` and ``models/nematus.h`` have the list).
Matrices are stored as inputs x outputs, gates as reset gate and update gate beside a matrix of the candidate; ours
have outputs x inputs, and candidate, update gate, reset gate below one another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from nmt_core.base.errors import InputError
from nmt_core.foreign.arrays import Array, Arrays
from nmt_core.foreign.imported import check_setting, size_setting
from nmt_core.foreign.vocabularies import Rows
from nmt_core.layers.transition_gru import Normalisation
from nmt_core.models.nematus import NematusConfig

Tensors = dict[str, Array]
_CELLS = {
    "encoder": "encoder_bi",
    "encoder_r": "encoder_bi_r",
    "decoder": "decoder_cell1",
    "decoder_nl": "decoder_cell2",
}
_RENAMED = {
    "Wemb": "encoder_Wemb",
    "Wemb_dec": "decoder_Wemb",
    "decoder_Wc": "decoder_cell2_W",
    "decoder_Wcx": "decoder_cell2_Wx",
    "ff_logit_W": "decoder_ff_logit_l2_W",
    "ff_logit_b": "decoder_ff_logit_l2_b",
}
_READOUTS = {"prev": "0", "lstm": "1", "ctx": "2"}
_CELL = re.compile(r"(encoder_r|encoder|decoder)_(U|Ux|W|Wx|b|bx)(_nl)?(?:_drt_([0-9]+))?(_lns|_lnb)?")
_READOUT = re.compile(r"ff_logit_(prev|lstm|ctx)_(W|b|ln_s|ln_b)")


def marian_name(name: str) -> str:
    """What Marian calls an array of Nematus.

    >>> marian_name("encoder_r_Ux_drt_1_lns"), marian_name("decoder_b_nl_drt_2"), marian_name("ff_logit_ctx_ln_s")
    ('encoder_bi_r_cell2_Ux_lns', 'decoder_cell4_b', 'decoder_ff_logit_l1_ln_s2')
    """
    if readout := _READOUT.fullmatch(name):
        return f"decoder_ff_logit_l1_{readout[2]}{_READOUTS[readout[1]]}"
    if cell := _CELL.fullmatch(name):
        part, array, second, depth, norm = cell[1], cell[2], cell[3] or "", cell[4], cell[5] or ""
        prefix = _CELLS[part + second]
        if depth is not None:
            prefix = f"decoder_cell{int(depth) + 2}" if second else f"{prefix}_cell{int(depth) + 1}"
        return f"{prefix}_{array}{norm}"
    if name.startswith("ff_logit_l1"):
        return f"decoder_{name}"
    if "ff_state" in name:
        return name.replace("ff_state", "decoder_ff_state")
    ours = name.removesuffix("_lns").removesuffix("_lnb")
    return _RENAMED.get(ours, ours) + name[len(ours) :]


class ConditionalReader:
    """Takes the arrays of a model in the shapes that its configuration asks for.

    ``rename`` gives the name of an array in the file, ``scale`` a factor of each matrix (1 but for old dropout);
    ``output_bias`` says whether the output layer has a bias.
    """

    def __init__(
        self,
        arrays: Arrays,
        config: NematusConfig,
        *,
        rename: Callable[[str], str] = str,
        scale: Callable[[str], float] = lambda name: 1.0,
        output_bias: bool = True,
    ) -> None:
        self.arrays, self.config, self.rename, self.scale = arrays, config, rename, scale
        self.output_bias = output_bias
        self.normalisation: Normalisation = config.normalisation

    def tensors(self, source: Rows, target: Rows) -> Tensors:
        """All parameters but those of the words: ``words`` has them."""
        hidden, embedding = self.config.hidden, self.config.embedding
        found = {
            **self._encoder("encoder", "encoder"),
            **self._encoder("backward_encoder", "encoder_r"),
            **self._dense("initial", "ff_state", 2 * hidden, hidden),
            **self._inputs("word_inputs", "decoder", embedding),
            **self._transition("first_unit.transitions.0", "decoder", ""),
            **self._context(),
            **self._attention(),
        }
        for number in range(self.config.decoder_transitions - 1):
            suffix = f"_nl_drt_{number}" if number else "_nl"
            found |= self._transition(f"second_unit.transitions.{number}", "decoder", suffix, bias="after")
        readout = {"prev": ("word", embedding), "lstm": ("state", hidden), "ctx": ("context", 2 * hidden)}
        terms = {ours: self._term(f"ff_logit_{name}", size, embedding) for name, (ours, size) in readout.items()}
        return found | self._readout(terms) | self.words(source, target)

    def words(self, source: Rows, target: Rows) -> Tensors:
        """Word vectors and the output layer."""
        config, embedding = self.config, self.config.embedding
        if config.shared_embeddings and not np.array_equal(source.rows, target.rows):
            raise InputError(self.arrays.path, "has one table of words for both sides; give both one vocabulary")
        found = {"source_embedding.weight": self._rows("Wemb", source)}
        if not config.shared_embeddings:
            name = "Wemb_dec" if self.rename("Wemb_dec") in self.arrays else "Wemb"
            found["target_embedding.weight"] = self._rows(name, target, scaled_as="Wemb_dec")
        if not (config.tied or config.shared_embeddings):
            found["output.weight"] = self._output(target, embedding)
        size = len(target.rows)
        bias = self._vector("ff_logit_b", size) if self.output_bias else np.zeros(size, "f4")
        return found | {"output.bias": bias[target.rows]}

    def _output(self, target: Rows, embedding: int) -> Array:
        """The output matrix: of its own, stored either way round, or the word vectors times a factor."""
        turned = self.rename("ff_logit_W") + "t"
        if turned in self.arrays:
            return self.arrays.take(turned, len(target.rows), embedding)[target.rows]
        if self.rename("ff_logit_W") in self.arrays:
            return self._matrix("ff_logit_W", embedding, len(target.rows))[target.rows]
        name = "Wemb_dec" if self.rename("Wemb_dec") in self.arrays else "Wemb"
        return self._rows(name, target, scaled_as="ff_logit_W")

    def _rows(self, name: str, rows: Rows, *, scaled_as: str = "") -> Array:
        table = self.arrays.take(self.rename(name), len(rows.rows), self.config.embedding)
        found: Array = (table * np.float32(self.scale(scaled_as or name)))[rows.rows]
        return found

    def _encoder(self, ours: str, part: str) -> Tensors:
        found = self._inputs(f"{ours}.inputs", part, self.config.embedding)
        for number in range(self.config.encoder_transitions):
            suffix, bias = (f"_drt_{number}", "free") if number else ("", "none")
            found |= self._transition(f"{ours}.unit.transitions.{number}", part, suffix, bias=bias)
        return found

    def _inputs(self, ours: str, part: str, size: int) -> Tensors:
        """What a first transition reads of words."""
        weight = self._gate_matrix(f"{part}_W", f"{part}_Wx", size)
        bias = self._gate_vector(f"{part}_b", f"{part}_bx")
        return {f"{ours}.weight": weight, **self._gate_finish(f"{ours}.after", f"{part}_W", f"{part}_Wx", 1, bias)}

    def _context(self) -> Tensors:
        """What the second unit reads of the context."""
        weight = self._gate_matrix("decoder_Wc", "decoder_Wcx", 2 * self.config.hidden)
        after = self._gate_finish("context_inputs.after", "decoder_Wc", "decoder_Wcx", 1, None)
        return {"context_inputs.weight": weight, **after}

    def _transition(self, ours: str, part: str, suffix: str, *, bias: str = "none") -> Tensors:
        gates, candidate = f"{part}_U{suffix}", f"{part}_Ux{suffix}"
        found = {f"{ours}.recurrent": self._gate_matrix(gates, candidate, self.config.hidden)}
        biases = None if bias == "none" else self._gate_vector(f"{part}_b{suffix}", f"{part}_bx{suffix}")
        if biases is not None and bias == "free":
            found[f"{ours}.free"], biases = biases, None
        return found | self._gate_finish(f"{ours}.after", gates, candidate, 2, biases)

    def _attention(self) -> Tensors:
        hidden, size = self.config.hidden, 2 * self.config.hidden
        names = "decoder_W_comb_att", "decoder_Wc_att"
        return {
            "attention.query.weight": self._matrix(names[0], hidden, size),
            "attention.key.weight": self._matrix(names[1], size, size),
            "attention.energy": self._matrix("decoder_U_att", size, 1)[0],
            **self._finish("attention.after_query", None, self._norm(names[0], "decoder_att_gamma2", size)),
            **self._finish(
                "attention.after_key",
                self._vector("decoder_b_att", size),
                self._norm(names[1], "decoder_att_gamma1", size),
            ),
        }

    def _dense(self, ours: str, name: str, inputs: int, outputs: int) -> Tensors:
        weight, after = self._term(name, inputs, outputs)
        return {f"{ours}.weight": weight, **{f"{ours}.after.{key}": value for key, value in after.items()}}

    def _term(self, name: str, inputs: int, outputs: int) -> tuple[Array, Tensors]:
        """The matrix of a feed-forward layer, and what follows its product."""
        whole = name.replace("ff_logit_", "ff_logit_l1_gamma").replace("ff_state", "ff_state_gamma")
        for part, number in _READOUTS.items():
            whole = whole.replace(f"gamma{part}", f"gamma{number}")
        norm = self._norm(f"{name}_", whole, outputs, sign="ln")
        after = self._finish("", self._vector(f"{name}_b", outputs), norm)
        return self._matrix(f"{name}_W", inputs, outputs), {key.removeprefix("."): after[key] for key in after}

    def _readout(self, terms: dict[str, tuple[Array, Tensors]]) -> Tensors:
        """The sum of three terms; without normalisation their biases are one."""
        if self.normalisation == "none":
            bias = sum((after.pop("bias") for _, after in terms.values()), start=np.zeros((), "f4"))
            terms["state"][1]["bias"] = bias
        found = {f"readout.{ours}.weight": weight for ours, (weight, _) in terms.items()}
        for ours, (_, after) in terms.items():
            place = "readout.after_context" if ours == "context" else f"readout.{ours}.after"
            found |= {f"{place}.{key}": value for key, value in after.items()}
        return found

    # ---- pieces

    def _matrix(self, name: str, inputs: int, outputs: int) -> Array:
        """As we store it, (outputs, inputs)."""
        values = self.arrays.take(self.rename(name), inputs, outputs).T * np.float32(self.scale(name))
        return np.ascontiguousarray(values)

    def _gate_matrix(self, gates: str, candidate: str, inputs: int) -> Array:
        hidden = self.config.hidden
        return _gates(self._matrix(gates, inputs, 2 * hidden), self._matrix(candidate, inputs, hidden))

    def _vector(self, name: str, size: int) -> Array:
        return self.arrays.take(self.rename(name), size)

    def _gate_vector(self, gates: str, candidate: str) -> Array:
        hidden = self.config.hidden
        return _gates(self._vector(gates, 2 * hidden), self._vector(candidate, hidden))

    def _gate_finish(self, ours: str, gates: str, candidate: str, which: int, bias: Array | None) -> Tensors:
        """What follows a product of gates; ``which`` is the number of Marian's gain."""
        hidden = self.config.hidden
        norm: tuple[Array, Array] | None = None
        if self.normalisation == "parts":
            gain, shift = (self._gate_vector(f"{gates}_{kind}", f"{candidate}_{kind}") for kind in ("lns", "lnb"))
            norm = gain, shift
        elif self.normalisation == "whole":
            gain = self._vector(_gain_of(gates, which, self.rename), 3 * hidden)
            norm = _gates(gain[: 2 * hidden], gain[2 * hidden :]), np.zeros(3 * hidden, "f4")
        return self._finish(ours, bias, norm)

    def _norm(self, parts: str, whole: str, size: int, *, sign: str = "_ln") -> tuple[Array, Array] | None:
        """Gain and shift of a normalisation, by both names."""
        if self.normalisation == "parts":
            names = (f"{parts}{sign}_s", f"{parts}{sign}_b") if sign == "ln" else (f"{parts}_lns", f"{parts}_lnb")
            return self._vector(names[0], size), self._vector(names[1], size)
        if self.normalisation == "whole":
            return self._vector(whole, size), np.zeros(size, "f4")
        return None

    def _finish(self, ours: str, bias: Array | None, norm: tuple[Array, Array] | None) -> Tensors:
        """The tensors of a ``Finish``: with Marian's normalisation the bias is its shift."""
        found: Tensors = {}
        if norm is not None:
            shift = bias if self.normalisation == "whole" and bias is not None else norm[1]
            found = {f"{ours}.norm.gain": norm[0], f"{ours}.norm.shift": shift}
        if bias is not None and self.normalisation != "whole":
            found[f"{ours}.bias"] = bias
        return found


def _gain_of(gates: str, which: int, rename: Callable[[str], str]) -> str:
    """The name of Marian's gain for a product of gates, such as ``decoder_cell1_gamma2`` for ``decoder_U``."""
    cell, _, _ = marian_name(gates).rpartition("_")
    if rename("encoder_U") == "encoder_U":  # type amun stores the gains of its encoder under Nematus' names
        cell = {"encoder_bi": "encoder", "encoder_bi_r": "encoder_r"}.get(cell, cell)
    return f"{cell}_gamma{which}"


def _gates(gates: Array, candidate: Array) -> Array:
    """Candidate, update gate, reset gate from (reset gate, update gate) and candidate."""
    reset, update = np.split(gates, 2)
    return np.concatenate([candidate, update, reset])


class Keys(NamedTuple):
    """What settings call the sizes, and the numbers of transitions."""

    embedding: str
    hidden: str
    encoder: str
    decoder: str


def read_config(
    arrays: Arrays,
    settings: Mapping[str, Any],
    path: str,
    keys: Keys,
    *,
    normalisation: Normalisation,
    tied: bool,
    shared: bool,
    own: bool = False,
) -> NematusConfig:
    """Sizes come from the arrays; settings that contradict them are rejected. ``own``: the arrays have Marian's names.

    ``tied``: word vectors are the output matrix; ``shared``: both sides have one table of words.
    """
    prefix = "encoder_bi" if own else "encoder"
    hidden, embedding = arrays.shape(f"{prefix}_Ux", 2)[0], arrays.shape(f"{prefix}_Wx", 2)[0]
    for key, size in ((keys.embedding, embedding), (keys.hidden, hidden)):
        check_setting(settings, path, key, size)
    encoder = _transitions(arrays, "encoder_bi_cell{}_U" if own else "encoder_U_drt_{}", first=2 if own else 1)
    decoder = _transitions(arrays, "decoder_cell{}_U" if own else "decoder_U_nl_drt_{}", first=3 if own else 1) + 1
    for key, default, found in ((keys.encoder, 1, encoder), (keys.decoder, 2, decoder)):
        given = size_setting(settings, path, key, default)
        if given != found:
            raise InputError(path, f"{key} is {given}, but the arrays are of {found}")
    mapping = {
        "embedding": embedding,
        "hidden": hidden,
        "encoder_transitions": encoder,
        "decoder_transitions": decoder,
        "normalisation": normalisation,
        "tied": tied and not shared,
        "shared_embeddings": tied and shared,
    }
    return NematusConfig.from_mapping(mapping, origin=arrays.path)


def _transitions(arrays: Arrays, name: str, *, first: int) -> int:
    """How many transitions there are: one, and those whose arrays are called ``name`` with numbers from ``first``."""
    number = first
    while name.format(number) in arrays:
        number += 1
    return number - first + 1
