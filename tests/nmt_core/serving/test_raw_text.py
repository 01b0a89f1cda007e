"""Raw text and surface words through a server: the numbers and bytes of the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main
from nmt_core.serving.client.client import NmtClient, RemotePairScorer
from nmt_core.v1 import nmt_pb2 as pb
from smt_bridge.models import open_model
from tests.nmt_core.serving.agreement import check_scores
from tests.prepared_models import KINDS, NEW, make_model, pipe

PAIRS = [
    SentencePair("the plan &apos;s good .", "der Aktionsplan ist gut ."),
    SentencePair("men see dogs", "Hunde"),
    SentencePair("men see dogs", ""),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: make_model(tmp_path_factory.mktemp(kind), KINDS[kind]) for kind in ("bpe", "truecased")}


@pytest.fixture(scope="module")
def prepared(start: Callable[..., Any], models: dict[str, Path]) -> Any:
    options = [argument for kind, folder in models.items() for argument in ("--model", f"{kind}={folder}")]
    return start(*options, "--beam", "3")


@pytest.mark.parametrize("kind", ["bpe", "truecased"])
def test_raw_text_is_translated_as_by_the_command_line(
    prepared: Any, models: dict[str, Path], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = ["decode", "--model", str(models[kind]), "--beam", "3", "--raw", "--quiet"]
    by_hand = pipe(decode, NEW, monkeypatch)
    client = ["client", "translate", "--address", prepared.address, "--model", kind, "--raw"]
    assert pipe(client, NEW, monkeypatch) == by_hand
    with NmtClient(prepared.address, model=kind) as direct:
        assert [found.translations[0].text for found in direct.translate(NEW, raw=True)] == by_hand


@pytest.mark.parametrize("kind", ["bpe", "truecased"])
def test_surface_words_are_scored_as_in_process(prepared: Any, models: dict[str, Path], kind: str) -> None:
    local, remote = open_model(str(models[kind])), RemotePairScorer(prepared.address, model=kind)
    assert remote.signature == local.signature
    assert "|tok:" in local.signature
    ours = local.score(PAIRS, per_word=True, attention=True)
    theirs = remote.score(PAIRS, per_word=True, attention=True)
    check_scores(theirs, ours)
    for pair, one in zip(PAIRS, ours, strict=True):
        assert len(one.word_log_probs or ()) == len(pair.target.split()) + 1
        assert all(len(row) == len(pair.source.split()) + 1 for row in one.attention or ())
    remote.close()


def test_client_scores_every_form(
    prepared: Any, models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s").write_text("The plan\u2019s good.\n")
    (tmp_path / "t").write_text("Der Aktionsplan ist gut.\n")
    texts = [str(tmp_path / "s"), str(tmp_path / "t")]
    for form in ("--raw", "--surface"):
        address = ["--address", prepared.address, "--model", "bpe"]
        (there,) = pipe(["client", "score", *address, form, *texts], [], monkeypatch)
        (here,) = pipe(["score", "--model", str(models["bpe"]), "--quiet", form, *texts], [], monkeypatch)
        assert float(there) == pytest.approx(float(here), abs=1e-5)


def test_a_form_that_there_is_not_is_refused(prepared: Any) -> None:
    from nmt_core.base.errors import NmtError

    with NmtClient(prepared.address, model="bpe") as client, pytest.raises(NmtError, match="no form of text 9"):
        list(client.score([("a", "b")], form=9))


def test_lists_are_ranked_by_surface_words(prepared: Any, models: dict[str, Path]) -> None:
    hypotheses = [pb.Hypothesis(target=target) for target in ("der Aktionsplan", "Hunde sehen")]
    with NmtClient(prepared.address, model="bpe") as client:
        (ranking,) = client.rerank(
            [pb.NbestList(source="the plan", hypotheses=hypotheses)], model_weight=1.0, form=pb.TEXT_FORM_SURFACE
        )
    expected = open_model(str(models["bpe"])).score([SentencePair("the plan", one.target) for one in hypotheses])
    found = {one.position: one.log_prob for one in ranking.hypotheses}
    for position, score in enumerate(expected):
        assert found[position] == pytest.approx(score.log_prob, abs=1e-5)


def test_labels_of_lists_are_those_of_decode(prepared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client = ["client", "translate", "--address", prepared.address, "--model", "truecased", "--nbest", "2"]
    assert all(" ||| NMT0= -" in line for line in pipe(client, ["the man"], monkeypatch))
    assert all(" ||| X= -" in line for line in pipe([*client, "--feature-name", "X"], ["the man"], monkeypatch))
    with pytest.raises(SystemExit, match="2"):
        main([*client, "--feature-name", "a b", "/dev/null"])
