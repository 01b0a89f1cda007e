"""The maps of `analyse --vectors`: from the table's phrases and a model to what is drawn."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nmt_core.inference.embed import Vectors
    from scripts.experiments.cho2014.encoders import Encoder
    from scripts.experiments.cho2014.map_page import Maps, Measured
    from scripts.experiments.cho2014.maps import Map
    from scripts.experiments.cho2014.phrase_sample import Sample

_WORDS = 2000  # of Figure 4
_POINTS = 5000


def add_map_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument_group("maps of words and phrases").add_argument
    add(
        "--vectors",
        metavar="SPEC",
        help="model whose vectors are drawn: DIR or grpc:HOST:PORT[/MODEL]",
    )
    add("--points", type=int, metavar="N", help=f"source phrases drawn ({_POINTS}, or all that are long)")
    add("--side", choices=("source", "target"), help="of the words that are drawn (source)")
    add("--perplexity", type=float, metavar="P", help="of t-SNE (30, or a third of the points if that is less)")
    add("--zoom", action="append", metavar="PHRASE", help="also draw what is near to this phrase; may be repeated")


def check_maps(args: argparse.Namespace) -> None:
    """Raise ConfigError for options that do not fit, and ModuleNotFoundError where the library is not installed."""
    from scripts.experiments.cho2014.maps import library
    from scripts.experiments.cho2014.specs import check_specs

    if args.vectors is None:
        for name in ("points", "side", "perplexity", "zoom"):
            if getattr(args, name) is not None:
                raise ConfigError(f"--{name} is for maps: give a model with --vectors")
        return
    if args.points is not None and args.points < 1:
        raise ConfigError("--points must be at least 1")
    if not 0 <= args.seed < 1 << 32:
        raise ConfigError("--seed must be from 0 to 4294967295 for maps")
    check_specs([args.vectors])
    library()


def check_words(args: argparse.Namespace, phrases: Sequence[str], option: str) -> None:
    """Raise FormatError for phrases of the table with factors which the model of ``option`` does not read."""
    from smt_bridge.errors import FormatError
    from smt_bridge.models import source_factors
    from smt_bridge.moses_lines import look_factored

    factored = look_factored(phrase.encode("utf-8", "replace") for phrase in phrases)
    if factored and not source_factors(getattr(args, option)):
        problem = f"the words have factors (das|ART), which the model of --{option} does not read; leave it out"
        raise FormatError(args.table, problem)


def make_maps(args: argparse.Namespace) -> Maps:
    """Both maps. Raises ConfigError for more points than there are, and for too few."""
    from scripts.experiments.cho2014 import maps
    from scripts.experiments.cho2014.encoders import encode, open_encoder
    from scripts.experiments.cho2014.map_page import ZOOMED, Maps
    from scripts.experiments.cho2014.phrase_sample import Sample

    points = args.points or _POINTS
    sample = Sample(args.table, minimum_words=args.minimum_words, points=points, seed=args.seed)
    if args.points is not None and sample.available < args.points:
        there = f"{args.table} has {counted(sample.available, 'source phrase')}"
        raise ConfigError(f"--points {args.points}: {there} of {counted(args.minimum_words, 'word')} or more")
    zoomed = [" ".join(phrase.split()) for phrase in args.zoom or ()]
    texts = list(dict.fromkeys([*zoomed, *sample.phrases]))
    check_words(args, sample.phrases, "vectors")
    perplexity = maps.check_points(len(texts), args.perplexity, "phrases")
    encoder = open_encoder(args.vectors)
    words = _map_of_words(args, encoder)
    vectors_ND = encode(encoder, texts)
    phrases = maps.project(texts, vectors_ND, perplexity=perplexity, seed=args.seed)
    zooms = [(phrase, maps.zoom(phrases, phrase, points=ZOOMED)) for phrase in dict.fromkeys(zoomed)]
    made = f"t-SNE (Barnes-Hut, perplexity {perplexity:.4g}, seed {args.seed}, {maps.library()})"
    return Maps(words, phrases, zooms, _measured(encoder, sample, texts, vectors_ND), f"{made} of {encoder.signature}.")


def _map_of_words(args: argparse.Namespace, encoder: Encoder) -> Map | None:
    from scripts.experiments.cho2014 import maps
    from scripts.experiments.cho2014.encoders import words_of

    found = words_of(encoder, args.side or "source", _WORDS)
    if found is None:
        return None
    perplexity = maps.check_points(len(found.words), args.perplexity, "words")
    return maps.project(found.words, found.vectors, perplexity=perplexity, seed=args.seed)


def _measured(encoder: Encoder, sample: Sample, texts: list[str], vectors_ND: Vectors) -> Measured:
    import numpy as np

    from scripts.experiments.cho2014 import maps
    from scripts.experiments.cho2014.encoders import encode, words_of
    from scripts.experiments.cho2014.map_page import Measured

    pairs = sample.reordered()
    told_apart = None
    if pairs:
        first, second = (encode(encoder, [pair[side] for pair in pairs]) for side in (0, 1))
        paired = frozenset(phrase for pair in pairs for phrase in pair)  # a phrase is not among its own neighbours
        told_apart = maps.share_told_apart(first, second, vectors_ND[[text not in paired for text in texts]])
    bags = None
    if (known := words_of(encoder, "source", 1 << 31)) is not None:
        rows = dict(zip(known.words, known.vectors, strict=True))
        nothing = np.zeros(known.vectors.shape[1], dtype=np.float32)
        bags = maps.shares_of_neighbours(texts, maps.bags_of_words(texts, lambda word: rows.get(word, nothing)))
    return Measured(maps.shares_of_neighbours(texts, vectors_ND), bags, told_apart, len(pairs))
