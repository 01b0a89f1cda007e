"""Models of annotated text behind the service: words of the text and scores of plain pairs, as in process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt_core.base.errors import ServiceError
from nmt_core.base.interfaces import SentencePair
from nmt_core.inference.scoring.pair_scorer import open_pair_scorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.translator import open_translator
from nmt_core.serving.client.client import NmtClient, RemotePairScorer
from nmt_core.serving.methods.plan import translation_cost
from nmt_core.serving.models.opening import open_served_model
from tests.annotated_models import make_annotated
from tests.nmt_core.serving.agreement import check_scores, check_translations

SOURCES = ["w1 Rot w2 Blau w3", "", "Gelb w7 w1 Blau w2"]
PAIRS = [SentencePair("w1 Rot w2", target) for target in ("w1 Rouge Deux Neu", "Rot", "")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place: Path = tmp_path_factory.mktemp("models")
    return {scheme: make_annotated(place, scheme, scheme)[0] for scheme in ("posunk", "posall")}


@pytest.fixture(scope="module")
def server(start: Callable[..., Any], folders: dict[str, str]) -> Any:
    options = [argument for name, folder in folders.items() for argument in ("--model", f"{name}={folder}")]
    return start(*options, "--beam", "3")


@pytest.mark.parametrize("replaced", [False, True])
def test_translations(server: Any, folders: dict[str, str], replaced: bool) -> None:
    for name, folder in folders.items():
        own = open_translator([folder], config=DecodingConfig(beam=3)).translate(SOURCES)
        with NmtClient(server.address, model=name) as client:
            answers = list(client.translate(SOURCES, replace_unknown=replaced))
        check_translations(answers, own)


def test_scores(server: Any, folders: dict[str, str]) -> None:
    remote, local = RemotePairScorer(server.address, model="posunk"), open_pair_scorer([folders["posunk"]])
    assert remote.signature == local.signature
    check_scores(remote.score(PAIRS, per_word=True), local.score(PAIRS, per_word=True))


def test_both_tokens_of_a_word_are_counted_as_steps(folders: dict[str, str]) -> None:
    config = DecodingConfig(beam=3, max_length_ratio=1.0, max_length_extra=2)
    for name, longest in (("posunk", 7), ("posall", 14)):
        model = open_served_model([folders[name]], config, device="cpu", dtype="float32")
        assert translation_cost([(5, 20)], config, model.proportions).steps == 3 * (longest + 1)


def test_what_these_models_cannot_do_is_said(server: Any) -> None:
    with pytest.raises(ServiceError, match="without its word alignment"):
        RemotePairScorer(server.address, model="posall").score(PAIRS)
    with NmtClient(server.address, model="posunk") as client, pytest.raises(ServiceError, match="forbid_unknown"):
        client.translate(SOURCES, forbid_unknown=True)
