"""The options of ``nmt-core decode`` and ``tune-lm`` about search and sampling; bounds are those of the configs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt_core.inference.search.config import DecodingConfig, SamplingConfig


def add_search_options(group: argparse._ArgumentGroup) -> None:
    """How to search."""
    add = group.add_argument
    add("--beam", type=int, metavar="K", help="hypotheses followed (default: 12, or N of --nbest if more)")
    add("--length-normalization", type=float, metavar="A", help="rank by log p / length^A (default: 1)")
    add("--length-penalty", type=float, metavar="A", help="rank by log p / ((5 + length) / 6)^A, as GNMT does")
    add(
        "--coverage-penalty",
        type=float,
        metavar="B",
        help="add B x sum over source words of log min(its attention, 1), as GNMT does (needs attention)",
    )
    add("--no-repeat-ngram", type=int, metavar="N", help="no N words twice in a translation")
    add("--min-length", type=int, metavar="N", help="at least N words")
    add("--max-length-ratio", type=float, metavar="R", help="at most R x source words + 10 (default: 2)")
    add("--forbid-unk", action="store_true", help="never write <unk>")
    add(
        "--candidates",
        type=int,
        metavar="K",
        help="look at the K most frequent words and the likeliest translations of the source words in --lexicon alone",
    )
    add(
        "--candidates-replace",
        action="store_true",
        help="K words in all: those of --lexicon take the place of the least frequent, as WMT'15's systems had it",
    )
    add("--candidates-per-word", type=int, default=10, metavar="K", help="from --lexicon, a source word (default: 10)")


def add_sampling_options(group: argparse._ArgumentGroup) -> None:
    """How to sample."""
    add = group.add_argument
    add("--sample", type=int, metavar="N", help="draw N translations instead of searching")
    add("--temperature", type=float, metavar="T", help="of --sample (default: 1)")
    add("--top-k", type=int, metavar="K", help="draw from the K likeliest words of each step (default: from all)")
    add("--seed", type=int, metavar="N", help="of --sample (default: 1)")


_BOTH = ("length_normalization", "length_penalty", "min_length", "max_length_ratio", "forbid_unknown")
_SEARCH = ("beam", "coverage_penalty", "no_repeat_ngram")
_SAMPLING = ("temperature", "top_k", "seed")


def search_config(args: argparse.Namespace) -> DecodingConfig | SamplingConfig:
    """What the options ask for. Raises ConfigError for numbers out of bounds and options that do not go together."""
    from nmt_core.inference.search.config import DecodingConfig, SamplingConfig

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
    from nmt_core.base.errors import ConfigError

    for field in fields:
        if getattr(args, field) is not None:
            raise ConfigError(f"--{field.replace('_', '-')} {problem}")
