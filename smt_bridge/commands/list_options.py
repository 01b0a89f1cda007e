"""Options that commands share which read n-best lists: the list, its format, and features."""

from __future__ import annotations

import argparse

from nmt_core.files import InputBehind, InputFile


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
    """Declare ``--nbest-format``; its value is the ``dialect`` of ``read_entries`` and ``ordered_lists``."""
    parser.add_argument(
        "--nbest-format",
        default="auto",
        metavar="NAME",
        help="moses, factors:N, scored, fairseq, json, tabs or lines:N (auto: by the first lines, but for lines:N)",
    )


_WITHOUT_FILE = ("mbrbleu", "mbrchrf")  # whose argument is a kind of weights


class FeatureSpec(InputBehind):
    """``kenlm:FILE``, ``mbrbleu:posterior``, ``wordcount``; ``file`` is also the folder of a model."""

    separator = ":"

    @property
    def file(self) -> InputFile | None:
        """The file, None where the feature takes none."""
        return None if self.partition(":")[0] in _WITHOUT_FILE else super().file


def add_feature_argument(parser: argparse._ActionsContainer, *, help: str) -> None:
    """Declare ``--feature``, which may be repeated."""
    parser.add_argument("--feature", type=FeatureSpec, action="append", default=[], metavar="NAME[:ARG]", help=help)
