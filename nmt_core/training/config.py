"""What a training run is told: the YAML file of ``nmt-core train``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from nmt_core.config import Config
from nmt_core.data.corpus import BatchPlan
from nmt_core.models.build import ModelConfig
from nmt_core.models.checkpoint import SOURCE_VOCABULARY, TARGET_VOCABULARY, read_settings
from nmt_core.text.processing import TextConfig

AUTOMATIC = "auto"


class DataConfig(Config):
    """Where the text is.

    Training text is either ``source`` and ``target``, or the distinct pairs of ``phrase_table``, each
    taken once whatever its counts (Cho et al. 2014, section 3.1), or, for a language model, ``text``: its
    sources are empty. Text is tokenised; ``raw`` text is tokenised on the way. Without ``dev_source`` and
    ``dev_target`` (or ``dev_text``), ``hold_out`` pairs are taken out of the training text for validation.
    A vocabulary is a file, a size, or null for every word; words seen less than ``minimum_count`` times are
    left out of a vocabulary that is made here.

    ``preparation`` is the ``preparation.json`` that the text was prepared with, for the model to carry; ``auto`` takes
    the one beside the text that speaks of it, null none. ``raw`` text goes through its steps.
    """

    source: str | None = None
    target: str | None = None
    phrase_table: str | None = None
    text: str | None = None
    dev_source: str | None = None
    dev_target: str | None = None
    dev_text: str | None = None
    hold_out: int = Field(default=1000, ge=1)
    raw: bool = False
    preparation: str | None = AUTOMATIC
    source_vocabulary: str | int | None = None
    target_vocabulary: str | int | None = None
    minimum_count: int = Field(default=1, ge=1)
    max_length: int | None = Field(default=50, ge=1)

    @model_validator(mode="after")
    def _one_kind_of_text(self) -> DataConfig:
        pairs = self.source is not None and self.target is not None
        kinds = (pairs, self.phrase_table is not None, self.text is not None)
        if (self.source is None) != (self.target is None) or sum(kinds) != 1:
            raise ValueError("give either source and target, or phrase_table, or for a language model text")
        if (self.dev_text if self.text is None else self.dev_source) is not None:
            raise ValueError("dev_text goes with text, dev_source and dev_target go with the others")
        if (self.dev_source is None) != (self.dev_target is None):
            raise ValueError("give both dev_source and dev_target, or neither")
        return self


class TrainingConfig(Config):
    """How to train.

    Defaults are those of Bahdanau et al. 2015 (appendix B.2): Adadelta on the gradient of the summed
    loss, its norm rescaled to at most 1, minibatches of 80 pairs from windows of 20 sorted by length.
    ``gradient: word`` divides by the number of target words, which suits Adam. ``self_normalization``
    (Devlin et al. 2014 use 0.1) makes models that can be scored without their normaliser.
    ``partition_words`` is the tau of Jean et al. 2015: so many target words are in the softmax at a time.
    ``freeze_embeddings_after`` so many updates word embeddings (and an output matrix tied to them) stay as they
    are. ``start_from`` is a model folder whose parameters, settings and vocabularies training begins with.
    """

    optimizer: Literal["adadelta", "adam"] = "adadelta"
    learning_rate: float = Field(default=1.0, gt=0)
    gradient: Literal["sum", "word"] = "sum"
    clip: float = Field(default=1.0, gt=0)
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    self_normalization: float = Field(default=0.0, ge=0)
    partition_words: int | None = Field(default=None, ge=3)
    freeze_embeddings_after: int | None = Field(default=None, ge=0)
    batch_sentences: int = Field(default=80, ge=1)
    batch_tokens: int | None = Field(default=None, ge=1)
    window: int = Field(default=20, ge=1)
    max_epochs: int | None = Field(default=None, ge=1)
    max_updates: int | None = Field(default=None, ge=1)
    max_minutes: float | None = Field(default=None, gt=0)
    validate_every: int = Field(default=1000, ge=1)
    select_by: Literal["bleu", "nll"] = "bleu"
    dev_beam: int = Field(default=4, ge=1)
    patience: int | None = Field(default=10, ge=1)
    decay_patience: int | None = Field(default=None, ge=1)
    decay: float = Field(default=0.5, gt=0, lt=1)
    average: int = Field(default=1, ge=1)
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"
    seed: int = 1
    start_from: str | None = None
    source_embeddings: str | None = None
    target_embeddings: str | None = None
    tensorboard: bool = False

    @property
    def plan(self) -> BatchPlan:
        """How epochs are cut into minibatches."""
        return BatchPlan(self.batch_sentences, self.window, self.batch_tokens, self.seed)


class RunConfig(Config):
    """The whole file: ``folder`` is the model folder to be made."""

    folder: str
    model: ModelConfig
    text: TextConfig = TextConfig()
    data: DataConfig
    training: TrainingConfig = TrainingConfig()


def begun(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with what they leave to the folder of ``training.start_from``: model, text and vocabularies.

    Raises ModelError when there is no model in it.
    """
    training = settings.get("training")
    folder = training.get("start_from") if isinstance(training, Mapping) else None
    if not isinstance(folder, str):
        return dict(settings)
    found = read_settings(folder).to_mapping()
    data = settings.get("data")
    vocabularies = {
        "source_vocabulary": os.path.join(folder, SOURCE_VOCABULARY),
        "target_vocabulary": os.path.join(folder, TARGET_VOCABULARY),
    }
    filled = {"model": found["model"], "text": found["text"], **settings}
    return {**filled, "data": {**vocabularies, **data}} if isinstance(data, Mapping) else filled
