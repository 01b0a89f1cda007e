"""Parts of words: one of three kinds of segmentation, each undone exactly.

``bpe``            subword-nmt, ``@@`` behind all parts of a word but the last
``morfessor``      Morfessor 2.0 Baseline with its defaults, the same mark
``sentencepiece``  pieces with their mark U+2581 where a word begins, learned from running text
"""

from __future__ import annotations

import contextlib
import io
import itertools
import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Protocol

from pydantic import Field

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.words import split_words, whole_number
from nmt_core.config import Config
from nmt_core.files import open_output, read_text_lines, write_lines
from nmt_core.preparation.steps import ModelFile, Side, import_optional
from nmt_core.preparation.words import LONGEST, in_lengths, remembered
from nmt_core.text.vocabulary import by_frequency, count_words

JOINER = "@@"
WORD_BEGINS = "\u2581"
_JOINED = re.compile(f"{JOINER}( |$)")
_VERSIONS = ("#version: 0.1", "#version: 0.2")  # of files of merge operations
_LONGEST_WORD = 1000  # characters, in a model; more takes quadratic time
_CACHED = 1 << 18
_THREADS = 4  # fixed, since sums of floating-point numbers depend on it


class BpeConfig(Config):
    """``merges`` operations, learned from all sides together if ``joint``."""

    type: Literal["bpe"] = "bpe"
    sides: tuple[Side, ...] | None = None
    merges: int = Field(default=32000, ge=1)
    minimum_frequency: int = Field(default=2, ge=1)
    joint: bool = True


class SentencePieceConfig(Config):
    """``size`` pieces by ``model`` unigram or bpe; ``sample``: learn from that many lines, drawn evenly."""

    type: Literal["sentencepiece"] = "sentencepiece"
    sides: tuple[Side, ...] | None = None
    size: int = Field(default=32000, ge=1)
    model: Literal["unigram", "bpe"] = "unigram"
    character_coverage: float = Field(default=1.0, gt=0, le=1)
    sample: int = Field(default=5_000_000, ge=1)
    joint: bool = True


class MorfessorConfig(Config):
    """``dampening`` of counts as in ``morfessor-train``; words seen less often than ``minimum_count`` teach nothing."""

    type: Literal["morfessor"] = "morfessor"
    sides: tuple[Side, ...] | None = None
    dampening: Literal["ones", "log", "none"] = "ones"
    minimum_count: int = Field(default=1, ge=1)
    joint: Literal[False] = False


SubwordsConfig = BpeConfig | SentencePieceConfig | MorfessorConfig


def letters(piece: str) -> str:
    """A part of a word without the mark of any of the three."""
    return piece.replace(WORD_BEGINS, "").removesuffix(JOINER)


class Subwords(Protocol):
    """One of the three."""

    def apply(self, line: str) -> str:
        """Segment the words of a line."""
        ...

    def undo(self, line: str) -> str:
        """Put the words together again."""
        ...


def open_subwords(config: SubwordsConfig, model: ModelFile) -> Subwords:
    """The segmentation whose model is in a file."""
    kinds: dict[str, Callable[[ModelFile], Subwords]] = {
        "bpe": Bpe,
        "sentencepiece": SentencePieces,
        "morfessor": Morphs,
    }
    return kinds[config.type](model)


def _lines(paths: Sequence[str]) -> Iterator[str]:
    return itertools.chain.from_iterable(map(read_text_lines, paths))


def learn_subwords(config: SubwordsConfig, paths: Sequence[str], output: str) -> None:
    """Learn from tokenised files and write the model."""
    if isinstance(config, BpeConfig):
        _learn_bpe(config, paths, output)
    elif isinstance(config, SentencePieceConfig):
        _learn_pieces(config, paths, output)
    else:
        _learn_morphs(config, paths, output)


class _Joined:
    """Words whose parts carry the joiner."""

    def undo(self, line: str) -> str:
        """Take the joiners away."""
        return _JOINED.sub("", line)


_NO_MERGES = "not a file of merge operations (two symbols a line); expected what 'nmt-core prepare corpus' wrote"
_TOO_LITTLE = "too little text to learn subwords from; give more, or prepare it without subwords"


class Bpe(_Joined):
    """Byte-pair encoding of Sennrich et al. (2016)."""

    def __init__(self, model: ModelFile) -> None:
        apply_bpe = import_optional("subword_nmt.apply_bpe", "subword-nmt", "byte-pair encoding")
        codes = list(model.lines())
        version = codes[0] if codes and codes[0].startswith("#version:") else _VERSIONS[0]
        wrong = next((number for number, code in enumerate(codes, start=1) if len(code.split(" ")) != 2), None)
        if version not in _VERSIONS or wrong is not None:
            raise InputError(model.path, _NO_MERGES, line=wrong if version in _VERSIONS else 1)
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # what it writes before it ends the program
                self._bpe = apply_bpe.BPE(io.StringIO("\n".join(codes)), separator=JOINER)
        except (SystemExit, ValueError) as error:
            raise InputError(model.path, _NO_MERGES) from error

    def apply(self, line: str) -> str:
        """Segment."""
        if len(self._bpe.cache) > _CACHED:
            self._bpe.cache.clear()
        return " ".join(map(self._segment, split_words(line)))

    def _segment(self, word: str) -> str:
        return f"{JOINER} ".join(" ".join(self._bpe.segment_tokens([part])) for part in in_lengths(word))


