# nmt.proto sha256 0ac542c50599dbebaa72589adddeca246f1022e3cc95e57d8898abca7c72a23c
import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Priority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRIORITY_UNSPECIFIED: _ClassVar[Priority]
    PRIORITY_INTERACTIVE: _ClassVar[Priority]
    PRIORITY_BULK: _ClassVar[Priority]

class TextForm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TEXT_FORM_UNSPECIFIED: _ClassVar[TextForm]
    TEXT_FORM_SURFACE: _ClassVar[TextForm]
    TEXT_FORM_RAW: _ClassVar[TextForm]

class ModelKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MODEL_KIND_UNSPECIFIED: _ClassVar[ModelKind]
    MODEL_KIND_NEURAL: _ClassVar[ModelKind]
    MODEL_KIND_HYBRID: _ClassVar[ModelKind]
PRIORITY_UNSPECIFIED: Priority
PRIORITY_INTERACTIVE: Priority
PRIORITY_BULK: Priority
TEXT_FORM_UNSPECIFIED: TextForm
TEXT_FORM_SURFACE: TextForm
TEXT_FORM_RAW: TextForm
MODEL_KIND_UNSPECIFIED: ModelKind
MODEL_KIND_NEURAL: ModelKind
MODEL_KIND_HYBRID: ModelKind

