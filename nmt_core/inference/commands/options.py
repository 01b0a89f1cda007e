"""The options of ``nmt-core decode`` and ``tune-lm`` as one object, which is made once and holds what goes together."""

from __future__ import annotations

import argparse
import itertools
from dataclasses import dataclass, replace

from nmt_core.base.errors import ConfigError
from nmt_core.device import choose_device, usual_batch_tokens
from nmt_core.inference.commands.arguments import LanguageModel, SearchOptions
from nmt_core.inference.search.config import USUAL_ROWS, DecodingConfig, SamplingConfig

SPLIT = "--max-words N,split"


@dataclass(frozen=True, kw_only=True)
class TranslatorOptions:
    """Models, and how they search or sample (``config``); ``search`` has what else ``--search`` says.

    ``fused`` is the language model that takes part in search, ``reranking`` one that reranks its beam.
    """

    models: tuple[str, ...]
    device: str
    dtype: str
    search: SearchOptions
    config: DecodingConfig | SamplingConfig
    replace_unk: str | None
    lexicon: str | None
    fused: LanguageModel | None = None
    reranking: LanguageModel | None = None
    attention: bool = False


def translator_options(args: argparse.Namespace, *, nbest: int = 1, whole_beam: bool) -> TranslatorOptions:
    """What the commands share. Raises ConfigError for what does not go together.

    A job notes ``batch_tokens``, so the device's number is among them.
    """
    usual = usual_batch_tokens(choose_device(args.device))
    search = SearchOptions.from_mapping({"batch_tokens": usual, **dict(args.search)}, origin="--search")
    _check_together(_given(args, search))
    config: DecodingConfig | SamplingConfig
    if "samples" in search.model_fields_set:
        config = SamplingConfig.from_mapping(search.given_for(SamplingConfig), origin="--search")
    else:
        beam = max(USUAL_ROWS, nbest) if args.beam is None else args.beam
        numbers = {"beam": beam, "nbest": max(beam, nbest) if whole_beam else nbest}
        config = DecodingConfig.from_mapping({**search.given_for(DecodingConfig), **numbers}, origin="decode")
    named = {name: getattr(args, name) for name in ("device", "dtype", "replace_unk", "lexicon")}
    return TranslatorOptions(models=tuple(args.model.split(",")), search=search, config=config, **named)


def decode_options(args: argparse.Namespace) -> TranslatorOptions:
    """Those of ``decode``. Raises ConfigError for what does not go together, and for an unknown device."""
    # a language model, or the search for different texts, chooses among the whole beam
    whole_beam = bool(args.lm or dict(args.search).get("distinct"))
    options = translator_options(args, nbest=args.nbest, whole_beam=whole_beam)
    return replace(
        options,
        fused=_language_model(args.lm, "model directory"),
        reranking=_language_model(args.lm, "n-gram model"),
        attention=bool(args.alignments),
    )


def _language_model(given: list[LanguageModel], kind: str) -> LanguageModel | None:
    """The one of this kind; None without one. Raises ConfigError for several."""
    found = [lm for lm in given if lm.is_neural == (kind == "model directory")]
    if len(found) > 1:
        raise ConfigError(f"--lm {found[0]} --lm {found[1]}: give one {kind}")
    return found[0] if found else None


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


def _check_together(given: set[str]) -> None:
    """Raise ConfigError for options that exclude one another, or lack one that they require."""
    for options, why, excluded in _EXCLUDED:
        for one, other in itertools.product(options, excluded):
            if {one, other} <= given:
                raise ConfigError(f"{one} {why}; leave out {other}")
    for options, required in _REQUIRED:
        for one in options:
            if one in given and given.isdisjoint(required):
                raise ConfigError(f"{one} is for {' or '.join(required)}; give that, too, or leave out {one}")
