"""The arguments of ``nmt-core decode`` about search, and which arguments exclude, or require, one another.

Command lines are checked with this module before anything is loaded, so that it imports neither torch nor NumPy.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import math
from typing import Annotated, Any

from pydantic import Field, field_validator

from nmt_core.base.errors import ConfigError
from nmt_core.config import YamlProblem, parse_yaml
from nmt_core.files import InputFile
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.transformer import TRANSFORMERS

_NO_KEYS = ("beam", "nbest", "by_text", "max_length_extra")  # options of their own, and constants


class SearchOptions(DecodingConfig, SamplingConfig):
    """The keys: those of search, those of sampling, which ``samples`` asks for, and what only commands have.

    ``candidates`` and ``candidates_per_word`` are as in ``CandidateLists``; ``guidance_...`` is for ``--guidance``.
    Without ``batch_tokens`` the device decides. ``distinct`` keeps the first of translations with the same text.
    """

    batch_tokens: int | None = Field(default=None, ge=1)
    candidates: int | None = Field(default=None, ge=1)
    candidates_per_word: int = Field(default=10, ge=0)
    distinct: bool = False
    guidance_weight: float = Field(default=0.3, ge=0.0, le=1000.0)
    guidance_factors: tuple[Annotated[float, Field(ge=0.0, le=1000.0)], ...] = Field(default=(), max_length=9)
    guidance_joined: bool = False

    @field_validator("guidance_factors", mode="before")
    @classmethod
    def _cut_at_commas(cls, value: Any) -> Any:
        found = parse_yaml(f"[{value}]") if isinstance(value, str) else value
        return tuple(found) if isinstance(found, list) else (found,) if isinstance(found, (int, float)) else found


KEYS = tuple(key for key in SearchOptions.model_fields if key not in _NO_KEYS)


def search_value(text: str) -> tuple[str, Any]:
    """The ``type`` of ``--search``: a key and its value; a key alone is true."""
    key, equals, value = text.partition("=")
    if key not in KEYS:
        near = difflib.get_close_matches(key, KEYS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(KEYS)}"
        raise argparse.ArgumentTypeError(f"there is no key {key!r}; {hint}")
    try:
        found = parse_yaml(value) if equals else True
        SearchOptions.from_mapping({key: found}, origin=text)
    except (ConfigError, YamlProblem) as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return key, found


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


class LanguageModel(InputFile):
    """The type of ``FILE=WEIGHT``, an n-gram model and its weight."""

    def __init__(self, text: str) -> None:
        path, _, weight = text.rpartition("=")
        try:
            self.weight = float(weight)
        except ValueError:
            self.weight = math.nan
        if not path or not 0.0 <= self.weight < math.inf:
            raise argparse.ArgumentTypeError(f"expected FILE=WEIGHT with a weight from 0 up, found {text!r}")

    @property
    def path(self) -> str:
        """The file."""
        return self.rpartition("=")[0]


_MARKUP = ("--xml-input exclusive", "--xml-input inclusive")
_TRANSFORMER = "--model ct2:DIR or hf:DIR"
_NOT_OF_TRANSFORMERS = (
    *_MARKUP, "--xml-input ignore", "--guidance", "--lm", "--replace-unk", "--lexicon", "--alignments",
    "--per-word", "--word-alignment", "--softmax none",
    *(f"--search {key}" for key in KEYS if key != "forbid_unknown"),
)  # fmt: skip

_EXCLUDED = (
    ((*_MARKUP, "--xml-input ignore"), "is for tokenised text, in the words of the model", ("--raw",)),
    ((*_MARKUP, "--lm", "--beam"), "is for search", ("--search samples",)),
    (("--guidance",), "is for search among all words of tokenised text",
     ("--raw", "--search samples", "--search candidates")),
    (("--search samples",), "writes N translations a line already", ("--nbest",)),
    (("--nbest", "--search samples=N"), "writes an n-best list, which holds the scores", ("--scores",)),
    (("--replace-unk",), "needs an <unk> to replace", ("--search forbid_unknown",)),
    ((_TRANSFORMER,), "takes and writes words as they are, with one number a text, and searches by beam alone",
     _NOT_OF_TRANSFORMERS),
)  # fmt: skip
"""Options, why they exclude others, and which."""

_REQUIRED = (
    (("--search seed", "--search temperature"), ("--search samples",)),
    (("--search distinct",), ("--nbest", "--search samples")),
    (("--search guidance_weight", "--search guidance_factors", "--search guidance_joined"), ("--guidance",)),
    (("--lexicon",), ("--replace-unk lexicon", "--replace-unk lexicon-lowercase", "--search candidates")),
)
"""Options, and others of which they require one."""


def check_together(args: argparse.Namespace, search: SearchOptions) -> None:
    """Raise ConfigError for options that exclude one another, or lack one that they require."""
    values = {f"--{name.replace('_', '-')}": value for name, value in vars(args).items()}
    values |= {f"--search {key}": getattr(search, key) for key in search.model_fields_set}
    values |= {f"{name} {values.get(name)}": True for name in ("--xml-input", "--replace-unk", "--softmax")}
    values[_TRANSFORMER] = args.model.startswith(TRANSFORMERS)
    values |= {"--nbest": values.get("--nbest", 1) > 1, "--search samples=N": search.samples > 1}
    given = {name for name, value in values.items() if value is not None and value is not False}
    for options, why, excluded in _EXCLUDED:
        for one, other in itertools.product(options, excluded):
            if {one, other} <= given:
                raise ConfigError(f"{one} {why}; leave out {other}")
    for options, required in _REQUIRED:
        for one in options:
            if one in given and given.isdisjoint(required):
                raise ConfigError(f"{one} is for {' or '.join(required)}; give that, too, or leave out {one}")
