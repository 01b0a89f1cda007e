"""What models learned as vectors: of words, and of whole sources (phrases, sentences).

The vector of a source is what the encoder is left with: c of an RNNencdec (Cho et al. 2014, section 4.4 draws a map of
them), where all directions ended of an RNNsearch, side by side, and the last layer's h of a deep LSTM.

Shapes: N sources, D numbers of a vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from nmt_core.data.batching import Padded, group_by_tokens
from nmt_core.errors import ConfigError
from nmt_core.inference.neighbours import Vectors
from nmt_core.layers.reader import Encoded, RecurrentReader
from nmt_core.models.checkpoint import LoadedModel
from nmt_core.models.deep_lstm import DeepLSTM
from nmt_core.models.encoder_decoder import EncoderDecoder
from nmt_core.models.fixed_context import Summary
from nmt_core.models.interface import Side, TranslationModel

_TOKENS = 8192  # source words of a batch, with padding


@torch.inference_mode()
def source_vectors(loaded: LoadedModel, texts: Sequence[str]) -> Vectors:
    """The vectors of tokenised sources, (N, D). Raises ConfigError for a model without an encoder."""
    sentences = [loaded.encode_text(text) for text in texts]
    collate = loaded.model.collate
    order = sorted(range(len(sentences)), key=lambda place: len(sentences[place]))
    found = np.zeros((len(sentences), _read(loaded, collate([loaded.encode_text("")])).shape[1]), dtype=np.float32)
    for group in group_by_tokens([len(sentences[place]) + 1 for place in order], limit=_TOKENS):
        places = [order[index] for index in group]
        found[places] = _read(loaded, collate([sentences[place] for place in places])).float().cpu().numpy()
    return found


def word_vectors(loaded: LoadedModel, side: Side) -> Iterator[tuple[str, Vectors]]:
    """Each word of a vocabulary and its vector. Raises ConfigError where the model has none of this side."""
    tables = dict(loaded.model.embeddings())
    if side not in tables:
        raise ConfigError(f"{loaded.folder}: a model of type {loaded.config.model.type} has no vectors of {side} words")
    words = (loaded.source if side == "source" else loaded.target).words
    rows: Vectors = tables[side].weight.detach().float().cpu().numpy()
    return zip(words, rows, strict=True)


def _read(loaded: LoadedModel, source: Padded) -> Tensor:
    found = _encoded(loaded.model, source.to(loaded.model.device))
    if found is None:
        raise ConfigError(f"{loaded.folder}: a model of type {loaded.config.model.type} reads no source")
    return found


def _encoded(model: TranslationModel, source: Padded) -> Tensor | None:
    """(B, D); None of a model without an encoder."""
    if isinstance(model, DeepLSTM):
        encoded: Encoded = model.reader(source)
        return encoded.ends(0)
    if not isinstance(model, EncoderDecoder) or not isinstance(model.source_encoder, RecurrentReader):
        return None
    memory = model.encode(source)
    if isinstance(memory, Summary):
        return memory.summary_BH
    encoded = model.source_encoder(source)
    return torch.cat([encoded.ends(place) for place in range(len(model.source_encoder.directions))], dim=1)
