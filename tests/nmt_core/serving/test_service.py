"""A real server in its own process: the numbers are those of the models in-process."""

from __future__ import annotations

import argparse
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from nmt_core.base.errors import ServiceError
from nmt_core.base.interfaces import SentencePair
from nmt_core.batches.padding import pad
from nmt_core.commands import serve
from nmt_core.commands.main import main
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.model_directory.loaded_model import load_model
from nmt_core.serving.client.client import NmtClient, RemotePairScorer
from nmt_core.serving.limits import Limits
from nmt_core.serving.loading import model_loader
from nmt_core.v1 import nmt_pb2 as pb
from tests.model_files import open_pair_scorer
from tests.nmt_core.serving.agreement import check_scores, check_translations
from tests.searching import open_translator

PAIRS = [SentencePair("un deux", "one two"), SentencePair("deux", ""), SentencePair("zéro un", "one né one")]


@pytest.fixture(scope="module")
def client(server) -> NmtClient:
    return NmtClient(server.address)


def test_scores_are_those_of_the_model_in_process(server, folder: str) -> None:
    remote = RemotePairScorer(server.address)
    local = open_pair_scorer([folder])
    assert remote.signature == local.signature
    options = {"per_word": True, "attention": True}
    check_scores(remote.score(PAIRS, **options), local.score(PAIRS, **options))
    assert [(score.unknown_source, score.unknown_target) for score in remote.score(PAIRS)] == [(0, 0), (0, 0), (1, 1)]
    assert remote.score(PAIRS)[0].word_log_probs is None
    assert remote.score(PAIRS)[0].attention is None
    assert remote.score([]) == []


def test_two_names_of_one_folder_are_one_model(folder: str) -> None:
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    args = parser.parse_args(["--model", f"stable={folder}", "--model", f"7={folder}", "--device", "cpu"])
    models = model_loader(args, "cpu", None, Limits())()
    assert list(models) == ["stable", "7"]
    assert models["stable"] is models["7"]


def test_a_model_that_a_plugin_names_is_not_loaded_again(folder: str) -> None:
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    args = parser.parse_args(["--model", f"m={folder}", "--device", "cpu"])

    plugin = SimpleNamespace(names=["hybrid"], load=lambda open_model: {"hybrid": open_model([folder])})
    models = model_loader(args, "cpu", plugin, Limits())()
    assert models["hybrid"] is models["m"]


def test_groups_are_answered_as_their_pairs(client: NmtClient) -> None:
    targets = ["one", "", "two one two"]
    groups = [pb.SourceGroup(source="un deux", targets=targets), pb.SourceGroup(source="un")]
    request = pb.ScoreRequest(pairs=[pb.Pair(source="deux", target="two")], groups=groups)
    response = client.call("Score", request)
    expected = client.score([("un deux", target) for target in targets])
    assert len(response.scores) == 1
    assert [len(group.scores) for group in response.groups] == [3, 0]
    found = [score.log_prob for score in response.groups[0].scores]
    assert found == pytest.approx([score.log_prob for score in expected], abs=1e-5)


def test_many_pairs_come_back_in_order(server, folder: str) -> None:
    pairs = [SentencePair("un " * (1 + i % 3) + "deux", "two " * (i % 5) + "one") for i in range(7000)]
    found = RemotePairScorer(server.address, model="m").score(pairs)
    expected = open_pair_scorer([folder]).score(pairs)
    assert [score.log_prob for score in found] == pytest.approx([score.log_prob for score in expected], abs=1e-5)


def test_translations_are_those_of_the_model_in_process(client: NmtClient, folder: str) -> None:
    texts = ["un deux", "", "deux deux un"]
    found = client.translate(texts, nbest=3, with_attention=True, forbid_unknown=True)
    config = DecodingConfig(beam=4, nbest=3, forbid_unknown=True)
    expected = open_translator([folder], config=config, attention=True).translate(texts)
    check_translations(found, expected)
    for sentence, nbest in zip(found, expected, strict=True):
        for one, goal in zip(sentence.translations, nbest, strict=True):
            if goal.attention is not None:
                assert list(one.attention) == pytest.approx(goal.attention.ravel().tolist(), abs=1e-5)
                assert [point.target for point in one.alignment] == list(range(len(one.words)))
    assert not client.translate(texts)[0].translations[0].attention


