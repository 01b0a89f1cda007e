"""The page about a reranking: how much better, by which features, which sentences, and why."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Mapping, Sequence

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import PairScore, PairScorer, SentencePair
from nmt_core.base.messages import counted
from nmt_core.base.words import unescape
from nmt_core.inference.output.attention_svg import attention_svg
from smt_bridge.metrics.significance import SystemScore
from smt_bridge.moses.weights import Weights
from smt_bridge.nbest.weighting import contributions, differences
from smt_bridge.report.feature_names import explained
from smt_bridge.report.judge import RERANKED, Judgement, Sentence
from smt_bridge.report.page import Bar, bars, listed_signatures, page, pairs, section, table, text

_MOST_BARS = 60  # of weights, where there are sparse features by the thousand
_GAINS = (0, 5, 10, 20, 100)  # changes of sentence BLEU, the edges of bins
_SHOWN = 10  # sentences that gained most, and as many that lost most


def reranking_page(
    sentences: Sequence[Sentence],
    judgement: Judgement,
    weights: Weights,
    *,
    by_source: bool,
    scorer: PairScorer | None = None,
    signatures: Mapping[str, str] | None = None,
    subtitle: str = "",
) -> str:
    """The whole page; lengths are of the source or the reference, and ``scorer`` adds words' scores and attention."""
    parts = [
        _scores(sentences, judgement),
        _weights(sentences, weights),
        _gains(sentences),
        _by_length(judgement, "source" if by_source else "reference"),
        _changes(sentences, weights, scorer),
        _all(sentences),
        _columns(signatures),
    ]
    return page("What reranking did", subtitle, [part for part in parts if part])


def _scores(sentences: Sequence[Sentence], judgement: Judgement) -> str:
    """A row for each system alone, and for the choice."""
    metrics = judgement.comparisons
    columns = ["system", *(cell for metric in metrics for cell in (metric.metric, "p"))]
    rows = []
    for place, system in enumerate(metrics[0].systems):
        cells = [system.system]
        for one in (metric.systems[place] for metric in metrics):
            cells += [f"{one.score:.2f} ± {one.interval.half_width:.2f}", _p_value(one)]
        rows.append(cells)
    best = metrics[0].best.system
    changes = ", ".join(f"{metric.metric} {metric.change:+.2f}" for metric in metrics)
    changed = sum(sentence.chosen != 0 for sentence in sentences)
    gains = [one.gain for one in sentences]
    better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    bounds = (
        f"The best choice that these lists allow, sentence by sentence, would have BLEU {judgement.oracle.bleu:.2f}."
        f" Another entry than the first was chosen for {changed:,} of {counted(len(sentences), 'sentence')}."
        f" Sentence BLEU is higher for {better}, lower for {worse}, the same for {len(sentences) - better - worse}."
    )
    signed = "".join(f'<p class="signature">{text(one.metric)}: {text(one.signature)}</p>' for one in metrics)
    remark = (
        f"± is half of the 95 % confidence interval, p is that of the difference from {best}, the best system alone"
        " (by BLEU); both by bootstrap."
    )
    return section(
        "The systems alone, and reranked",
        table(columns, rows),
        f"<p>{text(f'Reranked against {best}: {changes}.')}</p>",
        f'<p class="faint">{text(remark)}</p>',
        f"<p>{text(bounds)}</p>",
        signed,
    )


def _p_value(one: SystemScore) -> str:
    return "" if one.p_value is None else f"{one.p_value:.4f}"


def _weights(sentences: Sequence[Sentence], weights: Weights) -> str:
    spreads = _spreads(sentences)
    entries = []
    for name, values in weights.items():
        for place, value in enumerate(values):
            label = f"{name}{f'.{place}' if len(values) > 1 else ''}  {value:.3g}"
            if value:
                entries.append(Bar(label, value * spreads.get((name, place), 0.0), explained(name)))
    remark = "Each weight, and as a bar the weight times how far its feature moved where the choice changed."
    if zeros := sum(value == 0 for values in weights.values() for value in values):
        remark += f" {counted(zeros, 'weight is', 'weights are')} 0 and not shown."
    if len(entries) > _MOST_BARS:
        remark += f" Of {len(entries)} weights the {_MOST_BARS} with the longest bars."
        kept = sorted(range(len(entries)), key=lambda place: -abs(entries[place].value))[:_MOST_BARS]
        entries = [entries[place] for place in sorted(kept)]
    return section("Weights", bars(entries, title="weight times spread of every feature"), remark=remark)


