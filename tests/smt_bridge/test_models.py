"""Threads, defaults and lists of neural models, without a model."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from nmt_core.base.errors import ConfigError
from smt_bridge import models
from smt_bridge.models import ModelOptions, SearchOptions
from smt_bridge.nbest.entry import NbestEntry
from tests.fakes import LengthPairScorer


def test_one_thread_meanwhile() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with suppress(KeyError), models.one_thread():
            assert torch.get_num_threads() == 1
            raise KeyError
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_defaults() -> None:
    assert tuple(ModelOptions()) == ("auto", "float32", "full", 0)
    assert SearchOptions()._asdict() == {"beam": 12, "nbest": 12, "forbid_unknown": True}


def test_entries_of_a_list_have_six_decimals_and_no_separator() -> None:
    one = SimpleNamespace(text=" a ||| b ", log_prob=-1.23456789, score=-0.98765432)
    expected = NbestEntry(3, b"a &#124;&#124;&#124; b", {"NMT0": (-1.234568,)}, -0.987654, 1)
    assert models.nbest_entries(3, [one, one], str) == [expected, expected._replace(line=2)]
    assert models._lists(["x", " "], [[one], [one]], str) == [
        [expected._replace(sentence=0)],
        [],
    ]  # a blank one has none


def test_a_model_elsewhere_does_not_know_the_languages() -> None:
    scorer: Any = LengthPairScorer()
    with pytest.raises(ConfigError) as caught:
        models._Elsewhere(scorer, None).own_text()
    problem = "--raw needs --preparation, or a model that is no server's, which has the languages"
    assert str(caught.value) == problem
