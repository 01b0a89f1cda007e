"""How a translation request wants the search: its options, the model's where it has none, and their bounds."""

from __future__ import annotations

from typing import Any

from nmt_core.errors import NmtError
from nmt_core.inference.search_config import DecodingConfig
from nmt_core.serving.limits import Limits
from nmt_core.serving.refusal import invalid
from nmt_core.v1 import nmt_pb2 as pb

_OPTIONS = ("beam", "nbest", "length_normalization", "max_length_ratio")


def decoding_config(request: pb.TranslateRequest, defaults: DecodingConfig, limits: Limits) -> DecodingConfig:
    """The options of the request. Raises Refusal with the field at fault."""
    given: dict[str, Any] = {name: getattr(request, name) for name in _OPTIONS if request.HasField(name)}
    if request.forbid_unknown:
        given["forbid_unknown"] = True
    for name, most in (
        ("beam", limits.beam),
        ("nbest", limits.nbest),
        ("max_length_ratio", limits.length_ratio),
        ("length_normalization", limits.length_normalization),
    ):
        if name in given and not given[name] <= most:  # a NaN is no number below the limit
            raise invalid(name, f"{name} {given[name]:g}: expected a number of at most {most:g}")
    settings = {**defaults.to_mapping(), **given}
    if "beam" not in given:
        settings["beam"] = max(settings["beam"], settings["nbest"])
    try:
        config = DecodingConfig.from_mapping(settings, origin="request")
    except NmtError as error:
        field = next((name for name in _OPTIONS if f"'{name}'" in str(error)), "")
        raise invalid(field, str(error)) from error
    if config.beam > limits.beam:
        raise invalid("beam", f"a beam of {config.beam}; at most {limits.beam}")
    if config.nbest > config.beam:
        raise invalid("nbest", f"{config.nbest} best translations need a beam of at least {config.nbest}")
    return config
