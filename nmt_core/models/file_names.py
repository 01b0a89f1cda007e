"""The names of the files of a model folder, and which files of a folder are the model's own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from nmt_core.base.words import MOST_FACTORS
from nmt_core.models.folder import current

SETTINGS = "config.yaml"
PARAMETERS = "model.safetensors"
SOURCE_VOCABULARY = "source.vocab"
TARGET_VOCABULARY = "target.vocab"
FACTOR_VOCABULARIES = tuple(f"source.factor{number}.vocab" for number in range(1, MOST_FACTORS + 1))
PREPARATION = "preparation"
LEXICON = "lexicon.gz"
NAMES = (SETTINGS, PARAMETERS, SOURCE_VOCABULARY, TARGET_VOCABULARY, *FACTOR_VOCABULARIES, PREPARATION, LEXICON)


def own_files(folder: str) -> Iterator[str]:
    """The files that a model is read from; whatever else lies in its folder is none of them."""
    for name in NAMES:
        path = os.path.join(folder, name)
        for place in dict.fromkeys((path, current(path))):
            if os.path.exists(place):
                yield place
            with contextlib.suppress(OSError):  # it is no folder, or cannot be read, which is said later
                yield from (entry.path for entry in os.scandir(place))
