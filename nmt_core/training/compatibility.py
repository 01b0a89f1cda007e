"""Settings of model, text and training that do not go together."""

from __future__ import annotations

import math

import torch

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted
from nmt_core.models.build import build_model, is_language_model, source_factors
from nmt_core.models.deep_fusion import DeepFusionConfig
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.training.config import RunConfig


def check_compatible(run: RunConfig) -> None:
    """Raises ConfigError where model or training ask for what the text, or the other of them, does not have."""
    language_model = is_language_model(run.model)
    if isinstance(run.model, DeepFusionConfig) and run.training.start_from is None:
        raise ConfigError(
            "training.start_from is missing; a model of type deep-fusion starts from what nmt-core fuse made"
        )
    _check_model(run)
    _check_places(run)
    if language_model and run.training.minimum_risk is not None:
        raise ConfigError("training.minimum_risk is about translations; a language model makes none")
    if run.data.text is not None and not language_model:
        raise ConfigError(
            f"data.text is for models of type rnnlm or cslm; {run.model.type} needs data.source and data.target"
        )
    if run.data.text is not None and run.training.select_by == "bleu":
        raise ConfigError("data.text has no translations; set training.select_by: nll, or use nmt-core train-lm")
    if language_model and run.training.source_embeddings is not None:
        raise ConfigError("training.source_embeddings: a language model has no source words")
    if run.data.weights is not None and run.training.partition_words is not None:
        raise ConfigError("training.partition_words cuts one text into partitions; leave data.weights out")


def _check_model(run: RunConfig) -> None:
    """Raises ConfigError where the training asks for what the model does not have, or does not learn."""
    with torch.device("meta"):  # without numbers, and a vocabulary of any size
        model = build_model(run.model, 4, 4, [4] * source_factors(run.model))
    if run.training.partition_words is not None:
        model.word_tables()
    if run.training.minimum_risk is not None and model.spells:
        raise ConfigError(
            f"training.minimum_risk samples words, and a model of type {run.model.type} spells some; leave it out"
        )
    if run.training.guided_alignment is None:
        return
    if not model.attends:
        raise ConfigError(f"training.guided_alignment guides attention, which a model of type {run.model.type} has not")
    if isinstance(run.model, DeepFusionConfig) and run.model.trained == "readout":
        raise ConfigError(
            "training.guided_alignment guides attention, which model.trained: readout does not change; "
            "leave it out, or make the model with nmt-core fuse --trained all"
        )


def _check_places(run: RunConfig) -> None:
    """Raises ConfigError where training text is longer than what attention by location has places for."""
    model, longest = run.model, run.data.max_length
    if isinstance(model, DeepLSTMConfig) and model.attention == "location" and (longest or math.inf) > model.places:
        raise ConfigError(
            f"model.places: attention by location has {counted(model.places, 'place')}, and data.max_length is "
            f"{'null' if longest is None else longest}; make them equal, or data.max_length smaller"
        )
