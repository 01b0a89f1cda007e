"""An n-gram language model of the target, read by KenLM (Heafield 2011); natural logarithms.

KenLM says log10; the one place where that is converted, for ``smt_bridge`` too. Its Python module is
imported when a model is opened.
"""

from __future__ import annotations

import codecs
import math
import os
import re
import struct
from collections.abc import Sequence
from typing import Any, BinaryIO

from nmt_core.base.errors import ConfigError, InputError, unreadable
from nmt_core.base.words import whole_number
from nmt_core.files import open_input, packing_of, read_beginning
from nmt_core.files.reading import check_regular

_HEAD = 1 << 16
_MOST_PACKED = 10_000  # times what a packed file is, which no text is
_LN_10 = math.log(10.0)
# KenLM's Python module would split at these too; inside a word they only say that the word is unknown.
_SEPARATORS = bytes.maketrans(b"\n\r\v\f\x00\t ", b"\xff" * 7)
_BOUNDARIES = ("<s>", "</s>")  # in the middle of a text they are unknown words


class NgramModel:
    """An ARPA file (plain or gzip) or a binary of ``build_binary``.

    Raises ConfigError when KenLM's module is not installed and InputError when the file is not a model.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._model = _load(path)

    def __repr__(self) -> str:
        return f"NgramModel({self.path!r}, order={self.order})"

    def __contains__(self, word: str) -> bool:
        return _bytes(word) in self._model

    @property
    def order(self) -> int:
        """The longest n-grams."""
        return int(self._model.order)

    def log_prob(self, words: Sequence[str]) -> float:
        """Natural log of p(words), from ``<s>`` to ``</s>``; unknown words have the probability of ``<unk>``.

        Raises InputError where the model has -inf, which no tuner takes.
        """
        log_prob = float(self._model.score(b" ".join(map(_bytes, words)), bos=True, eos=True)) * _LN_10
        if not math.isfinite(log_prob):
            problem = "an n-gram has a log probability or backoff of -inf or nan; write -99 there, as SRILM does"
            raise InputError(self.path, problem)
        return log_prob


def _bytes(word: str) -> bytes:
    if word in _BOUNDARIES:
        return b"<unk>"
    return word.encode("utf-8", "surrogateescape").translate(_SEPARATORS)


def check_ngram_file(path: str) -> None:
    """Raise InputError unless ``path`` is an ordinary file: models are read more than once."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        problem = "there is no such n-gram model; give an ARPA file or a binary of build_binary"
        raise InputError(path, problem) from error
    except OSError as error:
        raise unreadable(path, error) from error
    check_regular(path)


def _check_head(path: str) -> None:
    """Raise InputError for what KenLM does not read, and where it would end the program or never end."""
    with open_input(path, as_it_is=True) as stream:
        if stream.read(len(MAGIC)) == MAGIC:
            check_binary(path, stream)
            return
        size = stream.seek(0, os.SEEK_END)
    packed = packing_of(path)
    if packed == ".zst":
        raise InputError(path, "is packed with zstd, which KenLM does not read; unpack it, or pack it with gzip")
    head = read_beginning(path, _HEAD)
    if head.startswith(codecs.BOM_UTF8):
        raise InputError(path, "begins with a byte order mark, which KenLM does not read; save it without one", line=1)
    for number, line in enumerate(head.partition(b"-grams:")[0].split(b"\n"), start=1):
        if line.startswith(b"ngram "):
            count = whole_number(line.partition(b"=")[2].strip().decode("ascii", "replace"))
            if count is None or count > size * (_MOST_PACKED if packed else 1):
                raise InputError(path, "expected 'ngram N=COUNT', with a count that the file can hold", line=number)


def import_kenlm() -> Any:
    """KenLM's Python module. Raises ConfigError where it is not installed."""
    try:
        import kenlm
    except ImportError as error:
        raise ConfigError("an n-gram model needs KenLM's Python module: pip install 'hybridmt[lm]'") from error
    return kenlm


def _load(path: str) -> Any:
    kenlm = import_kenlm()
    check_ngram_file(path)
    _check_head(path)
    settings = kenlm.Config()
    settings.show_progress, settings.arpa_complain = False, kenlm.ARPALoadComplain.NONE
    try:
        return kenlm.Model(os.fsencode(path), settings)
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        raise refusal(path, error) from error


MAGIC = b"mmap lm http://kheafield.com/code format version 5\n"
_FIXED = struct.Struct("<88x B 3x f I 4x 4x")
_TRIES = range(2, 6)
_MOST_BUCKETS = 1000.0  # build_binary -p takes 1.5 unless it is told otherwise
_BITS = 8  # of a byte; no n-gram takes less than one


def check_binary(path: str, stream: BinaryIO) -> None:
    """Raise InputError where the header of a file that begins with the magic cannot be true."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    head = stream.read(_FIXED.size)
    if len(head) < _FIXED.size:
        raise _damaged(path, "ends in its header")
    order, buckets, kind = _FIXED.unpack(head)
    counts = struct.Struct(f"<{order}Q")
    numbers = stream.read(counts.size + (-_FIXED.size - counts.size) % 8)
    vocabulary = stream.read(8)
    if order < 2 or len(vocabulary) < 8:
        raise _damaged(path, f"is of order {order}" if order < 2 else "ends in its header")
    if not 1.0 <= buckets <= _MOST_BUCKETS:
        raise _damaged(path, f"has {buckets:g} buckets for an entry")
    found = counts.unpack_from(numbers)
    words = struct.unpack("<Q", vocabulary)[0] if kind in _TRIES else struct.unpack("<4x I", vocabulary)[0]
    if max(found) > _BITS * size or words > found[0] + 1:
        raise _damaged(path, "has more n-grams, or words, than it has room for")


def _damaged(path: str, problem: str) -> InputError:
    problem = f"the binary n-gram model is damaged ({problem})"
    return InputError(path, f"{problem}; copy it again, or build it from the ARPA file with build_binary")


_LONGEST = 200  # characters of what is said; a word of a damaged file may have megabytes
_SOURCE = re.compile(r"^[^ ]+\.(?:cc|hh):[0-9]+ in .*? threw [A-Za-z_:]+(?: because `.*?'\.|\.)\s", re.DOTALL)


def refusal(path: str, error: Exception) -> InputError:
    """The error to raise for what KenLM threw, with its reason but without its C++."""
    text = str(error)
    if isinstance(error, UnicodeDecodeError):  # KenLM's module gives up on a message that is no UTF-8
        text = error.object.decode("utf-8", "backslashreplace")
    reason = text.removeprefix(f"Cannot read model '{os.fsencode(path)!r}' (").removesuffix(")")
    reason = " ".join(_SOURCE.sub("", reason).split())
    if len(reason) > _LONGEST:
        reason = f"{reason[: _LONGEST // 2]} … {reason[-_LONGEST // 2 :]}"
    return InputError(path, f"KenLM cannot read it as an ARPA or binary model; is it whole? ({reason})")
