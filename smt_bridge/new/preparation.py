"""How the Moses system's text was prepared, as far as the text tells it: what models need to take running text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from nmt_core.base.errors import ConfigError
from nmt_core.files import open_output, read_text_lines
from nmt_core.preparation.bundled import BundledPreprocessor
from nmt_core.preparation.record import NAME
from nmt_core.preparation.settings import PreparationConfig, model_name
from nmt_core.preparation.steps import ModelFile, PunctuationConfig, TokenizationConfig
from nmt_core.preparation.truecasing import MosesTruecasing, TruecasingConfig

_ESCAPED = re.compile("&(?:apos|quot|amp|lt|gt|#124|#91|#93);")
_BARE = re.compile("['\"&<>|\\[\\]]")
_READ = 2000  # lines of a text that are compared with a truecaser
_CHANGED = 0.2  # share of lines that a truecaser changes from which a text is not truecased
_KNOWN = 0.5  # share of words that a truecaser knows from which it is of the text's language


def tokenization_of(words: Iterable[str]) -> TokenizationConfig:
    """What the words of a corpus tell of ``tokenizer.perl``: ``-a`` and, where no word is escaped, ``-no-escape``."""
    escaped = bare = hyphens = False
    for word in words:
        escaped = escaped or _ESCAPED.search(word) is not None
        bare = bare or _BARE.search(word) is not None
        hyphens = hyphens or word == "@-@"
    return TokenizationConfig(aggressive_hyphens=hyphens, escape=escaped or not bare)


def open_truecasers(models: Sequence[str], train: Sequence[str]) -> tuple[ModelFile, ...]:
    """The models of ``train-truecaser.perl``. Raises ConfigError where the training text is not as they write it."""
    if models and os.path.basename(train[0]) == os.path.basename(train[1]):
        raise ConfigError(f"--train {' '.join(train)}: the names do not tell the sides apart; rename one")
    found = tuple(map(ModelFile.read, models))
    for model, path in zip(found, train, strict=bool(models)):
        _check_case(model, path)
    return found


def _check_case(model: ModelFile, path: str) -> None:
    truecaser = MosesTruecasing.open(model)
    lines = list(islice(read_text_lines(path), _READ))
    words = [word for line in lines for word in line.split() if word.isalpha()]
    known = sum(word.lower() in truecaser.best for word in words)
    if known < _KNOWN * len(words):
        problem = f"knows {known / len(words):.0%} of the words of {path}"
        raise ConfigError(f"--truecase-model {model.path}: {problem}; give the model of the source first")
    changed = sum(truecaser.apply(line) != line for line in lines)
    if changed > _CHANGED * len(lines):
        problem = f"{model.path} changes {changed / len(lines):.0%} of its lines"
        raise ConfigError(f"--train {path}: {problem}; give the truecased text that Moses was trained on")


def write_preparation(
    folder: Path, languages: Sequence[str], train: Sequence[str], tokenization: TokenizationConfig,
    truecasers: Sequence[ModelFile],
) -> None:  # fmt: skip
    """``preparation.json`` and the truecasers beside it: the models carry them, so that they take running text."""
    settings = PreparationConfig(
        source_language=languages[0],
        target_language=languages[1],
        cleanup=None,
        punctuation=PunctuationConfig(apostrophes=False),
        tokenization=tokenization,
        truecasing=TruecasingConfig(),
    )
    names = [model_name(settings, "truecasing", side) for side in settings.languages]
    models = {name: model.content for name, model in zip(names, truecasers, strict=True)}
    made = BundledPreprocessor.of_corpus(settings, models, [os.path.basename(path) for path in train])
    made.write_models(str(folder), names)
    with open_output(str(folder / NAME)) as stream:
        stream.write(made.files[NAME])
