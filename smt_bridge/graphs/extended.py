r"""Search graphs in the form of ``moses -output-search-graph-extended FILE`` (``-osgx``), all sentences in one file.

::

    0 hyp=0 stack=0 forward=2 fscore=-1.949
    0 hyp=113 stack=2 back=64 score=-4.336 transition=-2.487 recombined=66 forward=2982 fscore=-7.293 covered=0-0
      scores="core=(0.000,-2.000,…,-17.620) " out="There|Il y"                      (one line)

A line is an arc from the hypothesis ``back`` to ``recombined``, where that is given, else to ``hyp``; ``forward=-1``
marks complete hypotheses. ``stack`` counts covered source words. ``core`` has the dense features in the order of the
``[feature]`` lines of ``moses.ini``, without names; sparse ones stand behind it as ``name=value``. ``out`` has the
source words, ``|``, and the target words. That features times weights are ``transition``, but for the rounding to three
decimals, proves that the ``moses.ini`` is the right one; it is checked in every line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError, WiringError
from smt_bridge.graphs.features import GraphFeatures, totals
from smt_bridge.graphs.phrase_graph import Floats, Ints, PhraseGraph, Words
from smt_bridge.moses_lines import split_tokens
from smt_bridge.nbest.entry import is_usable

NUMBER = rb"-?[0-9]{1,15}(?:\.[0-9]{1,15})?"
"""As Moses writes it."""

BEGINNING = re.compile(rb"[0-9]{1,15} hyp=[0-9]")
_LARGEST = 1 << 30  # bytes of one sentence
_ROOT = re.compile(rb"([0-9]{1,15}) hyp=0 stack=0 forward=(-?[0-9]{1,15}) fscore=[^ \n]*[ \r]*")
_PLAIN_ROOT = re.compile(rb"[0-9]{1,15} hyp=0 stack=0[ \r]*")
_WITHOUT_SCORES = "has no scores; write the graph with -output-search-graph-extended FILE"
_ARC = re.compile(
    rb"^[0-9]+ hyp=([0-9]{1,15}) stack=([0-9]{1,9}) back=([0-9]{1,15}) score=[^ \n]* transition=([^ \n]*)"
    rb" (?:recombined=([0-9]{1,15}) )?forward=(-1|[0-9]+) fscore=[^ \n]* covered=[0-9]+-[0-9]+"
    rb' scores="core=\(([^)\n]*)\) ?([^"\n]*)" out="[^\n|]*\|([^\n|]*)"[ \r]*$',
    re.MULTILINE,
)
_HYP, _STACK, _BACK, _TRANSITION, _RECOMBINED, _FORWARD, _CORE, _SPARSE, _TARGET = range(9)
_ROUNDING = 0.0005
_SLACK = 1e-6  # of the decoder's single precision, for each unit of what is added up
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_EXPECTED = 'expected `ID hyp=1 stack=1 back=0 score=… transition=… … scores="core=(…) " out="source|target"`'

_Row = tuple[bytes, ...]


def read_extended_graphs(blocks: Iterable[bytes], features: GraphFeatures, *, path: str) -> Iterator[PhraseGraph]:
    """The graphs of a text, one after the other.

    Raises FormatError, naming the line of ``path``, for a malformed line, WiringError for one whose scores are not
    those that ``features`` give.
    """
    line = 1
    for content in _cut_at_sentences(blocks, path):
        graph = _read_graph(content, features, path, line)
        yield graph
        line += content.count(b"\n")


def format_extended_graph(graph: PhraseGraph) -> bytes:
    """The lines of a graph that was read from such a text, as they stood and in their order."""
    kept = np.unique(graph.lines_E[graph.lines_E >= 0]).tolist()
    return b"\n".join([graph.head, *(graph.lines[place] for place in kept)]) + b"\n"


def _cut_at_sentences(blocks: Iterable[bytes], path: str) -> Iterator[bytes]:
    """The lines of one sentence after the other."""
    waiting, looked = bytearray(), 0
    for block in blocks:
        waiting += block
        if not waiting.endswith(b"\n"):
            waiting += b"\n"  # the last line of the file
        while True:
            identifier = bytes(waiting[: waiting.find(b" ") + 1])
            found = re.compile(rb"\n(?!%b|\Z)" % re.escape(identifier)).search(waiting, looked)
            if found is None:
                break
            yield bytes(waiting[: found.end()])
            del waiting[: found.end()]
            looked = 0
        looked = len(waiting) - 1
        if len(waiting) > _LARGEST:
            raise FormatError(path, f"one graph is larger than {_LARGEST >> 20} MiB; is this the right file?")
    if waiting:
        yield bytes(waiting)


def _read_graph(content: bytes, features: GraphFeatures, path: str, line: int) -> PhraseGraph:
    head, _, body = content.partition(b"\n")
    root = _ROOT.fullmatch(head)
    if _PLAIN_ROOT.fullmatch(head):
        raise FormatError(path, _WITHOUT_SCORES, line=line)
    if root is None:
        raise FormatError(path, "expected `ID hyp=0 stack=0 forward=… fscore=…`, where a graph begins", line=line)
    lines = tuple(body[:-1].split(b"\n")) if body else ()
    rows = _ARC.findall(body)
    if len(rows) != len(lines):
        raise _malformed(lines, path, line + 1)
    features_ED = _numbers([row[_CORE] for row in rows], len(features.labels), path, line + 1, features.path)
    transitions_E1 = _numbers([row[_TRANSITION] for row in rows], 1, path, line + 1, features.path)
    sparse = _sparse([row[_SPARSE] for row in rows], path, line + 1)
    nodes, starts_E, ends_E = _nodes(rows, root[2] == b"-1", path, line + 1)
    size = len(rows)
    extra = len(ends_E) - size  # arcs from complete hypotheses to the end
    order = np.argsort(ends_E, kind="stable")
    phrases_E, phrases = _phrases([*(row[_TARGET] for row in rows), *[b""] * extra])
    new_places = np.argsort(order)
    graph = PhraseGraph(
        sentence=int(root[1]),
        nodes=nodes,
        starts_E=starts_E[order],
        ends_E=ends_E[order],
        phrases_E=phrases_E[order],
        phrases=phrases,
        features_ED=np.concatenate([features_ED, np.zeros((extra, features_ED.shape[1]))])[order],
        sparse={int(new_places[arc]): values for arc, values in sparse.items()},
        lines_E=np.append(np.arange(size), np.full(extra, -1))[order],
        lines=lines,
        head=head,
        line=line,
    )
    _check_totals(graph, transitions_E1[:, 0], features, path)
    return graph


def _phrases(targets: Sequence[bytes]) -> tuple[Ints, tuple[Words, ...]]:
    """The number of each target's words, and the words of each number."""
    phrases: dict[Words, int] = {}
    numbers: dict[bytes, int] = {}
    for target in targets:
        if target not in numbers:
            numbers[target] = phrases.setdefault(tuple(split_tokens(target)), len(phrases))
    return np.array([numbers[target] for target in targets], np.int64), tuple(phrases)


