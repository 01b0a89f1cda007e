"""The options of ``nmt-core decode`` and ``tune-lm`` as one object, which is made once and holds what goes together."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

from nmt_core.base.errors import ConfigError
from nmt_core.device import choose_device, usual_batch_tokens
from nmt_core.files import OutputDirectory
from nmt_core.inference.commands.arguments import LanguageModel, SearchOptions, WordLimit
from nmt_core.inference.moses_xml import XmlMode
from nmt_core.inference.search.config import USUAL_ROWS, DecodingConfig, SamplingConfig

SPLIT = "--max-words N,split"


@dataclass(frozen=True, kw_only=True)
class TranslatorOptions:
    """Models, and how they search or sample (``config``); ``search`` has what else ``--search`` says.

    ``fused`` is the language model that takes part in search.
    """

    models: tuple[str, ...]
    device: str
    dtype: str
    search: SearchOptions
    config: DecodingConfig | SamplingConfig
    replace_unk: str | None
    lexicon: str | None
    fused: LanguageModel | None = None
    attention: bool = False


@dataclass(frozen=True, kw_only=True)
class DecodeOptions(TranslatorOptions):
    """The same with the texts, and what is asked of translations.

    ``reranking`` is the language model that reranks a beam. Alignments go to a file, or as pictures to a directory.
    """

    reranking: LanguageModel | None
    window: int
    input: str
    output: str
    raw: bool
    nbest: int
    scores: bool
    alignments: str | None
    pictures: str | None
    prefix: str | None
    constraints: str | None
    xml_input: XmlMode
    guidance: str | None
    max_words: WordLimit

    @property
    def many(self) -> bool:
        """Whether a line may have several translations."""
        return self.nbest > 1 or self.search.samples > 1

    @property
    def asked(self) -> list[str]:
        """The options given that ask for something in translations."""
        return _given(
            {
                "--prefix": self.prefix,
                "--constraints": self.constraints,
                "--xml-input": self.xml_input != "pass-through",
            }
        )


def translator_options(args: argparse.Namespace) -> TranslatorOptions:
    """Those of ``tune-lm``, which needs the whole beam. Raises ConfigError for what does not go together."""
    search = _search_options(args)
    config = _search_config(args, search, whole_beam=True)
    return TranslatorOptions(
        models=tuple(args.model.split(",")),
        device=args.device,
        dtype=args.dtype,
        search=search,
        config=config,
        replace_unk=args.replace_unk,
        lexicon=args.lexicon,
    )


def decode_options(args: argparse.Namespace) -> DecodeOptions:
    """Those of ``decode``. Raises ConfigError for what does not go together, and for an unknown device."""
    search = _search_options(args)
    # a language model, or the search for different texts, chooses among the whole beam
    config = _search_config(args, search, nbest=args.nbest, whole_beam=bool(args.lm) or search.distinct)
    draws = isinstance(args.alignments, OutputDirectory)
    options = DecodeOptions(
        models=tuple(args.model.split(",")),
        device=args.device,
        dtype=args.dtype,
        search=search,
        config=config,
        replace_unk=args.replace_unk,
        lexicon=args.lexicon,
        fused=_language_model(args.lm, search, "model directory"),
        reranking=_language_model(args.lm, search, "n-gram model"),
        attention=bool(args.alignments),
        alignments=None if draws else args.alignments,
        pictures=args.alignments if draws else None,
        **{
            name: getattr(args, name)
            for name in (
                "window", "input", "output", "raw", "nbest", "scores", "prefix", "constraints", "xml_input", "guidance",
                "max_words",
            )
        },
    )  # fmt: skip
    _check_texts(options)
    _check_translations(options)
    return options


def _search_options(args: argparse.Namespace) -> SearchOptions:
    """One of the values of ``--search``, before a job notes its options; the device has ``batch_tokens``."""
    usual = usual_batch_tokens(choose_device(args.device))
    return SearchOptions.from_mapping({"batch_tokens": usual, **dict(args.search)}, origin="--search")


def _search_config(
    args: argparse.Namespace, search: SearchOptions, *, nbest: int = 1, whole_beam: bool
) -> DecodingConfig | SamplingConfig:
    """How to search, or to sample. Raises ConfigError for what does not go together."""
    searching, sampling = search.given_for(DecodingConfig), search.given_for(SamplingConfig)
    if search.samples_are_drawn:
        others = _given({"--beam": args.beam is not None})
        others += [f"--search {key}" for key in sorted(searching.keys() - sampling.keys())]
        if others:
            raise ConfigError(f"{others[0]} is for search; leave out --search samples")
        return SamplingConfig.from_mapping(sampling, origin="--search")
    for key in sorted(sampling.keys() - searching.keys()):
        raise ConfigError(f"--search {key} is for samples; give --search samples=N, too")
    beam = max(USUAL_ROWS, nbest) if args.beam is None else args.beam
    found = max(beam, nbest) if whole_beam else nbest
    return DecodingConfig.from_mapping({**searching, "beam": beam, "nbest": found}, origin="decode")


def _language_model(given: list[LanguageModel], search: SearchOptions, kind: str) -> LanguageModel | None:
    """The one of this kind; None without one. Raises ConfigError for several."""
    found = [lm for lm in given if lm.is_neural == (kind == "model directory")]
    if len(found) > 1:
        raise ConfigError(f"--lm {found[0]} --lm {found[1]}: give one {kind}")
    if found and search.samples_are_drawn:
        raise ConfigError("--lm is for search; leave out --search samples")
    return found[0] if found else None


def _check_texts(options: DecodeOptions) -> None:
    """Raise ConfigError where what is asked of translations does not go together with the text."""
    search, asked = options.search, options.asked
    if asked and options.raw:
        raise ConfigError(f"{asked[0]} is for tokenised text, in the words of the model; leave out --raw")
    if asked and search.samples_are_drawn and options.xml_input != "ignore":
        raise ConfigError(f"{asked[0]} is for search; leave out --search samples")
    unguided = _given(
        {
            "--raw": options.raw,
            "--search samples": search.samples_are_drawn,
            "--search candidates": search.candidates,
        }
    )
    if options.guidance and unguided:
        raise ConfigError(f"--guidance is for search among all words of tokenised text; leave out {unguided[0]}")
    for key in sorted(search.model_fields_set):
        if key.startswith("guidance_") and not options.guidance:
            raise ConfigError(f"--search {key} is for --guidance; give the file of n-grams")


def _check_translations(options: DecodeOptions) -> None:
    """Raise ConfigError where what is to be written does not go together."""
    samples = options.search.samples_are_drawn
    if samples and options.nbest > 1:
        raise ConfigError("--search samples=N writes N translations a line already; leave out --nbest")
    if options.many and options.scores:
        raise ConfigError("n-best lists hold the scores already; leave out --scores")
    if options.search.distinct and not options.many:
        raise ConfigError("--search distinct is for --nbest and --search samples")
    more = {
        "--nbest": options.nbest > 1,
        "--search samples": samples,
        "--alignments": options.attention,
        "--guidance": options.guidance,
    }
    for option in [*options.asked, *_given(more)] if options.max_words.splits else ():
        raise ConfigError(f"{SPLIT} writes one translation a line; leave out {option}")


def _given(options: Mapping[str, object]) -> list[str]:
    return [option for option, value in options.items() if value]
