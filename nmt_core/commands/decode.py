"""``nmt-core decode``: translate, one line in, one line out."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt_core.base.messages import say
from nmt_core.commands.advice import add_advice_options
from nmt_core.commands.language_models import add_language_model_options, open_fused
from nmt_core.commands.long_lines import add_long_lines, check_long_lines
from nmt_core.commands.model_options import add_device, add_models, add_precision
from nmt_core.commands.parser import positive
from nmt_core.commands.parts import add_part_arguments
from nmt_core.commands.search_options import add_sampling_options, add_search_options, search_config
from nmt_core.commands.source_lines import add_constraint_options
from nmt_core.commands.unknown_words import add_unknown_options, open_lexicon, open_unknowns
from nmt_core.files import InputFile, OutputFile

if TYPE_CHECKING:
    from nmt_core.inference.search.candidate_lists import CandidateLists
    from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
    from nmt_core.inference.translator import Translator
    from nmt_core.model_directory.loaded_model import LoadedModel

NAME = "decode"

_EPILOG = """\
examples:
  nmt-core decode --model runs/en-fr < test.tok.en > test.tok.fr
  nmt-core decode --model runs/a --model runs/b --raw --input test.en.gz > test.fr
  nmt-core decode --model runs/en-fr --nbest 100 --beam 100 < test.tok.en > test.nbest
  nmt-core decode --model runs/en-fr --replace-unk lexicon --lexicon lex.f2e.gz < test.tok.en > test.tok.fr
  nmt-core decode --model runs/en-fr --constraints phrases.tok.fr --no-repeat-ngram 4 < test.tok.en > test.tok.fr
  echo 'a <np translation="chat noir">black cat</np> .' | nmt-core decode --model runs/en-fr --xml-input exclusive
  nmt-core decode --model runs/en-fr --lm lm.fr.arpa.gz --lm-weight 0.1 < test.tok.en > test.tok.fr
  nmt-core decode --model runs/en-fr --advice moses.ngrams --nbest 12 < test.tok.en > test.nbest
  nmt-core decode --model runs/en-fr --jobs 8 --input web.tok.en.gz --output web.tok.fr.gz
  nmt-core decode --model runs/en-fr --raw --max-words 200 --long-lines split < book.en > book.fr

Every input line gives one output line, an empty line an empty one, which is not searched for: its log p is that of
'nmt-core score', whatever search has. N-best lists are in Moses' format:
  line ||| words ||| NMT0= LOG-PROBABILITY ||| SCORE
with the natural logarithm of p(target | source) and the score translations are ranked by.

With --candidates sentences that are searched together (--batch-tokens) share their list of words, and scores
are renormalised over it; 'nmt-core score' gives log p over all words.

With --lm the translations of the whole beam are put in a new order by
  (log p(target | source) + B x log p_LM(target)) / length^A
and n-best lists have LM0= LOG-PROBABILITY behind NMT0=. 'nmt-core tune-lm' finds B. With --fusion-lm
the log-probabilities written are those of search, log p(target | source) + B x log p_LM(target).

With --advice translations are ranked by
  (log p(target | source) + W x sum over words and n of factor n x (p(the n words that end there) - 1)) / length^A
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    add_model_options(parser.add_argument_group("models"))
    add_search_options(parser.add_argument_group("search"))
    add_sampling_options(parser.add_argument_group("sampling"))
    add_language_model_options(parser.add_argument_group("language models"))
    add_unknown_options(parser.add_argument_group("unknown words"))
    add_constraint_options(parser.add_argument_group("what translations must have"))
    add_advice_options(parser.add_argument_group("advice of another system"))
    _add_file_options(parser.add_argument_group("input and output"))
    group = parser.add_argument_group("several processes")
    group.add_argument(
        "--jobs",
        type=positive,
        default=1,
        metavar="N",
        help="processes, one thread each on a CPU; with files the work goes on after being stopped (default: 1)",
    )
    add_part_arguments(parser)