def _spreads(sentences: Sequence[Sentence]) -> dict[tuple[str, int], float]:
    """Root mean square of the difference between the first entry and the chosen one, by feature and component."""
    squares: dict[tuple[str, int], float] = {}
    changed = [one for one in sentences if one.chosen != 0]
    for one in changed:
        for name, values in differences(one.after, one.before).items():
            for place, difference in enumerate(values):
                squares[name, place] = squares.get((name, place), 0.0) + difference**2
    return {key: (total / len(changed)) ** 0.5 for key, total in squares.items()}


def _gains(sentences: Sequence[Sentence]) -> str:
    """How many sentences gained or lost how much."""
    gains = [one.gain for one in sentences]
    entries = [Bar("unchanged", gains.count(0.0))]
    for least, most in itertools.pairwise(_GAINS):
        up = sum(least < gain <= most for gain in gains)
        down = sum(-most <= gain < -least for gain in gains)
        name = f"{least} to {most}" if least else f"up to {most}"
        entries = [Bar(f"{name} less", down), *entries, Bar(f"{name} more", up)]
    return section(
        "Gains by sentence",
        bars(entries, title="sentences by gain"),
        remark="Sentences by how much their BLEU changed.",
    )


def _by_length(judgement: Judgement, side: str) -> str:
    columns = (f"{side} words", "sentences", judgement.comparisons[0].best.system, RERANKED)
    rows = table(columns, [tuple(part) for part in judgement.by_length])
    return section(f"BLEU by length of the {side}", rows, remark="Corpus BLEU of the sentences in each bin.")


def _columns(signatures: Mapping[str, str] | None) -> str:
    if not signatures:
        return ""
    return section("What the columns are", listed_signatures(signatures), remark="From the metadata beside the list.")


def _changes(sentences: Sequence[Sentence], weights: Weights, scorer: PairScorer | None) -> str:
    """A section that explains some sentences: those that gained most and those that lost most."""
    changed = sorted((one for one in sentences if one.chosen != 0), key=lambda one: -one.gain)
    shown = [*changed[:_SHOWN], *changed[max(_SHOWN, len(changed) - _SHOWN) :]]
    scores = _neural(shown, scorer)
    parts = [_explanation(one, weights, scores) for one in shown]
    return section(
        "Sentences that changed most",
        *parts,
        remark="Those that gained most sentence BLEU, then those that lost most. Open one to see why its winner won.",
    )


def _all(sentences: Sequence[Sentence]) -> str:
    """A section with every sentence, which the search of a browser finds."""
    columns = ("id", "sentence BLEU", "source", "reference", "reranked")
    rows = [
        (
            str(one.number),
            f"{one.gain:+.1f}" if one.gain else "",
            *map(unescape, (one.source, one.references[0], one.outputs[RERANKED])),
        )
        for one in sentences
    ]
    return section("All sentences", table(columns, rows), remark="The change of sentence BLEU, and what was chosen.")


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
    before, after = _marked(*(unescape(entry.text).split(" ") for entry in (one.before, one.after)))
    source = text(unescape(one.source))
    head = f'<summary><span class="{kind}">{one.gain:+.1f}</span> {text(one.number)}: {source}</summary>'
    texts = pairs(
        [
            ("source", source),
            ("reference", text(unescape(one.references[0]))),
            ("before", before),
            ("after", after),
        ]
    )
    lead = contributions(one.after, one.before, weights)
    shares = [Bar(name, value, explained(name)) for name, value in lead.items() if abs(value) > 1e-6]
    shares.sort(key=lambda bar: -abs(bar.value))
    total = sum(bar.value for bar in shares)
    why = f"<h3>Why: the winner is ahead by {total:.3g}</h3>" + bars(
        shares[:14], title="weight times difference of the feature", signed_colours=True
    )
    return f"<details>\n{head}\n{texts}\n{why}\n{_words(one, scores)}\n</details>"


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
        words = [*unescape(entry.text).split(" "), "</s>"] if entry.text else ["</s>"]
        coloured = "".join(
            f'<span style="background:{_shade(value)}">{text(word)}<small>{value:.1f}</small></span>'
            for word, value in zip(words, score.word_log_probs, strict=False)
        )
        parts.append(f'<h3>log p of every word, {name}: {score.log_prob:.2f}</h3><p class="words">{coloured}</p>')
        if name == "after" and score.attention is not None:
            across = [*unescape(one.source).split(" "), "</s>"]
            drawing = attention_svg(score.attention, across, words)
            parts.append(f'<h3>Where the winner looked</h3><div class="scroll full">{drawing}</div>')
    return "".join(parts)


def _shade(log_prob: float) -> str:
    """From nothing for likely words to red for unlikely ones."""
    return f"rgba(214,69,61,{min(0.75, max(0.0, -log_prob / 9)):.2f})"
