"""Models of annotated text, of words with factors and from right to left behind the service: as in process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt_core.base.errors import ServiceError
from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.translator import open_translator
from nmt_core.serving.client.client import NmtClient, RemotePairScorer
from nmt_core.serving.methods.plan import translation_cost
from nmt_core.serving.models.opening import open_served_model
from tests.annotated_models import make_annotated
from tests.mirrored_models import make_models, mirrored, turned
from tests.model_files import open_pair_scorer
from tests.nmt_core.serving.agreement import check_scores, check_translations

ANNOTATED = ["w1 Rot w2 Blau w3", "", "Gelb w7 w1 Blau w2"]
ORDERED = ["w1 w2 w3 w4", "w5 w6 w0"]
FACTORED = ["un|A deux|B", "un|B deux|B", "deux|unseen", ""]
SOURCES = {"posunk": ANNOTATED, "posall": ANNOTATED, "l2r": ORDERED, "r2l": ORDERED, "factors": FACTORED}
PAIRS = {
    "posunk": [SentencePair("w1 Rot w2", target) for target in ("w1 Rouge Deux Neu", "Rot", "")],
    "r2l": [SentencePair("w1 w2 w3", target) for target in ("w4 w5 w6", "w7 unseen", "", "w4 w5 w1 w2")],
    "factors": [SentencePair(source, "one two") for source in FACTORED],
}


def make_factored(place: Path) -> str:
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
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("models")
    annotated = {scheme: make_annotated(place, scheme, scheme)[0] for scheme in ("posunk", "posall")}
    return {**annotated, **make_models(place), "factors": make_factored(place)}


@pytest.fixture(scope="module")
def server(start: Callable[..., Any], folders: dict[str, str]) -> Any:
    """All of them, and those of both orders again with candidate lists."""
    options = [argument for name, folder in folders.items() for argument in ("--model", f"{name}={folder}")]
    for name in ("l2r", "r2l"):
        options += ["--model", f"few-{name}={folders[name]}", "--candidates", f"few-{name}=9"]
    return start(*options, "--beam", "3")


@pytest.mark.parametrize("name", PAIRS)
def test_scores(server: Any, folders: dict[str, str], name: str) -> None:
    remote, local = RemotePairScorer(server.address, model=name), open_pair_scorer([folders[name]])
    assert remote.signature == local.signature
    assert ("|factors:1|" in remote.signature) == (name == "factors")
    options = {"per_word": True, "attention": name == "r2l"}
    check_scores(remote.score(PAIRS[name], **options), local.score(PAIRS[name], **options))


@pytest.mark.parametrize(("name", "replaced"), [*((name, False) for name in SOURCES), ("posunk", True)])
def test_translations(server: Any, folders: dict[str, str], name: str, replaced: bool) -> None:
    expected = open_translator([folders[name]], config=DecodingConfig(beam=3)).translate(SOURCES[name])
    with NmtClient(server.address, model=name) as client:
        check_translations(client.translate(SOURCES[name], replace_unknown=replaced), expected)


@pytest.mark.parametrize("few", ["", "few-"])
def test_attention_is_in_the_order_of_the_text(server: Any, few: str) -> None:
    found = {}
    for name in ("l2r", "r2l"):
        with NmtClient(server.address, model=few + name) as client:
            found[name] = [answer.translations[0] for answer in client.translate(ORDERED, with_attention=True)]
    for one, other in zip(found["r2l"], found["l2r"], strict=True):
        assert one.text == mirrored(other.text)
        assert list(one.word_log_probs) == pytest.approx(turned(tuple(other.word_log_probs)), abs=1e-5)
        rows, others = (np.array(each.attention).reshape(len(each.words) + 1, -1) for each in (one, other))
        np.testing.assert_allclose(rows, np.concatenate([others[:-1][::-1], others[-1:]]), atol=1e-5)
        places = {(point.source, len(other.words) - 1 - point.target) for point in other.alignment}
        assert {(point.source, point.target) for point in one.alignment} == places


def test_both_tokens_of_a_word_are_counted_as_steps(folders: dict[str, str]) -> None:
    config = DecodingConfig(beam=3, max_length_ratio=1.0, max_length_extra=2)
    for name, longest in (("posunk", 7), ("posall", 14)):
        model = open_served_model([folders[name]], config, device="cpu", dtype="float32")
        assert translation_cost([(5, 20)], config, model.proportions).steps == 3 * (longest + 1)


def test_what_these_models_cannot_do_is_said(server: Any, folders: dict[str, str]) -> None:
    with pytest.raises(ServiceError, match="without its word alignment"):
        RemotePairScorer(server.address, model="posall").score(PAIRS["posunk"])
    with NmtClient(server.address, model="posunk") as client, pytest.raises(ServiceError, match="forbid_unknown"):
        client.translate(ANNOTATED, forbid_unknown=True)
    with NmtClient(server.address, model="factors") as client:
        with pytest.raises(ServiceError, match="reads words with factors"):
            client.translate(["un"], raw=True)
        assert len(client.encode(FACTORED[:2])) == 2


def test_a_text_without_the_factors_is_an_error_of_its_item(server: Any) -> None:
    with NmtClient(server.address, model="factors") as client:
        good, bad = client.translate(["un|A", "un|A deux"])
        assert good.translations and not good.HasField("error")
        assert bad.error.reason == "WRONG_FACTORS"
        assert bad.error.message == "the word 'deux' has 1 factor; the model reads 2, written word|factor"
        good, bad = client.score([("un|A", "one"), ("un|A|B", "one")])
        assert not good.HasField("error")
        assert bad.error.reason == "WRONG_FACTORS"


def test_both_orders_are_no_ensemble(folders: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--model", f"both={folders['l2r']},{folders['r2l']}", "--port", "0"]) == 2
    assert "have no next word in common" in capsys.readouterr().err
