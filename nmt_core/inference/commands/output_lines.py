"""What ``nmt-core decode`` makes of translations: lines of its files, and notices on standard error."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence

from nmt_core.base.messages import say
from nmt_core.base.words import nbest_line
from nmt_core.inference.output.alignment import line_writer
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.output.lm import CoverageWarning
from nmt_core.inference.output.unknowns import UnknownCounts
from nmt_core.text.unknown_share import UnknownShare

Writer = Callable[[int, Sequence[Translation]], Iterable[str]]
"""The lines that the translations of a source line, whose number counts from 0, make in a file."""


def open_writers(args: argparse.Namespace, *, many: bool) -> list[Writer]:
    """What makes the lines of ``--output``, of which a source line may have ``many``, and of ``--alignments``."""
    writers: list[Writer] = [_nbest_lines if many else _scored_line if args.scores else _line]
    if args.alignments:
        line_of = line_writer(args.alignments)
        writers.append(lambda _, found: [line_of(one.aligned) for one in found])
    return writers


def _line(_: int, found: Sequence[Translation]) -> list[str]:
    return [found[0].text]


def _scored_line(_: int, found: Sequence[Translation]) -> list[str]:
    return [f"{found[0].log_prob:.6f}\t{found[0].text}"]


def _nbest_lines(number: int, found: Sequence[Translation]) -> Iterable[str]:
    for one in found:
        lm = "" if one.lm_log_prob is None else f" LM0= {one.lm_log_prob:.6f}"
        yield nbest_line(number, one.text, f"NMT0= {one.log_prob:.6f}{lm}", one.score)


def written_lines(
    writers: Iterable[Writer], found: Sequence[Sequence[Translation]], *, first: int
) -> tuple[bytes, ...]:
    """What each writes of translations; the number of the first line counts from 0."""
    numbered = list(enumerate(found, start=first))
    texts = ["".join(f"{line}\n" for one in numbered for line in write(*one)) for write in writers]
    return tuple(text.encode("utf-8", "surrogateescape") for text in texts)


def distinct(found: Sequence[Translation], most: int) -> list[Translation]:
    """Of translations with the same text the first, ``most`` of them."""
    texts: dict[str, Translation] = {}
    for translation in found:
        texts.setdefault(translation.text, translation)
    return list(texts.values())[:most]


class Notices:
    """Warns once of a text, as soon as its windows give reason to, and says at the end what was replaced."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._coverage = None if args.lm is None else CoverageWarning(args.lm.path, _warn)
        self._share: UnknownShare | None = None

    def add(self, counts: Mapping[str, float]) -> None:
        """Take note of a window, counted by ``DecodeWorker``."""
        if not counts:  # of a Transformer
            return
        if self._share is None:
            hint = "" if self._args.raw else "Raw text needs --raw"
            serve = counts["serve"] > 0
            self._share = UnknownShare(self._args.model, _warn, hint=hint, serve=serve, usual=counts["usual"])
        self._share.add(words=int(counts["words"]), unknown=int(counts["unknown"]))
        if self._coverage is not None:
            self._coverage.add(words=int(counts["lm_words"]), unknown=int(counts["lm_unknown"]))

    def finish(self, counts: Mapping[str, float], _: object) -> None:
        """Say what is left to say of the sums of all windows."""
        if self._share is None:
            return
        self._share.finish()
        if self._coverage is not None:
            self._coverage.finish()
        if counts["restored"]:
            say(f"nmt-core decode: {UnknownCounts(int(counts['copied']), int(counts['translated']))}")


def _warn(message: str) -> None:
    say(f"nmt-core decode: warning: {message}")
