"""From what a user writes on the command line to vectors of phrases and words.

The specs are those of ``smt_bridge.scorers``, of one model. What a branch needs (PyTorch, gRPC) is imported inside it.

Shapes: N phrases or words, D numbers of a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from nmt_core.base.errors import ConfigError, ServiceError
from nmt_core.inference.embed import Vectors
from smt_bridge.scorers import REMOTE, ScorerOptions, model_folders, server_address
from smt_bridge.translators import load_models, surface_words

Side = Literal["source", "target"]
_SPECIAL = 2  # </s> and <unk> come first
_TEXTS = 1000  # of one request


class WordVectors(NamedTuple):
    """Words, the most frequent first, and their vectors (N, D)."""

    words: list[str]
    vectors: Vectors


class PhraseEncoder(Protocol):
    """What makes vectors of source phrases; words of a side are known for models in a folder only."""

    @property
    def signature(self) -> str:
        """The model, in one line."""
        ...

    def phrases(self, texts: Sequence[str]) -> Vectors:
        """(N, D). Raises ConfigError for a model without an encoder."""
        ...

    def words(self, side: Side, most: int) -> WordVectors | None:
        """At most so many words; None where nobody tells them. Raises ConfigError for a side without vectors."""
        ...


class LocalEncoder:
    """A model in this process; words are a Moses system's, whatever the model reads."""

    def __init__(self, loaded: Any) -> None:
        self._loaded, self._words = loaded, surface_words([loaded])

    @property
    def signature(self) -> str:
        """Architecture, fingerprint and arithmetic."""
        from nmt_core.model_directory.identity import signature_of

        return signature_of([self._loaded])

    def phrases(self, texts: Sequence[str]) -> Vectors:
        """As the protocol has it."""
        from nmt_core.inference.embed import source_vectors

        return source_vectors(self._loaded, [self._words.read(text) for text in texts])

    def words(self, side: Side, most: int) -> WordVectors:
        """As the protocol has it."""
        from nmt_core.inference.embed import word_vectors

        found = list(islice(word_vectors(self._loaded, side), _SPECIAL, _SPECIAL + most))
        if not found:
            raise ConfigError(f"{self._loaded.folder}: knows no {side} words; there is nothing to draw")
        return WordVectors([word for word, _ in found], np.stack([vector for _, vector in found]))


class RemoteEncoder:
    """A model of a running server. Raises ConfigError for one that does not read words."""

    def __init__(self, client: Any) -> None:
        self._client = client
        described = next(one for one in client.models() if one.name == client.model)
        if described.surface_signature != described.signature:
            raise ConfigError(f"the model {client.model} reads pieces of words: give its folder instead")
        self.signature = str(described.signature)
        self._most = min(_TEXTS, described.limits.items or _TEXTS)

    def phrases(self, texts: Sequence[str]) -> Vectors:
        """As the protocol has it. Raises ServiceError."""
        rows = []
        for first in range(0, len(texts), self._most):
            part = texts[first : first + self._most]
            for text, vector in zip(part, self._client.encode(part), strict=True):
                if vector.HasField("error"):
                    raise ServiceError(f"{vector.error.message} (phrase {text[:60]!r})")
                rows.append(np.array(vector.values, dtype=np.float32))
        return np.stack(rows)

    def words(self, side: Side, most: int) -> None:
        """A server does not tell the vectors of words."""


def open_encoder(spec: str) -> PhraseEncoder:
    """The encoder that ``spec`` names; raises as ``open_scorer``, and ConfigError for an ensemble."""
    if spec.startswith(REMOTE):
        from nmt_core.serving.client.client import NmtClient, RemotePairScorer

        address, model = server_address(spec)
        scorer = RemotePairScorer(address, model=model or None)
        return RemoteEncoder(NmtClient(address, model=scorer.model, one_model=scorer.one_model))
    if len(model_folders(spec)) > 1:
        raise ConfigError(f"{spec}: members of an ensemble have vectors of their own; give one model")
    [loaded] = load_models(spec, ScorerOptions())
    return LocalEncoder(loaded)
