"""What may be wrong with a ``moses.ini``: its tables, files, numbers of scores, and weights."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice

from nmt_core.base.errors import InputError
from nmt_core.base.messages import counted
from nmt_core.base.words import whole_number
from nmt_core.files import read_beginning, read_lines
from nmt_core.kenlm import check_binary
from smt_bridge.doctor.findings import Finding, error, note, warning
from smt_bridge.doctor.lists import examine_number
from smt_bridge.doctor.table import Table
from smt_bridge.moses.feature_functions import BEFORE_2013, FeatureFunction, binary_scores, missing_parts, section_lines
from smt_bridge.moses.ini import MosesIni, PathOption
from smt_bridge.moses.weights import given_weights
from smt_bridge.tables.wire import why_not_unpacked

_MAGIC = b"mmap lm http://kheafield.com/code format version"
_VERSION = 5


def examine_model(path: str, stated: int | None, *, ini: str) -> Iterator[Finding]:
    """What is wrong with a language model, and whether ``ini`` names the order that an ARPA file says."""
    if not os.path.exists(path):
        yield error(path, "there is no such language model", "correct the path")
        return
    try:
        yield from _examine_content(path, stated, ini)
    except InputError as problem:
        yield error(str(problem), "KenLM cannot read it", "make or copy it again")


def _examine_content(path: str, stated: int | None, ini: str) -> Iterator[Finding]:
    """Raises InputError for a file that is damaged."""
    head = read_beginning(path, 200)
    if head.startswith(_MAGIC):
        found = re.match(_MAGIC + rb" ([0-9]{1,9})", head)
        version = int(found[1]) if found else 0
        if version != _VERSION:
            problem = f"is a KenLM binary of format version {version}, where KenLM reads {_VERSION}"
            yield error(path, problem, "build it again from the ARPA file with build_binary")
            return
        with open(path, "rb") as stream:
            check_binary(path, stream)
        return
    if head.startswith(codecs.BOM_UTF8):
        yield error(path, "begins with a byte order mark", "save it without one; KenLM reads no file with it")
        return
    lines = [line.strip() for line in islice(read_lines(path), 20)]
    if b"\\data\\" not in lines:
        remedy = "give an ARPA file or a binary of build_binary"
        yield error(path, "is neither an ARPA file nor a KenLM binary", remedy)
        return
    last = b""
    for line in read_lines(path):
        last = line.strip() or last
    if last != b"\\end\\":
        yield error(path, "does not end in \\end\\: it was cut off", "make or copy it again")
    order = max((int(found[1]) for line in lines if (found := re.match(rb"ngram ([0-9]{1,3})=", line))), default=0)
    if stated not in (None, order):
        problem = f"has order {order}, but {ini} says order={stated}"
        yield warning(path, problem, "KenLM goes by the file; correct the line so that nobody is misled")


_DIGITS = 18  # of the number of a table, at most: more of them are no other mistake


def readable_tables(ini: MosesIni) -> list[str]:
    """The phrase tables of text."""
    roles = {feature.name: feature.facts.role for feature in ini.features}
    paths = [(option.found or option.path, roles.get(option.name)) for option in ini.paths if option.key == "path"]
    return [path for path, role in paths if role == "text"]


def language_models(ini: MosesIni) -> list[tuple[str, int | None]]:
    """The KenLM models and the orders that the ini states."""
    features = {feature.name: feature for feature in ini.features}
    found = []
    for option in ini.paths:
        if option.key == "path" and features[option.name].kind.upper().startswith("KENLM"):
            order = features[option.name].options.get("order", "")
            found.append((option.found or option.path, whole_number(order)))
    return found


def examine_ini(ini: MosesIni, tables: Mapping[str, Table]) -> Iterator[Finding]:
    """Every finding about the ini; ``tables`` are those of ``readable_tables`` by their paths."""
    if ini.is_before_2013:
        yield error(ini.path, *BEFORE_2013.split("; ", 1))
        return
    features = {feature.name: feature for feature in ini.features}
    for option in ini.paths:
        yield from _examine_path(ini, option)
        feature = features.get(option.name)
        if feature is not None and option.key == "path" and option.found is not None:
            yield from _examine_scores(ini, feature, option.found, tables.get(option.found))
            yield from _examine_packing(ini, feature, option.file)
    for feature in features.values():
        if (feature.facts.takes_columns or feature.kind == "KENLM") and not feature.options.get("path"):
            place, problem = f"{ini.path}:{feature.line}", f"{feature.name} has no path, so that Moses finds no file"
            yield error(place, problem, "write path=FILE (what stands behind a # is a comment)")
        yield from _examine_members(ini, feature, features)
    yield from _examine_mapping(ini)
    yield from _examine_factors(ini)
    if not any(option.found is None and not option.key for option in ini.paths):  # [weight-file]: said above
        yield from _examine_weights(ini)


def _examine_path(ini: MosesIni, option: PathOption) -> Iterator[Finding]:
    place = f"{ini.path}:{option.line}"
    if option.found is None:
        yield error(place, f"{option.name or 'the ini'} wants {option.path}, which is not there", "correct the path")
    elif option.beside:
        problem = f"{option.path} is found beside this file, but not from the folder in which this was started"
        yield warning(place, problem, "start Moses in the folder of the ini, or write absolute paths")


def _examine_scores(ini: MosesIni, feature: FeatureFunction, path: str, table: Table | None) -> Iterator[Finding]:
    """Whether ``num-features`` is what the table has, as far as that can be known."""
    place = f"{ini.path}:{feature.line}"
    if feature.facts.role == "text" and os.path.isdir(path):
        problem = f"{path} is a folder, and a {feature.kind} reads text"
        yield error(place, problem, "give the text, or the class that reads the folder, such as PhraseDictionaryOnDisk")
    scores = table.scores if table is not None else binary_scores(feature.kind, path)
    if scores not in (None, feature.scores):
        remedy = f"write num-features={scores} and as many weights"
        yield error(
            place, f"num-features={feature.num_features}, but {path} has {counted(scores, 'score')} in a line", remedy
        )
    missing = missing_parts(feature.facts, path)
    if missing:
        yield error(path, f"a {feature.kind} without {', '.join(missing)}", "make it again, or correct the path")
    elif table is None and feature.facts.role in ("binary", "computed"):
        problem = f"{feature.name} is a {feature.kind}: its phrase pairs are not looked into"
        yield note(path, problem, "give the text that it was made from with --table")


def _examine_packing(ini: MosesIni, feature: FeatureFunction, file: str | None) -> Iterator[Finding]:
    """Whether Moses sees that a text table is packed."""
    found = why_not_unpacked(file) if feature.facts.role == "text" and file and os.path.isfile(file) else None
    if found is not None:
        problem, remedy = found
        yield error(f"{ini.path}:{feature.line}", f"{file} {problem}", remedy)


def _examine_members(
    ini: MosesIni, feature: FeatureFunction, features: Mapping[str, FeatureFunction]
) -> Iterator[Finding]:
    """Whether what a table combines is there and has as many scores as it should."""
    place = f"{ini.path}:{feature.line}"
    unknown = [name for name in feature.members if name not in features]
    if unknown:
        problem = f"{feature.name} combines {', '.join(unknown)}, which is no feature of this file"
        yield error(place, problem, "correct the names")
        return
    sizes = [features[name].num_features for name in feature.members]
    if feature.kind == "PhraseDictionaryGroup":
        wanted = _scores_of_group(feature, sizes)
        if feature.num_features != wanted:
            problem = f"num-features={feature.num_features}, but the members of {feature.name} make {wanted}"
            yield error(place, problem, f"write num-features={wanted} and as many weights")
    elif any(size != feature.num_features for size in sizes):
        problem = f"num-features={feature.num_features}, but the components of {feature.name} have {sizes}"
        yield error(place, problem, "use tables with as many scores")


def _scores_of_group(group: FeatureFunction, sizes: list[int]) -> int:
    """The scores of the members, and the counts that the group may add for each and for each set of them."""
    count = len(sizes)
    extra = {"phrase-counts": count, "word-counts": count, "model-bitmap-counts": (1 << min(count, 32)) - 1}
    return sum(sizes) + sum(number for key, number in extra.items() if group.switch(key))


def _examine_mapping(ini: MosesIni) -> Iterator[Finding]:
    tables = sum(feature.facts.is_table for feature in ini.features)
    for number, code in section_lines(ini.lines, "mapping"):
        words = code.split()
        if len(words) == 3 and words[1] == b"T" and words[2].isdigit() and int(words[2][:_DIGITS]) >= tables:
            problem = f"[mapping] asks for table {int(words[2][:_DIGITS])}, but there are {tables} (counted from 0)"
            yield error(f"{ini.path}:{number}", problem, "correct the number")


def _examine_factors(ini: MosesIni) -> Iterator[Finding]:
    """Whether the input is said to have the factors that tables ask for (0 alone where nothing is said)."""
    given = {code.decode("utf-8", "surrogateescape") for _, code in section_lines(ini.lines, "input-factors")} or {"0"}
    for feature in ini.features:
        wanted = feature.options.get("input-factor", "") if feature.facts.is_table else ""
        missing = [factor for factor in wanted.split(",") if factor and factor not in given]
        if missing:
            problem = f"{feature.name} asks for input factor {', '.join(missing)}, which [input-factors] does not have"
            yield warning(f"{ini.path}:{feature.line}", problem, "add a line, or correct input-factor=")


def _examine_weights(ini: MosesIni) -> Iterator[Finding]:
    """Whether weights and features fit, as Moses reads them."""
    weights, features = given_weights(ini.lines, path=ini.path), {feature.name: feature for feature in ini.features}
    for name, feature in features.items():
        if name not in weights and feature.scores != 0 and feature.is_tuneable:
            yield warning(
                ini.path, f"no weight for {name}: Moses takes 1 for each score", f"add `{name}= ...`, or tune"
            )
        if feature.scores:
            yield from examine_number(name, weights.get(name), feature.scores, place="[feature]", path=ini.path)
    for name in weights:
        owner = name.partition("_")[0]
        if name not in features and owner not in features:
            sparse = f"a sparse weight {name}, but there is no feature {owner}"
            problem = sparse if "_" in name else f"a weight for {name}, which [feature] does not have"
            yield error(ini.path, problem, "delete the line: Moses would stop here")