def _learn_bpe(config: BpeConfig, paths: Sequence[str], output: str) -> None:
    learn_bpe = import_optional("subword_nmt.learn_bpe", "subword-nmt", "byte-pair encoding")
    counts = by_frequency(count_words(_lines(paths)))
    if not any(len(word) > 1 and count >= config.minimum_frequency for word, count in counts):
        raise InputError(paths[0], _TOO_LITTLE)
    codes = io.StringIO()
    words = [f"{word} {count}" for word, count in counts]
    with contextlib.redirect_stderr(io.StringIO()):  # its progress bar
        learn_bpe.learn_bpe(words, codes, config.merges, min_frequency=config.minimum_frequency, is_dict=True)
    with open_output(output) as stream:
        stream.write(codes.getvalue().encode())


class SentencePieces:
    """Pieces of Kudo and Richardson (2018)."""

    def __init__(self, model: ModelFile) -> None:
        library = import_optional("sentencepiece", "sentencepiece", "SentencePiece")
        self._pieces = library.SentencePieceProcessor()
        try:
            self._pieces.LoadFromSerializedProto(model.content)
        except RuntimeError as error:
            raise InputError(
                model.path, "not a SentencePiece model; expected what 'nmt-core prepare corpus' wrote"
            ) from error

    def apply(self, line: str) -> str:
        """Segment."""
        return " ".join(self._pieces.EncodeAsPieces(line))

    def undo(self, line: str) -> str:
        """The text of the pieces."""
        return str(self._pieces.DecodePieces(split_words(line)))


def _learn_pieces(config: SentencePieceConfig, paths: Sequence[str], output: str) -> None:
    library = import_optional("sentencepiece", "sentencepiece", "SentencePiece")
    model = io.BytesIO()
    library.set_random_generator_seed(1)
    try:
        library.SentencePieceTrainer.Train(
            sentence_iterator=filter(None, _lines(paths)),
            model_writer=model,
            vocab_size=config.size,
            model_type=config.model,
            character_coverage=config.character_coverage,
            input_sentence_size=config.sample,
            shuffle_input_sentence=True,
            normalization_rule_name="identity",
            num_threads=_THREADS,
            minloglevel=2,
        )
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise ConfigError(f"subwords.size {config.size}: SentencePiece could not learn ({reason})") from error
    with open_output(output) as stream:
        stream.write(model.getvalue())


class Morphs(_Joined):
    """Morfessor Baseline of Virpioja et al. (2013); the file has a count and the morphs of a word on each line."""

    def __init__(self, model: ModelFile) -> None:
        self._model = _morfessor().BaselineModel()
        self._model.load_segmentations(_segmentations(model))
        self._segment = remembered(self._segment_word)

    def apply(self, line: str) -> str:
        """Segment."""
        return " ".join(map(self._segment, split_words(line)))

    def _segment_word(self, word: str) -> str:
        return f"{JOINER} ".join(piece for part in in_lengths(word) for piece in self._model.viterbi_segment(part)[0])


def _learn_morphs(config: MorfessorConfig, paths: Sequence[str], output: str) -> None:
    words = [found for found in by_frequency(count_words(_lines(paths))) if len(found[0]) <= LONGEST]
    counts = [(count, word) for word, count in words if count >= config.minimum_count]
    if not counts:
        raise InputError(paths[0], _TOO_LITTLE)
    dampened = {"ones": lambda _: 1, "log": lambda count: int(count).bit_length(), "none": None}[config.dampening]
    model = _morfessor().BaselineModel()
    model.load_data(counts, count_modifier=dampened)
    with _same_random_numbers():
        model.train_batch()
    with open_output(output) as stream:
        write_lines(stream, [f"{count} {' '.join(parts)}" for count, _, parts in model.get_segmentations()])


def _segmentations(model: ModelFile) -> list[tuple[int, str, list[str]]]:
    found = []
    for number, line in enumerate(model.lines(), start=1):
        count, *parts = line.split(" ")
        times = whole_number(count)
        if not times or not all(parts) or not parts:
            raise InputError(model.path, "expected a count (from 1) and morphs", line=number)
        word = "".join(parts)
        if len(word) > _LONGEST_WORD:
            raise InputError(
                model.path, f"a word of {len(word):,} characters; expected at most {_LONGEST_WORD:,}", line=number
            )
        found.append((times, word, parts))
    if not found:
        raise InputError(model.path, "is empty; expected a count and morphs on each line")
    return found


@contextlib.contextmanager
def _same_random_numbers() -> Iterator[None]:
    """Morfessor visits words in an order drawn from the program's generator, which is left as it was."""
    state = random.getstate()
    random.seed(1)
    try:
        yield
    finally:
        random.setstate(state)


def _morfessor() -> Any:
    library = import_optional("morfessor", "morfessor", "Morfessor")
    library.utils.show_progress_bar = False
    return library
