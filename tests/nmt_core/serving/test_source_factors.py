"""A model of words with factors behind the service: texts of requests carry them, and others are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main
from nmt_core.inference.scoring.pair_scorer import open_pair_scorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.translator import open_translator
from nmt_core.serving.client.client import NmtClient, RemotePairScorer, ServiceError
from tests.nmt_core.serving.agreement import check_scores, check_translations

SOURCES = ["un|A deux|B", "un|B deux|B", "deux|unseen", ""]
PAIRS = [SentencePair(source, "one two") for source in SOURCES]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("factored")
    for name, words in (("s", "un deux"), ("t", "one two"), ("f", "A B")):
        (place / name).write_text("\n".join(["</s>", "<unk>", *words.split(), ""]))
    vocabularies = ["--source-vocab", str(place / "s"), "--target-vocab", str(place / "t")]
    sizes = ["hidden=8", "embedding=4", "maxout=4", "initialisation=glorot", "source_factors=[3]"]
    settings = [argument for size in sizes for argument in ("--set", f"model.{size}")]
    arguments = ["init", str(place / "m"), "--preset", "rnnencdec", *vocabularies, *settings]
    assert main([*arguments, "--factor-vocab", str(place / "f"), "--factor-vocab", str(place / "f")]) == 2
    assert main([*arguments, "--factor-vocab", str(place / "f")]) == 0
    return str(place / "m")


@pytest.fixture(scope="module")
def server(start: Callable[..., Any], model: str) -> Any:
    return start("--model", f"m={model}", "--beam", "3")


def test_the_service_says_what_the_model_says(server: Any, model: str) -> None:
    remote, local = RemotePairScorer(server.address), open_pair_scorer([model])
    assert remote.signature == local.signature
    assert "|factors:1|" in remote.signature
    check_scores(remote.score(PAIRS), local.score(PAIRS))
    with NmtClient(server.address) as client:
        found, vectors = list(client.translate(SOURCES)), client.encode(SOURCES[:2])
    check_translations(found, open_translator([model], config=DecodingConfig(beam=3)).translate(SOURCES))
    assert len(vectors) == 2


def test_a_text_without_the_factors_is_an_error_of_its_item(server: Any) -> None:
    with NmtClient(server.address) as client:
        good, bad = client.translate(["un|A", "un|A deux"])
        assert good.translations and not good.HasField("error")
        assert bad.error.reason == "WRONG_FACTORS"
        assert bad.error.message == "the word 'deux' has 1 factor; the model reads 2, written word|factor"
        good, bad = client.score([("un|A", "one"), ("un|A|B", "one")])
        assert not good.HasField("error")
        assert bad.error.reason == "WRONG_FACTORS"
        with pytest.raises(ServiceError, match="reads words with factors"):
            client.translate(["un"], raw=True)
