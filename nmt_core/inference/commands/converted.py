"""``nmt-core decode`` and ``score`` with a model in CTranslate2. ``arguments`` says what such a model cannot do."""

from __future__ import annotations

import argparse
import functools

from nmt_core.base.errors import InputError, ModelError
from nmt_core.base.interfaces import SentencePair
from nmt_core.base.messages import counted
from nmt_core.ct2 import CT2
from nmt_core.ct2.model import Ct2Model
from nmt_core.inference.commands.options import TranslatorOptions
from nmt_core.inference.commands.output_lines import open_writers, written_lines
from nmt_core.inference.commands.source_lines import LineWindow
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.jobs.outputs import Result


def open_converted(args: argparse.Namespace, *, device: str, threads: int = 0) -> Ct2Model:
    """The model of ``--model ct2:DIR``. Raises ConfigError and ModelError."""
    return Ct2Model(args.model.removeprefix(CT2), device=device, compute_type=args.dtype, threads=threads)


class ConvertedWorker:
    """Translates windows, as ``DecodeWorker``. A line without words has the empty translation."""

    def __init__(self, args: argparse.Namespace, options: TranslatorOptions, *, threads: int) -> None:
        assert isinstance(options.config, DecodingConfig)  # samples are not for such a model
        self._input, self._nbest, self._search = args.input, args.nbest, options.config
        self._writers = open_writers(args, many=args.nbest > 1)
        self._writes_scores = args.scores or args.nbest > 1
        self._model = open_converted(args, device=options.device, threads=threads)
        self.description = {"translator": self._model.signature}

    def __call__(self, window: LineWindow) -> Result:
        """The lines of its translations."""
        texts = [line.text for line in window.lines]
        beam, forbid_unknown = self._search.beam, self._search.forbid_unknown
        try:
            lists = self._model.nbest(texts, beam=beam, nbest=self._nbest, forbid_unknown=forbid_unknown)
            found = [
                [_translation(source, one.text, one.log_prob) for one in listed]
                or [_translation(source, "", self._log_prob_of_nothing)]
                for source, listed in zip(texts, lists, strict=True)
            ]
        except (InputError, ModelError) as error:  # which of the texts, the library does not say
            where = f"in {counted(len(texts), 'line')} from here"
            raise InputError(self._input, f"{where}: {error}", line=window.first) from error
        return Result(written_lines(self._writers, found, first=window.first - 1), {})

    @functools.cached_property
    def _log_prob_of_nothing(self) -> float:
        """Of the empty translation of a line without words, where it is written: not all models have this number."""
        return self._model.score([SentencePair("", "")])[0].log_prob if self._writes_scores else 0.0


def _translation(source: str, text: str, log_prob: float) -> Translation:
    return Translation(text, tuple(text.split(" ")), log_prob, log_prob, (), tuple(source.split(" ")))
