"""The options of ``decode`` and ``tune-lm`` about search and unknown words."""

from __future__ import annotations

import argparse

from nmt_core.files import InputFile
from nmt_core.inference.commands.arguments import search_value


def add_search(group: argparse._ActionsContainer) -> None:
    """``--beam`` and ``--search``."""
    add = group.add_argument
    add("--beam", type=int, metavar="K", help="hypotheses followed (default: 12, or N of --nbest if more)")
    add(
        "--search",
        type=search_value,
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="more about the search, or samples instead; the keys are below",
    )


def add_unknown_words(group: argparse._ActionsContainer) -> None:
    """What is written for unknown words."""
    group.add_argument(
        "--replace-unk",
        choices=("copy", "lexicon", "lexicon-lowercase"),
        help="write the source word with the most attention instead of <unk>, or its lexicon entry (needs attention, or"
        " a model of annotated text)",
    )
    group.add_argument(
        "--lexicon", type=InputFile, metavar="F", help="target-source-probability lines; see 'nmt-core lexicon'"
    )


SEARCH_KEYS = """\
keys of --search (a key alone is true):
  length_normalization=A   rank by log p / length^A (1)
  min_length=N             at least N words
  max_length_ratio=R       at most R x source words + 10 (2)
  forbid_unknown           never write <unk>
  batch_tokens=N           source words of a batch (1000; on a GPU one for each 4 MiB of its memory)
  candidates=K             the K most frequent words and the likeliest words of the source words in --lexicon alone
  candidates_per_word=K    words that --lexicon gives a source word (10)
"""
