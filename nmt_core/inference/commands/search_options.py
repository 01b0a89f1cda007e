"""The options of ``nmt-core decode`` and ``tune-lm`` about search and sampling; bounds are those of the configs."""

from __future__ import annotations

import argparse
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig

_BOTH = ("length_normalization", "length_penalty", "min_length", "max_length_ratio", "forbid_unknown")


_SEARCH = ("beam", "coverage_penalty", "no_repeat_ngram")


_SAMPLING = ("temperature", "top_k", "seed")


def search_config(args: argparse.Namespace) -> DecodingConfig | SamplingConfig:
    """What the options ask for. Raises ConfigError for numbers out of bounds and options that do not go together."""
    sampling = args.sample is not None
    _refuse(
        args, _SEARCH if sampling else _SAMPLING, "is for search; leave out --sample" if sampling else "is for --sample"
    )
    given = _given(args, (*_BOTH, *(_SAMPLING if sampling else _SEARCH)))
    if sampling:
        return SamplingConfig.from_mapping(given | {"samples": args.sample}, origin="decode")
    beam = given.setdefault("beam", max(12, args.nbest))
    # a language model, or the search for different texts, chooses among the whole beam
    given["nbest"] = max(beam, args.nbest) if args.lm or getattr(args, "distinct", False) else args.nbest
    return DecodingConfig.from_mapping(given, origin="decode")


def _given(args: argparse.Namespace, fields: tuple[str, ...]) -> dict[str, Any]:
    """The fields that were given."""
    values = {field: getattr(args, "forbid_unk" if field == "forbid_unknown" else field) for field in fields}
    return {field: value for field, value in values.items() if value is not None}


def _refuse(args: argparse.Namespace, fields: tuple[str, ...], problem: str) -> None:
    for field in fields:
        if getattr(args, field) is not None:
            raise ConfigError(f"--{field.replace('_', '-')} {problem}")
