"""Lines in, translations out."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch

from nmt_core.base.errors import ConfigError, ModelError
from nmt_core.base.interfaces import NgramGuidance
from nmt_core.inference.lines import LineRequests, PhraseConstraint, SourceLine
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.text.copying import CopyScheme
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary

Load = Callable[..., LoadedModel]
LINES = ["a group of men", "", "men", "  ", "men of a group of men &apos;s group", "something\u00a0unknown of", "of a"]


@pytest.mark.parametrize("kind", ["rnnsearch", "rnnencdec"])
@pytest.mark.parametrize("config", [DecodingConfig(beam=4, nbest=3), SamplingConfig(samples=3)])
def test_batches_do_not_matter(load_tiny: Load, kind: str, config: DecodingConfig | SamplingConfig) -> None:
    model = load_tiny(kind)
    expected = Translator([model], config=config).translate(LINES)
    small = Translator([model], config=config, batch_tokens=1)
    parts = [found for first in (0, 2, 4, 6) for found in small.translate(LINES[first : first + 2], first=first)]
    for one, other in zip(expected, parts, strict=True):
        assert [t.words for t in one] == [t.words for t in other]
        assert [t.log_prob for t in one] == pytest.approx([t.log_prob for t in other], abs=1e-9)


@pytest.mark.parametrize("config", [DecodingConfig(), SamplingConfig(samples=3)])
def test_numbers_that_are_none_are_reported(load_tiny: Load, config: DecodingConfig | SamplingConfig) -> None:
    loaded = load_tiny("rnnsearch")
    model = copy.deepcopy(loaded.model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(torch.nan)
    with pytest.raises(ModelError, match="not numbers"):
        Translator([dataclasses.replace(loaded, model=model)], config=config).translate(LINES)


UN, NOTHING = (PhraseConstraint(("un un",)),), NgramGuidance({}, 1.0, (1.0,))
SHORT = DecodingConfig(max_length_extra=1, max_length_ratio=0)


@pytest.mark.parametrize(
    ("line", "config", "copying", "problem"),
    [
        (SourceLine("", UN), None, None, "has constraints, but no words to translate"),
        (SourceLine("a", (PhraseConstraint(("un", " ")),)), None, None, "a constraint without words"),
        (SourceLine("a", UN), SHORT, None, "constraints need 2 words; a translation may have 1 (see max_length_ratio)"),
        (SourceLine("a", UN), None, CopyScheme.POSALL, "folder-3 (copying: posall) takes no constraints"),
        (SourceLine("a", UN), SamplingConfig(), None, "constraints and guidance are for search, not for sampling"),
        (SourceLine("a", (), NOTHING), None, None, "guidance is for search among all words, not among candidates"),
    ],
)
def test_what_a_line_cannot_have_is_named(
    load_tiny: Load, line: SourceLine, config: Any, copying: CopyScheme | None, problem: str
) -> None:
    model = load_tiny("rnnsearch")
    model = dataclasses.replace(model, config=model.config.model_copy(update={"copying": copying}))
    with pytest.raises(ConfigError) as caught:
        LineRequests(config or DecodingConfig(), model, candidates=True).make(4, line)
    assert str(caught.value) == f"line 5: {problem}"


def test_ensembles_need_one_target_vocabulary(load_tiny: Load) -> None:
    one = load_tiny("rnnsearch")
    other = dataclasses.replace(one, target=Vocabulary([*SPECIAL_WORDS, "x"]), folder="elsewhere")
    remedy = "have different target vocabularies; train the models of an ensemble with one target vocabulary$"
    with pytest.raises(ConfigError, match=f"^{one.folder} and elsewhere {remedy}"):
        Translator([one, other])
