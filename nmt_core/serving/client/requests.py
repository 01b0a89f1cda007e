"""Between messages and the values of the neural side; answers are made in ``answers``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.v1 import nmt_pb2 as pb

if TYPE_CHECKING:
    from nmt_core.serving.limits import Limits
    from nmt_core.serving.models.served import ServedModel


def utf8(text: str) -> str:
    """The text with U+FFFD for what was not UTF-8 in a file; messages hold UTF-8 only."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def groups_of(request: pb.ScoreRequest) -> Iterator[tuple[str, Iterable[str]]]:
    """Every source and its targets: first the pairs of a request, then its groups."""
    for pair in request.pairs:
        yield pair.source, (pair.target,)
    for group in request.groups:
        yield group.source, group.targets


def score_request(pairs: Iterable[SentencePair], *, model: str, **options: Any) -> pb.ScoreRequest:
    """A request for the scores of pairs."""
    messages = [pb.Pair(source=utf8(pair.source), target=utf8(pair.target)) for pair in pairs]
    return pb.ScoreRequest(model=model, pairs=messages, **options)


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


def describe(name: str, model: ServedModel, limits: Limits, device: str) -> pb.Model:
    """What a client may want to know of a model."""
    return pb.Model(
        name=name,
        signature=model.signature,
        surface_signature=model.surface_signature,
        version=model.version,
        source_language=model.source_language,
        target_language=model.target_language,
        source_words=model.source_words,
        target_words=model.target_words,
        limits=pb.Limits(
            items=limits.items,
            characters=limits.characters,
            words=limits.words,
            beam=limits.beam,
            nbest=limits.nbest,
            message_bytes=limits.message_bytes,
            request_bytes=limits.request_bytes,
            length_ratio=limits.length_ratio,
            streams=limits.streams,
            stream_requests=limits.stream_requests,
            steps=limits.steps,
            memory_bytes=limits.memory_bytes,
            length_normalization=limits.length_normalization,
            client_streams=limits.client_streams,
        ),
        attends=model.attends,
        vector_size=model.vector_size,
        default_beam=model.defaults.beam,
        device=device,
        kind=pb.MODEL_KIND_HYBRID if model.kind == "hybrid" else pb.MODEL_KIND_NEURAL,
    )
