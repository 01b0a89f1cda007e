"""The vocabularies of a training run: files, or the words and characters of its text."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from nmt_core.data.corpus import TextPair
from nmt_core.errors import ConfigError
from nmt_core.factors import split_factors
from nmt_core.models.build import source_factors
from nmt_core.models.checkpoint import LoadedModel
from nmt_core.models.hybrid import HybridConfig
from nmt_core.text.characters import words_by_frequency
from nmt_core.text.vocabulary import Vocabulary, build_vocabulary
from nmt_core.training.config import RunConfig


def read_vocabularies(run: RunConfig, pairs: Sequence[TextPair]) -> list[Vocabulary]:
    """Those of source, target and source factors; with shared embeddings source and target have one of both."""
    data, count = run.data, source_factors(run.model)
    columns = [[pair[0] for pair in pairs]]
    if count:
        split = [split_factors(pair[0], count) for pair in pairs]
        columns = [[" ".join(words) for words in column] for column in zip(*split, strict=True)]
    source_lines, *factor_lines = columns
    given = data.source_factor_vocabularies or (None,) * count
    factors = [read_vocabulary(*one, data.minimum_count) for one in zip(given, factor_lines, strict=True)]
    target_lines = [pair[1] for pair in pairs]
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


def with_characters(run: RunConfig, pairs: Sequence[TextPair], start: LoadedModel | None) -> RunConfig:
    """With the characters that a hybrid model spells with: those of the model it starts from, or of the text."""
    model = run.model
    if not isinstance(model, HybridConfig):
        return run
    if start is not None and isinstance(start.config.model, HybridConfig):
        begun = start.config.model
        model = model.with_characters_of([begun.source_characters], [begun.target_characters])
    sides = words_by_frequency(pair[0] for pair in pairs), words_by_frequency(pair[1] for pair in pairs)
    return run.model_copy(update={"model": model.with_characters_of(*sides)})
