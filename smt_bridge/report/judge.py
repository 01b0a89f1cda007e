"""What a reranking is worth: each sentence, the scores of the systems alone and of the choice, as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from nmt_core.base.messages import counted
from nmt_core.base.words import MOST_WORDS, check_words, count_words
from nmt_core.version import VERSION
from smt_bridge.metrics.bleu import Counts, bleu_plus_one
from smt_bridge.metrics.metric import BLEU, counter
from smt_bridge.metrics.oracle import Oracle, oracle
from smt_bridge.metrics.significance import (
    LENGTH_BOUNDS,
    Comparison,
    LengthPart,
    SentenceScores,
    compare,
    sacrebleu_metric,
    score_by_length,
    sentence_scorer,
)
from smt_bridge.nbest.entry import NbestEntry, NbestList
from smt_bridge.nbest.merge import baselines
from smt_bridge.nbest.weighting import Reranker

FIRST, RERANKED = "first choice", "reranked"
"""The output of a list of one system without reranking, and with it."""


class Setting(NamedTuple):
    """What scores depend on: ``references`` one sequence per file, ``source`` lines or None, both by sentence.

    ``tokenize`` is sacrebleu's tokeniser of BLEU; ``plain`` makes plain text of words, where that is judged.
    Judged lines may have ``most_words``: TER's time grows with their square.
    """

    references: Sequence[Sequence[str]]
    source: Sequence[str] | None
    tokenize: str = "none"
    plain: Callable[[str], str] | None = None
    most_words: int = MOST_WORDS


class Sentence(NamedTuple):
    """One sentence: its first and its chosen entry (None in a gap), and their texts as judged, empty in a gap.

    ``outputs`` are the texts of the systems alone and of the choice. ``place`` is that of the chosen entry, from 1;
    ``size`` the length of the list, 0 for a gap. ``counts`` (N, 10) are those of BLEU of all entries; of a gap those of
    empty output.
    """

    number: int
    source: str
    references: Sequence[str]
    first: NbestEntry | None
    best: NbestEntry | None
    outputs: Mapping[str, str]
    first_text: str
    totals: tuple[float, float]
    place: int
    size: int
    counts: Counts

    @property
    def chosen(self) -> int:
        """The place of the chosen entry, from 0."""
        return max(0, self.place - 1)

    @property
    def before(self) -> NbestEntry:
        """The first entry of a sentence that has a list."""
        assert self.first is not None
        return self.first

    @property
    def after(self) -> NbestEntry:
        """The chosen entry of a sentence that has a list."""
        assert self.best is not None
        return self.best

    @property
    def gain(self) -> float:
        """How much BLEU+1 of the sentence changed."""
        scores = bleu_plus_one(self.counts[[0, self.chosen]])
        return float(scores[1] - scores[0])


class Collector:
    """Makes the sentences that are judged of lists and the entries chosen from them."""

    def __init__(self, reranker: Reranker, setting: Setting) -> None:
        self._reranker, self._setting = reranker, setting
        self._count = counter(BLEU, setting.tokenize)

    def sentence(self, group: NbestList, best: NbestEntry | None) -> Sentence:
        """The sentence of a list, from which ``best`` was chosen; None in a gap.

        Raises InputError where an entry has too many words.
        """
        setting, number = self._setting, group.sentence
        references = [reference[number] for reference in setting.references]
        source = "" if setting.source is None else setting.source[number]
        first = group.entries[0] if group.entries else None
        if first is None or best is None:
            counts = self._count(references, [""], setting.plain)
            return Sentence(number, source, references, None, None, {RERANKED: ""}, "", (0.0, 0.0), 0, 0, counts)
        outputs = {name: self._text(entry) for name, entry in _firsts(group).items()} | {RERANKED: self._text(best)}
        return Sentence(
            number,
            source,
            references,
            first,
            best,
            outputs,
            self._text(first),
            (self._reranker.total(first), self._reranker.total(best)),
            next(place for place, entry in enumerate(group.entries, start=1) if entry is best),
            len(group.entries),
            self._count(references, [entry.text for entry in group.entries], setting.plain),
        )

    def _text(self, entry: NbestEntry) -> str:
        check_words(entry.text, self._setting.most_words, path=self._reranker.path, line=entry.line)
        return self._setting.plain(entry.text) if self._setting.plain else entry.text


def _firsts(group: NbestList) -> dict[str, NbestEntry]:
    """Each system's own choice from a merged list; of any other list its first entry."""
    systems = baselines(tuple(group.entries[0].features))
    if not systems:
        return {FIRST: group.entries[0]}
    found = {}
    for column in systems:
        entry = next((entry for entry in group.entries if entry.features.get(column) == (1.0,)), None)
        if entry is not None:
            found[column.removeprefix("First").removesuffix("0")] = entry
    return found


