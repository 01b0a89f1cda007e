"""Word vectors trained elsewhere, in word2vec's text format: a word and its numbers on each line."""

from __future__ import annotations

import torch
from torch import nn

from nmt_core.base.errors import InputError
from nmt_core.base.messages import counted
from nmt_core.files import read_text_lines
from nmt_core.text.vocabulary import Vocabulary


@torch.no_grad()
def load_embeddings(path: str, vocabulary: Vocabulary, embedding: nn.Module) -> int:
    """Put the vectors of known words into ``embedding``; how many words were found.

    A first line ``COUNT SIZE`` is skipped. Raises InputError for a vector of another size.
    """
    assert isinstance(embedding, nn.Embedding)
    ids = {word: number for number, word in enumerate(vocabulary.words)}
    found = 0
    for number, line in enumerate(read_text_lines(path, errors="surrogateescape"), start=1):
        word, *values = line.rstrip(" ").split(" ")
        if number == 1 and len(values) == 1:
            continue
        if len(values) != embedding.embedding_dim:
            expected = f"expected a word and {counted(embedding.embedding_dim, 'number')} (model.embedding)"
            problem = f"{expected}, found {len(values)}"
            raise InputError(path, problem, line=number)
        if word in ids:
            try:
                vector = torch.tensor([float(value) for value in values])
            except ValueError as error:
                raise InputError(path, f"expected numbers behind the word ({str(error)[:100]})", line=number) from error
            if not bool(torch.isfinite(vector).all()):
                raise InputError(path, "not a finite number, as float32 has them", line=number)
            embedding.weight[ids[word]] = vector
            found += 1
    return found
