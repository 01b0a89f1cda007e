"""Vectors of words and the models that make vectors of phrases.

Shapes: N phrases or words, D numbers of a vector.
"""

from __future__ import annotations

from itertools import islice
from typing import Literal, NamedTuple

import numpy as np

from nmt_core.base.errors import ConfigError
from nmt_core.inference.embed import Vectors, word_vectors
from smt_bridge.models import REMOTE, Local, Remote, model_folders, open_model

Side = Literal["source", "target"]
_SPECIAL = 2  # </s> and <unk> come first


Encoder = Local | Remote


class WordVectors(NamedTuple):
    """Words, the most frequent first, and their vectors (N, D)."""

    words: list[str]
    vectors: Vectors


def words_of(model: Encoder, side: Side, most: int) -> WordVectors | None:
    """At most so many words; None where nobody tells them: a server does not. ConfigError for a side without any."""
    if not isinstance(model, Local):
        return None
    found = list(islice(word_vectors(model.models[0], side), _SPECIAL, _SPECIAL + most))
    if not found:
        raise ConfigError(f"{model.models[0].folder}: knows no {side} words; there is nothing to draw")
    return WordVectors([word for word, _ in found], np.stack([vector for _, vector in found]))


def open_encoder(spec: str) -> Encoder:
    """The model that ``spec`` names; raises as ``open_model``, and ConfigError for an ensemble."""
    if not spec.startswith(REMOTE) and len(model_folders(spec)) > 1:
        raise ConfigError(f"{spec}: members of an ensemble have vectors of their own; give one model")
    return open_model(spec)
