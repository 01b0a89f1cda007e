#!/usr/bin/env python
r"""Other columns that a model of phrases can give a table, as sums over the phrase pairs of n-best lists.

    phrase_column_variants.py --table phrase-table.gz --model runs/forward [--longer DIR] [--sentences DIR]
        [--halves DIR DIR] --list val.list.gz=val.variants.gz=val.tok.en [--list ...]

Reads lists with segmentation, LIST=OUTPUT=SOURCE, and puts behind their features, with p = p(target phrase | source
phrase) of --model, floored as in a table:

    Column0             ln p, as `smt-bridge add-features --feature phrases:SPEC`
    Words0              ln p divided by the number of target words and the end
    Sharp0, Flat0       ln p where every word's distribution is p ** 2 and p ** 0.5, renormalised
    Once0, Often0       ln p of pairs that the table has seen once (or never), and 0 for others; and the other way round
    Longer0             of the model trained on, --longer
    LongerMean0         the mean of Column0 and Longer0, as of an ensemble of the two models
    Mean0, Mixture0     with --sentences, a model trained on sentences: the mean of both logarithms, as of an ensemble,
                        and the logarithm of the mean of both probabilities
    Read0, Unread0      with --halves, models of OUT/half-0.gz and OUT/half-1.gz of held_out_phrases.py: of the model
                        that has read the pairs of this source phrase, and of the one that has not
    Halves0             the mean of these two

Prints, as Markdown, the mean of each over the distinct pairs of all lists, by the number of target words and ends.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Container, Iterator, Sequence

import torch
from held_out_phrases import half_of, pairs_of

from nmt_core.base.errors import NmtError
from nmt_core.base.interfaces import PairScore, PairScorer, SentencePair
from nmt_core.base.words import split_words
from nmt_core.files import open_output, read_text_lines
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.model_directory.loaded_model import LoadedModel, load_model
from smt_bridge.features.annotate import annotate
from smt_bridge.features.neural import PhraseSum
from smt_bridge.model_checks import FLOOR
from smt_bridge.nbest.entry import format_entry
from smt_bridge.nbest.formats import read_entries

LOG_FLOOR = math.log(FLOOR)
Change = Callable[[SentencePair, Sequence[float]], float]


class Remembering:
    """A model's floored ln p of every pair it was ever asked for."""

    def __init__(self, scorer: PairScorer) -> None:
        self._scorer = scorer
        self._known: dict[SentencePair, float] = {}

    @property
    def pairs(self) -> list[SentencePair]:
        """All that were asked for."""
        return list(self._known)

    def log_probs(self, pairs: Sequence[SentencePair]) -> list[float]:
        """One number per pair."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        for pair, score in zip(new, self._scorer.score(new) if new else [], strict=True):
            self._known[pair] = min(max(score.log_prob, LOG_FLOOR), 0.0)
        return [self._known[pair] for pair in pairs]


class Changed:
    """A ``PairScorer`` whose numbers are made of those of some models."""

    signature = "variant of a column"

    def __init__(self, models: Sequence[Remembering], change: Change) -> None:
        self._models, self._change = models, change

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """One number per pair; there are none per word."""
        columns = [model.log_probs(pairs) for model in self._models]
        return [PairScore(self._change(pair, row)) for pair, *row in zip(pairs, *columns, strict=True)]


def mean(_: SentencePair, row: Sequence[float]) -> float:
    """Of the logarithms; of one, itself."""
    return math.fsum(row) / len(row)


def mixture(_: SentencePair, row: Sequence[float]) -> float:
    """The logarithm of the mean of probabilities."""
    return max(row) + math.log(math.fsum(math.exp(value - max(row)) for value in row) / len(row))


def size(pair: SentencePair) -> int:
    """Words of the target and its end."""
    return len(split_words(pair.target)) + 1


def by_words(pair: SentencePair, row: Sequence[float]) -> float:
    """The logarithm per word and end."""
    return row[0] / size(pair)


def where(condition: Callable[[SentencePair], bool]) -> Change:
    """The logarithm of pairs for which ``condition`` holds."""
    return lambda pair, row: row[0] if condition(pair) else 0.0


def with_temperature(folder: str, temperature: float) -> LoadedModel:
    """The model with p ** (1 / temperature), renormalised, for every word."""
    loaded = load_model(folder)
    parameters = dict(loaded.model.named_parameters())
    with torch.no_grad():
        for name in ("output.weight", "output.bias"):
            parameters[name] /= temperature
    return loaded


def seen_often(table: str) -> set[tuple[str, str]]:
    """The pairs that were extracted more than once."""
    return {(pair.source, pair.target) for pair in pairs_of(table) if pair.count > 1}


def columns(
    args: argparse.Namespace, column: Remembering, often: Container[tuple[str, str]]
) -> Iterator[tuple[str, Changed]]:
    """Names, and what makes their numbers; ``column`` are those of ``args.model``."""
    yield "Column0", Changed([column], mean)
    yield "Words0", Changed([column], by_words)
    for name, temperature in (("Sharp0", 0.5), ("Flat0", 2.0)):
        yield name, Changed([Remembering(ModelPairScorer([with_temperature(args.model, temperature)]))], mean)
    yield "Once0", Changed([column], where(lambda pair: (pair.source, pair.target) not in often))
    yield "Often0", Changed([column], where(lambda pair: (pair.source, pair.target) in often))
    if args.longer:
        longer = Remembering(ModelPairScorer([load_model(args.longer)]))
        yield "Longer0", Changed([longer], mean)
        yield "LongerMean0", Changed([column, longer], mean)
    if args.sentences:
        both = [column, Remembering(ModelPairScorer([load_model(args.sentences)]))]
        yield "Mean0", Changed(both, mean)
        yield "Mixture0", Changed(both, mixture)
    if args.halves:
        halves = [Remembering(ModelPairScorer([load_model(folder)])) for folder in args.halves]
        yield "Read0", Changed(halves, lambda pair, row: row[half_of(pair.source)])
        yield "Unread0", Changed(halves, lambda pair, row: row[1 - half_of(pair.source)])
        yield "Halves0", Changed(halves, mean)


class Named(PhraseSum):
    """The sum over a hypothesis' pairs, under a name of its own."""

    def __init__(self, name: str, scorer: PairScorer) -> None:
        super().__init__(scorer)
        self.names = (name,)


