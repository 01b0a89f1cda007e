"""``nmt-core decode`` with a Transformer of another program.

``arguments`` says what such a model cannot do.
"""

from __future__ import annotations

import argparse

from nmt_core.base.errors import InputError
from nmt_core.base.messages import counted
from nmt_core.inference.commands.options import TranslatorOptions
from nmt_core.inference.commands.output_lines import open_writers, written_lines
from nmt_core.inference.commands.source_lines import LineWindow
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.transformer import TransformerTranslator
from nmt_core.jobs.outputs import Result
from nmt_core.transformer.model import open_transformer


class TransformerWorker:
    """Translates windows, as ``DecodeWorker``."""

    def __init__(self, args: argparse.Namespace, options: TranslatorOptions, *, threads: int) -> None:
        assert isinstance(options.config, DecodingConfig)  # samples are not for such a model
        self._args, self._config = args, options.config
        self._writers = open_writers(args, many=args.nbest > 1)
        model = open_transformer(args.model, device=options.device, dtype=args.dtype, threads=threads)
        self._translator = TransformerTranslator(model, scores=args.scores or args.nbest > 1)
        self.description = {"translator": model.signature}

    def __call__(self, window: LineWindow) -> Result:
        """The lines of its translations."""
        texts = [line.text for line in window.lines]
        try:
            found = self._translator.translate(texts, self._config, raw=self._args.raw)
        except InputError as error:  # which of the texts, the library does not say
            where = f"in {counted(len(texts), 'line')} from here"
            raise InputError(self._args.input, f"{where}: {error}", line=window.first) from error
        return Result(written_lines(self._writers, found, first=window.first - 1), {})
