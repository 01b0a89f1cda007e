"""The vocabularies of a training run: files, or the words and characters of its text; and given vectors of words."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import nn

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.messages import counted
from nmt_core.base.words import split_factors
from nmt_core.files import read_text_lines
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.models.build import source_factors
from nmt_core.models.hybrid import HybridConfig
from nmt_core.text.vocabulary import Vocabulary, build_vocabulary, by_frequency, count_words
from nmt_core.training.config import RunConfig
from nmt_core.training.data.stored import StoredPairs


def read_vocabularies(run: RunConfig, texts: Sequence[StoredPairs]) -> list[Vocabulary]:
    """Those of source, target and source factors; with shared embeddings source and target have one of both."""
    data, count = run.data, source_factors(run.model)
    source_lines, *factor_lines = (_column(texts, place, count) for place in range(count + 1))
    given = data.source_factor_vocabularies or (None,) * count
    factors = [read_vocabulary(*one, data.minimum_count) for one in zip(given, factor_lines, strict=True)]
    target_lines = _targets(texts)
    if not getattr(run.model, "shared_embeddings", False):
        source = read_vocabulary(data.source_vocabulary, source_lines, data.minimum_count)
        return [source, read_vocabulary(data.target_vocabulary, target_lines, data.minimum_count), *factors]
    if data.source_vocabulary != data.target_vocabulary:
        raise ConfigError("model.shared_embeddings: give one vocabulary (or size) as source_ and target_vocabulary")
    joint = read_vocabulary(data.source_vocabulary, itertools.chain(source_lines, target_lines), data.minimum_count)
    return [joint, joint, *factors]


def read_vocabulary(given: str | int | None, lines: Iterable[str], minimum_count: int = 1) -> Vocabulary:
    """That of a file, or the most frequent words of the lines: so many, or all."""
    if isinstance(given, str):
        return Vocabulary.load(given)
    return build_vocabulary(lines, size=given, minimum_count=minimum_count)


def _column(texts: Sequence[StoredPairs], place: int, factors: int) -> Iterator[str]:
    """The source lines; of words with ``factors`` what stands at this place in them."""
    for line in _sources(texts):
        yield " ".join(split_factors(line, factors)[place]) if factors else line


def _sources(texts: Sequence[StoredPairs]) -> Iterator[str]:
    return itertools.chain.from_iterable(text.sources() for text in texts)


def _targets(texts: Sequence[StoredPairs]) -> Iterator[str]:
    return itertools.chain.from_iterable(text.targets() for text in texts)


def with_characters(run: RunConfig, texts: Sequence[StoredPairs], start: LoadedModel | None) -> RunConfig:
    """With the characters that a hybrid model spells with: those of the model it starts from, or of the text."""
    model = run.model
    if not isinstance(model, HybridConfig):
        return run
    if start is not None and isinstance(start.config.model, HybridConfig):
        begun = start.config.model
        model = model.with_characters_of([begun.source_characters], [begun.target_characters])
    sides = ([word for word, _ in by_frequency(count_words(lines))] for lines in (_sources(texts), _targets(texts)))
    return run.model_copy(update={"model": model.with_characters_of(*sides)})


@torch.no_grad()
def load_embeddings(path: str, vocabulary: Vocabulary, embedding: nn.Module) -> int:
    """Put the vectors of known words from a file in word2vec's text format into ``embedding``; how many were found.

    A line has a word and its numbers; a first line ``COUNT SIZE`` is skipped. Raises InputError for another size.
    """
    assert isinstance(embedding, WordEmbedding)
    size = embedding.weight.shape[1]
    ids = {word: number for number, word in enumerate(vocabulary.words)}
    found = 0
    for number, line in enumerate(read_text_lines(path, errors="surrogateescape"), start=1):
        word, *values = line.rstrip(" ").split(" ")
        if number == 1 and len(values) == 1:
            continue
        if len(values) != size:
            expected = f"expected a word and {counted(size, 'number')} (model.embedding)"
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
