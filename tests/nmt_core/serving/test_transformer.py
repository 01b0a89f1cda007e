"""A Transformer in CTranslate2 behind a server: the numbers of the model in-process, and other models beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.client.client import NmtClient, RemotePairScorer
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.score import score
from nmt_core.serving.methods.translate import translate
from nmt_core.serving.models.device import Route
from nmt_core.serving.models.opening import CandidateChoice, open_served_model
from nmt_core.serving.models.served import Key
from nmt_core.transformer.ct2 import Ct2Model
from nmt_core.v1 import nmt_pb2 as pb
from tests.nmt_core.serving.conftest import ServerThread
from tests.nmt_core.serving.support import refusal_of
from tests.numpy_transformer import NumpyTransformer

pytest.importorskip("ctranslate2")
WORDS = ["the", "old", "woman", ".", "la", "vieille", "femme"]
SOURCES = ["the old woman", "woman", "", "old old the strange", "the"]
TARGETS = ["la vieille femme", "femme la", "", "vieille", ""]
LONG = "old " * 90


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(NumpyTransformer(WORDS).write(tmp_path_factory.mktemp("ct2") / "words-en-fr"))


@pytest.fixture(scope="module")
def model(folder: str) -> Ct2Model:
    return Ct2Model(folder, threads=1)


@pytest.fixture(scope="module")
def server(start_here: Callable[..., ServerThread], folder: str, models: Path) -> ServerThread:
    return start_here("--model", f"t=ct2:{folder}", "--model", f"m={models}/search")


@pytest.fixture(scope="module")
def client(server: ServerThread) -> NmtClient:
    return NmtClient(server.address, model="t")


def test_lists_and_scores_are_the_model_s(client: NmtClient, model: Ct2Model, server: ServerThread) -> None:
    answers = client.translate(SOURCES, beam=4, nbest=3, forbid_unknown=True)
    expected = model.nbest(SOURCES, beam=4, nbest=3, forbid_unknown=True)
    nothing = model.score([SentencePair("", "")])[0].log_prob
    for answer, listed in zip(answers, expected, strict=True):
        assert [one.text for one in answer.translations] == ([one.text for one in listed] or [""])
        numbers = [one.log_prob for one in listed] or [nothing]
        assert [one.log_prob for one in answer.translations] == pytest.approx(numbers, rel=1e-6)
    pairs = [SentencePair(*pair) for pair in zip(SOURCES, TARGETS, strict=True)]
    remote = RemotePairScorer(server.address, model="t")
    found = remote.score(pairs)
    assert [one.log_prob for one in found] == pytest.approx([one.log_prob for one in model.score(pairs)], abs=1e-5)
    assert [one.unknown_source for one in found] == [one.unknown_source for one in model.score(pairs)]
    assert remote.signature == model.signature


def test_raw_text_is_that_of_the_commands(
    client: NmtClient, server: ServerThread, folder: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, target, output = tmp_path / "source", tmp_path / "target", tmp_path / "output"
    source.write_text("the old woman.\nthe woman\n")
    target.write_text("la vieille femme.\nla\n")
    named = ["--model", f"ct2:{folder}", "--raw"]
    assert main(["decode", *named, "--input", str(source), "--output", str(output), "--quiet"]) == 0
    texts = source.read_text().splitlines()
    assert [one.translations[0].text for one in client.translate(texts, raw=True)] == output.read_text().splitlines()
    assert client.translate(texts, raw=True)[0].translations[0].source_words == ["the", "old", "woman", "."]
    capfd.readouterr()
    assert main(["score", *named, str(source), str(target)]) == 0
    pairs = [pb.Pair(source=one, target=two) for one, two in zip(texts, target.read_text().splitlines(), strict=True)]
    answer = server.stub.Score(pb.ScoreRequest(model="t", pairs=pairs, form=pb.TEXT_FORM_RAW))
    expected = [float(line) for line in capfd.readouterr().out.splitlines()]
    assert [one.log_prob for one in answer.scores] == pytest.approx(expected, abs=1e-5)


def test_a_text_that_the_model_does_not_take_is_an_error_of_its_own(server: ServerThread) -> None:
    answer = server.stub.Translate(pb.TranslateRequest(model="t", texts=["the", LONG, "woman"]))
    assert [one.error.reason for one in answer.sentences] == ["", "TEXT_TOO_LONG", ""]
    assert "the model does not take" in answer.sentences[1].error.message
    pairs = [pb.Pair(source=text, target="la") for text in ("the", LONG, "woman")]
    scores = server.stub.Score(pb.ScoreRequest(model="t", pairs=pairs)).scores
    assert [one.error.reason for one in scores] == ["", "TEXT_TOO_LONG", ""]


def test_few_sentences_are_interactive_and_more_are_bulk(folder: str) -> None:
    served = open_served_model([f"ct2:{folder}"], DecodingConfig(), device="cpu", dtype="float32")
    for texts, expected in ((SOURCES, "interactive"), (SOURCES * 7, "bulk")):
        plan = translate(pb.TranslateRequest(texts=texts), Route("t", served), Limits())
        assert [*plan.parts] == [expected]


def test_what_would_take_long_without_a_pause_is_an_error_of_its_own(folder: str) -> None:
    served = open_served_model([f"ct2:{folder}"], DecodingConfig(), device="cpu", dtype="float32")
    route, text = Route("t", served), "the old woman " * 30
    texts = pb.TranslateRequest(texts=["the", text], beam=12)
    pairs = pb.ScoreRequest(pairs=[pb.Pair(source="the", target="la"), pb.Pair(source=text * 4, target=text * 4)])

    def reasons() -> list[list[str]]:
        plans = translate(texts, route, Limits()), score(pairs, route, Limits())
        return [[getattr(one, "reason", "") for one in plan.items] for plan in plans]

    assert reasons() == [["", ""], ["", ""]]  # nothing is known of its speed
    served.warm_up()
    assert reasons() == [["", ""], ["", ""]]
    for _ in range(20):
        served.speed.note(100, 1.0)
    assert reasons() == [["", "TOO_COSTLY"], ["", "TOO_COSTLY"]]  # 11 s and 7 s
    assert translate(pb.TranslateRequest(texts=[text], beam=4), route, Limits()).parts


def test_options_that_its_search_does_not_have_are_rejected(server: ServerThread, folder: str) -> None:
    request = pb.TranslateRequest(model="t", texts=["the"], length_normalization=0.5)
    assert refusal_of(lambda: server.stub.Translate(request))[1] == "NOT_SUPPORTED"
    with pytest.raises(ConfigError, match="--lexicon and --candidates are for models of nmt-core"):
        open_served_model(
            [f"ct2:{folder}"], DecodingConfig(), device="cpu", dtype="float32", candidates=CandidateChoice(3)
        )


def test_the_shortest_sentence_fills_the_room(tmp_path: Path) -> None:
    folder = NumpyTransformer(["the"]).write(tmp_path / "model")
    served = open_served_model([f"ct2:{folder}"], DecodingConfig(), device="cpu", dtype="float32")
    ((item,),) = translate(pb.TranslateRequest(texts=["the"]), Route("t", served), Limits()).parts.values()
    assert served.work(Key(served, "translate")).room(3600.0) < item.tokens
