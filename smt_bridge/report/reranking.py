"""The page about a reranking: how much better, by which features, which sentences, and why."""

from __future__ import annotations

import difflib
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from operator import mul, sub
from typing import Any, NamedTuple

import numpy as np

from nmt_core.errors import ConfigError, InputError
from nmt_core.inference.attention_svg import attention_svg
from nmt_core.interfaces import PairScore, PairScorer, SentencePair
from nmt_core.small_files import read_json
from smt_bridge.formats.nbest import NbestEntry, NbestList
from smt_bridge.formats.nbest_order import fill_gaps
from smt_bridge.formats.weights import Weights
from smt_bridge.metrics.bleu import Counts, bleu
from smt_bridge.metrics.metric import BLEU
from smt_bridge.metrics.oracle import chance, oracle
from smt_bridge.metrics.significance import Comparison, Interval
from smt_bridge.report import charts
from smt_bridge.report.page import page, pairs, section, table, text
from smt_bridge.reranking import Choice, Reranker, choice_of
from smt_bridge.tuning.pro import sentence_scores

_EMPTY = NbestEntry(0, b"", {}, None, 0, (), -1, -1)  # what a sentence without a list is judged as
_MOST_BARS = 60  # of weights, where there are sparse features by the thousand
_BINS = (5, 10, 15, 20, 25, 30, 40, 50)


class Sentence(NamedTuple):
    """One sentence: source and reference, what was chosen, and the BLEU counts of all entries of its list.

    Where there is no list, the counts are those of empty output.
    """

    number: int
    source: str
    reference: str
    choice: Choice
    counts: Counts

    @property
    def chosen(self) -> int:
        """The place of the chosen entry, from 0."""
        return max(0, self.choice.place - 1)

    @property
    def before(self) -> NbestEntry:
        """The first entry of a sentence that has a list."""
        assert self.choice.before is not None
        return self.choice.before

    @property
    def after(self) -> NbestEntry:
        """The chosen entry of a sentence that has a list."""
        assert self.choice.after is not None
        return self.choice.after

    @property
    def gain(self) -> float:
        """How much sentence BLEU (with one added to the counts) changed."""
        scores = sentence_scores(self.counts[[0, self.chosen]].astype(np.float64), BLEU)
        return float(scores[1] - scores[0])


def collect(
    lists: Iterable[NbestList],
    reranker: Reranker,
    sources: Sequence[str],
    reference: Sequence[str],
    count: Callable[[NbestList], Counts],
    plain: Callable[[str], str] | None = None,
) -> list[Sentence]:
    """Choose from every list and count every entry; sentences without a list count as empty output."""
    found = []
    for group in fill_gaps(lists, len(sources)):
        choice = choice_of(group, reranker.best(group) if group.entries else None, reranker, plain)
        counts = count(group if group.entries else NbestList(group.sentence, [_EMPTY]))
        found.append(Sentence(group.sentence, sources[group.sentence], reference[group.sentence], choice, counts))
    return found


def reranking_page(
    sentences: Sequence[Sentence],
    comparisons: Sequence[Comparison],
    weights: Weights,
    *,
    tuning: Mapping[str, Any] | None = None,
    scorer: PairScorer | None = None,
    signatures: Mapping[str, str] | None = None,
    details: int = 20,
    subtitle: str = "",
) -> str:
    """The whole page. ``tuning`` is what ``tune --report`` wrote; ``details`` sentences are explained."""
    parts = [
        _scores(sentences, comparisons),
        _weights(sentences, weights, tuning),
        _ablation(tuning),
        _by_length(sentences),
        _changes(sentences, weights, scorer, details),
        _columns(signatures),
    ]
    return page("What reranking did", subtitle, [part for part in parts if part])


def _scores(sentences: Sequence[Sentence], comparisons: Sequence[Comparison]) -> str:
    rows = [
        (one.metric, _with_interval(one.before, one.before_interval), _with_interval(one.after, one.after_interval),
         f"{one.after - one.before:+.2f}",
         "" if one.p_value is None else f"{one.p_value:.4f}")
        for one in comparisons
    ]  # fmt: skip
    changed = sum(sentence.chosen != 0 for sentence in sentences)
    best, random = _reach(sentences)
    bounds = (
        f"The best choice that these lists allow, sentence by sentence, would have BLEU {best:.2f}; a choice at"
        f" random {random:.2f}. Another entry than the first was chosen for {changed} of {len(sentences)} sentences."
    )
    signed = "".join(f'<p class="signature">{text(one.metric)}: {text(one.signature)}</p>' for one in comparisons)
    return section(
        "Before and after",
        table(("metric", "first choice of the system", "reranked", "change", "p"), rows),
        '<p class="faint">± is half of the 95 % confidence interval (bootstrap).</p>',
        f"<p>{text(bounds)}</p>",
        signed,
    )


