# nmt.proto sha256 d668541f3231cc29ab4461a083b05e988877f6b8e1da88773db4e6a1cbc9b7ec
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TranslateRequest(_message.Message):
    __slots__ = ("model", "texts", "raw", "beam", "nbest", "length_normalization", "max_length_ratio", "forbid_unknown", "with_attention")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    RAW_FIELD_NUMBER: _ClassVar[int]
    BEAM_FIELD_NUMBER: _ClassVar[int]
    NBEST_FIELD_NUMBER: _ClassVar[int]
    LENGTH_NORMALIZATION_FIELD_NUMBER: _ClassVar[int]
    MAX_LENGTH_RATIO_FIELD_NUMBER: _ClassVar[int]
    FORBID_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    WITH_ATTENTION_FIELD_NUMBER: _ClassVar[int]
    model: str
    texts: _containers.RepeatedScalarFieldContainer[str]
    raw: bool
    beam: int
    nbest: int
    length_normalization: float
    max_length_ratio: float
    forbid_unknown: bool
    with_attention: bool
    def __init__(self, model: _Optional[str] = ..., texts: _Optional[_Iterable[str]] = ..., raw: bool = ..., beam: _Optional[int] = ..., nbest: _Optional[int] = ..., length_normalization: _Optional[float] = ..., max_length_ratio: _Optional[float] = ..., forbid_unknown: bool = ..., with_attention: bool = ...) -> None: ...

class Translation(_message.Message):
    __slots__ = ("text", "log_prob", "score", "word_log_probs", "words", "source_words", "alignment", "attention")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LOG_PROB_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    WORD_LOG_PROBS_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_WORDS_FIELD_NUMBER: _ClassVar[int]
    ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_FIELD_NUMBER: _ClassVar[int]
    text: str
    log_prob: float
    score: float
    word_log_probs: _containers.RepeatedScalarFieldContainer[float]
    words: _containers.RepeatedScalarFieldContainer[str]
    source_words: _containers.RepeatedScalarFieldContainer[str]
    alignment: _containers.RepeatedCompositeFieldContainer[AlignmentPoint]
    attention: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, text: _Optional[str] = ..., log_prob: _Optional[float] = ..., score: _Optional[float] = ..., word_log_probs: _Optional[_Iterable[float]] = ..., words: _Optional[_Iterable[str]] = ..., source_words: _Optional[_Iterable[str]] = ..., alignment: _Optional[_Iterable[_Union[AlignmentPoint, _Mapping]]] = ..., attention: _Optional[_Iterable[float]] = ...) -> None: ...

class AlignmentPoint(_message.Message):
    __slots__ = ("source", "target")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    source: int
    target: int
    def __init__(self, source: _Optional[int] = ..., target: _Optional[int] = ...) -> None: ...

class Translations(_message.Message):
    __slots__ = ("translations",)
    TRANSLATIONS_FIELD_NUMBER: _ClassVar[int]
    translations: _containers.RepeatedCompositeFieldContainer[Translation]
    def __init__(self, translations: _Optional[_Iterable[_Union[Translation, _Mapping]]] = ...) -> None: ...

class TranslateResponse(_message.Message):
    __slots__ = ("sentences",)
    SENTENCES_FIELD_NUMBER: _ClassVar[int]
    sentences: _containers.RepeatedCompositeFieldContainer[Translations]
    def __init__(self, sentences: _Optional[_Iterable[_Union[Translations, _Mapping]]] = ...) -> None: ...

class Pair(_message.Message):
    __slots__ = ("source", "target")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ...) -> None: ...

class ScoreRequest(_message.Message):
    __slots__ = ("model", "pairs", "per_word")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    PER_WORD_FIELD_NUMBER: _ClassVar[int]
    model: str
    pairs: _containers.RepeatedCompositeFieldContainer[Pair]
    per_word: bool
    def __init__(self, model: _Optional[str] = ..., pairs: _Optional[_Iterable[_Union[Pair, _Mapping]]] = ..., per_word: bool = ...) -> None: ...

class PairScore(_message.Message):
    __slots__ = ("log_prob", "unknown_source_words", "unknown_target_words", "word_log_probs")
    LOG_PROB_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_SOURCE_WORDS_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_TARGET_WORDS_FIELD_NUMBER: _ClassVar[int]
    WORD_LOG_PROBS_FIELD_NUMBER: _ClassVar[int]
    log_prob: float
    unknown_source_words: int
    unknown_target_words: int
    word_log_probs: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, log_prob: _Optional[float] = ..., unknown_source_words: _Optional[int] = ..., unknown_target_words: _Optional[int] = ..., word_log_probs: _Optional[_Iterable[float]] = ...) -> None: ...

class ScoreResponse(_message.Message):
    __slots__ = ("scores",)
    SCORES_FIELD_NUMBER: _ClassVar[int]
    scores: _containers.RepeatedCompositeFieldContainer[PairScore]
    def __init__(self, scores: _Optional[_Iterable[_Union[PairScore, _Mapping]]] = ...) -> None: ...

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
    __slots__ = ("name", "signature", "source_language", "target_language", "source_words", "target_words", "limits")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_WORDS_FIELD_NUMBER: _ClassVar[int]
    TARGET_WORDS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    name: str
    signature: str
    source_language: str
    target_language: str
    source_words: int
    target_words: int
    limits: Limits
    def __init__(self, name: _Optional[str] = ..., signature: _Optional[str] = ..., source_language: _Optional[str] = ..., target_language: _Optional[str] = ..., source_words: _Optional[int] = ..., target_words: _Optional[int] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("items", "characters", "beam")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    BEAM_FIELD_NUMBER: _ClassVar[int]
    items: int
    characters: int
    beam: int
    def __init__(self, items: _Optional[int] = ..., characters: _Optional[int] = ..., beam: _Optional[int] = ...) -> None: ...
