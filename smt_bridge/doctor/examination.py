"""All files of a pipeline together, and the models that score them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from nmt_core.base.errors import ConfigError, InputError, ModelError, NmtError
from nmt_core.base.interfaces import PairScorer, SentencePair
from nmt_core.base.messages import counted, say, show
from nmt_core.base.words import count_words
from nmt_core.files import read_text_lines
from nmt_core.files.reading import check_regular
from nmt_core.transformer import TRANSFORMERS
from smt_bridge.doctor import findings as words
from smt_bridge.doctor import lists
from smt_bridge.doctor.configuration import examine_ini, examine_model, language_models, readable_tables
from smt_bridge.doctor.findings import Finding, error, examine_case, examine_case_of_model, first_words, warning
from smt_bridge.doctor.table import Table
from smt_bridge.metadata import field_of, find_metadata, metadata_path
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
    if ini is not None:
        yield from examine_ini(ini, tables)
    for path, stated in _language_models(files, ini):
        yield from examine_model(path, stated, ini=files.ini)
    for path, tokenised in ((files.source, True), (files.reference, False)):
        if path:
            yield from words.examine_text(path, most=files.most, tokenised=tokenised)
    yield from _examine_list(files, tables)
    yield from _examine_words(files, tables)
    yield from _examine_metadata([*tables, *([files.nbest] if files.nbest else [])], files.scorer)


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
    for path, text in ((files.source, "source"), (files.reference, "reference")):
        if path:
            yield from lists.examine_sentences(summary, path, text)
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
            yield from lists.examine_weights(summary, weights, files.weights)
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
    if files.scorer.startswith(TRANSFORMERS):
        yield from _examine_transformer(files.scorer, files.source, files.reference)
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


_PAIRS = 50  # by which the direction of a model is seen
_BETTER = 0.8  # of the log-probability a word, from which it is no accident


def _examine_transformer(spec: str, source: str, reference: str) -> Iterator[Finding]:
    """Findings about the model; some lines of the texts are scored in both directions where both are given.

    Raises ConfigError where its library is not installed.
    """
    try:
        model = open_model(spec)
    except ModelError as failure:
        yield error(str(failure), "the model cannot be used", "give the folder that its library wrote")
        return
    try:
        lines = zip(*(read_text_lines(path, errors="replace") for path in (source, reference) if path), strict=False)
        pairs = [SentencePair(*line) for line in islice(lines, _PAIRS) if len(line) == 2 and all(line)]
        if not pairs:
            return
        given, turned = _by_word(model, pairs), _by_word(model, [SentencePair(two, one) for one, two in pairs])
    except InputError:  # of a text, which its own findings are about, or of lines that are too long for the model
        return
    if turned > _BETTER * given:
        problem = f"log p of a source word is {turned:.2f}, of a word of the reference {given:.2f}"
        yield warning(spec, problem, "is it of the other direction? Give a model from the source's language")


def _by_word(model: PairScorer, pairs: Sequence[SentencePair]) -> float:
    words = sum(count_words(pair.target) + 1 for pair in pairs)
    return sum(score.log_prob for score in model.score(pairs)) / words


def _examine_metadata(paths: Iterable[str], scorer: str) -> Iterator[Finding]:
    """Whether the metadata next to files are of these files, and of the model that is used."""
    described = {}
    for path in paths:
        beside = metadata_path(path)
        try:
            found = find_metadata(path)
        except InputError as wrong:
            problem, _, remedy = wrong.problem.partition("; ")
            yield error(beside, problem, remedy or "remove it, or make both again")
            continue
        if found is not None:
            described[beside] = " ".join(found.columns.values())
    if scorer and any("model:" in recorded for recorded in described.values()):
        yield from _examine_fingerprints(described, scorer)


def _examine_fingerprints(described: Mapping[str, str], scorer: str) -> Iterator[Finding]:
    try:
        fingerprint = field_of(open_model(scorer).signature, "model")
    except NmtError:
        return
    for beside, recorded in described.items():
        if fingerprint is not None and "model:" in recorded and fingerprint not in recorded:
            problem = f"names another model than {scorer} ({fingerprint})"
            yield warning(beside, problem, "score again, or give the model it names")


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
