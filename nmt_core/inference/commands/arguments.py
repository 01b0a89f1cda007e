"""The arguments of ``nmt-core decode`` that say several things, and which exclude, or require, one another.

Command lines are checked with this module before anything is loaded, so that it imports neither torch nor NumPy.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import math
import os
from typing import Annotated, Any, NamedTuple

from pydantic import Field, field_validator

from nmt_core.base.errors import ConfigError
from nmt_core.base.words import whole_number
from nmt_core.config import Config, YamlProblem, parse_yaml
from nmt_core.files import InputFile, OutputDirectory, OutputFile
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig

_NO_KEYS = ("beam", "nbest", "by_text", "max_length_extra")  # options of their own, and constants


class SearchOptions(DecodingConfig, SamplingConfig):
    """The keys: those of search, those of sampling, which ``samples`` asks for, and what only commands have.

    ``candidates`` and the two keys like it are as in ``CandidateLists``; ``guidance_...`` is for ``--guidance``.
    Without ``batch_tokens`` the device decides. ``distinct`` keeps the first of translations with the same text.
    """

    batch_tokens: int | None = Field(default=None, ge=1)
    candidates: int | None = Field(default=None, ge=1)
    candidates_per_word: int = Field(default=10, ge=0)
    candidates_replace: bool = False
    distinct: bool = False
    guidance_weight: float = Field(default=0.3, ge=0.0, le=1000.0)
    guidance_factors: tuple[Annotated[float, Field(ge=0.0, le=1000.0)], ...] = Field(default=(), max_length=9)
    guidance_joined: bool = False

    @field_validator("guidance_factors", mode="before")
    @classmethod
    def _cut_at_commas(cls, value: Any) -> Any:
        found = parse_yaml(f"[{value}]") if isinstance(value, str) else value
        return tuple(found) if isinstance(found, list) else (found,) if isinstance(found, (int, float)) else found

    def given_for(self, kind: type[Config]) -> dict[str, Any]:
        """What the user has set, of the settings that ``kind`` has."""
        return {key: getattr(self, key) for key in self.model_fields_set & kind.model_fields.keys()}


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


class LanguageModel(InputFile):
    """The type of ``PATH=WEIGHT``: a file is an n-gram model, a directory a neural language model."""

    def __init__(self, text: str) -> None:
        path, _, weight = text.rpartition("=")
        try:
            self.weight = float(weight)
        except ValueError:
            self.weight = math.nan
        if not path or not 0.0 <= self.weight < math.inf:
            raise argparse.ArgumentTypeError(f"expected PATH=WEIGHT with a weight from 0 up, found {text!r}")

    @property
    def path(self) -> str:
        """The file or the directory."""
        return self.rpartition("=")[0]

    @property
    def is_neural(self) -> bool:
        """Whether it is a model directory."""
        return os.path.isdir(self.path)


def alignment_output(text: str) -> OutputFile | OutputDirectory:
    """The ``type`` of ``--alignments``; a name that ends with a slash is a directory of pictures."""
    return OutputDirectory(text) if text.endswith("/") else OutputFile(text)


class WordLimit(NamedTuple):
    """The most words of a line, and whether a longer one is split; else it is an error."""

    words: int
    splits: bool


def word_limit(text: str) -> WordLimit:
    """The ``type`` of ``N[,split]``."""
    number, comma, what = text.partition(",")
    words = whole_number(number)
    if words is None or words < 1 or (comma and what != "split"):
        raise argparse.ArgumentTypeError(f"expected N or N,split with a whole number from 1 up, found {text!r}")
    return WordLimit(words, bool(comma))


SPLIT = "--max-words N,split"
_OF_SEARCH = DecodingConfig.model_fields.keys() - SamplingConfig.model_fields.keys()
_OF_SAMPLES = SamplingConfig.model_fields.keys() - DecodingConfig.model_fields.keys() - {"samples"}
_MARKUP = ("--xml-input exclusive", "--xml-input inclusive")
_WISHES = ("--prefix", "--constraints", *_MARKUP, "--xml-input ignore")

_EXCLUDED = (
    (_WISHES, "is for tokenised text, in the words of the model", ("--raw",)),
    (("--prefix", "--constraints", *_MARKUP, "--lm", "--beam"), "is for search", ("--search samples",)),
    (tuple(f"--search {key}" for key in sorted(_OF_SEARCH)), "is for search", ("--search samples",)),
    (("--guidance",), "is for search among all words of tokenised text",
     ("--raw", "--search samples", "--search candidates")),
    (("--search samples",), "writes N translations a line already", ("--nbest",)),
    (("--nbest", "--search samples=N"), "writes an n-best list, which holds the scores", ("--scores",)),
    (("--replace-unk",), "needs an <unk> to replace", ("--search forbid_unknown",)),
    ((SPLIT,), "writes one translation a line",
     (*_WISHES, "--nbest", "--search samples", "--alignments", "--guidance")),
)  # fmt: skip
"""Options, why they exclude others, and which."""

_REQUIRED = (
    (tuple(f"--search {key}" for key in sorted(_OF_SAMPLES)), ("--search samples",)),
    (("--search distinct",), ("--nbest", "--search samples")),
    (("--search candidates_replace",), ("--search candidates",)),
    (("--search guidance_weight", "--search guidance_factors", "--search guidance_joined"), ("--guidance",)),
    (("--lexicon",), ("--replace-unk lexicon", "--replace-unk lexicon-lowercase", "--search candidates")),
)
"""Options, and others of which they require one."""


def _given(args: argparse.Namespace, search: SearchOptions) -> set[str]:
    """The names of the options given, where others depend on them."""
    values = vars(args)
    names = ("beam", "lm", "prefix", "constraints", "guidance", "raw", "scores", "alignments", "replace_unk", "lexicon")
    given = {f"--{name.replace('_', '-')}" for name in names if _is_given(values.get(name))}
    given |= {f"--search {key}" for key in search.model_fields_set if _is_given(getattr(search, key))}
    given |= {f"--xml-input {values.get('xml_input')}", f"--replace-unk {args.replace_unk}"}
    others = {
        "--nbest": values.get("nbest", 1) > 1,
        "--search samples=N": search.samples > 1,
        SPLIT: "max_words" in values and args.max_words.splits,
    }
    return given | {name for name, is_given in others.items() if is_given}


def _is_given(value: object) -> bool:
    return value is not None and value is not False and value != []


def check_together(args: argparse.Namespace, search: SearchOptions) -> None:
    """Raise ConfigError for options that exclude one another, or lack one that they require."""
    given = _given(args, search)
    for options, why, excluded in _EXCLUDED:
        for one, other in itertools.product(options, excluded):
            if {one, other} <= given:
                raise ConfigError(f"{one} {why}; leave out {other}")
    for options, required in _REQUIRED:
        for one in options:
            if one in given and given.isdisjoint(required):
                raise ConfigError(f"{one} is for {' or '.join(required)}; give that, too, or leave out {one}")
