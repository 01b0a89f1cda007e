"""What a training run is told: the YAML file of ``nmt-core train``."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from nmt_core.config import Config
from nmt_core.data.corpus import BatchPlan
from nmt_core.models.build import ModelConfig, source_factors, with_preset
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.models.folder_config import (
    FACTOR_VOCABULARIES,
    LEXICON,
    SOURCE_VOCABULARY,
    TARGET_VOCABULARY,
    read_settings,
)
from nmt_core.models.hybrid import HybridConfig
from nmt_core.text.copying import CopyScheme
from nmt_core.text.processing import TextConfig
from nmt_core.text.target_order import TargetOrder

AUTOMATIC = "auto"
Files = tuple[str, ...]


def _several(value: Any) -> Any:
    """One file is a list of one."""
    return (value,) if isinstance(value, str) else value


OneOrMore = Annotated[Files, BeforeValidator(_several), Field(min_length=1)]
Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class DataConfig(Config):
    """Where the text is.

    Training text is either ``source`` and ``target``, or the distinct pairs of ``phrase_table``, each
    taken once whatever its counts (Cho et al. 2014, section 3.1), or, for a language model, ``text``: its
    sources are empty. Several files are one text, or with ``weights`` texts of which updates are drawn in
    this proportion. Text is tokenised; ``raw`` text is tokenised on the way. Without ``dev_source`` and
    ``dev_target`` (or ``dev_text``), ``hold_out`` pairs are taken out of the first training text for
    validation. Of several development sets the first decides. A vocabulary is a file, a size, or null for
    every word; words seen less than ``minimum_count`` times are left out of a vocabulary that is made here.
    ``source_factor_vocabularies`` has one for each of ``model.source_factors`` (None: all have every factor seen).

    With ``copying`` text is what ``nmt-core annotate`` wrote, and development sets are plain, with ``dev_alignment``
    annotated by that; ``lexicon`` is for the model to carry.

    ``preparation`` is the ``preparation.json`` that the text was prepared with, for the model to carry; ``auto`` takes
    the one beside the text that speaks of it, null none. ``raw`` text goes through its steps.
    """

    source: OneOrMore | None = None
    target: OneOrMore | None = None
    phrase_table: str | None = None
    text: OneOrMore | None = None
    alignment: OneOrMore | None = None
    weights: Annotated[tuple[Weight, ...], Field(min_length=2)] | None = None
    dev_source: OneOrMore | None = None
    dev_target: OneOrMore | None = None
    dev_text: OneOrMore | None = None
    dev_alignment: OneOrMore | None = None
    lexicon: str | None = None
    hold_out: int = Field(default=1000, ge=1)
    raw: bool = False
    preparation: str | None = AUTOMATIC
    source_vocabulary: str | int | None = None
    target_vocabulary: str | int | None = None
    source_factor_vocabularies: tuple[str | int | None, ...] | None = None
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

    @model_validator(mode="after")
    def _files_in_pairs(self) -> DataConfig:
        pairs: list[tuple[str, Sequence[object] | None, str, Sequence[object] | None]] = [
            ("source", self.source, "target", self.target),
            ("dev_source", self.dev_source, "dev_target", self.dev_target),
        ]
        if self.alignment is not None:
            pairs.append(("source", self.source, "alignment", self.alignment))
        if self.dev_alignment is not None:
            pairs.append(("dev_source", self.dev_source, "dev_alignment", self.dev_alignment))
        if self.weights is not None:
            texts = self.text or self.source or (self.phrase_table,)
            pairs.append(("text" if self.text else "source", texts, "weights", self.weights))
        for first, ones, second, others in pairs:
            if len(ones or ()) != len(others or ()):
                raise ValueError(f"{first} has {len(ones or ())} entries and {second} {len(others or ())}")
        return self


class TaskConfig(Config):
    """A task beside the reference, whose ratio is 1 (Luong et al. 2016, sections 3 and 4.2).

    ``kind`` ``pairs`` has ``source`` and ``target``; an ``autoencoder`` predicts the sentences of ``source``,
    ``halves`` their second half from the first. Development sets are alike. A side that is not shared has a vocabulary
    of its own.
    """

    name: str = Field(pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=100)
    kind: Literal["pairs", "autoencoder", "halves"] = "pairs"
    share: Literal["encoder", "decoder", "both"]
    ratio: float = Field(gt=0, allow_inf_nan=False)
    source: OneOrMore
    target: OneOrMore | None = None
    dev_source: OneOrMore | None = None
    dev_target: OneOrMore | None = None
    source_vocabulary: str | int | None = None
    target_vocabulary: str | int | None = None
    metric: Literal["nll", "bleu"] = "nll"

    def shares(self, side: Literal["encoder", "decoder"]) -> bool:
        """Whether this part is that of the reference."""
        return self.share in (side, "both")

    @model_validator(mode="after")
    def _sides_are_there(self) -> TaskConfig:
        if (self.kind == "pairs") != (self.target is not None):
            raise ValueError(f"kind: {self.kind} has {'source and target' if self.kind == 'pairs' else 'source alone'}")
        wanted = self.dev_source is not None and self.kind == "pairs"
        if wanted != (self.dev_target is not None):
            raise ValueError("dev_source and dev_target are as source and target are, or both left out")
        for key, other in (("source", "target"), ("dev_source", "dev_target")):
            mine, theirs = getattr(self, key), getattr(self, other)
            if theirs is not None and len(mine) != len(theirs):
                raise ValueError(f"{key} has {len(mine)} entries and {other} {len(theirs)}")
        for key, side in (("source_vocabulary", "encoder"), ("target_vocabulary", "decoder")):
            if getattr(self, key) is not None and self.share in (side, "both"):
                raise ValueError(f"{key}: the {side} is shared with its words, which are those of data; leave it out")
        return self


class MinimumRiskConfig(Config):
    """Minimum risk training (Shen et al. 2016): samples of each source, and the sharpness alpha."""

    samples: int = Field(default=100, ge=1)
    sharpness: float = Field(default=0.005, gt=0, allow_inf_nan=False)


class GuidedAlignmentConfig(Config):
    """How much attention follows ``data.alignment``; ``weight`` is multiplied with ``decay`` after every epoch."""

    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    decay: float = Field(default=1.0, gt=0, le=1)

    def weight_after(self, epochs: float) -> float:
        """The weight when so many epochs are over."""
        return float(self.weight * self.decay ** math.floor(epochs))


class TrainingConfig(Config):
    """How to train.

    Defaults are those of Bahdanau et al. 2015 (appendix B.2): Adadelta on the gradient of the summed
    loss, its norm rescaled to at most 1, minibatches of 80 pairs from windows of 20 sorted by length.
    ``gradient: word`` divides by the number of target words, which suits Adam. ``self_normalization``
    (Devlin et al. 2014 use 0.1) makes models that can be scored without their normaliser.
    ``partition_words`` is the tau of Jean et al. 2015: so many target words are in the softmax at a time.
    ``freeze_embeddings_after`` so many updates word embeddings (and an output matrix tied to them) stay as they
    are. ``start_from`` is a model folder whose parameters, settings and vocabularies training begins with.
    With ``keep_zeros`` the weights of its matrices that are 0 stay 0 (See et al. 2016); with ``mask_of`` those of
    that model are 0 in a new one. ``schedule`` and ``warmup`` change the learning rate with updates and epochs (see
    ``schedule.py``),
    ``update_every`` minibatches make an update, or as many for each of ``microbatches``, whose gradients are computed
    apart so that processes can share them. ``ema`` is the decay of an average of the parameters over
    updates, which is what is validated and kept.
    """

    optimizer: Literal["adadelta", "adam", "sgd"] = "adadelta"
    learning_rate: float = Field(default=1.0, gt=0)
    schedule: Literal["constant", "inverse-sqrt", "exponential", "halving"] = "constant"
    warmup: int = Field(default=0, ge=0)
    decay_after: float = Field(default=0.0, ge=0)
    decay_every: float = Field(default=1.0, gt=0)
    gradient: Literal["sum", "sentence", "word"] = "sum"
    update_every: int = Field(default=1, ge=1)
    microbatches: int = Field(default=1, ge=1)
    ema: float | None = Field(default=None, gt=0, lt=1)
    minimum_risk: MinimumRiskConfig | None = None
    guided_alignment: GuidedAlignmentConfig | None = None
    clip: float = Field(default=1.0, gt=0)
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    self_normalization: float = Field(default=0.0, ge=0)
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
    seed: int = 1
    start_from: str | None = None
    keep_zeros: bool = False
    mask_of: str | None = None
    source_embeddings: str | None = None
    target_embeddings: str | None = None
    tensorboard: bool = False

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
        )

    @model_validator(mode="after")
    def _risk_stands_alone(self) -> TrainingConfig:
        for key in (
            ("label_smoothing", "self_normalization", "partition_words", "guided_alignment")
            if self.minimum_risk
            else ()
        ):
            if getattr(self, key):
                raise ValueError(f"{key} is about likelihood and does not go with minimum_risk")
        return self

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
        falls = self.schedule in ("exponential", "halving")
        for key in ("decay_after", "decay_every"):
            if getattr(self, key) != type(self).model_fields[key].default and not falls:
                raise ValueError(f"{key} goes with schedule: exponential or halving, not with {self.schedule}")
        return self


class RunConfig(Config):
    """The whole file: ``folder`` is the model folder to be made.

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
    def _alignment_is_used(self) -> RunConfig:
        if (self.data.alignment is None) != (self.training.guided_alignment is None):
            raise ValueError("data.alignment and training.guided_alignment go together; one of them is missing")
        return self

    @model_validator(mode="after")
    def _factors_have_vocabularies(self) -> RunConfig:
        factors, given = source_factors(self.model), self.data.source_factor_vocabularies
        if given is not None and len(given) != factors:
            raise ValueError(
                f"data.source_factor_vocabularies has {len(given)} entries and model.source_factors {factors}; "
                "give one for each factor"
            )
        if factors and self.data.preparation not in (AUTOMATIC, None):
            raise ValueError("data.preparation is of words without factors; leave it out, or model.source_factors")
        if factors and self.data.raw:
            raise ValueError(
                "data.raw: raw text has no factors, of which model.source_factors speaks; give tokenised text"
            )
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
            ("training.minimum_risk", self.training.minimum_risk is not None),
            ("training.guided_alignment", self.training.guided_alignment is not None),
            ("training.freeze_embeddings_after", self.training.freeze_embeddings_after is not None),
            ("data.weights", self.data.weights is not None),
            ("data.raw", self.data.raw),
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
        elif data.source is None or data.raw:
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


