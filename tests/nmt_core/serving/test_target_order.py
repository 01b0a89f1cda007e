"""A right-to-left model behind the service: text and numbers in the order of the text, as in process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt_core.base.interfaces import SentencePair
from nmt_core.inference.scoring.pair_scorer import open_pair_scorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.translator import open_translator
from nmt_core.serving.client.client import NmtClient, RemotePairScorer
from tests.mirrored_models import make_models, mirrored, turned

SOURCES = ["w1 w2 w3 w4", "w5 w6 w0"]
PAIRS = [SentencePair("w1 w2 w3", target) for target in ("w4 w5 w6", "w7 unseen", "", "w4 w5 w1 w2")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return make_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module", params=[(), ("--candidates", "l2r=9", "--candidates", "r2l=9")])
def server(request: pytest.FixtureRequest, start: Callable[..., Any], folders: dict[str, str]) -> Any:
    options = [argument for name, folder in folders.items() for argument in ("--model", f"{name}={folder}")]
    return start(*options, "--beam", "3", *request.param)


def test_scores(server: Any, folders: dict[str, str]) -> None:
    local = open_pair_scorer([folders["l2r"]])
    remote = RemotePairScorer(server.address, model="r2l")
    assert remote.signature == open_pair_scorer([folders["r2l"]]).signature
    backwards = [SentencePair(source, mirrored(target)) for source, target in PAIRS]
    found = remote.score(PAIRS, per_word=True, attention=True)
    for one, other in zip(found, local.score(backwards, per_word=True, attention=True), strict=True):
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-5)
        assert one.word_log_probs == pytest.approx(turned(other.word_log_probs or ()), abs=1e-5)
        np.testing.assert_allclose(np.array(one.attention), np.array(turned(other.attention or ())), atol=1e-5)


def test_translations(server: Any) -> None:
    found = {}
    for name in ("l2r", "r2l"):
        with NmtClient(server.address, model=name) as client:
            found[name] = [answer.translations[0] for answer in client.translate(SOURCES, with_attention=True)]
    for one, other in zip(found["r2l"], found["l2r"], strict=True):
        assert one.text == mirrored(other.text)
        assert list(one.word_log_probs) == pytest.approx(turned(tuple(other.word_log_probs)), abs=1e-5)
        rows, others = (np.array(each.attention).reshape(len(each.words) + 1, -1) for each in (one, other))
        np.testing.assert_allclose(rows, np.concatenate([others[:-1][::-1], others[-1:]]), atol=1e-5)
        places = {(point.source, len(other.words) - 1 - point.target) for point in other.alignment}
        assert {(point.source, point.target) for point in one.alignment} == places


def test_translations_are_those_of_the_command_line(start: Callable[..., Any], folders: dict[str, str]) -> None:
    server = start("--model", f"m={folders['r2l']}", "--beam", "3")
    config = DecodingConfig(beam=3)
    with NmtClient(server.address) as client:
        answers = client.translate(SOURCES)
        local = open_translator([folders["r2l"]], config=config).translate(SOURCES)
        for answer, (expected,) in zip(answers, local, strict=True):
            assert answer.translations[0].text == expected.text


def test_both_orders_are_no_ensemble(start: Callable[..., Any], folders: dict[str, str], tmp_path: Path) -> None:
    server = start("--model", f"both={folders['l2r']},{folders['r2l']}", ready=False)
    assert server.wait() == 2
    assert any("have no next word in common" in line for line in server.lines)