def _with_interval(score: float, interval: Interval | None) -> str:
    return f"{score:.2f}" + (f" ± {interval.half_width:.2f}" if interval else "")


def _reach(sentences: Sequence[Sentence]) -> tuple[float, float]:
    """BLEU of the best choice and of a choice by chance, as ``rerank`` has them."""
    gaps = [one.counts[0] for one in sentences if not one.choice.size]
    lists = [one.counts if one.choice.size else one.counts[:0] for one in sentences]
    missing = np.sum(gaps, axis=0) if gaps else None
    return oracle(lists, missing).bleu, chance(lists, missing).mean


def _weights(sentences: Sequence[Sentence], weights: Weights, tuning: Mapping[str, Any] | None) -> str:
    runs = [run["weights"] for run in (tuning or {}).get("runs", [])]
    spreads = _spreads(sentences)
    entries = []
    for name, values in weights.items():
        for place, value in enumerate(values):
            spread = spreads.get((name, place), 0.0)
            label = f"{name}{f'.{place}' if len(values) > 1 else ''}  {value:.3g}"
            seen = [run[name][place] * spread for run in runs if name in run and place < len(run[name])]
            entries.append(charts.Bar(label, value * spread, statistics.stdev(seen) if len(seen) > 1 else 0.0))
    said = "Each weight, and as a bar the weight times how far its feature moved where the choice changed."
    if len(entries) > _MOST_BARS:
        said += f" Of {len(entries)} weights the {_MOST_BARS} with the longest bars."
        kept = sorted(range(len(entries)), key=lambda place: -abs(entries[place].value))[:_MOST_BARS]
        entries = [entries[place] for place in sorted(kept)]
    if tuning:
        said += (
            f" {tuning['tuner'].upper()} on {tuning['metric'].upper()}, {len(runs)} runs: mean {tuning['mean']:.2f},"
            f" standard deviation {tuning['deviation']:.2f} on the tuning set. Whiskers are the deviation between runs."
        )
        held = tuning.get("cross_validation")
        if held:
            said += (
                f" Cross-validation: {held['tuned']:.2f} where it was tuned, {held['held_out']:.2f} where it was not."
            )
    return section("Weights", charts.bars(entries, title="weight times spread of every feature"), remark=said)


def _spreads(sentences: Sequence[Sentence]) -> dict[tuple[str, int], float]:
    """Root mean square of the difference between the first entry and the chosen one, by feature and component."""
    squares: dict[tuple[str, int], float] = {}
    changed = [one for one in sentences if one.chosen != 0]
    for one in changed:
        for name, values in _differences(one).items():
            for place, difference in enumerate(values):
                squares[name, place] = squares.get((name, place), 0.0) + difference**2
    return {key: (total / len(changed)) ** 0.5 for key, total in squares.items()}


def _ablation(tuning: Mapping[str, Any] | None) -> str:
    ablation = (tuning or {}).get("ablation")
    if not tuning or not ablation:
        return ""
    entries = [charts.Bar(name, tuning["score"] - score) for name, score in ablation.items()]
    entries.sort(key=lambda bar: -bar.value)
    return section(
        "What each feature is worth",
        charts.bars(entries, title="loss without the feature", signed_colours=True),
        remark="How much of the tuning set's score is lost when a feature is left out and the others are tuned again.",
    )


def _by_length(sentences: Sequence[Sentence]) -> str:
    bins: dict[int, list[Sentence]] = {}
    for one in sentences:
        words = one.source.count(" ") + 1
        bins.setdefault(next((edge for edge in _BINS if words <= edge), 99), []).append(one)
    edges = sorted(bins)
    before = [float(bleu(sum(one.counts[0] for one in bins[edge]))) for edge in edges]
    after = [float(bleu(sum(one.counts[one.chosen] for one in bins[edge]))) for edge in edges]
    names = [f"≤ {edge}" if edge != 99 else f"> {_BINS[-1]}" for edge in edges]
    chart = charts.lines(
        names, charts.Line("first choice", before), charts.Line("reranked", after), title="BLEU by length", unit="BLEU"
    )
    counts = table(("source words", *names), [("sentences", *(len(bins[edge]) for edge in edges))])
    return section("BLEU by length of the source", chart, counts, remark="Corpus BLEU of the sentences in each bin.")


def _changes(sentences: Sequence[Sentence], weights: Weights, scorer: PairScorer | None, details: int) -> str:
    changed = sorted((one for one in sentences if one.chosen != 0), key=lambda one: -one.gain)
    half = details // 2
    shown = [*changed[: details - half], *changed[max(details - half, len(changed) - half) :]]
    scores = _neural(shown, scorer)
    parts = [_explanation(one, weights, scores) for one in shown]
    return section(
        "Sentences that changed most",
        *parts,
        remark="Those that gained most sentence BLEU, then those that lost most. Open one to see why its winner won.",
    )