class Error(_message.Message):
    __slots__ = ("code", "reason", "message", "retry_delay")
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRY_DELAY_FIELD_NUMBER: _ClassVar[int]
    code: int
    reason: str
    message: str
    retry_delay: _duration_pb2.Duration
    def __init__(self, code: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., retry_delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class TranslateRequest(_message.Message):
    __slots__ = ("model", "texts", "raw", "beam", "nbest", "length_normalization", "max_length_ratio", "forbid_unknown", "with_attention", "priority", "replace_unknown")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    RAW_FIELD_NUMBER: _ClassVar[int]
    BEAM_FIELD_NUMBER: _ClassVar[int]
    NBEST_FIELD_NUMBER: _ClassVar[int]
    LENGTH_NORMALIZATION_FIELD_NUMBER: _ClassVar[int]
    MAX_LENGTH_RATIO_FIELD_NUMBER: _ClassVar[int]
    FORBID_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    WITH_ATTENTION_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    REPLACE_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    model: str
    texts: _containers.RepeatedScalarFieldContainer[str]
    raw: bool
    beam: int
    nbest: int
    length_normalization: float
    max_length_ratio: float
    forbid_unknown: bool
    with_attention: bool
    priority: Priority
    replace_unknown: bool
    def __init__(self, model: _Optional[str] = ..., texts: _Optional[_Iterable[str]] = ..., raw: bool = ..., beam: _Optional[int] = ..., nbest: _Optional[int] = ..., length_normalization: _Optional[float] = ..., max_length_ratio: _Optional[float] = ..., forbid_unknown: bool = ..., with_attention: bool = ..., priority: _Optional[_Union[Priority, str]] = ..., replace_unknown: bool = ...) -> None: ...

class Translation(_message.Message):
    __slots__ = ("text", "log_prob", "score", "word_log_probs", "words", "source_words", "alignment", "attention", "systems", "degraded")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LOG_PROB_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    WORD_LOG_PROBS_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_WORDS_FIELD_NUMBER: _ClassVar[int]
    ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_FIELD_NUMBER: _ClassVar[int]
    SYSTEMS_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    text: str
    log_prob: float
    score: float
    word_log_probs: _containers.RepeatedScalarFieldContainer[float]
    words: _containers.RepeatedScalarFieldContainer[str]
    source_words: _containers.RepeatedScalarFieldContainer[str]
    alignment: _containers.RepeatedCompositeFieldContainer[AlignmentPoint]
    attention: _containers.RepeatedScalarFieldContainer[float]
    systems: _containers.RepeatedScalarFieldContainer[str]
    degraded: bool
    def __init__(self, text: _Optional[str] = ..., log_prob: _Optional[float] = ..., score: _Optional[float] = ..., word_log_probs: _Optional[_Iterable[float]] = ..., words: _Optional[_Iterable[str]] = ..., source_words: _Optional[_Iterable[str]] = ..., alignment: _Optional[_Iterable[_Union[AlignmentPoint, _Mapping]]] = ..., attention: _Optional[_Iterable[float]] = ..., systems: _Optional[_Iterable[str]] = ..., degraded: bool = ...) -> None: ...

class AlignmentPoint(_message.Message):
    __slots__ = ("source", "target")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    source: int
    target: int
    def __init__(self, source: _Optional[int] = ..., target: _Optional[int] = ...) -> None: ...

class Translations(_message.Message):
    __slots__ = ("translations", "error")
    TRANSLATIONS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    translations: _containers.RepeatedCompositeFieldContainer[Translation]
    error: Error
    def __init__(self, translations: _Optional[_Iterable[_Union[Translation, _Mapping]]] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class TranslateResponse(_message.Message):
    __slots__ = ("sentences", "fingerprint", "signature")
    SENTENCES_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    sentences: _containers.RepeatedCompositeFieldContainer[Translations]
    fingerprint: str
    signature: str
    def __init__(self, sentences: _Optional[_Iterable[_Union[Translations, _Mapping]]] = ..., fingerprint: _Optional[str] = ..., signature: _Optional[str] = ...) -> None: ...

class TranslateStreamRequest(_message.Message):
    __slots__ = ("id", "request")
    ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    id: str
    request: TranslateRequest
    def __init__(self, id: _Optional[str] = ..., request: _Optional[_Union[TranslateRequest, _Mapping]] = ...) -> None: ...

class TranslateStreamResponse(_message.Message):
    __slots__ = ("id", "response", "error")
    ID_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    id: str
    response: TranslateResponse
    error: Error
    def __init__(self, id: _Optional[str] = ..., response: _Optional[_Union[TranslateResponse, _Mapping]] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class Pair(_message.Message):
    __slots__ = ("source", "target")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ...) -> None: ...

class SourceGroup(_message.Message):
    __slots__ = ("source", "targets")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    source: str
    targets: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, source: _Optional[str] = ..., targets: _Optional[_Iterable[str]] = ...) -> None: ...

class ScoreRequest(_message.Message):
    __slots__ = ("model", "pairs", "per_word", "groups", "with_attention", "priority", "form")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    PER_WORD_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    WITH_ATTENTION_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    model: str
    pairs: _containers.RepeatedCompositeFieldContainer[Pair]
    per_word: bool
    groups: _containers.RepeatedCompositeFieldContainer[SourceGroup]
    with_attention: bool
    priority: Priority
    form: TextForm
    def __init__(self, model: _Optional[str] = ..., pairs: _Optional[_Iterable[_Union[Pair, _Mapping]]] = ..., per_word: bool = ..., groups: _Optional[_Iterable[_Union[SourceGroup, _Mapping]]] = ..., with_attention: bool = ..., priority: _Optional[_Union[Priority, str]] = ..., form: _Optional[_Union[TextForm, str]] = ...) -> None: ...

class PairScore(_message.Message):
    __slots__ = ("log_prob", "unknown_source_words", "unknown_target_words", "word_log_probs", "attention", "attention_columns", "error")
    LOG_PROB_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_SOURCE_WORDS_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_TARGET_WORDS_FIELD_NUMBER: _ClassVar[int]
    WORD_LOG_PROBS_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    log_prob: float
    unknown_source_words: int
    unknown_target_words: int
    word_log_probs: _containers.RepeatedScalarFieldContainer[float]
    attention: _containers.RepeatedScalarFieldContainer[float]
    attention_columns: int
    error: Error
    def __init__(self, log_prob: _Optional[float] = ..., unknown_source_words: _Optional[int] = ..., unknown_target_words: _Optional[int] = ..., word_log_probs: _Optional[_Iterable[float]] = ..., attention: _Optional[_Iterable[float]] = ..., attention_columns: _Optional[int] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class GroupScores(_message.Message):
    __slots__ = ("scores",)
    SCORES_FIELD_NUMBER: _ClassVar[int]
    scores: _containers.RepeatedCompositeFieldContainer[PairScore]
    def __init__(self, scores: _Optional[_Iterable[_Union[PairScore, _Mapping]]] = ...) -> None: ...

class ScoreResponse(_message.Message):
    __slots__ = ("scores", "groups", "fingerprint", "signature")
    SCORES_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    scores: _containers.RepeatedCompositeFieldContainer[PairScore]
    groups: _containers.RepeatedCompositeFieldContainer[GroupScores]
    fingerprint: str
    signature: str
    def __init__(self, scores: _Optional[_Iterable[_Union[PairScore, _Mapping]]] = ..., groups: _Optional[_Iterable[_Union[GroupScores, _Mapping]]] = ..., fingerprint: _Optional[str] = ..., signature: _Optional[str] = ...) -> None: ...

class ScoreStreamRequest(_message.Message):
    __slots__ = ("id", "request")
    ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    id: str
    request: ScoreRequest
    def __init__(self, id: _Optional[str] = ..., request: _Optional[_Union[ScoreRequest, _Mapping]] = ...) -> None: ...

class ScoreStreamResponse(_message.Message):
    __slots__ = ("id", "response", "error")
    ID_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    id: str
    response: ScoreResponse
    error: Error
    def __init__(self, id: _Optional[str] = ..., response: _Optional[_Union[ScoreResponse, _Mapping]] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class FeatureColumn(_message.Message):
    __slots__ = ("name", "weight")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    name: str
    weight: float
    def __init__(self, name: _Optional[str] = ..., weight: _Optional[float] = ...) -> None: ...

class Hypothesis(_message.Message):
    __slots__ = ("target", "values")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    target: str
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, target: _Optional[str] = ..., values: _Optional[_Iterable[float]] = ...) -> None: ...

class NbestList(_message.Message):
    __slots__ = ("source", "hypotheses")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    HYPOTHESES_FIELD_NUMBER: _ClassVar[int]
    source: str
    hypotheses: _containers.RepeatedCompositeFieldContainer[Hypothesis]
    def __init__(self, source: _Optional[str] = ..., hypotheses: _Optional[_Iterable[_Union[Hypothesis, _Mapping]]] = ...) -> None: ...

class RerankRequest(_message.Message):
    __slots__ = ("model", "columns", "model_weight", "lists", "best", "priority", "form")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    MODEL_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    LISTS_FIELD_NUMBER: _ClassVar[int]
    BEST_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    model: str
    columns: _containers.RepeatedCompositeFieldContainer[FeatureColumn]
    model_weight: float
    lists: _containers.RepeatedCompositeFieldContainer[NbestList]
    best: int
    priority: Priority
    form: TextForm
    def __init__(self, model: _Optional[str] = ..., columns: _Optional[_Iterable[_Union[FeatureColumn, _Mapping]]] = ..., model_weight: _Optional[float] = ..., lists: _Optional[_Iterable[_Union[NbestList, _Mapping]]] = ..., best: _Optional[int] = ..., priority: _Optional[_Union[Priority, str]] = ..., form: _Optional[_Union[TextForm, str]] = ...) -> None: ...

class RankedHypothesis(_message.Message):
    __slots__ = ("position", "total", "log_prob", "error")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    LOG_PROB_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    position: int
    total: float
    log_prob: float
    error: Error
    def __init__(self, position: _Optional[int] = ..., total: _Optional[float] = ..., log_prob: _Optional[float] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class Ranking(_message.Message):
    __slots__ = ("hypotheses",)
    HYPOTHESES_FIELD_NUMBER: _ClassVar[int]
    hypotheses: _containers.RepeatedCompositeFieldContainer[RankedHypothesis]
    def __init__(self, hypotheses: _Optional[_Iterable[_Union[RankedHypothesis, _Mapping]]] = ...) -> None: ...

class RerankResponse(_message.Message):
    __slots__ = ("rankings", "fingerprint", "signature")
    RANKINGS_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    rankings: _containers.RepeatedCompositeFieldContainer[Ranking]
    fingerprint: str
    signature: str
    def __init__(self, rankings: _Optional[_Iterable[_Union[Ranking, _Mapping]]] = ..., fingerprint: _Optional[str] = ..., signature: _Optional[str] = ...) -> None: ...

class EncodeRequest(_message.Message):
    __slots__ = ("model", "texts", "raw", "priority")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    RAW_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    model: str
    texts: _containers.RepeatedScalarFieldContainer[str]
    raw: bool
    priority: Priority
    def __init__(self, model: _Optional[str] = ..., texts: _Optional[_Iterable[str]] = ..., raw: bool = ..., priority: _Optional[_Union[Priority, str]] = ...) -> None: ...

class PhraseVector(_message.Message):
    __slots__ = ("values", "unknown_words", "error")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_WORDS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[float]
    unknown_words: int
    error: Error
    def __init__(self, values: _Optional[_Iterable[float]] = ..., unknown_words: _Optional[int] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class EncodeResponse(_message.Message):
    __slots__ = ("vectors", "fingerprint", "signature")
    VECTORS_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    vectors: _containers.RepeatedCompositeFieldContainer[PhraseVector]
    fingerprint: str
    signature: str
    def __init__(self, vectors: _Optional[_Iterable[_Union[PhraseVector, _Mapping]]] = ..., fingerprint: _Optional[str] = ..., signature: _Optional[str] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ("models",)
    MODELS_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[Model]
    def __init__(self, models: _Optional[_Iterable[_Union[Model, _Mapping]]] = ...) -> None: ...

class GetModelRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetModelResponse(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: Model
    def __init__(self, model: _Optional[_Union[Model, _Mapping]] = ...) -> None: ...

class Model(_message.Message):
    __slots__ = ("name", "signature", "source_language", "target_language", "source_words", "target_words", "limits", "attends", "vector_size", "default_beam", "device", "surface_signature", "version", "kind")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_WORDS_FIELD_NUMBER: _ClassVar[int]
    TARGET_WORDS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    ATTENDS_FIELD_NUMBER: _ClassVar[int]
    VECTOR_SIZE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_BEAM_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    SURFACE_SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    name: str
    signature: str
    source_language: str
    target_language: str
    source_words: int
    target_words: int
    limits: Limits
    attends: bool
    vector_size: int
    default_beam: int
    device: str
    surface_signature: str
    version: str
    kind: ModelKind
    def __init__(self, name: _Optional[str] = ..., signature: _Optional[str] = ..., source_language: _Optional[str] = ..., target_language: _Optional[str] = ..., source_words: _Optional[int] = ..., target_words: _Optional[int] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., attends: bool = ..., vector_size: _Optional[int] = ..., default_beam: _Optional[int] = ..., device: _Optional[str] = ..., surface_signature: _Optional[str] = ..., version: _Optional[str] = ..., kind: _Optional[_Union[ModelKind, str]] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("items", "characters", "beam", "words", "nbest", "message_bytes", "length_ratio", "streams", "stream_requests", "steps", "memory_bytes", "length_normalization", "client_streams", "request_bytes")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    BEAM_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    NBEST_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    LENGTH_RATIO_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    STREAM_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    LENGTH_NORMALIZATION_FIELD_NUMBER: _ClassVar[int]
    CLIENT_STREAMS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_BYTES_FIELD_NUMBER: _ClassVar[int]
    items: int
    characters: int
    beam: int
    words: int
    nbest: int
    message_bytes: int
    length_ratio: float
    streams: int
    stream_requests: int
    steps: int
    memory_bytes: int
    length_normalization: float
    client_streams: int
    request_bytes: int
    def __init__(self, items: _Optional[int] = ..., characters: _Optional[int] = ..., beam: _Optional[int] = ..., words: _Optional[int] = ..., nbest: _Optional[int] = ..., message_bytes: _Optional[int] = ..., length_ratio: _Optional[float] = ..., streams: _Optional[int] = ..., stream_requests: _Optional[int] = ..., steps: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., length_normalization: _Optional[float] = ..., client_streams: _Optional[int] = ..., request_bytes: _Optional[int] = ...) -> None: ...
