"""The header of a binary n-gram model of KenLM (lm/binary_format.cc, lm/vocab.cc), all of it little endian.

====== ======= =========================================================================
place  type    value
====== ======= =========================================================================
0              the magic, and numbers that KenLM compares with its own
88     uint8   order N
92     float32 how many times more buckets than entries a hash table has
96     uint32  kind: 0 and 1 hash tables, 2 to 5 tries
108    uint64  N counts of n-grams
behind uint64  of a trie its words but ``<unk>``; of hash tables a version, and its words (uint32 each)
====== ======= =========================================================================

KenLM compares the magic, and the size of the file with what it works out from the counts; it believes the rest, and
ends the program where that is not true.
"""

from __future__ import annotations

import os
import struct
from typing import BinaryIO

from nmt_core.errors import InputError

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
