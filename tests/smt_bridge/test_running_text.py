"""Running text is prepared by the preparation that a recipe names, whatever its steps are."""

from __future__ import annotations

from nmt_core.preparation.bundled import BundledPreprocessor
from nmt_core.preparation.settings import PreparationConfig
from smt_bridge.running_text import open_running_text


def test_a_preparation_without_a_tokeniser_is_used() -> None:
    settings = {"source_language": "en", "target_language": "fr", "tokenization": None}
    preparation = BundledPreprocessor.of_corpus(PreparationConfig.from_mapping(settings, origin="p"), {}, ["en", "fr"])
    text = open_running_text(preparation, [], None)
    assert text.tokenize("A house.") == "A house." and text.detokenize("Une maison .") == "Une maison ."
