"""Recurrent models of Marian: types ``s2s``, ``amun`` and ``nematus``, whose settings are in ``special:model.yml``.

Types ``amun`` and ``nematus`` store arrays under Nematus' names, ``s2s`` under Marian's own. Layer normalisation is
Nematus' where the cells are ``gru-nematus`` (or ``original-type`` says so), else Marian's own. Biases are stored as
one row.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from nmt_core.base.errors import InputError
from nmt_core.config import YamlProblem, parse_yaml
from nmt_core.foreign.arrays import Arrays
from nmt_core.foreign.conditional import ConditionalReader, Keys, marian_name, read_config
from nmt_core.foreign.imported import Files, Imported, check_setting, read_settings
from nmt_core.foreign.vocabularies import Rows, ordered, read_words
from nmt_core.layers.transition_gru import Normalisation
from nmt_core.text.vocabulary import END_ID, UNKNOWN_ID

_SETTINGS = "special:model.yml"
_CELLS = ("gru", "gru-nematus")
_KNOWN: dict[str, tuple[object, ...]] = {
    "type": ("s2s", "amun", "nematus"),
    "enc-cell": _CELLS,
    "dec-cell": _CELLS,
    "enc-depth": (1,),
    "dec-depth": (1,),
    "skip": (False,),
    "right-left": (False,),
    "lemma-dim-emb": (0,),
    "layer-normalization": (False, True),
    "output-omit-bias": (False, True),
    **dict.fromkeys(("tied-embeddings", "tied-embeddings-src", "tied-embeddings-all"), (False, True)),
}
_KEYS = Keys("dim-emb", "dim-rnn", "enc-cell-depth", "dec-cell-base-depth")
_NO_PART = (_SETTINGS, "decoder_c_tt", "history_errs", "uidx")
_ENDS, _UNKNOWNS = ("</s>", "eos"), ("<unk>", "UNK")


def read_marian(files: Files) -> Imported:
    """Read a model; settings are those in it, or in ``files.settings``. Raises InputError."""
    arrays = Arrays(files.model)
    path = files.settings or files.model
    settings = _read(path) if files.settings else _settings(arrays)
    for name, expected in _KNOWN.items():
        check_setting(settings, path, name, *expected)
    own = "decoder_cell1_U" in arrays
    shared = bool(settings.get("tied-embeddings-src") or settings.get("tied-embeddings-all"))
    tied = bool(settings.get("tied-embeddings") or settings.get("tied-embeddings-all"))
    normalisation = _normalisation(settings, path)
    config = read_config(arrays, settings, path, _KEYS, normalisation=normalisation, tied=tied, shared=shared, own=own)
    arrays.ignore(_NO_PART)
    rename = functools.partial(_name, own=own, shared=shared)
    reader = ConditionalReader(arrays, config, rename=rename, output_bias=not settings.get("output-omit-bias"))
    tables = [reader.rename(name) for name in ("Wemb", "Wemb" if shared else "Wemb_dec")]
    source, target = (
        _rows(arrays.shape(table, 2)[0], words)
        for table, words in zip(tables, (files.source, files.target), strict=True)
    )
    tensors = reader.tensors(source, target)
    arrays.finish()
    return Imported(config, source.vocabulary, target.vocabulary, tensors)


def _name(name: str, *, own: bool, shared: bool) -> str:
    """What the file calls an array of Nematus; a table of both sides has its name everywhere."""
    return name if not own or (shared and name == "Wemb") else marian_name(name)


def _read(path: str) -> dict[str, Any]:
    """Settings in a file of their own, which has to be that of the model."""
    settings = read_settings(path)
    if "type" not in settings:
        raise InputError(path, "has no type; expected the settings of the model (model.npz.yml), not of the decoder")
    return settings


def _settings(arrays: Arrays) -> dict[str, Any]:
    if _SETTINGS not in arrays:
        problem = f"has no {_SETTINGS}: is it a model of Nematus ('nmt-core import nematus')? Or give --settings FILE"
        raise InputError(arrays.path, problem)
    try:
        found = parse_yaml(arrays.text(_SETTINGS))
    except YamlProblem as error:
        raise InputError(arrays.path, f"{_SETTINGS} in it is not YAML ({str(error)[:80]})") from error
    if not isinstance(found, dict):
        raise InputError(arrays.path, f"{_SETTINGS} in it has no settings")
    return {str(name): value for name, value in found.items()}


def _normalisation(settings: Mapping[str, Any], path: str) -> Normalisation:
    if not settings.get("layer-normalization"):
        return "none"
    cells = [settings.get(name, "gru") == "gru-nematus" for name in ("enc-cell", "dec-cell")]
    if cells[0] != cells[1] or cells[0] != ("nematus" in (settings.get("original-type"), settings.get("type"))):
        problem = "mixes the layer normalisation of Marian and of Nematus (enc-cell, dec-cell, original-type)"
        raise InputError(path, f"{problem}; models with one of them can be read")
    return "parts" if cells[0] else "whole"


def _rows(size: int, path: str) -> Rows:
    words = read_words(path)
    end, unknown = (
        next((words[word] for word in names if word in words), number)
        for names, number in ((_ENDS, END_ID), (_UNKNOWNS, UNKNOWN_ID))
    )
    kept = {word: number for word, number in words.items() if number not in (end, unknown)}
    return ordered(kept, size, end=end, unknown=unknown, path=path)