_LUONG = {
    "optimizer": "sgd",
    "gradient": "sentence",
    "clip": 5.0,
    "batch_sentences": 128,
    "window": 100,
    "schedule": "halving",
}
_RATE_1 = {"learning_rate": 1.0, "max_epochs": 12, "decay_after": 8.0}
_RATE_07 = {"learning_rate": 0.7, "max_epochs": 8, "decay_after": 5.0, "decay_every": 0.5}
_HALF_EPOCHS = {"learning_rate": 1.0, "max_epochs": 6, "decay_after": 4.0, "decay_every": 0.5}
_LUONG_MODELS = (
    "base",
    *(f"global-{score}-feed" for score in ("dot", "general", "concat", "location")),
    *(f"local-{window}-feed" for window in ("m-general", "p-dot", "p-general")),
)

RECIPES: Mapping[str, Mapping[str, Any]] = {
    # Cho et al. 2014, section 4.1: 64 random pairs an update (no windows sorted by length), Adadelta
    "rnnencdec-cho2014": {"batch_sentences": 64, "window": 1},
    # Luong et al. 2015b, section 4.1: 12 epochs with dropout, the rate halved after every one from the 8th on
    **{f"luong2015-{name}": {**_LUONG, **_RATE_1} for name in _LUONG_MODELS},
    # Luong et al. 2015a, section 4.2
    **{f"luong2015-{name}": {**_LUONG, **_RATE_07} for name in ("copy4", "copy6")},
    # Luong and Manning 2016 (thesis, 5.3.2)
    "luong2016-hybrid": {**_LUONG, **_HALF_EPOCHS},
    # Luong et al. 2016, section 4.2
    "luong2016-multitask": {**_LUONG, **_RATE_1, "learning_rate": 0.7},
    # Cho et al. 2014, section 4.1.2: 512 n-grams an update
    "cslm-cho2014": {"batch_tokens": 512},
}


