"""The sentences that a reranking changed most, and why their winners won: features, words, attention."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from math import fsum
from operator import mul

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import PairScore, PairScorer, SentencePair
from nmt_core.inference.output.attention_svg import attention_svg
from smt_bridge.moses.weights import Weights
from smt_bridge.report import charts
from smt_bridge.report.page import pairs, section, table, text
from smt_bridge.report.sentences import RERANKED, Sentence, differences

_SHOWN = 10  # sentences that gained most, and as many that lost most


def changes_section(sentences: Sequence[Sentence], weights: Weights, scorer: PairScorer | None) -> str:
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


def all_section(sentences: Sequence[Sentence]) -> str:
    """A section with every sentence, which the search of a browser finds."""
    columns = ("id", "sentence BLEU", "source", "reference", "reranked")
    rows = [
        (str(one.number), f"{one.gain:+.1f}" if one.gain else "", one.source, one.references[0], one.outputs[RERANKED])
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
    before, after = _marked(one.before.text.split(" "), one.after.text.split(" "))
    head = f'<summary><span class="{kind}">{one.gain:+.1f}</span> {text(one.number)}: {text(one.source)}</summary>'
    texts = pairs(
        [("source", text(one.source)), ("reference", text(one.references[0])), ("before", before), ("after", after)]
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
    for name, values in differences(one).items():
        known = weights.get(name)
        if known is not None and len(known) == len(values):
            found.append(charts.Bar(name, fsum(map(mul, known, values))))
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
            drawing = attention_svg(score.attention, across, words)
            parts.append(f'<h3>Where the winner looked</h3><div class="scroll full">{drawing}</div>')
    return "".join(parts)


def _shade(log_prob: float) -> str:
    """From nothing for likely words to red for unlikely ones."""
    return f"rgba(214,69,61,{min(0.75, max(0.0, -log_prob / 9)):.2f})"
