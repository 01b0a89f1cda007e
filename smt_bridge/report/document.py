"""The report of a reranking as JSON; the keys are explained in docs/lists.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from nmt_core.version import VERSION
from smt_bridge.metrics.by_length import LENGTH_BOUNDS
from smt_bridge.metrics.sentence import SentenceScorer, SentenceScores, sentence_scorer
from smt_bridge.metrics.significance import Comparison
from smt_bridge.nbest.entry import NbestEntry
from smt_bridge.report.judge import Judgement
from smt_bridge.report.sentences import RERANKED, Sentence, Setting

_FORMAT, _VERSION = "hybridmt rerank report", 2


def document(
    sentences: Sequence[Sentence],
    judgement: Judgement,
    setting: Setting,
    weights: Mapping[str, Sequence[float]],
    **more: Any,
) -> dict[str, Any]:
    """The report; ``more`` are further members, such as the names of files."""
    scorer = sentence_scorer(setting.tokenize)
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "made_by": f"hybridmt {VERSION}",
        **more,
        "tokenize": setting.tokenize,
        "weights": {name: list(values) for name, values in weights.items()},
        "metrics": [_comparison(comparison) for comparison in judgement.comparisons],
        "oracle": {"BLEU": judgement.oracle.bleu},
        "random": judgement.chance._asdict(),
        "by_length": {
            "of": "reference" if setting.source is None else "source",
            "bounds": list(LENGTH_BOUNDS),
            "parts": [part._asdict() for part in judgement.by_length],
        },
        "known_words": [part._asdict() for part in judgement.parts],
        "sentences": [
            _sentence(one, place, scorer, with_source=setting.source is not None)
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


def _sentence(one: Sentence, oracle: int, scorer: SentenceScorer, *, with_source: bool) -> dict[str, Any]:
    first, best = one.first_text, one.outputs[RERANKED]
    before = scorer.score(first, one.references)
    after = before if best == first else scorer.score(best, one.references)
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


def json_of(content: Mapping[str, Any]) -> bytes:
    """A report as it is written; bytes that are not UTF-8 become question marks."""
    return json.dumps(content, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n"
