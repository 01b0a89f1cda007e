"""All files of a pipeline together."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import NamedTuple

from nmt_core.base.errors import ConfigError, InputError, NmtError
from nmt_core.base.messages import counted, say, show
from nmt_core.ct2 import CT2
from nmt_core.files.reading import check_regular
from smt_bridge.doctor import findings as words
from smt_bridge.doctor import lists
from smt_bridge.doctor.configuration import examine_ini, examine_model, language_models, readable_tables
from smt_bridge.doctor.converted import examine_converted
from smt_bridge.doctor.findings import Finding, error, examine_case, examine_case_of_model, first_words, warning
from smt_bridge.doctor.table import Table
from smt_bridge.metadata import find_metadata, metadata_path
from smt_bridge.models import REMOTE, open_model
from smt_bridge.moses.ini import MosesIni, read_ini
from smt_bridge.moses.weights import Weights, read_weights
from smt_bridge.nbest.formats import AUTO, check_format


class Files(NamedTuple):
    """What is to be looked at; empty names are left out.

    ``most`` lines of each are read, 0 for all. ``format`` is the format of the list.
    """

    ini: str = ""
    table: str = ""
    nbest: str = ""
    weights: str = ""
    source: str = ""
    reference: str = ""
    scorer: str = ""
    lm: str = ""
    most: int = 200_000
    format: str = AUTO


def examine(files: Files) -> Iterator[Finding]:
    """Every finding, in the order in which the files are used."""
    ini = read_ini(files.ini) if files.ini else None
    tables = {path: Table(path, most=files.most) for path in _tables(files, ini)}
    for table in tables.values():
        yield from table.findings
        yield from _examine_metadata(table.path, files.scorer)
    if ini is not None:
        yield from examine_ini(ini, tables)
    for path, stated in _language_models(files, ini):
        yield from examine_model(path, stated, ini=files.ini)
    for path, tokenised in ((files.source, True), (files.reference, False)):
        if path:
            yield from words.examine_text(path, most=files.most, tokenised=tokenised)
    yield from _examine_list(files, tables)
    yield from _examine_words(files, tables)


def _tables(files: Files, ini: MosesIni | None) -> list[str]:
    named = readable_tables(ini) if ini else []
    return list(dict.fromkeys([*([files.table] if files.table else []), *named]))


def _language_models(files: Files, ini: MosesIni | None) -> list[tuple[str, int | None]]:
    named = language_models(ini) if ini else []
    known = [path for path, _ in named]
    return [*([(files.lm, None)] if files.lm and files.lm not in known else []), *named]


def _examine_list(files: Files, tables: dict[str, Table]) -> Iterator[Finding]:
    if not files.nbest:
        return
    summary = lists.NbestSummary(files.nbest, most=files.most, format=files.format)
    yield from summary.findings
    yield from _examine_metadata(files.nbest, files.scorer)
    for path in (files.source, files.reference):
        if path:
            yield from lists.examine_ids(summary, path)
    if files.reference:
        reference = words.words_of_file(files.reference, most=files.most)
        begin = first_words(files.reference, most=files.most)
        for other in (summary.target, *(table.target for table in tables.values())):
            yield from examine_case(reference, other, begin)
    if files.weights and summary.arity:
        weights = _weights(files.weights)
        if isinstance(weights, Finding):
            yield weights
        else:
            yield from lists.examine_weights(summary.arity, weights, place=files.nbest, path=files.weights)
    for table in tables.values():
        yield from lists.examine_words(summary, table.target)


def _weights(path: str) -> Weights | Finding:
    try:
        return read_weights(path)
    except InputError as problem:
        return error(str(problem), "the weights cannot be read", "correct the line")


def _examine_words(files: Files, tables: dict[str, Table]) -> Iterator[Finding]:
    source = words.words_of_file(files.source, most=files.most) if files.source else None
    begin = first_words(files.source, most=files.most) if files.source else frozenset[str]()
    for table in tables.values():
        if source is not None:
            yield from words.examine_escapes(source, table.source)
            yield from examine_case(source, table.source, begin)
    if not files.scorer:
        return
    if files.scorer.startswith(CT2):
        yield from examine_converted(files.scorer, files.source, files.reference)
        return
    for folder in files.scorer.split(","):
        try:
            sides = [words.read_vocabulary(folder, side) for side in ("source", "target")]
        except NmtError as problem:
            yield error(str(problem), "the model cannot be loaded", "give the folder that `nmt-core train` wrote")
            continue
        if None in sides:
            yield error(folder, "is not a model folder", "give the folder that `nmt-core train` wrote")
            continue
        for text, side in ((source, 0), *((one.source, 0) for one in tables.values()),
                           *((one.target, 1) for one in tables.values())):  # fmt: skip
            vocabulary, other = sides[side], sides[1 - side]
            if text is not None and vocabulary is not None and other is not None:
                yield from words.examine_coverage(text, vocabulary, other=other, model=folder)
            if text is source is not None and vocabulary is not None:
                yield from examine_case_of_model(source, begin, vocabulary, folder)


def _examine_metadata(path: str, scorer: str) -> Iterator[Finding]:
    """Whether the metadata next to a file are of this file, and of this model."""
    beside = metadata_path(path)
    try:
        found = find_metadata(path)
    except InputError as error:
        yield warning(beside, error.problem, "remove or rename it")
        return
    if found is not None and scorer:
        yield from _examine_fingerprint(beside, " ".join(map(str, found.columns.values())), scorer)


def _examine_fingerprint(beside: str, recorded: str, scorer: str) -> Iterator[Finding]:
    try:
        signature = open_model(scorer).signature
    except NmtError:
        return
    prints = [part.removeprefix("model:") for part in signature.split("|") if part.startswith("model:")]
    if "model:" in recorded and prints and prints[0] not in recorded:
        yield warning(
            beside, f"names another model than {scorer} ({prints[0]})", "score again, or give the model it names"
        )


NAME = "doctor"


def diagnose(args: argparse.Namespace) -> int:
    """Print what is found in the files of the options."""
    if args.scorer.startswith(REMOTE):
        raise ConfigError(f"--scorer {args.scorer}: a server does not show its vocabularies; give the model's folder")
    given = (args.ini, args.table, args.nbest, args.weights, args.source, args.reference, args.scorer, args.lm)
    if not any(given):
        raise ConfigError("give a moses.ini or other files to look at")
    files = Files(*given, format=check_format(args.nbest_format))
    for path in filter(None, (args.source, args.reference)):
        check_regular(path)  # read more than once
    errors = warnings = 0
    for finding in examine(files):
        print(json.dumps(finding._asdict()) if args.json else show(finding), flush=True)
        errors += finding.level == "error"
        warnings += finding.level == "warning"
    say(f"{NAME}: {counted(errors, 'error')}, {counted(warnings, 'warning')}")
    return 1 if errors else 0
