"""The type of ``--feature NAME[:ARGUMENT]``: which features read a file that no output may replace."""

from __future__ import annotations

from nmt_core.files import InputBehind, InputFile

_WITHOUT_FILE = ("mbrbleu", "mbrchrf")  # whose argument is a kind of weights


class FeatureSpec(InputBehind):
    """``kenlm:FILE``, ``mbrbleu:posterior``, ``wordcount``; ``file`` is also the folder of a model."""

    separator = ":"

    @property
    def file(self) -> InputFile | None:
        """The file, None where the feature takes none."""
        return None if self.partition(":")[0] in _WITHOUT_FILE else super().file
