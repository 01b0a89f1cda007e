"""The lines that ``nmt-core decode`` writes, and those of n-best lists, as Moses has them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence

from nmt_core.base.errors import ConfigError
from nmt_core.inference.output.alignment import line_writer
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.output.heatmap import load_figure_class, write_heatmap
from nmt_core.text.nbest_line import check_feature_name, nbest_line


def distinct(args: argparse.Namespace, found: Sequence[Translation]) -> list[Translation]:
    """Of translations with the same text the first, as many as are wanted."""
    texts: dict[str, Translation] = {}
    for translation in found:
        texts.setdefault(translation.text, translation)
    return list(texts.values())[: args.sample or args.nbest]


Writer = Callable[[int, "list[Translation]"], Iterable[str]]
"""The lines that the translations of a source line, whose number counts from 0, make in a file."""


def open_writers(args: argparse.Namespace) -> list[Writer]:
    """What makes the lines of ``--output``, and of ``--alignments`` where it is given. Raises ConfigError."""
    writers = [_writer(args)]
    if args.alignments:
        line_of = line_writer(args.alignments)
        writers.append(lambda _, found: map(line_of, found))
    return writers


def make_heatmap_folder(folder: str) -> None:
    """The folder of ``--heatmaps``, made before the work begins; an error where nothing could be drawn."""
    load_figure_class()
    os.makedirs(folder, exist_ok=True)


def draw_heatmaps(folder: str, translations: Iterable[Sequence[Translation]], *, first: int) -> None:
    """A picture of the best translation of each line with words; the number of the first line counts from 0."""
    for number, found in enumerate(translations, start=first + 1):
        if found[0].source_words:
            write_heatmap(os.path.join(folder, f"{number}.png"), found[0])


def encoded_lines(lines: Iterable[str]) -> bytes:
    """Lines as they stand in a file."""
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _writer(args: argparse.Namespace) -> Writer:
    many = args.nbest > 1 or (args.sample or 1) > 1
    if args.sample and args.nbest > 1:
        raise ConfigError("--sample and --nbest exclude one another; --sample N writes N translations a line")
    if many and args.scores:
        raise ConfigError("n-best lists hold the scores already; leave out --scores")
    if args.distinct and not many:
        raise ConfigError("--distinct is for --nbest and --sample")
    check_feature_name(args.feature_name)
    if many:
        return lambda number, found: (_nbest_line(number, one, name=args.feature_name) for one in found)
    if args.scores:
        return lambda _, found: [f"{found[0].log_prob:.6f}\t{found[0].text}"]
    return lambda _, found: [found[0].text]


def _nbest_line(number: int, translation: Translation, *, name: str) -> str:
    lm = "" if translation.lm_log_prob is None else f" LM0= {translation.lm_log_prob:.6f}"
    return nbest_line(number, translation.text, f"{name}= {translation.log_prob:.6f}{lm}", translation.score)
