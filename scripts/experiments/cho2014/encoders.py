"""Vectors of words and the models that make vectors of phrases.

Shapes: N phrases or words, D numbers of a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np

from nmt_core.base.errors import ConfigError, ServiceError
from nmt_core.inference.embed import Vectors, source_vectors, word_vectors
from scripts.experiments.cho2014.specs import described
from smt_bridge.models import REMOTE, Local, LocalTransformer, Remote, model_folders, open_model, surface_words

Side = Literal["source", "target"]
_SPECIAL = 2  # </s> and <unk> come first
_TEXTS = 1000  # vectors of one request


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
    model = open_model(spec)
    if isinstance(model, LocalTransformer):
        raise ConfigError(f"{spec}: CTranslate2 gives no vectors; give the folder of a model of nmt-core")
    return model


def encode(model: Encoder, texts: Sequence[str]) -> Vectors:
    """Vectors (N, D) of source phrases.

    Raises ConfigError for a model without an encoder, and for one on a server that does not read words; ServiceError.
    """
    if isinstance(model, Local):
        read = surface_words(model.models).read
        return source_vectors(model.models[0], [read(text) for text in texts])
    most = min(_TEXTS, described(model).limits.items or _TEXTS)
    rows = []
    for first in range(0, len(texts), most):
        part = texts[first : first + most]
        for text, vector in zip(part, model.client.encode(part), strict=True):
            if vector.HasField("error"):
                raise ServiceError(f"{vector.error.message} (phrase {text[:60]!r})")
            rows.append(np.array(vector.values, dtype=np.float32))
    return np.stack(rows)
