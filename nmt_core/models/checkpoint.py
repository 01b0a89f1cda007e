"""A model is a folder.

    config.yaml          format version, architecture, text processing, and how it was trained
    model.safetensors    parameters, float32
    source.vocab         one word a line, special words first, counts behind a tab
    target.vocab
    preparation/         how raw text becomes what the model reads, for models trained on text of ``nmt-core prepare``

Nothing in it is executable and nothing is pickled.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import yaml
from pydantic import Field
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from nmt_core.config import Config, read_yaml
from nmt_core.errors import ConfigError, InputError, ModelError
from nmt_core.files import open_output
from nmt_core.models.build import ModelConfig, build_model
from nmt_core.models.interface import TranslationModel
from nmt_core.preparation.carried import CarriedPreparation
from nmt_core.text.processing import TextConfig
from nmt_core.text.vocabulary import Vocabulary

FORMAT_VERSION = 2
PLAIN_VERSION = 1  # of folders without a preparation, which older programs read
PARAMETERS = "model.safetensors"
SETTINGS = "config.yaml"
SOURCE_VOCABULARY = "source.vocab"
TARGET_VOCABULARY = "target.vocab"
PREPARATION = "preparation"


class FolderConfig(Config):
    """What ``config.yaml`` of a model folder says; ``preparation`` has the SHA-256 of each file of that folder."""

    format_version: int = PLAIN_VERSION
    model: ModelConfig
    text: TextConfig = TextConfig()
    preparation: dict[str, str] | None = None
    trained_with: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True)
class LoadedModel:
    """A model ready for use, with its vocabularies and text processing.

    ``fingerprint`` changes when a parameter or a word changes.
    """

    model: TranslationModel
    source: Vocabulary
    target: Vocabulary
    config: FolderConfig
    fingerprint: str
    folder: str
    preparation: CarriedPreparation | None = None

    @property
    def text(self) -> TextConfig:
        """How raw text becomes words for this model, where it carries no preparation."""
        return self.config.text

    def prepared_as(self, other: LoadedModel) -> bool:
        """Whether both carry the same preparation, or none: its steps and what these learned are the same."""
        if self.preparation is None or other.preparation is None:
            return self.preparation is other.preparation
        return self.preparation.fingerprint == other.preparation.fingerprint


def save_model(
    folder: str,
    model: TranslationModel,
    source: Vocabulary,
    target: Vocabulary,
    config: FolderConfig,
    preparation: CarriedPreparation | None = None,
) -> None:
    """Write a model folder; a model already there is replaced only when the new one is complete."""
    os.makedirs(folder, exist_ok=True)
    config = _with_preparation(config, preparation)
    if preparation is not None:
        preparation.write(os.path.join(folder, PREPARATION))
    source.save(os.path.join(folder, SOURCE_VOCABULARY))
    target.save(os.path.join(folder, TARGET_VOCABULARY))
    with open_output(os.path.join(folder, SETTINGS)) as stream:
        stream.write(yaml.safe_dump(config.to_mapping(), sort_keys=False, allow_unicode=True).encode())
    save_tensors(os.path.join(folder, PARAMETERS), parameters(model))


def _with_preparation(config: FolderConfig, preparation: CarriedPreparation | None) -> FolderConfig:
    if preparation is None:
        return config.model_copy(update={"format_version": PLAIN_VERSION, "preparation": None})
    return config.model_copy(update={"format_version": FORMAT_VERSION, "preparation": preparation.hashes})


def _load_preparation(folder: str, config: FolderConfig) -> CarriedPreparation | None:
    if config.preparation is None:
        return None
    try:
        return CarriedPreparation.load(os.path.join(folder, PREPARATION), config.preparation)
    except InputError as error:
        raise ModelError(f"{error}; copy the model folder again, the whole of it") from error


def parameters(model: TranslationModel) -> dict[str, Tensor]:
    """The parameters by name, float32 on the CPU, each tied one once."""
    return {name: tensor.detach().float().cpu().contiguous() for name, tensor in model.named_parameters()}


def save_tensors(path: str, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write a safetensors file so that it is there whole or not at all."""
    temporary = f"{path}.tmp"
    save_file(dict(tensors), temporary, metadata=dict(metadata or {}))
    os.replace(temporary, path)


def load_tensors(path: str) -> dict[str, Tensor]:
    """Read a safetensors file. Raises ModelError for a missing or damaged one."""
    try:
        tensors: dict[str, Tensor] = load_file(path)
    except FileNotFoundError:
        raise ModelError(f"{path}: is missing; is this a model folder that was written completely?") from None
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path}: is damaged ({error}); copy or train the model again") from error
    return tensors


def load_model(folder: str, *, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32) -> LoadedModel:
    """Read a model folder for inference. Raises ModelError when it cannot be used."""
    config = read_settings(folder)
    preparation = _load_preparation(folder, config)
    source = Vocabulary.load(os.path.join(folder, SOURCE_VOCABULARY))
    target = Vocabulary.load(os.path.join(folder, TARGET_VOCABULARY))
    path = os.path.join(folder, PARAMETERS)
    tensors = load_tensors(path)
    model = build_model(config.model, len(source), len(target))
    _check_shapes(path, dict(model.named_parameters()), tensors)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[name])
    model = model.to(device=device, dtype=dtype).eval().requires_grad_(False)
    return LoadedModel(model, source, target, config, _fingerprint(path, source, target), folder, preparation)


def read_settings(folder: str) -> FolderConfig:
    """The settings of a model folder. Raises ModelError when they cannot be used."""
    path = os.path.join(folder, SETTINGS)
    if not os.path.isdir(folder):
        raise ModelError(f"{folder}: there is no such model folder")
    try:
        mapping = read_yaml(path)
    except InputError as error:
        raise ModelError(f"{error}; a model folder holds {SETTINGS}, {PARAMETERS} and two vocabularies") from error
    version = mapping.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ModelError(
            f"{path}: the model has format version {version} but this program knows {FORMAT_VERSION}; update hybridmt"
        )
    try:
        return FolderConfig.from_mapping(mapping, origin=path)
    except ConfigError as error:
        raise ModelError(str(error)) from error


def _check_shapes(path: str, expected: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> None:
    """Compare names and shapes; a vocabulary of another length shows here."""
    missing = sorted(expected.keys() - found.keys())
    extra = sorted(found.keys() - expected.keys())
    if missing or extra:
        name, problem = (missing[0], "is missing") if missing else (extra[0], "is not expected")
        raise ModelError(f"{path}: the parameter {name} {problem}; {SETTINGS} describes another model")
    for name, tensor in expected.items():
        if tensor.shape != found[name].shape:
            wanted, there = "x".join(map(str, tensor.shape)), "x".join(map(str, found[name].shape))
            raise ModelError(
                f"{path}: {name} is {there} but {SETTINGS} and the vocabularies ask for {wanted}; "
                "were a vocabulary or the settings changed after training?"
            )


def _fingerprint(path: str, source: Vocabulary, target: Vocabulary) -> str:
    digest = hashlib.sha256(f"{source.fingerprint} {target.fingerprint} ".encode())
    with open(path, "rb") as stream:
        while block := stream.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()[:12]