def outputs_of(sentences: Sequence[Sentence]) -> dict[str, list[str]]:
    """The output of each system alone, and of the choice, which is the last; where a system has no list it is empty."""
    names = list(dict.fromkeys(name for one in sentences for name in one.outputs if name != RERANKED)) or [FIRST]
    return {name: [one.outputs.get(name, "") for one in sentences] for name in (*names, RERANKED)}


class Judgement(NamedTuple):
    """Everything that is found; ``by_length`` compares the choice with the best system alone."""

    comparisons: list[Comparison]
    oracle: Oracle
    by_length: list[LengthPart]


def judge(sentences: Sequence[Sentence], setting: Setting) -> Judgement:
    """Judge the choice from every list."""
    outputs, references = outputs_of(sentences), setting.references
    comparisons = compare(outputs, references, tokenize=setting.tokenize)
    lengths = list(map(count_words, setting.source or references[0]))
    before, after = outputs[comparisons[0].best.system], outputs[RERANKED]
    bleu = sacrebleu_metric("BLEU", tokenize=setting.tokenize)
    by_length = score_by_length(lengths, before, after, references, metric=bleu)
    return Judgement(comparisons, _oracle(sentences), by_length)


def _oracle(sentences: Sequence[Sentence]) -> Oracle:
    """Sentences without a list count as empty output."""
    gaps = [one.counts[0] for one in sentences if not one.size]
    lists = [one.counts if one.size else one.counts[:0] for one in sentences]
    return oracle(lists, sum(gaps) if gaps else None)


def lines_of(judgement: Judgement, *, by_source: bool) -> list[str]:
    """What is said on stderr."""
    lines = [str(comparison) for comparison in judgement.comparisons]
    lines.append(f"BLEU of the list: {judgement.oracle.bleu:.2f} for the best choice (oracle)")
    side = "source" if by_source else "reference"
    for part in judgement.by_length:
        change = f"{part.before:.2f} -> {part.after:.2f}"
        lines.append(f"BLEU {change} on {counted(part.sentences, 'sentence')}, words in the {side} {part.name}")
    return lines


_FORMAT, _VERSION = "hybridmt rerank report", 4


def document(
    sentences: Sequence[Sentence],
    judgement: Judgement,
    setting: Setting,
    weights: Mapping[str, Sequence[float]],
    **more: Any,
) -> dict[str, Any]:
    """The report; ``more`` are further members, such as the names of files."""
    score = sentence_scorer(setting.tokenize)
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "made_by": f"hybridmt {VERSION}",
        **more,
        "tokenize": setting.tokenize,
        "weights": {name: list(values) for name, values in weights.items()},
        "metrics": [_comparison(comparison) for comparison in judgement.comparisons],
        "oracle": {"BLEU": judgement.oracle.bleu},
        "by_length": {
            "of": "reference" if setting.source is None else "source",
            "before": judgement.comparisons[0].best.system,
            "bounds": list(LENGTH_BOUNDS),
            "parts": [part._asdict() for part in judgement.by_length],
        },
        "sentences": [
            _sentence(one, place, score, with_source=setting.source is not None)
            for one, place in zip(sentences, judgement.oracle.chosen, strict=True)
        ],
    }


def _comparison(found: Comparison) -> dict[str, Any]:
    return {
        "metric": found.metric,
        "signature": found.signature,
        "higher_is_better": found.metric != "TER",
        "systems": [one._asdict() | {"interval": one.interval._asdict()} for one in found.systems],
        "best_single": found.best.system,
        "change": found.change,
    }


_Score = Callable[[str, Sequence[str]], SentenceScores]


def _sentence(one: Sentence, oracle: int, score: _Score, *, with_source: bool) -> dict[str, Any]:
    first, best = one.first_text, one.outputs[RERANKED]
    before = score(first, one.references)
    after = before if best == first else score(best, one.references)
    return {
        "id": one.number,
        "source": one.source if with_source else None,
        "references": list(one.references),
        "hypotheses": one.size,
        "place": one.place,
        "oracle_place": oracle + 1,
        "outputs": dict(one.outputs),
        "before": _side(one.first, first, one.totals[0], before),
        "after": _side(one.best, best, one.totals[1], after),
    }


def _side(entry: NbestEntry | None, text: str, total: float, scores: SentenceScores) -> dict[str, Any]:
    return {
        "text": text,
        "words": entry.text if entry else "",
        "total": total,
        "system_total": entry.total if entry else None,
        "features": {name: list(values) for name, values in entry.features.items()} if entry else {},
        "BLEU": scores.bleu,
        "chrF": scores.chrf,
        "TER": scores.ter,
    }
