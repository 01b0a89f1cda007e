"""N-gram models as text that are damaged, cut off or packed otherwise: one line with KenLM's reason, and no C++."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.files import reading
from nmt_core.files.compression import zstd
from nmt_core.kenlm import NgramModel
from tests.nmt_core.arpa import ARPA

LINES = ARPA.encode().splitlines(keepends=True)
UNIGRAMS, BIGRAMS = LINES.index(b"\\1-grams:\n") + 1, LINES.index(b"\\2-grams:\n") + 1


def line(number: int, new: bytes) -> bytes:
    """The model with another line, which is counted from 1."""
    return b"".join([*LINES[: number - 1], new + b"\n", *LINES[number:]])


MORE_ORDERS = b"".join(b"ngram %d=0\n" % order for order in range(3, 10))
BIGRAM = BIGRAMS + 2
COUNT = "model (1):2: expected 'ngram N=COUNT', with a count that the file can hold"
CHANGED = {
    "no probability": (BIGRAM, b"abc\tun groupe", "Could not parse"),
    "not a number": (BIGRAM, b"nan\tun groupe", "Could not parse"),
    "a positive one": (BIGRAM, b"0.5\tun groupe", "Positive log probability 0.5"),
    "a word that is no unigram": (BIGRAM, b"-0.5\tun neuf", "neuf was not seen in the unigrams"),
    "a word that is no UTF-8": (BIGRAM, b"-0.5\tun n\xe9", "was not seen in the unigrams"),
    "a long word": (BIGRAM, b"-0.5\tun " + b"n" * 100_000, "nnn"),
    "no back-off": (UNIGRAMS + 4, b"-0.9\tun\tx", "Could not parse"),
    "more behind a back-off": (UNIGRAMS + 4, b"-0.9\tun\t-0.2 1", "Expected newline after backoffs"),
}
DAMAGED = {
    **{name: (line(number, new), problem) for name, (number, new, problem) in CHANGED.items()},
    "one word of two": (line(BIGRAM, b"-0.5\tun"), "unigrams"),
    "fewer bigrams": (ARPA.encode().replace(b"ngram 2=4", b"ngram 2=3"), "Expected \\end\\"),
    "cut off": (b"".join(LINES[:BIGRAM]), "is it whole?"),
    "more behind its end": (ARPA.encode() + b"more\n", "Trailing line more"),
    "a table": (b"a ||| b ||| 0.1\n", 'first non-empty line was "a ||| b ||| 0.1" not \\data\\'),
    "UTF-16": (ARPA.encode("utf-16"), "first non-empty line"),
    "no line": (b"", "End of file"),
    "an endless count": (line(2, b"ngram 1=99999999999"), COUNT),
    "no count": (line(2, b"ngram 1=x"), COUNT),
    "order 9": (ARPA.encode().replace(b"ngram 2=4\n", b"ngram 2=4\n" + MORE_ORDERS), "order 9"),
}


def refusal(path: Path, content: bytes) -> InputError:
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        NgramModel(str(path))
    assert not re.search(r"threw|Exception|\.(cc|hh):|void|StringPiece|\n", str(caught.value))
    assert len(str(caught.value)) < len(str(path)) + 280
    return caught.value


def test_an_undamaged_one_has_its_order_and_words(tmp_path: Path) -> None:
    (tmp_path / "model").write_text(ARPA)
    model = NgramModel(str(tmp_path / "model"))
    assert (model.order, "groupe" in model, "neuf" in model) == (2, True, False)
    (tmp_path / "endless").write_text(ARPA.replace("-0.2\tun groupe", "-inf\tun groupe"))
    with pytest.raises(InputError, match=r"or backoff of -inf or nan; write -99 there, as SRILM does$"):
        NgramModel(str(tmp_path / "endless")).log_prob(["un", "groupe"])
    assert repr(model) == f"NgramModel('{tmp_path}/model', order=2)"


def test_what_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("absent", "model/absent", "a\0b"):
        (tmp_path / "model").write_text(ARPA)
        with pytest.raises(InputError) as caught:
            NgramModel(str(tmp_path / name))
        assert caught.value.problem == "there is no such n-gram model; give an ARPA file or a binary of build_binary"
    monkeypatch.setitem(sys.modules, "kenlm", None)
    with pytest.raises(
        ConfigError, match=r"^an n-gram model needs KenLM's Python module: pip install 'hybridmt\[lm\]'$"
    ):
        NgramModel(str(tmp_path / "model"))


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_a_damaged_one_is_a_line(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    content, problem = DAMAGED[name]
    assert problem in str(refusal(tmp_path / "model (1)", pack(content)))


def test_only_a_packed_file_holds_more_ngrams_than_it_has_bytes(tmp_path: Path) -> None:
    path, most = tmp_path / "model (1)", 10_000 * len(gzip.compress(line(2, b"ngram 1=99999999")))
    for count, pack, is_endless in ((5000, bytes, True), (5000, gzip.compress, False), (2 * most, gzip.compress, True)):
        assert (str(refusal(path, pack(line(2, b"ngram 1=%d" % count)))) == f"{tmp_path}/{COUNT}") == is_endless


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_packed_data_that_are_damaged_are_a_line(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    content = pack(b"".join([*LINES[:BIGRAMS], *[b"-0.4\t<s> un\n"] * 2_000, b"\\end\\\n"]).replace(b"2=4", b"2=2000"))
    assert "the compressed data ends too early" in str(refusal(tmp_path / "model", content[:-40]))
    assert "twice" in str(refusal(tmp_path / "model", pack(content)))


@pytest.mark.parametrize("cut", [0, 30])
def test_what_others_packed_is_never_given_to_kenlm(tmp_path: Path, cut: int) -> None:
    """KenLM never ends on bzip2's data where they are cut off."""
    content = bz2.compress(ARPA.encode())
    assert "bzip2" in str(refusal(tmp_path / "model", content[: len(content) - cut]))
    if zstd is not None:
        problem = "is packed with zstd, which KenLM does not read; unpack it, or pack it with gzip"
        assert refusal(tmp_path / "model", zstd.compress(ARPA.encode())).problem == problem


@pytest.mark.parametrize("call", ["nmt_core.files.reading._Input", "os.stat"])
def test_a_model_that_may_not_be_read_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Neither the file itself, nor one in a folder that is closed, which is not called missing."""
    path = str(tmp_path / "lm")
    Path(path).write_text(ARPA)
    does = {"os.stat": os.stat}.get(call, reading._Input)

    def refused(name: Any, *arguments: Any, **named: Any) -> Any:
        if name == path:
            raise PermissionError(13, "Permission denied", path)
        return does(name, *arguments, **named)

    monkeypatch.setattr(call, refused)
    with pytest.raises(InputError) as caught:
        NgramModel(path)
    monkeypatch.undo()
    problem = "cannot be read (Permission denied); change its rights (chmod), or give another file"
    assert str(caught.value) == f"{path}: {problem}"
