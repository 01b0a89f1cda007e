"""Models of Nematus, of its ``theano`` branch, and of amun: ``model.npz`` with ``model.npz.json`` beside it.

Word 0 ends sentences, word 1 is the unknown word, whatever the vocabulary calls them. A model of ``model_version``
below 0.1 that was trained with dropout multiplies what every matrix reads by the share that was kept
(``dropout_constr``): that factor becomes part of the matrices here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from nmt_core.base.errors import InputError
from nmt_core.foreign.arrays import Arrays
from nmt_core.foreign.conditional import ConditionalReader, Keys, read_config
from nmt_core.foreign.imported import Files, Imported, check_setting, read_settings, share_setting
from nmt_core.foreign.vocabularies import Rows, ordered, read_words
from nmt_core.text.vocabulary import END_ID, UNKNOWN_ID

_KNOWN: dict[str, tuple[object, ...]] = {
    "encoder": ("gru",),
    "decoder": ("gru_cond",),
    "factors": (1,),
    "enc_depth": (1,),
    "dec_depth": (1,),
    "weight_normalisation": (False,),
    "deep_fusion_lm": (False,),
    "layer_normalisation": (False, True),
    "tie_decoder_embeddings": (False, True),
    "tie_encoder_decoder_embeddings": (False, True),
    "use_dropout": (False, True),
}
_KEYS = Keys("dim_word", "dim", "enc_recurrence_transition_depth", "dec_base_recurrence_transition_depth")
_NO_PART = ("history_errs", "uidx", "decoder_c_tt")  # c_tt is added to all energies alike and changes no weight


def read_nematus(files: Files) -> Imported:
    """Read a model. Raises InputError, naming what is not as expected."""
    path = files.settings or _beside(files.model)
    settings = read_settings(path)
    for name, expected in _KNOWN.items():
        check_setting(settings, path, name, *expected)
    kept = _kept(settings, path)
    arrays = Arrays(files.model)
    config = read_config(
        arrays,
        settings,
        path,
        _KEYS,
        normalisation="parts" if settings.get("layer_normalisation") else "none",
        tied=bool(settings.get("tie_decoder_embeddings")) and kept is None,
        shared=bool(settings.get("tie_encoder_decoder_embeddings")),
    )
    arrays.ignore(_NO_PART)
    target_name = "Wemb" if settings.get("tie_encoder_decoder_embeddings") else "Wemb_dec"
    source = _rows(arrays.shape("Wemb", 2)[0], files.source)
    target = _rows(arrays.shape(target_name, 2)[0], files.target)
    reader = ConditionalReader(arrays, config, scale=kept or (lambda name: 1.0))
    tensors = reader.tensors(source, target)
    arrays.finish()
    return Imported(config, source.vocabulary, target.vocabulary, tensors)


def _beside(model: str) -> str:
    path = f"{model}.json"
    if not os.path.exists(path):
        raise InputError(model, f"has no settings beside it ({path}); name them with --settings FILE")
    return path


def _rows(size: int, path: str) -> Rows:
    words = {word: number for word, number in read_words(path).items() if number not in (END_ID, UNKNOWN_ID)}
    if any(word.lower() in ("<go>", "<unk>") for word, number in words.items() if number == UNKNOWN_ID + 1):
        raise InputError(path, "has <GO>, as TensorFlow's Nematus has it; models of its theano branch can be read")
    return ordered(words, size, end=END_ID, unknown=UNKNOWN_ID, path=path)


def _kept(settings: Mapping[str, Any], path: str) -> Callable[[str], float] | None:
    """The share of what each matrix reads that dropout left, where the model has to be scaled by it."""
    version = settings.get("model_version", 0)
    if not isinstance(version, (int, float)) or not settings.get("use_dropout") or version >= 0.1:
        return None
    shares = {name: 1.0 - share_setting(settings, path, f"dropout_{name}") for name in _DROPPED}

    def kept(name: str) -> float:
        if name in ("Wemb", "Wemb_dec"):
            return shares["source" if name == "Wemb" else "target"]
        if name in _READ_WORDS:
            return shares["embedding"]
        return shares["hidden"]

    return kept


_DROPPED = ("source", "target", "embedding", "hidden")
_READ_WORDS = (
    *(f"{part}_{name}" for part in ("encoder", "encoder_r", "decoder") for name in ("W", "Wx")),
    "ff_logit_prev_W",
)
