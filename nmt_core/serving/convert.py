"""Between messages and the values of the neural side; the only file that knows both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from nmt_core.interfaces import PairScore, SentencePair
from nmt_core.v1 import nmt_pb2 as pb

if TYPE_CHECKING:
    from nmt_core.inference.translator import Translation


def utf8(text: str) -> str:
    """The text with U+FFFD for what was not UTF-8 in a file; messages hold UTF-8 only."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def to_pairs(request: pb.ScoreRequest) -> list[SentencePair]:
    """The pairs of a request."""
    return [SentencePair(pair.source, pair.target) for pair in request.pairs]


def score_request(pairs: Iterable[SentencePair], *, model: str, per_word: bool) -> pb.ScoreRequest:
    """A request for the scores of pairs."""
    messages = [pb.Pair(source=utf8(pair.source), target=utf8(pair.target)) for pair in pairs]
    return pb.ScoreRequest(model=model, pairs=messages, per_word=per_word)


def score_response(scores: Iterable[PairScore]) -> pb.ScoreResponse:
    """The answer with these scores."""
    return pb.ScoreResponse(
        scores=[
            pb.PairScore(
                log_prob=score.log_prob,
                unknown_source_words=score.unknown_source,
                unknown_target_words=score.unknown_target,
                word_log_probs=score.word_log_probs or (),
            )
            for score in scores
        ]
    )


def from_score_response(response: pb.ScoreResponse, *, per_word: bool) -> list[PairScore]:
    """The scores of an answer."""
    return [
        PairScore(
            score.log_prob,
            score.unknown_source_words,
            score.unknown_target_words,
            tuple(score.word_log_probs) if per_word else None,
        )
        for score in response.scores
    ]


def translate_response(sentences: Iterable[Sequence[Translation]]) -> pb.TranslateResponse:
    """The answer with these translations."""
    return pb.TranslateResponse(
        sentences=[pb.Translations(translations=[_translation(found) for found in nbest]) for nbest in sentences]
    )


def _translation(found: Translation) -> pb.Translation:
    message = pb.Translation(
        text=utf8(found.text),
        log_prob=found.log_prob,
        score=found.score,
        word_log_probs=found.word_log_probs,
        words=map(utf8, found.words),
        source_words=found.source_words,
    )
    if found.attention is not None:
        from nmt_core.inference.alignment import hard_points

        message.attention.extend(found.attention.ravel().tolist())
        message.alignment.extend(
            pb.AlignmentPoint(source=source, target=target) for source, target in hard_points(found.attention)
        )
    return message
