"""What ``nmt-core decode`` says of its input on standard error: words that models do not know, and those replaced."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from typing import Any

from nmt_core.inference.commands.translator import warn
from nmt_core.inference.commands.unknown_words import report_unknowns
from nmt_core.inference.output.lm import CoverageWarning
from nmt_core.text.unknown_share import UnknownShare


class Notices:
    """Adds up what the windows of a text have, and warns once as soon as there is reason to."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._total: Counter[str] = Counter()
        self._coverage = CoverageWarning(args.lm, warn) if args.lm else None
        self._share: Any = None

    def add(self, counts: Mapping[str, float]) -> None:
        """Take note of a window, counted by ``DecodeWorker``."""
        self._total.update({name: int(count) for name, count in counts.items()})
        if self._share is None:
            hint = "" if self._args.raw else "Raw text needs --raw"
            name, usual = " + ".join(self._args.model), counts["usual"] or None
            self._share = UnknownShare(name, warn, hint=hint, serve=counts["serve"] > 0, usual=usual)
        self._share.add(words=int(counts["words"]), unknown=int(counts["unknown"]))
        if self._coverage is not None:
            self._coverage.add(int(counts["lm_words"]), int(counts["lm_unknown"]))

    def finish(self, *_: object) -> None:
        """Say what is left to say when all windows were added."""
        if self._share is None:
            return
        self._share.finish()
        if self._coverage is not None:
            self._coverage.finish()
        total = self._total
        report_unknowns(copied=total["copied"], translated=total["translated"], asked=total["restored"] > 0)
