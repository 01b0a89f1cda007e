"""What `smt-bridge rerank --reference` finds out: scores before and after, and what the list could have given."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from nmt_core.base.messages import counted
from nmt_core.files import read_text_lines
from nmt_core.version import VERSION
from smt_bridge.metadata import known_columns
from smt_bridge.metrics.bleu import References, sacrebleu_tokenizer
from smt_bridge.metrics.by_length import Part, PartScore, parts_by_length, score_parts, without_unknown
from smt_bridge.metrics.detokenize import moses_tokenizer
from smt_bridge.metrics.oracle import Chance, Oracle, chance, oracle
from smt_bridge.metrics.sentence import sentence_scorer
from smt_bridge.metrics.significance import METRICS, Comparison, compare, sacrebleu_metric
from smt_bridge.nbest.entry import NbestEntry, words_as_text
from smt_bridge.nbest.rerank import Choice, Choices

REPORT_FORMAT = "hybridmt rerank report"
REPORT_VERSION = 1
NEURAL_UNKNOWN = "NMTunk"  # name (with or without a number) of the feature that counts unknown words


class Setting(NamedTuple):
    """What scores depend on: ``references`` one sequence per file, ``source`` lines or None, both by sentence."""

    references: Sequence[Sequence[str]]
    source: Sequence[str] | None
    tokenize: str
    test: str
    samples: int
    bounds: Sequence[int]


class Judgement(NamedTuple):
    """Everything that is said at the end; ``parts`` are the sentences with and without unknown words."""

    comparisons: list[Comparison]
    oracle: Oracle | None
    chance: Chance | None
    by_length: list[PartScore]
    parts: list[PartScore]


def compared(choices: Choices, setting: Setting) -> list[Comparison]:
    """Scores before and after, with the test that is asked for."""
    return compare(
        choices.before,
        choices.after,
        setting.references,
        tokenize=setting.tokenize,
        test=setting.test,
        samples=setting.samples,
        metrics=METRICS,
    )


def judge(choices: Choices, setting: Setting, known: Part | None, comparisons: list[Comparison]) -> Judgement:
    """All that is said beside the ``comparisons``; ``known`` are the sentences without unknown words, where known."""
    before, after, references = choices.before, choices.after, setting.references
    bleu = sacrebleu_metric("BLEU", tokenize=setting.tokenize)
    lengths = [sum(1 for word in text.split(" ") if word) for text in setting.source or references[0]]
    by_length = score_parts(parts_by_length(lengths, setting.bounds), before, after, references, metric=bleu)
    parts = [] if known is None else [Part("all", tuple(range(len(before)))), known]
    scored = score_parts(parts, before, after, references, metric=bleu)
    return Judgement(comparisons, *_reach(choices, setting), by_length, scored)


def _reach(choices: Choices, setting: Setting) -> tuple[Oracle | None, Chance | None]:
    """The oracle and chance; sentences without a list count as empty output."""
    if not choices.statistics:
        return None, None
    tokenizer = sacrebleu_tokenizer(setting.tokenize)
    gaps = [
        References([reference[place] for reference in setting.references], tokenizer).statistics([""])[0]
        for place, choice in enumerate(choices.sentences)
        if choice.size == 0
    ]
    missing = sum(gaps) if gaps else None
    return oracle(choices.statistics, missing), chance(choices.statistics, missing)


def known_by_vocabulary(paths: Sequence[str], setting: Setting, language: str | None) -> Part:
    """The sentences whose words are all in the vocabularies of source and target.

    The first reference stands for the target; plain text of a ``language`` is tokenised for this.
    """
    known = [{line.partition("\t")[0] for line in read_text_lines(path)} for path in paths]
    tokenize = moses_tokenizer(language) if language else None
    reference = [tokenize(line) if tokenize else words_as_text(line.encode()) for line in setting.references[0]]
    return without_unknown("no unknown words", [setting.source or [], reference], known)


def known_by_feature(choices: Choices) -> Part | None:
    """The sentences in whose two hypotheses the neural model knows all words, where the list has its counts."""
    entries = [(choice.before, choice.after) for choice in choices.sentences]
    names = {name for pair in entries for entry in pair if entry for name in entry.features}
    counts = sorted(name for name in names if name.rstrip("0123456789") == NEURAL_UNKNOWN)
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
    if judgement.oracle and judgement.chance:
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


def report_of(
    choices: Choices, judgement: Judgement, setting: Setting, weights: Mapping[str, Sequence[float]], **more: Any
) -> dict[str, Any]:
    """The report as JSON has it; ``more`` are further members. The keys are explained in docs/reranking.md."""
    scorer = sentence_scorer(setting.tokenize)
    places = judgement.oracle.chosen if judgement.oracle else ()
    return {
        "format": REPORT_FORMAT,
        "version": REPORT_VERSION,
        **more,
        "tokenize": setting.tokenize,
        "test": {"name": setting.test, "samples": setting.samples or None},
        "weights": {name: list(values) for name, values in weights.items()},
        "metrics": [_comparison(comparison) for comparison in judgement.comparisons],
        "oracle": {"BLEU": judgement.oracle.bleu} if judgement.oracle else None,
        "random": judgement.chance._asdict() if judgement.chance else None,
        "by_length": {
            "of": "reference" if setting.source is None else "source",
            "bounds": list(setting.bounds),
            "parts": [part._asdict() for part in judgement.by_length],
        },
        "known_words": [part._asdict() for part in judgement.parts],
        "sentences": [
            _sentence(place, choice, setting, places, scorer.score) for place, choice in enumerate(choices.sentences)
        ],
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    found = comparison._asdict()
    for name in ("before_interval", "after_interval"):
        found[name] = found[name]._asdict() if found[name] else None
    return {**found, "change": comparison.after - comparison.before, "higher_is_better": comparison.metric != "TER"}


def _sentence(
    place: int, choice: Choice, setting: Setting, oracle: Sequence[int], score: Callable[[str, Sequence[str]], Any]
) -> dict[str, Any]:
    references = [reference[place] for reference in setting.references]
    before = score(choice.before_text, references)
    after = before if choice.after_text == choice.before_text else score(choice.after_text, references)
    return {
        "id": place,
        "source": None if setting.source is None else setting.source[place],
        "references": references,
        "hypotheses": choice.size,
        "place": choice.place,
        "oracle_place": oracle[place] + 1 if oracle else None,
        "before": _side(choice.before, choice.before_text, choice.before_total, before),
        "after": _side(choice.after, choice.after_text, choice.after_total, after),
    }


def _side(entry: NbestEntry | None, text: str, total: float, scores: Any) -> dict[str, Any]:
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


def document(
    args: argparse.Namespace, choices: Choices, judgement: Judgement, setting: Setting, weights: Any, **more: Any
) -> dict[str, Any]:
    """The report with the names of the files, and what the record beside the list says of its columns."""
    signatures = {name: str(signature) for name, signature in known_columns(args.nbest).items()}
    files = {"nbest": args.nbest, "source": args.source, "references": args.reference, "weights": args.weights}
    more = {"detokenize": args.detokenize, "signatures": signatures, **more}
    return report_of(choices, judgement, setting, weights, made_by=f"hybridmt {VERSION}", files=files, **more)


def report_bytes(content: Mapping[str, Any]) -> bytes:
    """A report as it is written; bytes that are not UTF-8 become question marks."""
    return json.dumps(content, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n"
