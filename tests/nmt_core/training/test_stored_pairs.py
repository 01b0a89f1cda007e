"""Text pairs in temporary files: what comes out is what went in, in other processes too, and nothing is left behind."""

from __future__ import annotations

import errno
import gc
import io
import multiprocessing
import os
import pickle
import random
import sys
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt_core.base.errors import NmtError
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from nmt_core.training.data.corpus import ParallelCorpus, encode_corpus
from nmt_core.training.data.stored import TextPair, store_pairs

ODD: list[TextPair] = [
    ("a  b", ""),
    ("", "\u2028 \x85 \r"),
    ("\udcff\udc80 caf\xe9", "\U0001f600\t|"),
    ("", ""),
    ("das|ART Haus|NN", "</s> <unk>"),
]
WORDS = Vocabulary([*SPECIAL_WORDS, *"abcdefgh"])


def many(count: int) -> list[TextPair]:
    generator = random.Random(count)
    lines = [" ".join(generator.choices("abcdefgh", k=10)) for _ in range(2 * count)]
    return list(zip(lines[::2], lines[1::2], strict=True))


@pytest.mark.parametrize("pairs", [ODD, ODD[3:4], [], many(20_000)])
def test_pairs_are_what_they_were_as_often_as_wanted(pairs: list[TextPair]) -> None:
    stored = store_pairs(iter(pairs))
    assert len(stored) == len(pairs)
    assert [*stored] == [*stored] == pairs
    assert [*stored.sources()] == [pair[0] for pair in pairs]
    assert [*stored.targets()] == [pair[1] for pair in pairs]


def test_held_out_pairs_are_left_out() -> None:
    pairs: list[TextPair] = [(f"s{n}", f"t{n}") for n in range(30)]
    stored = store_pairs(pairs)
    assert [*stored] == pairs
    left, held_out = stored.without(np.array([7, 0, 29]))
    assert held_out == [pairs[0], pairs[7], pairs[29]]
    assert [*left] == pairs[1:7] + pairs[8:29]
    assert [*left.targets()] == [pair[1] for pair in left]
    assert len(left) == 27


def test_another_process_reads_the_same_files() -> None:
    pairs = many(20_000)
    stored, _ = store_pairs(pairs).without(np.array([3]))
    content = pickle.dumps(stored)
    assert len(content) < 30_000
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(list, (stored,)) == pairs[:3] + pairs[4:]


def encode(pairs: Any) -> ParallelCorpus:
    return encode_corpus(pairs, WORDS.encode, WORDS.encode, keep_text=True, keep_target_text=True)


def test_another_process_has_the_corpus_and_parts_of_it_are_ordinary_vectors() -> None:
    pairs = many(500)
    first = encode([*ODD[:1], *pairs])
    corpus = pickle.loads(pickle.dumps(first))
    assert (len(corpus), corpus.left_out) == (500, 1)
    for side, texts in zip((corpus.source, corpus.target), zip(*pairs, strict=True), strict=True):
        assert [(each.ids, each.text) for each in side] == [(WORDS.encode(text), text) for text in texts]
    part = corpus.source.ids[3:9]
    assert np.array_equal(pickle.loads(pickle.dumps(part)), part)


def test_nothing_is_left_in_the_folder_of_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stored = encode(store_pairs(many(100)))
    assert len(stored) == 100
    assert os.listdir(tmp_path) == []


class FullDisk(io.FileIO):
    """A file on a disk without space."""

    def write(self, content: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_no_space_for_the_text_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing the file tries to write again, and its error has no one to catch it."""
    uncaught: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", uncaught.append)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: io.BufferedRandom(FullDisk(tmp_path / "text", "w+")))
    with pytest.raises(NmtError, match=r"cannot be kept there \(No space left on device\).*TMPDIR"):
        store_pairs(many(10))
    gc.collect()
    assert uncaught == []


def test_memory_does_not_grow_with_the_text() -> None:
    """A pair of strings in a list would take 270 bytes and more."""

    def peak(count: int) -> int:
        def pairs() -> Any:
            for number in range(count):
                yield f"{number} a b c d e f g h a b c d e f", "h g f e d c b a"

        tracemalloc.start()
        assert len(encode(store_pairs(pairs()))) == count
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(60_000) - peak(20_000) < 40_000  # bytes: less than one a pair
