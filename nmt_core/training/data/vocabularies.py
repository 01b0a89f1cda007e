"""The vocabularies of a training run: files, or the words and characters of its text."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from nmt_core.base.errors import ConfigError
from nmt_core.base.words import split_factors
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
