"""A second phrase table in ``moses.ini``: a feature of its own, and a decoding graph of its own.

::

    [feature]
    PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=phrase-table.gz input-factor=0 output-factor=0
    PhraseDictionaryMemory name=TranslationModel1 num-features=2 path=generated.gz input-factor=0 output-factor=0

    [mapping]
    0 T 0
    1 T 1

    [decoding-graph-backoff]
    0
    1

The decoder numbers tables in the order of their lines, from 0. Every graph gives translations of its own, so that a
pair needs to be in one of the tables only. A graph with a back-off of N is asked only about phrases of up to N words
for which those before it have nothing; with 0 it is asked always. Without ``[mapping]`` the decoder takes ``0 T 0``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from nmt_core.base.messages import counted
from nmt_core.base.words import whole_number
from smt_bridge.errors import WiringError
from smt_bridge.moses.feature_functions import code_of, section_lines, section_name
from smt_bridge.moses.ini import Feature, MosesIni

_CHARTS = (b"3", b"5", b"6", b"7", b"8", b"9")  # enum SearchAlgorithm in moses/TypeDef.h


def with_second_table(
    ini: MosesIni,
    first: Feature,
    *,
    path: str,
    weights: Sequence[float],
    limit: int = 20,
    backoff: int | None = None,
    source_factors: int = 1,
) -> tuple[MosesIni, str]:
    """The ini with another table of ``len(weights)`` scores, and the name of the new feature.

    ``first`` is a table of the ini; the words of the new one's sources have ``source_factors`` factors, as those of
    ``first`` must have, and its targets none. Raises WiringError, also for a path that the file cannot hold.
    """
    read = first.options.get("input-factor", "0")
    if first.options.get("output-factor", "0") != "0":
        problem = f"{first.name} is for targets with factors, which a generated table does not have"
        raise WiringError(f"{ini.path}:{first.line}: {problem}")
    if read.count(",") + 1 != source_factors or (source_factors == 1 and read != "0"):
        problem = f"{first.name} is for sources with factors {read}; those of {path} have {source_factors}"
        raise WiringError(f"{ini.path}:{first.line}: {problem}")
    for number, code in section_lines(ini.lines, "search-algorithm"):
        if code.strip() in _CHARTS:
            problem = "chooses a chart decoder, which reads rules; generated phrases have no labels such as [X]"
            raise WiringError(f"{ini.path}:{number}: [search-algorithm] {code.strip().decode()} {problem}")
    names = {feature.name for feature in ini.features}
    name = next(name for number in count(1) if (name := f"TranslationModel{number}") not in names)
    tables = [feature for feature in ini.features if feature.facts.is_table]
    line = f"PhraseDictionaryMemory name={name} num-features={len(weights)} path= input-factor={read} output-factor=0"
    edited = _with_line_behind(ini, tables[-1].line, f"{line} table-limit={limit}")
    edited = edited.with_path(tables[-1].line + 1, "path", path)
    graphs = _graphs(edited)
    edited = _with_setting(edited, "mapping", f"{len(graphs)} T {len(tables)}", default=("0 T 0",))
    edited = _with_backoff(edited, len(graphs), backoff)
    numbers = " ".join(f"{weight:.9g}" for weight in weights)
    return edited.with_weight_line(f"{name}= {numbers}".encode()), name


def _with_backoff(ini: MosesIni, graphs: int, backoff: int | None) -> MosesIni:
    """With the new graph's line behind those of ``graphs`` others; graphs without a line have 0, as in the decoder."""
    section = "decoding-graph-backoff"
    lines = section_lines(ini.lines, section)
    if backoff is None and not lines:
        return ini
    if len(lines) > graphs:
        problem = f"[{section}] has {counted(len(lines), 'line')} for {counted(graphs, 'graph')} of [mapping]"
        raise WiringError(f"{ini.path}:{lines[graphs][0]}: {problem}; delete those of no graph")
    for new in (*["0"] * (graphs - len(lines)), str(backoff or 0)):
        ini = _with_setting(ini, section, new, default=())
    return ini


def _graphs(ini: MosesIni) -> list[int]:
    """The numbers of the decoding graphs; raises WiringError where they are not 0, 1 and so on."""
    lines = section_lines(ini.lines, "mapping")
    found = {0} if not lines else set()
    for number, code in lines:
        words = code.split()
        if len(words) != 3 or whole_number(words[0].decode("utf-8", "replace")) is None:
            problem = "expected `graph T table`, such as `0 T 0`; write the number of the graph in front"
            raise WiringError(f"{ini.path}:{number}: {problem}")
        found.add(int(words[0]))
    if found != set(range(len(found))):
        raise WiringError(f"{ini.path}:{lines[0][0]}: the graphs of [mapping] are not numbered 0, 1 and so on")
    return sorted(found)


def _with_line_behind(ini: MosesIni, number: int, line: str) -> MosesIni:
    """Put a line behind that one."""
    ending = b"\r" if ini.lines[0].endswith(b"\r") else b""
    written = line.encode("utf-8", "surrogateescape") + ending
    return MosesIni(ini.path, (*ini.lines[:number], written, *ini.lines[number:]))


def _with_setting(ini: MosesIni, section: str, line: str, *, default: Sequence[str]) -> MosesIni:
    """Put a line at the end of a section; where there is none, one is made, with ``default`` before the line."""
    present = section_lines(ini.lines, section)
    if present:
        return _with_line_behind(ini, present[-1][0], line)
    place = min(number for number, raw in enumerate(ini.lines, start=1) if section_name(code_of(raw)) == "feature")
    for new in (f"[{section}]", *default, line, ""):
        ini, place = _with_line_behind(ini, place - 1, new), place + 1
    return ini
