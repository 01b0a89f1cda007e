"""`analyse`: what a model knows of a phrase table, as Cho et al. 2014 looked at it."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.messages import say
from nmt_core.files import InputFile, OutputDirectory, OutputFile
from scripts.experiments.cho2014.analyse_maps import add_map_arguments, check_maps, check_words, make_maps

if TYPE_CHECKING:
    from scripts.experiments.cho2014.study_page import Drawn
    from scripts.experiments.cho2014.table_study import Source, Study

RUN = "scripts.experiments.cho2014.analyse:run"
NAME = "analyse"
_EXAMPLE = """examples, with cho2014 for `python -m scripts.experiments.cho2014`:
  cho2014 analyse nmt-table.gz --output analysis.html
  cho2014 analyse nmt-table.gz --generator runs/encdec --output analysis.html --data analysis
  cho2014 analyse nmt-table.gz --vectors runs/encdec --zoom "for a while" --output analysis.html

One page without scripts, after Cho et al. 2014, section 4.3: the targets that phi(target|source) and the model's
p(target|source) like best for long frequent and long rare source phrases (Table 2), what the model proposes for them
(Table 3, with --generator), all pairs by both scores (Figure 3), maps of its vectors of words and phrases (Figures 4
and 5, with --vectors; they need scikit-learn), and the paper's claims as numbers with a sign test.
TABLE is what rescore-table wrote, sorted and with Moses' counts. --data writes the numbers as TSV and JSON."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("table", type=InputFile, metavar="TABLE", help="a table that rescore-table made, with its metadata")
    add("--output", type=OutputFile, required=True, metavar="FILE", help="the page")
    add(
        "--data",
        type=OutputDirectory,
        metavar="DIR",
        help="folder for table2.tsv, table3.tsv, figure3.tsv to figure5.tsv and claims.json",
    )
    add(
        "--generator",
        metavar="SPEC",
        help="model that proposes targets: DIR, or DIR,DIR (an ensemble)",
    )
    add("--samples", type=int, default=50, metavar="N", help="drawn from --generator for a source (50)")
    add("--proposals", type=int, default=5, metavar="N", help="of these the likeliest are shown (5)")
    add("--minimum-words", type=int, default=4, metavar="N", help="words of a long source phrase (4)")
    add("--frequent", type=int, default=10, metavar="N", help="occurrences of a frequent source, at least (10)")
    add("--rare", type=int, default=4, metavar="N", help="occurrences of a rare source, at most (4)")
    add("--phrases", type=int, default=12, metavar="N", help="source phrases shown, half of each kind (12)")
    add("--top", type=int, default=3, metavar="N", help="targets of each that are shown (3)")
    add("--seed", type=int, default=1, metavar="N", help="of the choice, and of what is drawn (1)")
    add_map_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Look at the table and write the page."""
    from nmt_core.files import open_output
    from nmt_core.files.arguments import overwritten
    from scripts.experiments.cho2014.map_page import map_claims, map_files, map_sections
    from scripts.experiments.cho2014.specs import check_specs
    from scripts.experiments.cho2014.study_page import claims, data_files, study_page
    from scripts.experiments.cho2014.table_study import Pool, study
    from smt_bridge.metadata import metadata_path
    from smt_bridge.report.phrase_table import read_table_metadata
    from smt_bridge.tables.scoring import DIRECT

    _check(args)
    if args.generator is not None:
        check_specs([args.generator])  # before the table is looked at
    check_maps(args)
    metadata = read_table_metadata(args.table)
    if DIRECT not in metadata.columns:
        raise InputError(metadata_path(args.table), f"names no column {DIRECT}")
    pool = Pool(args.minimum_words, args.frequent, args.rare, args.phrases, args.seed)
    found = study(args.table, column=(metadata.scores_before or 0) + list(metadata.columns).index(DIRECT), pool=pool)
    drawn = [] if args.generator is None else _draw(args, found)
    maps = None if args.vectors is None else make_maps(args)
    sections = [] if maps is None else map_sections(maps)
    content = study_page(found, metadata, drawn, top=args.top, path=args.table, maps=sections)
    if args.data is not None:
        measured = {**claims(found, drawn), **({} if maps is None else map_claims(maps))}
        files = {**data_files(found, drawn, top=args.top), **({} if maps is None else map_files(maps))}
        files["claims.json"] = json.dumps(measured, indent=2, ensure_ascii=False) + "\n"
        if lost := overwritten([args.table], [os.path.join(args.data, name) for name in files]):
            raise ConfigError(f"--data {args.data}: {lost} is read, and would be lost; give another directory")
        _write_data(args.data, files)
    with open_output(args.output) as stream:
        stream.write(content.encode("utf-8", "replace"))
    say(f"{NAME}: {args.output} has {len(content) >> 10} KiB")
    return 0


def _check(args: argparse.Namespace) -> None:
    for name in ("samples", "proposals", "minimum_words", "frequent", "rare", "top"):
        if getattr(args, name) < 1:
            raise ConfigError(f"--{name.replace('_', '-')} must be at least 1")
    if args.phrases < 2:
        raise ConfigError("--phrases must be at least 2, one frequent and one rare")
    if args.rare >= args.frequent:
        raise ConfigError(f"--rare {args.rare} must be less than --frequent {args.frequent}")
    if args.table == "-":
        raise ConfigError("TABLE must be a file: its metadata lies beside it")
    if args.proposals > args.samples:
        raise ConfigError(f"--proposals {args.proposals}: only {args.samples} targets are drawn (--samples)")


def _draw(args: argparse.Namespace, found: Study) -> list[Drawn]:
    """What the model proposes for the sources shown, scored exactly."""
    from nmt_core.base.interfaces import SentencePair
    from scripts.experiments.cho2014.generators import GenerationOptions, open_generator
    from scripts.experiments.cho2014.study_page import Drawn
    from smt_bridge.model_checks import check_kind
    from smt_bridge.models import ModelOptions

    sources: list[Source] = [source for kind in ("frequent", "rare") for source in found.chosen[kind]]
    check_words(args, [source.text for source in sources], "generator")
    options = GenerationOptions(samples=args.samples, seed=args.seed, most_words=20)
    generator, scorer = open_generator(args.generator, options, ModelOptions())
    check_kind("--generator", scorer.signature, language_model=False)
    proposed = generator.generate([source.text for source in sources]) if sources else []
    drawn = []
    for source, targets in zip(sources, proposed, strict=True):
        distinct = list(dict.fromkeys(targets))
        scores = scorer.score([SentencePair(source.text, target) for target in distinct])
        ranked = sorted(
            zip([score.log_prob for score in scores], distinct, strict=True), key=lambda one: (-one[0], one[1])
        )
        known = {target.text for target in source.targets}
        kept = [(target, log_prob, target in known) for log_prob, target in ranked[: args.proposals]]
        drawn.append(Drawn(source.text, kept))
    return drawn


def _write_data(folder: str, files: Mapping[str, Any]) -> None:
    from nmt_core.base.errors import NmtError
    from nmt_core.files import open_output

    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise NmtError(f"{folder}: cannot be made ({error.strerror})") from error
    for name, content in files.items():
        with open_output(os.path.join(folder, name)) as stream:
            stream.write(content.encode("utf-8", "replace"))