def add_model_options(group: argparse._ArgumentGroup) -> None:
    """Which models, and how they are run."""
    add_models(group)
    add_device(group)
    add_precision(group)
    add = group.add_argument
    batch = "source words of a batch (default: 1000; on a GPU one for each 4 MiB of its memory)"
    add("--batch-tokens", type=positive, metavar="N", help=batch)
    add("--window", type=positive, default=1000, metavar="N", help="lines read ahead and sorted (default: 1000)")


def _add_file_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--input",
        type=InputFile,
        default="-",
        metavar="F",
        help="source text, plain, gzip, xz or zstd (default: stdin)",
    )
    add("--output", type=OutputFile, default="-", metavar="F", help="translations (default: standard output)")
    add_long_lines(group)
    add("--raw", action="store_true", help="raw text in, raw text out, through the preparation that the model carries")
    add("--nbest", type=positive, default=1, metavar="N", help="N best translations in Moses' n-best format")
    add("--distinct", action="store_true", help="of N-best translations, or samples, of the same text only the first")
    add("--feature-name", default="NMT0", metavar="NAME", help="in n-best lists (default: NMT0)")
    add("--scores", action="store_true", help="write log p and a tab in front of each translation")
    add(
        "--alignments",
        type=OutputFile,
        metavar="F",
        help="source-target points, a line per translation; F.jsonl: attention weights",
    )
    add("--heatmaps", metavar="DIR", help="a picture of the attention for each line, DIR/LINE.png, counted from 1")
    add("--quiet", action="store_true", help="no progress on standard error")


def run(args: argparse.Namespace) -> int:
    """Translate."""
    from nmt_core.commands.decode_parts import decode

    check_long_lines(args)
    choose_batch(args)
    decode(args)
    return 0


def choose_batch(args: argparse.Namespace) -> None:
    """Fill in ``--batch-tokens``, before a job notes its options. Raises ConfigError for an unknown device."""
    from nmt_core.device import choose_device, usual_batch_tokens

    if args.batch_tokens is None:
        args.batch_tokens = usual_batch_tokens(choose_device(args.device))


def open_translator(args: argparse.Namespace) -> Translator:
    """The translator of the models and of the search that the options describe."""
    from nmt_core.inference.translator import Translator
    from nmt_core.model_directory.loaded_model import load_models

    config = search_config(args)
    models = load_models(args.model, device=args.device, dtype=args.dtype)
    _check_read_sources(models, config)
    translator = Translator(
        models,
        config=config,
        batch_tokens=args.batch_tokens,
        window=args.window,
        attention=bool(args.alignments or args.heatmaps),
        fusion=open_fused(args),
        unknowns=open_unknowns(args, models),
        candidates=_open_candidates(args, models),
    )
    for option in ("alignments", "heatmaps"):
        if getattr(args, option):
            translator.check_attends(f"--{option}")
    return translator


def _check_read_sources(models: Sequence[LoadedModel], config: DecodingConfig | SamplingConfig) -> None:
    """Raise ConfigError for a language model that would be searched: what it likes best is the same for every line."""
    from nmt_core.base.errors import ConfigError
    from nmt_core.inference.search.config import DecodingConfig
    from nmt_core.models.build import is_language_model

    for loaded in models:
        if is_language_model(loaded.config.model) and isinstance(config, DecodingConfig):
            problem = "is a language model, which reads no source: it would write the same text for every line"
            remedy = "give a translation model, and this one as --fusion-lm; --sample N draws texts of it"
            raise ConfigError(f"--model {loaded.folder}: {problem}; {remedy}")


def _open_candidates(args: argparse.Namespace, models: Sequence[LoadedModel]) -> CandidateLists | None:
    from nmt_core.base.errors import ConfigError
    from nmt_core.inference.search.candidate_lists import CandidateLists

    if args.candidates is None:
        if args.candidates_replace:
            raise ConfigError("--candidates-replace is for --candidates")
        return None
    lexicon = open_lexicon(args.lexicon, models) if args.lexicon else None
    return CandidateLists(
        models[0].target,
        frequent=args.candidates,
        lexicon=lexicon,
        per_word=args.candidates_per_word,
        replace=args.candidates_replace,
        copying=models[0].config.copying,
    )


def warn(message: str) -> None:
    """A warning on standard error."""
    say(f"nmt-core decode: warning: {message}")
