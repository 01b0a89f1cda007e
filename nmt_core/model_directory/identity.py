"""What decides a model's numbers, described once: the fingerprint of its directory, and the signature of scores.

The *fingerprint* covers all that a model directory contributes: tensors, the settings that enter arithmetic,
vocabularies, and the preparation of text (rules, languages, learned models). How a model was trained is no part of it.
The *signature* adds what this process contributes: precision, device, kernels, processor, versions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt_core.device import name_arithmetic, name_precision
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import settings_beside_parameters
from nmt_core.preparation.bundled import BundledPreprocessor
from nmt_core.text.vocabulary import Vocabulary
from nmt_core.version import VERSION

if TYPE_CHECKING:
    from nmt_core.model_directory.loaded_model import LoadedModel

_DIGITS = 12
_BLOCK = 1 << 22


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
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()[:_DIGITS]


def fingerprints(models: Sequence[LoadedModel]) -> str:
    """Those of a model or of an ensemble's members, with ``+`` between them."""
    return "+".join(loaded.fingerprint for loaded in models)


def signature_of(models: Sequence[LoadedModel], *fields: str) -> str:
    """Architectures and fingerprints, the ``fields`` of what is computed, and the arithmetic of the first model."""
    names = "+".join(loaded.config.model.type for loaded in models)
    parameter = next(models[0].model.parameters())
    arithmetic = (f"dtype:{name_precision(parameter)}", name_arithmetic(parameter), f"version:{VERSION}")
    return "|".join([f"nmt:{names}", f"model:{fingerprints(models)}", *fields, *arithmetic])