def with_recipe(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in which ``model.preset`` is replaced by the preset's model, trained as its paper trained it.

    What the settings say themselves stays as they say.
    """
    model, training = settings.get("model"), settings.get("training", {})
    if not isinstance(model, Mapping):
        return dict(settings)
    recipe = RECIPES.get(str(model.get("preset")))
    filled = {"training": {**recipe, **training}} if recipe is not None and isinstance(training, Mapping) else {}
    return {**settings, "model": with_preset(model), **filled}


def begun(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with what they leave to the folder of ``training.start_from``: model, text, order and vocabularies.

    Of a model of the same type the keys that are not given are the folder's. Raises ModelError when there is no model
    in it.
    """
    training = settings.get("training")
    folder = training.get("start_from") if isinstance(training, Mapping) else None
    if not isinstance(folder, str):
        return dict(settings)
    start = read_settings(folder)
    found, data = start.to_mapping(), settings.get("data")
    vocabularies: dict[str, Any] = {
        "source_vocabulary": os.path.join(folder, SOURCE_VOCABULARY),
        "target_vocabulary": os.path.join(folder, TARGET_VOCABULARY),
    }
    if found["lexicon"] is not None:
        vocabularies["lexicon"] = os.path.join(folder, LEXICON)
    if factors := source_factors(start.model):
        names = FACTOR_VOCABULARIES[:factors]
        vocabularies["source_factor_vocabularies"] = [os.path.join(folder, name) for name in names]
    kept = {key: found[key] for key in ("model", "text", "target_order", "copying")}
    model = settings.get("model")
    if isinstance(model, Mapping) and ("preset" in model or model.get("type", start.model.type) != start.model.type):
        del kept["model"]
    filled = _merged(kept, settings)
    return {**filled, "data": {**vocabularies, **data}} if isinstance(data, Mapping) else filled


def _merged(those: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that are given on top of others, key by key."""
    merged = {**those, **given}
    for key, value in those.items():
        if isinstance(value, Mapping) and isinstance(given.get(key), Mapping):
            merged[key] = _merged(value, given[key])
    return merged