def _malformed(lines: Sequence[bytes], path: str, first: int) -> FormatError:
    """What is wrong with the first line that is not an arc."""
    number, line = next((number, line) for number, line in enumerate(lines, first) if not _ARC.fullmatch(line))
    problem = _EXPECTED
    if b" back=" in line and b' scores="' not in line:
        problem = _WITHOUT_SCORES
    elif line.rpartition(b' out="')[2].count(b"|") > 1:
        problem = (
            "has several factors, or `|` in a word, behind out=; write the graph with -output-search-graph-hypergraph"
        )
    return FormatError(path, problem, line=number)


def _numbers(rows: Sequence[bytes], size: int, path: str, first: int, ini: str) -> Floats:
    """``size`` numbers with commas between them of every row."""
    usual = re.compile(b",".join([NUMBER] * size)).fullmatch
    if size and all(map(usual, rows)):
        return np.array(b",".join(rows).split(b",") if rows else [], np.float64).reshape(len(rows), size)
    values = np.zeros((len(rows), size))
    for number, row in enumerate(rows):
        tokens = row.split(b",")
        if len(tokens) != size:
            problem = f"has {counted(len(tokens), 'score')} but {ini} has {size}; give the moses.ini of this run"
            raise FormatError(path, problem, line=first + number)
        values[number] = [_number(token, path, first + number) for token in tokens]
    return values