def _neural(sentences: Sequence[Sentence], scorer: PairScorer | None) -> dict[SentencePair, PairScore]:
    if scorer is None or not sentences:
        return {}
    asked = [SentencePair(one.source, entry.text) for one in sentences for entry in (one.before, one.after)]
    try:
        found = scorer.score(asked, per_word=True, attention=True)
    except ConfigError:  # not every scorer has attention to show
        found = scorer.score(asked, per_word=True)
    return dict(zip(asked, found, strict=True))


def _explanation(one: Sentence, weights: Weights, scores: Mapping[SentencePair, PairScore]) -> str:
    kind = "gain" if one.gain >= 0 else "loss"
    before, after = _marked(one.before.text.split(" "), one.after.text.split(" "))
    head = f'<summary><span class="{kind}">{one.gain:+.1f}</span> {text(one.number)}: {text(one.source)}</summary>'
    texts = pairs(
        [("source", text(one.source)), ("reference", text(one.reference)), ("before", before), ("after", after)]
    )
    contributions = [bar for bar in _contributions(one, weights) if abs(bar.value) > 1e-6]
    contributions.sort(key=lambda bar: -abs(bar.value))
    total = sum(bar.value for bar in contributions)
    why = f"<h3>Why: the winner is ahead by {total:.3g}</h3>" + charts.bars(
        contributions[:14], title="weight times difference of the feature", signed_colours=True
    )
    return f"<details>\n{head}\n{texts}\n{why}\n{_words(one, scores)}\n</details>"


def _contributions(one: Sentence, weights: Weights) -> list[charts.Bar]:
    """What each feature adds to the winner's lead over the former first."""
    found = []
    for name, values in _differences(one).items():
        known = weights.get(name)
        if known is not None and len(known) == len(values):
            found.append(charts.Bar(name, fsum(map(mul, known, values))))
    return found


def _differences(one: Sentence) -> dict[str, tuple[float, ...]]:
    """Every feature's values in the chosen entry less those in the first; a sparse one is 0 where it is missing."""
    after, before = one.after.features, one.before.features
    found = {}
    for name in dict.fromkeys((*after, *before)):
        zeros = (0.0,) * len(after.get(name) or before[name])
        found[name] = tuple(map(sub, after.get(name, zeros), before.get(name, zeros)))
    return found


def _marked(before: Sequence[str], after: Sequence[str]) -> tuple[str, str]:
    """Both texts as HTML with what one has and the other has not marked."""
    sides: tuple[list[str], list[str]] = ([], [])
    for kind, a, b, c, d in difflib.SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
        for side, words, tag in ((sides[0], before[a:b], "del"), (sides[1], after[c:d], "ins")):
            if words:
                content = text(" ".join(words))
                side.append(content if kind == "equal" else f"<{tag}>{content}</{tag}>")
    return " ".join(sides[0]), " ".join(sides[1])


def _words(one: Sentence, scores: Mapping[SentencePair, PairScore]) -> str:
    """Every word's neural score, and where the winner looked."""
    parts = []
    for name, entry in (("before", one.before), ("after", one.after)):
        score = scores.get(SentencePair(one.source, entry.text))
        if score is None or score.word_log_probs is None:
            continue
        words = [*entry.text.split(" "), "</s>"] if entry.text else ["</s>"]
        coloured = "".join(
            f'<span style="background:{_shade(value)}">{text(word)}<small>{value:.1f}</small></span>'
            for word, value in zip(words, score.word_log_probs, strict=False)
        )
        parts.append(f'<h3>log p of every word, {name}: {score.log_prob:.2f}</h3><p class="words">{coloured}</p>')
        if name == "after" and score.attention is not None:
            across = [*one.source.split(" "), "</s>"]
            parts.append("<h3>Where the winner looked</h3>" + attention_svg(score.attention, across, words))
    return "".join(parts)


def _shade(log_prob: float) -> str:
    """From nothing for likely words to red for unlikely ones."""
    return f"rgba(214,69,61,{min(0.75, max(0.0, -log_prob / 9)):.2f})"


def _columns(signatures: Mapping[str, str] | None) -> str:
    if not signatures:
        return ""
    entries = [(name, f'<span class="signature">{text(value)}</span>') for name, value in signatures.items()]
    return section("What the columns are", pairs(entries), remark="From the record beside the list.")


def read_tuning(path: str) -> dict[str, Any]:
    """What ``tune --report`` wrote; raises InputError when it is something else."""
    content = read_json(path)
    if not isinstance(content, dict) or not {"tuner", "metric", "mean", "deviation", "score", "runs"} <= content.keys():
        raise InputError(path, "is not a report of `smt-bridge tune --report`")
    return content