def test_unknown_words_are_replaced_where_asked_for(client: NmtClient) -> None:
    options = {"nbest": 4, "beam": 4, "with_attention": True}
    plain = client.translate(["zéro né"], **options)[0].translations
    replaced = client.translate(["zéro né"], replace_unknown=True, **options)[0].translations
    assert any("<unk>" in one.text for one in plain)
    for one, before in zip(replaced, plain, strict=True):
        looked = {point.target: one.source_words[point.source] for point in one.alignment}
        words = [looked[place] if word == "<unk>" else word for place, word in enumerate(one.words)]
        assert one.text == " ".join(words)
        assert list(one.words) == list(before.words)


def test_raw_text_is_detokenised_and_any_script_arrives(client: NmtClient, folder: str) -> None:
    texts = ["Un, deux.", "ünïcödé 日本語 🙂", "e\u0301\u2028 x", "<s> &amp; |||"]
    found = client.translate(texts, raw=True)
    expected = open_translator([folder], config=DecodingConfig(beam=4)).translate(texts, raw=True)
    assert [one.translations[0].text for one in found] == [one[0].text for one in expected]
    assert [tuple(one.translations[0].source_words) for one in found] == [one[0].source_words for one in expected]


def test_bytes_that_are_not_utf8_are_unknown_words(server) -> None:
    (found,) = RemotePairScorer(server.address).score([SentencePair("un \udcff", "one")])
    assert (found.unknown_source, found.unknown_target) == (1, 0)


def test_reranking_adds_the_model_to_the_features(client: NmtClient) -> None:
    hypotheses = [("one", [1.0, -3.0]), ("two two", [2.0, -1.0]), ("one", [1.0, -3.0]), ("", [0.0, 0.0])]
    lists = [
        pb.NbestList(
            source="un", hypotheses=[pb.Hypothesis(target=text, values=values) for text, values in hypotheses]
        ),
        pb.NbestList(source="deux"),
    ]
    columns = [pb.FeatureColumn(name="LM0", weight=0.5), pb.FeatureColumn(name="TM0", weight=-0.25)]
    first, empty = client.rerank(lists, columns=columns, model_weight=2.0)
    scores = [score.log_prob for score in client.score([("un", text) for text, _ in hypotheses])]
    totals = [
        0.5 * values[0] - 0.25 * values[1] + 2 * score for (_, values), score in zip(hypotheses, scores, strict=True)
    ]
    order = sorted(range(4), key=lambda place: -round(totals[place], 4))
    # Two are equal, but for last digits where they were in different batches.
    positions = [one.position for one in first.hypotheses]
    assert positions in (order, [{0: 2, 2: 0}.get(place, place) for place in order])
    assert [one.total for one in first.hypotheses] == pytest.approx([totals[place] for place in order], abs=1e-4)
    assert order.index(0) < order.index(2)
    assert not empty.hypotheses
    assert len(client.rerank(lists, columns=columns, model_weight=2.0, best=1)[0].hypotheses) == 1


def test_phrase_vectors_are_the_summaries_of_the_encoder(both, models) -> None:
    loaded = load_model(str(models / "phrases"))
    client = NmtClient(both.address, model="phrases")
    phrases = ["un", "deux deux un", "rien du tout"]
    for phrase, vector in zip(phrases, client.encode(phrases), strict=True):
        with torch.inference_mode():
            expected = loaded.model.encode(pad([loaded.source.encode(phrase)])).first_BH[0].tolist()
        assert list(vector.values) == pytest.approx(expected, abs=1e-5)
    assert [vector.unknown_words for vector in client.encode(phrases)] == [0, 0, 3]
    described = {model.name: model for model in client.models()}
    assert (described["phrases"].vector_size, described["search"].vector_size) == (8, 0)
    assert (described["phrases"].attends, described["search"].attends) == (False, True)


