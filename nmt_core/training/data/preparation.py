"""Which preparation the model of a training run carries: that of its text."""

from __future__ import annotations

import os
from typing import NamedTuple

from nmt_core.base.errors import ConfigError
from nmt_core.preparation.bundled import BundledPreprocessor
from nmt_core.preparation.record import NAME, Record
from nmt_core.preparation.steps import Side
from nmt_core.training.data.config import AUTOMATIC, DataConfig


class FoundPreparation(NamedTuple):
    """The preparation, None where there is none, and what to tell the user."""

    preparation: BundledPreprocessor | None = None
    note: str | None = None


def find_preparation(data: DataConfig, start: BundledPreprocessor | None) -> FoundPreparation:
    """The preparation of the text of a run that begins with a model that carries ``start``.

    It is about the sides as the model has them, whichever way it translates. Raises ConfigError for a model
    to begin with that was prepared otherwise, InputError for files that are not as they should be.
    """
    if data.preparation is None:
        return FoundPreparation()
    found = _beside(data) if data.preparation == AUTOMATIC else _given(data, data.preparation)
    if found.preparation is None or start is None:
        return FoundPreparation(found.preparation or start, found.note)
    if found.preparation.fingerprint != start.fingerprint:
        raise ConfigError(
            "training.start_from: the model was trained on text that was prepared otherwise; prepare the text "
            "as its preparation folder says ('nmt-core prepare corpus --like'), or set data.preparation: null"
        )
    return found


def _given(data: DataConfig, path: str) -> FoundPreparation:
    preparation = BundledPreprocessor.read(path)
    source, target = (None if name is None else _side_of(name, preparation.record) for name in _texts(data))
    if target is None or target == source or (source is None and data.text is None):
        source, target = "source", "target"  # their names do not say which is which
    return FoundPreparation(preparation.between(None if data.text is not None else source, target))


def _beside(data: DataConfig) -> FoundPreparation:
    """The preparation in the directory of the text, if it speaks of these files."""
    source, target = _texts(data)
    path = os.path.join(os.path.dirname(target or ""), NAME)
    if target is None or not os.path.isfile(path):
        return FoundPreparation()
    preparation = BundledPreprocessor.read(path)
    sides = [_output_of(name, preparation.record) for name in (source, target) if name is not None]
    folders = {os.path.dirname(os.path.abspath(name)) for name in (source, target) if name is not None}
    if None in sides or len(folders) > 1:
        names = " and ".join(name for name in (source, target) if name is not None)
        return FoundPreparation(
            None, f"{path} is not about {names}; if the text was prepared by it, set data.preparation={path}"
        )
    *first, last = sides
    assert last is not None
    return FoundPreparation(preparation.between(first[0] if first else None, last), f"the model carries {path}")


def _texts(data: DataConfig) -> tuple[str | None, str | None]:
    """The first files of the source and the target side; those of a phrase table are none."""
    sources, targets = data.source, data.text if data.target is None else data.target
    return (None if sources is None else sources[0]), (None if targets is None else targets[0])


def _output_of(path: str, record: Record) -> Side | None:
    name = os.path.basename(path)
    return next((side for side, output in record.outputs.items() if output == name), None)


def _side_of(path: str, record: Record) -> Side | None:
    """By the name of the file, or the language that it ends in."""
    ending = os.path.basename(path).removesuffix(".gz").rpartition(".")[2]
    by_language = (side for side, language in record.settings.languages.items() if language == ending)
    return _output_of(path, record) or next(by_language, None)
