"""The settings of a training run: the YAML file of ``nmt-core train``, and which of them do not go together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

from pydantic import Field, model_validator

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import LANGUAGE_MODELS
from nmt_core.base.messages import counted
from nmt_core.config import Config
from nmt_core.models.build import ModelConfig, source_factors, without_numbers
from nmt_core.models.deep_fusion import DeepFusionConfig
from nmt_core.models.deep_lstm import DeepLSTMConfig, LuongConfig
from nmt_core.models.hybrid import HybridConfig
from nmt_core.text.copying import CopyScheme
from nmt_core.text.processing import TextConfig
from nmt_core.text.sentence import TargetOrder
from nmt_core.training.data.config import AUTOMATIC, DataConfig, TaskConfig
from nmt_core.training.data.corpus import BatchPlan


class TrainingConfig(Config):
    """How to train.

    Defaults are those of Bahdanau et al. 2015 (appendix B.2): Adadelta on the gradient of the summed
    loss, its norm rescaled to at most 1, minibatches of 80 pairs from windows of 20 sorted by length.
    ``gradient: word`` divides by the number of target words, which suits Adam. ``self_normalization``
    (Devlin et al. 2014 use 0.1) makes models that can be scored without their normaliser.
    ``partition_words`` is the tau of Jean et al. 2015: so many target words are in the softmax at a time.
    ``freeze_embeddings_after`` so many updates word embeddings (and an output matrix tied to them) stay as they
    are. ``start_from`` is a model directory whose parameters, settings and vocabularies training begins with.
    With ``keep_zeros`` the weights of its matrices that are 0 stay 0 (See et al. 2016); with ``mask_of`` those of
    that model are 0 in a new one. ``schedule`` and ``warmup`` change the learning rate with updates and epochs
    (``optimizer.rate_factor``), ``update_every`` minibatches make an update, or as many for each of ``microbatches``,
    whose gradients are computed apart so that processes can share them.
    """

    optimizer: Literal["adadelta", "adam", "sgd"] = "adadelta"
    learning_rate: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    schedule: Literal["constant", "halving"] = "constant"
    warmup: int = Field(default=0, ge=0)
    decay_after: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    decay_every: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    gradient: Literal["sum", "sentence", "word"] = "sum"
    update_every: int = Field(default=1, ge=1)
    microbatches: int = Field(default=1, ge=1, le=4096)
    clip: float = Field(default=1.0, gt=0)
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    self_normalization: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    partition_words: int | None = Field(default=None, ge=3)
    freeze_embeddings_after: int | None = Field(default=None, ge=0)
    batch_sentences: int = Field(default=80, ge=1)
    batch_tokens: int | None = Field(default=None, ge=1)
    window: int = Field(default=20, ge=1)
    shuffle: Literal["every-epoch", "once"] = "every-epoch"
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
    keep_best: int = Field(default=0, ge=0)
    keep_every: int | None = Field(default=None, ge=1)
    save_every: float = Field(default=10.0, gt=0)
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"
    seed: int = Field(default=1, ge=0, le=2**63 - 1)
    start_from: str | None = None
    keep_zeros: bool = False
    mask_of: str | None = None

    @property
    def plan(self) -> BatchPlan:
        """How epochs are cut into minibatches."""
        return BatchPlan(
            self.batch_sentences,
            self.window,
            self.batch_tokens,
            self.seed,
            group=self.update_every * self.microbatches,
            once=self.shuffle == "once",
            even=self.microbatches > 1 and self.batch_tokens is None,  # else they are even already
        )

    @model_validator(mode="after")
    def _zeros_come_from_a_model(self) -> TrainingConfig:
        if self.keep_zeros and self.start_from is None:
            raise ValueError("keep_zeros keeps the zeros of start_from, which is missing")
        if self.mask_of is not None and self.start_from is not None:
            raise ValueError("mask_of is for a new model; with start_from give keep_zeros: true")
        if (self.keep_zeros or self.mask_of is not None) and self.partition_words is not None:
            raise ValueError("partition_words does not go with keep_zeros or mask_of")
        return self

    @model_validator(mode="after")
    def _schedule_has_its_keys(self) -> TrainingConfig:
        for key in ("decay_after", "decay_every"):
            if getattr(self, key) != type(self).model_fields[key].default and self.schedule != "halving":
                raise ValueError(f"{key} goes with schedule: halving")
        return self


class RunConfig(Config):
    """The whole file: ``folder`` is the model directory to be made.

    With ``target_order: right-to-left`` the model learns to write targets from their last word to the first.
    ``copying`` is the scheme of annotated text. ``tasks`` are trained beside that of ``data``.
    """

    folder: str
    model: ModelConfig
    text: TextConfig = TextConfig()
    target_order: TargetOrder = TargetOrder.LEFT_TO_RIGHT
    copying: CopyScheme | None = None
    data: DataConfig
    tasks: tuple[TaskConfig, ...] = ()
    training: TrainingConfig = TrainingConfig()

    @model_validator(mode="after")
    def _factors_have_vocabularies(self) -> RunConfig:
        factors, given = source_factors(self.model), self.data.source_factor_vocabularies
        if given is not None and len(given) != factors:
            raise ValueError(
                f"data.source_factor_vocabularies has {counted(len(given), 'entry', 'entries')} and"
                f" model.source_factors {factors}; give one for each factor"
            )
        if factors and self.data.preparation not in (AUTOMATIC, None):
            raise ValueError("data.preparation is of words without factors; leave it out, or model.source_factors")
        return self

    @model_validator(mode="after")
    def _tasks_can_share(self) -> RunConfig:
        if not self.tasks:
            return self
        names = [task.name for task in self.tasks]
        if len(set(names)) < len(names):
            raise ValueError("tasks: two have one name; their folders are called by it")
        if not isinstance(self.model, DeepLSTMConfig) or source_factors(self.model):
            raise ValueError("tasks share parts of models of type deep-lstm, without source_factors")
        for key, given in (
            ("training.partition_words", self.training.partition_words is not None),
            ("training.freeze_embeddings_after", self.training.freeze_embeddings_after is not None),
            ("data.weights", self.data.weights is not None),
            ("copying", self.copying is not None),
        ):
            if given:
                raise ValueError(f"tasks do not go with {key}; leave one of them out")
        return self

    @model_validator(mode="after")
    def _annotated_text_is_there(self) -> RunConfig:
        data = self.data
        if self.copying is None:
            for key in ("dev_alignment", "lexicon"):
                if getattr(data, key) is not None:
                    raise ValueError(f"data.{key} is for annotated text; say which scheme it has: copying: posunk")
        elif data.source is None:
            raise ValueError("copying is of text that nmt-core annotate wrote: give it as data.source and data.target")
        elif source_factors(self.model):
            raise ValueError("copying is of words without factors; leave it out, or model.source_factors")
        elif isinstance(self.model, HybridConfig):
            raise ValueError("copying: a model of type hybrid spells unknown words; leave copying out")
        elif data.dev_source is None:
            raise ValueError("copying: give a development set of plain text as data.dev_source and data.dev_target")
        elif self.copying is CopyScheme.POSALL and data.dev_alignment is None:
            raise ValueError("copying: posall: give data.dev_alignment, the word alignment of the development set")
        return self


_TEXTS = ("source", "target", "text", "dev_source", "dev_target", "dev_text", "dev_alignment")


def files_of(run: RunConfig) -> Iterator[str]:
    """What a run reads: texts and the models that it starts from.

    Vocabularies are left out: the directory may have had them before, and they are kept.
    """
    preparation = None if run.data.preparation == AUTOMATIC else run.data.preparation
    others = (run.training.start_from, run.training.mask_of, run.data.phrase_table, run.data.lexicon, preparation)
    yield from filter(None, others)
    for settings in (run.data, *run.tasks):
        for key in _TEXTS:
            yield from getattr(settings, key, None) or ()


def check_compatible(run: RunConfig) -> None:
    """Raises ConfigError where model or training ask for what the text, or the other of them, does not have."""
    language_model = run.model.type in LANGUAGE_MODELS
    if isinstance(run.model, DeepFusionConfig) and run.training.start_from is None:
        raise ConfigError(
            "training.start_from is missing; a model of type deep-fusion starts from what nmt-core fuse made"
        )
    if run.training.partition_words is not None:
        without_numbers(run.model, [4] * (2 + source_factors(run.model))).word_tables()  # vocabularies of any size
    _check_places(run)
    if (
        isinstance(run.model, LuongConfig)
        and run.model.window == "local-m"
        and run.target_order is TargetOrder.RIGHT_TO_LEFT
    ):
        raise ConfigError(
            f"model.window: local-m attends to the word in the same place, from the left; with target_order: "
            f"{run.target_order} use window: local-p or global"
        )
    if run.data.text is not None and not language_model:
        raise ConfigError(
            f"data.text is for models of type rnnlm or cslm; {run.model.type} needs data.source and data.target"
        )
    if run.data.text is not None and run.training.select_by == "bleu":
        raise ConfigError("data.text has no translations; set training.select_by: nll")
    if run.data.weights is not None and run.training.partition_words is not None:
        raise ConfigError("training.partition_words cuts one text into partitions; leave data.weights out")


def _check_places(run: RunConfig) -> None:
    """Raises ConfigError where training text is longer than what attention by location has places for."""
    model, longest = run.model, run.data.max_length
    if isinstance(model, DeepLSTMConfig) and model.attention == "location" and (longest or math.inf) > model.places:
        raise ConfigError(
            f"model.places: attention by location has {counted(model.places, 'place')}, and data.max_length is "
            f"{'null' if longest is None else longest}; make them equal, or data.max_length smaller"
        )
