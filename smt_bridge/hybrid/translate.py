"""Text through Moses and a neural model: the work of `smt-bridge translate`."""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import IO, Any, NamedTuple

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.base.words import check_factors, check_words, count_words, without_markup
from nmt_core.files import open_output, read_text_lines
from nmt_core.files.progress import progress_bar
from smt_bridge.features.base import Feature
from smt_bridge.hybrid.chooser import GIVEN_UP, UNTRANSLATED, Choice, Chooser
from smt_bridge.hybrid.opening import column_signatures, graph_lists_of, graph_reader_of, moses_of, open_features
from smt_bridge.hybrid.options import recipe_by_options
from smt_bridge.hybrid.translator import GuidedChooser, HybridTranslator
from smt_bridge.metadata import Metadata, new_metadata, write_metadata
from smt_bridge.models import (
    Local,
    ModelOptions,
    SearchOptions,
    check_takes_guidance,
    open_model,
    source_factors,
)
from smt_bridge.moses.process import MosesFailed, MosesProcess
from smt_bridge.nbest.entry import format_entry
from smt_bridge.recipe import GRAPH, MOSES, Recipe, write_recipe
from smt_bridge.running_text import RunningText, open_running_text, read_preparation

NAME = "translate"
WINDOW = 100  # sentences that are translated together, at most


def translate_text(args: argparse.Namespace) -> int:
    """Translate in windows: as many sentences as are there."""
    recipe = recipe_by_options(args)
    metadata_file = new_metadata(args.nbest_output) if args.nbest_output and not recipe.guidance else None
    counts = _Counts()
    with contextlib.ExitStack() as stack:
        system = _open(args, recipe, stack)

        def finish() -> None:
            if metadata_file is not None:
                _write_list_metadata(args, system.described(recipe), counts)

        _translate_input(args, system, counts, stack, finish)
        system.decoder.finish()
        counts.report(system.moses)
    if args.write_recipe:
        write_recipe(args.write_recipe, recipe)
    return 0


class _System(NamedTuple):
    """What a recipe describes: both systems, what chooses among their translations, and ``text`` for raw text."""

    hybrid: HybridTranslator
    decoder: Any
    moses: MosesProcess | None
    chooser: Chooser
    features: Sequence[Feature]
    factors: int
    text: RunningText | None

    def described(self, recipe: Recipe) -> Recipe:
        """The recipe with the columns of its lists and their signatures."""
        columns = self.chooser.columns
        signatures = column_signatures(recipe, columns, self.features, self.decoder)
        return replace(recipe, columns=columns, signatures=signatures)


def _open(args: argparse.Namespace, recipe: Recipe, stack: contextlib.ExitStack) -> _System:
    """Load the models, then start Moses."""
    guidance = recipe.guidance
    search = SearchOptions(recipe.beam, recipe.nmt_nbest, recipe.forbid_unknown)
    opened = functools.cache(  # the search's model is as a rule a scorer's, too
        lambda spec: open_model(spec, ModelOptions(args.device, args.dtype, args.softmax), search, _warn)
    )
    features = open_features(recipe, opened)
    factors = source_factors(recipe.model)
    if factors and args.raw:
        raise ConfigError("--raw: the neural model reads words with factors, which raw text has not")
    decoder = opened(recipe.model)
    preparation = read_preparation(recipe)
    own_text = None if isinstance(decoder, Local) else decoder.own_text
    text = open_running_text(preparation, decoder.models, own_text) if args.raw else None
    if guidance:
        check_takes_guidance(decoder.models)
    graphs = graph_lists_of(recipe, decoder.models)
    moses = _moses(args, recipe, stack)
    chooser = Chooser(recipe, features)
    hybrid = HybridTranslator(moses, decoder, GuidedChooser() if guidance else chooser, graphs, guidance)
    return _System(hybrid, decoder, moses, chooser, features, factors, text)


def _translate_input(
    args: argparse.Namespace,
    system: _System,
    counts: _Counts,
    stack: contextlib.ExitStack,
    finish: Callable[[], None],
) -> None:
    """Write a line for every line; the files are complete when the stack is left. ``finish`` is of the lists."""
    text = system.text
    listing = stack.enter_context(open_output(args.nbest_output, on_complete=finish)) if args.nbest_output else None
    output = stack.enter_context(open_output(args.output))
    bar = stack.enter_context(progress_bar(NAME, " sent", quiet=args.quiet))
    making_lists = args.nbest_output and not args.recipe  # the first window defines their columns
    for window in windows_of_lines(args.input, WINDOW, streaming=args.input == "-" and not making_lists):
        for number, line in enumerate(window, start=counts.sentences + 1):
            check_words(line, args.max_words, path=args.input, line=number)
            check_factors(line, system.factors, path=args.input, line=number)
        sentences = [counts.safe(text.tokenize(line) if text else line, factored=system.factors > 0) for line in window]
        for sentence, choice in zip(sentences, _translate(args, system.hybrid, sentences), strict=True):
            _write(choice, output, listing, counts, text.detokenize if text else None)
            counts.add(sentence, choice)
            if system.hybrid.moses is not None:
                _warn_of_silence(args, counts.sentences, sentence, choice)
        if args.output == "-":
            output.flush()
        bar.update(len(window))