def work(args: argparse.Namespace) -> Iterator[str]:
    """Write the lists; the lines of the table of means."""
    column = Remembering(ModelPairScorer([load_model(args.model)]))
    made = list(columns(args, column, seen_often(args.table)))
    features = [Named(name, scorer) for name, scorer in made]
    for argument in args.list:
        path, output, source = argument.split("=")
        entries = annotate(read_entries(path), features, list(read_text_lines(source)), path=path)
        with open_output(output) as stream:
            for entry in entries:
                stream.write(format_entry(entry) + b"\n")
    words = sum(size(pair) for pair in column.pairs)
    yield "| column | mean per word and end |"
    yield "|---|---|"
    for name, scorer in made:
        total = math.fsum(score.log_prob for score in scorer.score(column.pairs))
        yield f"| {name} | {total / words:.3f} |"
    yield ""
    yield f"{len(column.pairs)} distinct pairs."


def main() -> int:
    """Write the lists and print the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", required=True, metavar="TABLE")
    parser.add_argument("--model", required=True, metavar="DIR")
    parser.add_argument("--longer", metavar="DIR")
    parser.add_argument("--sentences", metavar="DIR")
    parser.add_argument("--halves", nargs=2, metavar="DIR")
    parser.add_argument("--list", required=True, action="append", metavar="LIST=OUTPUT=SOURCE")
    args = parser.parse_args()
    try:
        print("\n".join(work(args)))
    except NmtError as error:
        print(f"phrase_column_variants: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
