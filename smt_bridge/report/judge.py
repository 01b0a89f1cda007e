"""What a reranking is worth: scores of the systems alone and of the choice, and what the lists could have given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nmt_core.base.messages import counted
from smt_bridge.metrics.by_length import Part, PartScore, parts_by_length, score_parts
from smt_bridge.metrics.oracle import Chance, Oracle, chance, oracle
from smt_bridge.metrics.significance import Comparison, compare, sacrebleu_metric
from smt_bridge.report.sentences import RERANKED, Sentence, Setting, outputs_of

_NEURAL_UNKNOWN = "NMTunk"  # name (with or without a number) of the feature that counts unknown words


class Judgement(NamedTuple):
    """Everything that is found; ``parts`` are all sentences, and those without unknown words, where that is known."""

    comparisons: list[Comparison]
    oracle: Oracle
    chance: Chance
    by_length: list[PartScore]
    parts: list[PartScore]


def judge(sentences: Sequence[Sentence], setting: Setting) -> Judgement:
    """Judge the choice from every list."""
    outputs, references = outputs_of(sentences), setting.references
    before, after = [one.first_text for one in sentences], outputs[RERANKED]
    bleu = sacrebleu_metric("BLEU", tokenize=setting.tokenize)
    lengths = [sum(1 for word in text.split(" ") if word) for text in setting.source or references[0]]
    known = _without_unknown(sentences)
    parts = [] if known is None else [Part("all", tuple(range(len(sentences)))), known]
    return Judgement(
        compare(outputs, references, tokenize=setting.tokenize),
        *_reach(sentences),
        score_parts(parts_by_length(lengths), before, after, references, metric=bleu),
        score_parts(parts, before, after, references, metric=bleu),
    )


def _reach(sentences: Sequence[Sentence]) -> tuple[Oracle, Chance]:
    """The oracle and chance; sentences without a list count as empty output."""
    gaps = [one.counts[0] for one in sentences if not one.size]
    lists = [one.counts if one.size else one.counts[:0] for one in sentences]
    missing = sum(gaps) if gaps else None
    return oracle(lists, missing), chance(lists, missing)


def _without_unknown(sentences: Sequence[Sentence]) -> Part | None:
    """The sentences in whose two hypotheses the neural model knows all words, where the list has its counts."""
    entries = [(one.first, one.best) for one in sentences]
    names = {name for pair in entries for entry in pair if entry for name in entry.features}
    counts = sorted(name for name in names if name.rstrip("0123456789") == _NEURAL_UNKNOWN)
    if not counts:
        return None
    name = counts[0]
    known = [
        place
        for place, pair in enumerate(entries)
        if all(entry is not None and not any(entry.features.get(name, (1.0,))) for entry in pair)
    ]
    return Part(f"no unknown words ({name})", tuple(known))


def lines_of(judgement: Judgement, *, by_source: bool) -> list[str]:
    """What is said on stderr."""
    lines = [str(comparison) for comparison in judgement.comparisons]
    luck = judgement.chance
    lines.append(
        f"BLEU of the list: {judgement.oracle.bleu:.2f} for the best choice (oracle), {luck.mean:.2f}"
        f" (deviation {luck.deviation:.2f}) for a choice by chance"
    )
    side = "source" if by_source else "reference"
    for title, parts in ((f"words in the {side}", judgement.by_length), ("", judgement.parts)):
        for part in parts:
            change = f"{part.before:.2f} -> {part.after:.2f}"
            lines.append(
                f"BLEU {change} on {counted(part.sentences, 'sentence')}, {title + ' ' if title else ''}{part.name}"
            )
    return lines