def _number(token: bytes, path: str, line: int) -> float:
    if not _NUMBER.fullmatch(token) or not is_usable(float(token)):
        raise FormatError(
            path, f"'{token[:40].decode('utf-8', 'replace')}' is not a score; expected a number", line=line
        )
    return float(token)


def _sparse(rows: Sequence[bytes], path: str, first: int) -> dict[int, dict[str, float]]:
    found: dict[int, dict[str, float]] = {}
    for number, row in enumerate(rows):
        for token in split_tokens(row) if row else ():
            name, _, value = token.rpartition(b"=")
            if not name:
                raise FormatError(path, f"{_EXPECTED}, and sparse features as name=value", line=first + number)
            found.setdefault(number, {})[name.decode("utf-8", "surrogateescape")] = _number(value, path, first + number)
    return found


def _nodes(rows: Sequence[_Row], root_is_complete: bool, path: str, first: int) -> tuple[int, Ints, Ints]:
    """The number of nodes, and beginnings and ends of the arcs, those to the end behind the others."""
    hypotheses = np.array([int(row[_RECOMBINED] or row[_HYP]) for row in rows], np.int64)
    backs, stacks_E = (np.array([int(row[column]) for row in rows], np.int64) for column in (_BACK, _STACK))
    numbers, nodes_E = np.unique(np.append(hypotheses, 0), return_inverse=True)
    stacks = np.zeros(len(numbers), np.int64)
    stacks[nodes_E[:-1]] = stacks_E
    stacks[0] = 0  # of hypothesis 0, where all begins
    places = np.empty(len(numbers), np.int64)
    places[np.lexsort((numbers, stacks))] = np.arange(len(numbers))
    backs_E = np.minimum(np.searchsorted(numbers, backs), len(numbers) - 1)
    wrong = np.flatnonzero((numbers[backs_E] != backs) | (stacks[backs_E] >= stacks[nodes_E[:-1]]))
    if wrong.size:
        problem = (
            f"comes from hypothesis {backs[wrong[0]]}, of which no earlier stack has a line; is the file complete?"
        )
        raise FormatError(path, problem, line=first + int(wrong[0]))
    complete = np.array([row[_FORWARD] == b"-1" for row in rows] + [root_is_complete])
    last = np.unique(places[nodes_E[complete]])
    starts = np.concatenate([places[backs_E], last])
    ends = np.concatenate([places[nodes_E[:-1]], np.full(len(last), len(numbers))])
    return len(numbers) + 1, starts, ends


def _check_totals(graph: PhraseGraph, transitions: Floats, features: GraphFeatures, path: str) -> None:
    """Raises WiringError where the features are not what the decoder added up."""
    weights = features.decoder_weights_D
    found = totals(graph, weights, features.decoder_sparse)
    sizes = np.abs(graph.features_ED) @ np.abs(weights)
    arcs = np.flatnonzero(graph.lines_E >= 0)
    given = transitions[graph.lines_E[arcs]]
    most = _ROUNDING * (1 + np.abs(weights).sum()) + _SLACK * sizes[arcs]
    wrong = np.flatnonzero(np.abs(found[arcs] - given) > most)
    if wrong.size:
        arc = min(wrong.tolist(), key=lambda one: int(graph.lines_E[arcs[one]]))
        raise WiringError(
            f"{path}:{graph.line + 1 + int(graph.lines_E[arcs[arc]])}: the scores times the weights of {features.path}"
            f" are {found[arcs[arc]]:.3f} but transition={given[arc]:.3f}; give the moses.ini of this run"
        )
