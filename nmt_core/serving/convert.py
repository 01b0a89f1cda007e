"""Between messages and the values of the neural side; the only file that knows both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from nmt_core.interfaces import PairScore, SentencePair
from nmt_core.serving.refusal import Refusal, to_error
from nmt_core.text.vocabulary import split_words
from nmt_core.v1 import nmt_pb2 as pb

if TYPE_CHECKING:
    from nmt_core.inference.translator import Translation
    from nmt_core.inference.unknowns import UnknownCounts, UnknownReplacement


def utf8(text: str) -> str:
    """The text with U+FFFD for what was not UTF-8 in a file; messages hold UTF-8 only."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def to_pairs(request: pb.ScoreRequest) -> list[SentencePair]:
    """The pairs of a request, those of its groups behind the others."""
    pairs = [SentencePair(pair.source, pair.target) for pair in request.pairs]
    return pairs + [SentencePair(group.source, target) for group in request.groups for target in group.targets]


def score_request(pairs: Iterable[SentencePair], *, model: str, **options: Any) -> pb.ScoreRequest:
    """A request for the scores of pairs."""
    messages = [pb.Pair(source=utf8(pair.source), target=utf8(pair.target)) for pair in pairs]
    return pb.ScoreRequest(model=model, pairs=messages, **options)


def score_response(scores: Sequence[PairScore | Refusal], request: pb.ScoreRequest) -> pb.ScoreResponse:
    """The answer with these scores."""
    messages = [_pair_score(score) for score in scores]
    response = pb.ScoreResponse(scores=messages[: len(request.pairs)])
    start = len(request.pairs)
    for group in request.groups:
        response.groups.append(pb.GroupScores(scores=messages[start : start + len(group.targets)]))
        start += len(group.targets)
    return response


def _pair_score(score: PairScore | Refusal) -> pb.PairScore:
    if isinstance(score, Refusal):
        return pb.PairScore(error=to_error(score))
    rows = score.attention or ()
    return pb.PairScore(
        log_prob=score.log_prob,
        unknown_source_words=score.unknown_source,
        unknown_target_words=score.unknown_target,
        word_log_probs=score.word_log_probs or (),
        attention=[weight for row in rows for weight in row],
        attention_columns=len(rows[0]) if rows else 0,
    )


def from_pair_score(score: pb.PairScore, *, per_word: bool) -> PairScore:
    """The score of a message that has one."""
    columns = score.attention_columns
    attention = None
    if columns:
        weights = tuple(score.attention)
        attention = tuple(weights[start : start + columns] for start in range(0, len(weights), columns))
    return PairScore(
        score.log_prob,
        score.unknown_source_words,
        score.unknown_target_words,
        tuple(score.word_log_probs) if per_word else None,
        attention,
    )


def translations(nbest: Sequence[Translation] | Refusal, texts: Sequence[str], *, attention: bool) -> pb.Translations:
    """The n-best list of one sentence; ``texts`` is what is shown of each."""
    if isinstance(nbest, Refusal):
        return pb.Translations(error=to_error(nbest))
    found = [_translation(one, text, attention) for one, text in zip(nbest, texts, strict=True)]
    return pb.Translations(translations=found)


def _translation(found: Translation, text: str, attention: bool) -> pb.Translation:
    message = pb.Translation(
        text=utf8(text),
        log_prob=found.log_prob,
        score=found.score,
        word_log_probs=found.word_log_probs,
        words=map(utf8, found.words),
        source_words=found.source_words,
    )
    if attention and found.attention is not None:
        from nmt_core.inference.alignment import hard_points

        message.attention.extend(found.attention.ravel().tolist())
        message.alignment.extend(
            pb.AlignmentPoint(source=source, target=target) for source, target in hard_points(found.attention)
        )
    return message


def with_unknown_replaced(found: Translation, unknowns: UnknownReplacement) -> tuple[str, UnknownCounts]:
    """The tokenised text with something else for every <unk>, and what that was."""
    if found.attention is None:
        return found.text, found.unknown
    words, counts = unknowns.replace(found.words, found.source_words, found.attention)
    return " ".join(words), counts


def words_in(text: str) -> int:
    """Words of tokenised text."""
    return len(split_words(text))
