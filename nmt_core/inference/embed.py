"""What models learned as vectors: of words, and of whole sources (phrases, sentences).

The vector of a source is what the encoder is left with: c of an RNNencdec (Cho et al. 2014, section 4.4 draws a map of
them), where all directions ended of an RNNsearch, side by side, and the last layer's h of a deep LSTM.

Shapes: N sources, D numbers of a vector.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt_core.base.errors import ConfigError
from nmt_core.batches.padding import Padded, group_by_length
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.models.interface import Side
from nmt_core.text.sentence import Sentence

Vectors = npt.NDArray[np.float32]
_TOKENS = 8192  # source words of a batch, with padding


def source_vectors(loaded: LoadedModel, texts: Sequence[str]) -> Vectors:
    """The vectors of tokenised sources, (N, D). Raises ConfigError for a model without an encoder."""
    return sentence_vectors(loaded, [loaded.encode_text(text) for text in texts])


@torch.inference_mode()
def sentence_vectors(loaded: LoadedModel, sentences: Sequence[Sentence]) -> Vectors:
    """The same, of sources as the model reads them."""
    if not sentences:
        return sentence_vectors(loaded, [loaded.encode_text("")])[:0]
    groups = list(group_by_length([len(sentence) + 1 for sentence in sentences], limit=_TOKENS))
    batches = (loaded.model.collate([sentences[place] for place in group]) for group in groups)
    rows = np.concatenate([_read(loaded, batch).float().cpu().numpy() for batch in batches])
    found = np.empty_like(rows)
    found[list(itertools.chain.from_iterable(groups))] = rows
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
    found = loaded.model.source_vectors(source.to(loaded.model.device))
    if found is None:
        raise ConfigError(f"{loaded.folder}: a model of type {loaded.config.model.type} reads no source")
    return found