def test_models_say_what_they_can_do_and_what_may_be_asked(client: NmtClient, folder: str) -> None:
    (model,) = client.models()
    assert (model.name, model.source_words, model.target_words, model.default_beam, model.device) == (
        "m",
        4,
        4,
        4,
        "cpu",
    )
    limits = model.limits
    assert (limits.items, limits.characters, limits.words, limits.beam, limits.nbest) == (6000, 60, 12, 10, 9)
    assert (limits.message_bytes, limits.request_bytes, limits.streams) == (4 << 20, 3 << 20, 50)


def test_a_server_names_the_model_in_every_answer(both) -> None:
    """Each method's, streams too; as it is in the list of models."""
    client = NmtClient(both.address)
    described = {model.name: (model.version, model.signature) for model in client.models()}
    lists = [pb.NbestList(source="un", hypotheses=[pb.Hypothesis(target="one")])]
    requests: dict[str, Any] = {
        "Translate": pb.TranslateRequest(texts=["un"]),
        "Score": pb.ScoreRequest(pairs=[pb.Pair(source="un", target="one")]),
        "Rerank": pb.RerankRequest(lists=lists),
        "Encode": pb.EncodeRequest(texts=["un"]),
    }
    for name, expected in described.items():
        assert all(expected)
        for method, request in requests.items():
            if method == "Encode" and name != "phrases":
                continue
            request.model = name
            answer = client.call(method, request)
            assert (answer.fingerprint, answer.signature) == expected
        for answers in (
            both.stub.TranslateStream(iter([pb.TranslateStreamRequest(id="1", request=requests["Translate"])])),
            both.stub.ScoreStream(iter([pb.ScoreStreamRequest(id="1", request=requests["Score"])])),
        ):
            [answer] = answers
            assert (answer.response.fingerprint, answer.response.signature) == expected
    assert len(set(described.values())) == 2


def test_a_server_of_two_models_wants_a_name(both) -> None:
    with pytest.raises(ServiceError, match="names no model; models here: phrases, search"):
        RemotePairScorer(both.address)
    assert RemotePairScorer(both.address, model="search").model == "search"


def test_the_filters_write_what_the_client_gets(server, client: NmtClient, tmp_path, capsysbinary) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    lines = ["un", "deux un", "", "né"] * 3
    source.write_text("".join(line + "\n" for line in lines))
    target.write_text("one\ntwo two\n\nné\n" * 3)
    address = ["--address", server.address, "--window", "5"]
    assert main(["client", "translate", *address, str(source)]) == 0
    expected = [one.translations[0].text for one in client.translate(lines)]
    assert capsysbinary.readouterr().out.decode().split("\n") == [*expected, ""]
    assert main(["client", "translate", *address, "--nbest", "2", "--beam", "3", str(source)]) == 0
    nbest = capsysbinary.readouterr().out.decode().split("\n")
    assert nbest[0].startswith("0 ||| ")
    assert len(nbest[0].split(" ||| ")) == 4
    assert main(["client", "score", *address, str(source), str(target)]) == 0
    scores = [float(line) for line in capsysbinary.readouterr().out.split()]
    pairs = zip(lines, ["one", "two two", "", "né"] * 3, strict=True)
    assert scores == pytest.approx([score.log_prob for score in client.score(pairs)], abs=1e-5)
    assert main(["client", "score", *address, "--per-word", str(source), str(target)]) == 0
    first = capsysbinary.readouterr().out.decode().split("\n")[0]
    assert sum(map(float, first.split())) == pytest.approx(scores[0], abs=1e-5)


def test_a_line_that_is_refused_is_named(server, tmp_path, error_line) -> None:
    source = tmp_path / "source"
    source.write_text("un\n" + "deux " * 20 + "\n")
    line = error_line(main, ["client", "translate", "--address", server.address, str(source)])
    assert f"{source}:2: the text has 100 characters; at most 60" in line
