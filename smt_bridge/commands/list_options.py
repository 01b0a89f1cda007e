"""Options that commands share which read n-best lists: the list, its format, and features."""

from __future__ import annotations

import argparse

from nmt_core.files import InputFile

_WITHOUT_FILE = ("mbrbleu", "mbrchrf")  # features whose argument is a kind of weights


class FeatureSpec(InputFile):
    """``kenlm:FILE``, ``mbrbleu:posterior``, ``wordcount``; ``path`` is also the directory of a model."""

    @property
    def path(self) -> str:
        """The file; empty where the feature takes none."""
        name, _, file = self.partition(":")
        return "" if name in _WITHOUT_FILE else file


def add_nbest_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare ``--nbest``, which must be given, and ``--nbest-format``."""
    parser.add_argument(
        "--nbest",
        type=InputFile,
        required=True,
        metavar="FILE",
        help="n-best list, plain, gzip, xz or zstd, '-' for stdin",
    )
    add_format_argument(parser)


def add_format_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--nbest-format``; its value is the ``format`` of ``read_entries`` and ``ordered_lists``."""
    parser.add_argument(
        "--nbest-format",
        default="auto",
        metavar="NAME",
        help="moses, factors:N, scored, fairseq, json, tabs or lines:N (auto: by the first lines, but for lines:N)",
    )


def add_feature_argument(parser: argparse._ActionsContainer, *, help: str) -> None:
    """Declare ``--feature``, which may be repeated."""
    parser.add_argument("--feature", type=FeatureSpec, action="append", default=[], metavar="NAME[:ARG]", help=help)