def windows_of_lines(path: str, size: int, *, streaming: bool) -> Iterator[list[str]]:
    """Lines in groups of ``size``; ``streaming``, of at most that: those that are there, and none waits for another."""
    lines = read_text_lines(path, errors="surrogateescape")
    if streaming:
        waiting: queue.Queue[str | BaseException | None] = queue.Queue(2 * size)
        threading.Thread(target=_read_ahead, args=(lines, waiting), daemon=True).start()
        while window := _take(waiting, size):
            yield window
    else:
        while window := list(itertools.islice(lines, size)):
            yield window


def _read_ahead(lines: Iterable[str], waiting: queue.Queue[str | BaseException | None]) -> None:
    try:
        for line in lines:
            waiting.put(line)
        waiting.put(None)
    except BaseException as error:  # raised where the lines are taken
        waiting.put(error)


def _take(waiting: queue.Queue[str | BaseException | None], size: int) -> list[str]:
    """At least one line, and more that are there already; none at the end, or what reading the text raised."""
    window: list[str] = []
    while len(window) < size and not (window and waiting.empty()):
        item = waiting.get()
        if not isinstance(item, str):
            if isinstance(item, BaseException) and not window:
                raise item
            waiting.put(item)  # for the next call: nothing comes behind it
            break
        window.append(item)
    return window


def _moses(args: argparse.Namespace, recipe: Recipe, stack: contextlib.ExitStack) -> MosesProcess | None:
    options = moses_of(recipe, program=args.moses, threads=args.moses_threads, timeout=args.moses_timeout)
    reader = graph_reader_of(recipe)
    try:
        return stack.enter_context(MosesProcess(options, reader))
    except MosesFailed as error:
        if not args.degrade:
            raise
        _warn(f"{error}; going on with the neural model alone")
        return None


def _translate(args: argparse.Namespace, hybrid: HybridTranslator, sentences: Sequence[str]) -> list[Choice]:
    try:
        return hybrid.translate(sentences)
    except MosesFailed as error:
        if not args.degrade:
            raise
        _warn(f"{error}; going on with the neural model alone")
        hybrid.moses = None
        return hybrid.translate(sentences)


def _warn_of_silence(args: argparse.Namespace, line: int, sentence: str, choice: Choice) -> None:
    """Say why Moses has no list of a sentence, or the neural model none of its search graph."""
    what = f"line {line} ({counted(count_words(sentence), 'word')})"
    if MOSES in choice.silent:
        problem = choice.silent[MOSES]
        if problem == UNTRANSLATED:
            problem = "Moses has no translation"
        elif problem == GIVEN_UP:
            problem = f"Moses ended, or was silent for {args.moses_timeout:g} s (--moses-timeout), twice"
        _warn(f"{what}: {problem}; translated by the neural model alone")
    elif GRAPH in choice.silent:
        _warn(f"{what}: {choice.silent[GRAPH]}; translated without a list of its search graph")


def _write(
    choice: Choice,
    output: IO[bytes],
    listing: IO[bytes] | None,
    counts: _Counts,
    detokenize: Callable[[str], str] | None,
) -> None:
    best = choice.best
    text = b"" if best is None else detokenize(best.text).encode() if detokenize else best.hypothesis
    output.write(text + b"\n")
    if listing is not None:
        for entry in choice.entries:
            listing.write(format_entry(entry._replace(sentence=counts.sentences, original=None)) + b"\n")


class _Counts:
    """What happened, for a line at the end."""

    def __init__(self) -> None:
        self.sentences = self.hypotheses = self.escaped = 0
        self.silent: dict[str, int] = {}

    def safe(self, line: str, *, factored: bool) -> str:
        """The sentence without characters that mean something to Moses, but for the bars between factors."""
        safe = without_markup(line, factored=factored)
        self.escaped += safe != line
        return safe

    def add(self, sentence: str, choice: Choice) -> None:
        self.sentences += 1
        self.hypotheses += len(choice.entries)
        for system in choice.silent if count_words(sentence) else ():
            self.silent[system] = self.silent.get(system, 0) + 1

    def report(self, moses: MosesProcess | None) -> None:
        _say(f"{counted(self.hypotheses, 'hypothesis', 'hypotheses')} of {counted(self.sentences, 'sentence')}")
        if self.escaped:
            _say(f"{counted(self.escaped, 'sentence')} had characters that Moses takes for markup: these were escaped")
        for system, number in self.silent.items():
            _warn(f"no list of {system} for {number:,} of {counted(self.sentences, 'sentence')}")
        if moses is not None and moses.restarts:
            sentences_were = counted(moses.given_up, "sentence was", "sentences were")
            _warn(f"Moses was restarted {counted(moses.restarts, 'time')}; {sentences_were} too much for it")


def _write_list_metadata(args: argparse.Namespace, recipe: Recipe, counts: _Counts) -> None:
    numbers = {"sentences": counts.sentences, "hypotheses": counts.hypotheses}
    options = {"recipe": recipe.as_json()}
    write_metadata(
        args.nbest_output, Metadata(input=args.input, columns=dict(recipe.signatures), counts=numbers, options=options)
    )


def _warn(text: str) -> None:
    _say(f"warning: {text}")


def _say(text: str) -> None:
    say(f"{NAME}: {text}")
