r"""Search graphs as ``moses -output-search-graph-extended FILE`` (``-osgx``) writes them, all sentences in one file.

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

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from nmt_core.base.messages import counted
from nmt_core.files import read_blocks, read_lines
from smt_bridge.errors import FormatError, WiringError
from smt_bridge.graphs.features import GraphFeatures, totals
from smt_bridge.graphs.phrase_graph import Floats, Ints, PhraseGraph, Words
from smt_bridge.moses.graph_pipe import beginnings
from smt_bridge.moses_lines import split_tokens
from smt_bridge.nbest.checks import beyond
from smt_bridge.nbest.entry import LARGEST

_LARGEST_GRAPH = 1 << 30  # bytes of one sentence
_MOST_WORDS = 500  # of a phrase; what works word by word takes the square of it
_BEGINNING = re.compile(rb"[0-9]{1,15} hyp=[0-9]")
_ROOT = re.compile(rb"([0-9]{1,15}) hyp=0 stack=0 forward=(-?[0-9]{1,15}) fscore=[^ \n]*[ \r]*")
_PLAIN_ROOT = re.compile(rb"[0-9]{1,15} hyp=0 stack=0[ \r]*")
_ARC = re.compile(
    rb"^[0-9]+ hyp=([0-9]{1,15}) stack=([0-9]{1,9}) back=([0-9]{1,15}) score=[^ \n]* transition=([^ \n]*)"
    rb" (?:recombined=([0-9]{1,15}) )?forward=(-1|[0-9]+) fscore=[^ \n]* covered=[^ \n]*"
    rb' scores="core=\(([^)\n]*)\) ?([^"\n]*)" out="[^\n|]*\|([^\n|]*)"[ \r]*$',
    re.MULTILINE,
)
_ROUNDING = 0.0005
_SLACK = 1e-6  # of the decoder's single precision, for each unit of what is added up
_EXPECTED = (
    "expected a search graph as `moses -output-search-graph-extended FILE` writes it; hypergraphs, the graphs of chart"
    " decoders, word graphs and SLF lattices cannot be read"
)
_EXPECTED_ARC = 'expected `ID hyp=1 stack=1 back=0 score=… transition=… … scores="core=(…) " out="source|target"`'
_WITHOUT_SCORES = "has no scores; write the graph with -output-search-graph-extended FILE"


def read_graphs(path: str, features: GraphFeatures) -> Iterator[PhraseGraph]:
    """Yield the graphs of a file, one sentence at a time.

    Raises FormatError, naming file and line, for what is no graph and for ids that do not ascend, WiringError for a
    graph whose scores are not those that ``features`` give.
    """
    last = -1
    for graph in _parse(read_blocks(path), features, path):
        if graph.sentence <= last:
            problem = f"sentence {graph.sentence} comes after {last}; expected ascending ids, each once"
            raise FormatError(path, problem, line=graph.line)
        yield graph
        last = graph.sentence


def read_graph(content: bytes, features: GraphFeatures, *, path: str) -> PhraseGraph:
    """The graph of one sentence from its text; ``path`` is its name in errors.

    Raises FormatError and WiringError as ``read_graphs``, also where there are several.
    """
    first, *others = _parse(iter([content]), features, path)
    if others:
        raise FormatError(path, "has several graphs; expected that of one sentence", line=others[0].line)
    return first


def with_lines(graphs: Iterable[PhraseGraph], text: str, *, path: str) -> Iterator[tuple[bytes, PhraseGraph]]:
    """Each graph with its line of ``text``; ``path`` names the file of the graphs, whose ids ascend.

    Raises FormatError for a graph without a line.
    """
    lines = enumerate(read_lines(text))
    number, line = -1, b""
    for graph in graphs:
        while number < graph.sentence:
            found = next(lines, None)
            if found is None:
                raise beyond(path, graph.sentence, text, number + 1, line=graph.line)
            number, line = found
        yield line.removesuffix(b"\r"), graph


def _parse(blocks: Iterator[bytes], features: GraphFeatures, path: str) -> Iterator[PhraseGraph]:
    first = next(blocks, b"")
    if not first:
        raise FormatError(path, f"is empty; {_EXPECTED}")
    if not _BEGINNING.match(first):
        raise FormatError(path, _EXPECTED, line=1)
    line = 1
    for content in _cut_at_sentences(itertools.chain([first], blocks), path):
        yield _read_graph(content, features, path, line)
        line += content.count(b"\n")


def _cut_at_sentences(blocks: Iterable[bytes], path: str) -> Iterator[bytes]:
    """The lines of one sentence after the other; ``blocks`` end where a line does."""
    waiting = bytearray()
    for block in blocks:
        done = 0
        for begin, _ in beginnings(block):
            waiting += block[done:begin]
            if waiting:
                yield bytes(waiting)
                waiting.clear()
            done = begin
        waiting += block[done:]
        if len(waiting) > _LARGEST_GRAPH:
            raise FormatError(path, f"one graph is larger than {_LARGEST_GRAPH >> 20} MiB; is this the right file?")
    if waiting:
        yield bytes(waiting)


def _read_graph(content: bytes, features: GraphFeatures, path: str, line: int) -> PhraseGraph:
    head, _, body = content.partition(b"\n")
    root = _ROOT.fullmatch(head)
    if root is None:
        expected = "expected `ID hyp=0 stack=0 forward=… fscore=…`, where a graph begins"
        raise FormatError(path, _WITHOUT_SCORES if _PLAIN_ROOT.fullmatch(head) else expected, line=line)
    lines = tuple(body.removesuffix(b"\n").split(b"\n")) if body else ()
    rows = _ARC.findall(body)
    if len(rows) != len(lines) or content.count(b"\n" + root[1] + b" ") != len(lines):
        raise _malformed(lines, root[1], path, line + 1)
    columns = zip(*rows, strict=True) if rows else ((),) * _ARC.groups
    hypotheses, stacks, backs, transitions, recombined, forwards, cores, sparse, targets = columns
    ends = [other or own for own, other in zip(hypotheses, recombined, strict=True)]
    complete = [forward == b"-1" for forward in (*forwards, root[2])]
    nodes, starts_E, ends_E = _nodes(_integers(backs), _integers(ends), _integers(stacks), complete, path, line + 1)
    features_ED = _numbers(cores, len(features.labels), path, line + 1, features.path)
    size = len(rows)
    extra = len(ends_E) - size  # arcs from complete hypotheses to the end
    order = np.argsort(ends_E, kind="stable")
    new_places = np.argsort(order)
    phrases: dict[bytes, int] = {}
    phrases_E = np.array([phrases.setdefault(target, len(phrases)) for target in (*targets, *[b""] * extra)], np.int64)
    graph = PhraseGraph(
        sentence=int(root[1]),
        nodes=nodes,
        starts_E=starts_E[order],
        ends_E=ends_E[order],
        phrases_E=phrases_E[order],
        phrases=tuple(_words(target, int(root[1]), path, line) for target in phrases),
        features_ED=np.concatenate([features_ED, np.zeros((extra, features_ED.shape[1]))])[order],
        sparse={int(new_places[arc]): values for arc, values in _sparse(sparse, path, line + 1).items()},
        line=line,
    )
    given = _numbers(transitions, 1, path, line + 1, features.path)[:, 0]
    _check_totals(graph, new_places[:size], given, features, path)
    return graph


def _words(target: bytes, sentence: int, path: str, line: int) -> Words:
    words = tuple(split_tokens(target))
    if len(words) > _MOST_WORDS:
        problem = f"sentence {sentence} has a phrase of {len(words):,} words; is the file damaged?"
        raise FormatError(path, problem, line=line)
    return words


def _malformed(lines: Sequence[bytes], sentence: bytes, path: str, first: int) -> FormatError:
    """What is wrong with the first line that is not an arc of the sentence."""
    number, line = next(
        (number, line)
        for number, line in enumerate(lines, first)
        if not (line.startswith(sentence + b" ") and _ARC.fullmatch(line))
    )
    problem = _EXPECTED_ARC
    if b" back=" in line and b' scores="' not in line:
        problem = _WITHOUT_SCORES
    elif line.rpartition(b' out="')[2].count(b"|") > 1:
        problem = "has several factors, or `|` in a word, behind out=; only words of one factor can be read"
    return FormatError(path, problem, line=number)


def _numbers(rows: Sequence[bytes], size: int, path: str, first: int, ini: str) -> Floats:
    """``size`` numbers with commas between them of every row."""
    for number, row in enumerate(rows, first):
        if row.count(b",") != size - 1:
            has = f"has {counted(row.count(b',') + 1, 'score')} but {ini} has {size}"
            raise FormatError(path, f"{has}; give the moses.ini of this run", line=number)
    tokens = b",".join(rows).split(b",") if rows else []
    try:
        values = np.array(tokens, np.float64)
    except ValueError:  # which does not say of which token
        values = np.array([_number(token) for token in tokens])
    wrong = np.flatnonzero(~(np.abs(values) <= LARGEST))
    if wrong.size:
        raise _no_score(tokens[wrong[0]], path, first + int(wrong[0]) // size)
    return values.reshape(len(rows), size)


def _number(token: bytes) -> float:
    """The number; NaN for what is none."""
    try:
        return float(token)
    except ValueError:
        return math.nan


def _no_score(token: bytes, path: str, line: int) -> FormatError:
    shown = token[:40].decode("utf-8", "replace")
    return FormatError(path, f"'{shown}' is not a score; expected a number", line=line)


def _sparse(rows: Sequence[bytes], path: str, first: int) -> dict[int, dict[str, float]]:
    found: dict[int, dict[str, float]] = {}
    for number, row in enumerate(rows):
        for token in split_tokens(row) if row else ():
            name, _, text = token.rpartition(b"=")
            if not name:
                raise FormatError(path, f"{_EXPECTED_ARC}, and sparse features as name=value", line=first + number)
            value = _number(text)
            if not abs(value) <= LARGEST:
                raise _no_score(text, path, first + number)
            found.setdefault(number, {})[name.decode("utf-8", "surrogateescape")] = value
    return found


def _integers(texts: Sequence[bytes]) -> Ints:
    return np.array(list(map(int, texts)), np.int64)


def _nodes(
    backs: Ints, hypotheses: Ints, stacks_E: Ints, complete: Sequence[bool], path: str, first: int
) -> tuple[int, Ints, Ints]:
    """The number of nodes, and beginnings and ends of the arcs, those to the end behind the others.

    Arcs lead from ``backs`` to ``hypotheses``, which cover ``stacks_E`` words; the last of ``complete`` is of the root.
    """
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
    last = np.unique(places[nodes_E[np.array(complete)]])
    starts = np.concatenate([places[backs_E], last])
    ends = np.concatenate([places[nodes_E[:-1]], np.full(len(last), len(numbers))])
    return len(numbers) + 1, starts, ends


def _check_totals(graph: PhraseGraph, arcs: Ints, transitions: Floats, features: GraphFeatures, path: str) -> None:
    """Raises WiringError where the features are not what the decoder added up; ``arcs`` are the arcs of the lines."""
    weights = features.decoder_weights_D
    found = totals(graph, weights, features.decoder_sparse)[arcs]
    sizes = (np.abs(graph.features_ED) @ np.abs(weights))[arcs]
    most = _ROUNDING * (1 + np.abs(weights).sum()) + _SLACK * sizes
    wrong = np.flatnonzero(np.abs(found - transitions) > most)
    if wrong.size:
        line = int(wrong[0])
        raise WiringError(
            f"{path}:{graph.line + 1 + line}: the scores times the weights of {features.path} are {found[line]:.3f}"
            f" but transition={transitions[line]:.3f}; give the moses.ini of this run"
        )
