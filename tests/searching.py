"""Searches and translators as most tests need them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nmt_core.batches.padding import Padded
from nmt_core.inference.search.beam import BeamSearch, search_all
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.predictor import Predictor
from nmt_core.inference.search.requests import Finished, Hypothesis, Request, checked
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import load_models
from nmt_core.text.sentence import Sentence


def beam_search(
    predictor: Predictor, source: Padded, *, config: DecodingConfig, attention: bool = False
) -> list[list[Hypothesis]]:
    """The best hypotheses of every source, all in one search."""
    ids = [words[:length] for words, length in zip(source.words_BL.tolist(), source.lengths, strict=True)]
    requests = [Request(number, Sentence(sentence), config) for number, sentence in enumerate(ids)]
    return [list(checked(done)) for done in found_by(predictor, requests, attention=attention)]


def found_by(
    predictor: Predictor, requests: Sequence[Request[int]], *, attention: bool = False, batch_tokens: int = 10**6
) -> list[Finished[int]]:
    """What one search finds for each request."""
    search = BeamSearch[int](predictor, attention=attention)
    found = {done.request.key: done for done in search_all(search, requests, batch_tokens=batch_tokens)}
    return [found[request.key] for request in requests]


def open_translator(folders: Sequence[str], **options: Any) -> Translator:
    """The translator of models in directories, on the CPU and in float32."""
    return Translator(load_models(folders, device="cpu", dtype="float32"), **options)
