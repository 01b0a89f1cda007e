"""The development set, decoded again and again by Moses with other weights: one n-best list a round.

A round is decoded some sentences at a time, each part in a file of its own until all are there: what was decoded before
an interruption is not decoded again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence

from nmt_core.files import open_output, open_uncompressed
from smt_bridge.decoder.moses_child import MosesOptions
from smt_bridge.decoder.moses_process import MosesProcess

_PART = 100  # sentences


def decode(
    options: MosesOptions, sentences: Sequence[bytes], folder: str, name: str, tell: Callable[[int], None]
) -> None:
    """Write ``FOLDER/NAME.nbest.gz``, unless it is there; ``tell`` is told the sentences that are done.

    Sentences that Moses fails at twice have no list. Raises MosesFailed.
    """
    path = os.path.join(folder, f"{name}.nbest.gz")
    firsts = range(0, len(sentences), _PART)
    parts = {first: os.path.join(folder, f"{name}.{first:08d}.gz") for first in firsts}
    if not os.path.exists(path):
        _decode_parts(options, sentences, parts, tell)
        with open_uncompressed(path) as whole:
            for part in parts.values():
                with open(part, "rb") as stream:
                    whole.write(stream.read())
    for part in parts.values():  # also those of a program that was killed here
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)


def _decode_parts(
    options: MosesOptions, sentences: Sequence[bytes], parts: Mapping[int, str], tell: Callable[[int], None]
) -> None:
    """Write the files that are not there; ``parts`` has them by their first sentence."""
    with contextlib.ExitStack() as stack:
        process: MosesProcess | None = None
        for first, part in parts.items():
            if not os.path.exists(part):
                process = process or stack.enter_context(MosesProcess(options))
                _write(part, first, process.translate(sentences[first : first + _PART]))
            tell(min(first + _PART, len(sentences)))


def _write(path: str, first: int, lists: Sequence[Sequence[bytes] | None]) -> None:
    with open_output(path) as stream:
        for sentence, lines in enumerate(lists, start=first):
            stream.writelines(b"%d ||| %b\n" % (sentence, line) for line in lines or ())
