"""The settings ``config.yaml`` of a model directory, and the fingerprint of the model.

The fingerprint covers all that the directory contributes to a number: tensors, the settings that enter arithmetic,
vocabularies, and the preparation of text (rules, languages, learned models). How a model was trained is no part of it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from nmt_core.base.errors import ConfigError, InputError, ModelError
from nmt_core.config import Config, read_yaml
from nmt_core.files.reading import check_regular, reason
from nmt_core.model_directory.directory import SETTINGS
from nmt_core.models.build import ModelConfig, settings_beside_parameters
from nmt_core.preparation.bundled import BundledPreprocessor
from nmt_core.text.copying import CopyScheme
from nmt_core.text.processing import TextConfig
from nmt_core.text.sentence import TargetOrder
from nmt_core.text.vocabulary import Vocabulary

FORMAT_VERSION = 7  # docs/formats.md has what each version added
_DIGITS = 12
_GONE: Mapping[str, Any] = {  # options of models in older directories, with the values that said nothing
    "residual": False,
    "gate_biases": False,
    "encoder_depth": 1,
    "decoder_depth": 1,
    "layer_dropout": 0.0,
    "variational_dropout": 0.0,
    "word_dropout": 0.0,
    "source_factors_combine": "concat",
}


class FolderConfig(Config):
    """What ``config.yaml`` of a model directory says.

    ``files`` has the names of those files that have another than their plain name, ``preparation`` the SHA-256 of each
    file of the preparation. ``target_order`` is the order in which the model writes; a change of it makes another model
    of the same weights. ``copying`` is how its text is annotated, ``lexicon`` the SHA-256 of the lexicon that it
    carries for that.
    """

    format_version: int = FORMAT_VERSION
    files: dict[str, Annotated[str, Field(pattern=r"^(preparation/)?[^/]+$")]] = Field(default_factory=dict)
    model: ModelConfig
    text: TextConfig = TextConfig()
    target_order: TargetOrder = TargetOrder.LEFT_TO_RIGHT
    preparation: dict[str, str] | None = None
    copying: CopyScheme | None = None
    lexicon: str | None = None
    trained_with: dict[str, Any] = Field(default_factory=dict)

    def path(self, folder: str, name: str) -> str:
        """Where the file of a plain name is in the directory with these settings."""
        return os.path.join(folder, self.files.get(name, name))


def read_settings(folder: str) -> FolderConfig:
    """The settings of a model directory. Raises ModelError when they cannot be used."""
    path = os.path.join(folder, SETTINGS)
    try:
        os.scandir(folder).close()
    except (OSError, ValueError) as error:
        problem = "there is no such model directory" if isinstance(error, FileNotFoundError) else reason(error)
        raise ModelError(f"{folder}: {problem}") from error
    try:
        check_regular(path)
        mapping = read_yaml(path)
    except InputError as error:
        raise ModelError(f"{error}; a model directory holds {SETTINGS}, parameters and two vocabularies") from error
    version = mapping.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelError(f"{path}: expected a format_version from 1 to {FORMAT_VERSION}, not {str(version)[:40]}")
    if version > FORMAT_VERSION:
        problem = f"the model has format version {version} but this program knows {FORMAT_VERSION}; update hybridmt"
        raise ModelError(f"{path}: {problem}")
    try:
        return FolderConfig.from_mapping({**mapping, "model": _without_gone(mapping.get("model"))}, origin=path)
    except ConfigError as error:
        raise ModelError(str(error)) from error


def _without_gone(model: Any) -> Any:
    """The settings of a model without options that are gone and said nothing; of others the message names the key."""
    if not isinstance(model, dict):
        return model
    gone = {**_GONE, "depth": 1} if model.get("type") == "rnnlm" else dict(_GONE)
    if model.get("tied"):  # which took no notice of a rank
        gone["output_rank"] = model.get("output_rank")
    return {key: _without_gone(value) for key, value in model.items() if key not in gone or value != gone[key]}


def check_no_model(folder: str) -> None:
    """Raises ConfigError where a directory holds a model."""
    if os.path.exists(os.path.join(folder, SETTINGS)):
        raise ConfigError(f"{folder}: holds a model already; remove it or choose another directory")


def fingerprint_of(
    parameters: str, vocabularies: Sequence[Vocabulary], config: FolderConfig, preparation: BundledPreprocessor | None
) -> str:
    """Twelve hexadecimal digits that change with anything in the directory that decides a number.

    ``parameters`` is the file of the tensors, all bytes of which count.
    """
    decides = {
        "type": config.model.type,
        "settings": settings_beside_parameters(config.model),
        "target_order": config.target_order,
        "vocabularies": [one.fingerprint for one in vocabularies],
        "text": config.text.to_mapping(),
        "preparation": None if preparation is None else preparation.fingerprint,
        "copying": config.copying,
        "lexicon": config.lexicon,
    }
    digest = hashlib.sha256(json.dumps(decides, sort_keys=True).encode())
    with open(parameters, "rb") as stream:
        hashlib.file_digest(stream, lambda: digest)
    return digest.hexdigest()[:_DIGITS]
