"""Which numbers loaded models give: the fingerprints of their directories, and the signature of scores.

The *fingerprint* covers all that a model directory contributes (``settings.fingerprint_of``). The *signature* adds
what this process contributes: precision, device, kernels, processor, versions.
"""

from __future__ import annotations

from collections.abc import Sequence

from nmt_core.device import name_arithmetic, name_precision
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.version import VERSION


def fingerprints(models: Sequence[LoadedModel]) -> str:
    """Those of a model or of an ensemble's members, with ``+`` between them."""
    return "+".join(loaded.fingerprint for loaded in models)


def signature_of(models: Sequence[LoadedModel], *fields: str) -> str:
    """Architectures and fingerprints, the ``fields`` of what is computed, and the arithmetic of the first model."""
    names = "+".join(loaded.config.model.type for loaded in models)
    parameter = next(models[0].model.parameters())
    arithmetic = (f"dtype:{name_precision(parameter)}", name_arithmetic(parameter), f"version:{VERSION}")
    return "|".join([f"nmt:{names}", f"model:{fingerprints(models)}", *fields, *arithmetic])


def with_field(signature: str, field: str) -> str:
    """A signature with one more field, before the version."""
    before, bar, version = signature.rpartition("|version:")
    return f"{before}|{field}{bar}{version}"
