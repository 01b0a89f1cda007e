"""From what a user writes on the command line to a neural decoder of n-best lists.

The specs are those of ``smt_bridge.scorers``: model folders, ensembles of them, and running servers. What a branch
needs (PyTorch, gRPC) is imported inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from nmt_core.commands.nbest import nbest_line
from nmt_core.text.processing import RawText
from smt_bridge.scorers import REMOTE, ScorerOptions, model_folders, server_address

FEATURE = "NMT0"


class SearchOptions(NamedTuple):
    """How a neural model searches: ``beam`` hypotheses, the ``nbest`` best of them; ``<unk>`` may be forbidden."""

    beam: int = 12
    nbest: int = 12
    forbid_unknown: bool = True


class LocalDecoder:
    """A model, or an ensemble, in this process; words are a Moses system's, whatever the model reads."""

    def __init__(self, translator: Any) -> None:
        from nmt_core.models.raw_text import shared_preparation

        self._translator = translator
        self._read: Callable[[str], str] = str
        self._write: Callable[[str], str] = str
        preparation = shared_preparation(translator.models)
        if preparation is not None:
            reader = preparation.open_surface("source", translator.source)
            self._read = lambda sentence: reader.read(sentence).text
            self._write = preparation.open_words("target").undo

    def nbest(self, sentences: Sequence[str]) -> list[list[str]]:
        """As ``nmt-core decode --nbest`` writes them; no list for a blank sentence."""
        found = self._translator.translate([self._read(sentence) for sentence in sentences])
        return [
            _lines(number, translations, self._write) if sentence.strip() else []
            for number, (sentence, translations) in enumerate(zip(sentences, found, strict=True))
        ]

    def raw_text(self) -> RawText:
        """Moses' tokeniser and detokeniser for the model's languages."""
        from nmt_core.text.processing import TextProcessor

        return TextProcessor(self._translator.models[0].text)


class RemoteDecoder:
    """A model of a running server."""

    def __init__(self, client: Any, options: SearchOptions) -> None:
        self._client, self._options = client, options

    def nbest(self, sentences: Sequence[str]) -> list[list[str]]:
        """As ``LocalDecoder.nbest``."""
        options = self._options
        asked = {"beam": options.beam, "nbest": options.nbest, "forbid_unknown": options.forbid_unknown}
        found = self._client.translate(sentences, **asked)
        return [
            _lines(number, answer.translations, str) if sentence.strip() else []
            for number, (sentence, answer) in enumerate(zip(sentences, found, strict=True))
        ]


def open_decoder(spec: str, search: SearchOptions, options: ScorerOptions) -> LocalDecoder | RemoteDecoder:
    """The decoder that ``spec`` names; raises as ``open_scorer``."""
    if spec.startswith(REMOTE):
        from nmt_core.serving.client import NmtClient

        address, model = server_address(spec)
        return RemoteDecoder(NmtClient(address, model=model), search)
    folders = model_folders(spec)
    from nmt_core.device import choose_device, choose_dtype
    from nmt_core.inference.search_config import DecodingConfig
    from nmt_core.inference.translator import Translator
    from nmt_core.models.checkpoint import load_model

    device = choose_device(options.device)
    dtype = choose_dtype(options.dtype, device)
    models = [load_model(folder, device=device, dtype=dtype) for folder in folders]
    config = DecodingConfig.from_mapping(search._asdict(), origin="the neural model's search")
    return LocalDecoder(Translator(models, config=config))


def _lines(number: int, translations: Iterable[Any], write: Callable[[str], str]) -> list[str]:
    return [nbest_line(number, write(one.text), f"{FEATURE}= {one.log_prob:.6f}", one.score) for one in translations]
