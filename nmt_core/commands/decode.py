"""``nmt-core decode``: translate, one line in, one line out."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from nmt_core.commands.advice import add_advice_options
from nmt_core.commands.decoded_lines import distinct, encoded_lines, open_writers
from nmt_core.commands.language_models import add_language_model_options, open_fused, open_reranker
from nmt_core.commands.long_lines import LongLines, add_long_lines, check_long_lines
from nmt_core.commands.model_options import add_device, add_models, add_precision
from nmt_core.commands.parser import positive
from nmt_core.commands.parts import add_part_arguments, engine_of
from nmt_core.commands.progress import line_total
from nmt_core.commands.search_options import add_sampling_options, add_search_options, search_config
from nmt_core.commands.source_lines import add_constraint_options, read_source_lines, with_factors_checked
from nmt_core.commands.unknown_words import (
    add_unknown_options,
    open_lexicon,
    open_unknowns,
    with_counts_reported,
)
from nmt_core.files import InputFile, OutputFile
from nmt_core.messages import say

if TYPE_CHECKING:
    from nmt_core.inference.candidate_lists import CandidateLists
    from nmt_core.inference.search_config import DecodingConfig, SamplingConfig
    from nmt_core.inference.source_line import SourceLine
    from nmt_core.inference.translation import Translation
    from nmt_core.inference.translator import Translator
    from nmt_core.models.checkpoint import LoadedModel
    from nmt_core.text.unknown_share import UnknownShare

NAME = "decode"
HELP = "translate lines with one model or an ensemble"

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

Every input line gives one output line, an empty line an empty one. N-best lists are in Moses' format:
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
    add("--batch-tokens", type=positive, default=1000, metavar="N", help="source words of a batch (default: 1000)")
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
    from nmt_core.files import open_output

    check_long_lines(args)
    if args.jobs != 1 or args.shards or args.restart or args.engine != "local":
        from nmt_core.commands.decode_parts import decode_in_parts

        return decode_in_parts(args)
    engine_of(args)  # which refuses options of another engine
    writers = open_writers(args)
    reranker = open_reranker(args)
    translator = open_translator(args)
    if args.heatmaps:
        _make_picture_folder(args.heatmaps)
    with contextlib.ExitStack() as stack:
        paths = [args.output, *([args.alignments] if args.alignments else [])]
        streams = [stack.enter_context(open_output(path)) for path in paths]
        lines = with_factors_checked(args, read_source_lines(args), factors=len(translator.models[0].factors))
        long = LongLines(args)
        lines = long.cut(_counted(lines, args.input, quiet=args.quiet))
        stream = _with_unknowns_noticed(translator, translator.translate_stream(lines, raw=args.raw), raw=args.raw)
        if reranker is not None:
            keep = sys.maxsize if args.distinct else args.nbest
            stream = reranker.rerank_stream(stream, keep=keep, warn=warn)
        if args.distinct:
            stream = (distinct(args, found) for found in stream)
        stream = with_counts_reported(stream, asked=args.replace_unk is not None or translator.copying is not None)
        for number, found in enumerate(long.joined(stream)):
            for output, write in zip(streams, writers, strict=True):
                output.write(encoded_lines(write(number, found)))
            if args.output == "-":
                streams[0].flush()  # whoever reads the pipe sees a translation as soon as it is there
            if args.heatmaps and found[0].source_words:
                _draw(args.heatmaps, number, found[0])
    return 0


def open_translator(args: argparse.Namespace) -> Translator:
    """The translator of the models and of the search that the options describe."""
    from nmt_core.inference.translator import Translator
    from nmt_core.models.checkpoint import load_models

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
    from nmt_core.errors import ConfigError
    from nmt_core.inference.search_config import DecodingConfig
    from nmt_core.models.build import is_language_model

    for loaded in models:
        if is_language_model(loaded.config.model) and isinstance(config, DecodingConfig):
            problem = "is a language model, which reads no source: it would write the same text for every line"
            remedy = "give a translation model, and this one as --fusion-lm; --sample N draws texts of it"
            raise ConfigError(f"--model {loaded.folder}: {problem}; {remedy}")


def _open_candidates(args: argparse.Namespace, models: Sequence[LoadedModel]) -> CandidateLists | None:
    from nmt_core.errors import ConfigError
    from nmt_core.inference.candidate_lists import CandidateLists

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


def _counted(lines: Iterable[str | SourceLine], path: str, *, quiet: bool) -> Iterator[str | SourceLine]:
    """The lines of the file, counted on standard error where that is a terminal."""
    from tqdm import tqdm

    yield from tqdm(lines, desc="decode", unit=" lines", total=line_total(path, quiet=quiet), disable=quiet or None)


def _with_unknowns_noticed(
    translator: Translator, stream: Iterable[list[Translation]], *, raw: bool
) -> Iterator[list[Translation]]:
    """The translations; one warning where many source words are unknown to all models."""
    from nmt_core.text.unknown_share import usual_share

    serve = any(loaded.unknown_words_serve for loaded in translator.models)
    usual = usual_share(loaded.source for loaded in translator.models)
    share = _unknown_share([loaded.folder for loaded in translator.models], raw=raw, serve=serve, usual=usual)
    for found in stream:
        words = found[0].source_words if found else ()
        share.add(words=len(words), unknown=sum(word not in translator.source for word in words))
        yield found
    share.finish()


def report_words(args: argparse.Namespace, *, words: int, unknown: int, serve: bool, usual: float | None) -> None:
    """The same warning for so many words of a text that has been translated."""
    share = _unknown_share(args.model, raw=args.raw, serve=serve, usual=usual)
    share.add(words=words, unknown=unknown)
    share.finish()


def _unknown_share(folders: Sequence[str], *, raw: bool, serve: bool, usual: float | None) -> UnknownShare:
    from nmt_core.text.unknown_share import UnknownShare

    hint = "" if raw else "Raw text needs --raw"
    return UnknownShare(" + ".join(folders), warn, hint=hint, serve=serve, usual=usual)


def warn(message: str) -> None:
    """A warning on standard error."""
    say(f"nmt-core decode: warning: {message}")


def _make_picture_folder(folder: str) -> None:
    """The folder of ``--heatmaps``, made before the work begins; an error where nothing could be drawn."""
    from nmt_core.inference.heatmap import load_figure_class

    load_figure_class()
    os.makedirs(folder, exist_ok=True)


def _draw(folder: str, number: int, translation: Translation) -> None:
    from nmt_core.inference.heatmap import write_heatmap

    write_heatmap(os.path.join(folder, f"{number + 1}.png"), translation)
